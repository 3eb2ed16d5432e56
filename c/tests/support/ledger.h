/* A source of chunks that keeps books on itself and fails when told to. */
#ifndef TENURE_TESTS_LEDGER_H
#define TENURE_TESTS_LEDGER_H

#include <tenure/base.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

class ledger {
public:
	static constexpr size_t never = SIZE_MAX;

	ledger() : source_{acquire, release, this} {
	}
	~ledger() {
		EXPECT_EQ(held_.size(), 0u) << "chunks never given back";
		EXPECT_EQ(wrong_, 0u) << "calls of the source that break its contract";
		for (auto &chunk : held_)
			std::free(chunk.first);
	}
	ledger(const ledger &) = delete;
	ledger &operator=(const ledger &) = delete;

	const tn_source *source() const {
		return &source_;
	}
	const std::vector<size_t> &sizes() const {
		return sizes_;
	}
	const std::map<void *, size_t> &held() const {
		return held_;
	}
	size_t calls() const {
		return calls_;
	}
	size_t released() const {
		return released_;
	}
	size_t failures() const {
		return failures_;
	}
	size_t wrong() const {
		return wrong_;
	}
	size_t held_bytes() const {
		return held_bytes_;
	}
	size_t held_count() const {
		return held_.size();
	}
	size_t peak_bytes() const {
		return peak_bytes_;
	}

	/* The call number `first` (from 1, counted from now) and the next count-1 fail. */
	void fail(size_t first, size_t count) {
		fail_from_ = calls_ + first;
		fail_count_ = count;
	}
	void heal() {
		fail_count_ = 0;
	}
	/* Answers are `bytes` behind the requested alignment. */
	void misalign(size_t bytes) {
		misalign_ = bytes;
	}

	bool holds(const void *p, size_t size) const {
		auto next = held_.upper_bound(const_cast<void *>(p));
		if (next == held_.begin())
			return false;
		auto chunk = std::prev(next);
		size_t offset =
			static_cast<size_t>(static_cast<const char *>(p) - static_cast<char *>(chunk->first));
		return offset <= chunk->second && size <= chunk->second - offset;
	}

private:
	static void *acquire(void *ctx, size_t size, size_t align) {
		return static_cast<ledger *>(ctx)->take(size, align);
	}
	static void release(void *ctx, void *p, size_t size) {
		static_cast<ledger *>(ctx)->give_back(p, size);
	}

	bool must_fail() const {
		return calls_ >= fail_from_ && calls_ - fail_from_ < fail_count_;
	}

	void *take(size_t size, size_t align) {
		calls_++;
		sizes_.push_back(size);
		if (size == 0 || align == 0 || (align & (align - 1)) != 0)
			wrong_++;
		if (must_fail()) {
			failures_++;
			return nullptr;
		}
		void *p = nullptr;
		if (posix_memalign(&p, align < 4096 ? 4096 : align, size + misalign_) != 0)
			return nullptr;
		/* Finds allocators that rely on zeroed chunks. */
		std::memset(p, 0xa5, size + misalign_);
		p = static_cast<char *>(p) + misalign_;
		held_[p] = size;
		held_bytes_ += size;
		peak_bytes_ = held_bytes_ > peak_bytes_ ? held_bytes_ : peak_bytes_;
		return p;
	}

	void give_back(void *p, size_t size) {
		auto chunk = held_.find(p);
		if (chunk == held_.end() || chunk->second != size) {
			wrong_++;
			return;
		}
		/* A chunk that comes back with protected pages faults here. */
		std::memset(p, 0xdd, size);
		held_bytes_ -= size;
		released_++;
		held_.erase(chunk);
		std::free(static_cast<char *>(p) - misalign_);
	}

	tn_source source_;
	std::map<void *, size_t> held_;
	std::vector<size_t> sizes_;
	size_t calls_ = 0;
	size_t released_ = 0;
	size_t failures_ = 0;
	size_t wrong_ = 0;
	size_t held_bytes_ = 0;
	size_t peak_bytes_ = 0;
	size_t fail_from_ = 0;
	size_t fail_count_ = 0;
	size_t misalign_ = 0;
};

/* Options of any allocator: chunks come from these books. */
class sourced_options {
public:
	explicit sourced_options(const ledger &books) : source_(books.source()) {
	}
	template <typename Options, typename = decltype(Options::source)> operator Options() const {
		Options options = {};
		options.source = source_;
		return options;
	}

private:
	const tn_source *source_;
};

inline sourced_options with_source(const ledger &books) {
	return sourced_options(books);
}

#endif
