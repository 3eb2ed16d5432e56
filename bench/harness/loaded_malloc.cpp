/* bench/harness/loaded_malloc.cpp */
#include "harness/loaded_malloc.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

namespace bench {

/* The library's calls of malloc must reach its own malloc. */
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

const loaded_library &driver_library(const char *file) {
	static std::map<std::string, loaded_library> opened;
	return opened.try_emplace(file, file, "tenure-bench itself").first->second;
}

const malloc_calls &glibc_calls() {
	static const malloc_calls calls{std::malloc, std::free};
	return calls;
}

const loaded_library &mimalloc_library() {
	static const loaded_library library("libmimalloc.so.2", "libmimalloc2.0");
	return library;
}

const malloc_calls &mimalloc_calls() {
	const loaded_library &l = mimalloc_library();
	static void (*const collect)(bool) = l.find<void(bool)>("mi_collect");
	static const malloc_calls calls{
		l.find<void *(size_t)>("mi_malloc"), l.find<void(void *)>("mi_free"), [] { collect(true); }};
	return calls;
}

const loaded_library &jemalloc_library() {
	static const loaded_library library("libjemalloc.so.2", "libjemalloc2");
	return library;
}

const malloc_calls &jemalloc_calls() {
	const loaded_library &l = jemalloc_library();
	using control = int(const char *, void *, size_t *, void *, size_t);
	static control *const mallctl = l.find<control>("mallctl");
	static const malloc_calls calls{
		l.find<void *(size_t)>("malloc"), l.find<void(void *)>("free"), [] {
			mallctl("arena.4096.purge", nullptr, nullptr, nullptr, 0); /* 4096: all arenas */
		}};
	return calls;
}

const malloc_calls &tcmalloc_calls() {
	static const loaded_library l("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4");
	static const malloc_calls calls{l.find<void *(size_t)>("tc_malloc"),
		l.find<void(void *)>("tc_free"), l.find<void()>("MallocExtension_ReleaseFreeMemory")};
	return calls;
}

const malloc_calls &tbb_calls() {
	static const loaded_library l("libtbbmalloc.so.2", "libtbbmalloc2");
	static int (*const command)(int, void *) = l.find<int(int, void *)>("scalable_allocation_command");
	static const malloc_calls calls{
		l.find<void *(size_t)>("scalable_malloc"), l.find<void(void *)>("scalable_free"), [] {
			command(0, nullptr); /* clean all buffers */
		}};
	return calls;
}

#ifdef BENCH_CARGO_PEERS
const bool has_cargo_peers = true;
#else
const bool has_cargo_peers = false;
#endif

/* MallocCalls in peers/src/lib.rs. */
struct cargo_calls {
	void *(*alloc)(size_t);
	void (*free)(void *);
	void (*trim)(bool);
};

static const cargo_calls &cargo_peer(const char *table) {
	return *driver_library("libtenure_bench_peers.so").find<const cargo_calls>(table);
}

const malloc_calls &snmalloc_calls() {
	static const cargo_calls &peer = cargo_peer("tenure_bench_snmalloc");
	static const malloc_calls calls{peer.alloc, peer.free};
	return calls;
}

const malloc_calls &mimalloc3_calls() {
	static const cargo_calls &peer = cargo_peer("tenure_bench_mimalloc3");
	static const malloc_calls calls{peer.alloc, peer.free, [] { peer.trim(true); }};
	return calls;
}

}
