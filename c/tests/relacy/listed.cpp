/* c/src/listing/node.h: one thread publishes, lists, unlists, lists again and moves; others read
 * meanwhile. Each allocator has a number of its own, in everything that it publishes. A reader finds
 * no mixture of figures, no figures under the number or the parent of another allocator, no
 * allocator twice, and every allocator that stays. */
#define TN_NODE_FIGURES 3
#include "relacy_atomics.h"

/* A random schedule hardly ever lets one thread do much at once. In every other schedule the first
 * reader therefore sleeps before one of its loads until the owner is done; the sleep creates no
 * order. */
static struct {
	bool used, reading;
	unsigned loads_left;
	uint32_t asleep, done;
} nap;

static void sleep_before_load(void) {
	if (!nap.reading || engine::thread() != 1 || nap.loads_left-- != 0)
		return;
	tn_set(&nap.asleep, 1, TN_RELAXED);
	tn_os_wake(&nap.asleep);
	while (relacy_get(&nap.done, TN_RELAXED, HERE) == 0)
		tn_os_wait(&nap.done, 0);
}

#undef tn_get
#define tn_get(at, order) (sleep_before_load(), relacy_get(at, order, HERE))

#include "listing/node.h"

struct listed_scenario : engine::scenario {
	enum { NODES = 5, NUMBERS = 16, LOADS = 100 };

	tn_node root, nodes[NODES];

	listed_scenario(const char *name, unsigned threads) : scenario(name, threads) {
	}

	/* ---- owners ---- */

	void begin() {
		memset((void *)&root, 0, sizeof root);
		memset((void *)nodes, 0, sizeof nodes);
		root.life = 1;
		memset(&nap, 0, sizeof nap);
		nap.used = engine::choose(2) == 0;
		nap.loads_left = engine::choose(LOADS);
	}

	void thread(unsigned number) {
		while (nap.used && number == 0 && relacy_get(&nap.asleep, TN_RELAXED, HERE) == 0)
			tn_os_wait(&nap.asleep, 0);
		nap.reading = nap.reading || (nap.used && number == 1);
		number == 0 ? change() : look();
		nap.reading = nap.reading && number != 1;
		uint32_t *over = number == 0 ? &nap.done : &nap.asleep;
		if (nap.used && number < 2) {
			tn_set(over, 1, TN_RELAXED);
			tn_os_wake(over);
		}
	}
	virtual void change() = 0;
	virtual void look() = 0;

	/* Like tn_list_node: `number` in every word that readers look at. */
	void list(tn_node *n, size_t number, tn_node *parent) {
		tn_set(&n->number, number, TN_RELEASE);
		tn_set(&n->object, (void *)number, TN_RELEASE);
		tn_set(&n->version, 0, TN_RELEASE);
		tn_set(&n->moved, 0, TN_RELEASE);
		tn_node_link(n, parent);
	}

	void publish(tn_node *n, size_t number, size_t turn) {
		size_t figure = number * 16 + turn;
		const size_t figures[TN_NODE_FIGURES] = {figure, figure, figure};
		tn_node_publish(n, figures, TN_NODE_FIGURES);
	}

	void list_and_publish(tn_node *n, size_t number, tn_node *parent) {
		list(n, number, parent);
		publish(n, number, 0);
	}

	/* ---- readers ---- */

	/* The result of one walk. */
	struct found {
		size_t times[NUMBERS], parents[NUMBERS];
	};

	/* Copies the fields that a snapshot copies. */
	bool read(tn_step at, size_t *number) {
		size_t figures[TN_NODE_FIGURES] = {0};
		if (!tn_node_is(at.node, at.life))
			return false;
		size_t object = (size_t)tn_get(&at.node->object, TN_ACQUIRE);
		bool published = tn_node_read(at.node, figures, TN_NODE_FIGURES);
		if (!tn_node_is(at.node, at.life))
			return false;
		REQUIRE(object == at.number);
		if (published) {
			REQUIRE(figures[0] == figures[1] && figures[0] == figures[2]);
			REQUIRE(figures[0] / 16 == object);
		}
		*number = object;
		return true;
	}

	void note(found *f, tn_step at, size_t parent) {
		size_t number;
		if (!read(at, &number))
			return;
		REQUIRE(f->times[number]++ == 0);
		f->parents[number] = parent;
	}

	/* Two levels: the children of the root, and their children. */
	found walk() {
		found f = {};
		tn_step top = {&root, 1, 0, 0};
		for (tn_step at = tn_node_find_below(&root, 1, SIZE_MAX); at.node != NULL;
			at = tn_node_find_next(at, &root, 1)) {
			note(&f, at, 0);
			for (tn_step child = tn_node_find_below(at.node, at.life, SIZE_MAX); child.node != NULL;
				child = tn_node_find_next(child, at.node, at.life))
				note(&f, child, at.number);
		}
		return f;
	}

