/* pages.h, the internal layer under all allocators. */
#include "allocators.h"
#include "process.h"

#include <set>
#include <thread>

extern "C" {
#include "pages/pages.h"
}

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace {

struct chunk {
	char *p;
	size_t size, align;
};

std::vector<chunk> acquire(size_t count, size_t size, size_t align) {
	std::vector<chunk> chunks;
	for (size_t i = 0; i < count; i++) {
		chunks.push_back({static_cast<char *>(tn_pages_acquire(size, align)), size, align});
		EXPECT_NE(chunks.back().p, nullptr);
	}
	return chunks;
}

void release(const std::vector<chunk> &chunks) {
	for (const chunk &c : chunks)
		tn_pages_release(c.p, c.size, c.align);
}

size_t warm_bytes() {
	tn_stats stats;
	tn_pages_stats(&stats);
	return stats.cached_bytes;
}

TEST(pages, chunks_are_aligned_disjoint_and_writable) {
	std::vector<chunk> all;
	for (size_t size :
		{size_t{1}, page, page + 1, 64 * kib, 100 * kib, mib, 3 * mib, 16 * mib, 17 * mib, 40 * mib})
		for (size_t align : {size_t{1}, size_t{16}, page, 64 * kib, 2 * mib}) {
			char *p = static_cast<char *>(tn_pages_acquire(size, align));
			ASSERT_NE(p, nullptr) << size << " at " << align;
			ASSERT_TRUE(aligned_to(p, align));
			for (const chunk &c : all)
				ASSERT_TRUE(p + size <= c.p || c.p + c.size <= p);
			p[0] = p[size - 1] = 1;
			ASSERT_GE(tn_pages_reserved(size, align), size);
			all.push_back({p, size, align});
		}
	release(all);
}

TEST(pages, sizes_that_cannot_be_are_refused) {
	for (size_t back = 0; back < 9000; back += 500) {
		EXPECT_REFUSED(tn_pages_acquire(SIZE_MAX - back, 16), ENOMEM);
		EXPECT_REFUSED(tn_pages_acquire(PTRDIFF_MAX - back, 4096), ENOMEM);
	}
	EXPECT_REFUSED(tn_pages_acquire(size_t{1} << 60, size_t{1} << 62), ENOMEM);
}

TEST(pages, the_last_chunk_comes_first) {
	std::vector<chunk> chunks = acquire(3, 64 * kib, 16);
	release(chunks);
	char *again = static_cast<char *>(tn_pages_acquire(64 * kib, 16));
	if (debug_mode) {
		EXPECT_NE(again, chunks.back().p) << "quarantine";
	} else {
		EXPECT_EQ(again, chunks.back().p);
	}
	tn_pages_release(again, 64 * kib, 16);
}

TEST(pages, the_warm_cache_is_bounded) {
	tn_trim_all();
	release(acquire(4000, 64 * kib, 16));
	EXPECT_LE(warm_bytes(), TN_PAGES_WARM_BYTES);
	release(acquire(20, 8 * mib, 16));
	EXPECT_LE(warm_bytes(), TN_PAGES_WARM_BYTES);
	if (!debug_mode) {
		EXPECT_GT(warm_bytes(), 0u);
	}
	EXPECT_GE(tn_trim_all(), 0u);
	EXPECT_EQ(warm_bytes(), 0u);
}

TEST(pages, large_chunks_are_never_warm) {
	tn_trim_all();
	release(acquire(3, 16 * mib, 16));
	release(acquire(3, 50 * mib, 16));
	EXPECT_EQ(warm_bytes(), 0u);
}

TEST(pages, the_warm_cache_decays_to_what_is_needed) {
	tn_trim_all();
	release(acquire(100, mib / 2, 16));
	size_t after_peak = warm_bytes();
	for (int i = 0; i < 2000; i++)
		release(acquire(2, mib / 2, 16));
	if (!debug_mode) {
		EXPECT_GE(after_peak, 20 * mib);
		EXPECT_LE(warm_bytes(), 8 * mib);
	}
	tn_trim_all();
}

TEST(pages, trim_all_gives_memory_back) {
	tn_trim_all();
	size_t before = resident_bytes();
	std::vector<chunk> chunks = acquire(40, mib, 16);
	for (const chunk &c : chunks)
		std::memset(c.p, 1, c.size);
	release(chunks);
	size_t bytes = tn_trim_all();
	if (!debug_mode) {
		EXPECT_GE(bytes, 30 * mib);
	}
	expect_resident_below(before + 8 * mib);
	EXPECT_EQ(tn_trim_all(), 0u);
}

TEST(pages, address_space_is_used_again) {
	for (int i = 0; i < 50; i++)
		release(acquire(100, 64 * kib, 16));
	size_t before = address_space_bytes();
	for (int i = 0; i < 200; i++) {
		release(acquire(100, 64 * kib, 16));
		tn_trim_all();
	}
	if (!sanitized) {
		EXPECT_LE(address_space_bytes(), before + 64 * mib);
	}
}

TEST(pages, a_thread_gives_its_chunks_back_when_it_ends) {
	tn_trim_all();
	size_t before = warm_bytes();
	std::thread([] { release(acquire(4, 64 * kib, 16)); }).join();
	if (debug_mode) {
		EXPECT_EQ(warm_bytes(), before) << "debug keeps none";
	} else {
		EXPECT_GE(warm_bytes(), before + 256 * kib);
	}
}

TEST(pages, owners) {
	int owner = 0;
	EXPECT_EQ(tn_pages_owner(0), nullptr);
	EXPECT_EQ(tn_pages_owner(address(&owner)), nullptr);
	EXPECT_EQ(tn_pages_owner(UINTPTR_MAX), nullptr);
	EXPECT_EQ(tn_pages_owner(UINTPTR_MAX / 2), nullptr);
	char *p = static_cast<char *>(tn_pages_acquire(64 * kib, 64 * kib));
	EXPECT_EQ(tn_pages_owner(address(p)), nullptr);
	ASSERT_TRUE(tn_pages_set_owner(p, &owner));
	EXPECT_EQ(tn_pages_owner(address(p)), &owner);
	EXPECT_EQ(tn_pages_owner(address(p) + 64 * kib), nullptr);
	ASSERT_TRUE(tn_pages_set_owner(p, nullptr));
	EXPECT_EQ(tn_pages_owner(address(p)), nullptr);
	tn_pages_release(p, 64 * kib, 64 * kib);
	EXPECT_EQ(tn_pages_owner(address(p)), nullptr) << "a link of a list is no owner";
}

TEST(pages, owners_of_chunks_from_elsewhere) {
	void *p = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int owner = 0;
	ASSERT_TRUE(tn_pages_set_owner(p, &owner));
	EXPECT_EQ(tn_pages_owner(address(p)), &owner);
	ASSERT_TRUE(tn_pages_set_owner(p, nullptr));
	munmap(p, page);
}

/* A request's life: an arena and a slab, made, used and destroyed. */
void one_request() {
	arena_owner a = make_arena();
	slab_owner s = make_slab(64);
	for (int i = 0; i < 20; i++) {
		tn_arena_alloc(a.get(), 1000, 16);
		tn_slab_free(s.get(), tn_slab_alloc(s.get()));
	}
	tn_arena_reset(a.get());
}

/* Seccomp's strict mode kills a process that makes a system call other than read, write and exit. */
int requests_without_system_calls() {
	for (int i = 0; i < 100; i++)
		one_request();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		return 3;
	for (int i = 0; i < 1000; i++)
		one_request();
	syscall(SYS_exit, 0);
	return 4;
}

TEST(pages, a_steady_state_takes_no_system_call) {
	if (sanitized)
		GTEST_SKIP() << "the sanitizer makes system calls of its own";
	int status = in_child(requests_without_system_calls, 30);
	if (debug_mode)
		EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			<< "debug protects what was given up";
	else
		EXPECT_TRUE(exited_with(status, 0)) << "status " << status;
}

/* Page faults count as well: the chunks must be warm. */
TEST(pages, a_steady_state_touches_no_new_memory) {
	for (int i = 0; i < 100; i++)
		one_request();
	size_t space = address_space_bytes();
	size_t resident = resident_bytes();
	for (int i = 0; i < 2000; i++)
		one_request();
	if (sanitized)
		return;
	EXPECT_EQ(address_space_bytes(), space);
	if (!debug_mode) {
		EXPECT_LE(resident_bytes(), resident + 4 * page);
	}
}

} /* namespace */
