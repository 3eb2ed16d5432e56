/* bench/demo/cjson.cpp: libcjson's hooks and the five subjects. */
#include "demo/cjson.h"
#include "harness/ageing.h"
#include "harness/loaded_malloc.h"

#include <cjson/cJSON.h>
#include <gnu/libc-version.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tenure/arena.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace bench {

/* ---- the allocators, as libcjson sees them: two functions without a context ---- */

/* The pattern for a library whose hooks carry no context: the caller sets the thread's arena before a
 * document, and the hook reads it. */
static thread_local tn_arena *document_arena;

static void *arena_malloc(size_t size) {
	return tn_arena_alloc(document_arena, size, 0);
}

static void free_nothing(void *) {
}

/* Floor: moves a cursor, unchecked, to malloc's alignment. */
static thread_local char *floor_cursor;

static void *floor_malloc(size_t size) {
	char *p = floor_cursor;
	floor_cursor = p + ((size + 15) & ~static_cast<size_t>(15));
	return p;
}

static size_t counted_blocks, counted_bytes;

static void *counting_malloc(size_t size) {
	counted_blocks++;
	counted_bytes += size;
	return arena_malloc(size);
}

struct heap {
	const char *name;
	const malloc_calls &(*load)();
};

static const heap heaps[] = {
	{"glibc", glibc_calls}, {"mimalloc", mimalloc_calls}, {"jemalloc", jemalloc_calls}};

static std::string mimalloc_version() {
	int version = mimalloc_library().find<int()>("mi_version")();
	return std::to_string(version / 100) + "." + std::to_string(version / 10 % 10) + "." +
	       std::to_string(version % 10);
}

static std::string jemalloc_version() {
	const char *version = "";
	size_t size = sizeof version;
	const loaded_library &l = jemalloc_library();
	auto mallctl = l.find<int(const char *, void *, size_t *, void *, size_t)>("mallctl");
	mallctl("version", &version, &size, nullptr, 0);
	return std::string(version, std::strcspn(version, "-"));
}

std::string allocator_versions() {
	return std::string("glibc ") + gnu_get_libc_version() + ", mimalloc " + mimalloc_version() +
	       ", jemalloc " + jemalloc_version() + ", Tenure " + std::to_string(TN_VERSION_MAJOR) + "." +
	       std::to_string(TN_VERSION_MINOR) + "." + std::to_string(TN_VERSION_PATCH);
}

/* ---- one parse ---- */

static cJSON *parse(const document &d) {
	const char *end = nullptr;
	return cJSON_ParseWithLengthOpts(d.text.c_str(), d.text.size() + 1, &end, 1);
}

static void mix(parse_figures &f, const void *p, size_t size) {
	for (size_t i = 0; i < size; i++)
		f.digest = (f.digest ^ static_cast<const unsigned char *>(p)[i]) * 0x100000001b3;
}

static void mix_text(parse_figures &f, const char *text) {
	mix(f, text, text == nullptr ? 0 : std::strlen(text) + 1);
}

/* The recursion is bounded: libcjson refuses nesting beyond 1000. */
static void walk(const cJSON *item, parse_figures &f) {
	for (; item != nullptr; item = item->next) {
		f.items++;
		mix(f, &item->type, sizeof item->type);
		mix(f, &item->valuedouble, sizeof item->valuedouble);
		mix_text(f, item->valuestring);
		mix_text(f, item->string);
		walk(item->child, f);
	}
}

/* One parse in the arena. The caller keeps the second one's time, which meets no new pages. */
static parse_figures parse_counted(const document &d) {
	parse_figures f;
	counted_blocks = counted_bytes = 0;
	uint64_t from = ticks();
	cJSON *tree = parse(d);
	f.seconds = static_cast<double>(ticks() - from) * ns_per_tick() / 1e9;
	f.parsed = tree != nullptr;
	f.blocks = counted_blocks;
	f.bytes = counted_bytes;
	if (f.parsed)
		walk(tree, f);
	else
		f.error_at = static_cast<size_t>(cJSON_GetErrorPtr() - d.text.c_str());
	return f;
}

parse_figures inspect(const document &d) {
	cJSON_Hooks hooks = {counting_malloc, free_nothing};
	cJSON_InitHooks(&hooks);
	tn_arena *arena = tn_arena_create(nullptr);
	document_arena = arena;
	parse_figures f = parse_counted(d);
	if (f.parsed) {
		tn_arena_reset(arena);
		f = parse_counted(d);
	}
	tn_arena_destroy(arena);
	/* Otherwise a child would inherit pages that its arena should have to ask for. */
	tn_trim_all();
	return f;
}

/* ---- the subjects ---- */

class reader : public contestant {
public:
	reader(const document &d, const cJSON_Hooks &hooks) : document_(d), hooks_(hooks) {
	}

	uint64_t run(size_t repeats) override {
		take_over();
		last_ = {};
		uint64_t sum = 0;
		uint64_t faults = read_process().minor_faults;
		for (size_t i = 0; i < repeats; i++) {
			uint64_t from = ticks();
			cJSON *tree = parse(document_);
			drop(tree);
			uint64_t took = ticks() - from;
			sum += took;
			last_.times.record(took);
		}
		last_.faults = read_process().minor_faults - faults;
		last_.documents = repeats;
		return sum;
	}

	void accept() override {
		all_.times.merge(last_.times);
		all_.faults += last_.faults;
		all_.documents += last_.documents;
	}

