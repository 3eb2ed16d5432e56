/* The standard on every memory resource ([mem.res.class], [mem.res.eq]), on the global ones
 * ([mem.res.global]) and on polymorphic_allocator over one ([mem.poly.allocator]). A suite has the name
 * of its clause, a test that of a statement in it. */
#include "resources.h"

#include <list>
#include <map>
#include <string>

namespace {

/* ---- [mem.res.public], [mem.res.private] ---- */

RESOURCE_SUITE(mem_res_public, all_resources);

TYPED_TEST(mem_res_public, allocate_has_the_size_and_the_alignment) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (size_t align = 1; align <= page; align *= 2)
		for (size_t bytes : {1, 2, 3, 8, 17, 100, 1000, 5000, 70000})
			blocks.take(bytes, align);
	EXPECT_TRUE(blocks.all_intact());
	blocks.give_all();
}

TYPED_TEST(mem_res_public, allocate_aligns_for_any_type_when_not_told) {
	recorder books;
	TypeParam r(&books);
	for (size_t bytes = 1; bytes < 100; bytes++) {
		void *p = r.allocate(bytes);
		EXPECT_TRUE(aligned_to(p, alignof(std::max_align_t)));
		EXPECT_TRUE(books.holds(p, bytes));
		if (bytes % 2 == 0)
			r.deallocate(p, bytes);
	}
}

TYPED_TEST(mem_res_public, allocate_of_64_mib) {
	recorder books;
	TypeParam r(&books);
	for (size_t align : {size_t{1}, page}) {
		char *p = static_cast<char *>(r.allocate(64 * mib, align));
		EXPECT_TRUE(books.holds(p, 64 * mib));
		EXPECT_TRUE(aligned_to(p, align));
		std::memset(p, 1, 64 * mib);
		r.deallocate(p, 64 * mib, align);
	}
}

TYPED_TEST(mem_res_public, allocate_of_nothing_is_nobody_elses) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	std::vector<void *> nothings;
	for (int i = 0; i < 50; i++) {
		blocks.take(16);
		nothings.push_back(r.allocate(0, 1));
		nothings.push_back(r.allocate(0, 64));
		EXPECT_NE(nothings[nothings.size() - 2], nullptr);
		EXPECT_TRUE(aligned_to(nothings.back(), 64));
	}
	EXPECT_TRUE(blocks.all_intact());
	for (size_t i = 0; i < nothings.size(); i++)
		r.deallocate(nothings[i], 0, i % 2 == 0 ? 1 : 64);
	EXPECT_TRUE(blocks.all_intact());
}

TYPED_TEST(mem_res_public, blocks_do_not_meet) {
	recorder books;
	dice random(program_seed());
	TypeParam r(&books);
	block_list blocks(r);
	for (int i = 0; i < 5000; i++) {
		if (blocks.count() > 0 && random.one_in(3)) {
			blocks.give(random.below(blocks.count()));
			continue;
		}
		held_block wanted = random_request(random, page);
		blocks.take(wanted.bytes, wanted.align);
	}
	EXPECT_TRUE(blocks.all_intact());
}

TYPED_TEST(mem_res_public, is_equal_says_what_operators_say) {
	recorder books;
	TypeParam one(&books), other(&books);
	std::pmr::memory_resource &base = one;
	EXPECT_TRUE(one.is_equal(one));
	EXPECT_TRUE(base.is_equal(one));
	EXPECT_FALSE(one.is_equal(other));
	EXPECT_FALSE(one.is_equal(books));
	EXPECT_FALSE(one.is_equal(*std::pmr::new_delete_resource()));
	EXPECT_TRUE(one == base);
	EXPECT_FALSE(one != base);
	EXPECT_TRUE(one != other);
	EXPECT_FALSE(one == other);
	static_assert(noexcept(one.is_equal(other)));
	static_assert(noexcept(one == other));
}

TYPED_TEST(mem_res_public, a_base_is_a_base) {
	static_assert(std::is_base_of_v<std::pmr::memory_resource, TypeParam>);
	static_assert(!std::is_copy_constructible_v<TypeParam> && !std::is_copy_assignable_v<TypeParam>);
	recorder books;
	std::unique_ptr<std::pmr::memory_resource> r = std::make_unique<TypeParam>(&books);
	fill(r->allocate(1000), 1000, 1);
	EXPECT_GT(books.held_count(), 0u);
	r.reset();
	EXPECT_EQ(books.held_count(), 0u);
}

