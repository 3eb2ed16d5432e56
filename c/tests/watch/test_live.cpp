/* The live view from both sides: its content, the right to read it, and the harm that no reader can
 * do. */
#include "process.h"
#include "program.h"

#include <tenure/tenure.h>

extern "C" {
#include "../../top/reader.h"
#include "../../top/report.h"
#include "../../top/table.h"
#include "base/os.h"
#include "watch/live_format.h"
#include "watch/observer.h"
#include "watch/os_view.h"
}

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr uid_t nobody = 65534;

void pause_ms(long ms) {
	const timespec pause = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&pause, nullptr);
}

/* A view that is closed again. */
struct reader {
	view v = {};
	explicit reader(pid_t pid) : opened(view_open(&v, pid)) {
	}
	~reader() {
		view_close(&v);
	}
	reader(const reader &) = delete;
	reader &operator=(const reader &) = delete;
	bool read() {
		return opened && view_read(&v);
	}
	/* A snapshot that began after now. */
	bool read_newer() {
		uint64_t now = tn_os_milliseconds();
		while (read()) {
			if (v.state.taken_ms > now)
				return true;
			pause_ms(2);
		}
		return false;
	}
	const tn_live_row *find(const char *name) const {
		for (size_t i = 0; i < v.state.row_count; i++)
			if (std::strcmp(v.rows[i].name, name) == 0)
				return &v.rows[i];
		return nullptr;
	}
	std::string message() const {
		return v.message;
	}
	bool opened;
};

std::string path_of_own_view() {
	std::string found;
	DIR *files = opendir("/proc/self/fd");
	while (const dirent *entry = readdir(files)) {
		char link[64] = "";
		std::string path = std::string("/proc/self/fd/") + entry->d_name;
		if (readlink(path.c_str(), link, sizeof link - 1) > 0 &&
			std::strstr(link, "/memfd:tenure-live") != nullptr)
			found = path;
	}
	closedir(files);
	return found;
}

/* The observer's threads, by their name. */
size_t observers() {
	size_t count = 0;
	DIR *tasks = opendir("/proc/self/task");
	while (const dirent *entry = readdir(tasks)) {
		char name[32] = "";
		FILE *f = std::fopen((std::string("/proc/self/task/") + entry->d_name + "/comm").c_str(), "r");
		if (f == nullptr)
			continue;
		count += std::fgets(name, sizeof name, f) != nullptr && std::strcmp(name, "tenure\n") == 0;
		std::fclose(f);
	}
	closedir(tasks);
	return count;
}

template <typename F> bool soon(F condition) {
	for (int tries = 0; !condition() && tries < 5000; tries++)
		pause_ms(1);
	return condition();
}

bool there_is_an_observer() {
	return soon([] { return observers() == 1; });
}

bool there_is_no_observer() {
	return soon([] { return observers() == 0; });
}

struct shown {
	shown() {
		EXPECT_TRUE(tn_live_start());
	}
	~shown() {
		tn_live_stop();
	}
	shown(const shown &) = delete;
	shown &operator=(const shown &) = delete;
};

struct named_arena {
	explicit named_arena(const char *name) {
		tn_arena_options options = {};
		options.name = name;
		a = tn_arena_create(&options);
		EXPECT_NE(a, nullptr);
	}
	~named_arena() {
		tn_arena_destroy(a);
	}
	named_arena(const named_arena &) = delete;
	named_arena &operator=(const named_arena &) = delete;
	tn_arena *a = nullptr;
};

TEST(live, shows_what_a_snapshot_finds) {
	shown on;
	named_arena one("one"), other("other");
	for (int i = 0; i < 100; i++)
		ASSERT_NE(tn_arena_alloc(one.a, 1000, 16), nullptr);
	reader r(getpid());
	ASSERT_TRUE(r.read_newer()) << r.message();
	EXPECT_EQ(r.v.header.mode, static_cast<uint64_t>(TN_MODE));
	EXPECT_EQ(r.v.state.left_out_count, 0u);
	struct comparison {
		const reader *r;
		size_t row;
	} c = {&r, 0};
	size_t visited = tn_stats_snapshot(
		[](const tn_listed *listed, void *ctx) {
			auto *c = static_cast<comparison *>(ctx);
			const tn_live_row &row = c->r->v.rows[c->row++];
			const tn_stats &s = listed->stats;
			EXPECT_STREQ(row.name, s.name);
			EXPECT_EQ(row.kind, static_cast<uint32_t>(listed->kind));
			EXPECT_EQ(row.id, listed->id);
			EXPECT_EQ(row.parent_id, listed->parent_id);
			EXPECT_EQ(row.depth, listed->depth);
			EXPECT_EQ(row.live_bytes, s.live_bytes);
			EXPECT_EQ(row.cached_bytes, s.cached_bytes);
			EXPECT_EQ(row.reserved_bytes, s.reserved_bytes);
			EXPECT_EQ(row.committed_bytes, s.committed_bytes);
			EXPECT_EQ(row.peak_bytes, s.peak_bytes);
			EXPECT_EQ(row.chunk_count, s.chunk_count);
			EXPECT_EQ(row.refills, s.refills);
			EXPECT_EQ(row.exchanges, s.exchanges);
			EXPECT_EQ(row.foreign, s.foreign);
			EXPECT_EQ(row.waits, s.waits);
			EXPECT_EQ(row.node_bytes[0], s.node_bytes[0]);
			return true;
		},
		&c);
	EXPECT_EQ(visited, r.v.state.row_count);
	ASSERT_NE(r.find("one"), nullptr);
	EXPECT_GE(r.find("one")->live_bytes, 100000u);
}

