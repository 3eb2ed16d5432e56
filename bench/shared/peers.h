/* bench/shared/peers.h: adapters of allocators whose objects of one size any thread takes and any
 * thread frees (see shared/loops.h), and lists of them as subjects. */
#ifndef BENCH_SHARED_PEERS_H
#define BENCH_SHARED_PEERS_H

#include <glib.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "harness/crew.h"
#include "harness/loaded_malloc.h"
#include "shared/module.h"
#include "shared/tenure.h"

namespace bench {

/* The shared slab through the handle of the thread that makes the adapter. */
template <size_t size> class tenure_handle {
public:
	void *alloc() {
		return tn_shared_slab_local_alloc(local_);
	}
	void free(void *p) {
		tn_shared_slab_local_free(local_, p);
	}

private:
	tenure_shared<size> all_;
	tn_local *local_ = all_.local();
};

/* Defaults for a peer without a step of its own or without the figure. */
class plain_peer {
public:
	void enter(unsigned) {
	}
	void leave(unsigned) {
	}
	void trim() {
	}
	size_t committed_bytes() const {
		return 0;
	}
};

template <size_t size> class glibc_shared : public plain_peer {
public:
	void *alloc() {
		return std::malloc(size);
	}
	void free(void *p) {
		std::free(p);
	}
	void trim() {
		malloc_trim(0);
	}
};

template <size_t size, const malloc_calls &(*load)()> class loaded_shared : public plain_peer {
public:
	void *alloc() {
		return calls_.alloc(size);
	}
	void free(void *p) {
		calls_.free(p);
	}
	void trim() {
		if (calls_.trim != nullptr)
			calls_.trim();
	}

private:
	malloc_calls calls_ = load();
};

template <size_t size> class gslice_shared : public plain_peer {
public:
	void *alloc() {
		return g_slice_alloc(size);
	}
	void free(void *p) {
		g_slice_free1(size, p);
	}
};

/* The homemade pool: a list through the free objects behind a spinlock. */
template <size_t size> class spinlock_shared : public plain_peer {
public:
	spinlock_shared() = default;
	~spinlock_shared() {
		for (char *chunk : chunks_)
			std::free(chunk);
	}
	spinlock_shared(const spinlock_shared &) = delete;
	spinlock_shared &operator=(const spinlock_shared &) = delete;

	void *alloc() {
		lock();
		if (__builtin_expect(first_ == nullptr, 0))
			grow();
		void *p = first_;
		first_ = *static_cast<void **>(p);
		unlock();
		return p;
	}
	void free(void *p) {
		lock();
		*static_cast<void **>(p) = first_;
		first_ = p;
		unlock();
	}

private:
	static constexpr size_t chunk_bytes = 65536;

	void lock() {
		for (patience p; locked_.exchange(true, std::memory_order_acquire);)
			while (locked_.load(std::memory_order_relaxed))
				p.wait();
	}
	void unlock() {
		locked_.store(false, std::memory_order_release);
	}
	__attribute__((noinline)) void grow() {
		char *chunk = static_cast<char *>(std::aligned_alloc(128, chunk_bytes));
		if (chunk == nullptr)
			std::abort();
		chunks_.push_back(chunk);
		for (size_t at = chunk_bytes / size * size; at != 0; at -= size) {
			void *p = chunk + at - size;
			*static_cast<void **>(p) = first_;
			first_ = p;
		}
	}

	alignas(128) std::atomic<bool> locked_{false};
	void *first_ = nullptr;
	std::vector<char *> chunks_;
};

/* Memory on cache lines of its own. */
class floor_memory {
public:
	explicit floor_memory(size_t bytes)
		: start_(static_cast<char *>(std::aligned_alloc(128, (bytes + 127) / 128 * 128))),
		  bytes_(bytes) {
		if (start_ == nullptr)
			std::abort();
		std::fill_n(start_.get(), bytes, '\0');
	}
	char *begin() const {
		return start_.get();
	}
	char *end() const {
		return start_.get() + bytes_;
	}

private:
	struct release {
		void operator()(char *p) const {
			std::free(p);
		}
	};
	std::unique_ptr<char, release> start_;
	size_t bytes_;
};

/* State of the two floors, for the running member. */
struct floor_stack {
	void **top, **bottom, **limit;
};
struct floor_cycle {
	char *next, *first, *end;
};
inline __thread floor_stack own_stack;
inline __thread floor_cycle own_cycle;

constexpr unsigned floor_members = 8;

/* Floor for objects that stay in their thread: for each thread an array of pointers to free slots,
 * with a test of both ends. Objects cannot be passed on. */
template <size_t size> class floor_shared : public plain_peer {
public:
	floor_shared() {
		for (unsigned member = 0; member < floor_members; member++) {
			memory_.emplace_back(objects * size);
			free_.emplace_back(objects);
			void **free = free_[member].data();
			for (size_t i = 0; i < objects; i++)
				free[i] = memory_[member].end() - (i + 1) * size;
			stacks_.push_back({free + objects, free, free + objects});
		}
	}

	void enter(unsigned member) {
		own_stack = stacks_.at(member);
	}
	void leave(unsigned member) {
		stacks_[member] = own_stack;
	}
	void *alloc() {
		void **top = own_stack.top;
		if (__builtin_expect(top == own_stack.bottom, 0))
			std::abort();
		own_stack.top = top - 1;
		return top[-1];
	}
	void free(void *p) {
		void **top = own_stack.top;
		if (__builtin_expect(top == own_stack.limit, 0))
			std::abort();
		*top = p;
		own_stack.top = top + 1;
	}

private:
	static constexpr size_t objects = 8192;
	std::vector<floor_memory> memory_;
	std::vector<std::vector<void *>> free_;
	std::vector<floor_stack> stacks_;
};

/* Floor for objects that are passed on: the producer walks round an array longer than the number of
 * objects on their way, so that none has to come back. */
template <size_t size> class floor_passing : public plain_peer {
public:
	floor_passing() {
		for (unsigned member = 0; member < floor_members; member++)
			memory_.emplace_back(objects * size);
	}

	void enter(unsigned member) {
		const floor_memory &m = memory_.at(member);
		own_cycle = {m.begin(), m.begin(), m.end()};
	}
	void *alloc() {
		char *p = own_cycle.next;
		own_cycle.next = p + size == own_cycle.end ? own_cycle.first : p + size;
		return p;
	}
	void free(void *) {
	}

private:
	static constexpr size_t objects = 6144;
	std::vector<floor_memory> memory_;
};

/* A workload's parameters for its subjects. */
struct setting {
	unsigned threads;
	size_t count;
};

inline workload make_workload(
	const char *name, setting s, double ops, double round_ns, std::vector<subject> subjects) {
	workload w;
	w.name = name;
	w.threads = s.threads;
	w.all_cpus = s.threads > 1;
	w.ops = ops;
	w.round_ns = round_ns;
	w.subjects = std::move(subjects);
	return w;
}

template <template <class> class C, class A> subject shared_subject(const char *name, setting s) {
	return {name, [s] { return std::make_unique<C<A>>(crew_of(s.threads), s.count); }};
}

/* The shared slab in a module opened at run time. */
inline subject module_subject(
	const char *name, const char *file, const char *symbol, shared_shape shape, setting s) {
	return {name, [=] {
				auto make = driver_library(file).find<make_in_module>(symbol);
				return std::unique_ptr<contestant>(make(crew_of(s.threads), shape, s.count));
			}};
}

inline subject hardened_subject(shared_shape shape, setting s) {
	return module_subject("tenure-shared-hardened", "libtenure-bench-hardened.so",
		"tenure_bench_shared_hardened", shape, s);
}

/* The shared slab and the whole mallocs. */
template <template <class> class C, size_t size> std::vector<subject> mallocs(setting s) {
	std::vector<subject> all = {
		shared_subject<C, tenure_shared<size>>("tenure-shared", s),
		shared_subject<C, glibc_shared<size>>("glibc", s),
		shared_subject<C, loaded_shared<size, mimalloc_calls>>("mimalloc", s),
		shared_subject<C, loaded_shared<size, jemalloc_calls>>("jemalloc", s),
		shared_subject<C, loaded_shared<size, tcmalloc_calls>>("tcmalloc", s),
		shared_subject<C, loaded_shared<size, tbb_calls>>("tbb", s),
	};
	if (has_cargo_peers) {
		all.push_back(shared_subject<C, loaded_shared<size, snmalloc_calls>>("snmalloc", s));
		all.push_back(shared_subject<C, loaded_shared<size, mimalloc3_calls>>("mimalloc3", s));
	}
	return all;
}

/* The same, and the allocators of one size. */
template <template <class> class C, size_t size> std::vector<subject> all_subjects(setting s) {
	std::vector<subject> all = mallocs<C, size>(s);
	all.push_back(shared_subject<C, gslice_shared<size>>("gslice", s));
	all.push_back(shared_subject<C, spinlock_shared<size>>("spinlock", s));
	return all;
}

template <template <class> class C, template <size_t> class Floor, size_t size>
std::vector<subject> all_and_floor(setting s) {
	std::vector<subject> all = all_subjects<C, size>(s);
	all.push_back(shared_subject<C, Floor<size>>("floor", s));
	return all;
}

}
#endif
