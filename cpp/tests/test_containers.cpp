/* Containers over every resource, with std::pmr::polymorphic_allocator and with tenure::allocator.
 * After a random program each equals the same container over std::allocator. */
#include "resources.h"

#include <tenure/allocator.hpp>
#include <tenure/arena.hpp>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <string>
#include <unordered_map>

template <> struct facts<tenure::arena> {
	static constexpr const char *name = "arena";
};
template <> struct facts<tenure::heap> {
	static constexpr const char *name = "heap";
};

namespace {

template <typename R> struct polymorphic {
	using resource = R;
	template <typename T> using allocator = std::pmr::polymorphic_allocator<T>;

	template <typename T> allocator<T> of() {
		return allocator<T>(&memory);
	}
	static std::string name() {
		return facts<R>::name;
	}

	R memory;
};

template <typename R> struct by_type {
	using resource = R;
	template <typename T> using allocator = tenure::allocator<T, R>;

	template <typename T> allocator<T> of() {
		return allocator<T>(memory);
	}
	static std::string name() {
		return std::string("allocator_of_") + facts<R>::name;
	}

	R memory;
};

struct name_of_memory {
	template <typename M> static std::string GetName(int) {
		return M::name();
	}
};

template <typename M> class containers : public testing::Test {
protected:
	template <typename T> using allocator = typename M::template allocator<T>;
	using text = std::basic_string<char, std::char_traits<char>, allocator<char>>;

	template <typename T> allocator<T> of() {
		return memory_.template of<T>();
	}
	text make_text(std::string_view s) {
		return text(s, of<char>());
	}

	M memory_;
	dice random_{program_seed()};
};

using memories = testing::Types<polymorphic<std::pmr::monotonic_buffer_resource>,
	polymorphic<std::pmr::unsynchronized_pool_resource>,
	polymorphic<std::pmr::synchronized_pool_resource>, polymorphic<tenure::arena_resource>,
	polymorphic<tenure::slab_resource>, polymorphic<tenure::shared_slab_resource>,
	polymorphic<tenure::heap_resource>, by_type<tenure::arena_resource>, by_type<tenure::slab_resource>,
	by_type<tenure::shared_slab_resource>, by_type<tenure::arena>, by_type<tenure::heap>>;
TYPED_TEST_SUITE(containers, memories, name_of_memory);

constexpr size_t steps = 4000;

/* Some are short enough to need no memory. */
std::string random_text(dice &random) {
	return std::string(random.below(60), static_cast<char>('a' + random.below(26)));
}

template <typename A, typename B> bool same(const A &a, const B &b) {
	return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

template <typename A, typename B> bool same_texts(const A &a, const B &b) {
	return std::equal(a.begin(), a.end(), b.begin(), b.end(),
		[](const auto &x, const auto &y) { return std::string_view(x) == std::string_view(y); });
}

template <typename A, typename B> bool same_pairs(const A &a, const B &b) {
	if (a.size() != b.size())
		return false;
	for (const auto &[key, value] : b) {
		auto found = a.find(key);
		if (found == a.end() || std::string_view(found->second) != std::string_view(value))
			return false;
	}
	return true;
}

/* One step of a program on a sequence and on its twin. */
template <typename V, typename W> void change_sequence(dice &random, V &v, W &w) {
	const int value = static_cast<int>(random.below(1000));
	const auto at = static_cast<std::ptrdiff_t>(random.below(v.size() + 1));
	switch (random.below(10)) {
	case 0:
		v.insert(std::next(v.begin(), at), value);
		w.insert(std::next(w.begin(), at), value);
		break;
	case 1:
		if (at != static_cast<std::ptrdiff_t>(v.size())) {
			v.erase(std::next(v.begin(), at));
			w.erase(std::next(w.begin(), at));
		}
		break;
	case 2:
		v.insert(std::next(v.begin(), at), 7, value);
		w.insert(std::next(w.begin(), at), 7, value);
		break;
	case 3:
		v.erase(v.begin(), std::next(v.begin(), at / 4));
		w.erase(w.begin(), std::next(w.begin(), at / 4));
		break;
	case 4:
		v.resize(v.size() / 2 + random.below(2) * 100, value);
		w.resize(v.size(), value);
		break;
	default:
		v.push_back(value);
		w.push_back(value);
	}
	if (random.one_in(300)) {
		v.clear();
		w.clear();
	}
}

TYPED_TEST(containers, vector) {
	std::vector<int, typename TestFixture::template allocator<int>> v(this->template of<int>());
	std::vector<int> w;
	for (size_t i = 0; i < steps; i++) {
		change_sequence(this->random_, v, w);
		if (this->random_.one_in(100))
			v.shrink_to_fit();
		ASSERT_TRUE(same(v, w));
	}
}

TYPED_TEST(containers, deque) {
	std::deque<int, typename TestFixture::template allocator<int>> v(this->template of<int>());
	std::deque<int> w;
	for (size_t i = 0; i < steps; i++) {
		change_sequence(this->random_, v, w);
		v.push_front(1);
		w.push_front(1);
		ASSERT_TRUE(same(v, w));
	}
}

TYPED_TEST(containers, list) {
	std::list<int, typename TestFixture::template allocator<int>> v(this->template of<int>());
	std::list<int> w;
	for (size_t i = 0; i < steps; i++) {
		change_sequence(this->random_, v, w);
		if (this->random_.one_in(50)) {
			v.sort();
			w.sort();
		}
		if (this->random_.one_in(50)) {
			v.unique();
			w.unique();
		}
		ASSERT_TRUE(same(v, w));
	}
}

TYPED_TEST(containers, string) {
	auto v = this->make_text("");
	std::string w;
	for (size_t i = 0; i < steps; i++) {
		std::string more = random_text(this->random_);
		size_t at = this->random_.below(w.size() + 1);
		switch (this->random_.below(4)) {
		case 0:
			v.insert(at, more.data(), more.size());
			w.insert(at, more);
			break;
		case 1:
			v.erase(at, more.size());
			w.erase(at, more.size());
			break;
		case 2:
			v.replace(at, 10, more.data(), more.size());
			w.replace(at, 10, more);
			break;
		default:
			v.append(more.data(), more.size());
			w.append(more);
		}
		if (this->random_.one_in(200)) {
			v.resize(3, 'x');
			w.resize(3, 'x');
			v.shrink_to_fit();
		}
		ASSERT_EQ(std::string_view(v), w);
	}
}

template <typename V, typename W, typename Make>
void change_map(dice &random, V &v, W &w, Make make_text) {
	int key = static_cast<int>(random.below(300));
	std::string value = random_text(random);
	if (random.one_in(3)) {
		ASSERT_EQ(v.erase(key), w.erase(key));
	} else {
		v.insert_or_assign(key, make_text(value));
		w.insert_or_assign(key, value);
	}
	if (random.one_in(500)) {
		v.clear();
		w.clear();
	}
}

TYPED_TEST(containers, map) {
	using text = typename TestFixture::text;
	using entry = std::pair<const int, text>;
	using allocator = typename TestFixture::template allocator<entry>;
	std::map<int, text, std::less<int>, allocator> v(this->template of<entry>());
	std::map<int, std::string> w;
	for (size_t i = 0; i < steps; i++) {
		change_map(this->random_, v, w, [this](std::string_view s) { return this->make_text(s); });
		if (i % 16 == 0) {
			ASSERT_TRUE(same_pairs(v, w));
		}
	}
}

TYPED_TEST(containers, unordered_map) {
	using text = typename TestFixture::text;
	using entry = std::pair<const int, text>;
	using allocator = typename TestFixture::template allocator<entry>;
	std::unordered_map<int, text, std::hash<int>, std::equal_to<int>, allocator> v(
		this->template of<entry>());
	std::unordered_map<int, std::string> w;
	for (size_t i = 0; i < steps; i++) {
		change_map(this->random_, v, w, [this](std::string_view s) { return this->make_text(s); });
		if (this->random_.one_in(400))
			v.rehash(this->random_.below(2000));
		if (i % 16 == 0) {
			ASSERT_TRUE(same_pairs(v, w));
		}
	}
}

TYPED_TEST(containers, copies_moves_and_swaps) {
	using text = typename TestFixture::text;
	std::vector<text, typename TestFixture::template allocator<text>> v(this->template of<text>());
	std::vector<std::string> w;
	for (size_t i = 0; i < 300; i++) {
		w.push_back(random_text(this->random_));
		v.push_back(this->make_text(w.back()));
	}
	decltype(v) copy(v, this->template of<text>());
	EXPECT_TRUE(same_texts(copy, w));
	decltype(v) moved = std::move(copy);
	EXPECT_TRUE(same_texts(moved, w));
	decltype(v) assigned(this->template of<text>());
	assigned = moved;
	EXPECT_TRUE(same_texts(assigned, w));
	assigned.erase(assigned.begin(), assigned.begin() + 100);
	assigned.swap(v);
	EXPECT_TRUE(same_texts(assigned, w));
	v = std::move(assigned);
	EXPECT_TRUE(same_texts(v, w));
	std::swap(v.front(), v.back());
	std::swap(w.front(), w.back());
	EXPECT_TRUE(same_texts(v, w));
}

}
