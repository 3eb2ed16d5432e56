/* Destroying a pool with objects out is legal; debug lists them by the site that got them, and the idle
 * ones not at all.
 *
 * release   EXIT
 * hardened  EXIT
 * debug     EXIT tenure: pool "p": destroy: 1 live slots (64 bytes) allocated at SITE(one)
 *           tenure: pool "p": destroy: 20 live slots (1280 bytes) allocated at SITE(many)
 *           tenure: pool "p": destroy: 1 live slots (64 bytes) allocated at SITE(again)
 */
#include "misuse.h"

int main(void) {
	void *objects[50];
	tn_pool *p = make_pool("p", 64);
	tn_pool_get(p); /* one */
	for (int i = 0; i < 50; i++)
		objects[i] = tn_pool_get(p); /* many */
	for (int i = 0; i < 30; i++)
		tn_pool_put(p, objects[i]);
	tn_pool_get(p); /* again */
	tn_pool_destroy(p);
	return 0;
}
