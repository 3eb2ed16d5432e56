/* bench/scope/listing.cpp: the family `scope`: the costs of a place in the list and of a look at it. */
#include "harness/harness.h"
#include "tenure/scope.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace bench {
namespace {

/* ---- a name ---- */

/* Makes and ends an allocator, with a name and without; the result is the difference. */
template <class Kind> class named_lives : public contestant {
public:
	uint64_t run(size_t repeats) override {
		last_named_ = time(repeats, "bench");
		last_unnamed_ = time(repeats, nullptr);
		last_repeats_ = repeats;
		return last_named_ > last_unnamed_ ? last_named_ - last_unnamed_ : 1;
	}
	void accept() override {
		named_ns_.push_back(ns_of(last_named_));
		unnamed_ns_.push_back(ns_of(last_unnamed_));
	}
	void describe(row &r) override {
		r.fields["named_ns"] = median(named_ns_);
		r.fields["unnamed_ns"] = median(unnamed_ns_);
	}

private:
	static uint64_t time(size_t repeats, const char *name) {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			Kind::end(Kind::make(name));
		return ticks() - from;
	}
	double ns_of(uint64_t took) const {
		return static_cast<double>(took) * ns_per_tick() / static_cast<double>(last_repeats_);
	}

	uint64_t last_named_ = 0, last_unnamed_ = 0;
	size_t last_repeats_ = 1;
	std::vector<double> named_ns_, unnamed_ns_;
};

template <class T> T *required(T *made) {
	if (made == nullptr)
		std::abort();
	return made;
}

struct arena_kind {
	static tn_arena *make(const char *name) {
		tn_arena_options options{};
		options.name = name;
		return required(tn_arena_create(&options));
	}
	static void end(tn_arena *a) {
		tn_arena_destroy(a);
	}
};

struct slab_kind {
	static tn_slab *make(const char *name) {
		tn_slab_options options{};
		options.name = name;
		return required(tn_slab_create(64, 16, &options));
	}
	static void end(tn_slab *s) {
		tn_slab_destroy(s);
	}
};

struct heap_kind {
	static tn_heap *make(const char *name) {
		tn_heap_options options{};
		options.name = name;
		return required(tn_heap_create(&options));
	}
	static void end(tn_heap *h) {
		tn_heap_destroy(h);
	}
};

/* ---- a thousand listed allocators ---- */

constexpr size_t listed_count = 1000;

/* 250 arenas, slabs, heaps and scopes each, none of them empty. */
class listed_thousand {
public:
	listed_thousand() {
		for (size_t i = 0; i < listed_count / 4; i++) {
			arenas_[i] = arena_kind::make("arena");
			slabs_[i] = slab_kind::make("slab");
			heaps_[i] = heap_kind::make("heap");
			scopes_[i] = required(tn_scope_create(nullptr, "scope", nullptr));
			required(tn_arena_alloc(arenas_[i], 100, 16));
			required(tn_slab_alloc(slabs_[i]));
			required(tn_heap_alloc(heaps_[i], 100, 16));
			required(tn_scope_alloc(scopes_[i], 100, 16));
		}
	}
	~listed_thousand() {
		for (size_t i = 0; i < listed_count / 4; i++) {
			tn_arena_destroy(arenas_[i]);
			tn_slab_destroy(slabs_[i]);
			tn_heap_destroy(heaps_[i]);
			tn_scope_destroy(scopes_[i]);
		}
	}
	listed_thousand(const listed_thousand &) = delete;
	listed_thousand &operator=(const listed_thousand &) = delete;

