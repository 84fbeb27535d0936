/* SPDX-License-Identifier: MIT
 *
 * The modelled drive's queue as a pure core: depth limit, schedulers, age bound, FLUSH, the
 * read-ahead buffer; random load ends every command exactly once and in time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/drive/drive_core.h"

enum { COMMANDS = 64, BLOCK = 4096 };

static const struct drive_model disk = {
    .name = "test",
    .size_bytes = GIB,
    .rpm = 10000,
    .heads = 2,
    .seek_read = {300000, 4000000, 8000000},
    .seek_write = {500000, 5000000, 9000000},
    .overhead_ns = 100000,
    .outer_bytes_per_s = 100000000,
    .inner_bytes_per_s = 100000000,
    .queue_depth = 4,
};

static struct drive_core core;
static struct drive_counters counters;
static struct drive_command commands[COMMANDS];

static void start(const struct drive_model *model, const char *scheduler)
{
	counters = (struct drive_counters){0};
	memset(commands, 0, sizeof commands);
	assert_int_equal(drive_core_init(&core, model, drive_scheduler_find(scheduler),
					 model->size_bytes, &counters),
			 0);
}

static void add_bytes(unsigned index, enum io_op op, uint64_t offset, uint64_t length,
		      uint64_t now_ns)
{
	commands[index].op = op;
	commands[index].offset_bytes = offset;
	commands[index].length_bytes = op == IO_FLUSH ? 0 : length;
	drive_core_add(&core, &commands[index], now_ns);
}

static void add(unsigned index, enum io_op op, uint64_t offset, uint64_t now_ns)
{
	add_bytes(index, op, offset, BLOCK, now_ns);
}

/* The index of the next command to end; its instant. */
static unsigned take(uint64_t *ret_ns)
{
	for (;;) {
		uint64_t now_ns = drive_core_next_ns(&core);
		assert_true(now_ns != DRIVE_CORE_NEVER);
		struct drive_command *command = drive_core_take(&core, now_ns);
		if (!command)
			continue;
		assert_int_equal(command->due_ns, now_ns);
		*ret_ns = now_ns;
		return (unsigned)(command - commands);
	}
}

static void expect_order(const char *expected)
{
	char got[COMMANDS + 1] = "";
	uint64_t now_ns;
	for (size_t i = 0; i < strlen(expected); i++)
		got[i] = (char)('a' + take(&now_ns));
	assert_string_equal(got, expected);
	assert_true(drive_core_next_ns(&core) == DRIVE_CORE_NEVER);
}

/* Five on tracks far apart, from the outside: e d c b a would be the sweep. */
static void add_five(void)
{
	const unsigned tenths[] = {9, 5, 7, 3, 1};
	for (unsigned i = 0; i < 5; i++)
		add(i, IO_READ, GIB / 10 / BLOCK * BLOCK * tenths[i], 0);
}

static void fifo(void **state)
{
	start(&disk, "fifo");
	add_five();
	expect_order("abcde");
}

static void elevator(void **state)
{
	static struct drive_model deep;
	deep = disk;
	deep.queue_depth = 32;
	start(&deep, "elevator");
	add_five();
	expect_order("edbca");
	/* The arm is at nine tenths and on its way inwards: it turns at the last. */
	uint64_t now_ns = core.free_ns;
	add(0, IO_READ, GIB / 10 * 8 / BLOCK * BLOCK, now_ns);
	add(1, IO_READ, GIB / 10 * 2 / BLOCK * BLOCK, now_ns);
	add(2, IO_READ, GIB / 100 * 95 / BLOCK * BLOCK, now_ns);
	expect_order("cab");
}

/* Only four of them are in the drive: the one at the outside has to wait for room. */
static void depth_limit(void **state)
{
	uint64_t now_ns;
	start(&disk, "elevator");
	add_five();
	assert_int_equal(core.inside, 4);
	assert_int_equal(take(&now_ns), 3);
	assert_int_equal(core.inside, 4);
	/* In since then, but not decoded when the arm set off again. */
	expect_order("bcae");
}

