/* A deferred call ends a scope above its own, which is not ending itself: seen in every mode.
 *
 * args      destroy reset x root parent
 * release   ABRT tenure: scope "{which}": {op}: a scope below it is ending: a deferred call must not
 *           end what is above its scope
 * hardened  ABRT tenure: scope "{which}": {op}: a scope below it is ending: a deferred call must not
 *           end what is above its scope
 * debug     ABRT tenure: scope "{which}": {op}: a scope below it is ending: a deferred call must not
 *           end what is above its scope
 */
#include "misuse.h"

static bool reset;

static void end(void *above) {
	if (reset)
		tn_scope_reset(above);
	else
		tn_scope_destroy(above);
}

int main(int argc, char **argv) {
	reset = IS("reset");
	tn_scope *root = tn_scope_create(NULL, "root", NULL);
	tn_scope *parent = tn_scope_create(root, "parent", NULL);
	tn_scope *s = tn_scope_create(parent, "s", NULL);
	tn_scope *child = tn_scope_create(s, "child", NULL);
	tell_word("op", argv[1]);
	tell_word("which", argv[2]);
	tn_scope_defer(child, end, strcmp(argv[2], "root") == 0 ? root : parent);
	tn_scope_destroy(s);
	return 0;
}
