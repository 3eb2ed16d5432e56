/* bench/heap/subjects.cpp: the heaps under Lua, SQLite and the parsers. */
#include "heap/subjects.h"

#include <malloc.h>

#include <cstdio>
#include <cstdlib>

#include "harness/ageing.h"
#include "harness/loaded_malloc.h"
#include "heap/tenure.h"

namespace bench {
namespace {

/* The process's only heap, which never ends. */
class one_for_all {
public:
	static constexpr bool can_drop = false;

	static void *make() {
		return nullptr;
	}
	static void end(void *) {
	}
};

class glibc_heap : public one_for_all {
public:
	static void *alloc(void *, size_t size) {
		return std::malloc(size);
	}
	static void free(void *, void *p) {
		std::free(p);
	}
	static void free_sized(void *, void *p, size_t) {
		std::free(p);
	}
	static void *realloc(void *, void *p, size_t size) {
		return std::realloc(p, size);
	}
	static size_t usable(void *, void *p) {
		return malloc_usable_size(p);
	}
};

class jemalloc_heap : public one_for_all {
public:
	static void prepare() {
		const loaded_library &l = jemalloc_library();
		alloc_ = l.find<void *(size_t)>("malloc");
		free_ = l.find<void(void *)>("free");
		free_sized_ = l.find<void(void *, size_t, int)>("sdallocx");
		realloc_ = l.find<void *(void *, size_t)>("realloc");
		usable_ = l.find<size_t(void *)>("malloc_usable_size");
	}

	static void *alloc(void *, size_t size) {
		return alloc_(size);
	}
	static void free(void *, void *p) {
		free_(p);
	}
	static void free_sized(void *, void *p, size_t size) {
		if (p != nullptr)
			free_sized_(p, size, 0);
	}
	static void *realloc(void *, void *p, size_t size) {
		return realloc_(p, size);
	}
	static size_t usable(void *, void *p) {
		return usable_(p);
	}

private:
	static inline void *(*alloc_)(size_t);
	static inline void (*free_)(void *);
	static inline void (*free_sized_)(void *, size_t, int);
	static inline void *(*realloc_)(void *, size_t);
	static inline size_t (*usable_)(void *);
};

class mimalloc_heap_of_all : public one_for_all {
public:
	static void prepare() {
		const loaded_library &l = mimalloc_library();
		alloc_ = l.find<void *(size_t)>("mi_malloc");
		free_ = l.find<void(void *)>("mi_free");
		realloc_ = l.find<void *(void *, size_t)>("mi_realloc");
		usable_ = l.find<size_t(const void *)>("mi_usable_size");
	}

	static void *alloc(void *, size_t size) {
		return alloc_(size);
	}
	static void free(void *, void *p) {
		free_(p);
	}
	static void free_sized(void *, void *p, size_t) {
		free_(p);
	}
	static void *realloc(void *, void *p, size_t size) {
		return realloc_(p, size);
	}
	static size_t usable(void *, void *p) {
		return usable_(p);
	}

protected:
	static inline void (*free_)(void *);
	static inline size_t (*usable_)(const void *);

private:
	static inline void *(*alloc_)(size_t);
	static inline void *(*realloc_)(void *, size_t);
};

/* A heap of mimalloc that is destroyed whole; mi_free frees its blocks. */
class mimalloc_heap_of_one : public mimalloc_heap_of_all {
public:
	static constexpr bool can_drop = true;

	static void prepare() {
		mimalloc_heap_of_all::prepare();
		const loaded_library &l = mimalloc_library();
		make_ = l.find<void *()>("mi_heap_new");
		end_ = l.find<void(void *)>("mi_heap_destroy");
		alloc_ = l.find<void *(void *, size_t)>("mi_heap_malloc");
		realloc_ = l.find<void *(void *, void *, size_t)>("mi_heap_realloc");
	}

	static void *make() {
		return make_();
	}
	static void end(void *heap) {
		end_(heap);
	}
	static void *drop(void *heap) {
		end_(heap);
		return make_();
	}

	static void *alloc(void *heap, size_t size) {
		return alloc_(heap, size);
	}
	static void *realloc(void *heap, void *p, size_t size) {
		return realloc_(heap, p, size);
	}

private:
	static inline void *(*make_)();
	static inline void (*end_)(void *);
	static inline void *(*alloc_)(void *, size_t);
	static inline void *(*realloc_)(void *, void *, size_t);
};

template <class H> heap_hooks loaded_hooks() {
	H::prepare();
	return hooks_of<H>();
}

heap_hooks hardened_hooks() {
	const loaded_library &module = driver_library("libtenure-bench-hardened.so");
	return module.find<make_hooks>("tenure_bench_heap_hardened")();
}

}

heap_client::heap_client(const heap_hooks &hooks, bool aged) : hooks_(hooks), heap_(hooks.make()) {
	if (!aged)
		return;
	hooks_.use(heap_);
	age(hooks_.malloc, [this](void *p, size_t) { hooks_.free(p); });
}

heap_client::~heap_client() {
	hooks_.end(heap_);
}

void require_same(std::string &first, const std::string &result, const std::string &subject) {
	if (first.empty())
		first = result;
	if (result == first && !result.empty())
		return;
	std::fprintf(stderr, "heap: the result on %s is another one:\n%.200s\nnot\n%.200s\n",
		subject.c_str(), result.c_str(), first.c_str());
	std::exit(1);
}

std::vector<subject> heap_subjects(const make_client &make) {
	static const std::pair<const char *, make_hooks *> all[] = {
		{"tenure-heap", hooks_of<tenure_heap>},
		{"tenure-heap-hardened", hardened_hooks},
		{"glibc", hooks_of<glibc_heap>},
		{"mimalloc", loaded_hooks<mimalloc_heap_of_all>},
		{"mimalloc-heap", loaded_hooks<mimalloc_heap_of_one>},
		{"jemalloc", loaded_hooks<jemalloc_heap>},
	};
	std::vector<subject> subjects;
	for (const auto &[name, hooks] : all)
		subjects.push_back(
			{name, [make, from = hooks, called = std::string(name)] { return make(from(), called); }});
	return subjects;
}

}
