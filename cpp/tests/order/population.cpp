/* The globals of first.cpp and second.cpp are populations. */
#include "population.h"

#include <cstdio>
#include <cstdlib>

/* Constant-initialised, before any constructor runs. */
int populations = 0, wrong_members = 0;

namespace {

template <typename T> void make(T **members) {
	for (int i = 0; i < population::count; i++)
		members[i] = new T(i);
	delete[] new T[3]{T(1), T(2), T(3)};
}

template <typename T> void end(T **members) {
	for (int i = 0; i < population::count; i++) {
		wrong_members += members[i]->number != i;
		delete members[i];
	}
	/* The homes still serve. */
	T *late = new T(7);
	wrong_members += late->number != 7;
	delete late;
}

template <typename T> bool fits() {
	return tenure::home_of<T>().in_use() == static_cast<size_t>(populations) * population::count;
}

}

population::population() {
	make(orcs_);
	make(elves_);
	make(ents_);
	populations++;
	check_counts("before main");
}

population::~population() {
	end(orcs_);
	end(elves_);
	end(ents_);
	populations--;
	check_counts("after main");
}

void check_counts(const char *when) {
	if (fits<orc>() && fits<elf>() && fits<ent>() && wrong_members == 0)
		return;
	std::printf("%s: %d populations, %zu orcs, %zu elves, %zu ents, %d wrong\n", when, populations,
		tenure::home_of<orc>().in_use(), tenure::home_of<elf>().in_use(),
		tenure::home_of<ent>().in_use(), wrong_members);
	std::fflush(stdout);
	std::_Exit(1);
}
