/* Random programs on trees of scopes against a naive model: the tree and the order of its children,
 * the bytes of each scope, the deferred calls and their order, and refusals. */
#include "use.h"

#include "ledger.h"
#include "program.h"

#include <algorithm>
#include <list>

namespace model_scope {
namespace {

struct node;
struct deferred;

struct piece {
	char *p;
	size_t size;
	uint64_t seed;
};

/* An entry listed below a scope: another scope, or an allocator that the scope owns. */
struct entry {
	node *scope;
	tn_kind kind;
	void *owned;
	std::string name;
};

struct node {
	tn_scope *s = nullptr;
	node *parent = nullptr;
	std::string name, ident;
	std::vector<entry> below;      /* newest last */
	std::vector<deferred *> calls; /* newest last */
	std::vector<piece> pieces;
	const tn_source *origin = nullptr;
	size_t external = 0, hard = 0, soft = 0;
	uint64_t resets = 0, id = 0;
	bool ending = false;
	bool told = false; /* on_soft was called, and the scope was not seen below the limit since */
};

class scope_program;

struct deferred {
	scope_program *program;
	size_t actions;
};

class scope_program {
public:
	scope_program(uint64_t seed, reach &to) : d(seed), r(to) {
		tn_scope_options options = {};
		add(nullptr, options);
		options.shared = true;
		add(nullptr, options);
		options.source = books.source();
		add(nullptr, options)->origin = books.source();
	}
	~scope_program() {
		while (!nodes.empty() && !::testing::Test::HasFailure())
			do_destroy(&nodes.front(), false);
		EXPECT_TRUE(::testing::Test::HasFailure() || books.held_count() == 0);
	}

	void run(uint64_t ops) {
		for (uint64_t i = 0; i < ops && !::testing::Test::HasFailure(); i++) {
			if (!d.one_in(30))
				books.heal();
			step();
			check_limits();
			if (i % 32 == 0)
				check_all();
		}
		check_all();
	}

private:
	enum { MOST = 50, NESTED_MOST = 4 };

	/* A destroy or reset in progress: the library has reached `at`. */
	struct frame {
		node *top, *at;
	};

	void step() {
		node *n = any();
		switch (d.below(27)) {
		case 0:
		case 1:
		case 2:
		case 3:
			return do_create(n);
		case 4:
			return do_destroy(n);
		case 5:
			return do_reset(n);
		case 6:
		case 7:
			return do_adopt(frames.empty() || d.one_in(2) ? n : above_an_end(n), any());
		case 8:
		case 9:
		case 10:
			return do_defer(n);
		case 11:
			return do_undefer(n);
		case 12:
			return do_limit(n);
		case 13:
		case 14:
			return do_external(n);
		case 15:
			return do_own(n);
		case 16:
		case 23:
			return do_use_owned(n);
		case 17:
			return do_end_owned(n);
		case 18:
			return do_trim(n);
		case 19:
			return check_stats(*n);
		case 20:
			return check_snapshot();
		case 21:
			return check_tree(*n);
		case 22:
			books.fail(1, d.between(1, 3));
			return;
		default:
			return do_alloc(n);
		}
	}

	/* ---- the model ---- */

	node *any() {
		auto at = nodes.begin();
		std::advance(at, d.below(nodes.size()));
		return &*at;
	}

	node *above_an_end(node *otherwise) {
		node *above = frames.back().top->parent;
		return above == nullptr ? otherwise : above;
	}

	node *add(node *parent, const tn_scope_options &options) {
		nodes.emplace_back();
		node *n = &nodes.back();
		n->name = "n" + std::to_string(serial++);
		n->ident = d.one_in(3) ? "ident of " + n->name : "";
		tn_scope_options o = options;
		o.ident = d.one_in(2) && n->ident.empty() ? nullptr : n->ident.c_str();
		n->s = tn_scope_create(parent == nullptr ? nullptr : parent->s, n->name.c_str(), &o);
		EXPECT_NE(n->s, nullptr);
		n->parent = parent;
		list_of(parent).push_back({n, TN_KIND_SCOPE, nullptr, n->name});
		if (parent != nullptr)
			n->origin = parent->origin;
		return n;
	}

	std::vector<entry> &list_of(node *parent) {
		return parent == nullptr ? roots : parent->below;
	}

	void unlink(node *n) {
		std::vector<entry> &list = list_of(n->parent);
		list.erase(std::find_if(list.begin(), list.end(), [n](entry &e) { return e.scope == n; }));
	}

	void remove(node *n) {
		unlink(n);
		nodes.remove_if([n](const node &one) { return &one == n; });
	}

