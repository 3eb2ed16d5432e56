/* Pointers that outlive their allocator or resource: clang has to warn on each marked line. */
#include <tenure/tenure.hpp>

#include <string_view>

using tenure::arena;
using arena_allocator = tenure::allocator<int, arena>;
using resource_allocator = tenure::allocator<int, tenure::arena_resource>;

int *make() {
	arena a;
	return a.make<int>(1); /* -Wreturn-stack-address */
}

int make_in_a_temporary() {
	int *p = arena().make<int>(1); /* -Wdangling */
	return *p;
}

int *make_array() {
	arena a;
	return a.make_array<int>(1); /* -Wreturn-stack-address */
}

void *alloc() {
	arena a;
	return a.alloc(1); /* -Wreturn-stack-address */
}

void *realloc() {
	arena a;
	return a.realloc(nullptr, 0, 1); /* -Wreturn-stack-address */
}

void *copy() {
	arena a;
	return a.copy("x", 1); /* -Wreturn-stack-address */
}

std::string_view copy_of_text() {
	arena a;
	return a.copy("x"); /* -Wreturn-stack-address */
}

char *print() {
	arena a;
	return a.printf("x"); /* -Wreturn-stack-address */
}

tn_arena *get() {
	arena a;
	return a.get(); /* -Wreturn-stack-address */
}

arena::savepoint savepoint() {
	arena a;
	return arena::savepoint(a); /* -Wreturn-stack-address */
}

int *slab_make() {
	tenure::slab<int> s;
	return s.make(1); /* -Wreturn-stack-address */
}

void *slab_alloc() {
	tenure::slab<int> s;
	return s.alloc(); /* -Wreturn-stack-address */
}

tenure::slab<int>::unique make_unique() {
	tenure::slab<int> s;
	return s.make_unique(1); /* -Wreturn-stack-address */
}

void make_unique_in_a_temporary() {
	auto object = tenure::slab<int>().make_unique(1); /* -Wdangling */
}

int *shared_slab_make() {
	tenure::shared_slab<int> s;
	return s.make(1); /* -Wreturn-stack-address */
}

tenure::shared_slab<int>::local_handle local() {
	tenure::shared_slab<int> s;
	return s.local(); /* -Wreturn-stack-address */
}

void local_of_a_temporary() {
	[[maybe_unused]] auto handle = tenure::shared_slab<int>().local(); /* -Wdangling */
}

void *scope_alloc() {
	tenure::scope s;
	return s.alloc(1); /* -Wreturn-stack-address */
}

int *scope_make() {
	tenure::scope s;
	return s.make<int>(1); /* -Wreturn-stack-address */
}

int *scope_make_array() {
	tenure::scope s;
	return s.make_array<int>(1); /* -Wreturn-stack-address */
}

std::string_view scope_copy() {
	tenure::scope s;
	return s.copy("x"); /* -Wreturn-stack-address */
}

char *scope_print() {
	tenure::scope s;
	return s.printf("x"); /* -Wreturn-stack-address */
}

tn_scope *scope_get() {
	tenure::scope s;
	return s.get(); /* -Wreturn-stack-address */
}

arena &arena_of_a_scope() {
	tenure::scope s;
	return s.arena(); /* -Wreturn-stack-address */
}

tenure::slab<int> &slab_of_a_scope() {
	tenure::scope s;
	return s.slab<int>(); /* -Wreturn-stack-address */
}

tenure::heap &heap_of_a_scope() {
	tenure::scope s;
	return s.heap(); /* -Wreturn-stack-address */
}

tenure::scope scope_below_a_local() {
	tenure::scope s;
	return tenure::scope(s, "child"); /* -Wreturn-stack-address */
}

int make_in_a_temporary_scope() {
	int *p = tenure::scope().make<int>(1); /* -Wdangling */
	return *p;
}

void *heap_alloc() {
	tenure::heap h;
	return h.alloc(1); /* -Wreturn-stack-address */
}

void *heap_realloc() {
	tenure::heap h;
	return h.realloc(nullptr, 1); /* -Wreturn-stack-address */
}

int *heap_make() {
	tenure::heap h;
	return h.make<int>(1); /* -Wreturn-stack-address */
}

tenure::heap::unique<int> heap_make_unique() {
	tenure::heap h;
	return h.make_unique<int>(1); /* -Wreturn-stack-address */
}

void *from_a_heap_resource() {
	tenure::heap_resource r;
	return r.alloc(1, 1); /* -Wreturn-stack-address */
}

tenure::pool<int>::lease lease() {
	tenure::pool<int> p;
	return p.get(); /* -Wreturn-stack-address */
}

void lease_of_a_temporary() {
	auto object = tenure::pool<int>().get(); /* -Wdangling */
}

arena_allocator allocator_of_an_arena() {
	arena a;
	return arena_allocator(a); /* -Wreturn-stack-address */
}

arena_allocator converted_to_an_allocator() {
	arena a;
	return a; /* -Wreturn-stack-address */
}

resource_allocator allocator_of_a_resource() {
	tenure::arena_resource r;
	return resource_allocator(r); /* -Wreturn-stack-address */
}

void *from_a_resource() {
	tenure::arena_resource r;
	return r.alloc(1, 1); /* -Wreturn-stack-address */
}

int *past_its_lease(tenure::pool<int> &p) {
	return p.get().get(); /* -Wreturn-stack-address */
}

int &past_a_local_lease(tenure::pool<int> &p) {
	tenure::pool<int>::lease l = p.get();
	return *l; /* -Wreturn-stack-address */
}
