/* Its own global is one more population, whose turn the linker decides. */
#include "population.h"

#include <cstdio>
#include <cstdlib>

namespace {
population globals;

/* Runs after the destructors of all globals that were made before main. */
[[gnu::destructor]] void last() {
	check_counts("at the end");
	if (populations != 0)
		std::_Exit(2);
	std::puts("all are gone");
	std::fflush(stdout);
}
}

int main() {
	check_counts("in main");
	if (populations != 4)
		return 3;
	population local;
	static population first_used_here;
	std::atexit([] { check_counts("at exit"); });
	return 0;
}
