/* SPDX-License-Identifier: MIT
 *
 * The policies one by one: which path they choose from which view.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"
#include "initiator/mpio/policy.h"

enum { PATHS = 4 };

/* Views of PATHS paths, each with a load of its own, and a policy over them. */
struct bench {
	const struct mpio_policy *policy;
	void *state;
	struct mpio_config config;
	struct mpio_load loads[PATHS];
	struct mpio_path_view views[PATHS];
	uint64_t offset_bytes, now_ns;
};

static void bench_begin(struct bench *b, const char *name, const struct slice_map *slices)
{
	b->policy = mpio_policy_find(name);
	assert_non_null(b->policy);
	b->state = calloc(1, mpio_policy_state_bytes());
	assert_non_null(b->state);
	b->policy->init(b->state, &b->config, slices);
	for (unsigned i = 0; i < PATHS; i++) {
		b->views[i].able = b->views[i].usable = true;
		b->views[i].load = &b->loads[i];
		b->views[i].throughput = 1;
	}
}

static void bench_end(struct bench *b)
{
	free(b->state);
	b->state = NULL;
}

static int choose(struct bench *b, uint64_t bytes)
{
	struct mpio_ask ask = {b->offset_bytes, bytes, b->now_ns};

	mpio_rank_views(b->views, PATHS, b->policy->all_ranks);
	return b->policy->select(b->state, b->views, PATHS, &ask);
}

static void add(struct bench *b, unsigned path, unsigned ios, uint64_t bytes)
{
	b->views[path].in_flight += ios;
	b->views[path].in_flight_bytes += bytes;
	b->loads[path].in_flight += ios;
	b->loads[path].in_flight_bytes += bytes;
}

