/* Slots of a shared slab as scenarios use them: each knows its owner, and only the owner writes it,
 * so that an unordered hand-over is a data race. */
#ifndef TENURE_RELACY_LIBRARY_USE_H
#define TENURE_RELACY_LIBRARY_USE_H

#include "library.h"

struct slab_scenario : engine::scenario {
	enum { SLOT_BYTES = 1024, CHUNK_BYTES = 4096, SLOTS = 32 };

	tn_shared_slab *slab;
	void *known[SLOTS];
	bool live[SLOTS];
	size_t live_count;

	slab_scenario(const char *name, unsigned threads) : scenario(name, threads) {
	}

	tn_shared_slab *create(size_t magazine_slots, size_t retain_chunks, size_t limit_bytes) {
		tn_shared_slab_options options = {};
		options.chunk_bytes = CHUNK_BYTES;
		options.magazine_slots = magazine_slots;
		options.retain_chunks = retain_chunks;
		options.limit_bytes = limit_bytes;
		tn_shared_slab *s = tn_shared_slab_create(SLOT_BYTES, 0, &options);
		REQUIRE(s != NULL);
		return s;
	}

	void before() {
		library_begin();
		memset(known, 0, sizeof known);
		memset(live, 0, sizeof live);
		live_count = 0;
		slab = create(2, TN_NONE, 0);
	}

	bool &is_live(void *p) {
		for (size_t i = 0; i < SLOTS; i++)
			if (known[i] == p || known[i] == NULL) {
				known[i] = p;
				return live[i];
			}
		engine::fail("more slots than expected", HERE);
		return live[0];
	}

	void *alloc(tn_shared_slab *s) {
		void *p = tn_shared_slab_alloc(s);
		if (p == NULL)
			return NULL;
		REQUIRE(!is_live(p));
		is_live(p) = true;
		live_count++;
		*(guarded<size_t> *)p = (size_t)p;
		return p;
	}

	void *must_alloc(tn_shared_slab *s) {
		void *p = alloc(s);
		REQUIRE(p != NULL);
		return p;
	}

	void free(tn_shared_slab *s, void *p) {
		if (p == NULL)
			return;
		REQUIRE(is_live(p));
		is_live(p) = false;
		live_count--;
		REQUIRE(*(guarded<size_t> *)p == (size_t)p);
		tn_shared_slab_free(s, p);
	}

	/* Takes `count` slots and gives them back. */
	void use(tn_shared_slab *s, size_t count) {
		void *slots[SLOTS];
		for (size_t i = 0; i < count; i++)
			slots[i] = must_alloc(s);
		for (size_t i = 0; i < count; i++)
			free(s, slots[i]);
	}

	void finish(tn_shared_slab *s) {
		REQUIRE(tn_shared_slab_in_use(s) == live_count);
		REQUIRE(tn_shared_slab_verify(s));
		tn_shared_slab_destroy(s);
	}

	void after() {
		finish(slab);
	}
};

/* A flag that one thread raises and another one waits for. */
struct flag {
	uint32_t raised;

	void raise() {
		tn_set(&raised, 1, TN_RELEASE);
		tn_os_wake(&raised);
	}
	void await() const {
		while (tn_get(&raised, TN_ACQUIRE) == 0)
			tn_os_wait(&raised, 0);
	}
};

#endif
