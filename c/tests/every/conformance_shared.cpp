/* The rules of spec/behaviour.md on threads and pools. */
#include "../pool/use.h"
#include "crowd.h"
#include "process.h"
#include "slabs.h"

#include <chrono>
#include <csignal>
#include <future>
#include <set>

#include <pthread.h>

extern "C" {
#include "base/os.h"
}

namespace conformance_shared {
namespace {

TEST(conformance, B37_any_thread_frees) {
	workshop w;
	shared_slab_owner s = make_shared_slab(100);
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	for (int round = 0; round < 5; round++) {
		std::vector<void *> slots = take(s.get(), 1000);
		std::vector<void *> widgets = get_widgets(p.get(), 200);
		for (void *slot : slots)
			fill(slot, 100, address(slot));
		in_thread([&] {
			for (void *slot : slots)
				EXPECT_TRUE(filled(slot, 100, address(slot)));
			give(s.get(), slots);
			put_all(p.get(), widgets);
		});
		EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
		EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	}
	EXPECT_EQ(w.inits, 200u) << "what the other thread put is had again";
}

TEST(conformance, B38_what_a_thread_leaves) {
	for (bool ends : {false, true}) {
		ledger books;
		tn_shared_slab_options options = {};
		options.source = books.source();
		shared_slab_owner s = make_shared_slab(100, 0, options);
		workshop w;
		pool_owner p = make_pool(sizeof(widget), 0, w.options());
		auto use = [&] {
			give(s.get(), take(s.get(), 300));
			put_all(p.get(), get_widgets(p.get(), 100));
		};
		auto and_flush = [&] {
			tn_shared_slab_flush(s.get());
			tn_pool_flush(p.get());
		};
		ends ? in_thread(use) : (use(), and_flush());
		size_t chunks = stats_of(s.get()).chunk_count;
		in_thread(use);
		EXPECT_TRUE(debug_mode || stats_of(s.get()).chunk_count == chunks);
		EXPECT_EQ(w.inits, 100u);
		/* All of it can go back. */
		tn_shared_slab_trim(s.get());
		EXPECT_EQ(books.held_bytes(), stats_of(s.get()).committed_bytes);
		EXPECT_EQ(stats_of(s.get()).chunk_count, 0u);
	}
}

/* A destructor that runs in every round; in the last rounds it runs after those of the allocators. */
struct late_user {
	tn_shared_slab *s;
	tn_pool *p;
	pthread_key_t key;
	int rounds;
	size_t done;

