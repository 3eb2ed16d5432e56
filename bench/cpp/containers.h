/* bench/cpp/containers.h: a container made, filled and destroyed, as templates over the memory (see
 * cpp/memory.h). elements() is the number of elements put in. */
#ifndef BENCH_CPP_CONTAINERS_H
#define BENCH_CPP_CONTAINERS_H

#include <algorithm>
#include <list>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/clock.h"

namespace bench {

/* The same elements for every subject. */
struct container_input {
	static constexpr size_t most = 4000;

	std::vector<int> keys, spread_keys; /* 0, 1, 2, ... in random order; random numbers */
	std::vector<std::string> texts;     /* 20 to 40 characters: too long for the string object itself */
	std::vector<size_t> bursts;         /* 1 to 64 */

	container_input() : keys(most), spread_keys(most), texts(most), bursts(128) {
		std::mt19937 random(1);
		std::iota(keys.begin(), keys.end(), 0);
		std::shuffle(keys.begin(), keys.end(), random);
		for (int &key : spread_keys)
			key = static_cast<int>(random() / 2);
		for (std::string &text : texts)
			text.assign(20 + random() % 21, 'x');
		for (size_t &burst : bursts)
			burst = 1 + random() % 64;
	}
};

inline const container_input input;

template <class M>
using text_in = std::basic_string<char, std::char_traits<char>, typename M::template allocator<char>>;

/* The compiler must assume that the container is read and changed here. */
template <class C> void show(C &container) {
	C *p = &container;
	escape(p);
}

/* Strings by number; half of them erased. */
struct map_life {
	static constexpr size_t count = 3000;

	static size_t elements() {
		return count;
	}
	template <class M> static void live(M &memory) {
		using text = text_in<M>;
		using allocator = typename M::template nesting<std::pair<const int, text>>;
		std::map<int, text, std::less<int>, allocator> map{allocator(memory.handle())};
		for (size_t i = 0; i < count; i++)
			map.emplace(input.keys[i], std::string_view(input.texts[i]));
		show(map);
		for (size_t i = 0; i < count; i += 2)
			map.erase(input.keys[i]);
		show(map);
	}
};

/* A queue of 4,000; bursts come in at the back and as many leave at the front. */
struct list_life {
	static constexpr size_t count = 4000;

	static size_t elements() {
		return std::accumulate(input.bursts.begin(), input.bursts.end(), count);
	}
	template <class M> static void live(M &memory) {
		using allocator = typename M::template allocator<int>;
		std::list<int, allocator> list{allocator(memory.handle())};
		for (size_t i = 0; i < count; i++)
			list.push_back(static_cast<int>(i));
		for (size_t burst : input.bursts) {
			for (size_t i = 0; i < burst; i++)
				list.push_back(static_cast<int>(i));
			for (size_t i = 0; i < burst; i++)
				list.pop_front();
		}
		show(list);
	}
};

/* A small index, erased in the order of its insertions. */
struct index_life {
	static constexpr size_t count = 256;

	static size_t elements() {
		return count;
	}
	template <class M> static void live(M &memory) {
		using allocator = typename M::template allocator<std::pair<const size_t, size_t>>;
		std::map<size_t, size_t, std::less<size_t>, allocator> map{allocator(memory.handle())};
		for (size_t i = 0; i < count; i++)
			map.emplace_hint(map.end(), i, i);
		show(map);
		while (!map.empty())
			map.erase(map.begin());
	}
};

/* Numbers by number; half of them erased. */
struct unordered_map_life {
	static constexpr size_t count = 4000;

	static size_t elements() {
		return count;
	}
	template <class M> static void live(M &memory) {
		using allocator = typename M::template allocator<std::pair<const int, int>>;
		std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, allocator> map{
			allocator(memory.handle())};
		for (size_t i = 0; i < count; i++)
			map.emplace(input.spread_keys[i], static_cast<int>(i));
		show(map);
		for (size_t i = 0; i < count; i += 2)
			map.erase(input.spread_keys[i]);
		show(map);
	}
};

/* Strings appended to a vector without reserve(). */
struct vector_string_life {
	static constexpr size_t count = 2000;

	static size_t elements() {
		return count;
	}
	template <class M> static void live(M &memory) {
		using text = text_in<M>;
		using allocator = typename M::template nesting<text>;
		std::vector<text, allocator> texts{allocator(memory.handle())};
		for (size_t i = 0; i < count; i++)
			texts.emplace_back(std::string_view(input.texts[i]));
		show(texts);
	}
};

}
#endif
