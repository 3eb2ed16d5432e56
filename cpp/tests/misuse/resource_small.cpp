/* Gives a resource a block that it never had, a block with another size, or a block twice.
 *
 * args      at-first foreign wrong-size twice released x slab shared
 * release   undefined
 * hardened  ABRT tenure: {kind}: free: PTR is not a live {kind}
 * hardened:foreign  ABRT tenure: {kind} "{name}": free: {p} is not a slot of this {kind}
 * hardened:wrong-size  ABRT tenure: {kind} "{name}": free: {p} is not a slot of this {kind}
 * hardened:twice  ABRT tenure: {kind} "{name}": free: {p} is free already
 * debug     ABRT tenure: {kind}: free: PTR is not a live {kind}
 * debug:foreign  ABRT tenure: {kind} "{name}": free: {p} is not a slot of this {kind};
 *           nothing of Tenure is there
 * debug:wrong-size  ABRT tenure: {kind} "{name}": free: {p} is not a slot of this {kind};
 *           it is in {kind} "{name}", slot {p}
 * debug:twice  ABRT tenure: {kind} "{name}": free: {p} is free already, allocated at SITE,
 *           freed at SITE
 */
#include "resources.h"

template <class Resource> static void misuse(const std::string &how) {
	alignas(16) static char here[64];
	Resource r;
	if (how != "at-first")
		r.deallocate(r.allocate(16), 16);
	void *p = how == "at-first" || how == "foreign" ? here : r.allocate(100);
	tell("p", p);
	if (how == "twice")
		r.deallocate(p, 100);
	if (how == "released")
		r.release();
	r.deallocate(p, how == "foreign" || how == "wrong-size" ? 16 : 100);
}

int main(int, char **argv) {
	dispatch(argv[1], argv[2], misuse<tenure::slab_resource>, misuse<tenure::shared_slab_resource>);
}
