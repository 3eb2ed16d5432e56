/* Text buffers that are costly to grow: a pool hands them out empty, with their old size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenure/tenure.h>

typedef struct buffer {
	char *text;
	size_t used, size;
} buffer;

static int grown;

static bool make_buffer(void *object, void *ctx) {
	(void)ctx;
	*(buffer *)object = (buffer){.text = malloc(64), .size = 64};
	return ((buffer *)object)->text != NULL;
}

static void empty_buffer(void *object, void *ctx) {
	(void)ctx;
	((buffer *)object)->used = 0;
}

static void free_buffer(void *object, void *ctx) {
	(void)ctx;
	free(((buffer *)object)->text);
}

/* Counts the text of an idle buffer towards max_idle_bytes. */
static size_t bytes_of_buffer(const void *object, void *ctx) {
	(void)ctx;
	return ((const buffer *)object)->size;
}

static bool append(buffer *b, const char *text) {
	size_t size = strlen(text);
	while (b->size - b->used < size) {
		char *larger = realloc(b->text, b->size * 2);
		if (larger == NULL)
			return false;
		b->text = larger;
		b->size *= 2;
		grown++;
	}
	memcpy(b->text + b->used, text, size);
	b->used += size;
	return true;
}

static bool answer(tn_pool *buffers, int lines) {
	buffer *b = tn_pool_get(buffers);
	bool done = b != NULL;
	for (int i = 0; done && i < lines; i++)
		done = append(b, "a line of the answer\n");
	if (done)
		printf("%zu bytes, grown %d times so far\n", b->used, grown);
	tn_pool_put(buffers, b);
	return done;
}

int main(void) {
	tn_pool *buffers = tn_pool_create(sizeof(buffer), _Alignof(buffer),
		&(tn_pool_options){.name = "buffers",
			.init = make_buffer,
			.reset = empty_buffer,
			.fini = free_buffer,
			.size_of = bytes_of_buffer,
			.max_idle_bytes = (size_t)1 << 20});
	if (buffers == NULL)
		return 1;
	bool done = answer(buffers, 100) && answer(buffers, 90) && answer(buffers, 3);
	tn_stats stats;
	tn_pool_flush(buffers);
	tn_pool_stats(buffers, &stats);
	printf("idle: %zu bytes, its text included\n", stats.cached_bytes);
	tn_pool_destroy(buffers);
	return !done;
}
