/* Helpers of the misuse programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenure/tenure.h>

#define IS(word) (strcmp(argv[1], word) == 0)

/* Tells run.py what the expected message calls {name}. */
static inline void tell(const char *name, const void *p) {
	printf("%s %p\n", name, p);
	fflush(stdout);
}

static inline void tell_size(const char *name, size_t size) {
	printf("%s %zu\n", name, size);
	fflush(stdout);
}

static inline void tell_word(const char *name, const char *word) {
	printf("%s %s\n", name, word);
	fflush(stdout);
}

static inline tn_slab *make_slab(const char *name, size_t size, size_t align) {
	return tn_slab_create(size, align, &(tn_slab_options){.name = name});
}

static inline tn_shared_slab *make_shared_slab(const char *name, size_t size, size_t align) {
	return tn_shared_slab_create(size, align, &(tn_shared_slab_options){.name = name});
}

static inline tn_pool *make_pool(const char *name, size_t size) {
	return tn_pool_create(size, 0, &(tn_pool_options){.name = name});
}

static inline tn_arena *make_arena(const char *name) {
	return tn_arena_create(&(tn_arena_options){.name = name});
}

static inline tn_heap *make_heap(const char *name) {
	return tn_heap_create(&(tn_heap_options){.name = name});
}

/* Reads or writes one byte behind the compiler's back. */
static inline void touch(const char *how, void *p, size_t offset) {
	volatile char *byte = (volatile char *)p + offset;
	if (strcmp(how, "write") == 0)
		*byte = 1;
	else
		(void)*byte;
}

/* "first", "middle" or "last" as an offset into `size` bytes. */
static inline size_t offset_of(const char *where, size_t size) {
	return *where == 'f' ? 0 : *where == 'm' ? size / 2 : size - 1;
}
