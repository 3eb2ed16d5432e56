/* Allocator hooks without a context, served by a heap: a thread-local variable holds the heap of the
 * thread's current document. The library frees and resizes as it likes; blocks that it forgets go with
 * the document. */
#include <stdio.h>
#include <string.h>
#include <tenure/tenure.h>

/* A typical library: hooks in global variables, and a list of words. */
static void *(*library_realloc)(void *p, size_t size);
static void (*library_free)(void *p);

typedef struct words {
	char **items;
	size_t count, room;
} words;

static bool words_add(words *w, const char *text, size_t size) {
	if (w->count == w->room) {
		size_t room = w->room == 0 ? 4 : 2 * w->room;
		char **larger = library_realloc(w->items, room * sizeof *larger);
		if (larger == NULL)
			return false;
		w->items = larger;
		w->room = room;
	}
	char *item = library_realloc(NULL, size + 1);
	if (item == NULL)
		return false;
	memcpy(item, text, size);
	item[size] = '\0';
	w->items[w->count++] = item;
	return true;
}

static bool words_split(words *w, const char *text) {
	for (size_t size; *text != '\0'; text += size + (text[size] == ' ')) {
		size = strcspn(text, " ");
		if (!words_add(w, text, size))
			return false;
	}
	return true;
}

static void words_drop_last(words *w) {
	library_free(w->items[--w->count]);
}

/* The heap for the hooks. The caller of the library sets it and restores the earlier value, because
 * calls nest. */
static _Thread_local tn_heap *current_heap;

static void *heap_realloc(void *p, size_t size) {
	return tn_heap_realloc(current_heap, p, size);
}

static void heap_free(void *p) {
	tn_heap_free(current_heap, p);
}

static tn_heap *enter(tn_heap *h) {
	tn_heap *before = current_heap;
	current_heap = h;
	return before;
}

static void show(const char *what, const tn_heap *h) {
	tn_stats stats;
	tn_heap_stats(h, &stats);
	printf("%s: %zu blocks\n", what, stats.live_count);
}

int main(void) {
	library_realloc = heap_realloc;
	library_free = heap_free;
	tn_heap *document = tn_heap_create(&(tn_heap_options){.name = "document", .expendable = true});
	if (document == NULL)
		return 1;
	words list = {0};
	tn_heap *before = enter(document);
	bool done = words_split(&list, "a heap is a private malloc that can be dropped whole");
	show("eleven words and their list", document);
	words_drop_last(&list);
	show("without the last", document);
	enter(before);
	if (done)
		printf("the last is now \"%s\"\n", list.items[list.count - 1]);
	/* The library has a function that frees word by word; it is not needed here. */
	tn_heap_destroy(document);
	return !done;
}
