/* The shared slab and its threads: they end, use it late, outlive it, flush and trim for each other. */
#include "crowd.h"

#include <algorithm>
#include <pthread.h>

namespace test_shared_threads {
namespace {

/* ---- before anything else ---- */

/* Made before Tenure makes its own keys, and after: a destructor may run before or after Tenure's. */
pthread_key_t first_key, last_key;
bool early_use_worked = false;

void late_destructor(void *value);

__attribute__((constructor(101))) void use_early() {
	pthread_key_create(&first_key, late_destructor);
	tn_shared_slab *s = tn_shared_slab_create(48, 0, nullptr);
	tn_local *handle = s == nullptr ? nullptr : tn_shared_slab_local(s);
	void *p = s == nullptr ? nullptr : tn_shared_slab_alloc(s);
	void *q = handle == nullptr ? nullptr : tn_shared_slab_local_alloc(handle);
	early_use_worked = p != nullptr && q != nullptr && p != q && tn_shared_slab_in_use(s) == 2;
	tn_shared_slab_free(s, q);
	tn_shared_slab_free(s, p);
	tn_shared_slab_destroy(s);
	pthread_key_create(&last_key, late_destructor);
}

TEST(shared_threads, a_constructor_may_be_the_first_user) {
	EXPECT_TRUE(early_use_worked);
}

/* ---- threads that end ---- */

void free_and_check(tn_shared_slab *s, const std::vector<parcel> &parcels, size_t size) {
	size_t wrong = 0;
	for (const parcel &what : parcels) {
		wrong += !has_stamp(what.p, size, what.stamp);
		tn_shared_slab_free(s, what.p);
	}
	EXPECT_EQ(wrong, 0u);
}

/* Uses `count` objects and leaves a few of them behind, stamped. */
void live_and_leave(tn_shared_slab *s, size_t count, size_t left, uint64_t stamp, mailbox &to) {
	std::vector<parcel> own;
	for (size_t i = 0; i < count; i++) {
		own.push_back({tn_shared_slab_alloc(s), stamp + i});
		put_stamp(own.back().p, 64, own.back().stamp);
	}
	std::vector<parcel> stays;
	for (size_t i = 0; i < count; i++)
		if (i % (count / left) == 0 && stays.size() < left)
			stays.push_back(own[i]);
		else
			tn_shared_slab_free(s, own[i].p);
	EXPECT_TRUE(to.send(stays));
}

TEST(shared_threads, what_dead_threads_left_is_freed_by_another) {
	constexpr size_t at_once = 4, left = 10, constant = 512 * kib;
	const size_t used = debug_mode ? 20 : 100;
	const size_t threads = at_once * times(debug_mode ? 2500 : 25000, debug_mode ? 125 : 500);
	shared_slab_owner s = make_shared_slab(64);
	size_t at_first = stats_of(s.get()).committed_bytes;
	std::vector<parcel> all;
	for (size_t t = 0; t < threads && !HasFailure(); t += at_once) {
		mailbox box;
		in_crowd(at_once, [&](size_t i) { live_and_leave(s.get(), used, left, (t + i) << 20, box); });
		for (const parcel &what : box.collect())
			all.push_back(what);
		if (t % 100 != 0)
			continue;
		ASSERT_EQ(tn_shared_slab_in_use(s.get()), all.size());
		if (!debug_mode) {
			ASSERT_LE(stats_of(s.get()).committed_bytes, all.size() * 64 * 11 / 10 + constant);
		}
	}
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	EXPECT_EQ(all.size(), threads * left);
	free_and_check(s.get(), all, 64);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	tn_shared_slab_trim(s.get());
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	EXPECT_TRUE(only_record_and_shards(stats_of(s.get()).committed_bytes, at_first));
}

TEST(shared_threads, a_thread_that_ends_gives_its_slots_to_others) {
	tn_shared_slab_options o = {};
	o.limit_bytes = 64 * kib;
	shared_slab_owner s = make_shared_slab(256, 0, o);
	size_t most = 0;
	for (int i = 0; i < 50; i++)
		in_thread([&] {
			std::vector<void *> slots;
			while (void *p = tn_shared_slab_alloc(s.get()))
				slots.push_back(p);
			if (i == 0)
				most = slots.size();
			EXPECT_GE(slots.size(), most);
			tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
		});
	EXPECT_GT(most, 100u);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
}

/* ---- late destructors ---- */

struct late_use {
	tn_shared_slab *plain, *built;
	mailbox *left;
	std::atomic<size_t> *calls;
	pthread_key_t key;
	size_t rounds;
};

void use_late(const late_use &use) {
	uint64_t stamp = use.calls->fetch_add(1) << 20;
	void *batch[70];
	ASSERT_TRUE(tn_shared_slab_alloc_batch(use.plain, batch, 70));
	for (size_t i = 0; i < 70; i++)
		put_stamp(batch[i], 64, stamp + i);
	tn_local *handle = tn_shared_slab_local(use.plain);
	if (handle != nullptr)
		tn_shared_slab_local_free(handle, tn_shared_slab_local_alloc(handle));
	void *built = tn_shared_slab_alloc(use.built);
	ASSERT_NE(built, nullptr);
	EXPECT_EQ(*static_cast<void **>(built), built);
	tn_shared_slab_free(use.built, built);
	for (size_t i = 0; i < 70; i++)
		EXPECT_TRUE(has_stamp(batch[i], 64, stamp + i));
	EXPECT_TRUE(use.left->send({{batch[0], stamp}}));
	batch[0] = nullptr;
	tn_shared_slab_free_batch(use.plain, batch, 70);
	tn_shared_slab_flush(use.plain);
	EXPECT_LE(tn_shared_slab_in_use(use.plain), 10000u);
}

void late_destructor(void *value) {
	auto *use = static_cast<late_use *>(value);
	use_late(*use);
	if (--use->rounds > 0)
		pthread_setspecific(use->key, use);
	else
		delete use;
}

struct late_owner {
	~late_owner() {
		if (use.plain != nullptr)
			use_late(use);
	}
	late_use use = {};
};
thread_local late_owner owner_of_thread;

TEST(shared_threads, late_destructors_allocate_and_free) {
	/* ThreadSanitizer itself ends in the fourth round. */
	constexpr size_t rounds = thread_sanitized ? 3 : 4, threads = debug_mode ? 6 : 20;
	int64_t built_count = 0;
	tn_shared_slab_options o = {};
	o.init = [](void *slot, void *ctx) {
		*static_cast<void **>(slot) = slot;
		++*static_cast<int64_t *>(ctx);
		return true;
	};
	o.fini = [](void *slot, void *ctx) {
		EXPECT_EQ(*static_cast<void **>(slot), slot);
		--*static_cast<int64_t *>(ctx);
	};
	o.ctx = &built_count;
	shared_slab_owner plain = make_shared_slab(64), built = make_shared_slab(64, 0, o);
	mailbox left;
	std::atomic<size_t> calls{0};
	for (size_t i = 0; i < threads; i++)
		in_thread([&] {
			late_use use = {plain.get(), built.get(), &left, &calls, 0, rounds};
			owner_of_thread.use = use;
			for (pthread_key_t key : {first_key, last_key}) {
				use.key = key;
				pthread_setspecific(key, new late_use(use));
			}
			if (i % 2 == 0)
				use_late(use);
		});
	size_t expected = threads * (2 * rounds + 1) + threads / 2;
	EXPECT_EQ(calls, expected);
	EXPECT_EQ(tn_shared_slab_in_use(plain.get()), expected);
	EXPECT_EQ(tn_shared_slab_in_use(built.get()), 0u);
	free_and_check(plain.get(), left.collect(), 64);
	EXPECT_EQ(tn_shared_slab_in_use(plain.get()), 0u);
	EXPECT_TRUE(tn_shared_slab_verify(plain.get()) && tn_shared_slab_verify(built.get()));
	EXPECT_GT(built_count, 0);
	built.reset();
	EXPECT_EQ(built_count, 0);
}

/* ---- slabs that end before their threads ---- */

/* Debug would list live slots, so it has none at the end. */
constexpr size_t live_at_the_end = debug_mode ? 0 : 10;

/* Work of a thread on a slab: at the end it keeps slots in its magazines, and some live ones. */
void use_and_keep_slots(tn_shared_slab *s, size_t size, uint64_t stamp) {
	std::vector<parcel> own;
	for (size_t i = 0; i < 60; i++) {
		own.push_back({tn_shared_slab_alloc(s), stamp + i});
		ASSERT_NE(own.back().p, nullptr);
		put_stamp(own.back().p, size, own.back().stamp);
	}
	tn_local *handle = tn_shared_slab_local(s);
	ASSERT_NE(handle, nullptr);
	EXPECT_EQ(handle, tn_shared_slab_local(s));
	for (size_t i = live_at_the_end; i < 60; i++) {
		EXPECT_TRUE(has_stamp(own[i].p, size, own[i].stamp));
		if (i % 2 == 0)
			tn_shared_slab_local_free(handle, own[i].p);
		else
			tn_shared_slab_free(s, own[i].p);
	}
}

struct life_of_slab {
	watched_source books;
	shared_slab_owner slab;
	size_t size = 0;

