/* bench/cpp/orc.cpp: the family `cpp`: a class with its own operator new and operator delete. */
#include <algorithm>
#include <array>
#include <random>

#include "cpp/orc_tenure.h"
#include "harness/harness.h"

namespace bench {
namespace {

template <template <class> class From> class orc : public From<orc<From>> {
public:
	explicit orc(size_t i) : name_{'o', 'r', 'c', '\0'}, strength_(static_cast<double>(i)), smell_(1) {
	}

private:
	char name_[4];
	double strength_, smell_;
};

template <class> using from_plain_new = plain_source;
template <class> using from_mimalloc = from_loaded<mimalloc_calls>;
template <class> using from_jemalloc = from_loaded<jemalloc_calls>;

/* The live objects; written before the first measurement. */
void *orcs[most_orcs];

void touch_orcs() {
	std::fill_n(orcs, most_orcs, static_cast<void *>(orcs));
}

template <class Orc> inline Orc *make_orc(size_t i) {
	Orc *p = new Orc(i);
	escape(p);
	return p;
}

/* The barrier keeps deletes apart, as they are in a program. */
template <class Orc> inline void end_orc(void *p) {
	delete static_cast<Orc *>(p);
	barrier();
}

enum class half { news, deletes };

/* Makes a million objects and deletes them in the same order; measures one of the two. */
template <class Orc> class orc_lives : public contestant {
public:
	explicit orc_lives(half measured) : measured_(measured) {
		static_assert(sizeof(Orc) == 24, "the base class must be empty");
		Orc::prepare();
	}
	uint64_t run(size_t repeats) override {
		uint64_t sum = 0;
		for (size_t r = 0; r < repeats; r++) {
			uint64_t news = make_all(), deletes = end_all();
			sum += measured_ == half::news ? news : deletes;
			Orc::start_again();
		}
		return sum;
	}

private:
	static uint64_t make_all() {
		uint64_t from = ticks();
		for (size_t i = 0; i < most_orcs; i++)
			orcs[i] = make_orc<Orc>(i);
		return ticks() - from;
	}
	static uint64_t end_all() {
		uint64_t from = ticks();
		for (size_t i = 0; i < most_orcs; i++)
			end_orc<Orc>(orcs[i]);
		return ticks() - from;
	}

	half measured_;
};

constexpr size_t live_orcs = 1000;
constexpr size_t churned_orcs = 4096;

/* Deletes one of a thousand objects at random and makes one in its place, 4,096 times. */
template <class Orc> class orc_pairs : public contestant {
public:
	orc_pairs() {
		Orc::prepare();
		std::mt19937 random(1);
		for (uint16_t &i : order_)
			i = static_cast<uint16_t>(random() % live_orcs);
		for (size_t i = 0; i < live_orcs; i++)
			live_[i] = make_orc<Orc>(i);
	}
	~orc_pairs() override {
		std::for_each(live_.begin(), live_.end(), end_orc<Orc>);
	}
	uint64_t run(size_t repeats) override {
		uint64_t from = ticks();
		for (size_t r = 0; r < repeats; r++)
			for (uint16_t i : order_) {
				end_orc<Orc>(live_[i]);
				live_[i] = make_orc<Orc>(r);
			}
		return ticks() - from;
	}

private:
	std::array<void *, live_orcs> live_;
	std::array<uint16_t, churned_orcs> order_;
};

workload make_lives(const char *name, half measured) {
	workload w;
	w.name = name;
	w.ops = most_orcs;
	w.rounds = 31;
	w.unmeasured = 1;
	w.setup = touch_orcs;
	w.subjects = {
		make_subject<orc_lives<orc<from_size_based_arena>>>("tenure-size-based-arena", measured),
		make_subject<orc_lives<orc<from_floor>>>("floor", measured),
		make_subject<orc_lives<orc<from_plain_new>>>("glibc", measured),
		make_subject<orc_lives<orc<from_mimalloc>>>("mimalloc", measured),
		make_subject<orc_lives<orc<from_jemalloc>>>("jemalloc", measured),
		make_subject<orc_lives<orc<from_book_meyers>>>("book-meyers", measured),
		make_subject<orc_lives<orc<from_book_global>>>("book-global", measured),
		make_subject<orc_lives<orc<from_boost>>>("boost", measured),
	};
	return w;
}

workload make_pairs() {
	workload w;
	w.name = "orc-pair-churn";
	w.ops = churned_orcs;
	w.subjects = {
		make_subject<orc_pairs<orc<from_slab>>>("tenure-slab-allocated"),
		make_subject<orc_pairs<orc<from_shared_slab>>>("tenure-shared-slab-allocated"),
		make_subject<orc_pairs<orc<from_plain_new>>>("glibc"),
		make_subject<orc_pairs<orc<from_mimalloc>>>("mimalloc"),
		make_subject<orc_pairs<orc<from_jemalloc>>>("jemalloc"),
		make_subject<orc_pairs<orc<from_boost>>>("boost"),
	};
	return w;
}

std::vector<workload> workloads() {
	workload first_time = make_lives("orc-new-first-time", half::news);
	first_time.alone = true;
	return {first_time, make_lives("orc-new", half::news), make_lives("orc-delete", half::deletes),
		make_pairs()};
}

const registration objects_of_a_class("cpp", workloads);

}
}
