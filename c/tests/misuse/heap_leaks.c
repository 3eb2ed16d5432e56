/* Destroying a heap with live blocks is legal; debug lists them by site, with the bytes asked for.
 *
 * args      listed expendable
 * release   EXIT
 * hardened  EXIT
 * debug:listed  EXIT tenure: heap "h": destroy: 1 live slots (40 bytes) allocated at SITE(one)
 *           tenure: heap "h": destroy: 37 live slots (3700 bytes) allocated at SITE(many)
 *           tenure: heap "h": destroy: 2 live large blocks (30000 bytes) allocated at SITE(large)
 *           tenure: heap "h": destroy: 1 live slots (290 bytes) allocated at SITE(realloc)
 * debug:expendable  EXIT
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_heap *h =
		tn_heap_create(&(tn_heap_options){.name = "h", .expendable = strcmp(argv[1], "listed") != 0});
	void *freed = tn_heap_alloc(h, 100, 0);
	tn_heap_alloc(h, 40, 0); /* one */
	for (int i = 0; i < 40; i++) {
		void *p = tn_heap_alloc(h, 100, 0); /* many */
		if (i % 15 == 0)
			tn_heap_free(h, p);
	}
	for (int i = 0; i < 2; i++)
		tn_heap_alloc(h, 15000, 0); /* large */
	tn_heap_realloc(h, freed, 290); /* realloc */
	tn_heap_destroy(h);
	return 0;
}
