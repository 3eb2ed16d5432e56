/* bench/shared/pool.cpp: the family `shared`: an object with a buffer of 4 KiB, from a pool or built
 * each time. */
#include <cstdlib>
#include <cstring>

#include "harness/loaded_malloc.h"
#include "shared/peers.h"
#include "tenure/pool.h"

namespace bench {
namespace {

constexpr size_t object_bytes = 64, buffer_bytes = 4096;

struct message {
	size_t length;
	char *buffer;
};

/* The buffer of a pooled object keeps its old bytes; length 0 says that it is empty. So only get, use
 * and put are measured. */
bool build(void *object, void *) {
	message *m = static_cast<message *>(object);
	m->length = 0;
	m->buffer = static_cast<char *>(std::calloc(1, buffer_bytes));
	return m->buffer != nullptr;
}

void clear(void *object, void *) {
	static_cast<message *>(object)->length = 0;
}

void take_apart(void *object, void *) {
	std::free(static_cast<message *>(object)->buffer);
}

class pooled {
public:
	pooled() {
		tn_pool_options o{};
		o.init = build;
		o.reset = clear;
		o.fini = take_apart;
		pool_ = tn_pool_create(object_bytes, 0, &o);
		if (pool_ == nullptr)
			std::abort();
	}
	~pooled() {
		tn_pool_destroy(pool_);
	}
	pooled(const pooled &) = delete;
	pooled &operator=(const pooled &) = delete;

	message *get() {
		return static_cast<message *>(tn_pool_get(pool_));
	}
	void put(message *m) {
		tn_pool_put(pool_, m);
	}

private:
	tn_pool *pool_;
};

/* Allocates the object and its buffer, sets the buffer to zero, and frees both. */
template <const malloc_calls &(*load)()> class built {
public:
	message *get() {
		message *m = static_cast<message *>(calls_.alloc(object_bytes));
		m->length = 0;
		m->buffer = static_cast<char *>(calls_.alloc(buffer_bytes));
		std::memset(m->buffer, 0, buffer_bytes);
		return m;
	}
	void put(message *m) {
		calls_.free(m->buffer);
		calls_.free(m);
	}

private:
	malloc_calls calls_ = load();
};

/* Floor: an array of pointers to built objects, with a test of both ends. */
class floor_pool {
public:
	floor_pool() {
		for (size_t i = 0; i < count; i++) {
			messages_[i] = {0, &buffers_[i * buffer_bytes]};
			free_[i] = &messages_[i];
		}
	}
	message *get() {
		if (__builtin_expect(top_ == 0, 0))
			std::abort();
		return free_[--top_];
	}
	void put(message *m) {
		m->length = 0;
		if (__builtin_expect(top_ == count, 0))
			std::abort();
		free_[top_++] = m;
	}

private:
	static constexpr size_t count = 64;
	std::vector<char> buffers_ = std::vector<char>(count * buffer_bytes);
	message messages_[count];
	message *free_[count];
	size_t top_ = count;
};

constexpr size_t batch = 32;

/* Gets, uses and puts one object, 32 times; every 32 are timed by themselves. */
template <class A> class pool_pairs : public timed_contestant {
private:
	uint64_t time_one() override {
		uint64_t from = ticks();
		for (size_t i = 0; i < batch; i++) {
			message *m = a_.get();
			escape(m);
			std::memcpy(m->buffer, "a few bytes", 12);
			m->length = 12;
			barrier();
			a_.put(m);
			barrier();
		}
		return ticks() - from;
	}

	A a_;
};

std::vector<workload> workloads() {
	workload w;
	w.name = "pool-4k";
	w.ops = batch;
	w.total_repeats = 50000;
	w.unmeasured = 16;
	w.subjects = {
		make_subject<pool_pairs<pooled>>("tenure-pool"),
		make_subject<pool_pairs<floor_pool>>("floor"),
		make_subject<pool_pairs<built<glibc_calls>>>("glibc"),
		make_subject<pool_pairs<built<mimalloc_calls>>>("mimalloc"),
		make_subject<pool_pairs<built<jemalloc_calls>>>("jemalloc"),
		make_subject<pool_pairs<built<tcmalloc_calls>>>("tcmalloc"),
		make_subject<pool_pairs<built<tbb_calls>>>("tbb"),
	};
	if (has_cargo_peers) {
		w.subjects.push_back(make_subject<pool_pairs<built<snmalloc_calls>>>("snmalloc"));
		w.subjects.push_back(make_subject<pool_pairs<built<mimalloc3_calls>>>("mimalloc3"));
	}
	return {w};
}

const registration pool("shared", workloads);

}
}