	static node *newest_child(const node &n) {
		for (auto e = n.below.rbegin(); e != n.below.rend(); ++e)
			if (e->scope != nullptr)
				return e->scope;
		return nullptr;
	}

	static bool is_above(const node *n, const node *below) {
		while (below != nullptr && below != n)
			below = below->parent;
		return below != nullptr;
	}

	bool has_ending_below(const node *n) const {
		for (const node &one : nodes)
			if (one.ending && &one != n && is_above(n, &one))
				return true;
		return false;
	}

	/* Bytes held by n and all scopes below it. */
	size_t held(const node *n) const {
		size_t bytes = 0;
		for (const node &one : nodes)
			if (is_above(n, &one))
				bytes += stats_of(one.s).committed_bytes + one.external;
		return bytes;
	}

	/* Whether `more` bytes exceed a limit from n up to, but not including, `until`. */
	bool exceeds(const node *n, size_t more, const node *until = nullptr) const {
		for (; n != until; n = n->parent)
			if (n->hard != 0 && (more > n->hard || held(n) > n->hard - more))
				return true;
		return false;
	}

	/* A chunk is larger than the request. */
	void expect_reason(const node *n, size_t size) {
		ASSERT_EQ(errno, ENOMEM);
		ASSERT_TRUE(books.failures() > failures || exceeds(n, 2 * size + 2 * mib)) << "no reason";
		r.hit(books.failures() > failures ? "failure" : "refused at a limit");
		failures = books.failures();
	}

	/* ---- ends ---- */

	/* The deferred call that comes next; scopes without further calls are gone by then. */
	deferred *advance(frame &f) {
		for (node *n = f.at;;) {
			for (node *child = newest_child(*n); child != nullptr; child = newest_child(*n)) {
				EXPECT_FALSE(child->ending);
				child->ending = true;
				n = child;
			}
			f.at = n;
			if (!n->calls.empty()) {
				deferred *call = n->calls.back();
				n->calls.pop_back();
				return call;
			}
			if (n == f.top)
				return nullptr;
			node *parent = n->parent;
			remove(n);
			n = parent;
		}
	}

	static void run_deferred(void *arg) {
		deferred *call = static_cast<deferred *>(arg);
		call->program->on_deferred(call);
	}

	void on_deferred(deferred *call) {
		ASSERT_FALSE(frames.empty());
		ASSERT_EQ(advance(frames.back()), call) << "not the call that comes next";
		r.hit("deferred call");
		for (const piece &one : frames.back().at->pieces)
			ASSERT_TRUE(filled(one.p, one.size, one.seed)) << "memory went before the call";
		size_t depth = frames.size();
		for (size_t i = 0; i < call->actions && !::testing::Test::HasFailure(); i++)
			if (depth < NESTED_MOST)
				step();
		ASSERT_TRUE(::testing::Test::HasFailure() || frames.size() == depth);
	}

	/* Ends the scope by `call` where that is legal now; returns whether it did. */
	template <typename F> bool end(node *n, F call) {
		if (n->ending) {
			call();
			r.hit("end of what is ending");
			return false;
		}
		if (has_ending_below(n))
			return false;
		n->ending = true;
		frames.push_back({n, n});
		call();
		EXPECT_EQ(advance(frames.back()), nullptr) << "a deferred call was left out";
		r.hit(frames.size() > 1 ? "end within an end" : "end");
		frames.pop_back();
		return !::testing::Test::HasFailure();
	}

	/* Replaces a root by a new one. */
	void do_destroy(node *n, bool replace = true) {
		bool root = n->parent == nullptr;
		if ((root && !frames.empty()) || !end(n, [n] { tn_scope_destroy(n->s); }))
			return;
		const tn_source *origin = n->origin;
		remove(n);
		r.hit(root ? "destroy of a root" : "destroy");
		if (!root || !replace)
			return;
		tn_scope_options options = {};
		options.source = origin;
		options.shared = d.one_in(2);
		add(nullptr, options)->origin = origin;
	}

	void do_reset(node *n) {
		if (!end(n, [n] { tn_scope_reset(n->s); }))
			return;
		n->ending = false;
		n->external = 0;
		n->resets++;
		n->below.clear();
		n->pieces.clear();
		r.hit("reset");
	}

	/* ---- operations ---- */

	void do_create(node *n) {
		if (n->ending) {
			EXPECT_REFUSED(create_below(n->s), EINVAL);
			r.hit("refused to what is ending");
			return;
		}
		if (nodes.size() >= MOST)
			return;
		tn_scope_options options = {};
		options.chunk_bytes = d.one_in(2) ? 4 * kib << d.below(4) : 0;
		options.chunk_bytes_max = d.one_in(3) ? TN_NONE : 0;
		add(n, options);
		r.hit("create");
	}

