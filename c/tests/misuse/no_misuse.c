/* Legal in every mode: an arena that is never ended, nothing freed, and slabs, a pool and scopes
 * that outlive main.
 *
 * release   EXIT
 * hardened  EXIT
 * debug     EXIT */
#include "misuse.h"

int main(void) {
	tn_arena a;
	tn_arena_init(&a, NULL);
	tn_arena_alloc(&a, 100, 0);
	tn_arena_alloc(make_arena("a"), 100, 0);
	tn_slab *s = make_slab("s", 64, 0);
	void *slots[3] = {NULL, tn_slab_alloc(s), NULL};
	tn_slab_free_batch(s, slots, 3);
	tn_slab_free(s, NULL);
	tn_slab_alloc(s);
	tn_shared_slab *shared = make_shared_slab("shared", 64, 0);
	tn_local *local = tn_shared_slab_local(shared);
	tn_shared_slab_free_batch(shared, slots, 1);
	tn_shared_slab_free(shared, NULL);
	tn_shared_slab_local_free(local, NULL);
	tn_shared_slab_local_free(local, tn_shared_slab_alloc(shared));
	tn_shared_slab_free(shared, tn_shared_slab_local_alloc(local));
	tn_shared_slab_alloc(shared);
	tn_pool *p = make_pool("p", 64);
	tn_pool_put(p, NULL);
	tn_pool_put(p, tn_pool_get(p));
	tn_pool_get(p);
	tn_scope *root = tn_scope_create(NULL, NULL, NULL);
	tn_scope *child = tn_scope_create(root, NULL, NULL);
	tn_scope_defer(child, free, NULL);
	tn_slab_alloc(tn_scope_slab(child, 64, 0, NULL));
	tn_heap_alloc(tn_scope_heap(child, NULL), 64, 0);
	tn_scope_reset(root);
	tn_scope_alloc(tn_scope_create(root, NULL, NULL), 100, 0);
	tn_scope_destroy(NULL);
	tn_shared_slab_destroy(NULL);
	tn_pool_destroy(NULL);
	tn_slab_destroy(NULL);
	tn_arena_destroy(NULL);
	tn_arena_deinit(NULL);
	return 0;
}
