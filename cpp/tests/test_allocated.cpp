/* allocated.hpp: every form of new and delete of a class, for its three homes. */
#include "crowd.h"
#include "witness.h"

#include <tenure/allocated.hpp>

#include <array>

namespace {

/* Live objects on the global heap, as counted by operator new. */
std::atomic<ptrdiff_t> on_heap{0};

void *from_heap(size_t bytes, size_t align) {
	void *p = nullptr;
	if (bytes > PTRDIFF_MAX || posix_memalign(&p, align < 16 ? 16 : align, bytes) != 0)
		return nullptr;
	on_heap++;
	return p;
}

void *had(void *p) {
	return p != nullptr ? p : throw std::bad_alloc();
}

void to_heap(void *p) {
	if (p != nullptr)
		on_heap--;
	std::free(p);
}

}

void *operator new(size_t bytes) {
	return had(from_heap(bytes, 0));
}
void *operator new(size_t bytes, std::align_val_t align) {
	return had(from_heap(bytes, static_cast<size_t>(align)));
}
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
	return from_heap(bytes, 0);
}
void *operator new(size_t bytes, std::align_val_t align, const std::nothrow_t &) noexcept {
	return from_heap(bytes, static_cast<size_t>(align));
}
void operator delete(void *p) noexcept {
	to_heap(p);
}
void operator delete(void *p, size_t) noexcept {
	to_heap(p);
}
void operator delete(void *p, std::align_val_t) noexcept {
	to_heap(p);
}
void operator delete(void *p, size_t, std::align_val_t) noexcept {
	to_heap(p);
}

namespace {

using tenure::home_of;

/* ---- homes ---- */

struct arena_home {
	template <typename T> using base = tenure::arena_allocated<T, 100000>;
	static constexpr bool is_arena = true;
	static constexpr const char *name = "arena";
};
struct own_slab_home {
	template <typename T> using base = tenure::slab_allocated<T>;
	static constexpr bool is_arena = false;
	static constexpr const char *name = "slab";
};
struct shared_slab_home {
	template <typename T> using base = tenure::shared_slab_allocated<T>;
	static constexpr bool is_arena = false;
	static constexpr const char *name = "shared_slab";
};

template <typename T> size_t in_use() {
	return home_of<T>().in_use();
}
template <typename T> bool owns(const void *p) {
	return home_of<T>().owns(p);
}

/* Resets a home that does not use memory again by itself. */
template <typename Home, typename T> void forget() {
	if constexpr (Home::is_arena) {
		EXPECT_TRUE(home_of<T>().reset());
	} else {
		home_of<T>().trim();
	}
}

struct name_of_home {
	template <typename Home> static std::string GetName(int) {
		return Home::name;
	}
};

/* Requires that a test leaves nothing new on the heap. The home of a class tells what the class left
 * there. */
template <typename Home> class allocated : public witnessed {
protected:
	void SetUp() override {
		witnessed::SetUp();
		heap_before_ = on_heap;
	}
	void TearDown() override {
		EXPECT_EQ(on_heap, heap_before_);
		witnessed::TearDown();
	}

private:
	ptrdiff_t heap_before_ = 0;
};
using homes = testing::Types<arena_home, own_slab_home, shared_slab_home>;
TYPED_TEST_SUITE(allocated, homes, name_of_home);

/* Checks in functions of their own: the templates that call them have many instances. */
void expect_filled(const unsigned char *bytes, size_t size, uintptr_t pattern) {
	EXPECT_TRUE(filled(bytes, size, pattern)) << size;
}
void expect_aligned(const void *p, size_t align) {
	ASSERT_NE(p, nullptr);
	EXPECT_TRUE(aligned_to(p, align));
}

/* A witness of any size and alignment. */
template <typename Home, size_t size, size_t align = 1>
struct alignas(align) sized : Home::template base<sized<Home, size, align>> {
	unsigned char bytes[size];

