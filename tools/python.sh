#!/usr/bin/env bash
# tools/python.sh build|test   builds the Python package in a virtual environment, build/python/venv;
# with `test` runs its quick tests. PYTHON is the interpreter that it is for, TENURE_MODE (0, 1, 2) the
# mode.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${TENURE_MODE:-0}
venv=${TENURE_VENV:-build/python/venv}
what=${1:-}
case $what in
build | test) ;;
*)
	echo "usage: tools/python.sh build|test" >&2
	exit 2
	;;
esac

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
if ! cmp -s python/requirements.txt "$venv/requirements.txt"; then
	"$venv/bin/pip" install --quiet --disable-pip-version-check -r python/requirements.txt
	cp python/requirements.txt "$venv/requirements.txt"
fi
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	--force-reinstall --config-settings=cmake.define.TENURE_MODE="$mode" \
	--config-settings=cmake.define.TENURE_WERROR=ON ./python

if [ "$what" = test ]; then
	"$venv/bin/ruff" check --quiet python
	"$venv/bin/python" -m pytest -q -p no:cacheprovider python/tests
fi
