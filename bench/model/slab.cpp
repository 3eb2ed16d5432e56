/* bench/model/slab.cpp: the library's shared slab on the simulated machine. The sources are those that
 * the tests under Relacy compile, in the same way; machine.cpp stands for Relacy. */
#include "library.h"

#include "model/subjects.h"

namespace model {
namespace {

/* The extra cost of a slot whose magazine is exchanged: the library looks the slot up when it gives a
 * magazine to a depot, and finds its bit where it takes slots from chunks or gives them back. */
double exchanged_ns;
const cache_owner *real_owner;

size_t weigh(const cache *c, void *const *slots, size_t count) {
	spend(exchanged_ns * count);
	return real_owner->weight_of(c, slots, count);
}

size_t take_from_chunks(cache *c, void **slots, size_t count) {
	size_t found = real_owner->take_slots(c, slots, count);
	spend(exchanged_ns * found);
	return found;
}

void give_to_chunks(cache *c, void **slots, size_t count) {
	spend(exchanged_ns * count);
	real_owner->give_slots(c, slots, count);
}

class shared_slab_subject : public subject {
public:
	shared_slab_subject(const costs &c, unsigned cores, unsigned shards) : pair_(c.pair) {
		library_begin();
		processors = cores;
		slab_ = tn_shared_slab_create(object_bytes, 0, NULL);
		if (slab_ == NULL)
			engine::fail("the slab has no memory", HERE);
		cache *all = &((shared_slab *)slab_)->cache;
		exchanged_ns = c.exchanged;
		real_owner = all->owner;
		owner_ = *real_owner;
		owner_.weight_of = weigh;
		owner_.take_slots = take_from_chunks;
		owner_.give_slots = give_to_chunks;
		all->owner = &owner_;
		if (shards != own_choice)
			make_shards(all, shards);
		keep_private(tn_near_slab_of, sizeof tn_near_slab_of);
	}

	/* The words of magazines are not marked as shared, because only one thread at a time has them. But
	 * their lines go with the magazine from core to core. */
	void *alloc() override {
		spend(pair_ / 2);
		if (near())
			touch(tn_near_slab.top, false);
		return tn_shared_slab_alloc(slab_);
	}
	void free(void *p) override {
		spend(pair_ / 2);
		if (near())
			touch(tn_near_slab.top + 1, true);
		tn_shared_slab_free(slab_, p);
	}
	void renew_thread() override {
		library_renew_thread();
	}
	exchange_counts counts() override {
		tn_stats stats;
		tn_shared_slab_stats(slab_, &stats);
		return {stats.exchanges, stats.foreign, stats.waits};
	}

private:
	/* As the library does it itself when a second thread comes. */
	static void make_shards(cache *c, size_t count) {
		c->sharded = 1;
		for (size_t i = 0; i * DEPOTS_IN_PAGE < count; i++)
			c->depots.pages[i] = (char *)c->owner->take_magazine(c);
		tn_depots_make_shards(&c->depots, count);
	}
	bool near() const {
		return tn_near_slab.local != NULL;
	}

	double pair_;
	cache_owner owner_;
	tn_shared_slab *slab_;
};

} /* namespace */

unsigned most_shards() {
	return SHARDS_MOST;
}

std::unique_ptr<subject> make_shared_slab(const costs &c, unsigned cores, unsigned shards) {
	return std::make_unique<shared_slab_subject>(c, cores, shards);
}

} /* namespace model */