	/* The p99.9 of fewer than 1,000 documents would be their maximum. */
	void describe(row &r) override {
		double documents = static_cast<double>(all_.documents);
		describe_percentiles(all_.times, r);
		if (documents < 1000)
			r.fields.erase("p999_ns");
		r.fields["documents"] = documents;
		r.fields["page_faults"] = static_cast<double>(all_.faults) / documents;
	}

	/* Ends the process unless the tree on this allocator is the expected one. */
	void verify(const parse_figures &expected, const std::string &name) {
		take_over();
		parse_figures f;
		cJSON *tree = parse(document_);
		walk(tree, f);
		drop(tree);
		if (f.items == expected.items && f.digest == expected.digest)
			return;
		std::fprintf(stderr, "cjson: %s: the tree on %s has %zu items, not the same %zu\n",
			document_.label.c_str(), name.c_str(), f.items, expected.items);
		std::exit(1);
	}

protected:
	virtual void drop(cJSON *tree) {
		cJSON_Delete(tree);
	}

	virtual void take_over() {
		cJSON_InitHooks(&hooks_);
	}

private:
	struct record {
		histogram times;
		uint64_t faults = 0, documents = 0;
	};
	const document &document_;
	cJSON_Hooks hooks_;
	record last_, all_;
};

class arena_reader : public reader {
public:
	explicit arena_reader(const document &d)
		: reader(d, {arena_malloc, free_nothing}), arena_(tn_arena_create(nullptr)) {
	}

	~arena_reader() override {
		tn_arena_destroy(arena_);
	}

	void describe(row &r) override {
		reader::describe(r);
		tn_stats stats;
		tn_arena_stats(arena_, &stats);
		r.fields["committed_bytes"] = static_cast<double>(stats.committed_bytes);
	}

protected:
	void drop(cJSON *) override {
		tn_arena_reset(arena_);
	}

	void take_over() override {
		reader::take_over();
		document_arena = arena_;
	}

private:
	tn_arena *arena_;
};

class floor_reader : public reader {
public:
	/* Room for every block and its rounding; only used pages become resident. */
	floor_reader(const document &d, const parse_figures &expected)
		: reader(d, {floor_malloc, free_nothing}), size_(expected.bytes + 16 * expected.blocks),
		  base_(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
		if (base_ == MAP_FAILED)
			throw std::bad_alloc();
	}

	~floor_reader() override {
		munmap(base_, size_);
	}

protected:
	void drop(cJSON *) override {
		floor_cursor = static_cast<char *>(base_);
	}

	void take_over() override {
		reader::take_over();
		floor_cursor = static_cast<char *>(base_);
	}

private:
	size_t size_;
	void *base_;
};

/* ---- ageing ---- */

static void age(const malloc_calls &of) {
	bench::age(of.alloc, [&](void *p, size_t) { of.free(p); });
}

static void age_all() {
	for (const heap &h : heaps)
		age(h.load());
}

/* ---- the workloads ---- */

/* A subject's heap; glibc's where only the documents have other memory. */
static const heap &heap_of(const std::string &subject) {
	for (const heap &h : heaps)
		if (subject == h.name)
			return h;
	return heaps[0];
}

static std::unique_ptr<reader> make_reader(
	const document &d, const parse_figures &expected, const std::string &subject) {
	if (subject == "tenure-arena")
		return std::make_unique<arena_reader>(d);
	if (subject == "floor")
		return std::make_unique<floor_reader>(d, expected);
	const malloc_calls &calls = heap_of(subject).load();
	return std::make_unique<reader>(d, cJSON_Hooks{calls.alloc, calls.free});
}

static std::vector<subject> subjects(const document &d, const parse_figures &expected) {
	std::vector<subject> all;
	for (const char *name : {"glibc", "mimalloc", "jemalloc", "tenure-arena", "floor"})
		all.push_back({name, [=, &d] {
						   auto it = make_reader(d, expected, name);
						   it->verify(expected, name);
						   return it;
					   }});
	return all;
}

std::vector<workload> cjson_workloads(const document &d, const parse_figures &expected) {
	workload fresh;
	fresh.name = d.label + "-fresh";
	fresh.unmeasured = 1;
	fresh.subjects = subjects(d, expected);
	workload aged = fresh;
	aged.name = d.label + "-aged";
	aged.setup = age_all;
	return {fresh, aged};
}

static footprint measure_footprint(reader &it, size_t documents) {
	reset_peak();
	uint64_t faults = read_process().minor_faults;
	it.run(1);
	faults = read_process().minor_faults - faults;
	it.run(documents - 1);
	return {peak_resident_bytes(), faults};
}

footprint cjson_footprint(
	const document &d, const parse_figures &expected, const std::string &subject, bool aged) {
	void *page =
		mmap(nullptr, sizeof(footprint), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		throw std::bad_alloc();
	auto *answer = new (page) footprint;
	std::fflush(nullptr);
	pid_t child = fork();
	if (child == 0) {
		if (aged)
			age(heap_of(subject).load());
		*answer = measure_footprint(*make_reader(d, expected, subject),
			std::clamp<size_t>(static_cast<size_t>(0.1 / expected.seconds), 3, 100));
		_exit(0);
	}
	if (child > 0)
		waitpid(child, nullptr, 0);
	footprint f = *answer;
	munmap(page, sizeof(footprint));
	return f;
}

}
