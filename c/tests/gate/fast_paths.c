/* The fast paths, for tools/callgrind_gate.py: `fast_paths NAME` runs one of them. Only the function
 * `measured` is counted, not the preparation and cleaning up between its calls. Prints how many
 * operations were counted. */
#include <stdio.h>
#include <string.h>
#include <tenure/tenure.h>

enum { ROUNDS = 20, OPS = 1000, BATCH = 16, REQUEST = 20 };

static tn_arena *arena;
static tn_slab *slab;
static tn_shared_slab *shared;
static tn_local *local;
static tn_pool *pool;
static tn_heap *heap;

/* Keeps a pointer, and the stores to what it points to, from being optimised away. */
static inline void use(void *p) {
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void arena_alloc(void) {
	for (int i = 0; i < OPS; i++)
		use(tn_arena_alloc(arena, 96, 0));
}

static void arena_alloc_sizes(void) {
	size_t size = 1;
	for (int i = 0; i < OPS; i++) {
		use(tn_arena_alloc(arena, size, 8));
		size = size % 100 + 7;
	}
}

static void arena_reset(void) {
	for (int i = 0; i < OPS; i++) {
		use(tn_arena_alloc(arena, 96, 0));
		tn_arena_reset(arena);
	}
}

static void arena_create_destroy(void) {
	for (int i = 0; i < OPS; i++) {
		tn_arena *a = tn_arena_create(NULL);
		for (int k = 0; k < REQUEST; k++)
			use(tn_arena_alloc(a, 96, 0));
		tn_arena_destroy(a);
	}
}

static void slab_pair(void) {
	for (int i = 0; i < OPS; i++) {
		void *p = tn_slab_alloc(slab);
		use(p);
		tn_slab_free(slab, p);
	}
}

static void slab_batch(void) {
	void *slots[BATCH];
	for (int i = 0; i < OPS; i++) {
		for (int k = 0; k < BATCH; k++)
			use(slots[k] = tn_slab_alloc(slab));
		for (int k = 0; k < BATCH; k++)
			tn_slab_free(slab, slots[k]);
	}
}

static void shared_pair(void) {
	for (int i = 0; i < OPS; i++) {
		void *p = tn_shared_slab_alloc(shared);
		use(p);
		tn_shared_slab_free(shared, p);
	}
}

static void shared_pair_local(void) {
	for (int i = 0; i < OPS; i++) {
		void *p = tn_shared_slab_local_alloc(local);
		use(p);
		tn_shared_slab_local_free(local, p);
	}
}

static void shared_batch(void) {
	void *slots[BATCH];
	for (int i = 0; i < OPS; i++) {
		tn_shared_slab_alloc_batch(shared, slots, BATCH);
		use(slots);
		tn_shared_slab_free_batch(shared, slots, BATCH);
	}
}

/* More than a thread keeps, so that slots pass through the depot. */
static void shared_burst(void) {
	static void *slots[OPS];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < OPS; i++)
			use(slots[i] = tn_shared_slab_alloc(shared));
		for (int i = 0; i < OPS; i++)
			tn_shared_slab_free(shared, slots[i]);
		tn_shared_slab_flush(shared);
	}
}

static void pool_pair(void) {
	for (int i = 0; i < OPS; i++) {
		void *p = tn_pool_get(pool);
		use(p);
		tn_pool_put(pool, p);
	}
}

static void heap_pair(void) {
	for (int i = 0; i < OPS; i++) {
		void *p = tn_heap_alloc(heap, 48, 0);
		use(p);
		tn_heap_free(heap, p);
	}
}

/* More than one span of each of some sizes, freed in another order. */
static void heap_burst(void) {
	static void *blocks[OPS];
	for (int i = 0; i < OPS; i++)
		use(blocks[i] = tn_heap_alloc(heap, 16 + (size_t)i % 7 * 24, 0));
	for (int i = 0; i < OPS; i++)
		tn_heap_free(heap, blocks[i * 7 % OPS]);
}

static void heap_create_destroy(void) {
	for (int i = 0; i < OPS; i++) {
		tn_heap *h = tn_heap_create(NULL);
		for (int k = 0; k < REQUEST; k++)
			use(tn_heap_alloc(h, 96, 0));
		tn_heap_destroy(h);
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} paths[] = {
	{"arena-alloc-96", arena_alloc},
	{"arena-alloc-sizes", arena_alloc_sizes},
	{"arena-alloc-reset", arena_reset},
	{"arena-create-20-destroy", arena_create_destroy},
	{"slab-pair-32", slab_pair},
	{"slab-batch-16", slab_batch},
	{"shared-pair-32", shared_pair},
	{"shared-pair-32-local", shared_pair_local},
	{"shared-batch-16", shared_batch},
	{"shared-burst-1000", shared_burst},
	{"pool-pair-32", pool_pair},
	{"heap-pair-48", heap_pair},
	{"heap-burst-1000", heap_burst},
	{"heap-create-20-destroy", heap_create_destroy},
};

__attribute__((noinline)) void measured(void (*run)(void));
void measured(void (*run)(void)) {
	run();
	use(NULL);
}

static int run_rounds(void (*run)(void)) {
	arena = tn_arena_create(&(tn_arena_options){.chunk_bytes = (size_t)1 << 20});
	slab = tn_slab_create(32, 0, NULL);
	shared = tn_shared_slab_create(32, 0, NULL);
	local = shared == NULL ? NULL : tn_shared_slab_local(shared);
	pool = tn_pool_create(32, 0, NULL);
	heap = tn_heap_create(NULL);
	if (arena == NULL || slab == NULL || local == NULL || pool == NULL || heap == NULL)
		return 1;
	run();
	for (int round = 0; round < ROUNDS; round++) {
		tn_arena_reset(arena);
		measured(run);
	}
	tn_heap_destroy(heap);
	tn_pool_destroy(pool);
	tn_shared_slab_destroy(shared);
	tn_slab_destroy(slab);
	tn_arena_destroy(arena);
	printf("%d\n", ROUNDS * OPS);
	return 0;
}

int main(int argc, char **argv) {
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		if (argc == 1)
			puts(paths[i].name);
		else if (strcmp(argv[1], paths[i].name) == 0)
			return run_rounds(paths[i].run);
	}
	return argc != 1;
}