TEST(live, rows_that_do_not_fit_are_counted) {
	constexpr size_t count = TN_LIVE_ROWS + 100;
	std::vector<std::unique_ptr<named_arena>> arenas;
	for (size_t i = 0; i < count; i++)
		arenas.push_back(std::make_unique<named_arena>(std::to_string(i).c_str()));
	shown on;
	reader r(getpid());
	ASSERT_TRUE(r.read()) << r.message();
	EXPECT_EQ(r.v.state.row_count, size_t{TN_LIVE_ROWS});
	EXPECT_EQ(r.v.state.row_count + r.v.state.left_out_count, count + 1);
	arenas.clear();
	ASSERT_TRUE(r.read_newer()) << r.message();
	EXPECT_EQ(r.v.state.row_count, 1u);
	EXPECT_EQ(r.v.state.left_out_count, 0u);
}

TEST(live, nobody_else_can_write) {
	shown on;
	std::string path = path_of_own_view();
	ASSERT_NE(path, "");
	int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
	ASSERT_GE(file, 0);
	errno = 0;
	EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), MAP_FAILED);
	EXPECT_EQ(errno, EPERM);
	for (off_t size : {off_t{0}, off_t{4096}, static_cast<off_t>(2 * sizeof(tn_live_file))}) {
		errno = 0;
		EXPECT_EQ(ftruncate(file, size), -1);
		EXPECT_EQ(errno, EPERM);
	}
	errno = 0;
	EXPECT_EQ(pwrite(file, "x", 1, 0), -1);
	EXPECT_EQ(errno, EPERM);
	EXPECT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_WRITE), -1);
	void *p = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
	ASSERT_NE(p, MAP_FAILED);
	EXPECT_EQ(mprotect(p, 4096, PROT_READ | PROT_WRITE), -1);
	munmap(p, 4096);
	close(file);
}

/* The file's memory is allocated from the start. */
TEST(live, has_its_memory) {
	shown on;
	struct stat is;
	ASSERT_EQ(stat(path_of_own_view().c_str(), &is), 0);
	EXPECT_EQ(is.st_size, static_cast<off_t>(sizeof(tn_live_file)));
	EXPECT_GE(is.st_blocks * 512, is.st_size);
}

TEST(live, starts_and_stops) {
	EXPECT_TRUE(there_is_no_observer());
	for (int i = 0; i < 20; i++) {
		EXPECT_TRUE(tn_live_start());
		EXPECT_TRUE(tn_live_start());
		EXPECT_TRUE(reader(getpid()).read());
		EXPECT_TRUE(there_is_an_observer());
		tn_live_stop();
		tn_live_stop();
		EXPECT_EQ(path_of_own_view(), "");
		EXPECT_EQ(reader(getpid()).message(),
			"process " + std::to_string(getpid()) +
				" has no live view: start it with TENURE_LIVE=1 or call tn_live_start()");
		EXPECT_TRUE(there_is_no_observer());
	}
}

TEST(live, a_reader_follows_a_view_that_is_replaced) {
	auto on = std::make_unique<shown>();
	reader r(getpid());
	ASSERT_TRUE(r.read());
	on.reset();
	EXPECT_FALSE(r.read());
	EXPECT_EQ(r.message(), "process " + std::to_string(getpid()) + " has ended its live view");
	on = std::make_unique<shown>();
	reader other(getpid());
	ASSERT_TRUE(other.read());
	on.reset();
	on = std::make_unique<shown>();
	EXPECT_TRUE(other.read()) << other.message();
}

/* Like a program that goes into the background. */
TEST(live, closing_all_files_ends_nothing) {
	shown on;
	int number = std::atoi(path_of_own_view().c_str() + std::strlen("/proc/self/fd/"));
	/* Not under ThreadSanitizer: such a program has a race of its own, which is no bug of the view. */
	syscall(SYS_close, number);
	int strange = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC));
	EXPECT_EQ(strange, number);
	/* The file exists a moment before it has content. */
	EXPECT_TRUE(soon([] { return !path_of_own_view().empty() && reader(getpid()).read(); }));
	tn_live_stop();
	EXPECT_EQ(fcntl(strange, F_GETFD), FD_CLOEXEC) << "the file of somebody else was closed";
	close(strange);
}

