/* Tenure inside libraries that are opened when the program already has threads, used by these
 * threads, and closed before they end. The program itself has no Tenure. Each test has a process of
 * its own, since a library leaves traces in the loader. */
#include <gtest/gtest.h>

#include "../support/process.h"

extern "C" {
#include "module.h"
}

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>

namespace {

struct opened {
	void *handle = nullptr;
	decltype(&module_begin) begin = nullptr;
	decltype(&module_use) use = nullptr;
	decltype(&module_show) show = nullptr;
	decltype(&module_in_use) in_use = nullptr;
	decltype(&module_end) end = nullptr;

	explicit opened(const char *path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
		if (handle == nullptr) {
			std::fprintf(stderr, "%s\n", dlerror());
			return;
		}
		find(begin, "module_begin");
		find(use, "module_use");
		find(show, "module_show");
		find(in_use, "module_in_use");
		find(end, "module_end");
	}
	/* Whether the library opened and closed without a complaint; `in_between` runs while it is open. */
	bool live(const std::function<bool()> &in_between) {
		bool right = handle != nullptr && begin() && use(1) && in_between() && use(2);
		return right && in_use() == 0 && end() && dlclose(handle) == 0;
	}

private:
	template <typename F> void find(F &function, const char *name) {
		function = reinterpret_cast<F>(dlsym(handle, name));
	}
};

/* Threads that start before any library is opened and end after all are closed; in each round all of
 * them do the same work. */
class old_threads {
public:
	explicit old_threads(size_t count) : count_(count) {
		for (size_t i = 0; i < count; i++)
			threads_.emplace_back([this] { work(); });
	}
	~old_threads() {
		run(nullptr);
		for (auto &thread : threads_)
			thread.join();
	}
	/* Whether the work succeeded in all of them. */
	bool run(const std::function<bool()> &job) {
		std::unique_lock<std::mutex> hold(lock_);
		job_ = job;
		done_ = wrong_ = 0;
		round_++;
		changed_.notify_all();
		changed_.wait(hold, [this] { return done_ == count_; });
		return wrong_ == 0;
	}

private:
	void work() {
		for (size_t round = 1;; round++) {
			std::function<bool()> job;
			{
				std::unique_lock<std::mutex> hold(lock_);
				changed_.wait(hold, [&] { return round_ == round; });
				job = job_;
			}
			bool right = job == nullptr || job();
			std::lock_guard<std::mutex> hold(lock_);
			wrong_ += !right;
			done_++;
			changed_.notify_all();
			if (job == nullptr)
				return;
		}
	}

	std::mutex lock_;
	std::condition_variable changed_;
	const size_t count_;
	size_t round_ = 0, done_ = 0, wrong_ = 0;
	std::function<bool()> job_;
	std::vector<std::thread> threads_;
};

bool use_with_threads(old_threads &threads, const opened &module) {
	bool right = threads.run([&] { return module.use(3); });
	std::thread young([&] { right = module.use(4) && right; });
	young.join();
	return right;
}

void expect_well(const std::function<bool()> &work) {
	int status = in_child([&] { return work() ? 0 : 1; }, 60);
	EXPECT_TRUE(exited_with(status, 0)) << "wait status " << status;
}

constexpr size_t thread_count = 4;

/* ThreadSanitizer allows no threads in the child of a process that has threads; this process has
 * none. */
void open_and_close(const char *path, int times) {
	expect_well([=] {
		old_threads threads(thread_count);
		bool right = true;
		for (int i = 0; i < times; i++) {
			opened module(path);
			right &= module.live([&] { return use_with_threads(threads, module); });
			/* Code of the library is not called any more. */
			right &= exited_with(in_child([] { return 0; }, 20), 0);
		}
		return right;
	});
}

TEST(loaded, a_library_that_contains_tenure) {
	open_and_close(TENURE_STATIC_MODULE, 1);
}

TEST(loaded, a_library_that_uses_the_shared_one) {
	open_and_close(TENURE_SHARED_MODULE, 1);
}

TEST(loaded, again_and_again) {
	open_and_close(TENURE_STATIC_MODULE, 10);
	open_and_close(TENURE_SHARED_MODULE, 10);
}

/* Two copies of Tenure in one process, each with its own thread-local storage; the first opened is
 * the first closed. */
TEST(loaded, two_libraries_that_contain_tenure) {
	expect_well([] {
		old_threads threads(thread_count);
		opened first(TENURE_STATIC_MODULE), second(TENURE_OTHER_MODULE);
		bool right = first.live([&] {
			return second.handle != nullptr && second.begin() && use_with_threads(threads, first) &&
			       use_with_threads(threads, second) && use_with_threads(threads, first);
		});
		right &= use_with_threads(threads, second) && second.in_use() == 0 && second.end();
		return right && dlclose(second.handle) == 0;
	});
}

TEST(loaded, one_that_contains_it_beside_the_shared_one) {
	expect_well([] {
		old_threads threads(thread_count);
		opened first(TENURE_SHARED_MODULE), second(TENURE_STATIC_MODULE);
		return first.live([&] {
			return use_with_threads(threads, first) &&
			       second.live([&] { return use_with_threads(threads, second); }) &&
			       use_with_threads(threads, first);
		});
	});
}

/* Threads are inside the library when a fork happens; the child uses it too. */
TEST(loaded, fork_with_a_library_open) {
	expect_well([] {
		opened module(TENURE_STATIC_MODULE);
		return module.live([&] {
			std::atomic<bool> stop{false};
			std::thread young([&] {
				while (!stop)
					module.use(4);
			});
			int status = in_child([&] { return module.use(5) ? 0 : 1; }, 20);
			stop = true;
			young.join();
			return exited_with(status, 0);
		});
	});
}

size_t entries(const char *path) {
	size_t count = 0;
	DIR *directory = opendir(path);
	while (readdir(directory) != nullptr)
		count++;
	closedir(directory);
	return count;
}

bool show_and_close(unsigned microseconds) {
	opened module(TENURE_STATIC_MODULE);
	return module.live([&] { return module.show() && usleep(microseconds) == 0; });
}

/* Its thread must not go on in code that is unloaded. */
TEST(loaded, a_live_view_ends_with_its_library) {
	expect_well([] {
		bool right = show_and_close(0);
		size_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
		for (unsigned i = 0; i < 20; i++)
			right &= show_and_close(i * 100);
		return right && entries("/proc/self/task") == threads && entries("/proc/self/fd") == files;
	});
}

} /* namespace */
