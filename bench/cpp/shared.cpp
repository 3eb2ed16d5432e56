/* bench/cpp/shared.cpp: the family `cpp`: one resource for all threads. */
#include <array>

#include "cpp/containers.h"
#include "cpp/tenure.h"
#include "shared/passing.h"

namespace bench {
namespace {

/* Memory without work before and after a thread's part. */
template <class Memory> class shared_memory : public Memory {
public:
	void enter(unsigned) {
	}
	void leave(unsigned) {
	}
};

/* Each thread's containers are its own. */
template <class Memory> class own_containers : public threaded<shared_memory<Memory>> {
public:
	explicit own_containers(crew &c) : threaded<shared_memory<Memory>>(c) {
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::members);
	}

private:
	void work(unsigned) override {
		size_t n = this->repeats_;
		for (size_t r = 0; r < n; r++) {
			list_life::live(this->a_);
			index_life::live(this->a_);
		}
	}
};

constexpr size_t batch_blocks = 32;
constexpr size_t batches_under_way = 32;
constexpr size_t kinds_of_blocks[] = {16, 24, 32, 48, 64, 96, 160, 512};

/* Each thread takes batches of blocks for the next thread and, 32 batches later, frees those of the
 * previous one. A single thread frees its own. */
template <class Memory> class crossed_blocks : public threaded<shared_memory<Memory>> {
public:
	explicit crossed_blocks(crew &c) : threaded<shared_memory<Memory>>(c) {
		/* One batch more than is under way, so that no circle of threads waits for room. */
		for (unsigned i = 0; i < c.size(); i++)
			rings_.push_back(std::make_unique<ring>(batches_under_way + 1, batch_blocks));
		std::mt19937 random(1);
		for (size_t &size : sizes_)
			size = kinds_of_blocks[random() % std::size(kinds_of_blocks)];
	}
	uint64_t run(size_t repeats) override {
		return this->run_all(repeats, measure::members);
	}

private:
	void work(unsigned member) override {
		std::pmr::memory_resource &r = *this->a_.handle();
		ring &to = *rings_[member];
		ring &from = *rings_[(member == 0 ? rings_.size() : member) - 1];
		size_t n = this->repeats_, sum = 0;
		for (size_t b = 0; b < n + batches_under_way; b++) {
			if (b >= batches_under_way)
				sum += free_batch(r, from, b - batches_under_way);
			if (b < n)
				take_batch(r, to, b);
		}
		use(sum);
	}
	/* Each batch starts at another place in the list of sizes. */
	size_t size_of(size_t batch, size_t i) const {
		return sizes_[(batch + i) % sizes_.size()];
	}
	void take_batch(std::pmr::memory_resource &r, ring &to, size_t batch) {
		void **blocks = to.room();
		for (size_t i = 0; i < batch_blocks; i++) {
			void *p = r.allocate(size_of(batch, i), 16);
			escape(p);
			*static_cast<size_t *>(p) = i;
			blocks[i] = p;
		}
		to.publish();
	}
	size_t free_batch(std::pmr::memory_resource &r, ring &from, size_t batch) {
		for (patience p; from.empty(); p.wait()) {
		}
		void **blocks = from.oldest();
		size_t sum = 0;
		for (size_t i = 0; i < batch_blocks; i++) {
			sum += *static_cast<size_t *>(blocks[i]);
			r.deallocate(blocks[i], size_of(batch, i), 16);
		}
		from.release();
		return sum;
	}

	std::vector<std::unique_ptr<ring>> rings_;
	std::array<size_t, 64> sizes_;
};

template <template <class> class C, class Memory>
subject crew_subject(const char *name, unsigned threads) {
	return {name, [threads] { return std::make_unique<C<Memory>>(crew_of(threads)); }};
}

template <template <class> class C>
workload make_workload(const char *name, size_t ops, unsigned threads) {
	workload w;
	w.name = name;
	w.threads = threads;
	w.all_cpus = threads > 1;
	w.ops = static_cast<double>(ops * threads);
	w.round_ns = 4e6 * threads;
	w.subjects = {
		crew_subject<C, tenure_shared_memory>("tenure-shared", threads),
		crew_subject<C, glibc_memory>("glibc", threads),
		crew_subject<C, pmr_memory<std::pmr::synchronized_pool_resource>>("pmr-synchronized", threads),
	};
	return w;
}

std::vector<workload> workloads() {
	std::vector<workload> all;
	for (unsigned threads : {1u, 2u, 4u}) {
		size_t elements = list_life::elements() + index_life::elements();
		all.push_back(make_workload<own_containers>("pmr-shared-own", elements, threads));
	}
	for (unsigned threads : {1u, 2u, 4u})
		all.push_back(make_workload<crossed_blocks>("pmr-shared-crossed", batch_blocks, threads));
	return all;
}

const registration containers_of_all("cpp", workloads);

}
}