TEST(live, malloc_says_something) {
	shown on;
	reader r(getpid());
	ASSERT_TRUE(r.read_newer());
	EXPECT_GT(r.v.state.resident_bytes, 0u);
	if (sanitized) {
		EXPECT_STREQ(r.v.state.malloc_name, "");
		return;
	}
	EXPECT_STREQ(r.v.state.malloc_name, "glibc");
	EXPECT_GT(r.v.state.malloc_allocated_bytes, 0u);
	EXPECT_GE(r.v.state.malloc_held_bytes, r.v.state.malloc_allocated_bytes);
}

/* ---- permission ---- */

/* ThreadSanitizer allows no thread in the child of a process that had threads. */
#define NO_THREAD_IN_A_CHILD                                                                           \
	if (thread_sanitized)                                                                              \
		GTEST_SKIP();

/* A child that runs until it is killed: a failing test must not leave it behind. */
bool end_with_parent() {
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/* A child that shows a view, as user `uid`, until it is killed. */
struct target {
	explicit target(uid_t uid = geteuid(), bool dumpable = true) {
		int ready[2];
		EXPECT_EQ(pipe(ready), 0);
		pid = fork();
		if (pid == 0) {
			bool right = setuid(uid) == 0 && prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0) == 0;
			right = right && end_with_parent() && tn_live_start();
			char done = right ? 'y' : 'n';
			(void)!write(ready[1], &done, 1);
			for (;;)
				pause();
		}
		close(ready[1]);
		char done = 'n';
		EXPECT_EQ(read(ready[0], &done, 1), 1);
		EXPECT_EQ(done, 'y');
		close(ready[0]);
	}
	~target() {
		end();
	}
	target(const target &) = delete;
	target &operator=(const target &) = delete;
	void end() {
		if (pid > 0) {
			kill(pid, SIGKILL);
			waitpid(pid, nullptr, 0);
		}
		pid = 0;
	}
	pid_t pid = 0;
};

/* The result of a reader of user `uid`: "" or a message. */
std::string look_as(uid_t uid, pid_t pid) {
	int answer[2];
	EXPECT_EQ(pipe(answer), 0);
	EXPECT_TRUE(exited_with(in_child(
								[&] {
									if (setuid(uid) != 0)
										return 1;
									reader r(pid);
									std::string text = r.read() ? "" : r.message();
									return write(answer[1], text.data(), text.size()) < 0 ? 1 : 0;
								},
								20),
		0));
	close(answer[1]);
	char text[512];
	ssize_t size = read(answer[0], text, sizeof text);
	close(answer[0]);
	return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
}

TEST(live, the_same_user_may_look) {
	NO_THREAD_IN_A_CHILD
	target t;
	EXPECT_EQ(look_as(geteuid(), t.pid), "");
	if (geteuid() == 0) {
		target other(nobody);
		EXPECT_EQ(look_as(nobody, other.pid), "");
		EXPECT_EQ(look_as(0, other.pid), "");
	}
}

TEST(live, another_user_may_not) {
	NO_THREAD_IN_A_CHILD
	if (geteuid() != 0)
		GTEST_SKIP() << "only root can be another user";
	target t;
	EXPECT_EQ(
		look_as(nobody, t.pid), "process " + std::to_string(t.pid) +
									" belongs to another user (uid 0): run tenure-top as that user");
}

TEST(live, nobody_looks_into_what_is_not_dumpable) {
	NO_THREAD_IN_A_CHILD
	uid_t user = geteuid() == 0 ? nobody : geteuid();
	target t(user, false);
	EXPECT_EQ(look_as(user, t.pid), "process " + std::to_string(t.pid) +
										" hides its files (it is not dumpable, or has more rights)");
}

TEST(live, a_process_that_ends_or_is_not_there) {
	NO_THREAD_IN_A_CHILD
	target t;
	pid_t pid = t.pid;
	reader r(pid);
	ASSERT_TRUE(r.read()) << r.message();
	kill(pid, SIGKILL);
	pause_ms(20);
	EXPECT_FALSE(r.read());
	EXPECT_TRUE(r.v.ended);
	EXPECT_EQ(r.message(), "process " + std::to_string(pid) + " has ended") << "while it is a zombie";
	EXPECT_EQ(reader(pid).message(), "process " + std::to_string(pid) + " has ended");
	t.end();
	EXPECT_FALSE(r.read());
	EXPECT_EQ(r.message(), "process " + std::to_string(pid) + " has ended");
	EXPECT_EQ(reader(pid).message(), "there is no process " + std::to_string(pid));
}

/* ---- forks ---- */

