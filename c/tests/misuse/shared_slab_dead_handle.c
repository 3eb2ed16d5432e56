/* A handle is used after the end of its slab: the thread still holds slots of it, others have come in
 * its place, or the handle was never used.
 *
 * args      alloc free x full fresh others
 * release   ABRT tenure: handle: {op}: the slab or the thread of {l} is no more
 * hardened  ABRT tenure: handle: {op}: the slab or the thread of {l} is no more
 * debug     ABRT tenure: handle: {op}: the slab or the thread of {l} is no more
 * debug:free  ABRT tenure: handle: {op}: the slab or the thread of {l} is no more
 *           tenure: shared slab "s": destroy: 1 live slots (64 bytes) allocated at SITE(alloc)
 */
#include "misuse.h"

int main(int argc, char **argv) {
	tn_shared_slab *s = make_shared_slab("s", 64, 0);
	tn_local *l = tn_shared_slab_local(s);
	void *p = NULL;
	if (IS("free"))
		p = tn_shared_slab_alloc(s); /* alloc */
	if (strcmp(argv[2], "fresh") != 0)
		for (int i = 0; i < 100; i++)
			tn_shared_slab_local_free(l, tn_shared_slab_local_alloc(l));
	tell("l", l);
	tell_word("op", IS("alloc") ? "local_alloc" : "local_free");
	tn_shared_slab_destroy(s);
	for (int i = 0; strcmp(argv[2], "others") == 0 && i < 20; i++)
		tn_shared_slab_local_free(tn_shared_slab_local(make_shared_slab("other", 64, 0)), NULL);
	if (IS("alloc"))
		tn_shared_slab_local_alloc(l);
	else
		tn_shared_slab_local_free(l, p);
	return 0;
}