	static void run(void *self) {
		late_user *u = static_cast<late_user *>(self);
		void *slot = tn_shared_slab_alloc(u->s);
		void *object = get_widget(u->p);
		if (slot != nullptr && object != nullptr) {
			fill(slot, 100, u->done);
			tn_shared_slab_free(u->s, slot);
			tn_pool_put(u->p, object);
			u->done++;
		}
		if (--u->rounds > 0)
			pthread_setspecific(u->key, u);
	}
};

TEST(conformance, B39_late_destructors) {
	workshop w;
	shared_slab_owner s = make_shared_slab(100);
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	late_user user = {s.get(), p.get(), {}, 3, 0};
	ASSERT_EQ(pthread_key_create(&user.key, late_user::run), 0);
	in_thread([&] {
		pthread_setspecific(user.key, &user);
		give(s.get(), take(s.get(), 100));
		put_all(p.get(), get_widgets(p.get(), 10));
	});
	pthread_key_delete(user.key);
	EXPECT_EQ(user.done, 3u);
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 0u);
	EXPECT_EQ(stats_of(p.get()).live_count, 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(conformance, B40_destroy_with_live_caches) {
	ledger books;
	tn_shared_slab_options options = {};
	options.source = books.source();
	shared_slab_owner s = make_shared_slab(100, 0, options);
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::promise<void> ready, over;
	std::thread other([&] {
		give(s.get(), take(s.get(), 300));
		put_all(p.get(), get_widgets(p.get(), 100));
		ready.set_value();
		over.get_future().wait();
		/* The thread's own entries still serve another slab. */
		shared_slab_owner next = make_shared_slab(100);
		give(next.get(), take(next.get(), 100));
		EXPECT_TRUE(tn_shared_slab_verify(next.get()));
	});
	ready.get_future().wait();
	s.reset();
	p.reset();
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(w.alive(), 0u);
	over.set_value();
	other.join();
}

void exit_at_panic(const char *message) {
	_exit(std::strstr(message, "is no more") != nullptr ? 7 : 8);
}

TEST(conformance, B40_a_dead_handle_panics) {
	shared_slab_owner s = make_shared_slab(100);
	tn_local *handle = tn_shared_slab_local(s.get());
	tn_shared_slab_local_free(handle, tn_shared_slab_local_alloc(handle));
	s.reset();
	auto call = [&] {
		tn_on_panic(exit_at_panic);
		return tn_shared_slab_local_alloc(handle) == nullptr ? 1 : 2;
	};
	EXPECT_TRUE(exited_with(in_child(call, 10), 7));
}

TEST(conformance, B41_counts_at_rest) {
	workshop w;
	shared_slab_owner s = make_shared_slab(100);
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> kept, widgets;
	for (size_t i = 1; i <= 20; i++) {
		in_thread([&] {
			std::vector<void *> slots = take(s.get(), 100 * i);
			for (void *object : get_widgets(p.get(), 2))
				widgets.push_back(object);
			kept.push_back(slots.back());
			slots.pop_back();
			give(s.get(), slots);
			put_all(p.get(), {widgets.back()});
			widgets.pop_back();
			EXPECT_EQ(tn_shared_slab_in_use(s.get()), i);
			EXPECT_EQ(stats_of(p.get()).live_count, i);
		});
		EXPECT_EQ(tn_shared_slab_in_use(s.get()), i);
		EXPECT_EQ(stats_of(s.get()).live_count, i);
		EXPECT_EQ(stats_of(p.get()).live_count, i);
		EXPECT_EQ(stats_of(p.get()).cached_bytes, (w.alive() - i) * sizeof(widget));
	}
}

TEST(conformance, B42_fork) {
	shared_slab_owner s = make_shared_slab(100);
	pool_owner p = make_pool(sizeof(widget));
	std::vector<void *> slots = take(s.get(), 500);
	void *object = tn_pool_get(p.get());
	tn_pool_put(p.get(), tn_pool_get(p.get()));
	auto use = [&] {
		give(s.get(), slots);
		tn_pool_put(p.get(), object);
		bool empty = tn_shared_slab_in_use(s.get()) == 0 && stats_of(p.get()).live_count == 0;
		tn_shared_slab_free(s.get(), tn_shared_slab_alloc(s.get()));
		bool sound = tn_shared_slab_verify(s.get());
		tn_shared_slab_destroy(s.release());
		tn_pool_destroy(p.release());
		return empty && sound ? 0 : 1;
	};
	EXPECT_TRUE(exited_with(in_child(use, 10), 0));
	EXPECT_EQ(tn_shared_slab_in_use(s.get()), 500u);
	EXPECT_EQ(stats_of(p.get()).live_count, 1u);
	give(s.get(), slots);
	tn_pool_put(p.get(), object);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* Two threads take more slots in turn than their magazines hold. */
TEST(conformance, B73_what_a_thread_freed_it_finds_again) {
	if (debug_mode)
		return;
	shared_slab_owner s = make_shared_slab(64);
	rendezvous both(2);
	std::set<void *> own[2];
	in_crowd(2, [&](size_t i) {
		for (size_t round = 0; round < 30; round++) {
			for (size_t turn = 0; turn < 2; turn++) {
				both.meet();
				if (turn != i)
					continue;
				std::vector<void *> slots = take(s.get(), 3000);
				give(s.get(), slots);
				if (round == 9)
					own[i].insert(slots.begin(), slots.end());
				for (void *p : slots)
					EXPECT_TRUE(round < 10 || own[i].count(p) == 1);
			}
		}
		both.meet();
		tn_shared_slab_flush(s.get());
	});
	for (void *p : own[0])
		EXPECT_EQ(own[1].count(p), 0u);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

TEST(conformance, B74_tune) {
	if (debug_mode)
		return;
	tn_shared_slab_options options = {};
	options.chunk_bytes = 4 * kib;
	options.magazine_slots = 8;
	shared_slab_owner s = make_shared_slab(256, 0, options);
	const size_t magazines = 2 * 2 * 8;
	for (size_t chunks : {size_t{20}, size_t{3}, TN_NONE, size_t{30}}) {
		tn_shared_slab_knobs knobs = {chunks, TN_NONE};
		in_crowd(2, [&](size_t i) {
			for (size_t round = 0; round < 20; round++) {
				if (round == 10 && i == 0)
					tn_shared_slab_tune(s.get(), &knobs);
				give(s.get(), take(s.get(), 500));
			}
		});
		size_t kept = chunks == TN_NONE ? 0 : chunks;
		EXPECT_LE(stats_of(s.get()).chunk_count, kept + magazines);
		give(s.get(), take(s.get(), 1000));
		EXPECT_GE(stats_of(s.get()).chunk_count, kept);
		EXPECT_LE(stats_of(s.get()).partial_live_count, magazines);
	}
}

thread_local size_t here;

/* In a child, which takes its machine for one of two nodes; c/tests/nodes has more. */
TEST(conformance, B75_memory_nodes) {
	if (debug_mode)
		return;
	const int status = in_child(
		[] {
			const size_t size = 64, count = 20000;
			tn_os_set_nodes(2, [] { return here; });
			shared_slab_owner s = make_shared_slab(size);
			bool well = true;
			for (size_t round = 0; round < 20; round++) {
				std::vector<void *> slots = take(s.get(), count);
				in_thread([&] {
					here = 1;
					give(s.get(), slots);
				});
				tn_stats stats = stats_of(s.get());
				well &= stats.node_bytes[0] >= count * size && stats.node_bytes[0] < 2 * count * size;
				well &= stats.node_bytes[1] == 0;
			}
			in_thread([&] {
				here = 1;
				take(s.get(), count);
			});
			return well && stats_of(s.get()).node_bytes[1] >= count * size ? 7 : 0;
		},
		60);
	EXPECT_TRUE(exited_with(status, 7));
}

TEST(conformance, B43_built_objects) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options()), plain = make_pool(100);
	void *object = tn_pool_get(plain.get());
	EXPECT_TRUE(all_bytes(object, 100, 0));
	fill(object, 100, 1);
	tn_pool_put(plain.get(), object);
	EXPECT_TRUE(filled(tn_pool_get(plain.get()), 100, 1));
	for (uint64_t uses = 1; uses < 50; uses++) {
		widget *used = get_widget(p.get());
		EXPECT_EQ(used->uses, uses) << "what reset leaves stays";
		tn_pool_put(p.get(), used);
	}
}

TEST(conformance, B44_idle_objects_first) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> widgets = get_widgets(p.get(), 1000);
	put_all(p.get(), widgets);
	for (size_t i = widgets.size(); i-- > 0;)
		EXPECT_EQ(get_widget(p.get()), widgets[i]);
	EXPECT_EQ(w.inits, 1000u);
}

TEST(conformance, B45_reset_in_put) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	for (size_t i = 0; i < 500; i++) {
		EXPECT_EQ(w.resets, i);
		widget *used = get_widget(p.get());
		EXPECT_EQ(w.resets, i);
		tn_pool_put(p.get(), used);
	}
	tn_pool_flush(p.get());
	tn_pool_trim(p.get());
	p.reset();
	EXPECT_EQ(w.resets, 500u);
}

TEST(conformance, B46_a_failing_init) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> widgets = get_widgets(p.get(), 50);
	w.fail(1, 3);
	for (int i = 0; i < 3; i++) {
		EXPECT_REFUSED(tn_pool_get(p.get()), ENOMEM);
		EXPECT_EQ(stats_of(p.get()).live_count, 50u);
	}
	EXPECT_EQ(w.finis, 0u);
	EXPECT_NE(get_widget(p.get()), nullptr);
}