std::vector<char> content_of_own_view() {
	std::vector<char> bytes(sizeof(tn_live_file));
	int file = open(path_of_own_view().c_str(), O_RDONLY | O_CLOEXEC);
	EXPECT_EQ(pread(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
	close(file);
	return bytes;
}

TEST(live, a_child_has_no_part_in_it) {
	NO_THREAD_IN_A_CHILD
	shown on;
	named_arena a("parent");
	reader r(getpid());
	ASSERT_TRUE(r.read_newer());
	ASSERT_TRUE(tn_observer_set(TN_OBSERVED_LIVE, 0, nullptr)) << "nobody writes any more";
	std::vector<char> before = content_of_own_view();
	EXPECT_TRUE(exited_with(in_child(
								[] {
									if (path_of_own_view() != "" || observers() != 0)
										return 1;
									named_arena b("child");
									if (tn_arena_alloc(b.a, 100000, 16) == nullptr || !tn_live_start())
										return 2;
									reader own(getpid());
									return own.read_newer() && own.find("child") != nullptr ? 0 : 3;
								},
								20),
		0));
	pid_t child = fork();
	if (child == 0 && end_with_parent()) {
		tn_live_start();
		for (;;)
			named_arena b("busy child");
	}
	pause_ms(50);
	kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
	EXPECT_EQ(before, content_of_own_view());
}

/* Without Tenure's fork hooks the child still has its parent's file. */
TEST(live, a_child_that_shows_its_parents_file_has_no_view) {
	shown on;
	pid_t child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	if (child == 0 && end_with_parent())
		for (;;)
			pause();
	reader r(child);
	EXPECT_FALSE(r.opened);
	EXPECT_NE(r.message().find("has no live view"), std::string::npos) << r.message();
	kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
}

TEST(live, the_environment_asks_for_it_again_in_a_child) {
	NO_THREAD_IN_A_CHILD
	for (const char *value : {"1", "0", "", "yes"}) {
		int status = in_child(
			[&] {
				setenv("TENURE_LIVE", value, 1);
				/* In a child: a process reads the environment only once. */
				return exited_with(in_child(
									   [] {
										   named_arena a("asked");
										   return reader(getpid()).read() ? 0 : 1;
									   },
									   20),
						   std::strcmp(value, "1") == 0 ? 0 : 1)
			               ? 0
			               : 1;
			},
			20);
		EXPECT_TRUE(exited_with(status, 0)) << "TENURE_LIVE=" << value;
	}
}

/* ---- readers that are in the way, and writers that are fast ---- */

TEST(live, readers_that_die_are_not_noticed) {
	shown on;
	named_arena a("target");
	pid_t parent = getpid();
	dice d(program_seed());
	const int rounds = sanitized ? 50 : 1000;
	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();
		if (child == 0 && end_with_parent()) {
			reader r(parent);
			while (r.read())
				continue;
			_exit(1);
		}
		const timespec pause = {0, static_cast<long>(d.below(500000))};
		nanosleep(&pause, nullptr);
		kill(child, SIGKILL);
		int status = 0;
		ASSERT_EQ(waitpid(child, &status, 0), child);
		ASSERT_TRUE(WIFSIGNALED(status)) << "the reader found nothing to read";
	}
	reader r(parent);
	EXPECT_TRUE(r.read_newer()) << r.message();
	EXPECT_NE(r.find("target"), nullptr);
}

/* Every word of a snapshot carries the snapshot's number. */
tn_live_row row_of_snapshot(uint64_t number) {
	tn_live_row row;
	uint64_t words[sizeof row / sizeof number];
	for (uint64_t &word : words)
		word = number;
	std::memcpy(&row, words, sizeof row);
	return row;
}

tn_live_header sound_header() {
	tn_live_header h = {};
	std::memcpy(h.magic, TN_LIVE_MAGIC, sizeof h.magic);
	h.version = TN_LIVE_VERSION;
	h.header_bytes = offsetof(tn_live_file, rows);
	h.row_bytes = sizeof(tn_live_row);
	h.row_max = TN_LIVE_ROWS;
	h.process = static_cast<uint64_t>(getpid());
	return h;
}

void write_snapshot(tn_live_file *file, uint64_t number, size_t rows) {
	tn_live_state state = {};
	state.taken_ms = number;
	state.row_count = rows;
	tn_live_row row = row_of_snapshot(number);
	tn_live_begin(file);
	for (size_t i = 0; i < rows; i++)
		tn_live_store(&file->rows[i], &row, sizeof row);
	tn_live_store(&file->state, &state, sizeof state);
	tn_live_end(file);
}

/* Writes snapshot after snapshot, with just enough time between them for a reader to get one now and
 * then. */
[[noreturn]] void write_without_end() {
	tn_os_shown shown;
	if (!tn_os_show(&shown, TN_LIVE_NAME, sizeof(tn_live_file)))
		_exit(1);
	auto *file = static_cast<tn_live_file *>(shown.p);
	file->header = sound_header();
	dice d(program_seed());
	for (uint64_t number = 1;; number++) {
		write_snapshot(file, number, 20);
		for (volatile size_t i = d.below(sanitized ? 80000 : 8000); i > 0; i = i - 1)
			continue;
	}
}

TEST(live, no_snapshot_is_torn) {
	pid_t child = fork();
	if (child == 0 && end_with_parent())
		write_without_end();
	reader r(child);
	for (int tries = 0; !r.opened && tries < 1000; tries++) {
		pause_ms(1);
		view_close(&r.v);
		r.opened = view_open(&r.v, child);
	}
	/* On a busy machine the writer waits for a processor, and so does its snapshot. */
	const uint64_t end = tn_os_milliseconds() + 2000;
	uint64_t last = 0;
	size_t newer = 0;
	while (newer < 1000 && (newer < 20 || tn_os_milliseconds() < end)) {
		ASSERT_TRUE(r.read()) << r.message();
		ASSERT_EQ(r.v.state.row_count, 20u);
		ASSERT_GE(r.v.state.taken_ms, last);
		if (r.v.state.taken_ms == last)
			sched_yield();
		else
			newer++;
		last = r.v.state.taken_ms;
		ASSERT_EQ(last, r.v.sequence);
		/* The reader terminates texts. */
		tn_live_row expected = row_of_snapshot(last);
		expected.name[sizeof expected.name - 1] = '\0';
		expected.ident[sizeof expected.ident - 1] = '\0';
		for (size_t k = 0; k < 20; k++)
			ASSERT_EQ(std::memcmp(&r.v.rows[k], &expected, sizeof expected), 0) << "torn";
	}
	kill(child, SIGKILL);
	waitpid(child, nullptr, 0);
}

/* ---- files that are no views ---- */

/* A view of this process, with content chosen by the test. */
struct forged {
	explicit forged(size_t size = sizeof(tn_live_file)) {
		file = memfd_create(TN_LIVE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
		EXPECT_EQ(ftruncate(file, static_cast<off_t>(size)), 0);
		auto *p = mmap(nullptr, sizeof(tn_live_file), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
		shown = static_cast<tn_live_file *>(p);
		if (size >= sizeof(tn_live_header))
			shown->header = sound_header();
	}
	~forged() {
		munmap(shown, sizeof(tn_live_file));
		close(file);
	}
	forged(const forged &) = delete;
	forged &operator=(const forged &) = delete;
	/* "" when it can be read, or the reason why not, without its prefix. */
	std::string verdict(int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) const {
		EXPECT_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
		reader r(getpid());
		if (r.read())
			return "";
		std::string text = r.message();
		size_t colon = text.find(": ");
		return colon == text.npos ? text : text.substr(colon + 2);
	}
	int file;
	tn_live_file *shown;
};

TEST(live, a_forged_view_is_refused) {
	std::string process = "process " + std::to_string(getpid());
	{
		forged f;
		write_snapshot(f.shown, 1, 3);
		EXPECT_EQ(f.verdict(), "");
	}
	EXPECT_EQ(forged(0).verdict(), "it is too short");
	EXPECT_EQ(forged(sizeof(tn_live_header)).verdict(), "sizes that do not fit");
	EXPECT_EQ(forged(sizeof(tn_live_file) - 1).verdict(), "sizes that do not fit");
	EXPECT_EQ(forged().verdict(F_SEAL_GROW), "it is not sealed");
	EXPECT_EQ(forged().verdict(F_SEAL_SHRINK | F_SEAL_GROW), "it is not sealed");
	EXPECT_EQ(forged().verdict(), process + " has not written a snapshot yet");
	struct {
		std::function<void(tn_live_file *)> change;
		std::string verdict;
	} forgeries[] = {
		{[](tn_live_file *f) { f->header.magic[0]++; }, "no magic number"},
		{[](tn_live_file *f) { f->header.version++; },
			"the live view of " + process + " has version 5, and this tenure-top reads version 4"},
		{[](tn_live_file *f) { f->header.row_bytes = 0; }, "sizes that do not fit"},
		{[](tn_live_file *f) { f->header.row_max++; }, "sizes that do not fit"},
		{[](tn_live_file *f) { f->header.header_bytes += 8; }, "sizes that do not fit"},
		{[](tn_live_file *f) { f->header.process++; },
			"start it with TENURE_LIVE=1 or call tn_live_start()"},
		{[](tn_live_file *f) {
			 write_snapshot(f, 1, 0);
			 f->state.row_count = TN_LIVE_ROWS + 1;
		 },
			"its counts are out of range"},
		{[](tn_live_file *f) {
			 write_snapshot(f, 1, 0);
			 f->state.row_count = UINT64_MAX;
		 },
			"its counts are out of range"},
		{[](tn_live_file *f) { f->sequence = 7; }, process + " is stopped in the middle of a snapshot"},
	};
	for (const auto &forgery : forgeries) {
		forged f;
		forgery.change(f.shown);
		EXPECT_EQ(f.verdict(), forgery.verdict);
	}
}

/* Rows of anything: random words, some of them small, parents among them, texts of all bytes. */
void fill_rows(tn_live_file *file, dice &d) {
	size_t rows = d.below(60);
	tn_live_begin(file);
	for (size_t i = 0; i < rows; i++) {
		uint64_t words[sizeof(tn_live_row) / sizeof(uint64_t)];
		for (uint64_t &word : words)
			word = d.one_in(3) ? d.below(8) : d.next() >> d.below(64);
		tn_live_store(&file->rows[i], words, sizeof words);
	}
	tn_live_state state = {};
	state.row_count = rows;
	state.total_count = d.below(TN_LIVE_TOTALS + 1);
	state.taken_ms = d.one_in(2) ? d.next() : d.below(1000000);
	for (size_t i = 0; i < state.total_count; i++) {
		uint64_t words[sizeof(tn_live_total) / sizeof(uint64_t)];
		for (uint64_t &word : words)
			word = d.one_in(3) ? d.below(8) : d.next() >> d.below(64);
		tn_live_store(&file->totals[i], words, sizeof words);
	}
	for (char &c : state.malloc_name)
		c = static_cast<char>(d.next());
	tn_live_store(&file->state, &state, sizeof state);
	tn_live_end(file);
}

size_t control_characters(const text &t) {
	return static_cast<size_t>(std::count_if(t.p, t.p + t.size,
		[](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f; }));
}

void print_json(text *t, const view *v) {
	report_json(t, v, false);
}

void print_nested(text *t, const view *v) {
	report_json(t, v, true);
}

void print_metrics(text *t, const view *v) {
	const label more = {"node", "a\"b\\c\n\x1b"};
	report_prometheus(t, v, 1, &more, 1);
}

std::string printed(void (*print)(text *t, const view *v), const view &v) {
	text t = {};
	t.end_of_line = "\n";
	print(&t, &v);
	std::string all(t.p, t.size);
	text_free(&t);
	return all;
}

/* Memory of two nodes, as a process on such a machine would show it. */
TEST(live, memory_nodes_are_shown_where_there_are_several) {
	tn_live_row rows[2] = {};
	tn_live_total total = {};
	view v = {};
	v.rows = rows;
	v.totals = &total;
	v.state.row_count = 2;
	for (size_t i = 0; i < 2; i++) {
		rows[i].id = i + 1;
		rows[i].kind = TN_KIND_SHARED_SLAB;
		strcpy(rows[i].name, i == 0 ? "one" : "two");
		rows[i].node_bytes[0] = 65536;
	}
	EXPECT_NE(printed(print_json, v).find("\"node_bytes\": [65536]"), std::string::npos);
	EXPECT_EQ(printed(print_metrics, v).find("node_bytes"), std::string::npos);
	EXPECT_EQ(printed(table_header, v).find("node"), std::string::npos);
	rows[1].node_bytes[1] = 131072;
	EXPECT_NE(printed(print_json, v).find("\"node_bytes\": [65536, 131072]"), std::string::npos);
	std::string metrics = printed(print_metrics, v);
	EXPECT_NE(metrics.find("name=\"one\",memory_node=\"1\"} 0\n"), std::string::npos) << metrics;
	EXPECT_NE(metrics.find("name=\"two\",memory_node=\"1\"} 131072\n"), std::string::npos) << metrics;
	EXPECT_NE(printed(table_header, v).find("node 0 128K  node 1 128K"), std::string::npos)
		<< printed(table_header, v);
}

/* Names with control characters, some that turn or hide text, and some that do not. */
TEST(live, a_hostile_name_hides_nothing) {
	shown on;
	const std::string hidden[] = {"\x1b[2J", "\n", "\x7f", "\xc2\x9b", "\u202e", "\u2066", "\u200b",
		"\ufeff", "\u2028", "\U000e0041", "\xff", "\xe2\x80"};
	for (const std::string &bad : hidden) {
		named_arena a(("a" + bad + "\u00e9b").c_str());
		reader r(getpid());
		ASSERT_TRUE(r.read_newer()) << r.message();
		std::string json = printed(print_json, r.v), samples = printed(print_metrics, r.v);
		EXPECT_EQ(json.find("a" + bad), std::string::npos) << json;
		EXPECT_EQ(samples.find("a" + bad), std::string::npos) << samples;
		EXPECT_NE(json.find("\u00e9b\""), std::string::npos) << json;
		EXPECT_NE(samples.find("\u00e9b\""), std::string::npos) << samples;
	}
	named_arena a("a\u202eb\U000e0041");
	reader r(getpid());
	ASSERT_TRUE(r.read_newer());
	EXPECT_NE(printed(print_json, r.v).find("\"a\\u202eb\\udb40\\udc41\""), std::string::npos);
}

/* The counters of a kind and name, as the process adds them up. */
std::vector<uint64_t> counters_of(const view &v, tn_kind kind, const std::string &name) {
	for (size_t i = 0; i < v.state.total_count; i++)
		if (v.totals[i].kind == uint64_t{kind} && name == v.totals[i].name)
			return {v.totals[i].counters, v.totals[i].counters + TN_LIVE_COUNTERS};
	return std::vector<uint64_t>(TN_LIVE_COUNTERS);
}

TEST(live, counters_do_not_fall_when_an_allocator_ends) {
	shown on;
	reader r(getpid());
	uint64_t before = 0, resets = 0;
	for (int i = 0; i < 4; i++) {
		{
			named_arena a("counted"), b("counted");
			for (int k = 0; k < 3 + i; k++) {
				ASSERT_NE(tn_arena_alloc(a.a, 100000, 16), nullptr);
				tn_arena_reset(a.a);
			}
			ASSERT_TRUE(r.read_newer());
			std::vector<uint64_t> now = counters_of(r.v, TN_KIND_ARENA, "counted");
			resets += static_cast<uint64_t>(3 + i);
			EXPECT_GT(now[0], before);
			EXPECT_EQ(now[1], resets);
			before = now[0];
		}
		ASSERT_TRUE(r.read_newer());
		EXPECT_EQ(r.find("counted"), nullptr);
		EXPECT_EQ(counters_of(r.v, TN_KIND_ARENA, "counted")[0], before);
	}
	tn_live_stop();
	ASSERT_TRUE(tn_live_start());
	reader again(getpid());
	ASSERT_TRUE(again.read_newer());
	EXPECT_EQ(counters_of(again.v, TN_KIND_ARENA, "counted")[0], 0u) << "of the view that ended";
}

/* With more names than rows, and more allocators than the first table of a look. */
TEST(live, counters_of_many_names_do_not_fall) {
	shown on;
	reader r(getpid());
	uint64_t others = 0;
	for (int round = 0; round < 3; round++) {
		std::vector<std::unique_ptr<named_arena>> all;
		for (int i = 0; i < 500; i++) {
			all.push_back(std::make_unique<named_arena>(("many-" + std::to_string(i)).c_str()));
			ASSERT_NE(tn_arena_alloc(all.back()->a, 100, 16), nullptr);
			tn_arena_reset(all.back()->a);
		}
		ASSERT_TRUE(r.read_newer());
		EXPECT_LE(r.v.state.total_count, size_t{TN_LIVE_TOTALS});
		uint64_t sum = 0;
		for (size_t i = 0; i < r.v.state.total_count; i++)
			sum += r.v.totals[i].kind == TN_KIND_ARENA ? r.v.totals[i].counters[1] : 0;
		EXPECT_EQ(sum, 500u * static_cast<unsigned>(round + 1));
		uint64_t now = counters_of(r.v, TN_KIND_ARENA, TN_LIVE_OTHERS)[1];
		EXPECT_GT(now, others);
		others = now;
		all.clear();
		ASSERT_TRUE(r.read_newer());
		EXPECT_EQ(counters_of(r.v, TN_KIND_ARENA, TN_LIVE_OTHERS)[1], others);
	}
}

TEST(live, growth_is_measured_between_snapshots) {
	shown on;
	named_arena grows("grows"), falls("falls");
	ASSERT_NE(tn_arena_alloc(falls.a, 4000000, 16), nullptr);
	ASSERT_TRUE(reader(getpid()).read_newer());
	reader r(getpid());
	ASSERT_TRUE(r.read());
	EXPECT_EQ(r.v.growth_ms, 0u);
	uint64_t begun = r.v.state.taken_ms;
	ASSERT_NE(tn_arena_alloc(grows.a, 4000000, 16), nullptr);
	tn_arena_reset(falls.a);
	named_arena born("born");
	ASSERT_NE(tn_arena_alloc(born.a, 1000000, 16), nullptr);
	ASSERT_TRUE(r.read_newer());
	EXPECT_EQ(r.v.growth_ms, r.v.state.taken_ms - begun);
	double seconds = static_cast<double>(r.v.growth_ms) / 1000;
	for (auto [name, bytes] :
		{std::pair<const char *, double>{"grows", 4e6}, {"falls", -4e6}, {"born", 1e6}}) {
		const tn_live_row *row = r.find(name);
		ASSERT_NE(row, nullptr);
		EXPECT_NEAR(static_cast<double>(r.v.growth[row - r.v.rows]) * seconds, bytes, 1e5) << name;
	}
}

TEST(live, all_processes_that_can_be_watched_are_found) {
	shown on;
	named_arena a("found");
	reader r(getpid());
	ASSERT_TRUE(r.read_newer());
	view *views;
	size_t count = view_find_all(&views), own = 0;
	for (size_t i = 0; i < count; i++) {
		own += views[i].pid == getpid();
		EXPECT_TRUE(i == 0 || views[i - 1].pid < views[i].pid);
		view_close(&views[i]);
	}
	std::free(views);
	EXPECT_EQ(own, 1u);
}

TEST(live, whatever_it_holds_can_be_printed) {
	forged f;
	ASSERT_EQ(fcntl(f.file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE), 0);
	dice d(program_seed());
	fill_rows(f.shown, d);
	reader r(getpid());
	for (int i = 0; i < 300; i++) {
		ASSERT_TRUE(r.read()) << r.message();
		text t = {};
		t.end_of_line = "\n";
		print_json(&t, &r.v);
		print_nested(&t, &r.v);
		print_metrics(&t, &r.v);
		report_processes(&t, &r.v, 1, false);
		t.width = static_cast<unsigned>(d.below(200));
		table_options options = {static_cast<sort_key>(d.below(SORT_COUNT)), d.one_in(2), 0, 0};
		table_header(&t, &r.v);
		table_rows(&t, &r.v, &options);
		EXPECT_EQ(control_characters(t), 0u);
		text_free(&t);
		fill_rows(f.shown, d);
	}
}

/* ---- the observer ---- */

std::atomic<size_t> calls[2];
std::atomic<bool> inside;

template <size_t Which> void count_call() {
	calls[Which]++;
}

void call_slowly() {
	inside = true;
	pause_ms(20);
	inside = false;
}

bool end_watch() {
	return tn_observer_set(TN_OBSERVED_WATCH, 0, nullptr);
}

TEST(observer, calls_each_work_at_its_own_time) {
	calls[0] = calls[1] = 0;
	EXPECT_TRUE(there_is_no_observer());
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_LIVE, 1, count_call<0>));
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 3600000, count_call<1>));
	EXPECT_TRUE(there_is_an_observer());
	EXPECT_TRUE(soon([] { return calls[0] > 20 && calls[1] == 1; }));
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_LIVE, 0, nullptr));
	size_t at_the_end = calls[0];
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 1, count_call<1>)) << "it wakes up for this";
	EXPECT_TRUE(soon([] { return calls[1] > 20; }));
	EXPECT_EQ(calls[0], at_the_end);
	EXPECT_TRUE(end_watch());
	EXPECT_TRUE(there_is_no_observer());
}

