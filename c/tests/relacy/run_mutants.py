"""Mutants of the library's sources that the scenarios must find: `run_mutants.py ENGINE_OBJECT [--few]
[NAME...]`.

Each mutant is a copy of the sources with substitutions, each of which must match exactly once. It is
compiled into its program, which must fail; unchanged, the programs must pass. A mutant that is not
found is a failure of this test: then the scenario looks at too little.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
C = os.path.dirname(os.path.dirname(HERE))
COMPILE = [os.environ.get("CXX", "g++"), "-std=gnu++17", "-fpermissive", "-w", "-O0",
           '-DTN_ATOMICS="relacy_atomics.h"', "-I" + HERE]
SCHEDULES = 100000  # at most, of each scenario; most mutants are found in the first hundred
UNCHANGED = 2000
SECONDS = 300

# Found in little time; what `make test` runs.
FEW = ["lock_give_relaxed", "lock_wake_lost", "depot_spare_kept", "figures_not_odd",
       "listed_parent_once"]

# What several mutants change: the stores that begin and end a change of a thread's magazines.
BEGIN = ("\ttn_set(&l->count, (uint32_t)count, TN_RELAXED);\n"
         "\ttn_set(&l->changes, tn_get(&l->changes, TN_RELAXED) + 1, TN_RELEASE);\n")
END = ("static void cache_end_change(local *l) {\n"
       "\ttn_set(&l->changes, tn_get(&l->changes, TN_RELAXED) + ")

# And those that begin or end a node's life, and a change of its figures.
LIFE = "\ttn_set(&n->life, tn_get(&n->life, TN_RELAXED) + 1, "
VERSION = "\ttn_set(&n->version, tn_get(&n->version, TN_RELAXED) + 1, "

# (name, program, file, [(what stands there, what shall stand there)...])
MUTANTS = [
    ("lock_take_relaxed", "lock", "base/lock.h", [
        ("return tn_replace(&l->state, &seen, LOCK_HELD, TN_ACQUIRE);",
         "return tn_replace(&l->state, &seen, LOCK_HELD, TN_RELAXED);")]),
    ("lock_look_relaxed", "lock", "base/lock.h", [
        ("LOCK_HELD, TN_ACQUIRE))\n\t\t\treturn;", "LOCK_HELD, TN_RELAXED))\n\t\t\treturn;")]),
    ("lock_sleep_relaxed", "lock", "base/lock.h", [
        ("LOCK_AWAITED, TN_ACQUIRE)", "LOCK_AWAITED, TN_RELAXED)")]),
    ("lock_give_relaxed", "lock", "base/lock.h", [
        ("LOCK_FREE, TN_RELEASE)", "LOCK_FREE, TN_RELAXED)")]),
    ("lock_not_awaited", "lock", "base/lock.h", [
        ("LOCK_AWAITED, TN_ACQUIRE)", "LOCK_HELD, TN_ACQUIRE)"),
        ("tn_os_wait(&l->state, LOCK_AWAITED)", "tn_os_wait(&l->state, LOCK_HELD)")]),
    ("lock_no_second_look", "lock", "base/lock.h", [
        ("while (tn_swap(&l->state, LOCK_AWAITED", "if (tn_swap(&l->state, LOCK_AWAITED")]),
    ("lock_wake_lost", "lock", "base/lock.h", [
        ("if (tn_swap(&l->state, LOCK_FREE, TN_RELEASE) == LOCK_AWAITED)\n\t\ttn_os_wake(&l->state);",
         "tn_set(&l->state, LOCK_FREE, TN_RELEASE);")]),
    ("lock_wake_before_free", "lock", "base/lock.h", [
        ("if (tn_swap(&l->state, LOCK_FREE, TN_RELEASE) == LOCK_AWAITED)\n\t\ttn_os_wake(&l->state);",
         "if (tn_get(&l->state, TN_RELAXED) == LOCK_AWAITED)\n\t\ttn_os_wake(&l->state);\n"
         "\ttn_set(&l->state, LOCK_FREE, TN_RELEASE);")]),
    ("lock_look_then_set", "lock", "base/lock.h", [
        ("tn_replace(&l->state, &seen, LOCK_HELD, TN_ACQUIRE))\n\t\t\treturn;",
         "tn_swap(&l->state, LOCK_HELD, TN_ACQUIRE) + 1)\n\t\t\treturn;")]),

    ("depot_listed_unlocked", "exchange", "shared/depot.h", [
        ("\tdepot_push(&d->full, m);\n\tdepot_leave(d);\n\treturn true;",
         "\tdepot_leave(d);\n\tdepot_push(&d->full, m);\n\treturn true;")]),
    ("depot_counted_unlocked", "exchange", "shared/depot.h", [
        ("\tdepot_count_in(d, m);\n\tdepot_count(&d->exchanges);\n\tdepot_push(&d->full, m);\n"
         "\tdepot_leave(d);",
         "\tdepot_push(&d->full, m);\n\tdepot_leave(d);\n\tdepot_count_in(d, m);")]),
    ("depot_counted_too_late", "exchange", "shared/depot.h", [
        ("\t\tdepot_count_out(all, d, m);\n\t\tdepot_count(&d->exchanges);\n", ""),
        ("\tmagazine *m = depot_pop_full(all, d, spare);\n\tdepot_leave(d);\n\treturn m;\n}\n\n"
         "/* The same for a thread of this",
         "\tmagazine *m = depot_pop_full(all, d, spare);\n\tdepot_leave(d);\n\tif (m != NULL)\n"
         "\t\tdepot_count_out(all, d, m);\n\treturn m;\n}\n\n/* The same for a thread of this")]),
    ("depot_listed_twice", "exchange", "shared/depot.h", [
        ("\tdepot_push(&d->full, m);\n\tdepot_leave(d);\n\treturn true;",
         "\tdepot_push(&d->full, m);\n\tdepot_push(&d->empty, m);\n\tdepot_leave(d);\n"
         "\treturn true;")]),
    ("depot_spare_kept", "exchange", "shared/depot.h", [
        ("\t\tif (spare != NULL)\n\t\t\tdepot_push(&d->empty, spare);\n\t}",
         "\t}\n\tif (spare != NULL)\n\t\tdepot_push(&d->empty, spare);")]),
    ("depot_room_not_asked", "shards", "shared/depot.h", [
        ("all, d, m) || !depots_charge(all, m))\n\t\treturn false;", "all, d, m))\n\t\treturn false;\n"
         "\t(void)depots_charge(all, m);")]),
    ("depot_looked_unlocked", "exchange", "shared/depot.h", [
        ("\tdepot_enter(d);\n\tmagazine *m = depot_pop_full(all, d, spare);",
         "\tmagazine *m = depot_pop_full(all, d, spare);\n\tdepot_enter(d);")]),
    ("depot_surplus_not_counted", "exchange", "shared/depot.h", [
        ("\tif (m != NULL && full)\n\t\tdepot_count_out(all, d, m);\n", "")]),
    ("depot_empty_unlocked", "flush", "shared/depot.h", [
        ("\tdepot_enter(d);\n\tmagazine *m = depot_pop(&d->empty);\n"
         "\ttn_lock_give(&d->lock);", "\tmagazine *m = depot_pop(&d->empty);")]),
    ("depot_partial_stays", "flush", "shared/depot.h", [
        ("\t\tm = d->partial;\n\t\td->partial = NULL;\n\t\td->untouched",
         "\t\tm = d->partial;\n\t\td->untouched")]),
    ("depot_filled_stays_partial", "flush", "shared/depot.h", [
        ("\t\tdepot_push(&d->full, d->partial);\n\t\td->partial = NULL;\n",
         "\t\tdepot_push(&d->full, d->partial);\n")]),
    ("depot_gathered_unlocked", "flush", "shared/depot.h", [
        ("\tif (d->partial != NULL)\n\t\tdepot_move_slots(all, d->partial, m);\n",
         "\tmagazine *partial = d->partial;\n\ttn_lock_give(&d->lock);\n"
         "\tdepot_enter(d);\n\tif (partial != NULL)\n\t\tdepot_move_slots(all, partial, m);\n")]),

    ("shard_of_another", "shards", "shared/depot.h", [
        ("\t\tm = depot_take_own(all, depot_at(all, seat->own), spare);",
         "\t\tm = depots_take_foreign(all, seat, spare, true);")]),
    ("shard_keeps_nothing", "shards", "shared/depot.h", [
        ("\td->need = tn_max(d->need, d->run);\n", "")]),
    ("shard_need_counted_unlocked", "shards", "shared/depot.h", [
        ("\tdepot_enter(d);\n\td->run++;\n", "\td->run++;\n\tdepot_enter(d);\n")]),
    ("shard_keeps_for_one_window", "shards", "shared/depot.h", [
        ("\t\td->need_before = d->need;\n", "\t\td->need_before = 0;\n")]),
    ("shard_keeps_for_ever", "shards", "shared/depot.h", [
        ("\t\td->need = 0;\n", "")]),
    ("shard_to_spare_not_asked_again", "shards", "shared/depot.h", [
        ("\tbool may = all_of_it || d->full.count > tn_max(d->need, d->need_before);",
         "\tbool may = true;"),
        ("\tif (tn_get(all_of_it ? &d->slots : &d->to_spare, TN_RELAXED) == 0)",
         "\tif (tn_get(&d->slots, TN_RELAXED) == 0)")]),
    ("shard_shared_by_all", "shards", "shared/depot.h", [
        ("1 + tn_add(&all->seats, 1, TN_RELAXED) % (of_node - 1)", "1")]),
    ("shard_spare_elsewhere", "shards", "shared/depot.h", [
        ("\t\tif (spare != NULL)\n\t\t\tdepot_push(&d->empty, spare);\n\t}", "\t}\n"),
        ("\tif (m != NULL)\n\t\tdepot_count(&d->foreign);\n\tdepot_leave(d);\n",
         "\tif (m != NULL)\n\t\tdepot_count(&d->foreign);\n\tdepot_leave(d);\n"
         "\tif (m != NULL && spare != NULL) {\n"
         "\t\tdepot_enter(&all->common);\n"
         "\t\tdepot_push(&all->common.empty, spare);\n\t\tdepot_leave(&all->common);\n\t}\n")]),
    ("shard_others_not_asked", "shards", "shared/depot.h", [
        ("\tif (m == NULL)\n\t\tm = depots_take_foreign(all, seat, spare, all_of_it);\n", "")]),
    ("shard_common_not_asked", "shards", "shared/depot.h", [
        ("\t\tm = depot_take_full(all, depot_at(all, seat->node), spare);\n", "\t\t;\n")]),
    ("node_not_home", "shards", "shared/depot.h", [
        ("seat->own - seat->node + home", "seat->own")]),
    ("node_common_of_all", "shards", "shared/depot.h", [
        ("depot_at(all, depots_has_node(all, home) ? home : 0);", "&all->common;")]),
    ("node_not_asked", "shards", "shared/depot.h", [
        ("(all_of_it || depots_are_near(all, at, seat->node))", "true")]),
    ("node_seat_kept", "shards", "shared/depot.h", [
        ("(seat->own != 0 && depots_are_near(all, seat->own, seat->node))", "seat->own != 0")]),
    ("node_first_common_not_asked", "shards", "shared/depot.h", [
        ("\tif (m == NULL && all_of_it)\n\t\tm = depot_take_full(all, &all->common, spare);\n", "")]),
    ("shard_left_to_itself", "shards", "shared/depot.h", [
        ("\tm = depot_take_surplus(all, depot_at(all, seat->tended));\n\tif (m == NULL)\n",
         "\tif (true)\n")]),
    ("shard_windows_not_followed", "shards", "shared/depot.h", [
        ("\tdepot_enter(d);\n\tdepot_end_windows(all, d);\n", "\tdepot_enter(d);\n")]),
    ("shard_bound_looked_then_added", "shards", "shared/depot.h", [
        ("\twhile (!tn_replace(sum, &seen, seen + more, TN_RELAXED));\n",
         "\twhile (false);\n\ttn_add(sum, more, TN_RELAXED);\n")]),
    ("shard_bound_of_bytes_not_asked", "shards", "shared/depot.h", [
        ("\tif (depot_charge(&all->weight, m->weight, all->most_weight))\n\t\treturn true;\n",
         "\ttn_add(&all->weight, (size_t)m->weight, TN_RELAXED);\n\treturn true;\n")]),
    ("shard_refused_stays_charged", "shards", "shared/depot.h", [
        ("\ttn_add(&all->slots, 0 - (size_t)m->count, TN_RELAXED);\n\treturn false;",
         "\treturn false;")]),
    ("shard_taken_stays_charged", "exchange", "shared/depot.h", [
        ("\t\ttn_add(&all->slots, 0 - (size_t)m->count, TN_RELAXED);\n"
         "\t\ttn_add(&all->weight, 0 - (size_t)m->weight, TN_RELAXED);\n", "")]),
    ("shard_count_before_shards", "shards", "shared/depot.h", [
        ("\ttn_set(&all->shard_count, count, TN_RELEASE);\n", ""),
        ("static inline void tn_depots_make_shards(depots *all, size_t count) {\n",
         "static inline void tn_depots_make_shards(depots *all, size_t count) {\n"
         "\ttn_set(&all->shard_count, count, TN_RELAXED);\n\ttn_os_yield();\n")]),

    ("figures_not_odd", "figures", "shared/thread_cache.c", [
        (BEGIN, "\ttn_set(&l->count, (uint32_t)count, TN_RELAXED);\n"),
        (END + "1, TN_RELEASE);", END + "2, TN_RELEASE);")]),
    ("figures_begin_relaxed", "figures", "shared/thread_cache.c", [
        (BEGIN, BEGIN.replace("TN_RELEASE", "TN_RELAXED"))]),
    ("figures_end_relaxed", "figures", "shared/thread_cache.c", [
        (END + "1, TN_RELEASE);", END + "1, TN_RELAXED);")]),
    ("figures_count_not_noted", "figures", "shared/thread_cache.c", [
        ("\ttn_set(&l->count, (uint32_t)count, TN_RELAXED);\n", "")]),
    ("figures_previous_relaxed", "figures", "shared/thread_cache.c", [
        ("tn_set(&l->previous_count, (uint32_t)count, TN_RELEASE)",
         "tn_set(&l->previous_count, (uint32_t)count, TN_RELAXED)")]),
    ("figures_loaded_relaxed", "figures", "shared/thread_cache.c", [
        ("tn_set(&l->bottom, bottom, TN_RELEASE)", "tn_set(&l->bottom, bottom, TN_RELAXED)"),
        ("bottom + fill, TN_RELEASE)", "bottom + fill, TN_RELAXED)")]),
    ("figures_look_relaxed", "figures", "shared/thread_cache.c", [
        ("tn_get(&l->previous_count, TN_ACQUIRE)", "tn_get(&l->previous_count, TN_RELAXED)")]),
    ("figures_begin_look_relaxed", "figures", "shared/thread_cache.c", [
        ("uint32_t before = tn_get(&l->changes, TN_ACQUIRE)",
         "uint32_t before = tn_get(&l->changes, TN_RELAXED)")]),
    ("figures_no_second_look", "figures", "shared/thread_cache.c", [
        (" && tn_get(&l->changes, TN_RELAXED) == before)", ")")]),
    ("figures_odd_accepted", "figures", "shared/thread_cache.c", [
        ("\t\tif (before % 2 != 0)\n\t\t\tbreak;\n", "")]),
    ("figures_two_magazines", "figures", "shared/thread_cache.c", [
        ("if (same && tn_get(&l->changes", "if (tn_get(&l->changes")]),

    ("listed_figures_relaxed", "listed", "listing/node.h", [
        ("tn_set(&n->figures[i], figures[i], TN_RELEASE)",
         "tn_set(&n->figures[i], figures[i], TN_RELAXED)")]),
    ("listed_end_relaxed", "listed", "listing/node.h", [
        ("end_write(tn_node *n) {\n" + VERSION + "TN_RELEASE)",
         "end_write(tn_node *n) {\n" + VERSION + "TN_RELAXED)")]),
    ("listed_not_odd", "listed", "listing/node.h", [
        ("\ttn_node_begin_write(n);\n", ""),
        ("\ttn_node_end_write(n);\n", "\ttn_node_end_write(n);\n\ttn_node_end_write(n);\n")]),
    ("listed_figures_look_relaxed", "listed", "listing/node.h", [
        ("tn_get(&n->figures[i], TN_ACQUIRE)", "tn_get(&n->figures[i], TN_RELAXED)")]),
    ("listed_begin_look_relaxed", "listed", "listing/node.h", [
        ("size_t version = tn_get(&n->version, TN_ACQUIRE)",
         "size_t version = tn_get(&n->version, TN_RELAXED)")]),
    ("listed_no_second_look", "listed", "listing/node.h", [
        (" && tn_get(&n->version, TN_RELAXED) == version)", ")")]),
    ("listed_odd_accepted", "listed", "listing/node.h", [
        ("if (version % 2 == 0 && ", "if (")]),
    ("listed_unlisted_accepted", "listed", "listing/node.h", [
        ("if (life % 2 == 0 || ", "if (")]),
    ("listed_life_relaxed", "listed", "listing/node.h", [
        (LIFE + "TN_RELEASE);\n\ttn_set", LIFE + "TN_RELAXED);\n\ttn_set"),
        (LIFE + "TN_RELEASE);\n}", LIFE + "TN_RELAXED);\n}")]),
    ("listed_life_look_relaxed", "listed", "listing/node.h", [
        ("size_t life = tn_get(&n->life, TN_ACQUIRE)", "size_t life = tn_get(&n->life, TN_RELAXED)")]),
    ("listed_life_stays", "listed", "listing/node.h", [
        ("->newest, older, TN_RELEASE);\n" + LIFE + "TN_RELEASE);", "->newest, older, TN_RELEASE);"),
        ("\tTN_AT(n->newer) = NULL;\n", "\tTN_AT(n->newer) = NULL;\n"
         "\tif (tn_get(&n->life, TN_RELAXED) != 0)\n\t\ttn_set(&n->life, 0, TN_RELAXED);\n")]),
    ("listed_place_of_next", "listed", "listing/node.h", [
        (" && next.place < at.place)", ")")]),
    ("listed_place_of_newest", "listed", "listing/node.h", [
        ("if (at.place < place)\n", "if (true)\n")]),
    ("listed_parent_not_asked", "listed", "listing/node.h", [
        ("tn_get(&n->parent, TN_ACQUIRE) != parent || ", "")]),
    ("listed_parent_once", "listed", "listing/node.h", [
        ("return tn_node_is(parent, parent_life) ? at : none;", "return at;")]),
    ("listed_next_of_the_gone", "listed", "listing/node.h", [
        ("\tif (here && (older", "\tif ((older")]),

    ("retire_not_a_guest", "retire", "shared/thread_cache.c", [
        ("\tc->guests++;\n", ""),
        ("\tif (c->guests > 0)\n\t\tc->guests--;\n", "")]),
    ("retire_guests_not_awaited", "retire", "shared/thread_cache.c", [
        ("while (c->guests > 0) {", "while (false) {")]),
    ("retire_guest_unlocked", "retire", "shared/thread_cache.c", [
        ("static void cache_end_visit(cache *c) {\n\ttn_lock_take(&registry.lock);\n",
         "static void cache_end_visit(cache *c) {\n"),
        ("\t\tc->guests--;\n",
         "\t\tc->guests--;\n\ttn_lock_take(&registry.lock);\n")]),
    ("retire_stays_listed", "retire", "shared/thread_cache.c", [
        ("cache_visit_as_guest(l, cache_give_all_and_unlink);",
         "cache_visit_as_guest(l, cache_give_all);")]),
    ("retire_leaves_unlocked", "retire", "shared/thread_cache.c", [
        ("\ttn_lock_take(&c->depots.common.lock);\n\tTN_LIST_UNLINK(l, next_of_cache, link_of_cache);\n"
         "\ttn_lock_give(&c->depots.common.lock);",
         "\tTN_LIST_UNLINK(l, next_of_cache, link_of_cache);")]),
    ("retire_keeps_magazines", "retire", "shared/thread_cache.c", [
        ("\t\t\tcache_visit_as_guest(l, cache_give_all);\n", "\t\t\tcontinue;\n"),
        ("\tcache_give_all(c, l);\n\tcache_unlink_local(c, l);", "\tcache_unlink_local(c, l);")]),
    ("retire_not_left_to_owner", "retire", "shared/thread_cache.c", [
        ("\t\tcache_keep_magazine(c, l->previous);\n", "")]),
    ("retire_stays_alive", "retire", "shared/thread_cache.c", [
        ("\t\ttn_set(&l->cache, NULL, TN_RELAXED);\n\t\ttn_set(&l->hot.top",
         "\t\ttn_set(&l->hot.top")]),
    ("retire_dead_top_returns", "retire", "shared/thread_cache.c", [
        ("\tif (tn_get(&l->cache, TN_RELAXED) == NULL)\n\t\t"
         "tn_set(&l->hot.top, no_top, TN_RELAXED);\n", "")]),
    ("retire_top_stored", "retire", "shared/thread_cache.c", [
        ("\tif (l->handled)\n\t\t(void)tn_swap", "\tif (false)\n\t\t(void)tn_swap")]),
    ("spare_given_and_kept", "traffic", "shared/thread_cache.c", [
        ("\tif (full != NULL) {\n\t\tcache_set_previous(l, l->loaded, 0);",
         "\tif (full != NULL) {\n\t\tbool keep = exchanged && l->previous != NULL;\n"
         "\t\tcache_set_previous(l, keep ? TN_AT(l->previous) : TN_AT(l->loaded), 0);")]),
    ("given_and_returned", "traffic", "shared/thread_cache.c", [
        ("\t\tif (!tn_depots_give_some(&c->depots, cache_home_of(c, l, m), m, false))\n",
         "\t\ttn_depots_give_some(&c->depots, cache_home_of(c, l, m), m, false);\n")]),
    ("give_unlocked", "traffic", "shared/shared_slab.c", [
        ("\ttn_cache_lock_owner(&s->lock);\n\ttn_stock_give(",
         "\ttn_cache_lock_owner(&s->lock);\n\ttn_lock_give(&s->lock);\n\ttn_stock_give("),
        ("s->retain_chunks);\n\tshared_leave(s);", "s->retain_chunks);")]),
    ("take_unlocked", "traffic", "shared/shared_slab.c", [
        ("\tsize_t found = tn_stock_take(",
         "\ttn_lock_give(&s->lock);\n\tsize_t found = tn_stock_take("),
        ("\ts->refills++;\n", "\ttn_lock_take(&s->lock);\n\ts->refills++;\n")]),

    ("state_looked_then_set", "state", "shared/shared_slab.c", [
        ("\tif (TN_UNLIKELY(!tn_replace(state, &seen, (uint8_t)to, TN_RELAXED)))\n",
         "\tseen = tn_get(state, TN_RELAXED);\n\tif (seen == from)\n"
         "\t\ttn_set(state, (uint8_t)to, TN_RELAXED);\n\telse\n")]),
    ("state_set", "state", "shared/shared_slab.c", [
        ("!tn_replace(state, &seen, (uint8_t)to, TN_RELAXED)",
         "(tn_set(state, (uint8_t)to, TN_RELAXED), false)")]),
    ("window_ended_twice", "window", "shared/pool.c", [
        ("return tn_replace(&p->window_began, &began, next, TN_RELEASE) ? 0 : SIZE_MAX;",
         "return tn_set(&p->window_began, next, TN_RELEASE), 0;")]),
    ("window_clock_first", "window", "shared/pool.c", [
        ("\tuint64_t began = tn_get(&p->window_began, TN_ACQUIRE);\n"
         "\tuint64_t now = tn_os_coarse_milliseconds();",
         "\tuint64_t now = tn_os_coarse_milliseconds();\n"
         "\tuint64_t began = tn_get(&p->window_began, TN_ACQUIRE);")]),
    ("window_of_silence_lost", "window", "shared/pool.c", [
        ("now - tn_min(now, 2 * c->window_ms));", "now);")]),
    ("request_key_not_followed", "request", "shared/thread_cache.c", [
        ("\tl->key = tn_get(&c->key, TN_RELAXED);\n\ttn_near *near", "\ttn_near *near")]),
    ("request_asked_cleared_late", "request", "shared/thread_cache.c", [
        ("\t(void)tn_swap(&l->hot.asked, 0, TN_ACQ_REL);\n"
         "\tl->key = tn_get(&c->key, TN_RELAXED);\n",
         "\tl->key = tn_get(&c->key, TN_RELAXED);\n"
         "\t(void)tn_swap(&l->hot.asked, 0, TN_ACQ_REL);\n")]),
    ("request_handle_not_asked", "request", "shared/thread_cache.c", [
        ("\t\ttn_set(&l->hot.asked, 1, TN_RELEASE);\n", "\t\t;\n")]),
]


class Failure(Exception):
    pass


def build(sources, program, engine, folder):
    binary = os.path.join(folder, program)
    mode = "-DTN_MODE=1" if program == "state" else "-DTN_MODE=0"
    done = subprocess.run(COMPILE + [mode, "-I" + os.path.join(sources, "src"),
                                     "-I" + os.path.join(sources, "include"),
                                     os.path.join(HERE, program + ".cpp"), engine, "-o", binary],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure("does not compile:\n" + done.stderr[-2000:])
    return binary


def run(binary, schedules):
    """None when the program passes, else what it found."""
    try:
        done = subprocess.run([binary, str(schedules)], capture_output=True, text=True, timeout=SECONDS,
                              errors="replace")
    except subprocess.TimeoutExpired:
        raise Failure(f"is not found in {SECONDS} s")
    if done.returncode == 0:
        return None
    lines = done.stdout.splitlines()
    failed = [i for i, line in enumerate(lines) if ": schedule " in line]
    if not failed and done.returncode in (-signal.SIGSEGV, -signal.SIGBUS):
        return "a pointer that leads nowhere"
    if not failed:
        raise Failure(f"ends with {done.returncode}:\n" + done.stdout[-1000:] + done.stderr[-1000:])
    return " ".join(lines[failed[0]:failed[0] + 2])


def mutated(sources, file, substitutions):
    with open(os.path.join(sources, "src", file)) as source:
        text = source.read()
    for old, new in substitutions:
        if text.count(old) != 1:
            raise Failure(f"{text.count(old)} places in {file} for:\n{old}")
        text = text.replace(old, new)
    return text


def mutate(sources, file, substitutions):
    text = mutated(sources, file, substitutions)
    with open(os.path.join(sources, "src", file), "w") as source:
        source.write(text)


def check_unchanged(programs, engine):
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            found = run(build(C, program, engine, folder), UNCHANGED)
            if found:
                raise Failure(f"{program} fails unchanged: {found}")
            print(f"unchanged: {program} passes", flush=True)


def check_mutant(mutant, engine):
    name, program, file, substitutions = mutant
    with tempfile.TemporaryDirectory() as folder:
        for part in ("src", "include"):
            shutil.copytree(os.path.join(C, part), os.path.join(folder, part))
        mutate(folder, file, substitutions)
        found = run(build(folder, program, engine, folder), SCHEDULES)
    if found is None:
        raise Failure(f"is not found in {SCHEDULES} schedules")
    print(f"{name}: {found}", flush=True)


def main():
    engine, *names = sys.argv[1:]
    if names == ["--few"]:
        names = FEW
    chosen = [mutant for mutant in MUTANTS if not names or mutant[0] in names]
    failures = []
    for name, _, file, substitutions in MUTANTS:
        try:
            mutated(C, file, substitutions)
        except Failure as failure:
            failures.append(f"{name}: {failure}")
    try:
        check_unchanged(sorted({mutant[1] for mutant in chosen}), engine)
    except Failure as failure:
        failures.append(str(failure))
    for mutant in chosen:
        try:
            check_mutant(mutant, engine)
        except Failure as failure:
            failures.append(f"{mutant[0]} {failure}")
            print("FAILED:", failures[-1], flush=True)
    print(f"{len(chosen)} mutants, {len(failures)} failures")
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


main()
