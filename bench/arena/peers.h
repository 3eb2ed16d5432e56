/* bench/arena/peers.h: adapters of allocators for objects that die together.
 *
 * An adapter has alloc(size, i), where i counts the objects since the last reset, and reset(count).
 * Its constructor makes the allocator and its destructor ends it. An allocator that frees one by one
 * keeps the pointers in `live`, as its user would have to; an arena has no need to. Chunks are 64 KiB
 * and alignment is 16 wherever the allocator can be told so. */
#ifndef BENCH_ARENA_PEERS_H
#define BENCH_ARENA_PEERS_H

#include <apr_allocator.h>
#include <apr_general.h>
#include <apr_pools.h>
#include <foonathan/memory/memory_stack.hpp>
#include <llvm/Support/Allocator.h>
#include <obstack.h>
#include <talloc.h>

#include <cstdlib>
#include <memory_resource>

#include "harness/loaded_malloc.h"
#include "tenure/arena.h"

namespace bench {

constexpr size_t chunk_bytes = 65536;
constexpr size_t align = 16;
constexpr size_t most_objects = 200000;

/* Pointers to the objects to free one by one; written once before memory is measured. */
inline void *live[most_objects];

/* The arena is a member of the adapter, like the peers that are C++ objects. */
class tenure_arena {
public:
	static constexpr bool frees_each = false;

	tenure_arena() {
		if (!tn_arena_init(&arena_, nullptr))
			std::abort();
	}
	~tenure_arena() {
		tn_arena_deinit(&arena_);
	}
	tenure_arena(const tenure_arena &) = delete;
	tenure_arena &operator=(const tenure_arena &) = delete;

	void *alloc(size_t size, size_t) {
		return tn_arena_alloc(&arena_, size, align);
	}
	void reset(size_t) {
		tn_arena_reset(&arena_);
	}
	double committed_bytes() const {
		tn_stats stats;
		tn_arena_stats(&arena_, &stats);
		return static_cast<double>(stats.committed_bytes);
	}

private:
	tn_arena arena_;
};

/* The library allocates the arena and frees it. */
class tenure_lifetime {
public:
	static constexpr bool frees_each = false;

	tenure_lifetime() : arena_(tn_arena_create(nullptr)) {
	}
	~tenure_lifetime() {
		tn_arena_destroy(arena_);
	}
	tenure_lifetime(const tenure_lifetime &) = delete;
	tenure_lifetime &operator=(const tenure_lifetime &) = delete;

	void *alloc(size_t size, size_t) {
		return tn_arena_alloc(arena_, size, align);
	}
	void reset(size_t) {
	}

private:
	tn_arena *arena_;
};

/* Floor: a cursor and a limit in memory, one test, no growth. */
class floor_cursor {
public:
	static constexpr bool frees_each = false;

	void *alloc(size_t size, size_t) {
		char *p = cursor_;
		size = (size + align - 1) & ~(align - 1);
		if (__builtin_expect(size > static_cast<size_t>(limit_ - p), 0))
			std::abort();
		cursor_ = p + size;
		return p;
	}

protected:
	floor_cursor(char *start, size_t capacity)
		: cursor_(start), limit_(start + capacity), start_(start) {
	}

	char *cursor_, *limit_, *start_;
};

template <size_t capacity> class floor_arena : public floor_cursor {
public:
	floor_arena() : floor_cursor(static_cast<char *>(std::aligned_alloc(align, capacity)), capacity) {
	}
	~floor_arena() {
		std::free(start_);
	}
	floor_arena(const floor_arena &) = delete;
	floor_arena &operator=(const floor_arena &) = delete;

	void reset(size_t) {
		cursor_ = start_;
	}
};

/* Floor of a lifetime: the same in a chunk popped from a stack of warm ones and pushed back. */
class floor_lifetime : public floor_cursor {
public:
	floor_lifetime() : floor_cursor(*--top(), chunk_bytes) {
	}
	~floor_lifetime() {
		*top()++ = start_;
	}
	floor_lifetime(const floor_lifetime &) = delete;
	floor_lifetime &operator=(const floor_lifetime &) = delete;

	void reset(size_t) {
	}

private:
	static char **&top() {
		static char *chunks[] = {static_cast<char *>(std::malloc(chunk_bytes))};
		static char **next = chunks + 1;
		return next;
	}
};

class glibc_each {
public:
	static constexpr bool frees_each = true;

	void *alloc(size_t size, size_t i) {
		return live[i] = std::malloc(size);
	}
	void reset(size_t count) {
		for (size_t i = 0; i < count; i++)
			std::free(live[i]);
	}
};

template <const malloc_calls &(*load)()> class loaded_each {
public:
	static constexpr bool frees_each = true;

	void *alloc(size_t size, size_t i) {
		return live[i] = calls_.alloc(size);
	}
	void reset(size_t count) {
		for (size_t i = 0; i < count; i++)
			calls_.free(live[i]);
	}

private:
	malloc_calls calls_ = load();
};

/* A heap of mimalloc that is destroyed whole. */
class mimalloc_heap {
public:
	static constexpr bool frees_each = false;