RESOURCE_SUITE(mem_res_private, all_resources);

TYPED_TEST(mem_res_private, do_allocate_throws_what_upstream_throws) {
	recorder books;
	TypeParam r(&books);
	for (size_t bytes : {size_t{1}, size_t{100}, size_t{5000}, 3 * mib}) {
		books.fail(1, recorder::always);
		EXPECT_THROW((void)r.allocate(bytes), std::bad_alloc);
		books.fail(1, recorder::always, 42);
		try {
			(void)r.allocate(bytes);
			ADD_FAILURE() << "upstream had nothing";
		} catch (const out_of_stock &e) {
			EXPECT_EQ(e.code, 42);
		}
		books.heal();
		block_list blocks(r);
		blocks.take(bytes);
		blocks.give_all();
		r.release();
	}
	EXPECT_EQ(books.held_count(), 0u);
}

/* One program again and again; upstream fails once: at its first request, at its second, ... */
TYPED_TEST(mem_res_private, do_allocate_that_throws_changes_nothing) {
	for (size_t failing = 1;; failing++) {
		recorder books;
		dice random(program_seed());
		TypeParam r(&books);
		block_list blocks(r);
		books.fail(failing, 1, 7);
		for (int i = 0; i < 300; i++) {
			held_block wanted = random_request(random, 1024);
			try {
				blocks.take(wanted.bytes, wanted.align);
			} catch (const out_of_stock &) {
				ASSERT_TRUE(blocks.all_intact());
				blocks.take(wanted.bytes, wanted.align);
			}
			if (random.one_in(4))
				blocks.give(random.below(blocks.count()));
		}
		EXPECT_TRUE(blocks.all_intact());
		r.release();
		EXPECT_EQ(books.held_count(), 0u);
		if (books.failures() == 0) {
			EXPECT_GT(failing, 3u) << "upstream was hardly asked";
			break;
		}
	}
}

TYPED_TEST(mem_res_private, do_deallocate_throws_nothing_when_upstream_would) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (size_t i = 0; i < 1000; i++)
		blocks.take(i * 7, size_t{1} << i % 8);
	books.fail(1, recorder::always);
	EXPECT_NO_THROW(blocks.give_all());
	EXPECT_NO_THROW(r.release());
	EXPECT_EQ(books.held_count(), 0u);
}

/* ---- [mem.poly.allocator] ---- */

RESOURCE_SUITE(mem_poly_allocator, all_resources);

TYPED_TEST(mem_poly_allocator, resource_is_the_one_it_was_made_from) {
	recorder books;
	TypeParam r(&books);
	std::pmr::polymorphic_allocator<int> ints(&r);
	std::pmr::polymorphic_allocator<std::string> strings(ints);
	EXPECT_EQ(ints.resource(), &r);
	EXPECT_EQ(strings.resource(), &r);
	EXPECT_TRUE(ints == strings);
	TypeParam other(&books);
	EXPECT_TRUE(ints != std::pmr::polymorphic_allocator<int>(&other));
	EXPECT_NE(ints.select_on_container_copy_construction().resource(), &r);
}

TYPED_TEST(mem_poly_allocator, allocate_is_for_so_many_aligned_objects) {
	struct alignas(256) wide {
		char c[256];
	};
	recorder books;
	TypeParam r(&books);
	std::pmr::polymorphic_allocator<wide> wides(&r);
	for (size_t n : {1, 2, 9}) {
		wide *p = wides.allocate(n);
		EXPECT_TRUE(aligned_to(p, 256));
		EXPECT_TRUE(books.holds(p, n * sizeof *p));
		fill(p, n * sizeof *p, n);
		wides.deallocate(p, n);
	}
	EXPECT_THROW((void)wides.allocate(SIZE_MAX / sizeof(wide) + 1), std::bad_array_new_length);
}

