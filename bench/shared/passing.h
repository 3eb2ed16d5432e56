/* bench/shared/passing.h: objects that one thread takes and another frees, as templates over the
 * adapter (see shared/loops.h). */
#ifndef BENCH_SHARED_PASSING_H
#define BENCH_SHARED_PASSING_H

#include <atomic>
#include <memory>
#include <vector>

#include "shared/loops.h"

namespace bench {

/* A bounded queue of batches from one thread to another; the queue holds the pointers. A thread that
 * finds it full or empty waits. */
class ring {
public:
	ring(size_t batches, size_t batch_objects)
		: batches_(batches), batch_objects_(batch_objects), pointers_(batches * batch_objects) {
	}

	/* Waits for room and returns the batch to fill; publish() hands it over. */
	void **room() {
		for (patience p; written_ - read_seen_ == batches_; p.wait())
			read_seen_ = read_.load(std::memory_order_acquire);
		return &pointers_[write_at_ * batch_objects_];
	}
	void publish() {
		write_at_ = write_at_ + 1 == batches_ ? 0 : write_at_ + 1;
		published_.store(++written_, std::memory_order_release);
	}

	bool empty() {
		if (taken_ == published_seen_)
			published_seen_ = published_.load(std::memory_order_acquire);
		return taken_ == published_seen_;
	}
	/* The oldest batch of a queue that is not empty; release() ends its use. */
	void **oldest() {
		return &pointers_[read_at_ * batch_objects_];
	}
	void release() {
		read_at_ = read_at_ + 1 == batches_ ? 0 : read_at_ + 1;
		read_.store(++taken_, std::memory_order_release);
	}

private:
	size_t batches_, batch_objects_;
	std::vector<void *> pointers_;
	/* One line for the producer, one for the consumer, and two that both use. */
	alignas(128) size_t written_ = 0;
	size_t read_seen_ = 0, write_at_ = 0;
	alignas(128) size_t taken_ = 0;
	size_t published_seen_ = 0, read_at_ = 0;
	alignas(128) std::atomic<size_t> published_{0};
	alignas(128) std::atomic<size_t> read_{0};
};

inline void use(size_t value) {
	asm volatile("" : : "r"(value));
}

/* The most objects on their way, for any size of a batch. */
constexpr size_t handoff_objects = 4096;

/* Member 0 takes and writes batches of `count` objects, member 1 reads and frees them. */
template <class A> class handoffs : public threaded<A> {
public:
	handoffs(crew &c, size_t count)
		: threaded<A>(c), count_(count), ring_(std::make_unique<ring>(handoff_objects / count, count)) {
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::wall);
	}

private:
	void work(unsigned member) override {
		if (member == 0)
			produce(*ring_, this->repeats_);
		else
			consume(*ring_, this->repeats_);
	}
	void produce(ring &to, size_t batches) {
		for (size_t b = 0; b < batches; b++) {
			void **objects = to.room();
			for (size_t i = 0; i < count_; i++)
				objects[i] = take(this->a_, i);
			to.publish();
		}
	}
	void consume(ring &from, size_t batches) {
		size_t sum = 0;
		for (size_t b = 0; b < batches; b++) {
			for (patience p; from.empty(); p.wait()) {
			}
			void **objects = from.oldest();
			for (size_t i = 0; i < count_; i++) {
				sum += *static_cast<size_t *>(objects[i]);
				give(this->a_, objects[i]);
			}
			from.release();
		}
		use(sum);
	}

	size_t count_;
	std::unique_ptr<ring> ring_;
};

constexpr size_t message_ring = 256;

/* Half of the members send single objects to the members of the other half in turn, through a queue
 * for each pair. In a repeat each sends `count`, a multiple of the number of receivers. */
template <class A> class messages : public threaded<A> {
public:
	messages(crew &c, size_t count) : threaded<A>(c), count_(count), half_(c.size() / 2) {
		for (size_t i = 0; i < half_ * half_; i++)
			rings_.push_back(std::make_unique<ring>(message_ring, 1));
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::wall);
	}

private:
	void work(unsigned member) override {
		size_t messages_each = this->repeats_ * count_;
		if (member < half_)
			send(member, messages_each);
		else
			receive(member - half_, messages_each);
	}
	void send(size_t sender, size_t n) {
		for (size_t i = 0, to = 0; i < n; i++) {
			ring &r = *rings_[sender * half_ + to];
			*r.room() = take(this->a_, i);
			r.publish();
			to = to + 1 == half_ ? 0 : to + 1;
		}
	}
	void receive(size_t receiver, size_t n) {
		patience p;
		for (size_t got = 0; got < n;) {
			size_t before = got;
			for (size_t from = 0; from < half_; from++)
				got += receive_from(*rings_[from * half_ + receiver]);
			if (got == before)
				p.wait();
		}
	}
	size_t receive_from(ring &r) {
		if (r.empty())
			return 0;
		void *p = *r.oldest();
		r.release();
		use(*static_cast<size_t *>(p));
		give(this->a_, p);
		return 1;
	}

	size_t count_, half_;
	std::vector<std::unique_ptr<ring>> rings_;
};

}
#endif
