/* bench/harness/loaded_malloc.h: other mallocs in the same process; none replaces malloc. */
#ifndef BENCH_HARNESS_LOADED_MALLOC_H
#define BENCH_HARNESS_LOADED_MALLOC_H

#include <cstddef>
#include <string>

namespace bench {

/* A library opened privately: the program does not see its symbols, and it prefers its own. */
class loaded_library {
public:
	/* Ends the process, naming the package, when the library is missing. */
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
	void (*trim)() = nullptr; /* gives unused memory back; NULL: no such call */
};

/* A library built with the driver, in the driver's directory. */
const loaded_library &driver_library(const char *file);

const loaded_library &mimalloc_library();
const loaded_library &jemalloc_library();
const malloc_calls &glibc_calls();
const malloc_calls &mimalloc_calls();
const malloc_calls &jemalloc_calls();
const malloc_calls &tcmalloc_calls();
const malloc_calls &tbb_calls();

/* Built from bench/peers where cargo is installed. */
extern const bool has_cargo_peers;
const malloc_calls &snmalloc_calls();
const malloc_calls &mimalloc3_calls();

}
#endif
