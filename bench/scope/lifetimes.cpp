/* bench/scope/lifetimes.cpp: the family `scope`: lifetimes below a parent. */
#include "harness/harness.h"
#include "harness/sizes.h"
#include "scope/peers.h"

#include <cstdio>

namespace bench {
namespace {

/* A lifetime without an allocation. */
template <class A> class empty_lifetimes : public contestant {
public:
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++) {
			a_.begin();
			barrier();
			a_.end(0);
			barrier();
		}
		return ticks() - from;
	}

private:
	A a_;
};

constexpr size_t object_count = 80;
constexpr auto sizes = mixed_sizes<object_count>(16, 256);

/* A lifetime with 80 objects, each written in its first word, and three deferred calls. */
template <class A> class request_lifetimes : public contestant {
public:
	uint64_t run(size_t repeats) override {
		size_t calls = deferred_calls + repeats * most_deferred;
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			one(r);
		uint64_t took = ticks() - from;
		if (deferred_calls == calls)
			return took;
		std::fprintf(stderr, "scope-request: deferred calls were lost, or made twice\n");
		std::exit(1);
	}

private:
	void one(size_t value) {
		a_.begin();
		for (size_t i = 0; i < object_count; i++) {
			void *p = a_.alloc(sizes[i], i);
			escape(p);
			*static_cast<size_t *>(p) = value;
		}
		for (size_t i = 0; i < most_deferred; i++)
			a_.defer();
		barrier();
		a_.end(object_count);
		barrier();
	}

	A a_;
};

template <template <class> class C> std::vector<subject> on_all() {
	return {
		make_subject<C<tenure_scope<root_kind::plain>>>("tenure-scope"),
		make_subject<C<apr_scope<true>>>("apr"),
		make_subject<C<talloc_scope<false>>>("talloc"),
		make_subject<C<talloc_scope<true>>>("talloc-pool"),
		make_subject<C<mimalloc_scope>>("mimalloc-heap"),
	};
}

template <const malloc_calls &(*load)()>
using loaded_requests = request_lifetimes<scope_of_each<loaded_each<load>>>;

/* A request also has subjects without lifetimes: a program can free each object by itself. */
std::vector<subject> requests_on_all() {
	std::vector<subject> all = on_all<request_lifetimes>();
	all.push_back(make_subject<request_lifetimes<floor_scope>>("floor"));
	all.push_back(make_subject<request_lifetimes<scope_of_each<glibc_each>>>("glibc"));
	all.push_back(make_subject<loaded_requests<mimalloc_calls>>("mimalloc"));
	all.push_back(make_subject<loaded_requests<jemalloc_calls>>("jemalloc"));
	return all;
}

workload make_workload(const char *name, std::vector<subject> subjects) {
	workload w;
	w.name = name;
	w.subjects = std::move(subjects);
	return w;
}

std::vector<workload> workloads() {
	std::vector<subject> empty_on_all = on_all<empty_lifetimes>();
	empty_on_all.push_back(make_subject<empty_lifetimes<apr_scope<false>>>("apr-unlocked"));
	return {
		make_workload("scope-create-destroy", empty_on_all),
		make_workload("scope-create-destroy-shared",
			{
				make_subject<empty_lifetimes<tenure_scope<root_kind::shared>>>("tenure-scope"),
				make_subject<empty_lifetimes<apr_scope<true>>>("apr"),
			}),
		make_workload("scope-create-destroy-limited",
			{
				make_subject<empty_lifetimes<tenure_scope<root_kind::limited>>>("tenure-scope"),
			}),
		make_workload("scope-request", requests_on_all()),
	};
}

const registration scopes("scope", workloads);

}
}
