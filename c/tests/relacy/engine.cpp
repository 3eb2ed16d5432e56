/* Relacy behind engine.h. */
#include "engine.h"

#include <relacy/pch.hpp>

/* An atomic with an initial value, and a futex without a memory order, exist in Relacy but not in
 * its interface. */
#define private public
#include <relacy/relacy.hpp>
#undef private
#undef new
#undef malloc
#undef free

namespace {

typedef rl::generic_atomic<uint64_t, true> atomic_word;

enum kind { ATOMIC, GUARDED, FREED };

struct watched {
	const char *address;
	kind what;
	rl::var_data *guarded;
	alignas(atomic_word) char atomic[sizeof(atomic_word)];
};

/* Finds the variable with this address; a variable of another schedule is not found. */
struct hashed {
	const void *address;
	uint64_t schedule;
	watched *variable;
};

struct range {
	const char *from, *to;
};

enum { TABLE = 1 << 13, VARIABLES = TABLE / 2, MEMORY = 8 << 20, RANGES = 1024 };
enum { GARBAGE = 0xa5, DEPTH = 20000 };

hashed table[TABLE];
watched variables[VARIABLES];
size_t variable_count;
uint64_t schedule_number;
alignas(1 << 16) char memory[MEMORY];
size_t memory_used, taken_bytes;
range freed[RANGES];
size_t freed_count;
engine::scenario *current;
rl::test_params params;

rl::debug_info info_of(const engine::place &where) {
	return rl::debug_info(where.function, where.file, where.line);
}

atomic_word *word_of(watched *w) {
	return reinterpret_cast<atomic_word *>(w->atomic);
}

rl::atomic_data_impl<engine::THREADS> &data_of(atomic_word *word) {
	return *static_cast<rl::atomic_data_impl<engine::THREADS> *>(word->impl_);
}

uint64_t read_plain(const void *at, size_t size) {
	uint64_t value = 0;
	memcpy(&value, at, size);
	return value;
}

hashed *look_up(const void *at) {
	size_t i = ((uintptr_t)at * 0x9e3779b97f4a7c15u) >> 40;
	for (;; i++) {
		hashed *h = &table[i % TABLE];
		if (h->schedule != schedule_number || h->address == at)
			return h;
	}
}

void destroy(watched *w) {
	if (w->what == ATOMIC)
		word_of(w)->~atomic_word();
	if (w->what == GUARDED)
		rl::ctx().var_dtor(w->guarded);
	w->what = FREED;
}

void create_atomic(watched *w, uint64_t value) {
	atomic_word *word = ::new (static_cast<void *>(w->atomic)) atomic_word();
	word->value_ = word->history_[word->last_index_] = value;
	for (rl::timestamp_t &seen : data_of(word).history_[word->last_index_].first_seen_order_)
		seen = (rl::timestamp_t)-1;
}

bool is_freed(const void *at) {
	for (size_t i = 0; i < freed_count; i++)
		if (at >= freed[i].from && at < freed[i].to)
			return true;
	return false;
}

watched *add_variable(const void *at, size_t size, kind what) {
	if (variable_count == VARIABLES)
		engine::fail("the engine has too few variables", HERE);
	watched *w = &variables[variable_count++];
	*look_up(at) = hashed{at, schedule_number, w};
	w->address = static_cast<const char *>(at);
	w->what = what;
	if (what == ATOMIC)
		create_atomic(w, read_plain(at, size));
	else
		w->guarded = rl::ctx().var_ctor();
	return w;
}

/* The variable with this address. A value that is not the one stored last was put there by initialising
 * the memory: then it is another variable. */
watched *find(const void *at, size_t size, kind what, const engine::place &where) {
	hashed *h = look_up(at);
	bool known = h->schedule == schedule_number;
	if (known ? h->variable->what == FREED : is_freed(at))
		rl::ctx().fail_test("", rl::test_result_access_to_freed_memory, info_of(where));
	if (!known)
		return add_variable(at, size, what);
	watched *w = h->variable;
	if (what == ATOMIC && word_of(w)->value_ != read_plain(at, size)) {
		destroy(w);
		create_atomic(w, read_plain(at, size));
		w->what = ATOMIC;
	}
	return w;
}

/* One operation on an atomic: other threads may run before it, none during it. */
template <typename action>
uint64_t operate(const void *at, size_t size, const engine::place &where, action act) {
	rl::context &c = rl::ctx();
	c.sched();
	c.disable_preemption();
	atomic_word *word = word_of(find(at, size, ATOMIC, where));
	uint64_t result = act(*word);
	memcpy(const_cast<void *>(at), &word->value_, size);
	c.enable_preemption();
	return result;
}

struct guarded_event {
	const void *address;
	uint64_t value;
	const char *what;
	void output(std::ostream &out) const {
		out << "<" << std::hex << address << std::dec << "> " << what << ", value=" << value;
	}
};

void begin_schedule() {
	schedule_number++;
	variable_count = 0;
	memory_used = taken_bytes = 0;
	freed_count = 0;
}

void end_schedule() {
	for (size_t i = 0; i < variable_count; i++)
		destroy(&variables[i]);
	if (taken_bytes != 0)
		engine::fail("memory was not given back", HERE);
}

struct suite : rl::test_suite<suite, engine::THREADS> {
	suite() {
		begin_schedule();
	}
	~suite() {
		end_schedule();
	}
	void before() {
		current->before();
	}
	void thread(unsigned number) {
		if (number < current->threads)
			current->thread(number);
	}
	void after() {
		current->after();
	}
};

template <typename scheduler> rl::test_result_e run_with(std::ostream &state, bool again) {
	typename scheduler::shared_context_t shared;
	rl::istringstream initial(params.initial_state);
	return rl::context_impl<suite, scheduler>(params, shared).simulate(state, initial, again);
}

rl::test_result_e run(std::ostream &state, bool again) {
	if (params.search_type == rl::random_scheduler_type)
		return run_with<rl::random_scheduler<engine::THREADS>>(state, again);
	return run_with<rl::context_bound_scheduler<engine::THREADS>>(state, again);
}

/* A schedule that fails is run once more to record it. */
bool passes(engine::scenario *s) {
	current = s;
	rl::ostringstream state, rest;
	params.initial_state = "";
	params.collect_history = false;
	unsigned began = get_tick_count();
	rl::test_result_e result = run(state, false);
	unsigned took = get_tick_count() - began;
	if (result != rl::test_result_success) {
		std::cout << s->name << ": schedule " << params.stop_iteration << std::endl;
		params.initial_state = state.str();
		params.collect_history = true;
		run(rest, true);
		return false;
	}
	std::cout << s->name << ": " << params.stop_iteration << " schedules, " << took << " ms\n"
			  << std::flush;
	return true;
}

} /* namespace */