	void do_alloc(node *n) {
		size_t size = d.one_in(8) ? d.below(100000) : d.below(2000);
		size_t align = size_t{1} << d.below(d.one_in(10) ? 16 : 6);
		errno = 0;
		char *p = static_cast<char *>(tn_scope_alloc(n->s, size, align));
		if (p == nullptr)
			return expect_reason(n, size + align);
		ASSERT_TRUE(aligned_to(p, align));
		ASSERT_TRUE(tn_scope_owns(n->s, p));
		ASSERT_TRUE(n->origin == nullptr || books.holds(p, size));
		n->pieces.push_back({p, size, d.next()});
		fill(p, size, n->pieces.back().seed);
		r.hit(size > 50000 ? "alloc of much" : "alloc");
	}

	void do_defer(node *n) {
		/* Now and then one that exists already. */
		bool again = d.one_in(8) && !n->calls.empty();
		deferred *call = again ? n->calls[d.below(n->calls.size())] : nullptr;
		if (call == nullptr) {
			all_calls.push_back({this, d.below(4)});
			call = &all_calls.back();
		}
		errno = 0;
		if (tn_scope_defer(n->s, run_deferred, call)) {
			ASSERT_FALSE(n->ending);
			n->calls.push_back(call);
			r.hit("defer");
		} else if (n->ending) {
			ASSERT_EQ(errno, EINVAL);
			r.hit("refused to what is ending");
		} else {
			expect_reason(n, 100);
		}
	}

	void do_undefer(node *n) {
		deferred *call = n->calls.empty() ? nullptr : n->calls[d.below(n->calls.size())];
		ASSERT_EQ(tn_scope_undefer(n->s, run_deferred, call), call != nullptr);
		if (call == nullptr)
			return;
		auto newest = std::find(n->calls.rbegin(), n->calls.rend(), call);
		n->calls.erase(std::next(newest).base());
		r.hit("undefer");
	}

	void do_adopt(node *child, node *parent) {
		bool possible = child->parent != nullptr && !child->ending && !parent->ending &&
		                child->origin == parent->origin && !is_above(child, parent);
		const node *both = parent;
		while (possible && both != nullptr && !is_above(both, child))
			both = both->parent;
		bool fits = possible && !exceeds(parent, held(child), both);
		errno = 0;
		bool moved = tn_scope_adopt(child->s, parent->s);
		ASSERT_EQ(moved, fits) << child->name << " to " << parent->name;
		if (!moved) {
			ASSERT_EQ(errno, possible ? ENOMEM : EINVAL);
			r.hit(possible ? "adopt refused at a limit" : "adopt refused");
			return;
		}
		r.hit(has_ending_below(child) ? "adopt of what is above an end" : "adopt");
		if (child->parent == parent)
			return;
		unlink(child);
		child->parent = parent;
		parent->below.push_back({child, TN_KIND_SCOPE, nullptr, child->name});
	}

	static void on_soft(tn_scope *s, size_t held_bytes, void *ctx) {
		scope_program *m = static_cast<scope_program *>(ctx);
		m->r.hit("on_soft");
		for (node &n : m->nodes) {
			if (n.s != s)
				continue;
			EXPECT_TRUE(n.soft != 0 && held_bytes > n.soft);
			EXPECT_TRUE(!n.told || !m->frames.empty()) << "told again";
			n.told = true;
			return;
		}
		ADD_FAILURE() << "on_soft of no scope";
	}

	void do_limit(node *n) {
		tn_scope_limits limits = {};
		limits.hard_bytes = d.one_in(3)   ? held(n) + d.below(3000)
		                    : d.one_in(4) ? 1 + d.below(held(n) + 1)
		                                  : d.below(3 * mib);
		limits.hard_bytes = d.one_in(3) ? held(n) + d.below(3000) : d.below(3 * mib);
		if (d.one_in(2))
			limits.soft_bytes = 1 + d.below(d.one_in(2) ? 50000 : mib);
		limits.on_soft = d.one_in(10) ? nullptr : on_soft;
		limits.ctx = this;
		bool soft = limits.hard_bytes == 0 || limits.soft_bytes <= limits.hard_bytes;
		bool valid = soft && (limits.soft_bytes == 0 || limits.on_soft != nullptr);
		bool fits = limits.hard_bytes == 0 || held(n) <= limits.hard_bytes;
		if (valid && fits) {
			n->hard = limits.hard_bytes;
			n->soft = limits.soft_bytes;
			n->told = false;
		}
		errno = 0;
		ASSERT_EQ(tn_scope_limit(n->s, &limits), valid && fits);
		ASSERT_EQ(errno, valid && fits ? 0 : valid ? ENOMEM : EINVAL);
		r.hit(valid && fits ? "limit" : valid ? "limit refused" : "limit that contradicts itself");
	}

