#!/usr/bin/env bash
# The checks that take minutes: sanitizers, Valgrind, long model runs, other systems and standard
# libraries, instruction counts, Relacy. `tools/check.sh NAME...` runs the named ones only.
set -uo pipefail
cd "$(dirname "$0")/.."

build=${TENURE_BUILD:-build}
model_factor=${TENURE_MODEL_FACTOR:-50}
relacy_schedules=${TENURE_RELACY_SCHEDULES:-1000000}
stress_seconds=${TENURE_STRESS_SECONDS:-15}
fuzz_seconds=${TENURE_FUZZ_SECONDS:-600}
strict="-std=c11 -O2 -Wall -Wextra -Wconversion -Werror -Ic/include"

sanitized() {
	local name=$1 sanitizers=$2
	shift 2
	# Reports need only -g1, and -O1 compiles in half the time, but sees less of the ranges that the
	# compiler warns about.
	local flags="-O1 -g1 -DNDEBUG -Wno-format-truncation"
	cmake -G Ninja -S . -B "$build/$name" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTENURE_LONG=ON \
		-DCMAKE_C_FLAGS_RELWITHDEBINFO="$flags" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$flags" \
		-DTENURE_SANITIZE="$sanitizers" >"$build/$name.configure.log" || return
	cmake --build "$build/$name" || return
	ctest --test-dir "$build/$name" --output-on-failure -j 2 "$@"
}

# The package tests compile without the sanitizers.
check_asan() { sanitized asan address,undefined -LE package; }

# Without single-threaded tests, and without misuse: its overlapping calls are intended races.
check_tsan() { sanitized tsan thread -LE 'package|misuse' -E 'model|bad_input'; }

plain() {
	cmake -G Ninja -S . -B "$build/test" -DCMAKE_BUILD_TYPE=Release -DTENURE_LONG=ON \
		>"$build/test.configure.log" &&
		cmake --build "$build/test"
}

# Without models and threads, because Valgrind is slow. Resident memory cannot be measured under it.
check_valgrind() {
	plain || return
	local failed=0 mode program log=$build/valgrind.log
	local tests='base.*:arena.*:arena_blocks.*:slab.*:slabs/slab.*'
	for mode in release hardened debug; do
		program=$build/test/c/tests/$mode.tests
		echo "valgrind $program"
		valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
			"$program" --gtest_brief=1 \
			--gtest_filter="$tests-arena.reserve_gives_back_above_retain_bytes_at_reset" \
			>"$log" 2>&1 || {
			cat "$log"
			failed=1
		}
	done
	return $failed
}

# Every model with so many times the operations of make test.
check_model() {
	plain || return
	export TENURE_MODEL_FACTOR=$model_factor
	ctest --test-dir "$build/test" --output-on-failure -j 2 -R model --timeout 3600
}

# The long form of all tests with threads: 100,000 threads, thousands of forks, and each program with
# random threads for TENURE_STRESS_SECONDS in each mode, with new seeds all the time; also every bad
# input and every limit of address space. TENURE_STRESS_SECONDS=1200 takes an hour.
check_stress() {
	plain || return
	export TENURE_STRESS_SECONDS=$stress_seconds TENURE_SEED=${TENURE_SEED:-$RANDOM}
	echo "TENURE_SEED=$TENURE_SEED"
	ctest --test-dir "$build/test" --output-on-failure -j 2 --timeout 7200 \
		-R 'stress|_threads|loaded|bad_input|oom'
}

# Random schedules of every scenario, then every schedule with two switches where these can be counted,
# then all mutants.
check_relacy() {
	plain || return
	local tests=$build/test/c/tests/relacy name
	find "$tests" -maxdepth 1 -name 'relacy.*' -type f -executable |
		xargs -P 2 -I PROGRAM PROGRAM "$relacy_schedules" || return
	for name in lock exchange flush state; do
		"$tests/relacy.$name" bound 2 || return
	done
	"${PYTHON:-python3}" c/tests/relacy/run_mutants.py \
		"$tests/CMakeFiles/relacy_engine.dir/engine.cpp.o"
}

