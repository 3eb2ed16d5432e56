/* Memory nodes (NUMA), in a process that takes its machine for one of two: each thread says on which
 * node it runs. It shows that slots come back to their node and that memory stays where it is used; the
 * system that places the pages is not asked. */
#include "crowd.h"
#include "slabs.h"

extern "C" {
#include "pages/pages.h"
}

#include <random>

namespace {

enum { NODES = 2 };
thread_local size_t here;

[[maybe_unused]] const bool two_nodes = (tn_os_set_nodes(NODES, [] { return here; }), true);

[[maybe_unused]] size_t node_of(const void *p) {
	return tn_pages_node_of(reinterpret_cast<const void *>(address(p) & ~uintptr_t{64 * kib - 1}));
}

template <typename F> void on_node(size_t node, F work) {
	in_thread([&] {
		here = node;
		work();
	});
}

/* A ring of one producer and one consumer. */
class ring {
public:
	void put(void *p) {
		while (next_in_ - next_out_.load(std::memory_order_acquire) == SIZE)
			std::this_thread::yield();
		slots_[next_in_ % SIZE] = p;
		in_.store(++next_in_, std::memory_order_release);
	}
	void *get() {
		size_t at = next_out_.load(std::memory_order_relaxed);
		while (in_.load(std::memory_order_acquire) == at)
			std::this_thread::yield();
		void *p = slots_[at % SIZE];
		next_out_.store(at + 1, std::memory_order_release);
		return p;
	}

private:
	static constexpr size_t SIZE = 4096;
	void *slots_[SIZE];
	size_t next_in_ = 0;
	std::atomic<size_t> in_{0}, next_out_{0};
};

TEST(nodes, chunks_come_back_to_their_node) {
	for (size_t size : {4 * kib, 64 * kib, 256 * kib, mib, 16 * mib}) {
		std::vector<void *> chunks[NODES];
		for (size_t node = 0; node < NODES; node++)
			on_node(node, [&] {
				for (size_t i = 0; i < 20; i++)
					chunks[node].push_back(tn_pages_acquire(size, size));
			});
		for (size_t node = 0; node < NODES; node++)
			for (void *p : chunks[node])
				ASSERT_EQ(tn_pages_node_of(p), node) << size;
		/* Each node releases the chunks of the other one. */
		for (size_t node = 0; node < NODES; node++)
			on_node(1 - node, [&] {
				for (void *p : chunks[node])
					tn_pages_release(p, size, size);
			});
		for (size_t node = 0; node < NODES; node++)
			on_node(node, [&] {
				std::sort(chunks[node].begin(), chunks[node].end());
				for (size_t i = 0; i < 20; i++) {
					void *p = tn_pages_acquire(size, size);
					ASSERT_TRUE(debug_mode
									? tn_pages_node_of(p) == node
									: std::binary_search(chunks[node].begin(), chunks[node].end(), p));
					tn_pages_release(p, size, size);
				}
			});
	}
	tn_stats stats;
	tn_pages_stats(&stats);
	EXPECT_EQ(stats.node_bytes[0] + stats.node_bytes[1], stats.cached_bytes);
}

#if TN_MODE != TN_MODE_DEBUG

/* Node 0 allocates and node 1 frees. All memory is node 0's, no slot comes from anywhere else, and no
 * more is taken than what lies between the two. */
// B75
TEST(nodes, allocated_on_one_and_freed_on_the_other) {
	const size_t operations = sanitized ? 300000 : 10000000, size = 64;
	shared_slab_owner s = make_shared_slab(size);
	ring slots;
	std::thread consumer([&] {
		here = 1;
		for (size_t i = 0; i < operations; i++)
			tn_shared_slab_free(s.get(), slots.get());
	});
	size_t most = 0, far = 0;
	for (size_t i = 0; i < operations; i++) {
		void *p = tn_shared_slab_alloc(s.get());
		ASSERT_NE(p, nullptr);
		far += i % 64 == 0 && node_of(p) != 0;
		slots.put(p);
		if (i % 100000 == 0)
			most = std::max(most, stats_of(s.get()).committed_bytes);
	}
	consumer.join();
	tn_stats stats = stats_of(s.get());
	EXPECT_EQ(far, 0u);
	EXPECT_EQ(stats.node_bytes[1], 0u);
	EXPECT_GT(stats.node_bytes[0], 0u);
	/* The ring, two magazines of each thread, and some in the depots. */
	EXPECT_LT(most, (4096 + 10 * TN_MAGAZINE_SLOTS_MAX) * size * 2);
	EXPECT_GT(stats.exchanges, operations / TN_MAGAZINE_SLOTS_MAX);
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* Threads of both nodes exchange slots at random. A thread that takes more slots than its magazines
 * hold gets those of its node, and each node has about as many chunks as its threads need. */
// B75
TEST(nodes, mixed_magazines_are_sorted) {
	const size_t threads = 4, rounds = sanitized ? 30 : 300, count = 4000, size = 64;
	shared_slab_owner s = make_shared_slab(size);
	std::vector<void *> slots[threads];
	for (size_t round = 0; round < rounds; round++) {
		in_crowd(threads, [&](size_t i) {
			here = i % NODES;
			slots[i] = take(s.get(), count);
			size_t far = 0;
			for (void *p : slots[i])
				far += node_of(p) != here;
			/* A thread has two magazines, which it did not fill with slots of its own node. */
			EXPECT_LE(far, round == 0 ? 0 : 2 * TN_MAGAZINE_SLOTS_MAX);
		});
		std::vector<void *> all;
		for (auto &own : slots)
			all.insert(all.end(), own.begin(), own.end());
		std::shuffle(all.begin(), all.end(), std::mt19937(unsigned(round)));
		in_crowd(threads, [&](size_t i) {
			here = i % NODES;
			for (size_t k = i * count; k < (i + 1) * count; k++)
				tn_shared_slab_free(s.get(), all[k]);
		});
	}
	tn_stats stats = stats_of(s.get());
	EXPECT_EQ(stats.live_count, 0u);
	for (size_t node = 0; node < NODES; node++)
		EXPECT_LT(stats.node_bytes[node], 2 * (threads / NODES) * count * size) << node;
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
	tn_shared_slab_trim(s.get());
	stats = stats_of(s.get());
	EXPECT_EQ(stats.node_bytes[0] + stats.node_bytes[1], 0u);
}

/* A thread that moves to another node takes slots there. */
TEST(nodes, a_thread_moves) {
	shared_slab_owner s = make_shared_slab(64);
	on_node(0, [&] {
		give(s.get(), take(s.get(), 10000));
		here = 1;
		std::vector<void *> slots = take(s.get(), 10000);
		size_t far = 0;
		for (void *p : slots)
			far += node_of(p) != 1;
		EXPECT_LE(far, 2 * TN_MAGAZINE_SLOTS_MAX);
		give(s.get(), slots);
	});
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* At its limit a slab serves a thread of any node with what there is. */
// B75
TEST(nodes, the_last_slots_serve_all) {
	tn_shared_slab_options options = {};
	options.limit_bytes = mib;
	shared_slab_owner s = make_shared_slab(64, 0, options);
	std::vector<void *> slots;
	on_node(0, [&] {
		for (void *p; (p = tn_shared_slab_alloc(s.get())) != nullptr;)
			slots.push_back(p);
	});
	ASSERT_GT(slots.size(), 10000u);
	on_node(0, [&] { give(s.get(), slots); });
	on_node(1, [&] {
		size_t taken = 0;
		for (void *p; taken < slots.size() && (p = tn_shared_slab_alloc(s.get())) != nullptr; taken++)
			slots[taken] = p;
		/* Empty chunks that go back may be too few for a magazine. */
		EXPECT_GE(taken, slots.size() - 2 * TN_MAGAZINE_SLOTS_MAX);
		slots.resize(taken);
		give(s.get(), slots);
	});
	EXPECT_TRUE(tn_shared_slab_verify(s.get()));
}

/* Chunks of a caller's source belong to the node of the thread that needed them. */
TEST(nodes, of_a_source) {
	ledger books;
	shared_slab_owner s = make_shared_slab(64, 0, with_source(books));
	for (size_t node = 0; node < NODES; node++)
		on_node(node, [&] {
			size_t before = stats_of(s.get()).node_bytes[node];
			take(s.get(), 5000);
			EXPECT_GT(stats_of(s.get()).node_bytes[node], before + 4000 * 64);
		});
}

TEST(nodes, a_child_of_fork_goes_on) {
	shared_slab_owner s = make_shared_slab(64);
	std::vector<void *> slots;
	on_node(1, [&] { slots = take(s.get(), 10000); });
	give(s.get(), slots);
	const int ended_well = 7;
	int status = in_child(
		[&] {
			give(s.get(), take(s.get(), 10000));
			return tn_shared_slab_verify(s.get()) ? ended_well : 0;
		},
		60);
	EXPECT_TRUE(exited_with(status, ended_well));
}

#endif

} /* namespace */