static void shortest_access(void **state)
{
	start(&disk, "satf");
	/* The same track, in the order the platter brings them; the head is 0.1 ms (one sixtieth of
	 * a track) in when they are decoded. */
	const uint64_t track = core.disk.geometry.zones[0].track_bytes;
	add(0, IO_READ, track / 4 * 3 / 512 * 512, 0);
	add(1, IO_READ, track / 4 / 512 * 512, 0);
	add(2, IO_READ, track / 2 / 512 * 512, 0);
	add(3, IO_READ, 0, 0);
	uint64_t now_ns;
	expect_order("bcad");
	/* Far in seek but soon in rotation is worse than near but late, and so on: the picked one
	 * is the least of all by brute force. */
	struct rng rng;
	rng_init(&rng, 5, 0);
	for (unsigned round = 0; round < 200; round++) {
		uint64_t begin_ns = core.free_ns;
		for (unsigned i = 0; i < 4; i++)
			add(i, rng_below(&rng, 2) ? IO_READ : IO_WRITE,
			    rng_below(&rng, GIB / BLOCK) * BLOCK, begin_ns);
		uint64_t at_ns = begin_ns + disk.overhead_ns;
		struct disk_head head = disk_head_at(&core.disk, at_ns);
		uint64_t least_ns = UINT64_MAX;
		for (unsigned i = 0; i < 4; i++) {
			struct command_times times =
			    disk_access(&core.disk, &head, &commands[i], at_ns);
			least_ns = MIN_OF(least_ns, times.seek_ns + times.rotation_ns);
		}
		unsigned first = take(&now_ns);
		assert_int_equal(commands[first].times.seek_ns + commands[first].times.rotation_ns,
				 least_ns);
		for (unsigned i = 1; i < 4; i++)
			(void)take(&now_ns);
	}
}

/* A stream of neighbours must not keep one far away waiting for ever. */
static void nothing_starves(void **state)
{
	const char *const names[] = {"satf", "elevator"};
	static struct drive_model quick; /* so that there always is a neighbour to choose */
	quick = disk;
	quick.overhead_ns = 1000;
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		uint64_t now_ns = 0, at = 0;
		bool far_ended = false;
		start(&quick, names[n]);
		for (unsigned i = 1; i < 4; i++, at += BLOCK)
			add(i, IO_WRITE, at, 0);
		add(0, IO_READ, GIB - BLOCK, 0);
		while (!far_ended) {
			unsigned ended = take(&now_ns);
			far_ended = ended == 0;
			if (!far_ended) {
				/* On one cylinder for ever. */
				add(ended, IO_WRITE,
				    at % (core.disk.geometry.zones[0].track_bytes / BLOCK * BLOCK),
				    now_ns);
				at += BLOCK;
			}
			/* patience plus the one under way and its own service */
			assert_true(now_ns < SCHEDULER_AGE_FACTOR * 4 * core.disk.mean_access_ns +
						 4 * core.disk.mean_access_ns);
		}
		assert_int_equal(counters.overdue, 1);
	}
}

static void flush_waits(void **state)
{
	uint64_t now_ns, last_ns;
	start(&disk, "fifo");
	add(0, IO_FLUSH, 0, 1000); /* nothing to wait for */
	assert_int_equal(take(&now_ns), 0);
	assert_int_equal(now_ns, 1000 + disk.overhead_ns);
	for (unsigned i = 0; i < 6; i++) /* two of them before the door */
		add(i, IO_WRITE, GIB / 8 * i, now_ns);
	add(6, IO_FLUSH, 0, now_ns);
	add(7, IO_WRITE, GIB / 8 * 7, now_ns);
	add(8, IO_FLUSH, 0, now_ns);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(take(&last_ns), i);
	assert_int_equal(take(&now_ns), 6);
	assert_int_equal(now_ns, last_ns + disk.overhead_ns);
	assert_int_equal(take(&last_ns), 7);
	assert_int_equal(take(&now_ns), 8);
	assert_int_equal(now_ns, last_ns + disk.overhead_ns);
}