	tn_scope *scope() const {
		return scopes_[0];
	}
	tn_heap *heap() const {
		return heaps_[0];
	}

private:
	tn_arena *arenas_[listed_count / 4];
	tn_slab *slabs_[listed_count / 4];
	tn_heap *heaps_[listed_count / 4];
	tn_scope *scopes_[listed_count / 4];
};

/* One thousand for each process, shared by its subjects. */
const listed_thousand &listed_by_all() {
	static const listed_thousand all;
	return all;
}

bool add_live(const tn_listed *listed, void *sum) {
	*static_cast<size_t *>(sum) += listed->stats.live_bytes;
	return true;
}

void take_snapshot() {
	size_t live_bytes = 0;
	size_t visited = tn_stats_snapshot(add_live, &live_bytes);
	if (visited >= listed_count && live_bytes > 0)
		return;
	std::fprintf(stderr, "snapshot: saw %zu allocators with %zu bytes\n", visited, live_bytes);
	std::exit(1);
}

class snapshots : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			take_snapshot();
		return ticks() - from;
	}

private:
	listed_thousand all_;
};

/* ---- an owner at work during snapshots ---- */

/* The other thread's work when it takes no snapshots: it reads as much memory of its own, so that its
 * CPU is as busy. */
void read_own_memory() {
	static size_t own[listed_count][16];
	size_t sum = 0;
	for (const auto &line : own)
		for (const size_t &word : line)
			sum += *static_cast<const volatile size_t *>(&word);
	size_t *p = &sum;
	escape(p);
}

/* Repeats `work` on another CPU until destroyed; the constructor returns after the first time. */
class neighbour {
public:
	explicit neighbour(void (*work)()) : thread_([this, work] { repeat(work); }) {
		while (!begun_.load())
			std::this_thread::yield();
	}
	~neighbour() {
		done_.store(true);
		thread_.join();
	}

private:
	void repeat(void (*work)()) {
		pin(1);
		do {
			work();
			begun_.store(true);
		} while (!done_.load());
	}

	std::atomic<bool> begun_{false}, done_{false};
	std::thread thread_;
};

/* Takes, writes and frees a block of a listed heap. */
struct heap_pairs {
	static void live(const listed_thousand &all) {
		void *p = required(tn_heap_alloc(all.heap(), 64, 16));
		escape(p);
		*static_cast<size_t *>(p) = 1;
		tn_heap_free(all.heap(), p);
	}
};

/* Makes a scope below a listed one, takes and writes 20 objects in it, and ends it. */
struct short_scopes {
	static void live(const listed_thousand &all) {
		tn_scope *s = required(tn_scope_create(all.scope(), "request", nullptr));
		for (size_t i = 0; i < 20; i++) {
			void *p = required(tn_scope_alloc(s, 96, 16));
			escape(p);
			*static_cast<size_t *>(p) = i;
		}
		tn_scope_destroy(s);
	}
};

template <class Work> class owners : public contestant {
public:
	explicit owners(bool watched) : watched_(watched), all_(listed_by_all()) {
		pin();
	}
	uint64_t run(size_t repeats) override {
		neighbour meanwhile(watched_ ? take_snapshot : read_own_memory);
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			Work::live(all_);
		return ticks() - from;
	}

private:
	bool watched_;
	const listed_thousand &all_;
};

template <class Work> workload make_owners(const char *name) {
	workload w;
	w.name = name;
	w.threads = 2;
	w.all_cpus = true;
	w.subjects = {
		make_subject<owners<Work>>("tenure-unwatched", false),
		make_subject<owners<Work>>("tenure-watched", true),
	};
	return w;
}

std::vector<workload> workloads() {
	workload create;
	create.name = "list-create";
	create.subjects = {
		make_subject<named_lives<arena_kind>>("tenure-arena"),
		make_subject<named_lives<slab_kind>>("tenure-slab"),
		make_subject<named_lives<heap_kind>>("tenure-heap"),
	};
	workload snapshot;
	snapshot.name = "snapshot-1000";
	snapshot.subjects = {make_subject<snapshots>("tenure-snapshot")};
	return {create, snapshot, make_owners<heap_pairs>("snapshot-owner-heap"),
		make_owners<short_scopes>("snapshot-owner-scope")};
}

const registration listing("scope", workloads);

}
}
