/* Functions that are one fast path each, for check.py. */
#include <tenure/tenure.hpp>

struct orc : tenure::arena_allocated<orc, 1000000> {
	long words[3];
};
struct elf : tenure::slab_allocated<elf> {
	long words[3];
};
struct ent : tenure::shared_slab_allocated<ent> {
	long words[3];
};
struct point {
	long x, y, z;
};

extern "C" {

orc *new_orc() {
	return new orc;
}
void delete_orc(orc *p) {
	delete p;
}
elf *new_elf() {
	return new elf;
}
void delete_elf(elf *p) {
	delete p;
}
ent *new_ent() {
	return new ent;
}
void delete_ent(ent *p) {
	delete p;
}
point *make_point(tenure::arena &a, long x) {
	return a.make<point>(x, x, x);
}
point *make_point_in_scope(tenure::scope &s, long x) {
	return s.make<point>(x, x, x);
}
}
