/* Forks of a process whose other threads are inside the shared slab and the pool: nothing hangs, the
 * child may use every allocator, and the parent is not affected. The other threads never call
 * malloc: AddressSanitizer's malloc cannot stand a fork beside it. */
#include "crowd.h"

#include <algorithm>
#include <chrono>

namespace {

constexpr size_t size = 64;
constexpr size_t churners = 3;
constexpr size_t kept_most = 100; /* by each of them */
constexpr uint64_t built_mark = 0xb0117b0117b01170u;

/* An object of the pool is whole from the end of its init to the start of its fini. */
struct built_object {
	uint64_t mark;
	built_object *self;
	uint64_t users;
};

std::atomic<size_t> broken{0};

bool is_whole(const built_object *o) {
	return o->mark == built_mark && o->self == o;
}

bool build(void *p, void *) {
	auto *o = static_cast<built_object *>(p);
	*o = {0, nullptr, 0};
	for (volatile int i = 0; i < 200; i = i + 1)
		continue;
	*o = {built_mark, o, 0};
	return true;
}

void take_apart(void *p, void *) {
	auto *o = static_cast<built_object *>(p);
	broken += !is_whole(o);
	o->mark = 0;
	for (volatile int i = 0; i < 200; i = i + 1)
		continue;
}

struct both {
	both() {
		tn_shared_slab_options slab_options = {};
		/* Debug gives every slot pages of its own where there is no limit; forking these takes long. */
		slab_options.limit_bytes = 64 * mib;
		slab = make_shared_slab(size, 0, slab_options);
		tn_pool_options pool_options = {};
		pool_options.init = build;
		pool_options.fini = take_apart;
		pool_options.max_idle_objects = 40;
		pool = make_pool(sizeof(built_object), 0, pool_options);
	}
	shared_slab_owner slab;
	pool_owner pool;
};

/* An array of objects without malloc. */
struct parcels {
	enum { ROOM = 300 };
	parcel at[ROOM];
	size_t count = 0;