	void do_external(node *n) {
		size_t bytes = d.one_in(3) ? 0 : d.below(d.one_in(2) ? 3000 : 500000);
		bool fits = bytes <= n->external || !exceeds(n, bytes - n->external);
		size_t before = std::exchange(n->external, fits ? bytes : n->external);
		errno = 0;
		ASSERT_EQ(tn_scope_external(n->s, bytes), fits) << "it was " << before;
		ASSERT_EQ(errno, fits ? 0 : ENOMEM);
		r.hit(fits ? "external" : "external refused");
	}

	void do_own(node *n) {
		std::string name = "o" + std::to_string(serial++);
		entry e = {nullptr, TN_KIND_ARENA, nullptr, name};
		tn_arena_options arena_options = {};
		arena_options.name = name.c_str();
		tn_slab_options slab_options = {};
		slab_options.name = name.c_str();
		slab_options.expendable = true;
		tn_heap_options heap_options = {};
		heap_options.name = name.c_str();
		heap_options.expendable = true;
		size_t which = d.below(3);
		errno = 0;
		if (which == 0)
			e.owned = tn_scope_arena(n->s, &arena_options);
		else if (which == 1)
			e.owned = tn_scope_slab(n->s, d.between(1, 300), 0, &slab_options);
		else
			e.owned = tn_scope_heap(n->s, &heap_options);
		e.kind = which == 0 ? TN_KIND_ARENA : which == 1 ? TN_KIND_SLAB : TN_KIND_HEAP;
		if (e.owned == nullptr && n->ending) {
			ASSERT_EQ(errno, EINVAL);
			r.hit("refused to what is ending");
		} else if (e.owned == nullptr) {
			expect_reason(n, mib);
		} else {
			ASSERT_FALSE(n->ending);
			n->below.push_back(e);
			r.hit(tn_kind_name(e.kind));
		}
	}

	entry *any_owned(node *n) {
		std::vector<entry *> all;
		for (entry &e : n->below)
			if (e.scope == nullptr)
				all.push_back(&e);
		return all.empty() ? nullptr : all[d.below(all.size())];
	}

	void do_use_owned(node *n) {
		entry *e = any_owned(n);
		if (e == nullptr)
			return;
		size_t size = d.below(5000);
		errno = 0;
		void *p = e->kind == TN_KIND_ARENA  ? tn_arena_alloc(static_cast<tn_arena *>(e->owned), size, 8)
		          : e->kind == TN_KIND_SLAB ? tn_slab_alloc(static_cast<tn_slab *>(e->owned))
		                                    : tn_heap_alloc(static_cast<tn_heap *>(e->owned), size, 8);
		if (p == nullptr)
			return expect_reason(n, mib);
		r.hit("alloc of what is owned");
	}

	void do_end_owned(node *n) {
		entry *e = any_owned(n);
		if (e == nullptr)
			return;
		if (e->kind == TN_KIND_ARENA)
			tn_arena_destroy(static_cast<tn_arena *>(e->owned));
		else if (e->kind == TN_KIND_SLAB)
			tn_slab_destroy(static_cast<tn_slab *>(e->owned));
		else
			tn_heap_destroy(static_cast<tn_heap *>(e->owned));
		n->below.erase(n->below.begin() + (e - n->below.data()));
		r.hit("end of what is owned");
	}

	void do_trim(node *n) {
		size_t before = stats_of(n->s).committed_bytes;
		size_t bytes = tn_scope_trim(n->s);
		ASSERT_EQ(stats_of(n->s).committed_bytes, before - bytes);
		r.hit(bytes == 0 ? "trim of nothing" : "trim");
	}

	/* ---- looking ---- */

	void check_limits() {
		for (node &n : nodes) {
			if (n.hard == 0 && n.soft == 0)
				continue;
			size_t now = held(&n);
			ASSERT_TRUE(n.hard == 0 || now <= n.hard) << n.name << " holds too much";
			if (n.soft == 0)
				continue;
			ASSERT_TRUE(now <= n.soft || n.told) << n.name << " was not told";
			n.told = n.told && now > n.soft;
		}
	}

