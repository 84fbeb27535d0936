/* SPDX-License-Identifier: MIT
 *
 * How a load spreads over the paths of a device under each policy: a queue of requests that is kept
 * full, over paths of different speed, on the virtual loop.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"
#include "initiator/mpio/host_load.h"
#include "initiator/mpio/policy.h"
#include "rig.h"

enum { PATHS = 4, DEPTH = 32, LARGE = 64 };

struct slot {
	struct io io; /* first */
	struct load *load;
};

/* A queue of DEPTH requests, kept full until LIMIT have been submitted. */
struct load {
	struct io_layer *layer;
	struct slot slots[DEPTH];
	uint64_t submitted, done, limit;
	bool mixed; /* every fourth request is of LARGE blocks, the others of one */
};

static uint8_t scratch[LARGE * FAKE_BLOCK_BYTES];

static void submit(struct slot *slot)
{
	struct load *load = slot->load;
	static const struct iovec iov[] = {{scratch, FAKE_BLOCK_BYTES}, {scratch, sizeof scratch}};
	bool large = load->mixed && load->submitted % 4 == 0;

	slot->io.offset_bytes = load->submitted % (RIG_BLOCKS - LARGE) * FAKE_BLOCK_BYTES;
	slot->io.iov = &iov[large];
	slot->io.iov_count = 1;
	slot->io.length_bytes = iov[large].iov_len;
	load->submitted++;
	io_submit(load->layer, &slot->io);
}

static void slot_done(struct io *io)
{
	struct slot *slot = container_of(io, struct slot, io);

	assert_int_equal(io->status, 0);
	slot->load->done++;
	if (slot->load->submitted < slot->load->limit)
		submit(slot);
}

static void run(struct loop *loop, struct io_layer *layer, uint64_t ios, bool mixed)
{
	struct load load = {.layer = layer, .limit = ios, .mixed = mixed};

	for (unsigned i = 0; i < DEPTH && load.submitted < ios; i++) {
		load.slots[i] = (struct slot){{.op = IO_READ, .done = slot_done}, &load};
		submit(&load.slots[i]);
	}
	for (unsigned i = 0; i < 10000 && load.done < ios; i++)
		assert_int_equal(loop_run_until(loop, loop_now_ns(loop) + NS_PER_MS), 0);
	assert_int_equal(load.done, ios);
}

static int policy(const char *name)
{
	for (int i = 0; mpio_policy_at(i); i++)
		if (strcmp(mpio_policy_at(i)->name, name) == 0)
			return i;
	fail_msg("no policy %s", name);
	return -1;
}

static struct cfg_list numbers(const uint64_t *items, size_t count)
{
	return (struct cfg_list){(void *)(uintptr_t)items, count};
}

/* ---- shares ---- */

struct expected {
	struct mpio_config config;
	const char *policy;
	uint64_t takes_us[PATHS];
	double share[PATHS], tolerance;
	bool mixed, of_bytes; /* shares of the bytes instead of the I/Os */
};

static void check_shares(struct rig *rig, const struct expected *e)
{
	double sum = 0, part[PATHS];

	for (unsigned i = 0; i < PATHS; i++) {
		const struct mpio_ledger *ledger = rig_ledger(rig, i);

		part[i] = (double)(e->of_bytes ? ledger->read_bytes : ledger->ios);
		sum += part[i];
	}
	for (unsigned i = 0; i < PATHS; i++)
		if (part[i] / sum < e->share[i] - e->tolerance ||
		    part[i] / sum > e->share[i] + e->tolerance)
			fail_msg("%s: path %u has %.4f of the load, expected %.4f within %.4f",
				 e->policy, i, part[i] / sum, e->share[i], e->tolerance);
}

static void spread(const struct expected *e)
{
	struct mpio_config config = e->config;
	struct rig rig;

	config.policy = policy(e->policy);
	config.no_path_ns = NS_PER_S;
	rig_open(&rig, &config, PATHS, 1);
	for (unsigned i = 0; i < PATHS; i++)
		if (e->takes_us[i])
			rig.fakes[i]->service_ns = e->takes_us[i] * NS_PER_US;
	rig_start(&rig);
	run(rig.loop, rig.layer, 8000, e->mixed);
	check_shares(&rig, e);
	rig_close(&rig);
}

static const uint64_t some_weights[] = {30, 10, 20, 10}, some_throughput[] = {1, 3, 0, 4},
		      some_primary[] = {1, 3};