	void add(void *p, uint64_t stamp) {
		put_stamp(p, size, stamp);
		at[count++] = {p, stamp};
	}
	parcel check_last() {
		const parcel &what = at[--count];
		broken += !has_stamp(what.p, size, what.stamp);
		return what;
	}
	void free_all(tn_shared_slab *s) {
		while (count > 0)
			tn_shared_slab_free(s, check_last().p);
	}
};

void use_pool(tn_pool *p, size_t count) {
	built_object *out[100];
	for (size_t i = 0; i < count; i++) {
		out[i] = static_cast<built_object *>(tn_pool_get(p));
		broken += out[i] == nullptr || !is_whole(out[i]) || out[i]->users++ != 0;
	}
	for (size_t i = 0; i < count; i++) {
		broken += --out[i]->users != 0;
		tn_pool_put(p, out[i]);
	}
}

void churn(const both &b, uint64_t seed, const std::atomic<bool> &stop) {
	tn_shared_slab *s = b.slab.get();
	dice d(seed);
	tn_local *handle = tn_shared_slab_local(s);
	parcels own;
	for (uint64_t stamp = seed << 40; !stop; stamp++) {
		if (own.count < kept_most && d.one_in(2))
			own.add(d.one_in(2) ? tn_shared_slab_alloc(s) : tn_shared_slab_local_alloc(handle), stamp);
		else if (d.one_in(20) || own.count == kept_most)
			own.free_all(s);
		else if (own.count > 0)
			tn_shared_slab_local_free(handle, own.check_last().p);
		if (d.one_in(4))
			use_pool(b.pool.get(), d.below(20));
		if (d.one_in(200))
			tn_shared_slab_flush(s);
		if (d.one_in(2000))
			tn_shared_slab_trim(s);
		if (d.one_in(2000))
			tn_pool_trim(b.pool.get());
	}
	own.free_all(s);
}

void use_slab_in_child(tn_shared_slab *s, tn_local *handle, uint64_t stamp) {
	parcels own;
	for (uint64_t i = 0; i < parcels::ROOM; i++)
		own.add(i % 2 == 0 ? tn_shared_slab_local_alloc(handle) : tn_shared_slab_alloc(s), stamp + i);
	own.free_all(s);
	tn_shared_slab_flush(s);
}

/* Everything that a child may do with its parent's allocators. Returns 0, or a number for the check
 * that failed. */
int use_in_child(both &b, tn_local *handle, parcels kept) {
	tn_shared_slab *s = b.slab.get();
	size_t in_use = tn_shared_slab_in_use(s);
	size_t count = kept.count, most = count + churners * (kept_most + 3 * TN_MAGAZINE_SLOTS_MAX);
	if (in_use < count || in_use > most)
		return 2;
	if (!tn_shared_slab_verify(s))
		return 3;
	use_slab_in_child(s, handle, 1);
	if (tn_shared_slab_in_use(s) != in_use || handle != tn_shared_slab_local(s))
		return 4;
	kept.free_all(s);
	if (tn_shared_slab_in_use(s) != in_use - count)
		return 5;
	tn_shared_slab_trim(s);
	use_pool(b.pool.get(), 30);
	tn_pool_flush(b.pool.get());
	/* ThreadSanitizer allows no threads in the child of a process with many threads. */
	if (!thread_sanitized)
		in_crowd(2, [&](size_t i) {
			use_slab_in_child(s, tn_shared_slab_local(s), i << 20);
			use_pool(b.pool.get(), 30);
		});
	if (!tn_shared_slab_verify(s) || tn_shared_slab_in_use(s) != in_use - count)
		return 6;
	tn_pool_trim(b.pool.get());
	/* Debug lists the objects of the churning threads. */
	if (!debug_mode) {
		b.slab.reset();
		b.pool.reset();
	}
	both others;
	use_slab_in_child(others.slab.get(), tn_shared_slab_local(others.slab.get()), 1);
	use_pool(others.pool.get(), 100);
	return broken > 0 ? 7 : 0;
}

TEST(stress_fork, while_three_churn) {
	both b;
	std::atomic<bool> stop{false};
	std::atomic<size_t> begun{0};
	std::vector<std::thread> threads;
	for (uint64_t t = 0; t < churners; t++)
		threads.emplace_back([&, t] {
			begun++;
			churn(b, program_seed() + t, stop);
		});
	while (begun < churners)
		std::this_thread::yield();
	parcels kept;
	for (uint64_t i = 0; i < 50; i++)
		kept.add(tn_shared_slab_alloc(b.slab.get()), i << 32);
	auto fork_once = [&] {
		tn_local *handle = tn_shared_slab_local(b.slab.get());
		tn_shared_slab_local_free(handle, tn_shared_slab_local_alloc(handle));
		int status = in_child([&] { return use_in_child(b, handle, kept); }, 20);
		EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
	};
	for (size_t i = 0; i < times(debug_mode ? 300 : 1000, 40) && !HasFailure(); i++)
		if (i % 4 == 0)
			in_thread(fork_once);
		else
			fork_once();
	stop = true;
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(tn_shared_slab_in_use(b.slab.get()), kept.count);
	EXPECT_EQ(stats_of(b.pool.get()).live_count, 0u);
	EXPECT_TRUE(tn_shared_slab_verify(b.slab.get()));
	kept.free_all(b.slab.get());
	EXPECT_EQ(tn_shared_slab_in_use(b.slab.get()), 0u);
	b.pool.reset();
	EXPECT_EQ(broken, 0u);
}

/* Threads start and end at the moment of the fork. */
TEST(stress_fork, while_threads_come_and_go) {
	if (sanitized && !thread_sanitized)
		GTEST_SKIP() << "threads that are born use malloc";
	both b;
	std::atomic<bool> stop{false};
	std::thread births([&] {
		while (!stop)
			in_thread([&] {
				parcels own;
				for (uint64_t i = 0; i < 40; i++)
					own.add(tn_shared_slab_alloc(b.slab.get()), i);
				own.free_all(b.slab.get());
				use_pool(b.pool.get(), 10);
			});
	});
	for (size_t i = 0; i < times(debug_mode ? 100 : 500, debug_mode ? 20 : 50) && !HasFailure(); i++) {
		tn_local *handle = tn_shared_slab_local(b.slab.get());
		int status = in_child([&] { return use_in_child(b, handle, {}); }, 20);
		EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
	}
	stop = true;
	births.join();
	EXPECT_EQ(tn_shared_slab_in_use(b.slab.get()), 0u);
	EXPECT_EQ(stats_of(b.pool.get()).live_count, 0u);
	b.pool.reset();
	EXPECT_EQ(broken, 0u);
}

size_t alloc_all(tn_shared_slab *s) {
	size_t count = 0;
	while (tn_shared_slab_alloc(s) != nullptr)
		count++;
	return count;
}

/* Threads at rest hold slots: all of these are the child's after the fork. */
TEST(stress_fork, what_resting_threads_had_is_the_childs) {
	constexpr size_t threads = 3;
	tn_shared_slab_options o = {};
	o.limit_bytes = 512 * kib;
	auto count_all = [&] { return static_cast<int>(alloc_all(make_shared_slab(5000, 0, o).get())); };
	int same = in_child(count_all, 20);
	shared_slab_owner s = make_shared_slab(5000, 0, o);
	rendezvous rest(threads + 1);
	std::thread crowd([&] {
		in_crowd(threads, [&](size_t) {
			void *slots[20];
			EXPECT_TRUE(tn_shared_slab_alloc_batch(s.get(), slots, 20));
			tn_shared_slab_free_batch(s.get(), slots + 1, 19);
			rest.meet();
			rest.meet();
			tn_shared_slab_free(s.get(), slots[0]);
		});
	});
	rest.meet();
	int status = in_child(
		[&] {
			if (tn_shared_slab_in_use(s.get()) != threads || !tn_shared_slab_verify(s.get()))
				return 2;
			tn_shared_slab_trim(s.get());
			size_t count = alloc_all(s.get());
			if (tn_shared_slab_in_use(s.get()) != count + threads || !tn_shared_slab_verify(s.get()))
				return 3;
			return exited_with(same, static_cast<int>(count + threads)) ? 0 : 4;
		},
		20);
	EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
	rest.meet();
	crowd.join();
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* The fork meets a thread in the middle of a callback of a pool: the child leaves that object alone. */
TEST(stress_fork, inside_init_and_fini) {
	for (bool in_fini : {false, true}) {
		rendezvous inside(2);
		tn_pool_options o = {};
		std::pair<rendezvous *, bool> ctx = {&inside, in_fini};
		o.ctx = &ctx;
		o.max_idle_objects = TN_NONE;
		static thread_local bool stops = false;
		o.init = [](void *p, void *c) {
			auto *to = static_cast<std::pair<rendezvous *, bool> *>(c);
			std::memset(p, 0x11, size);
			if (stops && !to->second) {
				to->first->meet();
				to->first->meet();
			}
			std::memset(p, 0x77, size);
			return true;
		};
		o.fini = [](void *p, void *c) {
			auto *to = static_cast<std::pair<rendezvous *, bool> *>(c);
			broken += !all_bytes(p, size, 0x77);
			std::memset(p, 0x11, size);
			if (stops && to->second) {
				to->first->meet();
				to->first->meet();
			}
		};
		pool_owner pool = make_pool(size, 0, o);
		std::thread user([&] {
			stops = true;
			tn_pool_put(pool.get(), tn_pool_get(pool.get()));
		});
		inside.meet();
		int status = in_child(
			[&] {
				tn_pool_put(pool.get(), tn_pool_get(pool.get()));
				pool.reset();
				return broken > 0 ? 1 : 0;
			},
			20);
		EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status << ", fini " << in_fini;
		inside.meet();
		user.join();
	}
	EXPECT_EQ(broken, 0u);
}

/* Four slabs that grow, each by two threads that build slots slowly: their locks are nearly always
 * held. */
struct growing {
	growing() {
		tn_shared_slab_options o = {};
		o.init = [](void *p, void *) {
			std::memset(p, 0x77, size);
			auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
			while (std::chrono::steady_clock::now() < until)
				continue;
			return true;
		};
		for (shared_slab_owner &s : slabs)
			s = make_shared_slab(size, 0, o);
	}
	void grow(size_t which, const std::atomic<bool> &stop) {
		while (!stop)
			broken += tn_shared_slab_alloc(slabs[which % 4].get()) == nullptr;
	}
	shared_slab_owner slabs[4];
};

TEST(stress_fork, takes_bounded_time_beside_callbacks) {
	using std::chrono::steady_clock;
	growing g;
	std::atomic<bool> stop{false};
	std::vector<std::thread> threads;
	for (size_t t = 0; t < 8; t++)
		threads.emplace_back([&, t] { g.grow(t, stop); });
	std::vector<double> ms;
	const auto begin = steady_clock::now();
	/* A machine under load takes its time; a fork that waits for chance takes ten seconds and more. */
	const size_t forks = times(200, 20);
	while (ms.size() < forks && steady_clock::now() - begin < std::chrono::seconds(60)) {
		const auto before = steady_clock::now();
		pid_t child = fork();
		if (child == 0)
			_exit(tn_shared_slab_alloc(g.slabs[0].get()) == nullptr);
		ms.push_back(std::chrono::duration<double, std::milli>(steady_clock::now() - before).count());
		EXPECT_TRUE(exited_with(wait_for(child, 20), 0));
	}
	stop = true;
	for (auto &thread : threads)
		thread.join();
	EXPECT_EQ(ms.size(), forks);
	EXPECT_LT(*std::max_element(ms.begin(), ms.end()), 2000) << "milliseconds";
	std::sort(ms.begin(), ms.end());
	RecordProperty("median_ms", std::to_string(ms[ms.size() / 2]));
	RecordProperty("most_ms", std::to_string(ms.back()));

	EXPECT_EQ(broken, 0u);
}

} /* namespace */