	struct heap_calls {
		void *(*make)();
		void *(*alloc)(void *, size_t);
		void (*destroy)(void *);
	};
	static const heap_calls &calls() {
		static const heap_calls found = find_calls();
		return found;
	}

	mimalloc_heap() : heap_(calls().make()) {
	}
	~mimalloc_heap() {
		calls().destroy(heap_);
	}
	mimalloc_heap(const mimalloc_heap &) = delete;
	mimalloc_heap &operator=(const mimalloc_heap &) = delete;

	void *alloc(size_t size, size_t) {
		return calls().alloc(heap_, size);
	}
	void reset(size_t) {
	}

private:
	static heap_calls find_calls() {
		const loaded_library &l = mimalloc_library();
		return {l.find<void *()>("mi_heap_new"), l.find<void *(void *, size_t)>("mi_heap_malloc"),
			l.find<void(void *)>("mi_heap_destroy")};
	}

	void *heap_;
};

/* release() goes back to the caller's first buffer: the fastest configuration. */
class pmr_reused {
public:
	static constexpr bool frees_each = false;

	void *alloc(size_t size, size_t) {
		return resource_.allocate(size, align);
	}
	void reset(size_t) {
		resource_.release();
	}

private:
	alignas(align) char buffer_[chunk_bytes];
	std::pmr::monotonic_buffer_resource resource_{buffer_, sizeof buffer_};
};

class pmr_lifetime {
public:
	static constexpr bool frees_each = false;

	void *alloc(size_t size, size_t) {
		return resource_.allocate(size, align);
	}
	void reset(size_t) {
	}

private:
	std::pmr::monotonic_buffer_resource resource_{chunk_bytes};
};

class llvm_bump {
public:
	static constexpr bool frees_each = false;

	void *alloc(size_t size, size_t) {
		return bump_.Allocate(size, align);
	}
	void reset(size_t) {
		bump_.Reset();
	}

private:
	llvm::BumpPtrAllocatorImpl<llvm::MallocAllocator, chunk_bytes, chunk_bytes> bump_;
};

class foonathan_stack {
public:
	static constexpr bool frees_each = false;

	void *alloc(size_t size, size_t) {
		return stack_.allocate(size, align);
	}
	void reset(size_t) {
		stack_.unwind(start_);
	}

private:
	foonathan::memory::memory_stack<> stack_{chunk_bytes};
	foonathan::memory::memory_stack<>::marker start_ = stack_.top();
};

/* A child of a parent whose allocator has no lock. APR always aligns to 8. */
class apr {
public:
	static constexpr bool frees_each = false;

	apr() {
		apr_pool_create(&pool_, parent());
	}
	~apr() {
		apr_pool_destroy(pool_);
	}
	apr(const apr &) = delete;
	apr &operator=(const apr &) = delete;

	void *alloc(size_t size, size_t) {
		return apr_palloc(pool_, size);
	}
	void reset(size_t) {
		apr_pool_clear(pool_);
	}

	static apr_pool_t *parent() {
		static apr_pool_t *const made = make_parent();
		return made;
	}

private:
	static apr_pool_t *make_parent() {
		apr_pool_t *parent = nullptr;
		apr_allocator_t *allocator = nullptr;
		apr_initialize();
		apr_allocator_create(&allocator);
		apr_pool_create_ex(&parent, nullptr, nullptr, allocator);
		return parent;
	}

	apr_pool_t *pool_ = nullptr;
};

class talloc_pooled {
public:
	static constexpr bool frees_each = false;

	talloc_pooled() : pool_(talloc_pool(nullptr, chunk_bytes)) {
	}
	~talloc_pooled() {
		talloc_free(pool_);
	}
	talloc_pooled(const talloc_pooled &) = delete;
	talloc_pooled &operator=(const talloc_pooled &) = delete;

	void *alloc(size_t size, size_t) {
		return talloc_size(pool_, size);
	}
	void reset(size_t) {
		talloc_free_children(pool_);
	}

private:
	void *pool_;
};

#define obstack_chunk_alloc std::malloc
#define obstack_chunk_free std::free

class glibc_obstack {
public:
	static constexpr bool frees_each = false;

	glibc_obstack() {
		obstack_specify_allocation(
			&obstack_, chunk_bytes, align, obstack_chunk_alloc, obstack_chunk_free);
		start_ = obstack_alloc(&obstack_, 0);
	}
	~glibc_obstack() {
		obstack_free(&obstack_, nullptr);
	}
	glibc_obstack(const glibc_obstack &) = delete;
	glibc_obstack &operator=(const glibc_obstack &) = delete;

	void *alloc(size_t size, size_t) {
		return obstack_alloc(&obstack_, static_cast<int>(size));
	}
	void reset(size_t) {
		obstack_free(&obstack_, start_);
	}

private:
	obstack obstack_;
	void *start_;
};

}
#endif
