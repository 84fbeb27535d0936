/* SPDX-License-Identifier: MIT
 *
 * The balancers at work in virtual time: a new member fills, a slow member gives its hot pages away
 * and latency falls, warnings of space.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/array/volume.h"
#include "target/drive/faults.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/pool_check.h"
#include "tests/unit/array/rig.h"

#define P POOL_PAGE_BYTES

static struct lab lab;

static struct pool *the_pool(void)
{
	return group_pool(lab.open, 0);
}

static int model_named(const char *name)
{
	for (int i = 0; drive_model_names[i]; i++)
		if (strcmp(drive_model_names[i], name) == 0)
			return i;
	fail_msg("no model %s", name);
	return -1;
}

static void run_for(uint64_t ns)
{
	assert_int_equal(loop_run_until(lab.loop, loop_now_ns(lab.loop) + ns), 0);
}

static void touch(const char *volume, uint64_t page)
{
	static uint8_t sector[512] = {1};

	assert_int_equal(lab_io(&lab, volume, IO_WRITE, page * P, sector, 512), 0);
}

/* A member that was lost comes back empty-handed, as a new one is: volumes spread over it. */
static void a_new_member_fills(void **state)
{
	uint64_t slices[POOL_MEMBERS_MAX];
	struct pool_balance balance;

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 32 * P);
	lab_member(&lab, "m2", "raid0", 1, 32 * P);
	lab_volume(&lab, "v", 24 * P, true);
	lab.pool.balance = (struct balance_config){.capacity = true, .every_ns = 60 * NS_PER_S};
	lab_opens(&lab);
	member_set_offline(pool_member(the_pool(), 1), true);
	for (uint64_t page = 0; page < 24; page++)
		touch("v", page);
	run_for(130 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_int_equal(balance.rounds, 3); /* after 10, 70 and 130 s */
	assert_string_equal(balance.capacity_decision, "nothing: volumes are spread by capacity");
	assert_string_equal(balance.performance_decision, "nothing: the lab says so");
	member_set_offline(pool_member(the_pool(), 1), false);
	run_for(70 * NS_PER_S);
	volume_slices(group_find_volume(lab.open, "v"), slices);
	assert_int_equal(slices[0], 12 * P);
	assert_int_equal(slices[1], 12 * P);
	pool_balance(the_pool(), &balance);
	assert_int_equal(balance.capacity_plans, 1);
	assert_string_equal(balance.capacity_decision,
			    "12 pages are moved to spread volumes by capacity");
	assert_int_equal(volume_slice_changes(group_find_volume(lab.open, "v")), 1);
	pool_check(the_pool());
	/* And then there is nothing more to do. */
	run_for(120 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_int_equal(balance.capacity_plans, 1);
	lab_close(&lab);
}

/* The rate limits all moves together. */
static void rate(void **state)
{
	struct err err = {0};
	struct pool_moves moves;

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 32 * P);
	lab_member(&lab, "m2", "raid0", 1, 32 * P);
	lab_volume(&lab, "v", 16 * P, true);
	lab.pool.balance.rate_bytes_per_s = 15 * MIB; /* a page a second */
	lab_opens(&lab);
	for (uint64_t page = 0; page < 16; page++)
		touch("v", page);
	assert_int_equal(pool_drain(the_pool(), pool_member(the_pool(), 0), &err), 0);
	run_for(4 * NS_PER_S);
	pool_moves(the_pool(), &moves);
	assert_in_range(moves.copied_bytes, 4 * P - MIB, 4 * P + 4 * MIB);
	pool_moves_pause(the_pool(), true);
	run_for(10 * NS_PER_S);
	pool_moves(the_pool(), &moves);
	assert_true(moves.paused);
	assert_in_range(moves.copied_bytes, 4 * P - MIB, 4 * P + 5 * MIB);
	pool_moves_pause(the_pool(), false);
	run_for(10 * NS_PER_S);
	pool_moves(the_pool(), &moves);
	assert_int_equal(moves.done, 8);
	lab_close(&lab);
}

/* A drain that is asked for while a plan fills the same member comes after that plan. */
static void drain_against_a_plan(void **state)
{
	struct drain_progress progress;
	struct pool_moves moves;
	struct err err = {0};

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 32 * P);
	lab_member(&lab, "m2", "raid0", 1, 32 * P);
	lab_volume(&lab, "v", 24 * P, true);
	lab_opens(&lab);
	struct member *second = pool_member(the_pool(), 1);
	member_set_offline(second, true);
	for (uint64_t page = 0; page < 24; page++)
		touch("v", page);
	member_set_offline(second, false);
	pool_balance_now(the_pool());
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(loop_turn(lab.loop, true), 0);
	pool_moves(the_pool(), &moves);
	assert_int_equal(moves.under_way, 4);
	assert_int_equal(moves.done, 0);
	assert_int_equal(pool_drain(the_pool(), second, &err), 0);
	run_for(10 * NS_PER_S);
	pool_drain_progress(the_pool(), second, &progress);
	assert_string_equal(drain_state_names[progress.state], "empty");
	assert_int_equal(second->used_pages, 0);
	pool_check(the_pool());
	lab_close(&lab);
}