	void check_stats(const node &n) {
		tn_stats own, subtree;
		tn_scope_stats(n.s, &own, &subtree);
		ASSERT_EQ(own.name, n.name);
		ASSERT_EQ(own.external_bytes, n.external);
		ASSERT_EQ(own.resets, n.resets);
		ASSERT_GE(own.committed_bytes, own.live_bytes);
		tn_stats sum = {};
		for (const node &one : nodes) {
			tn_stats stats = stats_of(one.s);
			if (!is_above(&n, &one))
				continue;
			sum.live_bytes += stats.live_bytes;
			sum.committed_bytes += stats.committed_bytes;
			sum.external_bytes += stats.external_bytes;
			sum.chunk_count += stats.chunk_count;
		}
		ASSERT_EQ(subtree.live_bytes, sum.live_bytes);
		ASSERT_EQ(subtree.committed_bytes, sum.committed_bytes);
		ASSERT_EQ(subtree.external_bytes, sum.external_bytes);
		ASSERT_EQ(subtree.chunk_count, sum.chunk_count);
		ASSERT_TRUE(
			n.origin == nullptr || n.parent != nullptr || sum.committed_bytes == books.held_bytes());
		r.hit("stats");
	}

	void check_tree(const node &n) {
		ASSERT_EQ(tn_scope_parent(n.s), n.parent == nullptr ? nullptr : n.parent->s);
		std::vector<tn_scope *> expected;
		for (auto e = n.below.rbegin(); e != n.below.rend(); ++e)
			if (e->scope != nullptr)
				expected.push_back(e->scope->s);
		ASSERT_EQ(children_of(n.s), expected);
		ASSERT_TRUE(tn_scope_verify(n.s));
		r.hit("tree");
	}

	/* The entries of a list, newest first, each followed by what is below it. */
	void expect_listed(const std::vector<entry> &list, uint64_t parent_id, unsigned depth,
		const std::vector<tn_listed> &found, size_t &at) {
		for (auto e = list.rbegin(); e != list.rend(); ++e) {
			ASSERT_LT(at, found.size()) << e->name << " is missing";
			const tn_listed &l = found[at++];
			ASSERT_EQ(l.stats.name, e->name);
			ASSERT_EQ(l.kind, e->kind);
			ASSERT_EQ(l.depth, depth);
			ASSERT_EQ(l.parent_id, parent_id);
			if (e->scope == nullptr)
				continue;
			node &n = *e->scope;
			ASSERT_TRUE(n.id == 0 || n.id == l.id);
			n.id = l.id;
			ASSERT_EQ(l.ident, n.ident);
			ASSERT_EQ(l.stats.external_bytes, n.external);
			size_t live = 0;
			for (const piece &one : n.pieces)
				live += one.size;
			ASSERT_GE(l.stats.live_bytes, live);
			expect_listed(n.below, l.id, depth + 1, found, at);
		}
	}

	void check_snapshot() {
		std::vector<tn_listed> found = snapshot();
		size_t at = 1;
		expect_listed(roots, 0, 0, found, at);
		ASSERT_TRUE(::testing::Test::HasFailure() || at == found.size());
		r.hit(frames.empty() ? "snapshot" : "snapshot within an end");
	}

	void check_all() {
		for (const node &n : nodes) {
			for (const piece &one : n.pieces)
				ASSERT_TRUE(filled(one.p, one.size, one.seed)) << "a live block was changed";
			check_stats(n);
			check_tree(n);
		}
		check_snapshot();
	}

	dice d;
	reach &r;
	ledger books;
	std::list<node> nodes;
	std::vector<entry> roots;
	std::deque<deferred> all_calls;
	std::vector<frame> frames;
	uint64_t serial = 0;
	size_t failures = 0;
};

TEST(model_scope, random_programs) {
	uint64_t ops = program_ops(20000);
	reach r;
	if (!run_programs<scope_program>(ops, 1000, r))
		return;
	uint64_t often = ops / 200;
	uint64_t seldom = ops / 3000;
	for (const char *op : {"create", "alloc", "defer", "undefer", "deferred call", "adopt",
			 "adopt refused", "end", "destroy", "reset", "limit", "external", "arena", "slab", "heap",
			 "alloc of what is owned", "stats", "tree", "snapshot", "refused at a limit"})
		r.expect(op, often);
	for (const char *op :
		{"alloc of much", "failure", "end within an end", "end of what is ending", "destroy of a root",
			"refused to what is ending", "adopt refused at a limit", "adopt of what is above an end",
			"on_soft", "limit refused", "limit that contradicts itself", "external refused",
			"end of what is owned", "trim of nothing", "snapshot within an end"})
		r.expect(op, seldom);
	/* Debug gives chunks back at every reset. */
	r.expect("trim", debug_mode ? 0 : seldom);
}

} /* namespace */
} /* namespace model_scope */
