/* bench/scope/peers.h: adapters of lifetimes below a parent.
 *
 * begin() makes a lifetime below the adapter's parent; alloc(size, i) is as in arena/peers.h;
 * defer() registers `deferred_call` for the end of the lifetime; end(count) ends it after `count`
 * objects. */
#ifndef BENCH_SCOPE_PEERS_H
#define BENCH_SCOPE_PEERS_H

#include "arena/peers.h"
#include "tenure/scope.h"

namespace bench {

constexpr size_t most_deferred = 3;

inline size_t deferred_calls;

inline void deferred_call(void *counter) {
	++*static_cast<size_t *>(counter);
}

/* The list of calls that a program without deferred calls writes for itself. */
class call_list {
public:
	void defer() {
		calls_[count_++] = {deferred_call, &deferred_calls};
	}
	void run() {
		while (count_ > 0) {
			call c = calls_[--count_];
			escape(c.fn);
			c.fn(c.arg);
		}
	}

private:
	struct call {
		void (*fn)(void *);
		void *arg;
	};
	call calls_[most_deferred];
	size_t count_ = 0;
};

enum class root_kind { plain, shared, limited };

template <root_kind kind> class tenure_scope {
public:
	tenure_scope() {
		tn_scope_options options{};
		options.shared = kind == root_kind::shared;
		root_ = tn_scope_create(nullptr, "bench", &options);
		tn_scope_limits limits{};
		limits.hard_bytes = size_t{1} << 30;
		if (root_ == nullptr || (kind == root_kind::limited && !tn_scope_limit(root_, &limits)))
			std::abort();
	}
	~tenure_scope() {
		tn_scope_destroy(root_);
	}
	tenure_scope(const tenure_scope &) = delete;
	tenure_scope &operator=(const tenure_scope &) = delete;

	void begin() {
		scope_ = tn_scope_create(root_, "request", nullptr);
	}
	void *alloc(size_t size, size_t) {
		return tn_scope_alloc(scope_, size, align);
	}
	void defer() {
		tn_scope_defer(scope_, deferred_call, &deferred_calls);
	}
	void end(size_t) {
		tn_scope_destroy(scope_);
	}

private:
	tn_scope *root_, *scope_ = nullptr;
};

/* Floor of a request: a cursor in a chunk from a stack of warm ones, the calls in an array. */
class floor_scope {
public:
	void begin() {
		new (arena_) floor_lifetime;
	}
	void *alloc(size_t size, size_t i) {
		return arena().alloc(size, i);
	}
	void defer() {
		calls_.defer();
	}
	void end(size_t) {
		calls_.run();
		arena().~floor_lifetime();
	}

private:
	floor_lifetime &arena() {
		return *std::launder(reinterpret_cast<floor_lifetime *>(arena_));
	}

	alignas(floor_lifetime) unsigned char arena_[sizeof(floor_lifetime)];
	call_list calls_;
};

/* Frees every object; the allocator has no lifetimes. */
template <class Each> class scope_of_each {
public:
	void begin() {
	}
	void *alloc(size_t size, size_t i) {
		return each_.alloc(size, i);
	}
	void defer() {
		calls_.defer();
	}
	void end(size_t count) {
		calls_.run();
		each_.reset(count);
	}

private:
	Each each_;
	call_list calls_;
};

/* mimalloc's heaps have no parent, and no calls at their end. */
class mimalloc_scope {
public:
	void begin() {
		heap_ = mimalloc_.make();
	}
	void *alloc(size_t size, size_t) {
		return mimalloc_.alloc(heap_, size);
	}
	void defer() {
		calls_.defer();
	}
	void end(size_t) {
		calls_.run();
		mimalloc_.destroy(heap_);
	}

private:
	mimalloc_heap::heap_calls mimalloc_ = mimalloc_heap::calls();
	void *heap_ = nullptr;
	call_list calls_;
};

/* locked: below APR's global pool, whose allocator has a lock; otherwise below a parent without one. */
template <bool locked> class apr_scope {
public:
	apr_scope() {
		apr_initialize();
		root_ = locked ? nullptr : apr::parent();
	}

	void begin() {
		apr_pool_create(&pool_, root_);
	}
	void *alloc(size_t size, size_t) {
		return apr_palloc(pool_, size);
	}
	void defer() {
		apr_pool_cleanup_register(pool_, &deferred_calls, cleanup, apr_pool_cleanup_null);
	}
	void end(size_t) {
		apr_pool_destroy(pool_);
	}

private:
	static apr_status_t cleanup(void *counter) {
		deferred_call(counter);
		return APR_SUCCESS;
	}

	apr_pool_t *root_, *pool_ = nullptr;
};

/* talloc has destructors of objects, not of lifetimes, so the calls are destructors of the first three
 * objects. */
template <bool pooled> class talloc_scope {
public:
	talloc_scope() : root_(talloc_new(nullptr)) {
	}
	~talloc_scope() {
		talloc_free(root_);
	}
	talloc_scope(const talloc_scope &) = delete;
	talloc_scope &operator=(const talloc_scope &) = delete;

	void begin() {
		scope_ = pooled ? talloc_pool(root_, chunk_bytes) : talloc_new(root_);
		deferred_ = 0;
	}
	void *alloc(size_t size, size_t i) {
		return live[i] = talloc_size(scope_, size);
	}
	void defer() {
		talloc_set_destructor(static_cast<char *>(live[deferred_++]), destructor);
	}
	void end(size_t) {
		talloc_free(scope_);
	}

private:
	static int destructor(char *) {
		deferred_call(&deferred_calls);
		return 0;
	}

	void *root_, *scope_ = nullptr;
	size_t deferred_ = 0;
};

}
#endif