TYPED_TEST(mem_poly_allocator, elements_get_the_resource_of_their_container) {
	recorder books;
	TypeParam r(&books);
	std::pmr::map<std::pmr::string, std::pmr::vector<std::pmr::string>> shelf(&r);
	for (char c = 'a'; c <= 'z'; c++)
		shelf[std::pmr::string(200, c)].emplace_back(300, c);
	for (auto &[key, values] : shelf) {
		EXPECT_EQ(key.get_allocator().resource(), &r);
		EXPECT_EQ(values.get_allocator().resource(), &r);
		EXPECT_EQ(values.front().get_allocator().resource(), &r);
		EXPECT_TRUE(books.holds(values.front().data(), 300));
	}
}

TYPED_TEST(mem_poly_allocator, copies_are_on_the_default_resource_moves_stay) {
	recorder books;
	TypeParam r(&books), other(&books);
	std::pmr::vector<std::pmr::string> here(&r);
	for (char c = 'a'; c <= 'z'; c++)
		here.emplace_back(100, c);
	const std::vector<std::pmr::string> expected(here.begin(), here.end());
	auto same = [&expected](const std::pmr::vector<std::pmr::string> &v) {
		return std::equal(v.begin(), v.end(), expected.begin(), expected.end());
	};

	std::pmr::vector<std::pmr::string> copy = here;
	EXPECT_EQ(copy.get_allocator().resource(), std::pmr::get_default_resource());
	std::pmr::vector<std::pmr::string> there(here, &other);
	EXPECT_EQ(there.get_allocator().resource(), &other);
	const void *data = here.data();
	std::pmr::vector<std::pmr::string> moved = std::move(here);
	EXPECT_EQ(moved.get_allocator().resource(), &r);
	EXPECT_EQ(moved.data(), data);
	/* Unequal allocators: the elements are moved one by one, and each stays with its resource. */
	there = std::move(moved);
	EXPECT_EQ(there.get_allocator().resource(), &other);
	EXPECT_NE(there.data(), data);
	EXPECT_TRUE(same(there) && same(copy));
}

TYPED_TEST(mem_poly_allocator, containers_of_equal_allocators_swap_and_splice) {
	recorder books;
	TypeParam r(&books);
	std::pmr::list<int> odd({1, 3, 5}, &r), even({2, 4}, &r);
	const int *first = &odd.front();
	odd.swap(even);
	EXPECT_EQ(&even.front(), first);
	odd.splice(odd.end(), even);
	EXPECT_EQ(odd, (std::pmr::list<int>{2, 4, 1, 3, 5}));
}

/* ---- additions of Tenure's headers ---- */

RESOURCE_SUITE(tenure_resource, our_resources);

/* Preconditions in the standard. */
TYPED_TEST(tenure_resource, refuses_an_alignment_that_is_none) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (size_t bytes : {size_t{0}, size_t{1}, size_t{48}, 2 * kib, mib}) {
		for (size_t align : {size_t{3}, size_t{24}, page + 1, 2 * TN_ALIGN_MAX, SIZE_MAX})
			EXPECT_THROW((void)r.allocate(bytes, align), std::invalid_argument) << align;
		blocks.take(bytes);
	}
	EXPECT_TRUE(blocks.all_intact());
}

TYPED_TEST(tenure_resource, refuses_a_size_that_cannot_be) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	blocks.take(100);
	/* Opaque, so that the compiler cannot foresee the result. */
	volatile size_t most = SIZE_MAX, half = PTRDIFF_MAX;
	for (size_t back = 0; back < 70; back++)
		for (size_t align : {size_t{1}, size_t{16}, page, size_t{TN_ALIGN_MAX}}) {
			EXPECT_THROW((void)r.allocate(most - back, align), std::bad_alloc);
			EXPECT_THROW((void)r.allocate(half - back, align), std::bad_alloc);
			EXPECT_THROW((void)r.allocate(half + 1 + back, align), std::bad_alloc);
		}
	blocks.take(100);
	EXPECT_TRUE(blocks.all_intact());
}

TYPED_TEST(tenure_resource, accepts_the_largest_alignment) {
	recorder books;
	TypeParam r(&books);
	block_list blocks(r);
	for (size_t bytes : {size_t{1}, 5 * kib, mib + 1})
		blocks.take(bytes, TN_ALIGN_MAX);
	blocks.give_all();
}