TEST(observer, a_work_that_is_ended_is_not_under_way) {
	for (int i = 0; i < 30; i++) {
		inside = false;
		EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 1, call_slowly));
		EXPECT_TRUE(soon([] { return inside.load(); }));
		EXPECT_TRUE(i % 2 == 0 ? end_watch() : tn_observer_set(TN_OBSERVED_WATCH, 1, count_call<1>));
		EXPECT_FALSE(inside);
		EXPECT_TRUE(end_watch());
	}
}

TEST(observer, many_threads_wait_for_one_call) {
	for (int i = 0; i < 10; i++) {
		inside = false;
		EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 1, call_slowly));
		EXPECT_TRUE(soon([] { return inside.load(); }));
		std::vector<std::thread> waiters;
		for (size_t k = 0; k < 4; k++)
			waiters.emplace_back([] {
				EXPECT_TRUE(end_watch());
				EXPECT_FALSE(inside);
			});
		for (std::thread &t : waiters)
			t.join();
	}
}

TEST(observer, a_work_may_end_itself_and_begin_another) {
	calls[0] = calls[1] = 0;
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 1, [] {
		calls[0]++;
		EXPECT_TRUE(tn_observer_set(TN_OBSERVED_LIVE, 1, count_call<1>));
		EXPECT_TRUE(end_watch());
	}));
	EXPECT_TRUE(soon([] { return calls[1] > 3; }));
	EXPECT_EQ(calls[0], 1u);
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_LIVE, 0, nullptr));
}