TEST(conformance, B47_one_fini_for_each_init) {
	workshop w;
	tn_pool_options options = w.options();
	options.max_idle_objects = 100;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	for (int round = 0; round < 5; round++) {
		get_widgets(p.get(), 20);
		put_all(p.get(), get_widgets(p.get(), 300));
		if (round % 2 == 1)
			tn_pool_trim(p.get());
	}
	EXPECT_GT(w.finis, 200u);
	p.reset();
	EXPECT_EQ(w.inits, w.finis);
	EXPECT_EQ(w.alive(), 0u);
}

TEST(conformance, B48_idle_bounds) {
	for (bool by_bytes : {false, true}) {
		workshop w;
		tn_pool_options options = w.options();
		if (by_bytes)
			options.max_idle_bytes = 320 * sizeof(widget);
		else
			options.max_idle_objects = 320;
		pool_owner p = make_pool(sizeof(widget), 0, options);
		for (int i = 0; i < 5; i++)
			in_thread([&] { put_all(p.get(), get_widgets(p.get(), 2000)); });
		EXPECT_LE(w.alive(), 320u) << "threads that ended";
		put_all(p.get(), get_widgets(p.get(), 2000));
		EXPECT_LE(w.alive(), 320u + 2 * 20) << "a magazine is at most a sixteenth";
		tn_pool_flush(p.get());
		EXPECT_LE(w.alive(), 320u);
		EXPECT_GE(w.alive(), 300u);
	}
}

TEST(conformance, B49_decay) {
	workshop w;
	tn_pool_options options = w.options();
	options.decay_ms = 10;
	pool_owner p = make_pool(sizeof(widget), 0, options);
	put_all(p.get(), get_widgets(p.get(), 2000));
	using clock = std::chrono::steady_clock;
	auto deadline = clock::now() + std::chrono::seconds(60);
	while (w.alive() > 500 && clock::now() < deadline) {
		put_all(p.get(), get_widgets(p.get(), 300));
		std::this_thread::sleep_for(std::chrono::milliseconds(3));
	}
	EXPECT_LE(w.alive(), 500u);
}

TEST(conformance, B50_trim_of_a_pool) {
	workshop w;
	pool_owner p = make_pool(sizeof(widget), 0, w.options());
	std::vector<void *> out = get_widgets(p.get(), 10);
	in_thread([&] { put_all(p.get(), get_widgets(p.get(), 500)); });
	put_all(p.get(), get_widgets(p.get(), 500));
	size_t before = stats_of(p.get()).committed_bytes;
	size_t bytes = tn_pool_trim(p.get());
	EXPECT_GT(bytes, 0u);
	EXPECT_EQ(stats_of(p.get()).committed_bytes, before - bytes);
	EXPECT_EQ(tn_pool_trim(p.get()), 0u);
	EXPECT_EQ(w.alive(), 10u);
	for (void *object : out)
		EXPECT_EQ(static_cast<widget *>(object)->magic, widget::sound);
}

} /* namespace */
} /* namespace conformance_shared */