/* ---- performance ---- */

enum { HOT_PAGES = 4, QUEUE = 12, VOLUME_PAGES = 24, CHUNK = 16 * 1024 };

struct reader {
	struct io io;
	struct iovec iov;
	uint64_t began_ns;
	uint8_t buffer[CHUNK];
};

static struct {
	struct rng rng;
	struct reader readers[QUEUE];
	uint32_t hot[HOT_PAGES]; /* of the volume, on the slow member at the beginning */
	bool stop;
	int wanted; /* status */
	unsigned busy;
	uint64_t sum_ns, count;
} load;

static void read_next(struct reader *reader);

static void was_read(struct io *io)
{
	struct reader *reader = io->owner;

	assert_int_equal(io->status, load.wanted);
	load.sum_ns += loop_now_ns(lab.loop) - reader->began_ns;
	load.count++;
	load.busy--;
	if (!load.stop)
		read_next(reader);
}

static void read_one(struct reader *reader, uint64_t page)
{
	load.busy++;
	reader->began_ns = loop_now_ns(lab.loop);
	reader->iov = (struct iovec){reader->buffer, CHUNK};
	reader->io = (struct io){
	    .op = IO_READ,
	    .offset_bytes = page * P + rng_below(&load.rng, P / CHUNK) * CHUNK,
	    .length_bytes = CHUNK,
	    .iov = &reader->iov,
	    .iov_count = 1,
	    .done = was_read,
	    .owner = reader,
	};
	io_submit(lab_layer(&lab, "v"), &reader->io);
}

/* Nine reads of ten are on the hot pages. */
static void read_next(struct reader *reader)
{
	uint64_t page = rng_below(&load.rng, 10) ? load.hot[rng_below(&load.rng, HOT_PAGES)]
						 : rng_below(&load.rng, VOLUME_PAGES);
	read_one(reader, page);
}

static uint64_t mean_over(uint64_t ns)
{
	load.sum_ns = load.count = 0;
	run_for(ns);
	assert_true(load.count > 0);
	return load.sum_ns / load.count;
}

