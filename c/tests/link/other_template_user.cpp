/* A second part of a program in C++, with the same templates. */
#include <tenure/slab.hpp>

bool other_part();

bool other_part() {
	tenure::slab<int> s;
	return *s.make(1) == 1;
}
