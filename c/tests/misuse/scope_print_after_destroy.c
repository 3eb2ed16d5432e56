/* A scope is printed after it ended.
 *
 * release   ABRT tenure: scope: print: {s} is not a live scope
 * hardened  ABRT tenure: scope: print: {s} is not a live scope
 * debug     ABRT tenure: scope: print: {s} is not a live scope
 */
#include "misuse.h"

int main(void) {
	tn_scope *s = tn_scope_create(NULL, "s", NULL);
	tell("s", s);
	tn_scope_destroy(s);
	tn_scope_print(s, stdout);
	return 0;
}
