/* Orders of an order book: one size, freed one by one; the order freed last is handed out next. */
#include <stdio.h>
#include <tenure/tenure.h>

typedef struct order {
	int id;
	int price;
	struct order *next;
} order;

static void print_order(void *slot, void *ctx) {
	const order *o = slot;
	(void)ctx;
	printf("order %d at %d\n", o->id, o->price);
}

int main(void) {
	tn_slab *orders =
		tn_slab_create(sizeof(order), _Alignof(order), &(tn_slab_options){.name = "orders"});
	if (orders == NULL)
		return 1;
	order *first = tn_slab_alloc(orders);
	order *second = tn_slab_alloc(orders);
	if (first == NULL || second == NULL)
		return 1;
	*first = (order){.id = 1, .price = 995};
	*second = (order){.id = 2, .price = 1005};
	tn_slab_free(orders, first);
	order *third = tn_slab_alloc(orders);
	if (third == NULL)
		return 1;
	*third = (order){.id = 3, .price = 1000};
	printf("in use: %zu of %zu bytes each\n", tn_slab_in_use(orders), tn_slab_slot_size(orders));
	printf("same slot again: %s\n", TN_MODE == TN_MODE_DEBUG || third == first ? "yes" : "no");
	tn_slab_free(orders, third);
	tn_slab_each(orders, print_order, NULL);
	tn_slab_free(orders, second);
	tn_slab_destroy(orders);
	return 0;
}
