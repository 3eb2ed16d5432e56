/* One byte past an object or before it is written; seen when it is put, and at the pool's end.
 *
 * args      put destroy x past before x 24 64 100
 * release   undefined
 * hardened  undefined
 * debug     ABRT tenure: pool "p": {op}: {o} was written {where}, allocated at SITE(get)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	int size = atoi(argv[3]);
	bool past = strcmp(argv[2], "past") == 0;
	tn_pool *p = tn_pool_create((size_t)size, 1, &(tn_pool_options){.name = "p"});
	char where[60];
	char *object = tn_pool_get(p); /* get */
	snprintf(where, sizeof where,
		past ? "past its end, at byte %d of %d" : "before its start, at byte -1 of %.0d%d",
		past ? size : 0, size);
	tell("o", object);
	tell_word("op", argv[1]);
	tell_word("where", where);
	object[past ? size : -1] ^= 1;
	if (IS("put"))
		tn_pool_put(p, object);
	else
		tn_pool_destroy(p);
	return 0;
}