static void shares_are_as_the_policy_says(void **unused)
{
	const struct expected cases[] = {
	    /* Turns do not care how fast a path is. */
	    {{0}, "round-robin", {100, 400, 100, 100}, {.25, .25, .25, .25}, .001},
	    {{.rr_ios = 10}, "round-robin", {0}, {.25, .25, .25, .25}, .002},
	    {{.rr_bytes = MIB}, "round-robin", {0}, {.25, .25, .25, .25}, .02, true, true},
	    {{0}, "round-robin-subset", {0}, {.25, .25, .25, .25}, .001},
	    {{.primary_paths = numbers(some_primary, 2)},
	     "round-robin-subset",
	     {0},
	     {0, .5, 0, .5},
	     .001},
	    {{.preferred_path = 2}, "failover-only", {0}, {0, 0, 1, 0}, 0},
	    {{.weights = numbers(some_weights, 4)}, "weighted-paths", {0}, {0, .5, 0, .5}, .001},
	    /* Equal queues: a path four times as slow has a fourth of the others' I/Os. */
	    {{0}, "least-queue-depth", {100, 400, 100, 100}, {.308, .077, .308, .308}, .02},
	    {{0}, "least-queue-depth", {0}, {.25, .25, .25, .25}, .01, true},
	    {{0}, "least-blocks", {100, 400, 100, 100}, {.308, .077, .308, .308}, .04, true, true},
	    {{0}, "slice-aware", {100, 400, 100, 100}, {.308, .077, .308, .308}, .02},
	    /* Queues as the throughput: equal times give shares alike, and none for 0. */
	    {{.throughput = numbers(some_throughput, 4)},
	     "service-time",
	     {0},
	     {.125, .375, 0, .5},
	     .03},
	    /* (1 + queue) x time alike: the slow path has a sixteenth of the others' I/Os. */
	    {{0}, "historical-service-time", {100, 1600, 100, 100}, {.327, .02, .327, .327}, .04},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		spread(&cases[i]);
}

/* ---- ranks ---- */

static void set_rank(struct rig *rig, unsigned path, unsigned rank)
{
	rig->mpio->paths[path]->rank = (uint8_t)rank;
	mpio_view_refresh(rig->mpio, path);
}

/* Better access goes first, whatever the weights say, unless non-optimized paths count as good. */
static void access_goes_before_weights(void **unused)
{
	static const uint64_t weights[] = {3, 1, 1, 0};

	for (unsigned use = 0; use < 2; use++) {
		struct mpio_config config = {.policy = policy("weighted-paths"),
					     .weights = numbers(weights, PATHS),
					     .use_non_optimized = use,
					     .no_path_ns = NS_PER_S};
		struct expected first = {.policy = "weighted-paths", .share = {1, 0, 0, 0}};
		struct expected second = {
		    .policy = "use-non-optimized", .share = {0, .5, .5, 0}, .tolerance = .01};
		struct rig rig;

		rig_open(&rig, &config, PATHS, 1);
		rig_start(&rig);
		set_rank(&rig, 1, MPIO_RANK_NON_OPTIMIZED);
		set_rank(&rig, 2, MPIO_RANK_NON_OPTIMIZED);
		set_rank(&rig, 3, MPIO_RANK_NON_OPTIMIZED | MPIO_RANK_DEGRADED);
		run(rig.loop, rig.layer, 200, false);
		check_shares(&rig, use ? &second : &first);
		rig_close(&rig);
	}
}

/* ---- what follows a loss ---- */

static void standby_set_serves_while_no_primary_is_left(void **unused)
{
	struct mpio_config config = {.policy = policy("round-robin-subset"),
				     .primary_paths = numbers(some_primary, 2),
				     .no_path_ns = NS_PER_S,
				     .reconnect_min_ns = 100 * NS_PER_MS,
				     .reconnect_max_ns = 100 * NS_PER_MS};
	struct expected only_3 = {.policy = "subset", .share = {0, 0, 0, 1}};
	struct expected standby = {.policy = "subset", .share = {.5, 0, .5, 0}, .tolerance = .01};
	struct expected both = {.policy = "subset", .share = {0, .5, 0, .5}, .tolerance = .01};
	struct rig rig;

	rig_open(&rig, &config, PATHS, 1);
	rig_start(&rig);
	fake_path_kill(rig.fakes[1], "reset");
	run(rig.loop, rig.layer, 400, false);
	check_shares(&rig, &only_3);
	mpio_ledger_reset(rig.mpio);
	fake_path_kill(rig.fakes[3], "reset");
	run(rig.loop, rig.layer, 400, false);
	check_shares(&rig, &standby);
	rig_run_for(&rig, NS_PER_S); /* both are back */
	mpio_ledger_reset(rig.mpio);
	run(rig.loop, rig.layer, 400, false);
	check_shares(&rig, &both);
	rig_close(&rig);
}

static void manual_failback_stays(void **unused)
{
	struct mpio_config config = {.policy = policy("failover-only"),
				     .failback = MPIO_FAILBACK_MANUAL,
				     .no_path_ns = NS_PER_S,
				     .reconnect_min_ns = 100 * NS_PER_MS};
	struct expected second = {.policy = "failover-only", .share = {0, 1, 0, 0}};
	struct rig rig;

	rig_open(&rig, &config, PATHS, 1);
	rig_start(&rig);
	run(rig.loop, rig.layer, 40, false);
	fake_path_kill(rig.fakes[0], "reset");
	mpio_ledger_reset(rig.mpio);
	run(rig.loop, rig.layer, 40, false);
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
	run(rig.loop, rig.layer, 40, false);
	check_shares(&rig, &second);
	rig_close(&rig);
}

/* ---- several devices of one host ---- */

static struct mpio *make_unit(struct loop *loop, struct host_load *loads, struct fake_disk *disk,
			      const char *name, struct fake_path *fakes[2])
{
	static const char *const portals[] = {"10.0.0.1:3260", "10.0.0.2:3260"};
	struct mpio_config config = {.policy = policy("least-queue-depth"), .no_path_ns = NS_PER_S};
	struct mpio *mpio;

	assert_int_equal(mpio_new(loop, &config, name, 1, &mpio), 0);
	if (loads)
		mpio_share_loads(mpio, loads);
	for (unsigned i = 0; i < 2; i++) {
		fakes[i] = fake_path_new(loop, disk, portals[i], 1);
		assert_int_equal(mpio_add_path(mpio, &fakes[i]->path), 0);
	}
	mpio_start(mpio, NS_PER_S, NULL, NULL);
	return mpio;
}

static void one_read(struct mpio *mpio, struct slot *slot)
{
	struct io_layer *layer = mpio_layer(mpio);
	static struct load none;

	none.layer = layer;
	*slot = (struct slot){{.op = IO_READ, .done = slot_done}, &none};
	submit(slot);
}

/* Microsoft's example with real devices: one I/O to each of two units on path 0 makes path 1 the
 * next for both, though either unit by itself has path 0 as good as path 1. */
static void units_of_a_host_share_their_queues(void **unused)
{
	for (unsigned shared = 0; shared < 2; shared++) {
		struct fake_disk disk;
		struct host_load *loads = NULL;
		struct fake_path *fakes[2][2];
		struct mpio *units[2];
		struct slot slots[8];
		struct loop *loop;

		assert_int_equal(loop_new_virtual(0, &loop), 0);
		assert_int_equal(host_load_new(&loads), 0);
		fake_disk_init(&disk, loop, RIG_BLOCKS);
		for (unsigned u = 0; u < 2; u++)
			units[u] = make_unit(loop, shared ? loads : NULL, &disk, u ? "u1" : "u0",
					     fakes[u]);
		assert_int_equal(loop_run_until(loop, NS_PER_S), 0);
		/* Two on each path, and path 0 is the next. */
		for (unsigned i = 0; i < 4; i++)
			one_read(units[0], &slots[i]);
		assert_int_equal(fakes[0][0]->submitted, 2);
		assert_int_equal(fakes[0][1]->submitted, 2);
		one_read(units[1], &slots[4]); /* path 0: all are equal */
		assert_int_equal(fakes[1][0]->submitted, 1);
		/* Path 0 has 3, path 1 has 2; unit 0 by itself has 2 on each and path 0's turn. */
		one_read(units[0], &slots[5]);
		assert_int_equal(fakes[0][1]->submitted, shared ? 3 : 2);
		assert_int_equal(loop_run_until(loop, 2 * NS_PER_S), 0);
		assert_int_equal(host_load_of(loads, "10.0.0.1:3260")->in_flight, 0);
		assert_int_equal(host_load_of(loads, "10.0.0.2:3260")->in_flight_bytes, 0);
		for (unsigned u = 0; u < 2; u++)
			mpio_free(units[u]);
		host_load_free(loads);
		fake_disk_done(&disk);
		loop_free(loop);
	}
}

/* ---- which policy a unit gets ---- */

static void make_may_have_its_own_policy(void **unused)
{
	struct mpio_override overrides[] = {
	    {.hardware = "OTHER", .policy = policy("least-blocks")},
	    {.hardware = "ACME    DISK", .policy = policy("failover-only")},
	    {.volume = "db1", .policy = policy("round-robin-subset")},
	};
	struct mpio_config config = {.policy = policy("round-robin"),
				     .overrides = {overrides, ARRAY_SIZE(overrides)},
				     .no_path_ns = NS_PER_S};
	struct expected one = {.policy = "make's", .share = {1, 0, 0, 0}};
	struct mpio_config own;
	struct rig rig;

	mpio_config_for(&config, "db1", &own);
	assert_int_equal(own.policy, policy("round-robin-subset"));
	assert_int_equal(own.overrides.count, 0); /* before the make's */
	mpio_config_for(&config, "db2", &own);
	assert_int_equal(own.policy, policy("round-robin"));
	rig_open(&rig, &own, PATHS, 1);
	for (unsigned i = 0; i < PATHS; i++) {
		struct path_identity *identity = &rig.fakes[i]->identity;

		snprintf(identity->vendor, sizeof identity->vendor, "ACME");
		snprintf(identity->product, sizeof identity->product, "DISK 9000");
	}
	rig_start(&rig);
	run(rig.loop, rig.layer, 100, false);
	check_shares(&rig, &one);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shares_are_as_the_policy_says),
	    cmocka_unit_test(access_goes_before_weights),
	    cmocka_unit_test(standby_set_serves_while_no_primary_is_left),
	    cmocka_unit_test(manual_failback_stays),
	    cmocka_unit_test(units_of_a_host_share_their_queues),
	    cmocka_unit_test(make_may_have_its_own_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
