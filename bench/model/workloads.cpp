/* bench/model/workloads.cpp: see workloads.h. The threads count their operations by the simulated
 * clock; at its end they stop where they are. */
#include "model/workloads.h"

#include <algorithm>

#include "engine.h"

namespace model {
namespace {

/* The workloads of bench/shared with these names have the same sizes. */
constexpr size_t batch_objects = 4096;
constexpr size_t most_batches = 16; /* of a thread that ends */
constexpr size_t handed_objects = 120, handed_batches = batch_objects / handed_objects;
constexpr size_t kept_objects = 1000;
constexpr size_t shortest_life = 5000, longest_life = 15000; /* replacements */

class thread {
public:
	thread(unsigned number, subject &s, const setting &how)
		: number(number), threads(how.threads), s_(s), warm_ns_(how.warm_ns),
		  end_ns_(how.warm_ns + how.measured_ns), random_(how.seed * 0x9e3779b97f4a7c15u + number + 1) {
		for (int i = 0; i < 8; i++)
			below(2);
		/* They do not start together. */
		spend(static_cast<double>(below(2000)));
	}

	void *alloc() {
		void *p = s_.alloc();
		touch(p, true);
		note_call();
		return p;
	}
	void free(void *p) {
		s_.free(p);
		note_call();
	}
	void renew() {
		s_.renew_thread();
	}
	bool goes_on() const {
		return now_ns() < end_ns_;
	}
	uint64_t below(uint64_t limit) {
		random_ ^= random_ << 13;
		random_ ^= random_ >> 7;
		random_ ^= random_ << 17;
		return random_ % limit;
	}

	const unsigned number, threads;
	uint64_t calls = 0, measured_calls = 0;

private:
	void note_call() {
		calls++;
		measured_calls += now_ns() >= warm_ns_ && goes_on();
	}

	subject &s_;
	double warm_ns_, end_ns_;
	uint64_t random_;
};

/* State that the threads of a workload share, and what each of them does. */
class workload {
public:
	virtual ~workload() = default;
	virtual void work(thread &t) = 0;
};

/* Takes and writes 4,096 objects, then frees them in the same order. */
void work_batch(thread &t, std::vector<void *> &held) {
	for (size_t i = 0; i < batch_objects && t.goes_on(); i++)
		held[i] = t.alloc();
	for (size_t i = 0; i < batch_objects && t.goes_on(); i++)
		t.free(held[i]);
}

/* Each thread one batch after the other. */
class own_batches : public workload {
public:
	void work(thread &t) override {
		std::vector<void *> held(batch_objects);
		while (t.goes_on())
			work_batch(t, held);
	}
};

/* The same by threads that end after some batches. The next thread gets another shard, so that now and
 * then two have one and another shard has none. */
class short_lives : public workload {
public:
	void work(thread &t) override {
		std::vector<void *> held(batch_objects);
		while (t.goes_on()) {
			for (size_t batches = 1 + t.below(most_batches); batches > 0; batches--)
				work_batch(t, held);
			t.renew();
		}
	}
};

/* A bounded queue of batches, in memory of the simulated machine: a line for each side's counter, and
 * the pointers. */
class ring {
public:
	ring()
		: written_(new_counter()), read_(new_counter()),
		  pointers_(static_cast<void **>(
			  engine::take(handed_batches * handed_objects * sizeof(void *), line_bytes))) {
	}

	/* Waits for room, or for an object; false: the time is over. */
	bool await_room(const thread &t, uint64_t written) {
		return await(t, [&] { return written - read_seen_ < handed_batches; }, read_, read_seen_);
	}
	bool await_batch(const thread &t, uint64_t read) {
		return await(t, [&] { return written_seen_ > read; }, written_, written_seen_);
	}
	void **batch(uint64_t number) {
		return pointers_ + number % handed_batches * handed_objects;
	}
	void publish(uint64_t written) {
		engine::store(written_, sizeof *written_, written, engine::RELEASE, HERE);
	}
	void release(uint64_t read) {
		engine::store(read_, sizeof *read_, read, engine::RELEASE, HERE);
	}

private:
	static uint64_t *new_counter() {
		uint64_t *counter = static_cast<uint64_t *>(engine::take(2 * line_bytes, 2 * line_bytes));
		*counter = 0;
		return counter;
	}
	template <class condition>
	static bool await(const thread &t, condition is_met, uint64_t *counter, uint64_t &seen) {
		while (t.goes_on()) {
			if (is_met())
				return true;
			seen = engine::load(counter, sizeof *counter, engine::ACQUIRE, HERE);
			if (!is_met())
				engine::yield(HERE);
		}
		return false;
	}

