/* Many threads at once: started together, with objects that know their owner and a source that is
 * watched. */
#ifndef TENURE_TESTS_CROWD_H
#define TENURE_TESTS_CROWD_H

#include "allocators.h"
#include "process.h"
#include "program.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#if defined(__SANITIZE_THREAD__)
/* The child cannot join a thread that ended just before the fork. */
extern "C" __attribute__((weak)) const char *__tsan_default_options() {
	return "report_thread_leaks=0";
}
#endif

/* TENURE_STRESS_SECONDS asks for the long form of every test here; without it they take a
 * second each. */
inline uint64_t stress_seconds() {
	return number_from_environment("TENURE_STRESS_SECONDS", 0);
}

/* Number of repetitions: in the long form, in the short one, and fewer under a sanitizer. */
inline size_t times(size_t in_long_form, size_t otherwise) {
	return stress_seconds() > 0 ? in_long_form : sanitized ? (otherwise + 9) / 10 : otherwise;
}

template <typename F> void in_thread(F work) {
	std::thread(work).join();
}

/* Runs work(0) to work(count - 1), each in a thread; they begin together. */
template <typename F> void in_crowd(size_t count, F work) {
	std::atomic<size_t> missing{count};
	std::vector<std::thread> threads;
	for (size_t i = 0; i < count; i++)
		threads.emplace_back([&missing, &work, i] {
			for (missing--; missing > 0;)
				std::this_thread::yield();
			work(i);
		});
	for (auto &thread : threads)
		thread.join();
}

/* A barrier of a fixed number of threads, for repeated use. */
class rendezvous {
public:
	explicit rendezvous(size_t count) : count_(count) {
	}
	void meet() {
		std::unique_lock<std::mutex> hold(lock_);
		size_t turn = turn_;
		if (++here_ == count_) {
			here_ = 0;
			turn_++;
			all_here_.notify_all();
		}
		all_here_.wait(hold, [&] { return turn_ != turn; });
	}

private:
	std::mutex lock_;
	std::condition_variable all_here_;
	const size_t count_;
	size_t here_ = 0, turn_ = 0;
};

/* ---- stamps ---- */

/* An object is filled, from its first byte to its last, with words that no other owner's object has. */
inline uint64_t stamp_word(uint64_t stamp, size_t i) {
	return (stamp + i) * 0x9e3779b97f4a7c15u ^ stamp;
}

inline void put_stamp(void *p, size_t size, uint64_t stamp) {
	auto *words = static_cast<uint64_t *>(p);
	for (size_t i = 0; i < size / sizeof *words; i++)
		words[i] = stamp_word(stamp, i);
}

inline bool has_stamp(const void *p, size_t size, uint64_t stamp) {
	auto *words = static_cast<const uint64_t *>(p);
	for (size_t i = 0; i < size / sizeof *words; i++)
		if (words[i] != stamp_word(stamp, i))
			return false;
	return true;
}

struct parcel {
	void *p;
	uint64_t stamp;
};

/* A bounded queue of objects on their way to another thread. */
class mailbox {
public:
	enum { ROOM = 256 };

	/* Whether all of it fitted. */
	bool send(const std::vector<parcel> &parcels) {
		std::lock_guard<std::mutex> hold(lock_);
		if (parcels_.size() + parcels.size() > ROOM)
			return false;
		parcels_.insert(parcels_.end(), parcels.begin(), parcels.end());
		return true;
	}
	std::vector<parcel> collect() {
		std::lock_guard<std::mutex> hold(lock_);
		return std::exchange(parcels_, {});
	}
	size_t count() {
		std::lock_guard<std::mutex> hold(lock_);
		return parcels_.size();
	}

private:
	std::mutex lock_;
	std::vector<parcel> parcels_;
};

/* ---- a source ---- */

/* Keeps books under a lock of its own, fails one in `fails_once_in` calls, and notices when two
 * threads are inside. */
class watched_source {
public:
	watched_source() : source{acquire, release, this} {
	}
	~watched_source() {
		EXPECT_EQ(held_.size(), 0u) << "chunks never given back";
		EXPECT_EQ(wrong, 0u) << "calls of the source that break its contract";
	}
	watched_source(const watched_source &) = delete;
	watched_source &operator=(const watched_source &) = delete;

	size_t held_bytes() {
		std::lock_guard<std::mutex> hold(lock_);
		return held_bytes_;
	}
	size_t peak_bytes() {
		std::lock_guard<std::mutex> hold(lock_);
		return peak_bytes_;
	}

	const tn_source source;
	std::atomic<size_t> fails_once_in{0};
	std::atomic<size_t> failures{0}, calls{0}, wrong{0};

private:
	/* Two threads inside break the contract, even though the lock protects the books. */
	class visit {
	public:
		explicit visit(watched_source *to) : to_(to) {
			to_->wrong += to_->inside_.exchange(true, std::memory_order_relaxed);
		}
		~visit() {
			to_->inside_.store(false, std::memory_order_relaxed);
		}

	private:
		watched_source *to_;
	};

	static void *acquire(void *ctx, size_t size, size_t align) {
		return static_cast<watched_source *>(ctx)->take(size, align);
	}
	static void release(void *ctx, void *p, size_t size) {
		static_cast<watched_source *>(ctx)->give_back(p, size);
	}

	void *take(size_t size, size_t align) {
		visit here(this);
		std::lock_guard<std::mutex> hold(lock_);
		calls++;
		size_t odds = fails_once_in;
		if (odds != 0 && chance_.one_in(odds)) {
			failures++;
			return nullptr;
		}
		void *p = nullptr;
		if (posix_memalign(&p, align < page ? page : align, size) != 0)
			return nullptr;
		std::memset(p, 0xa5, size);
		held_[p] = size;
		held_bytes_ += size;
		peak_bytes_ = held_bytes_ > peak_bytes_ ? held_bytes_ : peak_bytes_;
		return p;
	}

	void give_back(void *p, size_t size) {
		visit here(this);
		std::lock_guard<std::mutex> hold(lock_);
		auto chunk = held_.find(p);
		if (chunk == held_.end() || chunk->second != size) {
			wrong++;
			return;
		}
		std::memset(p, 0xdd, size);
		held_bytes_ -= size;
		held_.erase(chunk);
		std::free(p);
	}

	std::mutex lock_;
	std::atomic<bool> inside_{false};
	dice chance_{program_seed()};
	std::map<void *, size_t> held_;
	size_t held_bytes_ = 0, peak_bytes_ = 0;
};

#endif
