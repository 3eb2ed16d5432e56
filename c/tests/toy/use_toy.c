/* A user of the toy, compiled by add_toy.py: a snapshot finds the toy, its figures add up, and the
 * watch reports that it grows. Then it prints the figures and lets tenure-top look, until its standard
 * input ends. */
#define _GNU_SOURCE
#include <tenure/tenure.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                             \
	((condition) ? (void)0 : (fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition), exit(1)))

static atomic_bool found;

static void report(tn_finding finding, const tn_listed *listed, const char *message, void *ctx) {
	const char *expected = ctx;
	REQUIRE(finding == TN_FOUND_GROWING && listed->kind == TN_KIND_TOY);
	REQUIRE(strncmp(message, expected, strlen(expected)) == 0);
	found = true;
}

static bool look(const tn_listed *listed, void *ctx) {
	if (listed->kind == TN_KIND_TOY)
		*(tn_listed *)ctx = *listed;
	return true;
}

static void check_figures(const tn_toy *toy) {
	tn_stats own;
	tn_listed seen = {.depth = 1};
	tn_toy_stats(toy, &own);
	tn_stats_snapshot(look, &seen);
	REQUIRE(strcmp(tn_kind_name(seen.kind), "toy") == 0 && seen.depth == 0);
	REQUIRE(memcmp(&seen.stats, &own, sizeof own) == 0);
	REQUIRE(own.live_bytes + own.cached_bytes <= own.committed_bytes);
	REQUIRE(own.live_bytes + own.cached_bytes + 4096 > own.committed_bytes);
}

int main(void) {
	const struct timespec moment = {0, 5000000};
	tn_toy *toy = tn_toy_create("tin soldiers");
	REQUIRE(toy != NULL && tn_toy_alloc(toy, 1000) != NULL);
	check_figures(toy);
	tn_toy_reset(toy);
	check_figures(toy);
	tn_watch_options options = {.interval_ms = 20,
		.growing_ms = 100,
		.least_bytes = 1,
		.ctx = (void *)"toy \"tin soldiers\": grew from "};
	REQUIRE(tn_watch(&options, report));
	for (int turns = 0; !found && turns < 4000; turns++) {
		tn_toy_alloc(toy, 100);
		nanosleep(&moment, NULL);
	}
	REQUIRE(found && tn_watch(NULL, NULL));
	tn_stats stats;
	tn_toy_stats(toy, &stats);
	printf("%zu %zu %zu\n", stats.live_bytes, stats.cached_bytes, stats.committed_bytes);
	fflush(stdout);
	REQUIRE(tn_live_start());
	char ignored[16];
	while (read(STDIN_FILENO, ignored, sizeof ignored) > 0)
		continue;
	tn_live_stop();
	tn_toy_destroy(toy);
	return 0;
}