	uint64_t *written_, *read_;
	void **pointers_;
	uint64_t read_seen_ = 0, written_seen_ = 0; /* the producer's, the consumer's */
};

/* The first half of the threads take and write batches of 120, each for one of the other half, which
 * reads and frees them. */
class handoff : public workload {
public:
	explicit handoff(unsigned threads) : half_(threads / 2), rings_(half_) {
	}
	void work(thread &t) override {
		if (t.number < half_)
			produce(t, rings_[t.number]);
		else if (t.number < 2 * half_)
			consume(t, rings_[t.number - half_]);
	}

private:
	static void produce(thread &t, ring &to) {
		for (uint64_t written = 0; to.await_room(t, written); to.publish(++written)) {
			void **batch = to.batch(written);
			for (size_t i = 0; i < handed_objects && t.goes_on(); i++) {
				touch(&batch[i], true);
				batch[i] = t.alloc();
			}
		}
	}
	static void consume(thread &t, ring &from) {
		for (uint64_t read = 0; from.await_batch(t, read); from.release(++read)) {
			void **batch = from.batch(read);
			for (size_t i = 0; i < handed_objects && t.goes_on(); i++) {
				touch(&batch[i], false);
				touch(batch[i], false);
				t.free(batch[i]);
			}
		}
	}

	unsigned half_;
	std::vector<ring> rings_;
};

/* As larson-64: each keeps 1,000 objects and replaces one at random; after some thousand replacements
 * its thread ends, and the next one goes on with the objects that another ended thread left. */
class mixed : public workload {
public:
	void work(thread &t) override {
		std::vector<void *> kept(kept_objects);
		while (t.goes_on()) {
			size_t life = shortest_life + t.below(longest_life - shortest_life);
			for (size_t i = 0; i < life && t.goes_on(); i++) {
				void *&p = kept[t.below(kept_objects)];
				if (p != nullptr)
					t.free(p);
				p = t.alloc();
			}
			left_.resize(kept_objects);
			kept.swap(left_);
			t.renew();
		}
	}

private:
	std::vector<void *> left_;
};

std::unique_ptr<workload> make_workload(const std::string &name, unsigned threads) {
	if (name == "own-batch-4096")
		return std::make_unique<own_batches>();
	if (name == "short-lives-4096")
		return std::make_unique<short_lives>();
	if (name == "handoff-120")
		return std::make_unique<handoff>(threads);
	return std::make_unique<mixed>();
}

} /* namespace */

std::vector<std::string> workload_names() {
	return {"own-batch-4096", "short-lives-4096", "handoff-120", "mixed-64"};
}

bool can_run(const std::string &workload, unsigned threads) {
	return workload != "handoff-120" || threads > 1;
}

outcome measure(const std::string &name, subject &s, const costs &c, const setting &how) {
	std::unique_ptr<workload> w = make_workload(name, how.threads);
	double calls = 0, measured_calls = 0;
	figures f = run(c, how.threads, how.warm_ns, how.warm_ns + how.measured_ns, [&](unsigned number) {
		thread t(number, s, how);
		w->work(t);
		calls += static_cast<double>(t.calls);
		measured_calls += static_cast<double>(t.measured_calls);
	});
	outcome o;
	o.ops = measured_calls / 2;
	o.ops_per_us = o.ops / how.measured_ns * 1000;
	o.cpu_ns = f.busy_ns / o.ops;
	o.fetches = static_cast<double>(f.fetches) / o.ops;
	exchange_counts counts = s.counts();
	double millions = calls / 2 / 1e6;
	o.exchanges = static_cast<double>(counts.exchanges) / millions;
	o.foreign = static_cast<double>(counts.foreign) / millions;
	o.waits = static_cast<double>(counts.waits) / millions;
	return o;
}

} /* namespace model */
