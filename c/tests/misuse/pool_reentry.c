/* A callback of a pool calls the pool.
 *
 * args      init reset fini
 * release   undefined
 * hardened  undefined
 * debug     undefined
 */
#include "misuse.h"

static tn_pool *p;
static const char *from;
static int depth;

static void call(const char *callback) {
	if (strcmp(from, callback) == 0 && depth++ == 0)
		tn_pool_put(p, tn_pool_get(p));
}

static bool init(void *object, void *ctx) {
	call("init");
	return true;
}

static void reset(void *object, void *ctx) {
	call("reset");
}

static void fini(void *object, void *ctx) {
	call("fini");
}

int main(int argc, char **argv) {
	from = argv[1];
	p = tn_pool_create(
		64, 0, &(tn_pool_options){.name = "p", .init = init, .reset = reset, .fini = fini});
	tn_pool_put(p, tn_pool_get(p));
	tn_pool_trim(p);
	return 0;
}