static void read_ahead_hits(void **state)
{
	static struct drive_model buffered;
	uint64_t now_ns, then_ns;

	buffered = disk;
	buffered.buffer_bytes = 16 * MIB; /* segments of 1 MiB: ten milliseconds */
	buffered.link_bytes_per_s = 409600000;
	start(&buffered, "satf");
	add(0, IO_READ, 0, 0);
	(void)take(&now_ns);
	/* A millisecond later 100 kB more are in the buffer, and 200 kB are not. */
	then_ns = now_ns + 1000000;
	add(0, IO_READ, 64 * KIB, then_ns);
	(void)take(&now_ns);
	assert_int_equal(now_ns, then_ns + disk.overhead_ns + 10000);
	assert_int_equal(counters.buffer_hits, 1);
	assert_int_equal(counters.served, 1);
	add(0, IO_READ, 200 * KIB, now_ns);
	(void)take(&now_ns);
	assert_int_equal(counters.buffer_hits, 1);
	/* What is written is not in the buffer any more. */
	add(0, IO_WRITE, 64 * KIB, now_ns);
	(void)take(&now_ns);
	add(0, IO_READ, 64 * KIB, now_ns);
	(void)take(&now_ns);
	assert_int_equal(counters.buffer_hits, 1);
}

static void slow(void **state)
{
	uint64_t plain_ns, slow_ns;
	start(&disk, "satf");
	add(0, IO_READ, GIB / 2, 0);
	(void)take(&plain_ns);
	start(&disk, "satf");
	core.slow = (struct drive_slow){.factor = 3, .extra_ns = 7000};
	add(0, IO_READ, GIB / 2, 0);
	(void)take(&slow_ns);
	assert_int_equal(slow_ns - disk.overhead_ns, 3 * (plain_ns - disk.overhead_ns) + 7000);
}

static void random_body(const struct drive_model *model, const char *scheduler, uint64_t seed)
{
	struct rng rng;
	uint64_t now_ns = 0, added = 0, ended = 0;
	bool busy[COMMANDS] = {false};
	enum { ROUNDS = 3000 };

	start(model, scheduler);
	rng_init(&rng, seed, 0);
	for (unsigned round = 0; round < ROUNDS || ended < added; round++) {
		unsigned i = (unsigned)rng_below(&rng, COMMANDS);
		if (round < ROUNDS && !busy[i]) {
			uint64_t at = rng_below(&rng, 2) ? rng_below(&rng, GIB / BLOCK - 64)
							 : rng_below(&rng, 256);
			busy[i] = true;
			added++;
			add_bytes(i, (enum io_op)rng_below(&rng, 4), at * BLOCK,
				  (1 + rng_below(&rng, 64)) * BLOCK, now_ns);
		}
		/* A late shell as well as a punctual one. */
		uint64_t next_ns = drive_core_next_ns(&core);
		if (next_ns != DRIVE_CORE_NEVER && rng_below(&rng, 2))
			now_ns = MAX_OF(now_ns, next_ns) + rng_below(&rng, 3) * 1000000;
		struct drive_command *command = drive_core_take(&core, now_ns);
		if (!command)
			continue;
		unsigned index = (unsigned)(command - commands);
		if (!busy[index] || command->due_ns > now_ns ||
		    command->due_ns < command->arrival_ns + model->overhead_ns)
			fail_msg("seed %llu, %s, %s: command %u ended wrongly",
				 (unsigned long long)seed, model->name, scheduler, index);
		busy[index] = false;
		ended++;
	}
	assert_int_equal(counters.completed, added);
	assert_int_equal(core.inside, 0);
	assert_true(counters.busy_ns <= now_ns);
}

static void random_load(void **state)
{
	static struct drive_model buffered, chips;
	buffered = disk;
	buffered.buffer_bytes = 16 * MIB;
	buffered.queue_depth = 32;
	chips = disk;
	chips.name = "chips";
	chips.rpm = 0;
	chips.channels = 3;
	chips.transfer_bytes_per_s = 50000000;
	for (uint64_t seed = 1; seed <= 5; seed++)
		for (size_t s = 0; drive_scheduler_names[s]; s++) {
			random_body(&disk, drive_scheduler_names[s], seed);
			random_body(&buffered, drive_scheduler_names[s], seed);
			random_body(&chips, drive_scheduler_names[s], seed);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fifo),
	    cmocka_unit_test(elevator),
	    cmocka_unit_test(depth_limit),
	    cmocka_unit_test(shortest_access),
	    cmocka_unit_test(nothing_starves),
	    cmocka_unit_test(flush_waits),
	    cmocka_unit_test(read_ahead_hits),
	    cmocka_unit_test(slow),
	    cmocka_unit_test(random_load),
	};
	return cmocka_run_group_tests_name("drive_queue", tests, NULL, NULL);
}
