/* A document of nested containers that is edited for long and then dropped whole: blocks are reused
 * while it lives, and no destructor walks over it at its end. */
#include <cstdio>
#include <map>
#include <string>
#include <tenure/tenure.hpp>
#include <vector>

using text = std::pmr::string;
using paragraphs = std::pmr::vector<text>;
using chapters = std::pmr::map<text, paragraphs>;

static text sentence(int i, std::pmr::memory_resource *memory) {
	text s("A sentence that is too long for a string to hold by itself, number ", memory);
	s += std::to_string(i);
	return s;
}

static void edit(chapters &book, int round, std::pmr::memory_resource *memory) {
	text name("Chapter ", memory);
	name += std::to_string(round % 10);
	paragraphs &chapter = book[name];
	chapter.clear();
	for (int i = 0; i < 50 + round % 7; i++)
		chapter.push_back(sentence(i, memory));
	if (round % 4 == 0)
		book.erase(name);
}

int main() {
	tenure::heap_resource memory;
	for (int document = 1; document <= 2; document++) {
		auto &book = *::new (memory.alloc(sizeof(chapters), alignof(chapters))) chapters(&memory);
		for (int round = 0; round < 100; round++)
			edit(book, round, &memory);
		std::size_t before = memory.stats().committed_bytes;
		for (int round = 100; round < 200; round++)
			edit(book, round, &memory);
		/* Debug keeps freed memory in quarantine. */
		bool grew = memory.stats().committed_bytes > before && TN_MODE != TN_MODE_DEBUG;
		std::printf("document %d: %zu chapters, grew in 100 more edits: %s\n", document, book.size(),
			grew ? "yes" : "no");
		/* Forgets the map with everything in it; the next document finds warm memory. */
		memory.reset();
		std::printf("after it: %zu blocks\n", memory.stats().live_count);
	}
	return 0;
}
