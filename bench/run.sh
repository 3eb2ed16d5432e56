#!/usr/bin/env bash
# Runs one family of benchmarks: run.sh FAMILY [ARGUMENTS of its driver]. The families go, python and
# record have drivers of their own; Go's is built with its experiment of arenas, one of its subjects.
set -euo pipefail
cd "$(dirname "$0")/.."
family=$1
if [ "$family" = go ]; then
	shift
	mkdir -p build/bench
	(cd bench/go && GOEXPERIMENT=arenas ../../tools/go.sh build -o ../../build/bench/tenure-go-bench .)
	exec build/bench/tenure-go-bench "$@"
fi
if [ "$family" = python ]; then
	shift
	tools/python.sh build
	exec build/python/venv/bin/python bench/python/family.py "$@"
fi
if [ "$family" = record ]; then
	shift
	tools/cargo.sh release
	cmake --build build/release --target tenure-record
	exec "${PYTHON:-python3}" bench/record/family.py "$@"
fi
exec build/release/bench/tenure-bench "$@"
