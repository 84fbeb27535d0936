/* SPDX-License-Identifier: MIT
 *
 * What holds for every policy whatever happens to the paths: it never chooses one that is down,
 * full or of a worse rank than need be, and while one can take the request it chooses one.  And the
 * slice map against a simple model of it.
 *
 * `test_policy_seeds SEED` runs one seed; a failing seed prints the command that repeats it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "initiator/mpio/device.h"
#include "initiator/mpio/policy.h"

enum { PATHS_MAX = 9, SEEDS = 60, STEPS = 1500, MAP_BLOCKS = 4096 };

static uint64_t only_seed;

struct world {
	struct rng rng;
	const struct mpio_policy *policy;
	void *state;
	unsigned count;
	struct mpio_load loads[PATHS_MAX];
	struct mpio_path_view views[PATHS_MAX];
	uint64_t now_ns;
};

static bool chance(struct world *w, unsigned percent)
{
	return rng_below(&w->rng, 100) < percent;
}

static void change_something(struct world *w)
{
	static const uint8_t ranks[] = {MPIO_RANK_OPTIMIZED,
					MPIO_RANK_DEGRADED,
					MPIO_RANK_LBA_DEPENDENT,
					MPIO_RANK_NON_OPTIMIZED,
					MPIO_RANK_NON_OPTIMIZED | MPIO_RANK_DEGRADED,
					MPIO_RANK_NOT_PRIMARY,
					MPIO_RANK_NOT_PRIMARY | MPIO_RANK_NON_OPTIMIZED};
	unsigned at = (unsigned)rng_below(&w->rng, w->count);
	struct mpio_path_view *view = &w->views[at];

	if (chance(w, 20))
		view->able = chance(w, 60);
	if (chance(w, 20))
		view->full = chance(w, 30);
	if (chance(w, 10))
		view->rank = ranks[rng_below(&w->rng, ARRAY_SIZE(ranks))];
	if (chance(w, 50)) {
		view->in_flight = (unsigned)rng_below(&w->rng, 64);
		view->in_flight_bytes = view->in_flight * (1 + rng_below(&w->rng, MIB));
		w->loads[at].in_flight = view->in_flight + (unsigned)rng_below(&w->rng, 64);
		w->loads[at].in_flight_bytes = view->in_flight_bytes + rng_below(&w->rng, MIB);
	}
	if (w->policy->answered && chance(w, 40))
		w->policy->answered(w->state, w->views, w->count, at,
				    w->now_ns - rng_below(&w->rng, w->now_ns), w->now_ns);
	w->now_ns += rng_below(&w->rng, 10 * NS_PER_MS);
}

static void check(const struct world *w, int chosen)
{
	bool waits_for_full =
	    w->policy == &mpio_policy_failover_only || w->policy == &mpio_policy_weighted_paths;
	bool free = false, full = false;
	uint8_t best = UINT8_MAX;

	for (unsigned i = 0; i < w->count; i++) {
		const struct mpio_path_view *view = &w->views[i];

		free |= view->usable && !view->full;
		full |= view->usable && view->full;
		if (view->able)
			best = MIN_OF(best, view->rank);
	}
	if (chosen < 0) {
		assert_true(!free || (waits_for_full && full));
		return;
	}
	assert_in_range(chosen, 0, w->count - 1);
	assert_true(w->views[chosen].able && w->views[chosen].usable && !w->views[chosen].full);
	assert_int_equal(w->views[chosen].rank, best);
}

/* Any views: what is chosen can take it. */
static void run_policy(struct world *w, const struct slice_map *map)
{
	static const struct mpio_config config = {.rr_ios = 3};

	w->policy->init(w->state, &config, map);
	for (unsigned i = 0; i < w->count; i++) {
		w->views[i] = (struct mpio_path_view){
		    .able = true,
		    .load = &w->loads[i],
		    .member = (uint16_t)rng_below(&w->rng, 4),
		    .weight = (uint32_t)rng_below(&w->rng, 4),
		    .throughput = (uint16_t)rng_below(&w->rng, 5),
		};
	}
	for (unsigned step = 0; step < STEPS; step++) {
		struct mpio_ask ask = {rng_below(&w->rng, MAP_BLOCKS + 100) * 512,
				       rng_below(&w->rng, MIB), w->now_ns};

		change_something(w);
		mpio_rank_views(w->views, w->count, w->policy->all_ranks);
		check(w, w->policy->select(w->state, w->views, w->count, &ask));
	}
}

