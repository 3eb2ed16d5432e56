/* The same with blocks from the resource's upstream.
 *
 * args      foreign size align twice released x slab shared
 * release   undefined
 * hardened  ABRT tenure: resource: deallocate: {p} is no block of this resource
 * hardened:released  undefined
 * hardened:size  ABRT tenure: resource: deallocate: {p} has another size or alignment
 * hardened:align  ABRT tenure: resource: deallocate: {p} has another size or alignment
 * debug     ABRT tenure: resource: deallocate: {p} is no block of this resource
 * debug:size  ABRT tenure: resource: deallocate: {p} has another size or alignment
 * debug:align  ABRT tenure: resource: deallocate: {p} has another size or alignment
 */
#include "resources.h"

template <class Resource> static void misuse(const std::string &how) {
	alignas(16) static char here[256];
	Resource r;
	void *other = r.allocate(200000), *p = how == "foreign" ? here + 128 : r.allocate(100000);
	tell("p", p);
	if (how == "twice")
		r.deallocate(p, 100000);
	if (how == "released")
		r.release();
	r.deallocate(p, how == "size" ? 100001 : 100000, how == "align" ? 64 : 16);
	r.deallocate(other, 200000);
}

int main(int, char **argv) {
	dispatch(argv[1], argv[2], misuse<tenure::slab_resource>, misuse<tenure::shared_slab_resource>);
}
