# The only entry. It holds no logic: what a target needs is in tools/setup.sh, how it is built in
# CMakeLists.txt, and what it does in the program that it runs.
#
#   make demo [DOC=file.json]   the main job on real documents, or on yours
#   make test                   everything that takes seconds
#   make check                  what takes minutes: sanitizers, Valgrind, instruction counts
#   make bench [BENCH=family]   benchmarks and their pictures, in build/bench
#   make fmt                    repairs what tools/check_style.py can repair

PYTHON ?= /usr/bin/python3
BENCH ?= arena slab shared cpp scope heap
configure = cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -S . -B

.PHONY: demo test check bench fmt

demo:
	tools/setup.sh demo
	$(configure) build/demo -DTENURE_TESTS=OFF -DTENURE_DEMO=ON
	cmake --build build/demo --target tenure-demo
	build/demo/bench/tenure-demo $(if $(DOC),"$(DOC)")
	$(PYTHON) bench/demo/plot.py

test:
	tools/setup.sh test
	$(PYTHON) tools/check_style.py
	$(configure) build/test
	cmake --build build/test
	$(configure) build/clang -DTENURE_TESTS=OFF -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++
	cmake --build build/clang
	ctest --test-dir build/test --output-on-failure -j 2

check: test
	tools/setup.sh check
	PYTHON=$(PYTHON) tools/check.sh

bench:
	tools/setup.sh bench
	$(configure) build/release -DTENURE_TESTS=OFF -DTENURE_BENCH=ON
	cmake --build build/release --target tenure-bench
	for family in $(BENCH); do build/release/bench/tenure-bench $$family || exit 1; done
	$(PYTHON) bench/plot.py

fmt:
	$(PYTHON) tools/check_style.py --fix