	void begin(size_t round, bool watched) {
		size = 16 + 16 * (round % 20);
		tn_shared_slab_options o = {};
		o.magazine_slots = round % 3 == 0 ? 5 : 0;
		if (watched)
			o.source = &books.source;
		slab = make_shared_slab(size, 0, o);
	}
	void end() {
		slab.reset();
		EXPECT_EQ(books.held_bytes(), 0u);
	}
};

/* Four threads use one slab after another and never give back their slots; then they end. */
size_t outlive_slabs(size_t rounds) {
	constexpr size_t threads = 4;
	rendezvous rest(threads + 1);
	life_of_slab now;
	std::vector<const void *> places;
	size_t reused = 0;
	std::thread crowd([&] {
		in_crowd(threads, [&](size_t t) {
			for (size_t i = 0; i < rounds; i++) {
				rest.meet();
				use_and_keep_slots(now.slab.get(), now.size, (t << 40) + (i << 20));
				rest.meet();
			}
		});
	});
	for (size_t i = 0; i < rounds; i++) {
		now.begin(i, i % 2 == 0);
		reused += std::count(places.begin(), places.end(), now.slab.get()) > 0;
		places.push_back(now.slab.get());
		rest.meet();
		rest.meet();
		/* In the last round the threads are ending: nothing but destroy is legal then. */
		if (i + 1 < rounds) {
			EXPECT_EQ(tn_shared_slab_in_use(now.slab.get()), threads * live_at_the_end);
			EXPECT_TRUE(tn_shared_slab_verify(now.slab.get()));
		}
		now.end();
	}
	crowd.join();
	return reused;
}

TEST(shared_threads, slabs_end_before_the_threads_that_used_them) {
	size_t reused = 0;
	for (size_t i = 0; i < times(20, debug_mode ? 1 : 4); i++)
		reused += outlive_slabs(50);
	if (!debug_mode && !sanitized) {
		EXPECT_GT(reused, 0u) << "no slab ever lay where another one had been";
	}
}

/* Whether `work`, in a child, ends in a panic. */
bool panics(const std::function<void()> &work) {
	int status = in_child(
		[&] {
			tn_on_panic([](const char *) { _exit(7); });
			work();
			return 0;
		},
		20);
	return exited_with(status, 7);
}

TEST(shared_threads, a_handle_of_a_dead_slab_panics) {
	for (bool alloc : {true, false})
		for (bool others : {true, false})
			EXPECT_TRUE(panics([=] {
				shared_slab_owner s = make_shared_slab(64), other = make_shared_slab(64);
				tn_local *handle = tn_shared_slab_local(s.get());
				void *p = tn_shared_slab_local_alloc(handle);
				tn_shared_slab_free(s.get(), tn_shared_slab_alloc(s.get()));
				tn_shared_slab_local_free(handle, p);
				s.reset();
				for (int i = 0; others && i < 20; i++)
					use_and_keep_slots(make_shared_slab(64).get(), 64, 1);
				tn_shared_slab_free(other.get(), tn_shared_slab_alloc(other.get()));
				if (alloc)
					tn_shared_slab_local_alloc(handle);
				else
					tn_shared_slab_local_free(handle, p);
			})) << "alloc "
				<< alloc << ", other slabs in between " << others;
}

/* The thread is busy with other slabs while one that it has used ends; then it uses the handle of
 * the ended one. */
TEST(shared_threads, a_slab_ends_while_its_threads_use_others) {
	if (thread_sanitized)
		GTEST_SKIP() << "threads in a child";
	for (size_t i = 0; i < times(1000, debug_mode ? 20 : 50); i++)
		EXPECT_TRUE(panics([i] {
			shared_slab_owner s = make_shared_slab(64);
			shared_slab_owner x = make_shared_slab(64), y = make_shared_slab(32);
			std::atomic<int> stage{0};
			std::thread user([&] {
				tn_local *handle = tn_shared_slab_local(s.get());
				use_and_keep_slots(s.get(), 64, 1);
				for (stage = 1; stage == 1;) {
					tn_shared_slab_free(x.get(), tn_shared_slab_alloc(x.get()));
					tn_shared_slab_free(y.get(), tn_shared_slab_alloc(y.get()));
				}
				tn_shared_slab_local_free(handle, tn_shared_slab_local_alloc(handle));
			});
			while (stage == 0)
				std::this_thread::yield();
			for (volatile size_t k = 0; k < i * 37 % 1000; k = k + 1)
				continue;
			s.reset();
			stage = 2;
			user.join();
		}));
}

/* More than are near at once, and more than there are chains. */
TEST(shared_threads, a_hundred_slabs_in_each_of_four_threads) {
	constexpr size_t slabs = 100;
	std::vector<shared_slab_owner> s;
	for (size_t i = 0; i < slabs; i++)
		s.push_back(make_shared_slab(16 + 8 * i, 8));
	std::atomic<size_t> wrong{0};
	mailbox boxes[slabs];
	in_crowd(4, [&](size_t t) {
		dice d(t + 1);
		std::vector<parcel> own[slabs];
		for (size_t k = 0; k < (sanitized || debug_mode ? 3000 : 20000); k++) {
			size_t i = d.below(slabs), size = 16 + 8 * i;
			if (own[i].size() < 10 && d.one_in(2)) {
				own[i].push_back({tn_shared_slab_alloc(s[i].get()), (t << 40) + k});
				put_stamp(own[i].back().p, size, own[i].back().stamp);
			} else if (!own[i].empty()) {
				wrong += !has_stamp(own[i].back().p, size, own[i].back().stamp);
				wrong += !tn_shared_slab_owns(s[i].get(), own[i].back().p);
				wrong += tn_shared_slab_owns(s[(i + 1) % slabs].get(), own[i].back().p);
				tn_shared_slab_free(s[i].get(), own[i].back().p);
				own[i].pop_back();
			}
		}
		for (size_t i = 0; i < slabs; i++)
			EXPECT_TRUE(boxes[i].send(own[i]));
	});
	EXPECT_EQ(wrong, 0u);
	for (size_t i = 0; i < slabs; i++) {
		std::vector<parcel> left = boxes[i].collect();
		EXPECT_TRUE(tn_shared_slab_verify(s[i].get()));
		EXPECT_EQ(tn_shared_slab_in_use(s[i].get()), left.size());
		free_and_check(s[i].get(), left, 16 + 8 * i);
		EXPECT_EQ(tn_shared_slab_in_use(s[i].get()), 0u);
	}
}

/* ---- flush and trim between threads ---- */

size_t count_owned(const tn_shared_slab *s, const std::vector<void *> &slots) {
	size_t count = 0;
	for (void *slot : slots)
		count += tn_shared_slab_owns(s, slot);
	return count;
}

TEST(shared_threads, trim_reaches_idle_threads_at_their_next_slow_path) {
	if (debug_mode)
		GTEST_SKIP() << "has no magazines";
	constexpr size_t size = 2048, magazine = 64;
	watched_source books;
	tn_shared_slab_options o = {};
	o.magazine_slots = magazine;
	o.source = &books.source;
	shared_slab_owner s = make_shared_slab(size, 0, o);
	size_t at_first = books.held_bytes();
	/* The first three chunks, and some of the fourth. */
	std::vector<void *> mine(100), its(300);
	EXPECT_TRUE(tn_shared_slab_alloc_batch(s.get(), mine.data(), mine.size()));
	rendezvous rest(2);
	std::thread idle([&] {
		EXPECT_TRUE(tn_shared_slab_alloc_batch(s.get(), its.data(), its.size()));
		tn_shared_slab_free_batch(s.get(), its.data(), its.size());
		rest.meet();
		rest.meet();
		/* More than a magazine has room for. */
		tn_shared_slab_free_batch(s.get(), mine.data(), magazine + 1);
		rest.meet();
		rest.meet();
	});
	rest.meet();
	std::vector<void *> in_other_chunks(its.begin() + 50, its.end());
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), mine.size());
	tn_shared_slab_trim(s.get());
	EXPECT_GT(count_owned(s.get(), in_other_chunks), 0u) << "the thread holds nothing that could go";
	rest.meet();
	rest.meet();
	tn_shared_slab_trim(s.get());
	EXPECT_EQ(count_owned(s.get(), in_other_chunks), 0u) << "the thread has kept what it had";
	rest.meet();
	idle.join();
	tn_shared_slab_free_batch(s.get(), mine.data() + magazine + 1, mine.size() - magazine - 1);
	tn_shared_slab_trim(s.get());
	EXPECT_TRUE(only_record_and_shards(books.held_bytes(), at_first));
}

TEST(shared_threads, what_one_thread_flushes_another_gets) {
	tn_shared_slab_options o = {};
	o.limit_bytes = 64 * kib;
	shared_slab_owner s = make_shared_slab(256, 0, o);
	rendezvous rest(2);
	size_t most = 0;
	std::thread other([&] {
		std::vector<void *> slots;
		while (void *p = tn_shared_slab_alloc(s.get()))
			slots.push_back(p);
		most = slots.size();
		tn_shared_slab_free_batch(s.get(), slots.data(), slots.size());
		tn_shared_slab_flush(s.get());
		rest.meet();
		rest.meet();
	});
	rest.meet();
	std::vector<void *> slots(most);
	EXPECT_TRUE(tn_shared_slab_alloc_batch(s.get(), slots.data(), most));
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), most);
	tn_shared_slab_free_batch(s.get(), slots.data(), most);
	rest.meet();
	other.join();
}

} /* namespace */
} /* namespace test_shared_threads */