	void after() {
		found f = walk();
		for (size_t number = 1; number < NUMBERS; number++)
			REQUIRE(f.times[number] == (size_t)listed_at_the_end(number));
	}
	virtual bool listed_at_the_end(size_t number) = 0;
};

/* An owner that publishes all the time. */
struct publishes : listed_scenario {
	publishes(const char *name, unsigned threads) : listed_scenario(name, threads) {
	}

	void before() {
		begin();
		list(&nodes[0], 1, &root);
	}
	void change() {
		for (size_t turn = 1; turn < 4; turn++)
			publish(&nodes[0], 1, turn);
	}
	void look() {
		REQUIRE(walk().times[1] == 1);
	}
	bool listed_at_the_end(size_t number) {
		return number == 1;
	}
};

/* Siblings 1, 2, 3 and 4: some go, their nodes are used again, and two stay. */
struct siblings : listed_scenario {
	siblings(const char *name, unsigned threads) : listed_scenario(name, threads) {
	}

	void before() {
		begin();
		for (size_t i = 0; i < 4; i++)
			list_and_publish(&nodes[i], i + 1, &root);
	}
	void look() {
		found f = walk();
		REQUIRE(f.times[1] == 1 && f.times[3] == 1);
	}
	void change() {
		tn_node_unlink(&nodes[1]);
		list_and_publish(&nodes[4], 5, &root);
		list_and_publish(&nodes[1], 6, &root);
		tn_node_unlink(&nodes[3]);
		list_and_publish(&nodes[3], 7, &root);
		tn_node_unlink(&nodes[1]);
	}
	bool listed_at_the_end(size_t number) {
		return number == 1 || number == 3 || number == 5 || number == 7;
	}
};

/* A single allocator, whose node is reused at once. */
struct reused : listed_scenario {
	reused(const char *name, unsigned threads) : listed_scenario(name, threads) {
	}

	void before() {
		begin();
		list_and_publish(&nodes[0], 1, &root);
	}
	void look() {
		walk();
	}
	void change() {
		for (size_t next = 2; next < 4; next++) {
			tn_node_unlink(&nodes[0]);
			list_and_publish(&nodes[0], next, &root);
		}
	}
	bool listed_at_the_end(size_t number) {
		return number == 3;
	}
};

/* Parents 1 and 2 with children; the first ends with its children, and its node is reused for parent
 * 5. */
struct families : listed_scenario {
	families(const char *name, unsigned threads) : listed_scenario(name, threads) {
	}

	void before() {
		begin();
		list_and_publish(&nodes[0], 1, &root);
		list_and_publish(&nodes[1], 2, &root);
		list_and_publish(&nodes[2], 3, &nodes[1]);
		list_and_publish(&nodes[3], 4, &nodes[1]);
	}
	void look() {
		found f = walk();
		REQUIRE(f.times[1] == 1);
		for (size_t child = 3; child < NUMBERS; child++)
			REQUIRE(f.times[child] == 0 || f.parents[child] == (child < 5 ? 2 : child > 5 ? 5 : 0));
	}
	void change() {
		for (size_t i = 3; i > 0; i--)
			tn_node_unlink(&nodes[i]);
		list_and_publish(&nodes[1], 5, &root);
		list_and_publish(&nodes[3], 6, &nodes[1]);
		list_and_publish(&nodes[2], 7, &nodes[1]);
	}
	bool listed_at_the_end(size_t number) {
		return number == 1 || number >= 5 && number <= 7;
	}
};

/* 2 and 3 end, and their nodes are reused below 1 and below its child: a reader that stood on them
 * goes on to 1. */
struct displaced : listed_scenario {
	displaced(const char *name, unsigned threads) : listed_scenario(name, threads) {
	}

	void before() {
		begin();
		list_and_publish(&nodes[1], 2, &root);
		list_and_publish(&nodes[0], 1, &root);
		list_and_publish(&nodes[2], 3, &root);
	}
	void look() {
		found f = walk();
		REQUIRE(f.times[1] == 1 && f.times[5] == 0);
		REQUIRE(f.times[4] == 0 || f.parents[4] == 1);
	}
	void change() {
		tn_node_unlink(&nodes[1]);
		list_and_publish(&nodes[1], 4, &nodes[0]);
		tn_node_unlink(&nodes[2]);
		list_and_publish(&nodes[2], 5, &nodes[1]);
	}
	/* The walks look no deeper than 4. */
	bool listed_at_the_end(size_t number) {
		return number == 1 || number == 4;
	}
};

int main(int argc, char **argv) {
	publishes publish_2("publishes, 2 threads", 2), publish_3("publishes, 3 threads", 3);
	siblings siblings_2("siblings, 2 threads", 2), siblings_3("siblings, 3 threads", 3);
	reused reused_2("reused, 2 threads", 2), reused_3("reused, 3 threads", 3);
	families families_2("families, 2 threads", 2);
	displaced displaced_2("displaced, 2 threads", 2);
	engine::scenario *all[] = {&publish_2, &publish_3, &siblings_2, &siblings_3, &reused_2, &reused_3,
		&families_2, &displaced_2};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
