/* A user of the C++ front end. */
#include <tenure/arena.hpp>
#include <tenure/slab.hpp>

int main() {
	tenure::arena a;
	tenure::slab<int> s;
	int *number = s.make(*a.make<int>(1));
	int status = *number - 1;
	s.destroy(number);
	return status;
}
