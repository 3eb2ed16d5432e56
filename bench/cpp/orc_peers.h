/* bench/cpp/orc_peers.h: base classes whose operator new and operator delete serve the class that
 * derives from them.
 *
 * prepare() is called once before the first object, start_again() when all objects are gone.
 * Neither is measured. */
#ifndef BENCH_CPP_ORC_PEERS_H
#define BENCH_CPP_ORC_PEERS_H

#include <boost/pool/singleton_pool.hpp>

#include <cstdlib>
#include <mutex>
#include <new>

#include "harness/loaded_malloc.h"

namespace bench {

constexpr size_t most_orcs = 1000000;

/* Has no operators: used alone, it leaves the class with the program's new and delete. */
class plain_source {
public:
	static void prepare() {
	}
	static void start_again() {
	}
};

/* The arena of textbooks: memory for a number of objects, a cursor, a lock. Never reuses memory. */
template <class T> class book_arena {
public:
	book_arena() : start_(static_cast<T *>(std::malloc(most_orcs * sizeof(T)))), cursor_(start_) {
		if (start_ == nullptr)
			throw std::bad_alloc();
	}
	~book_arena() {
		std::free(start_);
	}
	book_arena(const book_arena &) = delete;
	book_arena &operator=(const book_arena &) = delete;

	void *allocate_one() {
		std::lock_guard<std::mutex> hold(lock_);
		if (cursor_ == start_ + most_orcs)
			throw std::bad_alloc();
		return cursor_++;
	}
	void deallocate_one(void *) {
	}
	void start_again() {
		cursor_ = start_;
	}

private:
	std::mutex lock_;
	T *start_, *cursor_;
};

/* Made at the first use; every use tests whether it is made. */
template <class T> class from_book_meyers : public plain_source {
public:
	static void *operator new(size_t) {
		return arena().allocate_one();
	}
	static void operator delete(void *p) {
		arena().deallocate_one(p);
	}
	static void start_again() {
		arena().start_again();
	}

private:
	static book_arena<T> &arena() {
		static book_arena<T> one;
		return one;
	}
};

/* Made before main. */
template <class T> class from_book_global : public plain_source {
public:
	static void *operator new(size_t) {
		return arena.allocate_one();
	}
	static void operator delete(void *p) {
		arena.deallocate_one(p);
	}
	static void start_again() {
		arena.start_again();
	}

private:
	inline static book_arena<T> arena;
};

/* Floor: a cursor and its end in memory, and no delete. */
template <class T> class from_floor {
public:
	static void *operator new(size_t size) {
		char *p = cursor;
		if (__builtin_expect(p == end, 0))
			std::abort();
		cursor = p + size;
		return p;
	}
	static void operator delete(void *) {
	}
	static void prepare() {
		start = static_cast<char *>(std::malloc(most_orcs * sizeof(T)));
		if (start == nullptr)
			std::abort();
		end = start + most_orcs * sizeof(T);
		start_again();
	}
	static void start_again() {
		cursor = start;
	}

private:
	inline static char *start, *cursor, *end;
};

template <const malloc_calls &(*load)()> class from_loaded {
public:
	static void *operator new(size_t size) {
		void *p = calls.alloc(size);
		if (__builtin_expect(p == nullptr, 0))
			throw std::bad_alloc();
		return p;
	}
	static void operator delete(void *p) {
		calls.free(p);
	}
	static void prepare() {
		calls = load();
	}
	static void start_again() {
	}

private:
	inline static malloc_calls calls;
};

/* Boost's pool for one type, without a lock. */
template <class T>
using boost_pool_of = boost::singleton_pool<T, sizeof(T), boost::default_user_allocator_malloc_free,
	boost::details::pool::null_mutex>;

template <class T> class from_boost : public plain_source {
public:
	static void *operator new(size_t) {
		void *p = (boost_pool_of<T>::malloc)();
		if (__builtin_expect(p == nullptr, 0))
			throw std::bad_alloc();
		return p;
	}
	static void operator delete(void *p) {
		(boost_pool_of<T>::free)(p);
	}
};

}
#endif
