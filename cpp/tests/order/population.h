/* Objects of the three homes, made before main and deleted after it, by globals of several files in the
 * linker's order. The last one checks the counts. */
#ifndef TENURE_TESTS_ORDER_POPULATION_H
#define TENURE_TESTS_ORDER_POPULATION_H

#include <tenure/allocated.hpp>

struct orc : tenure::arena_allocated<orc, 10000> {
	explicit orc(int n) : number(n) {
	}
	~orc() {
		number = -1;
	}
	int number;
};
struct elf : tenure::slab_allocated<elf> {
	explicit elf(int n) : number(n) {
	}
	~elf() {
		number = -1;
	}
	int number, more[5] = {};
};
struct ent : tenure::shared_slab_allocated<ent> {
	explicit ent(int n) : number(n) {
	}
	~ent() {
		number = -1;
	}
	int number, more[13] = {};
};

/* `count` of each kind, made in the constructor, with an array among them, and deleted in the
 * destructor. */
class population {
public:
	static constexpr int count = 500;

	population();
	population(const population &) = delete;
	population &operator=(const population &) = delete;
	~population();

private:
	orc *orcs_[count];
	elf *elves_[count];
	ent *ents_[count];
};

/* The number of live populations, and the faults of their members. */
extern int populations, wrong_members;

/* Called by each that may be the last: the counts have to fit the populations. */
void check_counts(const char *when);

#endif
