/* A thread asks others for what they keep, while they go on: the key of a cache and the flag of a
 * handle (c/src/shared/thread_cache.c), the bounds of a slab (c/src/slab/slab.c). The next call after a
 * request obeys it; no slot has two owners, and all memory goes back. */
#include "library_use.h"

/* For debug only. */
bool tn_os_protect(void *, size_t) {
	return false;
}

bool tn_os_unprotect(void *, size_t) {
	return false;
}

tn_site_text tn_site(const void *) {
	return {};
}

#include "slab/slab.c"

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

/* The owner of a slab allocates and frees across two magazines, while another thread asks. */
struct asked_for_chunks : engine::scenario {
	enum { SLOT_BYTES = 1024, MOST = 6 };

	tn_slab *owned;
	flag asked;

	asked_for_chunks() : scenario("a slab is asked", 2) {
	}

	void before() {
		library_begin();
		tn_slab_options options = {};
		options.chunk_bytes = 4096;
		options.retain_chunks = 100;
		owned = tn_slab_create(SLOT_BYTES, 0, &options);
		REQUIRE(owned != NULL);
		asked.raised = 0;
	}

	void thread(unsigned number) {
		slab *s = (slab *)owned;
		if (number == 1) {
			slab_ask(&s->keeper);
			asked.raise();
			return;
		}
		void *held[MOST];
		for (int round = 0; round < 2; round++) {
			for (int i = 0; i < MOST; i++)
				REQUIRE((held[i] = tn_slab_alloc(owned)) != NULL);
			for (int i = 0; i < MOST; i++)
				tn_slab_free(owned, held[i]);
			/* As when a magazine is full: its bounds take the place of a request. */
			slab_load_spare(s);
			slab_load_spare(s);
		}
		asked.await();
		tn_slab_free(owned, tn_slab_alloc(owned));
		REQUIRE(tn_get(&s->asked, TN_RELAXED) == 0 && s->stock.chunk_count <= 1);
		REQUIRE(tn_get(&s->hot.floor, TN_RELAXED) != UINTPTR_MAX &&
				tn_get(&s->hot.ceiling, TN_RELAXED) != 0);
	}

	void after() {
		REQUIRE(tn_slab_in_use(owned) == 0);
		tn_slab_destroy(owned);
	}
};

int main(int argc, char **argv) {
	asked_for_slots near("threads are asked", false), handles("handles are asked", true);
	asked_for_chunks of_slab;
	engine::scenario *all[] = {&near, &handles, &of_slab};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