/* An answer to REPORT REFERRALS about random segments; owners[block] says what it means. */
static struct slice_map *random_map(struct rng *rng, uint16_t *owners)
{
	enum { ROOM = 400 };
	uint8_t data[ROOM];
	struct slice_map *map = NULL;
	uint64_t at = 0, next = 0;

	assert_int_equal(slice_map_new(&map), 0);
	slice_map_begin(map);
	while (at < MAP_BLOCKS) {
		size_t used = 4;
		uint64_t asked = at;

		while (used + 24 <= ROOM && at < MAP_BLOCKS) {
			uint64_t run = 1 + rng_below(rng, 200);
			uint16_t group = (uint16_t)rng_below(rng, 4);

			memset(data + used, 0, 24);
			data[used + 3] = group != 0; /* 0: nobody's */
			put_be64(data + used + 4, at);
			put_be64(data + used + 12, at + run - 1);
			put_be16(data + used + 22, group);
			used += group ? 24 : 20;
			for (; run && at < MAP_BLOCKS; run--)
				owners[at++] = group;
		}
		put_be32(data, (uint32_t)used - 4);
		/* Sometimes cut off: what is whole counts. */
		if (rng_below(rng, 3) == 0 && used > 4 + 24 + 30)
			used -= rng_below(rng, 30);
		assert_int_equal(slice_map_add(map, asked, data, used, &next), 0);
		at = MIN_OF(next, (uint64_t)MAP_BLOCKS);
	}
	slice_map_commit(map, 512);
	return map;
}

static void check_map(const struct slice_map *map, const uint16_t *owners)
{
	for (uint64_t block = 0; block < MAP_BLOCKS; block++) {
		const struct slice_owners *found = slice_map_find(map, block * 512 + 511);

		if (!owners[block])
			assert_null(found);
		else
			assert_true(found && found->count == 1 &&
				    found->groups[0] == owners[block]);
	}
}

static void run_seed(uint64_t seed)
{
	struct world w = {.now_ns = NS_PER_S};
	uint16_t owners[MAP_BLOCKS];
	struct slice_map *map;

	rng_init(&w.rng, seed, 5);
	map = random_map(&w.rng, owners);
	check_map(map, owners);
	for (int p = 0; mpio_policy_at(p); p++) {
		w.policy = mpio_policy_at(p);
		w.count = 1 + (unsigned)rng_below(&w.rng, PATHS_MAX);
		w.state = calloc(1, w.policy->state_bytes);
		assert_non_null(w.state);
		run_policy(&w, map);
		free(w.state);
	}
	slice_map_free(map);
}

static uint64_t running; /* 0: no seed is, so none has failed */

static void every_seed(void **unused)
{
	uint64_t last = only_seed ? only_seed : SEEDS;

	for (running = only_seed ? only_seed : 1; running <= last; running++)
		run_seed(running);
	running = 0;
}

static int tell_failed_seed(void **unused)
{
	if (running)
		print_error("to repeat: test_policy_seeds %llu\n", (unsigned long long)running);
	return 0;
}

/* ---- the slice map by itself ---- */