static void check_choices(struct bench *b, uint64_t bytes, const int *expected, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(choose(b, bytes), expected[i]);
}
#define CHOICES(b, bytes, ...)                              \
	check_choices(b, bytes, (const int[]){__VA_ARGS__}, \
		      sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* ---- round robin ---- */

static void round_robin_counts_bytes(void **unused)
{
	struct bench b = {.config = {.rr_bytes = 10 * KIB}};

	bench_begin(&b, "round-robin", NULL);
	/* 4 + 4 + 4 KiB reach 10 KiB; the next path begins with its own 10 KiB. */
	CHOICES(&b, 4 * KIB, 0, 0, 0, 1, 1, 1, 2);
	CHOICES(&b, 64 * KIB, 2, 3, 0);
	CHOICES(&b, 10 * KIB, 1, 2);
	bench_end(&b);
}

/* VMware's rule: 1,000 I/Os or 10 MiB, whichever comes first. */
static void round_robin_takes_what_comes_first(void **unused)
{
	struct bench b = {.config = {.rr_ios = 1000, .rr_bytes = 10485760}};

	bench_begin(&b, "round-robin", NULL);
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(choose(&b, 4 * KIB), i / 1000);
	for (unsigned i = 0; i < 30; i++)
		assert_int_equal(choose(&b, MIB), (3 + i / 10) % PATHS);
	bench_end(&b);
}

static void round_robin_keeps_to_the_best_rank(void **unused)
{
	struct bench b = {0};

	b.views[1].rank = b.views[3].rank = MPIO_RANK_NON_OPTIMIZED;
	bench_begin(&b, "round-robin", NULL);
	CHOICES(&b, 512, 0, 2, 0, 2);
	b.views[0].rank = MPIO_RANK_DEGRADED;
	CHOICES(&b, 512, 2, 2);
	b.views[2].able = false;
	CHOICES(&b, 512, 0, 0);
	b.views[0].able = false;
	CHOICES(&b, 512, 1, 3, 1);
	b.views[2].able = true;
	CHOICES(&b, 512, 2, 2);
	bench_end(&b);
}

/* RRWS: turns in the primary set; the standby set only when every primary is gone, and back as
 * soon as one returns. */
static void subset_waits_for_the_last_primary(void **unused)
{
	struct bench b = {0};

	b.views[2].rank = b.views[3].rank = MPIO_RANK_NOT_PRIMARY;
	bench_begin(&b, "round-robin-subset", NULL);
	CHOICES(&b, 512, 0, 1, 0, 1);
	b.views[0].able = false;
	CHOICES(&b, 512, 1, 1, 1);
	b.views[1].full = true; /* full is not gone */
	CHOICES(&b, 512, -1);
	b.views[1].full = false;
	b.views[1].able = false;
	CHOICES(&b, 512, 2, 3, 2, 3);
	b.views[1].able = true;
	CHOICES(&b, 512, 1, 1);
	/* A primary path without optimized access is still a primary one. */
	b.views[1].rank = MPIO_RANK_NON_OPTIMIZED | MPIO_RANK_DEGRADED;
	CHOICES(&b, 512, 1, 1);
	bench_end(&b);
}

/* ---- fail over only ---- */

static void failover_goes_back_by_itself(void **unused)
{
	struct bench b = {.config = {.preferred_path = 1}};

	bench_begin(&b, "failover-only", NULL);
	CHOICES(&b, 512, 1, 1);
	b.views[1].able = false;
	CHOICES(&b, 512, 2, 2);
	b.views[2].able = false;
	CHOICES(&b, 512, 3);
	b.views[2].able = true;
	CHOICES(&b, 512, 3);
	b.views[1].able = true;
	CHOICES(&b, 512, 1, 1);
	bench_end(&b);
}

static void failover_stays_with_manual_failback(void **unused)
{
	struct bench b = {.config = {.preferred_path = 1, .failback = MPIO_FAILBACK_MANUAL}};

	bench_begin(&b, "failover-only", NULL);
	CHOICES(&b, 512, 1, 1);
	b.views[1].able = false;
	CHOICES(&b, 512, 2, 2);
	b.views[1].able = true;
	CHOICES(&b, 512, 2, 2);
	b.views[2].full = true; /* not failed */
	CHOICES(&b, 512, -1);
	b.views[2].able = b.views[2].full = false;
	CHOICES(&b, 512, 1); /* of all that are left the preferred one */
	bench_end(&b);
}

static void failover_heeds_ranks(void **unused)
{
	static const int failbacks[] = {MPIO_FAILBACK_AUTO, MPIO_FAILBACK_MANUAL};

	for (size_t i = 0; i < ARRAY_SIZE(failbacks); i++) {
		struct bench b = {.config = {.failback = failbacks[i]}};
		bool manual = failbacks[i] == MPIO_FAILBACK_MANUAL;

		b.views[0].rank = b.views[1].rank = MPIO_RANK_NON_OPTIMIZED;
		bench_begin(&b, "failover-only", NULL);
		CHOICES(&b, 512, 2, 2); /* optimized, though not preferred */
		b.views[2].able = b.views[3].able = false;
		CHOICES(&b, 512, 0, 0);
		b.views[3].able = true;
		CHOICES(&b, 512, manual ? 0 : 3);
		b.views[0].rank = MPIO_RANK_OPTIMIZED;
		CHOICES(&b, 512, 0);
		bench_end(&b);
	}
}

/* ---- least queue depth, least blocks ---- */

static void least_queue_depth_counts_requests(void **unused)
{
	struct bench b = {0};

	bench_begin(&b, "least-queue-depth", NULL);
	CHOICES(&b, 512, 0, 1, 2, 3, 0); /* equals take turns */
	add(&b, 0, 1, 512);
	add(&b, 1, 2, 1024);
	add(&b, 2, 2, 1024);
	add(&b, 3, 1, MIB); /* size does not count */
	CHOICES(&b, 512, 3, 0, 3);
	b.views[3].full = true;
	CHOICES(&b, 512, 0, 0);
	b.views[0].able = false;
	CHOICES(&b, 512, 1, 2);
	bench_end(&b);
}

/* Microsoft's documented example: paths are counted over all units.  One I/O to unit 1 and one to
 * unit 2 on path 1: the next I/O goes to path 2, for either unit. */
static void least_queue_depth_counts_all_units(void **unused)
{
	struct bench unit[2] = {0};

	for (unsigned u = 0; u < 2; u++) {
		bench_begin(&unit[u], "least-queue-depth", NULL);
		for (unsigned i = 0; i < PATHS; i++) {
			unit[u].views[i].load = &unit[0].loads[i];
			unit[u].views[i].able = i < 2; /* two paths */
		}
		unit[u].views[0].in_flight = 1;
	}
	unit[0].loads[0].in_flight = 2;
	CHOICES(&unit[0], 512, 1, 1, 1);
	CHOICES(&unit[1], 512, 1, 1, 1);
	/* What a unit itself has there does not matter. */
	unit[0].views[1].in_flight = 1;
	unit[0].loads[1].in_flight = 1;
	CHOICES(&unit[0], 512, 1, 1);
	unit[0].loads[1].in_flight = 3;
	CHOICES(&unit[0], 512, 0, 0);
	CHOICES(&unit[1], 512, 0, 0);
	bench_end(&unit[0]);
	bench_end(&unit[1]);
}

static void least_blocks_counts_bytes(void **unused)
{
	struct bench b = {0};

	bench_begin(&b, "least-blocks", NULL);
	add(&b, 0, 1, 256 * KIB);
	add(&b, 1, 20, 20 * 4 * KIB); /* many, but less */
	add(&b, 2, 1, 128 * KIB);
	add(&b, 3, 1, 81 * KIB);
	CHOICES(&b, 512, 1, 1);
	b.views[1].full = true;
	CHOICES(&b, 512, 3);
	b.views[3].able = false;
	CHOICES(&b, 512, 2);
	bench_end(&b);
}

/* ---- weighted paths ---- */

static void the_lowest_weight_takes_all(void **unused)
{
	struct bench b = {0};

	b.views[0].weight = 20;
	b.views[1].weight = 5;
	b.views[2].weight = 10;
	b.views[3].weight = 10;
	bench_begin(&b, "weighted-paths", NULL);
	CHOICES(&b, 512, 1, 1, 1);
	add(&b, 1, 100, MIB);
	CHOICES(&b, 512, 1);
	b.views[1].full = true;
	CHOICES(&b, 512, -1);
	b.views[1].full = b.views[1].able = false;
	CHOICES(&b, 512, 3, 2, 3, 2); /* equal weights take turns */
	b.views[3].full = true;
	CHOICES(&b, 512, 2, 2);
	b.views[2].able = b.views[3].able = false;
	CHOICES(&b, 512, 0, 0);
	b.views[1].able = true;
	CHOICES(&b, 512, 1);
	bench_end(&b);
}

/* ---- service time ---- */

static void service_time_divides_by_throughput(void **unused)
{
	struct bench b = {0};

	bench_begin(&b, "service-time", NULL);
	b.views[0].throughput = 1;
	b.views[1].throughput = 4;
	b.views[2].throughput = 0;
	b.views[3].throughput = 2;
	CHOICES(&b, 64 * KIB, 1, 1); /* all idle: the fastest */
	CHOICES(&b, 0, 1);
	add(&b, 1, 1, 192 * KIB); /* (192 + 64) / 4 = 64 against 64 / 2 and 64 / 1 */
	CHOICES(&b, 64 * KIB, 3);
	add(&b, 3, 1, 65 * KIB);	/* (65 + 64) / 2 is just more than 64 */
	CHOICES(&b, 64 * KIB, 0, 1, 0); /* as good as 64 / 1: in turn */
	b.views[1].able = b.views[3].able = b.views[0].able = false;
	CHOICES(&b, 64 * KIB, 2); /* throughput 0: only when there is no other */
	bench_end(&b);
}

static void equal_throughput_is_least_bytes(void **unused)
{
	struct bench b = {0};

	bench_begin(&b, "service-time", NULL);
	for (unsigned i = 0; i < PATHS; i++)
		add(&b, i, 1, (10 - i) * KIB);
	CHOICES(&b, MIB, 3, 3);
	bench_end(&b);
}

static void answer(struct bench *b, unsigned path, uint64_t sent_ns, uint64_t now_ns)
{
	b->now_ns = now_ns;
	mpio_rank_views(b->views, PATHS, b->policy->all_ranks);
	b->policy->answered(b->state, b->views, PATHS, path, sent_ns, now_ns);
}

static void history_prefers_what_was_fast(void **unused)
{
	static const uint64_t takes_us[PATHS] = {1000, 100, 400, 1000};
	struct bench b = {0};
	uint64_t now = NS_PER_S;

	bench_begin(&b, "historical-service-time", NULL);
	CHOICES(&b, 512, 0, 1, 2, 3); /* nothing is known: turns */
	/* Enough answers for the averages (a request weighs a twentieth). */
	for (unsigned i = 0; i < 200; i++) {
		for (unsigned p = 0; p < PATHS; p++)
			answer(&b, p, now, now + takes_us[p] * NS_PER_US);
		now += 2 * NS_PER_MS;
	}
	/* Fresh averages: (1 + in flight) x 1000, 100, 400, 1000 us. */
	b.now_ns = now;
	for (unsigned p = 0; p < PATHS; p++)
		answer(&b, p, now - takes_us[p] * NS_PER_US, now);
	CHOICES(&b, 512, 1, 1);
	add(&b, 1, 2, 1024);
	CHOICES(&b, 512, 1); /* 300 us */
	add(&b, 1, 2, 1024); /* 500 us */
	CHOICES(&b, 512, 2, 2);
	bench_end(&b);
}

/* Answers in a row from one path: each counts from the one before, or a deep queue would look like
 * a slow path. */
static void history_tells_overlapping_requests_apart(void **unused)
{
	struct bench b = {0};
	uint64_t now = NS_PER_S;

	bench_begin(&b, "historical-service-time", NULL);
	b.views[2].able = b.views[3].able = false;
	for (unsigned i = 0; i < 300; i++) {
		/* Path 0: 32 at a time, one every 100 us, 3.2 ms each; path 1: 400 us, alone. */
		answer(&b, 0, now - 3100 * NS_PER_US, now + 100 * NS_PER_US);
		now += 100 * NS_PER_US;
		if (i % 4 == 3)
			answer(&b, 1, now - 400 * NS_PER_US, now);
	}
	CHOICES(&b, 512, 0, 0, 0);
	bench_end(&b);
}

static void history_probes_what_went_stale(void **unused)
{
	struct bench b = {0};
	uint64_t now = NS_PER_S;

	bench_begin(&b, "historical-service-time", NULL);
	b.views[2].able = b.views[3].able = false;
	answer(&b, 0, now - 100 * NS_PER_MS, now); /* slow, once */
	for (unsigned i = 0; i < 2000; i++) {
		now += NS_PER_MS;
		answer(&b, 1, now - NS_PER_MS, now);
	}
	/* Nothing of path 0 for a long time: one request finds out. */
	CHOICES(&b, 512, 0);
	add(&b, 0, 1, 512);
	CHOICES(&b, 512, 1, 1); /* busy, and it has more than path 1 */
	add(&b, 1, 1, 512);
	answer(&b, 0, now - 100 * NS_PER_US, now); /* it has become fast: not slower than path 1? */
	add(&b, 0, -1U, -UINT64_C(512));
	for (unsigned i = 0; i < 100; i++) {
		answer(&b, 0, now, now + 100 * NS_PER_US);
		now += 100 * NS_PER_US;
	}
	CHOICES(&b, 512, 0, 0);
	bench_end(&b);
}

/* ---- slice aware ---- */

/* Blocks 0 to 99 of 512 bytes are on group 1, 100 to 199 on group 2, 200 to 299 on either, then on
 * a group no path leads to. */
static struct slice_map *make_map(void)
{
	static const struct {
		uint64_t last;
		uint16_t groups[2];
	} segments[] = {{99, {1, 0}}, {199, {2, 0}}, {299, {1, 2}}, {399, {7, 0}}};
	uint8_t data[200] = {0}, *at = data + 4;
	struct slice_map *map = NULL;
	uint64_t next = 0;

	for (size_t i = 0; i < ARRAY_SIZE(segments); i++) {
		unsigned groups = segments[i].groups[1] ? 2 : 1;

		at[3] = (uint8_t)groups;
		put_be64(at + 4, i ? segments[i - 1].last + 1 : 0);
		put_be64(at + 12, segments[i].last);
		at += 20;
		for (unsigned g = 0; g < groups; g++, at += 4)
			put_be16(at + 2, segments[i].groups[g]);
	}
	put_be32(data, (uint32_t)(at - data) - 4);
	assert_int_equal(slice_map_new(&map), 0);
	slice_map_begin(map);
	assert_int_equal(slice_map_add(map, 0, data, sizeof data, &next), 0);
	assert_int_equal(next, 400);
	slice_map_commit(map, 512);
	return map;
}

static void blocks_go_to_their_member(void **unused)
{
	struct slice_map *map = make_map();
	struct bench b = {0};

	bench_begin(&b, "slice-aware", map);
	b.views[0].member = b.views[1].member = 1;
	b.views[2].member = b.views[3].member = 2;
	CHOICES(&b, 512, 0, 1, 0, 1);
	b.offset_bytes = 99 * 512;
	CHOICES(&b, 512, 0, 1);
	b.offset_bytes = 100 * 512;
	CHOICES(&b, 512, 2, 3, 2);
	add(&b, 2, 5, 5 * 512); /* the other member is idle, the owner's other path less busy */
	add(&b, 3, 2, 2 * 512);
	CHOICES(&b, 512, 3, 3);
	b.offset_bytes = 200 * 512; /* anybody's: least queue depth */
	CHOICES(&b, 512, 0, 1, 0);
	b.offset_bytes = 300 * 512; /* nobody's here */
	CHOICES(&b, 512, 1, 0);
	b.offset_bytes = 400 * 512; /* beyond what is known */
	CHOICES(&b, 512, 1, 0);
	b.offset_bytes = 150 * 512;
	b.views[3].full = true;
	CHOICES(&b, 512, 2);
	b.views[2].able = false; /* a hop is better than to wait */
	CHOICES(&b, 512, 0, 1);
	bench_end(&b);
	slice_map_free(map);
}

static void no_map_is_least_queue_depth(void **unused)
{
	struct slice_map *map = NULL;

	assert_int_equal(slice_map_new(&map), 0);
	for (unsigned known = 0; known < 2; known++) {
		struct bench b = {0};

		bench_begin(&b, "slice-aware", known ? map : NULL);
		add(&b, 0, 2, 1024);
		add(&b, 2, 1, MIB);
		CHOICES(&b, 512, 1, 3, 1, 3);
		bench_end(&b);
	}
	slice_map_free(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(round_robin_counts_bytes),
	    cmocka_unit_test(round_robin_takes_what_comes_first),
	    cmocka_unit_test(round_robin_keeps_to_the_best_rank),
	    cmocka_unit_test(subset_waits_for_the_last_primary),
	    cmocka_unit_test(failover_goes_back_by_itself),
	    cmocka_unit_test(failover_stays_with_manual_failback),
	    cmocka_unit_test(failover_heeds_ranks),
	    cmocka_unit_test(least_queue_depth_counts_requests),
	    cmocka_unit_test(least_queue_depth_counts_all_units),
	    cmocka_unit_test(least_blocks_counts_bytes),
	    cmocka_unit_test(the_lowest_weight_takes_all),
	    cmocka_unit_test(service_time_divides_by_throughput),
	    cmocka_unit_test(equal_throughput_is_least_bytes),
	    cmocka_unit_test(history_prefers_what_was_fast),
	    cmocka_unit_test(history_tells_overlapping_requests_apart),
	    cmocka_unit_test(history_probes_what_went_stale),
	    cmocka_unit_test(blocks_go_to_their_member),
	    cmocka_unit_test(no_map_is_least_queue_depth),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
