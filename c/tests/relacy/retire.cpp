/* Threads end while others destroy, flush, trim and look: c/src/shared/thread_cache.c, the shared
 * slab unchanged. Afterwards the slots of an ended thread are in the depot, or have gone with their
 * slab; no thread touches a destroyed slab or the variables of an ended thread; all memory goes
 * back. */
#include "library_use.h"

/* Two threads are done with the slab and end while the third destroys it. */
struct end_against_destroy : slab_scenario {
	flag done[2];

	end_against_destroy() : slab_scenario("ends against destroy", 3) {
	}

	void before() {
		slab_scenario::before();
		done[0].raised = done[1].raised = 0;
	}

	void thread(unsigned number) {
		if (number == 2) {
			done[0].await();
			done[1].await();
			tn_shared_slab_destroy(slab);
			return;
		}
		use(slab, 1 + 2 * number);
		done[number].raise();
		library_end_thread();
	}

	void after() {
	}
};

/* A thread changes to another slab, and ends, while the slab that it used last is destroyed. */
struct go_over : slab_scenario {
	tn_shared_slab *other;
	local *handle;
	flag done;

	go_over() : slab_scenario("goes over while destroyed", 2) {
	}

	void before() {
		slab_scenario::before();
		other = create(2, TN_NONE, 0);
		done.raised = 0;
	}

	void thread(unsigned number) {
		if (number == 1) {
			done.await();
			tn_shared_slab_destroy(slab);
			return;
		}
		use(slab, 1);
		handle = (local *)tn_shared_slab_local(slab);
		done.raise();
		use(other, 1);
		library_end_thread();
	}

	/* A call with the dead handle must find nothing there, so that it comes to the panic. */
	void after() {
		REQUIRE(tn_get(&handle->cache, TN_RELAXED) == NULL);
		REQUIRE(TN_LOAD(&handle->hot.top) == no_top);
		finish(other);
	}
};

/* One thread ends, one takes the slots it leaves, flushes and ends, one asks for figures and trims. */
struct end_against_use : slab_scenario {
	end_against_use() : slab_scenario("ends against use", 3) {
	}

	void thread(unsigned number) {
		if (number == 0) {
			use(slab, 3);
			library_exit_thread();
			use(slab, 1);
		} else if (number == 1) {
			void *p = must_alloc(slab);
			tn_shared_slab_flush(slab);
			free(slab, p);
		} else {
			REQUIRE(tn_shared_slab_in_use(slab) <= 4);
			tn_shared_slab_trim(slab);
		}
		library_end_thread();
	}
};

/* Threads follow each other, so that the local of an ended thread is reused for the next. */
struct come_and_go : slab_scenario {
	come_and_go() : slab_scenario("come and go", 2) {
	}

	void thread(unsigned) {
		for (int i = 0; i < 3; i++) {
			use(slab, 1);
			REQUIRE(tn_shared_slab_in_use(slab) <= 2);
			library_renew_thread();
		}
		library_end_thread();
	}
};

int main(int argc, char **argv) {
	end_against_destroy destroyed;
	go_over over;
	end_against_use used;
	come_and_go renewed;
	engine::scenario *all[] = {&destroyed, &over, &used, &renewed};
	return engine::explore(argc, argv, all, sizeof all / sizeof *all);
}
