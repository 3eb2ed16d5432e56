/* The scope is destroyed twice: by itself, or after the one above it.
 *
 * args      twice above
 * release   ABRT tenure: scope: destroy: {s} is not a live scope
 * hardened  ABRT tenure: scope: destroy: {s} is not a live scope
 * debug     ABRT tenure: scope: destroy: {s} is not a live scope
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_scope *root = tn_scope_create(NULL, "root", NULL);
	tn_scope *s = tn_scope_create(root, "s", NULL);
	tell("s", s);
	tn_scope_destroy(IS("twice") ? s : root);
	tn_scope_destroy(s);
	return 0;
}
