#!/usr/bin/env bash
# The tests of the Go module: `quick` for make test, `long` for make check.
set -euo pipefail
cd "$(dirname "$0")/../go"
go=../tools/go.sh

unformatted=$("$($go env GOROOT)/bin/gofmt" -l . ../bench/go ../examples/go)
if [ -n "$unformatted" ]; then
	echo "not as gofmt has it: $unformatted" >&2
	exit 1
fi
$go vet ./...
(cd arenacheck && ../../tools/go.sh vet ./...)
case ${1:-} in
quick)
	$go test ./...
	$go test -race -short ./...
	$go test -tags tenurecheck ./pool
	TENURE_BACKEND=heap $go test -tags tenure_heap ./arena/switched
	TENURE_BACKEND=goexperiment GOEXPERIMENT=arenas $go test -tags tenure_experiment ./arena/switched
	(cd ../bench/go && GOEXPERIMENT=arenas ../../tools/go.sh test .)
	(cd ../examples/go/cgo && ../../../tools/go.sh test ./... && ../../../tools/go.sh test -race ./...)
	;;
long)
	# The oldest Go that the module promises, where tools/setup.sh check has put it.
	oldest=$PWD/../build/toolchain-1.24/go/bin/go
	GOTOOLCHAIN=local "$oldest" vet ./...
	GOTOOLCHAIN=local "$oldest" test ./...
	GOTOOLCHAIN=local "$oldest" test -race -short ./...
	export TENURE_LONG=1
	$go test -timeout 60m ./...
	$go test -race -timeout 60m ./...
	# The checks of checkptr=2 and -asan allocate, which the tests named here must not.
	$go test -short -gcflags=all=-d=checkptr=2 \
		-skip 'TestResetKeepsWarmMemory|TestSteadyUseAllocatesNothing' ./...
	$go test -asan -short -skip 'TestResetKeepsWarmMemory|TestSteadyUseAllocatesNothing' ./...
	GOGC=1 $go test -short -count 1 ./...
	for target in FuzzModel FuzzSlices; do
		$go test -run '^$' -fuzz "$target" -fuzztime 1m -fuzzminimizetime 10x -parallel 2 ./arena
	done
	for system in windows darwin freebsd; do
		GOOS=$system $go vet ./...
	done
	GOOS=js GOARCH=wasm $go vet ./...
	GOARCH=386 $go vet ./...
	(cd arenacheck && ../../tools/go.sh test -timeout 30m ./...)
	;;
*)
	echo "usage: tools/go_tests.sh quick|long" >&2
	exit 2
	;;
esac
