/* Edges that mutation of the code found untested: the last byte of a limit, the last chunk that goes
 * back, one bound without the other. */
#include "allocators.h"
#include "ledger.h"

#include <tenure/tenure.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace test_edges {
namespace {

size_t resident_bytes() {
	size_t pages = 0, resident = 0;
	FILE *file = std::fopen("/proc/self/statm", "r");
	if (file == nullptr || std::fscanf(file, "%zu %zu", &pages, &resident) != 2)
		ADD_FAILURE() << "no statm";
	std::fclose(file);
	return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

size_t listed(const std::string &name) {
	struct search {
		const std::string &name;
		size_t count;
	} s = {name, 0};
	tn_stats_snapshot(
		[](const tn_listed *found, void *ctx) {
			search *its = static_cast<search *>(ctx);
			its->count += its->name == found->stats.name;
			return true;
		},
		&s);
	return s.count;
}

TEST(edges, a_pool_that_ends_leaves_nothing) {
	if (TENURE_SANITIZE[0] != '\0')
		GTEST_SKIP() << "resident memory is the sanitizer's";
	tn_pool_options o = {};
	o.name = "a pool of edges";
	size_t before = 0;
	/* In debug, what ends goes to the quarantine, which other tests need. */
	int rounds = TN_MODE == TN_MODE_DEBUG ? 30 : 3000;
	for (int i = 0; i < rounds; i++) {
		tn_pool *p = tn_pool_create(16000, 0, &o);
		ASSERT_NE(p, nullptr);
		EXPECT_EQ(listed(o.name), 1u);
		void *objects[2] = {tn_pool_get(p), tn_pool_get(p)};
		ASSERT_TRUE(objects[0] != nullptr && objects[1] != nullptr);
		tn_pool_put(p, objects[0]);
		tn_pool_put(p, objects[1]);
		tn_pool_destroy(p);
		ASSERT_EQ(listed(o.name), 0u);
		if (i == rounds / 10)
			before = resident_bytes();
	}
	EXPECT_LT(resident_bytes(), before + (6 << 20));
}

/* In debug the quarantine holds chunks back. */
TEST(edges, reserved_bytes_of_an_arena_are_those_it_holds) {
	ledger books;
	tn_arena_options o = {};
	o.source = books.source();
	o.retain_bytes = TN_NONE;
	tn_arena *a = tn_arena_create(&o);
	auto holds = [&] {
		tn_stats s;
		tn_arena_stats(a, &s);
		EXPECT_TRUE(tn_arena_verify(a));
		EXPECT_TRUE(TN_MODE == TN_MODE_DEBUG || s.chunk_count == books.held_count());
		return s.reserved_bytes == books.held_bytes() || TN_MODE == TN_MODE_DEBUG;
	};
	for (int round = 0; round < 3; round++) {
		for (size_t size : {100u, 70000u, 3000000u, 200000u, 5000000u})
			ASSERT_NE(tn_arena_alloc(a, size, 16), nullptr);
		EXPECT_TRUE(holds());
		tn_checkpoint here = tn_arena_mark(a);
		ASSERT_NE(tn_arena_alloc(a, 6000000, 16), nullptr);
		tn_arena_rewind(a, here);
		EXPECT_TRUE(holds());
		tn_arena_reset(a);
		tn_stats s;
		tn_arena_stats(a, &s);
		EXPECT_EQ(s.chunk_count, 1u)
			<< "with retain_bytes = TN_NONE the first chunk stays, and no other";
		EXPECT_TRUE(holds());
		tn_arena_trim(a);
		EXPECT_TRUE(holds());
	}
	tn_arena_destroy(a);
}

/* In debug no chunk survives a reset, so that stale pointers fault; in the others those in use may. */
TEST(edges, a_reset_keeps_the_buffer_and_gives_chunks_back) {
	ledger books;
	alignas(16) char buffer[1000];
	tn_arena_options o = {};
	o.source = books.source();
	o.buffer = buffer;
	o.buffer_bytes = sizeof buffer;
	tn_arena *a = tn_arena_create(&o);
	size_t own = books.held_count();
	for (size_t size : {100u, 5000u, 200000u})
		ASSERT_NE(tn_arena_alloc(a, size, 16), nullptr);
	EXPECT_GT(books.held_count(), own);
	tn_arena_reset(a);
	EXPECT_TRUE(TN_MODE != TN_MODE_DEBUG || books.held_count() == own);
	EXPECT_TRUE(tn_arena_verify(a));
	tn_arena_trim(a);
	EXPECT_EQ(books.held_count(), own);
	tn_arena_destroy(a);
}

/* The bytes that rounding adds to live slots, in the figures and in a snapshot. */
TEST(edges, waste_of_slots) {
	void *slots[50], *objects[3];
	tn_slab_options so = {};
	so.name = "wasteful slab";
	so.expendable = true;
	tn_slab *s = tn_slab_create(200, 512, &so);
	tn_shared_slab_options sho = {};
	sho.name = "wasteful shared slab";
	sho.expendable = true;
	tn_shared_slab *shared = tn_shared_slab_create(200, 512, &sho);
	tn_pool_options po = {};
	po.name = "wasteful pool";
	tn_pool *p = tn_pool_create(200, 512, &po);
	ASSERT_TRUE(tn_slab_alloc_batch(s, slots, 50));
	tn_slab_free_batch(s, slots, 20);
	ASSERT_TRUE(tn_shared_slab_alloc_batch(shared, slots, 50));
	tn_shared_slab_free_batch(shared, slots, 19);
	for (void *&object : objects)
		ASSERT_NE(object = tn_pool_get(p), nullptr);
	tn_pool_put(p, objects[0]);
	tn_stats stats[3];
	tn_slab_stats(s, &stats[0]);
	tn_shared_slab_stats(shared, &stats[1]);
	tn_pool_stats(p, &stats[2]);
	size_t live[3] = {30, 31, 2};
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(stats[i].live_count, live[i]);
		EXPECT_EQ(stats[i].waste_bytes, live[i] * 312);
	}
	std::map<std::string, tn_stats> seen;
	tn_stats_snapshot(
		[](const tn_listed *found, void *ctx) {
			(*static_cast<std::map<std::string, tn_stats> *>(ctx))[found->stats.name] = found->stats;
			return true;
		},
		&seen);
	for (const char *name : {so.name, sho.name, po.name})
		EXPECT_EQ(seen[name].waste_bytes, seen[name].live_count * 312) << name;
	EXPECT_EQ(seen[so.name].live_count, 30u);
	tn_pool_put(p, objects[1]);
	tn_pool_put(p, objects[2]);
	tn_pool_destroy(p);
	tn_shared_slab_destroy(shared);
	tn_slab_destroy(s);
}

/* Idle objects of a pool that got and put 200. */
size_t idle_of(const tn_pool_options &o) {
	tn_pool *p = tn_pool_create(64, 0, &o);
	void *objects[200];
	for (void *&object : objects)
		EXPECT_NE(object = tn_pool_get(p), nullptr);
	for (void *object : objects)
		tn_pool_put(p, object);
	tn_pool_flush(p);
	tn_stats s;
	tn_pool_stats(p, &s);
	tn_pool_destroy(p);
	return s.slot_count;
}

TEST(edges, one_bound_of_a_pool_without_the_other) {
	tn_pool_options o = {};
	o.decay_ms = TN_NONE;
	EXPECT_EQ(idle_of(o), 200u);
	o.max_idle_bytes = size_t{1} << 40;
	for (size_t most : {1, 10, 100, 199}) {
		o.max_idle_objects = most;
		EXPECT_LE(idle_of(o), most);
		EXPECT_GT(idle_of(o), most / 2);
	}
	o.max_idle_objects = 0;
	for (size_t most : {1, 10, 100, 199}) {
		o.max_idle_bytes = most * 64;
		EXPECT_LE(idle_of(o), most);
		EXPECT_GT(idle_of(o), most / 2);
	}
}

/* The largest block that an arena with these options can serve at once. */
size_t largest(const tn_arena_options &o, size_t from) {
	for (size_t size = from;; size--) {
		tn_arena *a = tn_arena_create(&o);
		bool fits = a != nullptr && tn_arena_alloc(a, size, 1) != nullptr;
		tn_arena_destroy(a);
		if (fits || size == 0)
			return size;
	}
}

/* The room behind the head is used to the last 16 bytes, whatever a buffer or a limit leaves. */
TEST(edges, an_allocation_may_end_exactly_at_the_limit) {
	if (TN_MODE == TN_MODE_DEBUG)
		GTEST_SKIP() << "fences take room";
	alignas(16) static char buffer[4096];
	tn_arena_options o = {};
	o.buffer = buffer;
	o.fixed = true;
	o.buffer_bytes = 2000;
	size_t head = 2000 - largest(o, 2000);
	EXPECT_LE(head, 64u);
	for (; o.buffer_bytes < 2040; o.buffer_bytes++) {
		size_t room = largest(o, o.buffer_bytes);
		EXPECT_EQ(room, (o.buffer_bytes & ~size_t{15}) - head) << o.buffer_bytes;
	}
	ledger books;
	o = {};
	o.source = books.source();
	o.limit_bytes = 30000;
	head = 30000 - largest(o, 30000);
	EXPECT_LE(head, 512u);
	for (; o.limit_bytes < 30040; o.limit_bytes++) {
		size_t room = largest(o, o.limit_bytes);
		EXPECT_EQ(room, (o.limit_bytes & ~size_t{15}) - head) << o.limit_bytes;
	}
}

/* The child's address space holds little more than it has: commits fail in the middle of the range. */
TEST(edges, a_range_that_cannot_be_committed_refuses) {
	if (TENURE_SANITIZE[0] != '\0')
		GTEST_SKIP() << "the sanitizer needs memory of its own";
	pid_t child = fork();
	if (child == 0) {
		tn_arena_options o = {};
		o.reserve_bytes = 64 << 20;
		tn_arena *a = tn_arena_create(&o);
		if (a == nullptr || tn_arena_alloc(a, 1000, 16) == nullptr)
			_exit(1);
		rlimit little = {1, 1};
		setrlimit(RLIMIT_DATA, &little);
		size_t blocks = 0;
		char *last = nullptr;
		for (char *p; (p = static_cast<char *>(tn_arena_alloc(a, 100000, 16))) != nullptr; blocks++)
			std::memset(last = p, 1, 100000);
		if (errno != ENOMEM || blocks > 100 || !tn_arena_verify(a))
			_exit(2);
		/* Committed memory still serves. */
		tn_arena_reset(a);
		last = static_cast<char *>(tn_arena_alloc(a, 500, 16));
		if (last == nullptr)
			_exit(3);
		std::memset(last, 1, 500);
		_exit(0);
	}
	int status = 0;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_TRUE(WIFEXITED(status)) << status;
	EXPECT_EQ(WEXITSTATUS(status), 0);
}

} /* namespace */
} /* namespace test_edges */
