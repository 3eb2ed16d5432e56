/* base.h: versions, the panic hook, the names of the libraries. */
#include "allocators.h"
#include "process.h"

#include <cstdlib>

namespace test_base {
namespace {

void first_hook(const char *) {
}
void second_hook(const char *) {
}

/* Exits 7 when the line is complete and names what it must. */
void judge(const char *message) {
	std::string text = message;
	bool one_line = text.find('\n') == std::string::npos || text.find('\n') == text.size() - 1;
	_exit(one_line && text.find("stock") != std::string::npos ? 7 : 8);
}

void note(const char *message) {
	std::fprintf(stderr, "noted <%s>\n", message);
}

int local_variable_freed_into(tn_slab *s) {
	alignas(64) char foreign[64] = {};
	tn_slab_free(s, foreign);
	/* Release sees a foreign pointer when its magazine is verified. */
	tn_slab_verify(s);
	return 0;
}

slab_owner stock() {
	tn_slab_options options = {};
	options.name = "stock";
	slab_owner s = make_slab(64, 0, options);
	void *p = tn_slab_alloc(s.get());
	tn_slab_free(s.get(), p);
	return s;
}

TEST(base, hook_is_replaced_and_restored) {
	tn_panic_hook original = tn_on_panic(first_hook);
	EXPECT_EQ(tn_on_panic(second_hook), first_hook);
	EXPECT_EQ(tn_on_panic(nullptr), second_hook);
	tn_panic_hook restored = tn_on_panic(nullptr);
	EXPECT_EQ(restored, original) << "NULL restores the default";
}

TEST(base, hook_receives_the_line) {
	slab_owner s = stock();
	int status = in_child(
		[&s] {
			tn_on_panic(judge);
			return local_variable_freed_into(s.get());
		},
		20);
	EXPECT_TRUE(exited_with(status, 7));
}

TEST(base, process_aborts_when_the_hook_returns) {
	slab_owner s = stock();
	int status = in_child(
		[&s] {
			tn_on_panic(first_hook);
			return local_variable_freed_into(s.get());
		},
		20);
	ASSERT_NE(status, -1);
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(WTERMSIG(status), SIGABRT);
}

TEST(base, the_message_is_one_line) {
	slab_owner s = stock();
	tn_on_panic(note);
	EXPECT_DEATH(local_variable_freed_into(s.get()), "noted <[^\n]*stock[^\n]*>");
	tn_on_panic(nullptr);
}

/* Names are often what a stranger sent. */
TEST(base, a_hostile_name_stays_in_its_line) {
	tn_slab_options options = {};
	options.name = "a\n\x1b[2J\xc2\x9b\u202e\u200b\xff\xc3\xa9 stock";
	slab_owner s = make_slab(64, 0, options);
	tn_slab_free(s.get(), tn_slab_alloc(s.get()));
	tn_on_panic(nullptr);
	EXPECT_DEATH(
		local_variable_freed_into(s.get()), "tenure: slab \"a\\?\\?\\[2J[?]{9}\xc3\xa9 stock\": .*\n$");
}

TEST(base, the_default_writes_to_standard_error) {
	slab_owner s = stock();
	tn_on_panic(nullptr);
	EXPECT_DEATH(local_variable_freed_into(s.get()), "stock");
}

TEST(base, constants) {
	EXPECT_EQ(TN_NONE, SIZE_MAX);
	EXPECT_EQ(TN_ALIGN_MAX, mib);
	EXPECT_EQ(TN_NAME_BYTES, 31);
	EXPECT_EQ(sizeof(tn_stats().name), static_cast<size_t>(TN_NAME_BYTES) + 1);
}

} /* namespace */
} /* namespace test_base */