static void hot_pages_leave_a_slow_member(void **state)
{
	struct pool_balance balance;
	struct pool_hot_page hottest[POOL_HOT_PAGES_MAX];

	lab_init(&lab);
	struct member_config *slow = lab_member(&lab, "slow", "raid0", 1, 32 * P);
	struct member_config *fast = lab_member(&lab, "fast", "raid0", 1, 32 * P);
	slow->timing = fast->timing = DRIVE_TIMING_MODELLED;
	slow->drives.model = model_named("nlsas-7k2-2000");
	fast->drives.model = model_named("ssd-sas-200");
	lab_volume(&lab, "v", VOLUME_PAGES * P, true);
	lab.pool.balance = (struct balance_config){
	    .capacity = true, .performance = true, .every_ns = 60 * NS_PER_S};
	lab_opens(&lab);
	for (uint64_t page = 0; page < VOLUME_PAGES; page++)
		touch("v", page);
	struct volume *volume = group_find_volume(lab.open, "v");
	load.stop = false;
	rng_init(&load.rng, 3, 3);
	for (uint32_t page = 0, found = 0; found < HOT_PAGES; page++)
		if (volume->map.entries[page].member == 0)
			load.hot[found++] = page;
	for (unsigned i = 0; i < QUEUE; i++)
		read_next(&load.readers[i]);
	uint64_t before_ns = mean_over(60 * NS_PER_S);
	assert_true(before_ns > 20 * NS_PER_MS);
	pool_balance(the_pool(), &balance);
	assert_string_equal(balance.performance_decision,
			    "nothing: a member is slow for the first time");
	assert_true(pool_hot_pages(the_pool(), hottest, POOL_HOT_PAGES_MAX) >= HOT_PAGES);
	for (unsigned i = 0; i < HOT_PAGES; i++)
		assert_ptr_equal(hottest[i].member, pool_member(the_pool(), 0));
	run_for(420 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_true(balance.performance_plans >= 1);
	uint64_t after_ns = mean_over(60 * NS_PER_S);
	print_message("# mean latency %llu us before, %llu us after\n",
		      (unsigned long long)(before_ns / NS_PER_US),
		      (unsigned long long)(after_ns / NS_PER_US));
	assert_true(after_ns * 4 < before_ns);
	/* As many pages on each member as before: they were swapped. */
	assert_int_equal(volume->member_pages[0], VOLUME_PAGES / 2);
	for (unsigned i = 0; i < HOT_PAGES; i++)
		assert_int_equal(volume->map.entries[load.hot[i]].member, 1);
	/* Nothing goes back. */
	uint64_t plans = balance.performance_plans;
	run_for(600 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_int_equal(balance.performance_plans, plans);
	load.stop = true;
	while (load.busy)
		assert_int_equal(loop_turn(lab.loop, true), 0);
	pool_check(the_pool());
	lab_close(&lab);
}

/* A member whose requests hang is slow, although none of them ends and tells. */
static void a_member_that_hangs_is_slow(void **state)
{
	struct pool_balance balance;

	lab_init(&lab);
	lab_member(&lab, "hangs", "raid0", 1, 32 * P);
	lab_member(&lab, "fast", "raid0", 1, 32 * P);
	lab_volume(&lab, "v", VOLUME_PAGES * P, true);
	lab.pool.balance = (struct balance_config){.performance = true, .every_ns = 60 * NS_PER_S};
	lab_opens(&lab);
	for (uint64_t page = 0; page < VOLUME_PAGES; page++)
		touch("v", page);
	struct volume *volume = group_find_volume(lab.open, "v");
	uint32_t page = 0;
	while (volume->map.entries[page].member != 0)
		page++;
	struct drive *drive = member_drive(pool_member(the_pool(), 0), 0);
	assert_int_equal(drive_set_timeouts(drive, 1, 200 * NS_PER_S, 1), 0);
	load.stop = true;
	load.wanted = -ETIMEDOUT;
	read_one(&load.readers[0], page);
	run_for(15 * NS_PER_S); /* a round after 10 s */
	pool_balance(the_pool(), &balance);
	assert_int_equal(balance.latency_ns[0], 0);
	run_for(60 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_in_range(balance.latency_ns[0], 59 * NS_PER_S, 60 * NS_PER_S);
	assert_string_equal(balance.performance_decision,
			    "nothing: a member is slow for the first time");
	run_for(60 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_in_range(balance.latency_ns[0], 119 * NS_PER_S, 120 * NS_PER_S);
	assert_non_null(strstr(balance.performance_decision, "hangs is slow"));
	while (load.busy)
		assert_int_equal(loop_turn(lab.loop, true), 0);
	load.wanted = 0;
	run_for(60 * NS_PER_S);
	pool_balance(the_pool(), &balance);
	assert_int_equal(balance.latency_ns[0], 0);
	lab_close(&lab);
}

/* ---- space ---- */

static void warnings(void **state)
{
	struct pool_event events[POOL_EVENTS_MAX];
	struct pool_space space;

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 20 * P);
	lab_volume(&lab, "v", 30 * P, true);
	lab_opens(&lab);
	for (uint64_t page = 0; page < 15; page++)
		touch("v", page);
	assert_int_equal(pool_events(the_pool(), events, POOL_EVENTS_MAX), 0);
	for (uint64_t page = 15; page < 17; page++)
		touch("v", page); /* 80 and 85 % */
	assert_int_equal(pool_events(the_pool(), events, POOL_EVENTS_MAX), 1);
	assert_string_equal(events[0].text, "80 % of the pool's space are used");
	/* Back and forth over the threshold it is told once. */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(lab_io(&lab, "v", IO_UNMAP, 15 * P, NULL, P), 0);
		touch("v", 15);
	}
	touch("v", 17);
	pool_space(the_pool(), &space);
	assert_int_equal(space.warned_percent, 90);
	assert_int_equal(space.used_bytes, 18 * P);
	assert_int_equal(space.free_bytes, 2 * P);
	assert_int_equal(space.subscribed_bytes, 30 * P);
	assert_int_equal(pool_events(the_pool(), events, POOL_EVENTS_MAX), 2);
	assert_int_equal(lab_io(&lab, "v", IO_UNMAP, 0, NULL, 10 * P), 0);
	pool_space(the_pool(), &space);
	assert_int_equal(space.warned_percent, 0);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_new_member_fills),
	    cmocka_unit_test(rate),
	    cmocka_unit_test(drain_against_a_plan),
	    cmocka_unit_test(hot_pages_leave_a_slow_member),
	    cmocka_unit_test(a_member_that_hangs_is_slow),
	    cmocka_unit_test(warnings),
	};
	return cmocka_run_group_tests_name("balancer", tests, NULL, NULL);
}
