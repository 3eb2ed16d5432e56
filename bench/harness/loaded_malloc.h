/* bench/harness/loaded_malloc.h: other mallocs in the same process, none of them in place of malloc. */
#ifndef BENCH_HARNESS_LOADED_MALLOC_H
#define BENCH_HARNESS_LOADED_MALLOC_H

#include <cstddef>
#include <string>

namespace bench {

/* A library opened so that its symbols serve nobody else, and so that it uses its own. */
class loaded_library {
public:
	/* Ends the process with the name of the package when the library is missing. */
	loaded_library(const char *file, const char *package);

	/* Ends the process unless the symbol is this library's own. */
	template <class F> F *find(const char *symbol) const {
		return reinterpret_cast<F *>(find_address(symbol));
	}

private:
	void *find_address(const char *symbol) const;

	std::string file_;
	void *handle_;
};

struct malloc_calls {
	void *(*alloc)(size_t);
	void (*free)(void *);
	void (*trim)() = nullptr; /* gives back what is unused; where there is a way */
};

/* A library that is built with the driver, and stands beside it. */
const loaded_library &driver_library(const char *file);

const loaded_library &mimalloc_library();
const loaded_library &jemalloc_library();
const malloc_calls &glibc_calls();
const malloc_calls &mimalloc_calls();
const malloc_calls &jemalloc_calls();
const malloc_calls &tcmalloc_calls();
const malloc_calls &tbb_calls();

/* Built by cargo from bench/peers, where there is a cargo. */
extern const bool has_cargo_peers;
const malloc_calls &snmalloc_calls();
const malloc_calls &mimalloc3_calls();

}
#endif