# The whole C API at random, TENURE_FUZZ_SECONDS in each mode under ASan and UBSan, with new seeds.
check_fuzz() {
	local mode seed=${TENURE_SEED:-$RANDOM$RANDOM}
	sanitized asan address,undefined -N || return
	for mode in release hardened debug; do
		echo "fuzz-$mode $fuzz_seconds $seed"
		"$build/asan/c/tests/fuzz-$mode" "$fuzz_seconds" "$seed" || return
	done
}

# Changes of the core, one at a time, of which the tests must see 95 of 100; hours on two cores. Not yet
# part of a plain run: the survivors of the sample are not all judged.
check_mutation() {
	plain && "${PYTHON:-python3}" tools/mutation.py "$build/test"
}

# Windows in 64 and 32 bits: the latter also shows what a 32-bit size_t does to the arithmetic.
check_windows() {
	local target mode source
	for target in x86_64 i686; do
		for mode in 0 1 2; do
			for source in c/src/*.c c/src/*/*.c; do
				[[ $source != */os_posix.c && $source != */os_none.c ]] || continue
				"$target-w64-mingw32-gcc" $strict -DTN_MODE=$mode -c "$source" -o /dev/null || return
			done
		done
	done
	echo "windows: compiled for 64 and 32 bits in 3 modes"
}

# The library and the examples, linked statically with musl.
check_musl() { "${PYTHON:-python3}" c/tests/package/package.py musl . "$build"; }

# Left out of make test: containers on every resource, C++ in hardened, conformance in debug, compilers
# beside gcc, compile times, fetched sources, a build by make install, pages of 16 and 64 KiB.
check_long() {
	plain && ctest --test-dir "$build/test" --output-on-failure -j 2 \
		-R 'cpp\.(hardened|debug\.conf|.*containers)|cpp-(other|compile)|fetched|make-install|pages_of'
}

# The rules of the standard for memory resources, and the typed classes, over libc++; of the resources,
# only Tenure's, not libc++'s own. GoogleTest comes as source for it.
check_libcxx() {
	local google=/usr/src/googletest/googletest work=$build/libcxx source mode
	local compile="clang++-19 -stdlib=libc++ -std=c++17 -O1 -isystem $google/include -I$google"
	mkdir -p "$work" && $compile -c $google/src/gtest-all.cc -o "$work/gtest.o" &&
		$compile -c $google/src/gtest_main.cc -o "$work/main.o" || return
	for mode in 0 1 2; do
		cc -std=c11 -O2 -Ic/include -DTN_MODE=$mode -c c/src/tenure.c -o "$work/tenure.o" || return
		for source in cpp/tests/conformance_*.cpp cpp/tests/test_{arena,slab,pool,resources}.cpp; do
			$compile -O0 -w -Ic/include -Icpp/include -Ic/tests/support -DTN_MODE=$mode \
				-DTENURE_SANITIZE='""' -c "$source" -o "$work/$(basename "$source").o" || return
		done
		clang++-19 -stdlib=libc++ "$work"/*.o -pthread -o "$work/tests" &&
			"$work/tests" --gtest_brief=1 --gtest_filter='-*/std_*' || return
	done
}

check_python() { tools/python.sh long; }

check_go() { tools/go_tests.sh long; }

check_instructions() { "${PYTHON:-python3}" tools/callgrind_gate.py; }

mkdir -p "$build"
failures=()
[ $# -gt 0 ] ||
	set -- windows musl long libcxx go python instructions asan tsan valgrind model relacy stress \
		fuzz
for step in "$@"; do
	started=$SECONDS
	echo "== check: $step"
	"check_$step" || failures+=("$step")
	echo "== check: $step took $((SECONDS - started)) s"
done
if [ ${#failures[@]} -gt 0 ]; then
	echo "check: failed: ${failures[*]}"
	exit 1
fi
echo "check: all passed"
