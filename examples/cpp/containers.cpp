/* The standard containers on Tenure's memory resources: only the line that makes a container names the
 * resource. */
#include <cstdio>
#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <tenure/tenure.hpp>
#include <unordered_map>
#include <vector>

using numbers_by_word = std::pmr::map<std::pmr::string, int>;

/* Makes up words, the same ones every time. */
static std::pmr::string word(int i, std::pmr::memory_resource *memory) {
	static const char *const stems[] = {"arena", "slab", "pool", "magazine", "checkpoint"};
	std::pmr::string text(stems[i * i % 5], memory);
	text += "-and-a-suffix-that-no-short-string-holds-";
	text += std::to_string(i % 7);
	return text;
}

/* Works in the memory that the caller passes, like any code that takes a std::pmr::memory_resource. */
static void count_words(const char *where, std::pmr::memory_resource *memory) {
	numbers_by_word counts(memory);
	std::pmr::vector<std::pmr::string> words(memory);
	for (int i = 0; i < 1000; i++) {
		words.push_back(word(i, memory));
		counts[words.back()]++;
	}
	std::pmr::unordered_map<std::pmr::string, std::pmr::list<int>> places(memory);
	for (size_t i = 0; i < words.size(); i++)
		places[words[i]].push_back(static_cast<int>(i));
	for (size_t i = 0; i < words.size(); i += 2)
		places[words[i]].remove(static_cast<int>(i));
	size_t left = 0;
	for (auto &place : places)
		left += place.second.size();
	std::printf("%s: %zu words, %zu different ones, %d times %s, %zu places left\n", where,
		words.size(), counts.size(), counts.begin()->second, counts.begin()->first.c_str(), left);
}

/* No destructor has to walk over a container that goes at once: the map itself is in the arena and is
 * not used after the reset. Only for containers that own nothing but memory. */
static void skip_the_destructor() {
	tenure::arena_resource memory;
	for (int request = 1; request <= 3; request++) {
		auto &counts = *::new (memory.alloc(sizeof(numbers_by_word), alignof(numbers_by_word)))
		                   numbers_by_word(&memory);
		for (int i = 0; i < 100 * request; i++)
			counts[word(i, &memory)]++;
		std::printf("request %d: %zu different words\n", request, counts.size());
		memory.reset();
	}
	std::printf("%zu bytes left\n", memory.stats().live_bytes);
}

int main() {
	/* In place of monotonic_buffer_resource: memory goes back all at once. */
	tenure::arena_resource arena;
	count_words("arena_resource", &arena);
	/* In place of unsynchronized_pool_resource: every block can be used again at once. */
	tenure::slab_resource slabs;
	count_words("slab_resource", &slabs);
	/* In place of synchronized_pool_resource: the same, for any thread. */
	tenure::shared_slab_resource shared;
	count_words("shared_slab_resource", &shared);
	/* The type names the resource: the same without virtual calls. */
	std::vector<int, tenure::allocator<int, tenure::slab_resource>> squares(slabs);
	for (int i = 0; i < 100; i++)
		squares.push_back(i * i);
	std::printf("last square: %d\n", squares.back());
	skip_the_destructor();
	return 0;
}
