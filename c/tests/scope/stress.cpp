/* Chains of scopes deeper than any stack, and forks of a process whose threads are inside shared
 * roots and the listing: nothing hangs, the child may use every scope, and the parent is not
 * affected. The other threads never call malloc: AddressSanitizer's malloc cannot stand a fork
 * beside it. */
#include "use.h"

#include "crowd.h"

#include <sys/resource.h>

namespace stress_scope {
namespace {

/* ---- depth ---- */

size_t available_bytes() {
	unsigned long long kibibytes = 0;
	char line[128];
	FILE *f = std::fopen("/proc/meminfo", "r");
	while (f != nullptr && std::fgets(line, sizeof line, f) != nullptr)
		if (std::sscanf(line, "MemAvailable: %llu", &kibibytes) == 1)
			break;
	if (f != nullptr)
		std::fclose(f);
	return static_cast<size_t>(kibibytes) * kib;
}

size_t ended = 0;

void count_end(void *) {
	ended++;
}

/* A chain below `top`; every thousandth scope has memory and a deferred call. */
bool make_chain(tn_scope *top, size_t depth) {
	for (size_t i = 0; i < depth; i++) {
		top = create_below(top);
		if (top == nullptr || !tn_scope_external(top, 1))
			return false;
		if (i % 1000 == 0 && !tn_scope_defer(top, count_end, nullptr))
			return false;
	}
	return true;
}

bool count_visit(const tn_listed *, void *ctx) {
	++*static_cast<size_t *>(ctx);
	return true;
}

/* Returns an exit status: 0, or a number for the check that failed. */
int use_chain(size_t depth) {
	tn_scope *root = make_scope("root").release(), *other = make_scope("other").release();
	size_t visited = 0;
	tn_scope *top = create_below(root);
	if (!make_chain(top, depth))
		return 2;
	if (stats_below(root).external_bytes != depth)
		return 3;
	tn_scope_limits limits = {};
	limits.hard_bytes = depth * 100;
	if (!tn_scope_limit(root, &limits) || !tn_scope_adopt(top, other) || !tn_scope_verify(other))
		return 4;
	if (!tn_scope_external(root, limits.hard_bytes) || tn_scope_adopt(top, root))
		return 5;
	tn_stats_snapshot(count_visit, &visited);
	if (visited != depth + 4)
		return 6;
	FILE *out = std::fopen("/dev/null", "w");
	tn_scope_print(other, out);
	std::fclose(out);
	tn_scope_reset(top);
	if (ended != (depth + 999) / 1000 || !tn_scope_external(root, 0) || !tn_scope_adopt(top, root))
		return 7;
	if (!make_chain(top, depth))
		return 8;
	tn_scope_destroy(root);
	tn_scope_destroy(other);
	return ended == 2 * ((depth + 999) / 1000) ? 0 : 9;
}

TEST(stress_scope, deep_chains_with_a_small_stack) {
	/* Ten million scopes need 8 GB, so only one mode at a time runs so many. */
	size_t depth = release_mode ? times(10000000, 200000) : times(500000, 50000);
	if (available_bytes() < depth * kib + 2048 * mib) {
		std::printf("%zu MiB are available: the chain has 200,000 scopes instead of %zu\n",
			available_bytes() / mib, depth);
		depth = 200000;
	}
	int status = in_child(
		[&] {
			const rlimit stack = {256 * kib, 256 * kib};
			return setrlimit(RLIMIT_STACK, &stack) == 0 ? use_chain(depth) : 1;
		},
		300);
	EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
}

/* ---- fork ---- */

constexpr size_t churners = 3;

std::atomic<size_t> broken{0};

void use_tree(dice &d) {
	tn_scope *all[20] = {tn_scope_create(nullptr, "tree", nullptr)};
	for (size_t i = 1; i < 20; i++) {
		all[i] = tn_scope_create(all[d.below(i)], "node", nullptr);
		broken += tn_scope_alloc(all[i], 100, 8) == nullptr;
	}
	tn_scope_destroy(all[d.between(1, 19)]);
	tn_scope_reset(all[0]);
	tn_scope_destroy(all[0]);
}

void use_shared_root(tn_scope *root, tn_scope *other, dice &d) {
	tn_scope *s = tn_scope_create(root, "guest", nullptr);
	broken += tn_scope_alloc(s, 100, 8) == nullptr || !tn_scope_external(s, 10);
	broken += tn_scope_create(s, "below", nullptr) == nullptr || !tn_scope_adopt(s, other);
	broken += tn_scope_slab(s, 64, 0, nullptr) == nullptr;
	if (d.one_in(2))
		broken += !tn_scope_adopt(s, root);
	tn_scope_destroy(s);
}

void use_names(dice &d) {
	tn_arena_options options = {};
	options.name = "named";
	tn_arena *a = tn_arena_create(&options);
	tn_arena_alloc(a, d.below(100000), 8);
	tn_arena_destroy(a);
}

struct two_roots {
	two_roots() {
		tn_scope_options options = {};
		options.shared = true;
		first = make_scope("first", options);
		second = make_scope("second", options);
		tn_scope_limits limits = {};
		limits.hard_bytes = 64 * mib;
		EXPECT_TRUE(tn_scope_limit(first.get(), &limits));
	}
	void use(dice &d) {
		use_tree(d);
		use_shared_root(first.get(), second.get(), d);
		use_names(d);
	}
	scope_owner first, second;
};

/* Returns an exit status: 0, or a number for the check that failed. */
int use_in_child(two_roots &both, tn_scope *mine) {
	dice d(1);
	size_t visited = 0;
	tn_stats_snapshot(count_visit, &visited);
	if (visited < 4 || visited > 4 + churners * 30)
		return 2;
	for (int i = 0; i < 20; i++)
		both.use(d);
	if (!tn_scope_verify(mine) || !tn_scope_adopt(mine, both.second.get()))
		return 3;
	tn_scope_destroy(mine);
	tn_trim_all();
	return broken > 0 ? 4 : 0;
}

TEST(stress_scope, forks_while_three_churn) {
	two_roots both;
	std::atomic<bool> stop{false};
	std::atomic<size_t> begun{0};
	std::vector<std::thread> threads;
	for (uint64_t t = 0; t < churners; t++)
		threads.emplace_back([&, t] {
			begun++;
			for (dice d(program_seed() + t); !stop;)
				both.use(d);
		});
	while (begun < churners)
		std::this_thread::yield();
	tn_scope *mine = create_below(both.first.get(), "mine");
	tn_scope_alloc(create_below(mine), 100, 8);
	for (size_t i = 0; i < times(debug_mode ? 500 : 3000, 60) && !HasFailure(); i++) {
		int status = in_child([&] { return use_in_child(both, mine); }, 20);
		EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
	}
	stop = true;
	for (std::thread &thread : threads)
		thread.join();
	EXPECT_EQ(children_of(both.first.get()), std::vector<tn_scope *>{mine});
	EXPECT_TRUE(children_of(both.second.get()).empty());
	EXPECT_TRUE(tn_scope_verify(both.first.get()));
	EXPECT_EQ(stats_below(both.first.get()).external_bytes, 0u);
	EXPECT_EQ(broken, 0u);
}

} /* namespace */
} /* namespace stress_scope */
