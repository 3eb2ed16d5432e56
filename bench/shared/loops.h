/* bench/shared/loops.h: loops in which each thread frees its own objects, as templates over the
 * adapter, so that modules of another build mode or linkage can hold the same loops.
 *
 * An adapter has alloc() and free(p), called by any thread, and enter(member) and leave(member),
 * called by every thread before and after the measured part. All threads use one adapter. */
#ifndef BENCH_SHARED_LOOPS_H
#define BENCH_SHARED_LOOPS_H

#include <vector>

#include "harness/crew.h"
#include "harness/harness.h"
#include "slab/workloads.h"

namespace bench {

/* Adds the exchanges of an adapter that counts them, for a million operations. */
template <class A>
auto describe_exchanges(const A &a, double ops, row &r, int) -> decltype(a.stats().exchanges, void()) {
	auto stats = a.stats();
	r.fields["exchanges"] = static_cast<double>(stats.exchanges) / ops * 1e6;
	r.fields["foreign"] = static_cast<double>(stats.foreign) / ops * 1e6;
	r.fields["waits"] = static_cast<double>(stats.waits) / ops * 1e6;
}
template <class A> void describe_exchanges(const A &, double, row &, long) {
}

/* A contestant whose threads share one adapter. */
template <class A> class threaded : public contestant, protected job {
public:
	explicit threaded(crew &c) : crew_(c) {
	}

	bool interrupted() override {
		return crew_.interrupted();
	}
	void describe(row &r) override {
		describe_exchanges(a_, static_cast<double>(done_) * r.ops, r, 0);
	}

protected:
	uint64_t run_all(size_t repeats, measure what) {
		repeats_ = repeats;
		done_ += repeats;
		return crew_.run(*this, what);
	}
	void enter(unsigned member) override {
		a_.enter(member);
	}
	void leave(unsigned member) override {
		a_.leave(member);
	}

	A a_;
	crew &crew_;
	size_t repeats_ = 0;
	size_t done_ = 0; /* repeats of all runs */
};

/* Each thread takes, writes and frees one object. */
template <class A> class shared_pairs : public threaded<A> {
public:
	shared_pairs(crew &c, size_t) : threaded<A>(c) {
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::members);
	}

private:
	void work(unsigned) override {
		size_t n = this->repeats_;
		for (size_t r = 0; r < n; r++)
			give(this->a_, take(this->a_, r));
	}
};

/* A thread's pointers, on cache lines that no other thread writes to. */
class own_pointers {
public:
	explicit own_pointers(size_t count) : words_(count + 2 * line) {
	}
	void **data() {
		return words_.data() + line;
	}

private:
	static constexpr size_t line = 128 / sizeof(void *);

	std::vector<void *> words_;
};

/* Each thread takes and writes `count` objects, then frees them in the same order. */
template <class A> class shared_batches : public threaded<A> {
public:
	shared_batches(crew &c, size_t count)
		: threaded<A>(c), count_(count), slots_(c.size(), own_pointers(count)) {
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::members);
	}

private:
	void work(unsigned member) override {
		size_t n = this->repeats_, count = count_;
		void **slots = slots_[member].data();
		for (size_t r = 0; r < n; r++) {
			for (size_t i = 0; i < count; i++)
				slots[i] = take(this->a_, i);
			for (size_t i = 0; i < count; i++)
				give(this->a_, slots[i]);
		}
	}

	size_t count_;
	std::vector<own_pointers> slots_;
};

/* Writes one object often: slow when another thread's object is on the same cache line. */
template <class A> inline void write_often(A &a, size_t times) {
	void *p = take(a, times);
	for (size_t i = 0; i < times; i++) {
		++*static_cast<volatile size_t *>(p);
	}
	give(a, p);
}

/* Each thread takes an object, writes it `count` times, and frees it. */
template <class A> class shared_writes : public threaded<A> {
public:
	shared_writes(crew &c, size_t count) : threaded<A>(c), count_(count) {
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::members);
	}

protected:
	void work(unsigned) override {
		size_t n = this->repeats_;
		for (size_t r = 0; r < n; r++)
			write_often(this->a_, count_);
	}

private:
	size_t count_;
};

/* The same, after each thread has freed an object that one thread took for it, side by side with the
 * others: an allocator that hands it out again lets two threads write to one line. */
template <class A> class shared_writes_passed : public shared_writes<A> {
public:
	shared_writes_passed(crew &c, size_t count) : shared_writes<A>(c, count), passed_(c.size()) {
	}
	uint64_t run(size_t repeats) override {
		this->a_.enter(0);
		for (void *&p : passed_)
			p = take(this->a_, repeats);
		return shared_writes<A>::run(repeats);
	}

private:
	void work(unsigned member) override {
		give(this->a_, passed_[member]);
		shared_writes<A>::work(member);
	}

	std::vector<void *> passed_;
};

}
#endif
