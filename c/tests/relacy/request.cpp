/* c/src/shared/thread_cache.c: a thread asks others for the slots that they keep, while they go on: by
 * the key of the cache, and for handles by a flag. The next call after a request obeys it; no slot has
 * two owners, and all memory goes back. */
#include "library_use.h"

static cache *cache_of(tn_shared_slab *s) {
	return &((shared_slab *)s)->cache;
}

/* Two threads use the slab, the third asks twice. In the end both have followed. */
struct asked_for_slots : slab_scenario {
	flag asked;
	bool by_handle;

	asked_for_slots(const char *name, bool by_handle) : slab_scenario(name, 3), by_handle(by_handle) {
	}

	void before() {
		slab_scenario::before();
		asked.raised = 0;
	}

	void use_handle(tn_local *l) {
		void *p = tn_shared_slab_local_alloc(l);
		REQUIRE(p != NULL);
		*(guarded<size_t> *)p = (size_t)p;
		tn_shared_slab_local_free(l, p);
	}

	void thread(unsigned number) {
		if (number == 2) {
			tn_cache_ask(cache_of(slab));
			tn_caches_trim();
			tn_cache_ask(cache_of(slab));
			asked.raise();
			return;
		}
		tn_local *handle = tn_shared_slab_local(slab);
		for (int i = 0; i < 3; i++)
			if (by_handle)
				use_handle(handle);
			else
				use(slab, 1);
		asked.await();
		if (by_handle)
			use_handle(handle);
		else
			use(slab, 1);
		const local *l = (local *)handle;
		REQUIRE(l->key == cache_of(slab)->key);
		/* Only calls by a handle look at it. */
		REQUIRE(!by_handle || tn_get(&l->hot.asked, TN_RELAXED) == 0);
		library_end_thread();
	}
};

int main(int argc, char **argv) {
	asked_for_slots near("threads are asked", false), handles("handles are asked", true);
	engine::scenario *all[] = {&near, &handles};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
