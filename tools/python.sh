#!/usr/bin/env bash
# tools/python.sh build|test|long [STEP...]   builds the Python package in a virtual environment,
# build/python/venv; with `test` runs its quick tests, with `long` those that take minutes: hardened,
# debug, PYTHONMALLOC=debug, the address sanitizer, NumPy's own tests, the source distribution, and each
# other interpreter of PYTHONS, by default those of pyenv. PYTHON is the interpreter that it is for,
# TENURE_MODE (0, 1, 2) the mode. For a free-threaded interpreter name it in PYTHONS.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${TENURE_MODE:-0}
venv=${TENURE_VENV:-build/python/venv}
pip="install --quiet --disable-pip-version-check"
what=${1:-}

get_requirements() {
	[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
	cmp -s python/requirements.txt "$venv/requirements.txt" && return
	if [ -z "${TENURE_ANY:-}" ]; then
		"$venv/bin/python" -m pip $pip -r python/requirements.txt
	else # an interpreter for which not all of them are built; the tests skip what they cannot import
		sed 's/ *#.*//' python/requirements.txt | while read -r one; do
			"$venv/bin/python" -m pip $pip --only-binary :all: "${one:-pip}" ||
				"$venv/bin/python" -m pip $pip --only-binary :all: "${one%%==*}" ||
				echo "python: $venv: without $one"
		done
	fi
	cp python/requirements.txt "$venv/requirements.txt"
}

build() {
	get_requirements
	"$venv/bin/python" -m pip $pip --no-build-isolation --no-deps --force-reinstall \
		--config-settings=build-dir="../build/python/$(basename "$venv")-{wheel_tag}" \
		--config-settings=cmake.define.TENURE_MODE="$mode" \
		--config-settings=cmake.define.TENURE_WERROR=ON ./python
}

run_tests() { "$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"; }

long_modes() {
	for mode in 1 2; do
		venv=build/python/venv-mode$mode
		build
		run_tests python/tests
	done
}

long_malloc() { PYTHONMALLOC=debug run_tests python/tests -k 'not stubs and not compare'; }

# Leaks are counted by the tests themselves: CPython keeps memory until the end.
long_asan() {
	venv=build/python/venv-asan
	CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -g1" build
	LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" \
		PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
		run_tests python/tests -k 'not stubs and not compare'
}

long_numpy() { "$venv/bin/python" python/tests/numpy_core.py; }

# The archive is unpacked and built where the repository is not beside it.
long_sdist() {
	local place
	place=$(mktemp -d)
	"$venv/bin/python" - "$place" <<-'END'
		import os, sys
		sys.path.insert(0, "python")
		os.chdir("python")
		import backend
		print(backend.build_sdist(sys.argv[1]))
	END
	tar -xf "$place"/tenure-*.tar.gz -C "$place"
	"${PYTHON:-python3}" -m venv --system-site-packages "$place/venv"
	(cd "$place" && venv/bin/python -m pip $pip ./tenure-*/ &&
		venv/bin/python -c "import tenure; assert bytes(tenure.Arena().copy(b'sdist')) == b'sdist'")
	rm -rf "$place"
}

long_interpreters() {
	local python name='import sys; print(sys.version.split()[0] + sys.abiflags)'
	for python in ${PYTHONS:-"$HOME"/.pyenv/versions/3.1[1-9].*/bin/python3}; do
		[ -x "$python" ] || continue
		venv=build/python/venv-$("$python" -c "$name")
		echo "python: $python"
		PYTHON=$python TENURE_ANY=1 build
		run_tests python/tests -k 'not stubs'
	done
}

case $what in
build) build ;;
long)
	build
	steps=${*:2}
	for step in ${steps:-modes malloc asan numpy sdist interpreters}; do
		echo "python: $step"
		(set -e; "long_$step")
	done
	;;
test)
	build
	"$venv/bin/ruff" check --quiet python
	"$venv/bin/mypy" --config-file python/pyproject.toml python/tenure
	run_tests python/tests
	;;
*)
	echo "usage: tools/python.sh build|test|long" >&2
	exit 2
	;;
esac
