/* bench/harness/crew.cpp */
#include "harness/crew.h"

#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "harness/harness.h"

namespace bench {

static uint64_t nanoseconds(clockid_t clock) {
	timespec now;
	clock_gettime(clock, &now);
	return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

static uint64_t ticks_of(uint64_t ns) {
	return static_cast<uint64_t>(static_cast<double>(ns) / ns_per_tick());
}

static long switches_of_this_thread() {
	rusage u;
	getrusage(RUSAGE_THREAD, &u);
	return u.ru_nivcsw;
}

class threads final : public crew {
public:
	/* Starts a thread even for a crew of one, which does not use it: no subject may gain from a
	 * process that never had a second thread. */
	explicit threads(unsigned size);

	uint64_t run(job &j, measure what) override {
		job_ = &j;
		what_ = what;
		arrived_.store(0);
		uint64_t from = nanoseconds(CLOCK_PROCESS_CPUTIME_ID);
		if (parts_.size() == 1)
			play(0);
		else
			play_all();
		return what == measure::process   ? ticks_of(nanoseconds(CLOCK_PROCESS_CPUTIME_ID) - from)
		       : what == measure::members ? ticks_of(sum())
		                                  : span();
	}

	unsigned size() const override {
		return static_cast<unsigned>(parts_.size());
	}

	bool interrupted() const override {
		if (what_ == measure::process || size() > sysconf(_SC_NPROCESSORS_ONLN))
			return false;
		return std::any_of(parts_.begin(), parts_.end(), [](const part &p) { return p.switches != 0; });
	}

private:
	struct seat {
		threads *crew;
		unsigned member;
	};
	struct alignas(128) part {
		uint64_t from, to;
		long switches;
	};

	static void start(seat *s) {
		pthread_t thread;
		if (pthread_create(&thread, nullptr, sit, s) == 0)
			return;
		std::perror("tenure-bench: pthread_create");
		std::exit(2);
	}

	/* The starter allocates the thread's seat, so that a member's first call of malloc is the
	 * subject's. */
	static void *sit(void *arg) {
		const seat &s = *static_cast<seat *>(arg);
		pin(s.member);
		for (uint64_t done = 0;; done++) {
			s.crew->wait_for_job(done);
			s.crew->play(s.member);
			s.crew->leave();
		}
		return nullptr;
	}

	void wait_for_job(uint64_t done) {
		std::unique_lock<std::mutex> hold(lock_);
		posted_.wait(hold, [&] { return jobs_ > done; });
	}

	void leave() {
		std::lock_guard<std::mutex> hold(lock_);
		if (--busy_ == 0)
			finished_.notify_one();
	}

	void play_all() {
		std::unique_lock<std::mutex> hold(lock_);
		busy_ = size();
		jobs_++;
		posted_.notify_all();
		finished_.wait(hold, [&] { return busy_ == 0; });
	}

	void play(unsigned member) {
		job_->enter(member);
		if (what_ != measure::process)
			meet();
		part &p = parts_[member];
		long switches = switches_of_this_thread();
		p.from = now();
		job_->work(member);
		p.to = now();
		p.switches = switches_of_this_thread() - switches;
		job_->leave(member);
	}

	/* All members begin at the same time; an early one would have memory and locks to itself. */
	void meet() {
		arrived_.fetch_add(1);
		for (patience p; arrived_.load() < parts_.size(); p.wait()) {
		}
	}

	uint64_t now() const {
		return what_ == measure::members ? nanoseconds(CLOCK_THREAD_CPUTIME_ID) : ticks();
	}

	uint64_t sum() const {
		uint64_t all = 0;
		for (const part &p : parts_)
			all += p.to - p.from;
		return all;
	}

	uint64_t span() const {
		uint64_t first = parts_[0].from, last = parts_[0].to;
		for (const part &p : parts_) {
			first = std::min(first, p.from);
			last = std::max(last, p.to);
		}
		return last - first;
	}

	std::vector<part> parts_;
	job *job_ = nullptr;
	measure what_ = measure::wall;
	alignas(128) std::atomic<size_t> arrived_{0};
	alignas(128) std::mutex lock_;
	std::condition_variable posted_, finished_;
	uint64_t jobs_ = 0;
	unsigned busy_ = 0;
};

threads::threads(unsigned size) : parts_(size) {
	for (unsigned member = 0; member < size; member++)
		start(new seat{this, member});
}

crew &crew_of(unsigned size) {
	static std::map<unsigned, crew *> made;
	crew *&c = made[size];
	if (c == nullptr)
		c = new threads(size);
	return *c;
}

}
