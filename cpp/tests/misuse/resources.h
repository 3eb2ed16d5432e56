/* The common part of programs that misuse a resource: the output for c/tests/misuse/run.py. */
#include <tenure/slab_resource.hpp>

#include <cstdio>
#include <string>

inline void tell(const char *name, const void *p) {
	std::printf("%s %p\n", name, p);
	std::fflush(stdout);
}

/* Runs the function for the kind of resource and prints its name. */
template <typename F> void dispatch(const char *how, const std::string &kind, F own, F shared) {
	std::puts(kind == "slab" ? "kind slab\nname slab_resource"
							 : "kind shared slab\nname shared_slab_resource");
	std::fflush(stdout);
	(kind == "slab" ? own : shared)(how);
}