namespace engine {

uint64_t load(const void *at, size_t size, order how, const place &where) {
	return operate(
		at, size, where, [&](atomic_word &w) { return w.load((rl::memory_order)how, info_of(where)); });
}

void store(void *at, size_t size, uint64_t value, order how, const place &where) {
	operate(at, size, where, [&](atomic_word &w) {
		w.store(value, (rl::memory_order)how, info_of(where));
		return 0;
	});
}

uint64_t exchange(void *at, size_t size, uint64_t value, order how, const place &where) {
	return operate(at, size, where,
		[&](atomic_word &w) { return w.exchange(value, (rl::memory_order)how, info_of(where)); });
}

uint64_t add(void *at, size_t size, uint64_t value, order how, const place &where) {
	return operate(at, size, where,
		[&](atomic_word &w) { return w.fetch_add(value, (rl::memory_order)how, info_of(where)); });
}

bool replace(void *at, size_t size, uint64_t *seen, uint64_t value, order how, const place &where) {
	return operate(at, size, where, [&](atomic_word &w) {
		return w.compare_exchange(
			rl::bool_t<false>(), *seen, value, (rl::memory_order)how, rl::mo_relaxed, info_of(where));
	}) != 0;
}

static void note(const void *at, uint64_t value, bool is_store, const place &where) {
	rl::context &c = rl::ctx();
	rl::debug_info info = info_of(where);
	rl::var_data *data = find(at, 0, GUARDED, where)->guarded;
	RL_HIST(guarded_event){at, value, is_store ? "store" : "load"} RL_HIST_END();
	if (!(is_store ? data->store(*c.threadx_) : data->load(*c.threadx_)))
		c.fail_test("", rl::test_result_data_race, info);
}

void note_load(const void *at, uint64_t value, const place &where) {
	note(at, value, false, where);
}

void note_store(const void *at, uint64_t value, const place &where) {
	note(at, value, true, where);
}

void wait(const void *at, uint32_t value, const place &where) {
	rl::ctx().sched();
	atomic_word *word = word_of(find(at, sizeof value, ATOMIC, where));
	rl::context &c = rl::ctx();
	if (word->value_ == value)
		data_of(word).futex_ws_.park_current(c, false, c.is_random_sched(), false, info_of(where));
}

void wake(const void *at, const place &where) {
	rl::ctx().sched();
	/* The woken thread may have given the memory back already. */
	hashed *h = look_up(at);
	if (h->schedule == schedule_number && h->variable->what == ATOMIC)
		data_of(word_of(h->variable)).futex_ws_.unpark_one(rl::ctx(), info_of(where));
}

void yield(const place &where) {
	rl::ctx().yield(1, info_of(where));
}

void *take(size_t size, size_t align, bool kept) {
	memory_used = (memory_used + align - 1) & ~(align - 1);
	if (size > MEMORY - memory_used)
		fail("the engine has too little memory", HERE);
	char *p = memory + memory_used;
	memory_used += size;
	taken_bytes += kept ? 0 : size;
	memset(p, GARBAGE, size);
	return p;
}

void forget(const void *p, size_t size) {
	const char *from = static_cast<const char *>(p);
	for (size_t i = 0; i < variable_count; i++)
		if (variables[i].address >= from && variables[i].address < from + size)
			destroy(&variables[i]);
	if (freed_count == RANGES)
		fail("the engine has too few ranges", HERE);
	freed[freed_count++] = range{from, from + size};
}

void give(void *p, size_t size) {
	if (is_freed(p))
		fail("memory is given back twice", HERE);
	forget(p, size);
	memset(p, GARBAGE, size);
	taken_bytes -= size;
}

void fail(const char *message, const place &where) {
	rl::ctx().fail_test(message, rl::test_result_user_assert_failed, info_of(where));
}

unsigned thread() {
	return rl::is_ctx() ? (unsigned)rl::ctx().threadx_->index_ : 0;
}

unsigned choose(unsigned limit) {
	return rl::ctx().rand(limit, rl::sched_type_user);
}

int explore(int argc, char **argv, scenario *const *scenarios, size_t count) {
	bool bounded = argc == 3 && strcmp(argv[1], "bound") == 0;
	std::ostream nowhere(nullptr);
	params.progress_stream = &nowhere;
	params.execution_depth_limit = DEPTH;
	params.iteration_count = argc == 2 ? strtoull(argv[1], nullptr, 10) : 50000;
	if (bounded) {
		params.search_type = rl::fair_context_bound_scheduler_type;
		params.context_bound = (unsigned)strtoul(argv[2], nullptr, 10);
	}
	for (size_t i = 0; i < count; i++)
		if (!passes(scenarios[i]))
			return 1;
	return 0;
}

} /* namespace engine */
