/* The fast paths, for tools/callgrind_gate.py: `fast_paths NAME` runs one of them. What is counted is
 * the function `measured`; what prepares and clears up between its calls is not. Prints how many
 * operations were counted. */
#include <stdio.h>
#include <string.h>
#include <tenure/tenure.h>

enum { ROUNDS = 20, OPS = 1000, BATCH = 16, REQUEST = 20 };

static tn_arena *arena;
static tn_slab *slab;

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
};

__attribute__((noinline)) void measured(void (*run)(void));
void measured(void (*run)(void)) {
	run();
	use(NULL);
}

static int run_rounds(void (*run)(void)) {
	arena = tn_arena_create(&(tn_arena_options){.chunk_bytes = (size_t)1 << 20});
	slab = tn_slab_create(32, 0, NULL);
	if (arena == NULL || slab == NULL)
		return 1;
	run();
	for (int round = 0; round < ROUNDS; round++) {
		tn_arena_reset(arena);
		measured(run);
	}
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
