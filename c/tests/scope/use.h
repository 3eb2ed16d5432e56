/* Helpers of the tests of scopes: deferred calls that are C++ functions, and snapshots. */
#ifndef TENURE_TESTS_SCOPE_USE_H
#define TENURE_TESTS_SCOPE_USE_H

#include "allocators.h"

#include <deque>
#include <functional>

/* Deferred calls that outlive their scopes; each counts how often it ran. */
class deferrals {
public:
	struct call {
		std::function<void()> work;
		size_t runs = 0;
	};

	static void run(void *arg) {
		call *c = static_cast<call *>(arg);
		c->runs++;
		c->work();
	}
	call &add(std::function<void()> work) {
		calls_.push_back({std::move(work)});
		return calls_.back();
	}
	/* Defers `work` to the end of `s`; whether that was granted. */
	bool on(tn_scope *s, std::function<void()> work) {
		return tn_scope_defer(s, run, &add(std::move(work)));
	}
	/* Whether each of the calls ran `times` times. */
	bool all_ran(size_t times) const {
		for (const call &c : calls_)
			if (c.runs != times)
				return false;
		return true;
	}

private:
	std::deque<call> calls_;
};

inline tn_scope *create_below(
	tn_scope *parent, const char *name = nullptr, const tn_scope_options &options = {}) {
	return tn_scope_create(parent, name, &options);
}

inline std::vector<tn_scope *> children_of(tn_scope *s) {
	std::vector<tn_scope *> children;
	auto note = [](tn_scope *child, void *ctx) {
		static_cast<std::vector<tn_scope *> *>(ctx)->push_back(child);
	};
	tn_scope_each(s, note, &children);
	return children;
}

/* ---- snapshots ---- */

inline std::vector<tn_listed> snapshot() {
	std::vector<tn_listed> all;
	auto note = [](const tn_listed *listed, void *ctx) {
		static_cast<std::vector<tn_listed> *>(ctx)->push_back(*listed);
		return true;
	};
	size_t count = tn_stats_snapshot(note, &all);
	EXPECT_EQ(count, all.size());
	return all;
}

/* The only entry with that name, or null. */
inline const tn_listed *find_listed(const std::vector<tn_listed> &all, const std::string &name) {
	const tn_listed *found = nullptr;
	for (const tn_listed &listed : all)
		if (listed.stats.name == name) {
			if (found != nullptr)
				return nullptr;
			found = &listed;
		}
	return found;
}

inline bool is_listed(const std::string &name) {
	std::vector<tn_listed> all = snapshot();
	return find_listed(all, name) != nullptr;
}

#endif
