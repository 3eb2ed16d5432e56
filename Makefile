# The only entry; `make` alone prints the lines below. It holds no logic: what a target needs is in
# tools/setup.sh, how it is built in CMakeLists.txt, and what it does in the program that it runs.
#
#   make lib                    the libraries, the man pages and tenure-top, in build/lib
#   make install [PREFIX=DIR]   installs them below DIR, by default /usr/local
#
# These need cmake and a C compiler and install no packages. The others call tools/setup.sh first,
# which installs the Debian packages that are missing:
#
#   make demo [DOC=FILE.json]   the demo: a JSON library on real documents, or on yours
#   make test                   style, builds with gcc and clang, tests in three modes, Go, Python, Rust
#   make check                  the slow tests: sanitizers, Valgrind, other systems, instruction counts
#   make bench [BENCH=FAMILY]   benchmarks and their pictures, in build/bench
#   make fmt                    repairs what tools/check_style.py can repair; installs nothing

PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3
BENCH ?= arena slab shared cpp scope heap footprint idle go python record
configure = cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -S . -B

.PHONY: help lib install demo test check bench fmt

help:
	@sed -n 's/^#   //p' Makefile

lib:
	cmake -DTENURE_TESTS=OFF -S . -B build/lib
	cmake --build build/lib --parallel

install: lib
	cmake --install build/lib --prefix "$(PREFIX)"

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
	$(configure) build/clang -DTENURE_TESTS=OFF -DCMAKE_C_COMPILER=clang
	cmake --build build/clang
	PYTHON=$(PYTHON) tools/python.sh test
	ctest --test-dir build/test --output-on-failure -j 2
	tools/go_tests.sh quick
	tools/cargo.sh test

check: test
	tools/setup.sh check
	PYTHON=$(PYTHON) tools/check.sh

bench:
	tools/setup.sh bench
	$(configure) build/release -DTENURE_TESTS=OFF -DTENURE_BENCH=ON
	cmake --build build/release --target tenure-bench
	for family in $(BENCH); do PYTHON=$(PYTHON) bench/run.sh $$family || exit 1; done
	$(PYTHON) bench/plot.py

fmt:
	$(PYTHON) tools/check_style.py --fix
