/* A source whose chunks are fresh mappings, so that the pages that were touched can be counted. */
#ifndef TENURE_TESTS_MAPPED_SOURCE_H
#define TENURE_TESTS_MAPPED_SOURCE_H

#include "allocators.h"

#include <map>

#include <sys/mman.h>

class mapped_source {
public:
	mapped_source() : source{acquire, release, this} {
	}
	~mapped_source() {
		EXPECT_TRUE(chunks.empty());
	}

	size_t resident_pages() const {
		size_t count = 0;
		for (auto &chunk : chunks) {
			std::vector<unsigned char> pages(chunk.second / page);
			EXPECT_EQ(mincore(chunk.first, chunk.second, pages.data()), 0);
			for (unsigned char state : pages)
				count += state & 1;
		}
		return count;
	}

	tn_source source;
	std::map<char *, size_t> chunks;

private:
	static void *acquire(void *ctx, size_t size, size_t align) {
		size_t whole = size + align;
		void *p = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return nullptr;
		char *begin = static_cast<char *>(p);
		char *chunk = begin + (align - address(begin) % align) % align;
		if (chunk != begin)
			munmap(begin, static_cast<size_t>(chunk - begin));
		munmap(chunk + size, whole - size - static_cast<size_t>(chunk - begin));
		static_cast<mapped_source *>(ctx)->chunks[chunk] = size;
		return chunk;
	}
	static void release(void *ctx, void *p, size_t size) {
		auto &chunks = static_cast<mapped_source *>(ctx)->chunks;
		auto chunk = chunks.find(static_cast<char *>(p));
		ASSERT_TRUE(chunk != chunks.end() && chunk->second == size);
		chunks.erase(chunk);
		munmap(p, size);
	}
};

#endif