TEST(observer, takes_no_signals) {
	static std::atomic<int> blocked;
	blocked = 0;
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 1, [] {
		sigset_t set;
		pthread_sigmask(SIG_SETMASK, nullptr, &set);
		blocked = sigismember(&set, SIGTERM) && sigismember(&set, SIGUSR1) ? 1 : -1;
	}));
	EXPECT_TRUE(soon([] { return blocked != 0; }));
	EXPECT_TRUE(end_watch());
	EXPECT_EQ(blocked, 1);
}

/* Work that forks leaves a child whose only thread is the observer, without work. */
TEST(observer, a_work_may_fork) {
	NO_THREAD_IN_A_CHILD
	static std::atomic<int> status;
	static std::atomic<bool> forked;
	forked = false;
	EXPECT_TRUE(tn_observer_set(TN_OBSERVED_WATCH, 1, [] {
		if (forked)
			return;
		pid_t child = fork();
		if (child == 0) {
			calls[0] = 0;
			bool done = tn_observer_set(TN_OBSERVED_LIVE, 1, count_call<0>) &&
			            soon([] { return calls[0] > 3; }) &&
			            tn_observer_set(TN_OBSERVED_LIVE, 0, nullptr);
			_exit(done ? 0 : 1);
		}
		status = wait_for(child, 20);
		forked = true;
	}));
	EXPECT_TRUE(soon([] { return forked.load(); }));
	EXPECT_TRUE(end_watch());
	EXPECT_TRUE(exited_with(status, 0));
}

TEST(observer, many_threads_set_it) {
	std::vector<std::thread> setters;
	for (size_t i = 0; i < 4; i++)
		setters.emplace_back([i] {
			auto which = i % 2 == 0 ? TN_OBSERVED_LIVE : TN_OBSERVED_WATCH;
			for (int k = 0; k < 300; k++) {
				EXPECT_TRUE(tn_observer_set(which, 1, i % 2 == 0 ? count_call<0> : count_call<1>));
				EXPECT_TRUE(tn_observer_set(which, 0, nullptr));
			}
		});
	for (std::thread &t : setters)
		t.join();
	EXPECT_TRUE(there_is_no_observer());
}

}
