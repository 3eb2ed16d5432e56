/* The same in C++. */
#include <cstdio>

#include <tenure/tenure.hpp>

int main() {
	tenure::arena a("consumer");
	tenure::slab<int> s;
	auto number = s.make_unique(*a.make<int>(1));
	std::printf("mode %d\n", TN_MODE);
	return *number - 1;
}
