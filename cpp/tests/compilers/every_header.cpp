/* A user of every header, for compilers and standard libraries other than the one that the tests are
 * built with. Writes the failed checks to standard error, and fails. */
#include <tenure/fwd.hpp>

#include <tenure/allocated.hpp>
#include <tenure/allocator.hpp>
#include <tenure/arena.hpp>
#include <tenure/arena_resource.hpp>
#include <tenure/heap.hpp>
#include <tenure/heap_resource.hpp>
#include <tenure/pool.hpp>
#include <tenure/scope.hpp>
#include <tenure/scope_resource.hpp>
#include <tenure/shared_slab.hpp>
#include <tenure/size_based_arena.hpp>
#include <tenure/slab.hpp>
#include <tenure/slab_resource.hpp>
#include <tenure/stats.hpp>
#include <tenure/tenure.hpp>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

static int failures = 0;

static void check(bool holds, int line, const char *condition) {
	if (!holds) {
		std::fprintf(stderr, "line %d: %s\n", line, condition);
		failures++;
	}
}

#define CHECK(condition) check((condition), __LINE__, #condition)

template <class Exception, class F> static bool throws(F f) {
	try {
		f();
		return false;
	} catch (const Exception &) {
		return true;
	}
}

static int alive = 0;

struct guest {
	explicit guest(int n) : number(n) {
		if (n < 0)
			throw n;
		alive++;
	}
	guest() : guest(0) {
	}
	guest(const guest &) = delete;
	guest &operator=(const guest &) = delete;
	~guest() {
		alive--;
	}

	int number;
	std::string name = "a name that no small string holds";
};

static void use_arena() {
	tenure::arena a("arena");
	CHECK(a.make<int>(7) != nullptr);
	a.make<guest>(1);
	{
		tenure::arena::savepoint until(a);
		a.make_array<guest>(9);
		CHECK(alive == 10);
	}
	CHECK(alive == 1);
	CHECK(throws<int>([&] { a.make<guest>(-1); }));
	CHECK(a.copy(std::string_view("text")) == "text");
	CHECK(std::string_view(a.printf("%d", 42)) == "42");
	CHECK(throws<std::invalid_argument>([&] { static_cast<void>(a.alloc(8, 3)); }));
	CHECK(throws<std::bad_array_new_length>([&] { a.make_array<long>(SIZE_MAX / 2); }));
	tenure::arena moved = std::move(a);
	moved.reset();
	CHECK(alive == 0 && moved.verify());
}

template <class Slab> static void use_slab() {
	Slab s("slab");
	guest *one = s.make(1);
	{
		typename Slab::unique two = s.make_unique(2);
		CHECK(s.in_use() == 2 && s.owns(two.get()));
	}
	CHECK(throws<int>([&] { static_cast<void>(s.make(-1)); }));
	int sum = 0;
	s.each([&sum](guest &g) { sum += g.number; });
	CHECK(sum == 1 && alive == 1);
	s.destroy(one);
	CHECK(s.in_use() == 0 && alive == 0 && s.verify());
}

static void use_local_handle() {
	tenure::shared_slab<guest> s;
	guest *from_there = nullptr;
	std::thread([&] { from_there = s.local().make(3); }).join();
	CHECK(from_there->number == 3);
	auto local = s.local();
	local.destroy(from_there);
	CHECK(alive == 0 && s.in_use() == 0);
}

struct buffer_traits : tenure::pool_traits<std::vector<int>> {
	void reset(std::vector<int> &v) const noexcept {
		v.clear();
	}
	std::size_t size_of(const std::vector<int> &v) const noexcept {
		return v.capacity() * sizeof(int);
	}
};

static void use_pool() {
	tenure::pool<std::vector<int>, buffer_traits> buffers("buffers");
	{
		auto lease = buffers.get();
		lease->assign(100, 1);
	}
	auto again = buffers.get();
	CHECK(again->empty() && again->capacity() >= 100);
}

static void use_scope() {
	tenure::scope root("root");
	tenure::scope child(root, "child");
	child.make<guest>(1);
	child.make_array<guest>(2);
	bool called = false;
	child.defer([&called, text = std::string("moved in")] { called = text.size() == 8; });
	auto *never = child.defer([] { failures++; });
	CHECK(child.undefer(never) && alive == 3);
	CHECK(child.slab<guest>().make(2)->number == 2 && child.heap().make<int>(3) != nullptr);
	child.arena().make<guest>(4);
	int children = 0;
	root.each([&children](tn_scope *) { children++; });
	CHECK(children == 1 && tenure::snapshot([](const tn_listed &) {}) >= 3);
	CHECK(throws<int>([] { tenure::snapshot([](const tn_listed &) { throw 1; }); }));
	tenure::scope_resource memory(child);
	std::pmr::vector<int> v(100, 1, &memory);
	CHECK(child.owns(v.data()) && root.verify());
	root.reset();
	CHECK(called && alive == 1 && !child);
	alive = 0; /* The slab forgot its object. */
}

struct base {
	virtual ~base() = default;
};
struct derived : guest, base {
	using guest::guest;
};

