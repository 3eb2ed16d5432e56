#!/usr/bin/env bash
# Runs Go 1.24 or later with the arguments given: the machine's own, or else the one that
# tools/setup.sh has put into build/toolchain.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

for go in go /usr/local/go/bin/go "$root/build/toolchain/go/bin/go"; do
	version=$(cd / && "$go" env GOVERSION 2>/dev/null) || continue
	if printf '%s\n' go1.24 "$version" | sort -V -C; then
		exec "$go" "$@"
	fi
done
echo "go.sh: no Go 1.24 or later here: tools/setup.sh test" >&2
exit 1
