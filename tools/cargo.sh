#!/usr/bin/env bash
# cargo for cli/: cargo.sh present|build|release|test. What it builds goes to build/cargo, or to
# CARGO_TARGET_DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/build/cargo}

# 1.85 reads the lock file and the sources of all dependencies.
present() {
	local version
	version=$(cargo --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+' | head -n 1) &&
		printf '1.85\n%s\n' "$version" | sort -VC
}

case ${1:-} in
present) present ;;
build) cd cli && cargo build --locked ;;
release) cd cli && cargo build --locked --release ;;
test) cd cli && cargo test --locked --quiet ;;
*)
	echo "usage: tools/cargo.sh present|build|release|test" >&2
	exit 2
	;;
esac