static void use_heap() {
	tenure::heap h("heap");
	base *one = h.make<derived>(1);
	tenure::heap::unique<guest> two = h.make_unique<guest>(2);
	CHECK(throws<int>([&] { static_cast<void>(h.make<guest>(-1)); }));
	h.destroy(one);
	two.reset();
	h.free(h.realloc(h.alloc(100), 1000));
	h.free(h.alloc(100, 64), 100, 64);
	CHECK(alive == 0 && h.stats().live_count == 0 && h.verify());
}

static void use_watch() {
	tenure::watch watching([](tn_finding, const tn_listed &, const char *) {});
	CHECK(throws<std::invalid_argument>([] { tenure::watch second([](auto &&...) {}); }));
}

struct orc : tenure::arena_allocated<orc, 1000> {
	long health = 100;
};
struct elf : tenure::slab_allocated<elf> {
	long health = 200;
};
struct man : tenure::shared_slab_allocated<man> {
	long health = 300;
};

template <class Figure> static void use_new_and_delete() {
	Figure *one = new Figure, *many = new Figure[9];
	CHECK(tenure::home_of<Figure>().in_use() > 0);
	CHECK(one->health == many[8].health);
	delete one;
	delete[] many;
	CHECK(tenure::home_of<Figure>().in_use() == 0);
}

static void use_new_and_delete_in_an_arena() {
	orc *one = new orc, *many = new orc[9];
	CHECK(tenure::home_of<orc>().in_use() >= 10 && tenure::home_of<orc>().owns(one));
	CHECK(!tenure::home_of<orc>().reset());
	delete one;
	delete[] many;
	CHECK(tenure::home_of<orc>().in_use() == 0 && tenure::home_of<orc>().reset());
	using points = tenure::size_based_arena<long, 64>;
	for (std::size_t i = 0; i < points::capacity(); i++)
		CHECK(points::get().owns(points::get().allocate_one()));
	CHECK(throws<std::bad_alloc>([] {
		while (points::get().allocate_one() != nullptr)
			continue;
	}));
}

/* The same program on any allocator. */
template <class Of> static void use_containers(Of of) {
	using ints = decltype(of(int()));
	using chars = decltype(of(char()));
	using entry = std::pair<const int, int>;
	using entries = decltype(of(entry()));
	std::vector<int, ints> v(of(int()));
	std::list<int, ints> l(of(int()));
	std::deque<int, ints> d(of(int()));
	std::map<int, int, std::less<int>, entries> m(of(entry()));
	std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, entries> u(of(entry()));
	std::basic_string<char, std::char_traits<char>, chars> s(of(char()));
	for (int i = 0; i < 3000; i++) {
		v.push_back(i);
		l.push_back(i);
		d.push_front(i);
		m[i % 1000] = i;
		u[i % 1000] = i;
		s.push_back(static_cast<char>('a' + i % 26));
	}
	auto copy = v;
	auto moved = std::move(v);
	CHECK(copy == moved && moved[2999] == 2999);
	CHECK(l.back() == 2999 && d.front() == 2999);
	CHECK(m.size() == 1000 && m[7] == 2007 && u.size() == 1000 && u[7] == 2007);
	CHECK(s.size() == 3000 && s[27] == 'b');
}

template <class Resource> static void use_resource() {
	Resource r, on_heap(std::pmr::new_delete_resource());
	use_containers([&](auto t) { return std::pmr::polymorphic_allocator<decltype(t)>(&r); });
	use_containers([&](auto t) { return std::pmr::polymorphic_allocator<decltype(t)>(&on_heap); });
	use_containers([&](auto t) { return tenure::allocator<decltype(t), Resource>(r); });
	std::pmr::map<std::pmr::string, std::pmr::vector<std::pmr::string>> nested(&r);
	nested["a key that no small string holds"].emplace_back("nor this value, which is as long");
	CHECK(nested.begin()->second.front().get_allocator().resource() == &r);
	CHECK(r == r && !r.is_equal(on_heap));
	CHECK(throws<std::invalid_argument>([&] { static_cast<void>(r.alloc(8, 3)); }));
	CHECK(reinterpret_cast<std::uintptr_t>(r.allocate(100, 4096)) % 4096 == 0);
	Resource empty(std::pmr::null_memory_resource());
	CHECK(throws<std::bad_alloc>([&] { static_cast<void>(empty.allocate(1)); }));
}

int main() {
	use_arena();
	use_slab<tenure::slab<guest>>();
	use_slab<tenure::shared_slab<guest>>();
	use_local_handle();
	use_pool();
	use_resource<tenure::arena_resource>();
	use_resource<tenure::slab_resource>();
	use_resource<tenure::shared_slab_resource>();
	use_resource<tenure::heap_resource>();
	use_scope();
	use_heap();
	use_watch();
	use_new_and_delete<elf>();
	use_new_and_delete<man>();
	use_new_and_delete_in_an_arena();
	tenure::arena a;
	use_containers([&a](auto t) { return tenure::allocator<decltype(t), tenure::arena>(a); });
	tenure::heap h;
	use_containers([&h](auto t) { return tenure::allocator<decltype(t), tenure::heap>(h); });
	return failures == 0 ? 0 : 1;
}
