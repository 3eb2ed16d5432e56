/* An attempt that may fail: a rewind to the mark before it forgets everything that it allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <tenure/tenure.h>

typedef struct number {
	struct number *next;
	long value;
} number;

/* Parses "1,2,3" into a list, or returns NULL at the first wrong character. */
static number *parse(tn_arena *a, const char *text) {
	tn_checkpoint before = tn_arena_mark(a);
	number *list = NULL;
	while (*text != '\0') {
		char *end;
		long value = strtol(text, &end, 10);
		number *n = end == text ? NULL : TN_NEW(a, number);
		if (n == NULL || (*end != ',' && *end != '\0')) {
			tn_arena_rewind(a, before);
			return NULL;
		}
		*n = (number){.next = list, .value = value};
		list = n;
		text = *end == ',' ? end + 1 : end;
	}
	return list;
}

int main(void) {
	tn_arena *a = tn_arena_create(NULL);
	const char *texts[] = {"1,2,x", "4,5,6"};
	tn_stats stats;
	for (int i = 0; a != NULL && i < 2; i++) {
		long sum = 0;
		const number *list = parse(a, texts[i]);
		for (const number *n = list; n != NULL; n = n->next)
			sum += n->value;
		tn_arena_stats(a, &stats);
		printf("%s: %s, sum %ld, anything left behind: %s\n", texts[i],
			list == NULL ? "refused" : "parsed", sum,
			list == NULL && stats.live_bytes != 0 ? "yes" : "no");
	}
	tn_arena_destroy(a);
	return 0;
}