	sized() {
		inner_built();
		fill(bytes, size, address(this));
	}
	~sized() {
		witness::alive--;
		expect_filled(bytes, size, address(this));
	}
	static void inner_built() {
		size_t number = ++witness::built;
		if (number == witness::throws_at)
			throw out_of_clay{number};
		witness::alive++;
	}
};

/* Calls `check` with a null pointer of each sized type. */
template <typename Home, typename F> void for_sizes(F check) {
	check(static_cast<sized<Home, 1> *>(nullptr));
	check(static_cast<sized<Home, 3> *>(nullptr));
	check(static_cast<sized<Home, 4, 4> *>(nullptr));
	check(static_cast<sized<Home, 8, 8> *>(nullptr));
	check(static_cast<sized<Home, 24, 8> *>(nullptr));
	check(static_cast<sized<Home, 24> *>(nullptr));
	check(static_cast<sized<Home, 32, 16> *>(nullptr));
	check(static_cast<sized<Home, 64, 64> *>(nullptr));
	check(static_cast<sized<Home, 1, 4096> *>(nullptr));
	check(static_cast<sized<Home, 4097> *>(nullptr));
}

template <typename Pointer> using pointee = std::remove_pointer_t<Pointer>;

/* ---- single objects ---- */

TYPED_TEST(allocated, single_objects_live_in_the_home) {
	for_sizes<TypeParam>([](auto *null) {
		using T = pointee<decltype(null)>;
		std::vector<T *> all;
		ptrdiff_t heap = on_heap;
		size_t strange = 0;
		all.reserve(300);
		for (int i = 0; i < 100; i++) {
			all.push_back(new T);
			all.push_back(new (std::nothrow) T);
			all.push_back(new (std::align_val_t{alignof(T)}) T);
		}
		EXPECT_EQ(on_heap, heap + 1) << "the vector";
		EXPECT_EQ(in_use<T>(), 300u);
		for (T *p : all) {
			expect_aligned(p, alignof(T));
			strange += !owns<T>(p);
			delete p;
		}
		EXPECT_EQ(strange, 0u);
		EXPECT_EQ(in_use<T>(), 0u);
		delete static_cast<T *>(nullptr);
		forget<TypeParam, T>();
	});
}

TYPED_TEST(allocated, more_alignment_than_the_type_has_is_had_from_the_heap) {
	using T = sized<TypeParam, 40, 8>;
	ptrdiff_t heap = on_heap;
	T *p = new (std::align_val_t{256}) T, *q = new (std::align_val_t{256}, std::nothrow) T;
	EXPECT_TRUE(aligned_to(p, 256));
	EXPECT_TRUE(aligned_to(q, 256));
	EXPECT_EQ(on_heap, heap + 2);
	p->~T();
	T::operator delete(p, sizeof(T), std::align_val_t{256});
	q->~T();
	T::operator delete(q, sizeof(T), std::align_val_t{256});
	EXPECT_EQ(on_heap, heap);
	EXPECT_EQ(in_use<T>(), 0u);
}

TYPED_TEST(allocated, placement_takes_nothing) {
	using T = sized<TypeParam, 56, 8>;
	/* The placement new for arrays is the class's own, so compilers write a cookie. */
	alignas(T) unsigned char place[5 * sizeof(T)];
	T *p = new (place) T;
	EXPECT_EQ(static_cast<void *>(p), place);
	p->~T();
	T *several = new (static_cast<void *>(place)) T[4];
	EXPECT_LE(address(several), address(place) + 16);
	std::destroy_n(several, 4);
	throw_in(1);
	EXPECT_THROW(new (place) T, out_of_clay);
	throw_in(3);
	EXPECT_THROW(new (place) T[4], out_of_clay);
	EXPECT_EQ(in_use<T>(), 0u);
}

/* ---- arrays ---- */

void expect_apart(std::vector<uintptr_t> begins, size_t bytes) {
	std::sort(begins.begin(), begins.end());
	for (size_t i = 1; i < begins.size(); i++) {
		EXPECT_GE(begins[i], begins[i - 1] + bytes);
		EXPECT_NE(begins[i], begins[i - 1]);
	}
}
void expect_alive(size_t count) {
	EXPECT_EQ(witness::alive, count);
}

/* Three arrays of each length; `sized` sees whether all are destroyed and none overlap. */
template <typename Home, typename T> void check_arrays(size_t count) {
	T *all[] = {new T[count], new (std::nothrow) T[count], new T[count]};
	expect_alive(3 * count);
	for (T *p : all)
		expect_aligned(p, alignof(T));
	expect_apart({address(all[0]), address(all[1]), address(all[2])}, count * sizeof(T));
	for (T *p : all)
		delete[] p;
	expect_alive(0);
}

TYPED_TEST(allocated, arrays_of_every_length) {
	for_sizes<TypeParam>([](auto *null) {
		using T = pointee<decltype(null)>;
		ptrdiff_t heap = on_heap;
		for (size_t count = 0; count <= 100; count++)
			check_arrays<TypeParam, T>(count);
		EXPECT_EQ(in_use<T>(), 0u);
		EXPECT_EQ(on_heap, heap);
		if (TypeParam::is_arena)
			forget<TypeParam, T>();
		if (sizeof(T) <= 64) {
			check_arrays<TypeParam, T>(10000);
			EXPECT_EQ(in_use<T>(), 0u);
			EXPECT_EQ(on_heap, heap);
			forget<TypeParam, T>();
		}
		delete[] static_cast<T *>(nullptr);
	});
}

TYPED_TEST(allocated, arrays_without_destructors) {
	struct plain : TypeParam::template base<plain> {
		int number;
	};
	static_assert(std::is_trivially_destructible_v<plain>);
	std::vector<plain *> all;
	for (size_t count = 1; count < 1000; count += 7) {
		all.push_back(new plain[count]);
		fill(all.back(), count * sizeof(plain), count);
	}
	size_t count = 1;
	for (plain *p : all) {
		EXPECT_TRUE(filled(p, count * sizeof(plain), count));
		EXPECT_TRUE(aligned_to(p, alignof(plain)));
		delete[] p;
		count += 7;
	}
	EXPECT_EQ(in_use<plain>(), 0u);
}

TYPED_TEST(allocated, arrays_of_a_length_that_cannot_be) {
	using T = sized<TypeParam, 72, 8>;
	volatile size_t counts[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / sizeof(T), SIZE_MAX / sizeof(T) + 1};
	for (volatile size_t &count : counts) {
		size_t n = count;
		EXPECT_THROW((void)new T[n], std::bad_alloc) << n;
		/* The compiler checks it; gcc throws here too, though the standard wants a null pointer. */
		try {
			EXPECT_EQ(new (std::nothrow) T[n], nullptr) << n;
		} catch (const std::bad_array_new_length &) {
		}
	}
	size_t half = counts[1];
	EXPECT_THROW((void)new T[half], std::bad_array_new_length);
	/* A valid length without memory for it. A sanitizer's heap would end the program. */
	size_t much = SIZE_MAX / sizeof(T) / 4;
	if (TypeParam::is_arena || !sanitized) {
		EXPECT_THROW((void)new T[much], std::bad_alloc);
		EXPECT_EQ(new (std::nothrow) T[much], nullptr);
	}
	EXPECT_EQ(in_use<T>(), 0u);
	EXPECT_EQ(witness::built, 0u);
	delete new T;
}

/* ---- constructors that throw ---- */

/* Whether `make` throws when constructor number k does. */
template <typename F> bool throws(size_t k, F make) {
	throw_in(k);
	try {
		make();
		return false;
	} catch (const out_of_clay &) {
		return true;
	}
}

struct balance {
	size_t in_use;
	ptrdiff_t on_heap;
};
void expect_nothing_lost(balance before, balance after, const char *how, size_t size) {
	EXPECT_EQ(after.in_use, before.in_use) << how << " of " << size;
	EXPECT_EQ(witness::alive, 0u) << how << " of " << size;
	EXPECT_EQ(after.on_heap, before.on_heap) << how << " of " << size;
}
void expect_thrown(bool thrown, const char *how, size_t size) {
	EXPECT_TRUE(thrown) << how << " of " << size;
}

template <typename Home, typename T> void check_throws() {
	constexpr std::align_val_t align{alignof(T)};
	balance before{in_use<T>(), on_heap};
	auto nothing_lost = [&](const char *how) {
		expect_nothing_lost(before, {in_use<T>(), on_heap}, how, sizeof(T));
	};
	auto check = [&](const char *how, size_t k, auto make) {
		expect_thrown(throws(k, make), how, sizeof(T));
		nothing_lost(how);
	};
	check("one", 1, [&] { return new T; });
	check("one, nothrow", 1, [&] { return new (std::nothrow) T; });
	check("one, aligned", 1, [&] { return new (align) T; });
	check("one, aligned, nothrow", 1, [&] { return new (align, std::nothrow) T; });
	for (size_t k : {1u, 2u, 7u, 20u}) {
		check("array", k, [&] { return new T[20]; });
		check("array, nothrow", k, [&] { return new (std::nothrow) T[20]; });
		check("array, aligned", k, [&] { return new (align) T[20]; });
		check("array, aligned, nothrow", k, [&] { return new (align, std::nothrow) T[20]; });
	}
	throw_in(SIZE_MAX / 2);
	delete new T;
	delete[] new T[20];
	nothing_lost("after all that, one");
}

TYPED_TEST(allocated, constructors_that_throw_lose_nothing) {
	for_sizes<TypeParam>([](auto *null) {
		using T = pointee<decltype(null)>;
		for (int i = 0; i < 3; i++)
			check_throws<TypeParam, T>();
		forget<TypeParam, T>();
	});
}

TYPED_TEST(allocated, constructors_of_derived_classes_that_throw_lose_nothing) {
	using T = sized<TypeParam, 48, 8>;
	struct larger : T {
		uint64_t more[5];
		larger() {
			T::inner_built();
		}
		~larger() {
			witness::alive--;
		}
	};
	struct alignas(128) wider : T {
		uint64_t more[5];
		wider() {
			T::inner_built();
		}
		~wider() {
			witness::alive--;
		}
	};
	balance before{in_use<T>(), on_heap};
	for (size_t k : {1u, 2u}) {
		EXPECT_TRUE(throws(k, [] { return new larger; }));
		EXPECT_TRUE(throws(k, [] { return new (std::nothrow) larger; }));
		EXPECT_TRUE(throws(k, [] { return new wider; }));
		EXPECT_TRUE(throws(k, [] { return new (std::nothrow) wider; }));
		EXPECT_TRUE(throws(k, [] { return new larger[3]; }));
		EXPECT_TRUE(throws(k, [] { return new (std::nothrow) larger[3]; }));
		EXPECT_TRUE(throws(k, [] { return new wider[3]; }));
		EXPECT_TRUE(throws(k, [] { return new (std::nothrow) wider[3]; }));
		expect_nothing_lost(before, {in_use<T>(), on_heap}, "derived", k);
	}
}

/* ---- derived classes ---- */

template <typename Home> struct shape : Home::template base<shape<Home>> {
	virtual ~shape() = default;
	uint64_t number = 1;
};
template <typename Home> struct same_size final : shape<Home> {
	~same_size() override {
		ended_ += 1;
	}
	static inline int ended_ = 0;
};
template <typename Home> struct larger_shape : shape<Home> {
	witness w;
	uint64_t more[100] = {};
};
template <typename Home> struct alignas(256) wide_shape : shape<Home> {
	witness w;
};
struct label {
	virtual ~label() = default;
	uint64_t text = 2;
};
template <typename Home> struct labelled final : label, shape<Home> {
	witness w;
};

TYPED_TEST(allocated, derived_classes_of_the_same_size_live_in_the_home) {
	using base = shape<TypeParam>;
	using derived = same_size<TypeParam>;
	static_assert(sizeof(base) == sizeof(derived));
	derived::ended_ = 0;
	ptrdiff_t heap = on_heap;
	base *p = new derived;
	EXPECT_EQ(on_heap, heap);
	EXPECT_EQ(in_use<base>(), 1u);
	EXPECT_TRUE(owns<base>(p));
	delete p;
	delete new derived;
	EXPECT_EQ(derived::ended_, 2);
	EXPECT_EQ(in_use<base>(), 0u);
}

TYPED_TEST(allocated, derived_classes_of_another_size_live_on_the_heap) {
	using base = shape<TypeParam>;
	auto check = [](auto make, auto make_nothrow) {
		ptrdiff_t heap = on_heap;
		base *p = make(), *q = make_nothrow();
		EXPECT_EQ(on_heap, heap + 2);
		EXPECT_EQ(in_use<base>(), 0u);
		EXPECT_FALSE(owns<base>(p));
		EXPECT_EQ(witness::alive, 2u);
		delete p;
		delete q;
		EXPECT_EQ(on_heap, heap);
		EXPECT_EQ(witness::alive, 0u);
	};
	check([] { return new larger_shape<TypeParam>; },
		[] { return new (std::nothrow) larger_shape<TypeParam>; });
	check(
		[] { return new labelled<TypeParam>; }, [] { return new (std::nothrow) labelled<TypeParam>; });
	check([] { return new wide_shape<TypeParam>; },
		[] { return new (std::nothrow) wide_shape<TypeParam>; });
	EXPECT_TRUE(aligned_to(std::make_unique<wide_shape<TypeParam>>().get(), 256));
	label *other_base = new labelled<TypeParam>;
	delete other_base;
}

TYPED_TEST(allocated, arrays_of_derived_classes) {
	ptrdiff_t heap = on_heap;
	for (size_t count = 0; count < 20; count++) {
		auto *larger = new larger_shape<TypeParam>[count];
		auto *wide = new wide_shape<TypeParam>[count];
		auto *same = new same_size<TypeParam>[count];
		EXPECT_EQ(witness::alive, 2 * count);
		EXPECT_TRUE(aligned_to(wide, 256));
		delete[] wide;
		delete[] same;
		delete[] larger;
	}
	EXPECT_EQ(on_heap, heap);
	EXPECT_EQ(in_use<shape<TypeParam>>(), 0u);
}

TYPED_TEST(allocated, a_stricter_derived_class_of_the_same_size_is_aligned) {
	struct letters : TypeParam::template base<letters> {
		char text[48];
	};
	struct alignas(16) strict : letters {};
	static_assert(sizeof(letters) == sizeof(strict) && alignof(letters) == 1);
	for (int i = 0; i < 100; i++) {
		EXPECT_TRUE(aligned_to(new strict, 16));
		/* In a slab's arrays, slots of other arrays are in between. */
		delete[] new letters[3];
	}
}

TYPED_TEST(allocated, unique_and_shared_pointers) {
	using T = sized<TypeParam, 88, 8>;
	{
		auto one = std::make_unique<T>();
		auto several = std::make_unique<T[]>(10);
		std::shared_ptr<T> shared(new T);
		EXPECT_EQ(witness::alive, 12u);
		EXPECT_GE(in_use<T>(), 2u);
	}
	EXPECT_EQ(in_use<T>(), 0u);
}

/* ---- exhaustion ---- */

struct scarce : tenure::arena_allocated<scarce, 100> {
	uint64_t words[3];
	witness w;
};

TEST(arena_allocated, exhaustion_changes_nothing) {
	using T = scarce;
	witness::alive = witness::built = 0;
	std::vector<T *> all;
	for (int i = 0; i < 90; i++)
		all.push_back(new T);
	EXPECT_THROW((void)new T[11], std::bad_alloc);
	EXPECT_EQ(new (std::nothrow) T[11], nullptr);
	EXPECT_EQ(home_of<T>().in_use(), 90u);
	EXPECT_EQ(witness::built, 90u);
	/* Nine objects and the cookie. */
	T *several = new (std::nothrow) T[9];
	ASSERT_NE(several, nullptr);
	EXPECT_THROW((void)new T, std::bad_alloc);
	EXPECT_EQ(new (std::nothrow) T, nullptr);
	EXPECT_EQ(home_of<T>().used(), 100u);
	delete[] several;
	for (T *p : all)
		delete p;
	EXPECT_EQ(home_of<T>().in_use(), 0u);
	EXPECT_EQ(witness::alive, 0u);
	EXPECT_TRUE(home_of<T>().reset());
	delete[] new T[99];
}

TEST(arena_allocated, a_constructor_may_exhaust_it) {
	struct nested : tenure::arena_allocated<nested, 50> {
		nested() : inner(new holder) {
		}
		struct holder : tenure::arena_allocated<holder, 10> {
			int64_t value = 0;
		};
		std::unique_ptr<holder> inner;
	};
	for (int i = 0; i < 2; i++) {
		EXPECT_THROW((void)new nested[20], std::bad_alloc) << "the eleventh";
		EXPECT_EQ(home_of<nested>().in_use(), 0u);
		EXPECT_EQ(home_of<nested::holder>().in_use(), 0u);
		EXPECT_TRUE(home_of<nested>().reset());
		EXPECT_TRUE(home_of<nested::holder>().reset());
	}
	delete[] new nested[10];
}

/* ---- threads ---- */

template <typename Home> struct passed_on : Home::template base<passed_on<Home>> {
	uint64_t words[4];
};

template <typename Home> void pass_on() {
	using T = passed_on<Home>;
	constexpr size_t threads = 4, count = 3000;
	std::array<std::vector<T *>, threads> made, arrays;
	rendezvous here(threads);
	std::atomic<size_t> broken{0};
	in_crowd(threads, [&](size_t i) {
		for (int round = 0; round < 3; round++) {
			for (size_t n = 0; n < count; n++) {
				made[i].push_back(new T);
				put_stamp(made[i].back(), sizeof(T), n);
			}
			for (size_t n = 1; n < 20; n++)
				arrays[i].push_back(new T[n]);
			here.meet();
			auto &others = made[(i + 1) % threads];
			for (size_t n = 0; n < count; n++) {
				broken += !has_stamp(others[n], sizeof(T), n);
				delete others[n];
			}
			for (T *p : arrays[(i + 1) % threads])
				delete[] p;
			here.meet();
			made[i].clear();
			arrays[i].clear();
		}
	});
	EXPECT_EQ(broken, 0u);
	EXPECT_EQ(in_use<T>(), 0u);
}

TEST(shared_allocated, other_threads_delete_in_the_arena) {
	pass_on<arena_home>();
}

TEST(shared_allocated, other_threads_delete_in_the_shared_slab) {
	pass_on<shared_slab_home>();
}

TEST(shared_allocated, the_first_object_of_several_threads_at_once) {
	struct first : tenure::shared_slab_allocated<first> {
		uint64_t words[2];
	};
	std::array<first *, 4> made{}, arrays{};
	in_crowd(4, [&](size_t i) {
		made[i] = new first;
		arrays[i] = new first[50];
	});
	EXPECT_EQ(in_use<first>(), 4u);
	for (size_t i = 0; i < 4; i++) {
		EXPECT_TRUE(owns<first>(made[i]));
		delete made[i];
		delete[] arrays[i];
	}
	EXPECT_EQ(in_use<first>(), 0u);
}

}
