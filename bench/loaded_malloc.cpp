/* bench/loaded_malloc.cpp */
#include "loaded_malloc.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bench {

/* Calls from inside the library to malloc must reach its own, where the loader knows how. */
#ifdef RTLD_DEEPBIND
static constexpr int bind_inside = RTLD_DEEPBIND;
#else
static constexpr int bind_inside = 0;
#endif

loaded_library::loaded_library(const char *file, const char *package)
	: file_(file), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL | bind_inside)) {
	if (handle_ != nullptr)
		return;
	std::fprintf(stderr, "tenure-bench: %s (of the package %s)\n", dlerror(), package);
	std::exit(2);
}

void *loaded_library::find_address(const char *symbol) const {
	void *f = dlsym(handle_, symbol);
	Dl_info info;
	if (f != nullptr && dladdr(f, &info) != 0 && std::strstr(info.dli_fname, file_.c_str()) != nullptr)
		return f;
	std::fprintf(stderr, "tenure-bench: %s has no %s of its own\n", file_.c_str(), symbol);
	std::exit(2);
}

const loaded_library &mimalloc_library() {
	static const loaded_library library("libmimalloc.so.2", "libmimalloc2.0");
	return library;
}

const malloc_calls &mimalloc_calls() {
	const loaded_library &l = mimalloc_library();
	static const malloc_calls calls{l.find<void *(size_t)>("mi_malloc"),
		l.find<void(void *)>("mi_free")};
	return calls;
}

const malloc_calls &jemalloc_calls() {
	static const loaded_library l("libjemalloc.so.2", "libjemalloc2");
	static const malloc_calls calls{l.find<void *(size_t)>("malloc"), l.find<void(void *)>("free")};
	return calls;
}

const malloc_calls &tcmalloc_calls() {
	static const loaded_library l("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4");
	static const malloc_calls calls{l.find<void *(size_t)>("tc_malloc"),
		l.find<void(void *)>("tc_free")};
	return calls;
}

}
