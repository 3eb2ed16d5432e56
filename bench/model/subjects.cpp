/* bench/model/subjects.cpp: the subjects by name, and the one that is not Tenure's. */
#include "model/subjects.h"

#include <algorithm>
#include <iterator>

#include "engine.h"

namespace model {
namespace {

constexpr size_t chunk_bytes = 65536;

struct node {
	node *next;
};

struct list {
	uint32_t locked;
	node *first;
};

/* A list through the free objects behind one lock: the peer `spinlock` of bench/shared, with every
 * access told to the simulated machine. */
class spinlock : public subject {
public:
	spinlock() : list_(static_cast<list *>(engine::take(sizeof(list), line_bytes))) {
		*list_ = {};
	}

	void *alloc() override {
		lock();
		node *p = read(&list_->first);
		if (p == nullptr)
			p = grow();
		write(&list_->first, read(&p->next));
		unlock();
		return p;
	}
	void free(void *object) override {
		node *p = static_cast<node *>(object);
		lock();
		write(&p->next, read(&list_->first));
		write(&list_->first, p);
		unlock();
	}

private:
	void lock() {
		while (engine::exchange(&list_->locked, sizeof list_->locked, 1, engine::ACQUIRE, HERE) != 0)
			while (engine::load(&list_->locked, sizeof list_->locked, engine::RELAXED, HERE) != 0)
				engine::yield(HERE);
	}
	void unlock() {
		engine::store(&list_->locked, sizeof list_->locked, 0, engine::RELEASE, HERE);
	}
	static node *read(node **at) {
		engine::note_load(at, 0, HERE);
		return *at;
	}
	static void write(node **at, node *value) {
		engine::note_store(at, 0, HERE);
		*at = value;
	}
	/* A chunk that is all one list; the costs of making it are left out. */
	static node *grow() {
		char *chunk = static_cast<char *>(engine::take(chunk_bytes, chunk_bytes));
		node *first = nullptr;
		for (size_t at = chunk_bytes; at != 0; at -= object_bytes) {
			node *p = reinterpret_cast<node *>(chunk + at - object_bytes);
			p->next = first;
			first = p;
		}
		return first;
	}

	list *list_;
};

/* Shards for each core, in quarters; the others have special meanings. */
struct named {
	const char *name;
	unsigned quarters;
};
constexpr unsigned library_choice = ~0u, no_slab = ~0u - 1;
constexpr named all_subjects[] = {
	{"tenure", library_choice},
	{"tenure-one-depot", 0},
	{"tenure-shards-1/4", 1},
	{"tenure-shards-1/2", 2},
	{"tenure-shards-1", 4},
	{"tenure-shards-2", 8},
	{"tenure-shards-4", 16},
	{"spinlock", no_slab},
};

} /* namespace */

std::vector<std::string> subject_names() {
	std::vector<std::string> names;
	for (const named &n : all_subjects)
		names.push_back(n.name);
	return names;
}

std::unique_ptr<subject> make_subject(const std::string &name, const costs &c, unsigned cores) {
	const named *found = std::find_if(std::begin(all_subjects), std::end(all_subjects),
		[&](const named &n) { return name == n.name; });
	if (found == std::end(all_subjects))
		return nullptr;
	if (found->quarters == no_slab)
		return std::make_unique<spinlock>();
	if (found->quarters == library_choice)
		return make_shared_slab(c, cores, own_choice);
	unsigned shards = cores * found->quarters / 4;
	bool whole = shards * 4 == cores * found->quarters;
	return whole && shards <= most_shards() ? make_shared_slab(c, cores, shards) : nullptr;
}

} /* namespace model */
