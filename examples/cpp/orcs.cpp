/* The tribe of the orcs: a million small objects of one class, each made by `new`, with memory from
 * four places. The fourth is Tenure: one base class, and nothing else changes. Times go to standard
 * error. */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <tenure/tenure.hpp>
#include <vector>

constexpr size_t tribe = 1'000'000;

/* The data of an orc, the same for all four. */
class orc {
public:
	explicit orc(size_t number)
		: name{'o', 'r', static_cast<char>('a' + number % 26), '\0'},
		  strength(static_cast<double>(number % 100)), smell(0.5) {
	}
	double menace() const {
		return strength * smell + (name[2] - 'a');
	}

private:
	char name[4];
	double strength, smell;
};

/* 1. The standard library. */
class standard_orc : public orc {
public:
	using orc::orc;

	static void begin_again() {
	}
};

/* An arena written by hand: room for the whole tribe, a cursor, and a mutex for threads. */
class orc_arena {
public:
	void *allocate() {
		std::lock_guard<std::mutex> hold(lock);
		if (used == tribe)
			throw std::bad_alloc();
		return &room[used++];
	}
	void begin_again() {
		used = 0;
	}

private:
	struct alignas(orc) slot {
		char bytes[sizeof(orc)];
	};
	std::mutex lock;
	std::unique_ptr<slot[]> room{new slot[tribe]};
	size_t used = 0;
};

/* 2. That arena as a static in a function: each `new` tests whether it is made. */
class local_static_orc : public orc {
public:
	using orc::orc;

	static void *operator new(size_t) {
		return arena().allocate();
	}
	static void operator delete(void *) {
	}
	static void begin_again() {
		arena().begin_again();
	}

private:
	static orc_arena &arena() {
		static orc_arena one;
		return one;
	}
};

/* 3. That arena as a global: no test, and no orc may be made before main. */
class global_orc : public orc {
public:
	using orc::orc;

	static void *operator new(size_t) {
		return arena.allocate();
	}
	static void operator delete(void *) {
	}
	static void begin_again() {
		arena.begin_again();
	}

private:
	static inline orc_arena arena;
};

/* 4. Tenure: handles threads, orcs made before main, arrays, and exhaustion. */
class tenure_orc : public orc, public tenure::arena_allocated<tenure_orc, tribe> {
public:
	using orc::orc;

	static void begin_again() {
		tenure::home_of<tenure_orc>().reset();
	}
};
static_assert(sizeof(tenure_orc) == sizeof(orc), "the base class takes no room");

static double ns_each(std::chrono::steady_clock::time_point since) {
	std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - since;
	return passed.count() / static_cast<double>(tribe);
}

template <class Orc> void raise_and_end_a_tribe(const char *memory) {
	std::vector<Orc *> orcs(tribe);
	double news = 1e9, deletes = 1e9, menace = 0;
	/* The first round pays for the operating system's pages; the best of the others counts. */
	for (int round = 0; round < 4; round++) {
		auto start = std::chrono::steady_clock::now();
		for (size_t i = 0; i < tribe; i++)
			orcs[i] = new Orc(i);
		news = round == 0 ? news : std::min(news, ns_each(start));
		menace = 0;
		for (const Orc *o : orcs)
			menace += o->menace();
		start = std::chrono::steady_clock::now();
		for (Orc *o : orcs)
			delete o;
		deletes = round == 0 ? deletes : std::min(deletes, ns_each(start));
		Orc::begin_again();
	}
	std::printf("%-22s%zu orcs of %zu bytes, menace %.0f\n", memory, orcs.size(), sizeof(Orc), menace);
	std::fprintf(stderr, "%-22snew %6.2f ns, delete %6.2f ns\n", memory, news, deletes);
}

int main() {
	raise_and_end_a_tribe<standard_orc>("standard library");
	raise_and_end_a_tribe<local_static_orc>("arena, local static");
	raise_and_end_a_tribe<global_orc>("arena, global");
	raise_and_end_a_tribe<tenure_orc>("tenure");
	return 0;
}
