/* Objects that remember what happened to them, and the callbacks of a pool that keep books on them. */
#ifndef TENURE_TESTS_POOL_USE_H
#define TENURE_TESTS_POOL_USE_H

#include "allocators.h"

#include <algorithm>
#include <set>

struct widget {
	static constexpr uint64_t sound = 0x77696467657400ff;
	uint64_t magic;  /* sound from init to fini */
	uint64_t uses;   /* counted by its holder; survives in the pool */
	uint64_t dirt;   /* not 0 from use to reset */
	uint64_t beside; /* external bytes that it reports */
};

class workshop {
public:
	workshop() = default;
	workshop(const workshop &) = delete;
	workshop &operator=(const workshop &) = delete;
	~workshop() {
		EXPECT_EQ(built.size(), 0u) << "objects that were never taken apart";
		EXPECT_EQ(inits, finis);
	}

	tn_pool_options options() {
		tn_pool_options o = {};
		o.init = build;
		o.reset = clean;
		o.fini = take_apart;
		o.ctx = this;
		return o;
	}
	size_t alive() const {
		return built.size();
	}
	/* The calls of init number `first` (from 1, counted from now) and the next count-1 fail. */
	void fail(size_t first, size_t count) {
		fail_from = calls + first;
		fail_count = count;
	}
	static size_t size_of(const void *object, void *ctx) {
		EXPECT_NE(ctx, nullptr);
		EXPECT_EQ(static_cast<const widget *>(object)->magic, widget::sound);
		return static_cast<const widget *>(object)->beside;
	}

	std::set<void *> built;
	size_t calls = 0, inits = 0, resets = 0, finis = 0;
	uint64_t beside = 0; /* of objects to come */

private:
	static bool build(void *object, void *ctx) {
		workshop *w = static_cast<workshop *>(ctx);
		w->calls++;
		if (w->calls >= w->fail_from && w->calls - w->fail_from < w->fail_count)
			return false;
		EXPECT_TRUE(w->built.insert(object).second) << "built twice";
		*static_cast<widget *>(object) = {widget::sound, 0, 0, w->beside};
		w->inits++;
		return true;
	}
	static void clean(void *object, void *ctx) {
		widget *used = static_cast<widget *>(object);
		EXPECT_EQ(used->magic, widget::sound);
		used->dirt = 0;
		static_cast<workshop *>(ctx)->resets++;
	}
	static void take_apart(void *object, void *ctx) {
		workshop *w = static_cast<workshop *>(ctx);
		widget *old = static_cast<widget *>(object);
		EXPECT_EQ(w->built.erase(object), 1u) << "taken apart, but not built";
		EXPECT_EQ(old->magic, widget::sound) << "built state lost";
		old->magic = 0;
		w->finis++;
	}

	size_t fail_from = SIZE_MAX, fail_count = 0;
};

inline widget *get_widget(tn_pool *p) {
	widget *w = static_cast<widget *>(tn_pool_get(p));
	if (w == nullptr)
		return nullptr;
	EXPECT_EQ(w->magic, widget::sound) << "not built";
	EXPECT_EQ(w->dirt, 0u) << "not reset";
	w->uses++;
	w->dirt = 1;
	return w;
}

inline std::vector<void *> get_widgets(tn_pool *p, size_t count) {
	std::vector<void *> widgets;
	for (size_t i = 0; i < count; i++) {
		widgets.push_back(get_widget(p));
		EXPECT_NE(widgets.back(), nullptr);
	}
	return widgets;
}

inline void put_all(tn_pool *p, const std::vector<void *> &objects) {
	for (void *object : objects)
		tn_pool_put(p, object);
}

/* Largest number of objects in a magazine, by the contract. */
inline size_t magazine_of_bound(size_t objects) {
	return objects == 0 ? 0 : std::min<size_t>(std::max<size_t>(objects / 16, 1), 64);
}

#endif
