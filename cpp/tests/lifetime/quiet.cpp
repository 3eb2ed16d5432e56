/* Correct uses: no warning. */
#include <tenure/tenure.hpp>

#include <memory_resource>
#include <string>
#include <vector>

using tenure::arena;
template <class Resource> using ints = std::vector<int, tenure::allocator<int, Resource>>;

struct node {
	explicit node(int n, node *next = nullptr) : number(n), next(next) {
	}
	int number;
	node *next;
};

node *made_in_the_callers(arena &a) {
	arena::savepoint keep(a);
	node *first = a.make<node>(1);
	return a.make<node>(first->number);
}

int *array_of_the_callers(arena &a) {
	int *numbers = a.make_array<int>(10);
	return numbers + 1;
}

std::string_view text_of_the_callers(arena &a, const std::string &text) {
	return a.copy(text);
}

int sum_in_its_own() {
	arena a;
	const arena::checkpoint begin = a.mark();
	ints<arena> numbers({1, 2}, a);
	int sum = numbers[0] + *a.make<int>(1) + arena().make<node>(2)->number;
	a.rewind(begin);
	return sum;
}

arena moved_out() {
	arena a("moved");
	a.make<int>(1);
	return a;
}

std::unique_ptr<arena> kept() {
	auto a = std::make_unique<arena>();
	a->make<int>(1);
	return a;
}

tenure::slab<node>::unique from_the_callers(tenure::slab<node> &s) {
	auto made = s.make_unique(1);
	return made;
}

node *through_a_handle(tenure::shared_slab<node> &s) {
	auto mine = s.local();
	return mine.make(1);
}

tenure::pool<node>::lease leased(tenure::pool<node> &p) {
	auto object = p.get();
	return object;
}

node *in_the_callers_scope(tenure::scope &s) {
	tenure::scope scratch(s, "scratch");
	node *first = scratch.make<node>(1);
	return s.make<node>(first->number);
}

tenure::slab<node> &owned_by_the_callers(tenure::scope &s) {
	auto &nodes = s.slab<node>();
	return nodes;
}

tenure::scope root_moved_out() {
	tenure::scope s("root");
	s.make<node>(1);
	s.defer([] {});
	return s;
}

node *in_the_callers_heap(tenure::heap &h) {
	auto own = h.make_unique<node>(1);
	return h.make<node>(own->number);
}

struct session {
	arena memory;
	tenure::slab<node> nodes;
	node *first = nodes.make(1, nullptr);
	tenure::arena_resource resource{memory};
	std::pmr::string name{"session", &resource};
	tenure::scope connection{"connection"}, request{connection, "request"};
	node *second = request.make<node>(2);
	ints<tenure::arena_resource> numbers{resource};
};

int in_members() {
	session s;
	return s.first->number;
}

template <class Resource> int in_a_resource() {
	Resource r;
	std::pmr::vector<int> polymorphic({1, 2}, &r);
	ints<Resource> typed({1, 2}, r);
	return polymorphic[0] + typed[0];
}

template int in_a_resource<tenure::arena_resource>();
template int in_a_resource<tenure::slab_resource>();
template int in_a_resource<tenure::shared_slab_resource>();
template int in_a_resource<tenure::heap_resource>();
