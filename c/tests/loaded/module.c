/* A library that uses Tenure inside, to be opened and closed at run time. */
#include <tenure/tenure.h>

#include <string.h>

#include "module.h"

static tn_shared_slab *slab;
static tn_pool *pool;

enum { OBJECTS = 200, SIZE = 64 };

bool module_begin(void) {
	slab = tn_shared_slab_create(SIZE, 0, NULL);
	pool = tn_pool_create(SIZE, 0, NULL);
	return slab != NULL && pool != NULL;
}

bool module_use(unsigned char seed) {
	unsigned char *p[OBJECTS];
	tn_local *handle = tn_shared_slab_local(slab);
	bool right = true;
	for (size_t i = 0; i < OBJECTS; i++) {
		bool plain = i % 2 == 0 || handle == NULL;
		p[i] = plain ? tn_shared_slab_alloc(slab) : tn_shared_slab_local_alloc(handle);
		if (p[i] == NULL)
			return false;
		memset(p[i], (unsigned char)(seed + i), SIZE);
	}
	for (size_t i = 0; i < OBJECTS; i++) {
		right &= p[i][0] == (unsigned char)(seed + i) && p[i][SIZE - 1] == p[i][0];
		tn_shared_slab_free(slab, p[i]);
	}
	for (size_t i = 0; i < OBJECTS; i++)
		right &= (p[i] = tn_pool_get(pool)) != NULL;
	for (size_t i = 0; i < OBJECTS; i++)
		tn_pool_put(pool, p[i]);
	return right;
}

bool module_show(void) {
	return tn_live_start();
}

size_t module_in_use(void) {
	tn_stats stats;
	tn_pool_stats(pool, &stats);
	return tn_shared_slab_in_use(slab) + stats.live_count;
}

bool module_end(void) {
	bool right = tn_shared_slab_verify(slab);
	tn_pool_destroy(pool);
	tn_shared_slab_destroy(slab);
	return right;
}
