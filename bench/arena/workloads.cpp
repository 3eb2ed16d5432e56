/* bench/arena/workloads.cpp: the family `arena`: objects that die together. */
#include "arena/peers.h"
#include "harness/harness.h"
#include "harness/sizes.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace bench {
namespace {

constexpr size_t object_bytes = 96;

template <class A> inline void end(A &a, size_t count) {
	a.reset(count);
	barrier();
}

template <size_t count, class A> inline void fill(A &a) {
	for (size_t i = 0; i < count; i++) {
		char *p = static_cast<char *>(a.alloc(object_bytes, i));
		escape(p);
		*p = 1;
	}
}

template <class A, class = void> struct can_tell_committed : std::false_type {};
template <class A>
struct can_tell_committed<A, std::void_t<decltype(std::declval<A>().committed_bytes())>>
	: std::true_type {};

template <class A> void describe_committed(const A &a, row &r) {
	if constexpr (can_tell_committed<A>::value)
		r.fields["committed_bytes"] = a.committed_bytes();
}

/* Requests of `count` objects, each request ended by a reset. */
template <class A, size_t count> class requests : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			fill<count>(a_);
			end(a_, count);
		}
		return ticks() - from;
	}
	void describe(row &r) override {
		describe_committed(a_, r);
	}

private:
	A a_;
};

constexpr size_t mixed_count = 80;
constexpr auto sizes = mixed_sizes<mixed_count>(9, 256);

template <class A> class mixed_requests : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			for (size_t i = 0; i < mixed_count; i++) {
				char *p = static_cast<char *>(a_.alloc(sizes[i], i));
				escape(p);
				*p = 1;
			}
			end(a_, mixed_count);
		}
		return ticks() - from;
	}

private:
	A a_;
};

/* Measures only the end of a request. */
template <class A, size_t count> class resets : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t sum = 0;
		for (size_t r = 0; r < repeats; r++) {
			fill<count>(a_);
			uint64_t from = ticks();
			end(a_, count);
			sum += ticks() - from;
		}
		return sum;
	}

private:
	A a_;
};

/* Makes and ends the allocator itself in every repeat. */
template <class A, size_t count> class lifetimes : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			A made;
			A *a = &made;
			escape(a);
			fill<count>(*a);
			if (A::frees_each)
				end(*a, count);
		}
		return ticks() - from;
	}
};

/* Times every request by itself. */
template <class A, size_t count> class pauses : public timed_contestant {
private:
	uint64_t time_one() override {
		uint64_t from = ticks();
		fill<count>(a_);
		end(a_, count);
		return ticks() - from;
	}

	A a_;
};

template <template <class> class C, size_t floor_bytes> std::vector<subject> reused_by_all() {
	return {
		make_subject<C<tenure_arena>>("tenure-arena"),
		make_subject<C<floor_arena<floor_bytes>>>("floor"),
		make_subject<C<glibc_each>>("glibc"),
		make_subject<C<loaded_each<mimalloc_calls>>>("mimalloc"),
		make_subject<C<loaded_each<jemalloc_calls>>>("jemalloc"),
		make_subject<C<loaded_each<tcmalloc_calls>>>("tcmalloc"),
		make_subject<C<pmr_reused>>("pmr"),
		make_subject<C<llvm_bump>>("llvm"),
		make_subject<C<foonathan_stack>>("foonathan"),
		make_subject<C<apr>>("apr"),
		make_subject<C<talloc_pooled>>("talloc"),
		make_subject<C<glibc_obstack>>("obstack"),
	};
}

template <class A> using lifetimes_20 = lifetimes<A, 20>;

std::vector<subject> made_by_all() {
	return {
		make_subject<lifetimes_20<tenure_lifetime>>("tenure-arena"),
		make_subject<lifetimes_20<floor_lifetime>>("floor"),
		make_subject<lifetimes_20<glibc_each>>("glibc"),
		make_subject<lifetimes_20<mimalloc_heap>>("mimalloc"),
		make_subject<lifetimes_20<loaded_each<jemalloc_calls>>>("jemalloc"),
		make_subject<lifetimes_20<loaded_each<tcmalloc_calls>>>("tcmalloc"),
		make_subject<lifetimes_20<pmr_lifetime>>("pmr"),
		make_subject<lifetimes_20<llvm_bump>>("llvm"),
		make_subject<lifetimes_20<foonathan_stack>>("foonathan"),
		make_subject<lifetimes_20<apr>>("apr"),
		make_subject<lifetimes_20<talloc_pooled>>("talloc"),
		make_subject<lifetimes_20<glibc_obstack>>("obstack"),
	};
}

template <class A> using requests_80 = requests<A, 80>;
template <class A> using requests_200000 = requests<A, 200000>;
template <class A> using resets_200000 = resets<A, 200000>;
template <class A> using pauses_80 = pauses<A, 80>;

/* Touches the pages first, so that no subject's memory figure contains them. */
void touch_live() {
	std::fill_n(live, most_objects, static_cast<void *>(live));
}

workload make_workload(const char *name, double ops, std::vector<subject> subjects) {
	workload w;
	w.name = name;
	w.ops = ops;
	w.subjects = std::move(subjects);
	w.setup = touch_live;
	return w;
}

std::vector<workload> workloads() {
	constexpr size_t bulk_bytes = 200000 * object_bytes;
	std::vector<workload> all = {
		make_workload("request-80x96", 80, reused_by_all<requests_80, chunk_bytes>()),
		make_workload("request-mixed", mixed_count, reused_by_all<mixed_requests, chunk_bytes>()),
		make_workload("bulk-200000x96", 200000, reused_by_all<requests_200000, bulk_bytes>()),
		make_workload("bulk-free-200000", 200000, reused_by_all<resets_200000, bulk_bytes>()),
		make_workload("arena-create-20-destroy", 1, made_by_all()),
		make_workload("pause-80x96", 80, reused_by_all<pauses_80, chunk_bytes>()),
	};
	workload &bulk = all[2], &bulk_free = all[3], &pause = all[5];
	bulk.objects = 200000;
	bulk.unmeasured = bulk_free.unmeasured = 1;
	bulk.least_repeats = bulk_free.least_repeats = 3;
	pause.total_repeats = 50000;
	pause.unmeasured = 16;
	return all;
}

const registration arena("arena", workloads);

}
}