/* An exception of upstream reaches the request that caused it, and no later one. */
TYPED_TEST(tenure_resource, an_exception_of_upstreams_is_thrown_once) {
	recorder books;
	TypeParam r(&books);
	books.fail(1, 1, 9);
	EXPECT_THROW((void)r.allocate(100), out_of_stock);
	EXPECT_THROW((void)r.allocate(100, 3), std::invalid_argument);
	EXPECT_THROW((void)r.allocate(100, 2 * TN_ALIGN_MAX), std::invalid_argument);
	std::memset(r.allocate(100), 1, 100);
	for (int i = 0; i < 1000; i++) {
		books.fail(1, 1, 9);
		try {
			std::memset(r.allocate(4000), 1, 4000);
		} catch (const out_of_stock &) {
		}
		EXPECT_THROW((void)r.allocate(100, 3), std::invalid_argument);
	}
}

/* Without an upstream memory comes from the page layer, not the default resource; nullptr shows it. */
TYPED_TEST(tenure_resource, no_upstream_is_the_page_layer) {
	TypeParam unnamed, none(nullptr);
	for (TypeParam *r : {&unnamed, &none}) {
		EXPECT_EQ(r->upstream_resource(), nullptr);
		block_list blocks(*r);
		for (int round = 0; round < 2; round++) {
			for (size_t i = 0; i < 1000; i++)
				blocks.take(i * 10, size_t{1} << i % 13);
			blocks.take(5 * mib);
			EXPECT_TRUE(blocks.all_intact());
			EXPECT_GE(r->stats().live_bytes, 9 * mib);
			r->release();
			blocks.forget();
			EXPECT_EQ(r->stats().live_bytes, 0u);
		}
	}
}

/* ---- lifetimes ---- */

RESOURCE_SUITE(mem_res_lifetime, all_resources);

/* [mem.res.monotonic.buffer.ctor], [mem.res.pool.ctor]: the destructor is release(), so that containers
 * need not be destroyed. */
TYPED_TEST(mem_res_lifetime, containers_may_be_left_behind) {
	using container = std::pmr::map<int, std::pmr::vector<std::pmr::string>>;
	alignas(container) unsigned char place[sizeof(container)];
	recorder books;
	{
		TypeParam r(&books);
		container *left = new (place) container(&r);
		for (int i = 0; i < 500; i++)
			(*left)[i % 50].emplace_back(static_cast<size_t>(i), 'x');
		EXPECT_GT(books.held_count(), 0u);
	}
	EXPECT_EQ(books.held_count(), 0u);
	EXPECT_EQ(books.wrong(), 0u);
}

/* ---- [mem.res.global] ---- */

RESOURCE_SUITE(mem_res_global, all_resources);

TYPED_TEST(mem_res_global, new_delete_resource_serves_as_upstream) {
	TypeParam r(std::pmr::new_delete_resource());
	EXPECT_EQ(r.upstream_resource(), std::pmr::new_delete_resource());
	block_list blocks(r);
	for (size_t i = 0; i < 2000; i++)
		blocks.take(i, size_t{1} << i % 13);
	EXPECT_TRUE(blocks.all_intact());
}

/* The constructor of a pool resource may already request memory: the standard leaves that open. */
TYPED_TEST(mem_res_global, null_memory_resource_as_upstream_has_nothing) {
	for (size_t bytes : {size_t{1}, mib}) {
		auto use = [bytes] {
			TypeParam r(std::pmr::null_memory_resource());
			return r.allocate(bytes);
		};
		EXPECT_THROW((void)use(), std::bad_alloc);
	}
}

TYPED_TEST(mem_res_global, set_default_resource_makes_it_everybodys) {
	recorder books;
	TypeParam r(&books);
	std::pmr::memory_resource *before = std::pmr::set_default_resource(&r);
	EXPECT_EQ(std::pmr::get_default_resource(), &r);
	{
		std::pmr::vector<int> v(1000, 7);
		EXPECT_EQ(v.get_allocator().resource(), &r);
		EXPECT_TRUE(books.holds(v.data(), 1000 * sizeof(int)));
	}
	EXPECT_EQ(std::pmr::set_default_resource(nullptr), &r);
	EXPECT_EQ(std::pmr::get_default_resource(), std::pmr::new_delete_resource());
	std::pmr::set_default_resource(before);
}

}
