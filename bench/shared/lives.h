/* bench/shared/lives.h: threads that end before their objects, and the memory that remains after them,
 * as templates over the adapter (see shared/loops.h). */
#ifndef BENCH_SHARED_LIVES_H
#define BENCH_SHARED_LIVES_H

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "shared/loops.h"

namespace bench {

/* Runs f(argument) in a thread of its own, on the caller's CPU, and waits for its end. */
inline void in_thread(void *(*f)(void *), void *argument) {
	pthread_t thread;
	if (pthread_create(&thread, nullptr, f, argument) == 0 && pthread_join(thread, nullptr) == 0)
		return;
	std::perror("tenure-bench: pthread_create");
	std::exit(2);
}

constexpr size_t larson_replacements = 100000;

/* Every member keeps `count` objects. In a repeat a new thread replaces one at random, 100,000 times,
 * and ends; the next thread continues with the same objects. */
template <class A> class larson : public threaded<A> {
public:
	larson(crew &c, size_t count) : threaded<A>(c) {
		for (unsigned member = 0; member < c.size(); member++)
			lanes_.push_back({this, member, member + 1, std::vector<void *>(count)});
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::process);
	}

private:
	struct alignas(128) lane {
		larson *all;
		unsigned member;
		uint64_t random;
		std::vector<void *> objects;
	};

	void enter(unsigned) override {
	}
	void leave(unsigned) override {
	}
	void work(unsigned member) override {
		for (size_t r = 0; r < this->repeats_; r++)
			in_thread(live, &lanes_[member]);
	}
	static void *live(void *argument) {
		lane &l = *static_cast<lane *>(argument);
		l.all->a_.enter(l.member);
		l.all->replace(l);
		l.all->a_.leave(l.member);
		return nullptr;
	}
	void replace(lane &l) {
		size_t n = l.objects.size();
		for (size_t i = 0; i < larson_replacements; i++) {
			l.random = l.random * 6364136223846793005u + 1442695040888963407u;
			void *&p = l.objects[(l.random >> 33) * n >> 31];
			if (p != nullptr)
				give(this->a_, p);
			p = take(this->a_, i);
		}
	}

	std::vector<lane> lanes_;
};

/* Bytes of an object in these workloads. */
constexpr size_t lives_size = 64;

inline size_t growth_since(size_t before) {
	size_t now = resident_bytes_exact();
	return now > before ? now - before : 0;
}

constexpr size_t churn_objects = 100;

/* Runs `count` short threads, one after the other on each member. Each takes 100 objects, which
 * outlive it. */
template <class A> class churn : public threaded<A> {
public:
	churn(crew &c, size_t count)
		: threaded<A>(c), threads_each_(count / c.size()),
		  objects_(threads_each_ * c.size() * churn_objects, this) {
	}
	uint64_t run(size_t) override {
		for (unsigned i = 0; i < 2 * this->crew_.size(); i++)
			in_thread([](void *) -> void * { return nullptr; }, nullptr);
		size_t before = resident_bytes_exact();
		uint64_t took = this->run_all(1, measure::process);
		rss_growth_ = growth_since(before);
		return took;
	}
	void describe(row &r) override {
		threaded<A>::describe(r);
		double live = static_cast<double>(objects_.size() * lives_size);
		double rss = static_cast<double>(rss_growth_);
		double committed = static_cast<double>(this->a_.committed_bytes());
		r.fields["rss_overhead_ratio"] = rss / live;
		r.fields["overhead_ratio"] = (committed > 0 ? committed : rss) / live;
		if (committed > 0)
			r.fields["committed_bytes"] = committed;
	}

private:
	struct life {
		churn *all;
		void **objects;
	};

	void work(unsigned member) override {
		for (size_t t = 0; t < threads_each_; t++) {
			life one{this, &objects_[(member * threads_each_ + t) * churn_objects]};
			in_thread(live, &one);
		}
	}
	static void *live(void *argument) {
		life &one = *static_cast<life *>(argument);
		for (size_t i = 0; i < churn_objects; i++)
			one.objects[i] = take(one.all->a_, i);
		return nullptr;
	}

	size_t threads_each_, rss_growth_ = 0;
	std::vector<void *> objects_; /* written before the first measurement */
};

/* Every member's thread takes `count` objects; when all have theirs, they free them and end. Then the
 * allocator is asked to give memory back. */
template <class A> class burst : public threaded<A> {
public:
	burst(crew &c, size_t count) : threaded<A>(c) {
		for (unsigned member = 0; member < c.size(); member++)
			parts_.push_back({this, std::vector<void *>(count, this)});
	}
	uint64_t run(size_t) override {
		size_t before = resident_bytes_exact();
		reset_peak();
		uint64_t took = this->run_all(1, measure::process);
		peak_growth_ = peak_resident_bytes() - before;
		after_free_ = growth_since(before);
		this->a_.trim();
		rss_growth_ = growth_since(before);
		return took;
	}
	void describe(row &r) override {
		threaded<A>::describe(r);
		double bytes = static_cast<double>(parts_.size() * parts_[0].objects.size() * lives_size);
		double committed = static_cast<double>(this->a_.committed_bytes());
		r.fields["committed_share"] = static_cast<double>(rss_growth_) / bytes;
		r.fields["committed_share_before_trim"] = static_cast<double>(after_free_) / bytes;
		r.fields["peak_rss_bytes"] = static_cast<double>(peak_growth_);
		if (committed > 0) {
			r.fields["committed_bytes"] = committed;
			r.fields["stats_committed_share"] = committed / bytes;
		}
	}

private:
	struct part {
		burst *all;
		std::vector<void *> objects; /* written before the first measurement */
	};

	void work(unsigned member) override {
		in_thread(live, &parts_[member]);
	}
	static void *live(void *argument) {
		part &mine = *static_cast<part *>(argument);
		for (void *&p : mine.objects)
			p = take(mine.all->a_, 1);
		mine.all->full_.fetch_add(1);
		for (patience p; mine.all->full_.load() < mine.all->parts_.size(); p.wait()) {
		}
		for (void *p : mine.objects)
			give(mine.all->a_, p);
		return nullptr;
	}

	std::vector<part> parts_;
	std::atomic<size_t> full_{0};
	size_t peak_growth_ = 0, after_free_ = 0, rss_growth_ = 0;
};

}
#endif