static void nonsense_is_refused(void **unused)
{
	uint8_t data[64] = {0};
	struct slice_map *map = NULL;
	struct rng rng;
	uint64_t next = 77;

	assert_int_equal(slice_map_new(&map), 0);
	slice_map_begin(map);
	assert_int_equal(slice_map_add(map, 0, data, 3, &next), -EPROTO);
	assert_int_equal(slice_map_add(map, 0, data, 4, &next), -EPROTO); /* no segment */
	put_be32(data, 20);
	put_be64(data + 8, 5);
	put_be64(data + 16, 9);
	assert_int_equal(slice_map_add(map, 4, data, 24, &next), -EPROTO); /* a hole */
	assert_int_equal(slice_map_add(map, 10, data, 24, &next),
			 -EPROTO); /* before what is asked */
	assert_int_equal(next, 77);
	assert_int_equal(slice_map_add(map, 7, data, 24, &next), 0); /* from within a segment */
	assert_int_equal(next, 10);
	data[7] = 1; /* one group, which is not there */
	assert_int_equal(slice_map_add(map, 7, data, 24, &next), -EPROTO);
	put_be64(data + 16, UINT64_MAX);
	data[7] = 0;
	assert_int_equal(slice_map_add(map, 7, data, 24, &next), -EPROTO);
	rng_init(&rng, 1, 1);
	for (unsigned i = 0; i < 20000; i++) {
		for (size_t at = 0; at < sizeof data; at++)
			data[at] = (uint8_t)(rng_below(&rng, 4) ? 0 : rng_below(&rng, 256));
		(void)slice_map_add(map, 0, data, rng_below(&rng, sizeof data + 1), &next);
	}
	slice_map_free(map);
}

static void the_map_in_use_stays_while_another_is_made(void **unused)
{
	uint8_t data[28] = {0};
	struct slice_map *map = NULL;
	uint64_t next;

	assert_int_equal(slice_map_new(&map), 0);
	assert_null(slice_map_find(NULL, 0));
	assert_null(slice_map_find(map, 0));
	for (uint16_t group = 1; group <= 2; group++) {
		put_be32(data, 24);
		data[7] = 1;
		put_be64(data + 16, 99);
		put_be16(data + 26, group);
		slice_map_begin(map);
		assert_int_equal(slice_map_add(map, 0, data, sizeof data, &next), 0);
		if (group == 2)
			assert_true(slice_owned_by(slice_map_find(map, 0), 1));
		slice_map_commit(map, 4096);
		assert_true(slice_owned_by(slice_map_find(map, 100 * 4096 - 1), group));
		assert_null(slice_map_find(map, UINT64_C(100) * 4096));
		assert_int_equal(slice_map_runs(map), 1);
	}
	slice_map_clear(map);
	assert_null(slice_map_find(map, 0));
	slice_map_free(map);
}

/* Only the groups in the best state own a run. */
static void better_access_owns(void **unused)
{
	uint8_t data[4 + 20 + 4 * 4] = {0};
	static const struct {
		uint8_t states[4];
		uint16_t owners; /* bits */
	} cases[] = {
	    {{0, 1, 0, 1}, 0x5}, {{1, 1, 1, 1}, 0xf}, {{4, 1, 2, 1}, 0x1},
	    {{2, 3, 14, 15}, 0}, {{1, 0, 4, 0}, 0xa}, {{0, 0, 0, 0}, 0xf},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct slice_owners *owners;
		struct slice_map *map = NULL;
		uint64_t next;

		assert_int_equal(slice_map_new(&map), 0);
		put_be32(data, sizeof data - 4);
		data[7] = 4;
		put_be64(data + 16, 9);
		for (unsigned g = 0; g < 4; g++) {
			data[24 + 4 * g] = cases[i].states[g];
			put_be16(data + 26 + 4 * g, (uint16_t)(g + 1));
		}
		slice_map_begin(map);
		assert_int_equal(slice_map_add(map, 0, data, sizeof data, &next), 0);
		slice_map_commit(map, 512);
		owners = slice_map_find(map, 0);
		assert_int_equal(owners == NULL, cases[i].owners == 0);
		for (unsigned g = 0; owners && g < 4; g++)
			assert_int_equal(slice_owned_by(owners, (uint16_t)(g + 1)),
					 cases[i].owners >> g & 1);
		slice_map_free(map);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(every_seed, tell_failed_seed),
	    cmocka_unit_test(nonsense_is_refused),
	    cmocka_unit_test(the_map_in_use_stays_while_another_is_made),
	    cmocka_unit_test(better_access_owns),
	};

	if (argc > 1)
		only_seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
