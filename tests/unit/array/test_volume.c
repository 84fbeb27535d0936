/* SPDX-License-Identifier: MIT
 *
 * Volumes: thin space and its return, placement over members, requests across pages, the full
 * pool, UNMAP beside other requests.
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
#include "target/array/volume.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/rig.h"

#define P POOL_PAGE_BYTES

static struct lab lab;

static uint32_t used(size_t member)
{
	return group_member_at(lab.open, member)->used_pages;
}

static void touch(const char *volume, uint64_t page)
{
	static uint8_t sector[512] = {1};
	assert_int_equal(lab_io(&lab, volume, IO_WRITE, page * P, sector, 512), 0);
}

static void assert_zero(const char *volume, uint64_t offset, uint64_t length)
{
	uint8_t *data = malloc(length);
	memset(data, 0xcc, length);
	assert_int_equal(lab_io(&lab, volume, IO_READ, offset, data, length), 0);
	for (uint64_t i = 0; i < length; i++)
		if (data[i])
			fail_msg("byte %llu is not zero", (unsigned long long)(offset + i));
	free(data);
}

static void thin_space(void **state)
{
	uint8_t out[1024], in[1024];
	bool mapped;
	uint64_t run;

	lab_init(&lab);
	lab_member(&lab, "m1", "raid10", 4, 64 * MIB);
	lab_volume(&lab, "v", 5 * P + 4096, true);
	lab_opens(&lab);
	struct volume *volume = group_find_volume(lab.open, "v");
	assert_int_equal(volume_allocated_bytes(volume), 0);
	assert_zero("v", 0, 512);
	assert_zero("v", P - 4096, 8192);
	assert_int_equal(volume_allocated_bytes(volume), 0);

	/* Across a border: two pages. */
	memset(out, 0x77, sizeof out);
	assert_int_equal(lab_io(&lab, "v", IO_WRITE, 2 * P - 512, out, 1024), 0);
	assert_int_equal(volume_allocated_bytes(volume), 2 * P);
	assert_int_equal(lab_io(&lab, "v", IO_READ, 2 * P - 512, in, 1024), 0);
	assert_memory_equal(in, out, 1024);
	assert_zero("v", 2 * P - 1024, 512);
	volume_map_status(volume, 512, &mapped, &run);
	assert_false(mapped);
	assert_int_equal(run, P - 512);
	volume_map_status(volume, P, &mapped, &run);
	assert_true(mapped);
	assert_int_equal(run, 2 * P);
	volume_map_status(volume, 4 * P, &mapped, &run);
	assert_false(mapped);
	assert_int_equal(run, P + 4096);
	/* A read over mapped and unmapped pages. */
	uint8_t *large = malloc(3 * P);
	assert_int_equal(lab_io(&lab, "v", IO_READ, P, large, 3 * P), 0);
	assert_memory_equal(large + P - 512, out, 1024);
	assert_int_equal(large[0] | large[P - 513] | large[P + 512] | large[3 * P - 1], 0);
	free(large);

	assert_int_equal(lab_io(&lab, "v", IO_READ, 5 * P + 4096, in, 512), -ERANGE);
	assert_int_equal(lab_io(&lab, "v", IO_FLUSH, 0, NULL, 0), 0);
	const struct volume_counters *counters = volume_counters(volume);
	assert_int_equal(counters->writes, 1);
	assert_int_equal(counters->write_bytes, 1024);
	assert_int_equal(counters->flushes, 1);
	assert_int_equal(counters->errors, 1);
	assert_int_equal(member_counters(group_member_at(lab.open, 0))->errors, 0);
	lab_close(&lab);
}

static void spread_by_capacity(void **state)
{
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 2, 8 * P);
	lab_member(&lab, "m2", "raid0", 1, 8 * P);
	lab_volume(&lab, "v", 24 * P, true);
	lab_opens(&lab);
	for (uint64_t page = 0; page < 24; page++) {
		touch("v", page);
		/* 2 : 1 at every moment, but for the page under way */
		int64_t m1 = used(0), m2 = used(1);
		assert_true(m1 - 2 * m2 <= 2 && m1 - 2 * m2 >= -2);
	}
	assert_int_equal(used(0), 16);
	assert_int_equal(used(1), 8);
	lab_close(&lab);
}

/* Two volumes written in turn: each on both members. */
static void each_volume_is_spread(void **state)
{
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 16 * P);
	lab_member(&lab, "m2", "raid0", 1, 16 * P);
	lab_volume(&lab, "a", 8 * P, true);
	lab_volume(&lab, "b", 8 * P, true);
	lab_opens(&lab);
	for (uint64_t page = 0; page < 8; page++) {
		touch("a", page);
		touch("b", page);
		assert_int_equal(used(0), page + 1);
		assert_int_equal(used(1), page + 1);
	}
	assert_int_equal(group_find_volume(lab.open, "a")->member_pages[0], 4);
	assert_int_equal(group_find_volume(lab.open, "b")->member_pages[0], 4);
	lab_close(&lab);
}

static void at_most_three_members(void **state)
{
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 2 * P);
	lab_member(&lab, "m2", "raid0", 1, 2 * P);
	lab_member(&lab, "m3", "raid0", 1, 2 * P);
	lab_member(&lab, "m4", "raid0", 1, 2 * P);
	lab_volume(&lab, "v", 9 * P, true);
	lab_opens(&lab);
	for (uint64_t page = 0; page < 6; page++)
		touch("v", page);
	assert_int_equal(used(3), 0);
	touch("v", 6); /* the three are full: a fourth takes over */
	assert_int_equal(used(3), 1);
	touch("v", 7);
	static uint8_t sector[512];
	assert_int_equal(lab_io(&lab, "v", IO_WRITE, 8 * P, sector, 512), -ENOSPC);
	lab_close(&lab);
}

static void full_pool(void **state)
{
	static uint8_t data[4096], in[4096];
	lab_init(&lab);
	lab_member(&lab, "m1", "raid5", 3, P + 4096);
	lab_volume(&lab, "a", 2 * P, true);
	lab_volume(&lab, "b", 4 * P, true);
	lab_opens(&lab);
	memset(data, 0x42, sizeof data);
	assert_int_equal(lab_io(&lab, "a", IO_WRITE, P - 2048, data, 4096), 0);
	assert_int_equal(lab_io(&lab, "b", IO_WRITE, 3 * P, data, 4096), -ENOSPC);
	assert_int_equal(volume_counters(group_find_volume(lab.open, "b"))->errors, 1);
	assert_zero("b", 3 * P, 4096);
	assert_int_equal(lab_io(&lab, "a", IO_READ, P - 2048, in, 4096), 0);
	assert_memory_equal(in, data, 4096);
	/* Space that comes back can be used at once, and shows nothing of its last owner. */
	assert_int_equal(lab_io(&lab, "a", IO_UNMAP, 0, NULL, P), 0);
	assert_int_equal(volume_allocated_bytes(group_find_volume(lab.open, "a")), P);
	assert_int_equal(lab_io(&lab, "b", IO_WRITE, 3 * P, data, 512), 0);
	assert_zero("b", 3 * P + 512, P - 512);
	assert_zero("a", P - 2048, 2048);
	assert_int_equal(lab_io(&lab, "a", IO_READ, P, in, 2048), 0);
	assert_memory_equal(in, data, 2048);
	lab_close(&lab);
}

static void thick_volumes(void **state)
{
	struct err err = {0};
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 4 * P);
	lab_volume(&lab, "a", 2 * P + 512, false);
	lab_opens(&lab);
	struct volume *volume = group_find_volume(lab.open, "a");
	assert_int_equal(volume_allocated_bytes(volume), 3 * P);
	assert_false(volume_is_thin(volume));
	touch("a", 0);
	assert_int_equal(lab_io(&lab, "a", IO_UNMAP, 0, NULL, 2 * P + 512), 0);
	assert_int_equal(volume_allocated_bytes(volume), 3 * P);
	assert_zero("a", 0, 4096);
	lab_close(&lab);

	lab_volume(&lab, "b", 2 * P, false);
	assert_int_equal(lab_open(&lab, &err), -ENOSPC);
	assert_non_null(strstr(err.what, "volume b does not fit into pool default"));
}

/* ---- UNMAP and requests under way ---- */

static void note_done(struct io *io)
{
	*(int *)io->owner = io->status;
}

/* The SSD serves an UNMAP while the long write before it is still under way. */
static void unmap_waits_and_holds(void **state)
{
	static uint8_t first[65536], second[4096], in[4096];
	struct iovec iov[2] = {{first, sizeof first}, {second, sizeof second}};
	int status[4] = {1, 1, 1, 1};

	lab_init(&lab);
	struct member_config *member = lab_member(&lab, "m1", "raid0", 1, 16 * MIB);
	/* One page: the second write gets the one that the first was on. */
	member->timing = DRIVE_TIMING_MODELLED;
	member->drives.model = 5;
	assert_string_equal(drive_model_names[5], "ssd-sas-200");
	lab_volume(&lab, "v", 2 * P, true);
	lab_opens(&lab);
	memset(first, 1, sizeof first);
	memset(second, 2, sizeof second);
	struct io ios[4] = {
	    {.op = IO_WRITE, .length_bytes = 65536, .iov = &iov[0], .iov_count = 1},
	    {.op = IO_UNMAP, .length_bytes = 2 * P},
	    {.op = IO_UNMAP, .length_bytes = 2 * P},
	    {.op = IO_WRITE,
	     .offset_bytes = 65536,
	     .length_bytes = 4096,
	     .iov = &iov[1],
	     .iov_count = 1},
	};
	for (int i = 0; i < 4; i++) {
		ios[i].done = note_done;
		ios[i].owner = &status[i];
		io_submit(lab_layer(&lab, "v"), &ios[i]);
	}
	struct volume *volume = group_find_volume(lab.open, "v");
	assert_int_equal(volume->map.entries[0].in_flight, 1);
	assert_int_equal(volume->map.entries[0].leaving, 1);
	assert_int_equal(loop_run(lab.loop), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(status[i], 0);
	assert_zero("v", 0, 65536);
	assert_int_equal(lab_io(&lab, "v", IO_READ, 65536, in, 4096), 0);
	assert_memory_equal(in, second, 4096);
	assert_int_equal(volume_allocated_bytes(volume), P);
	lab_close(&lab);
}

static void unmap_that_fails_keeps_the_page(void **state)
{
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 2, 64 * MIB);
	lab_volume(&lab, "v", 2 * P, true);
	lab_opens(&lab);
	touch("v", 0);
	drive_set_failed(member_drive(group_member_at(lab.open, 0), 1), true);
	assert_int_equal(lab_io(&lab, "v", IO_UNMAP, 0, NULL, P), -EIO);
	assert_int_equal(volume_allocated_bytes(group_find_volume(lab.open, "v")), P);
	drive_set_failed(member_drive(group_member_at(lab.open, 0), 1), false);
	assert_int_equal(lab_io(&lab, "v", IO_UNMAP, 0, NULL, P), 0);
	assert_int_equal(volume_allocated_bytes(group_find_volume(lab.open, "v")), 0);
	lab_close(&lab);
}

/* The loop is closed with requests under way: they end, all of them, before it is gone. */
static void close_in_the_middle(void **state)
{
	static uint8_t data[65536];
	struct iovec iov = {data, sizeof data};
	struct io ios[40];
	int status[40];

	lab_init(&lab);
	lab_member(&lab, "m1", "raid50", 6, 64 * MIB)->timing = DRIVE_TIMING_MODELLED;
	lab_volume(&lab, "v", 4 * P, true);
	lab_opens(&lab);
	for (unsigned i = 0; i < 40; i++) {
		status[i] = 1;
		ios[i] = (struct io){
		    .op = i % 8 == 7 ? IO_UNMAP : IO_WRITE,
		    .offset_bytes = i % 8 == 7 ? i / 8 % 4 * P : i * (P / 20),
		    .length_bytes = i % 8 == 7 ? P : sizeof data,
		    .iov = &iov,
		    .iov_count = i % 8 != 7,
		    .done = note_done,
		    .owner = &status[i],
		};
		io_submit(lab_layer(&lab, "v"), &ios[i]);
	}
	assert_int_equal(loop_run_until(lab.loop, 5 * NS_PER_MS), 0);
	lab_close(&lab);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(status[i], 0);
}

/* ---- recursion ---- */

struct chain {
	struct io io;
	struct iovec iov;
	struct io_layer *layer;
	struct rng rng;
	unsigned left;
};

static void chain_next(struct io *io)
{
	struct chain *chain = io->owner;
	assert_int_equal(io->status, 0);
	if (chain->left-- == 0)
		return;
	io->offset_bytes = rng_below(&chain->rng, 4 * P / 4096) * 4096;
	io->op = chain->left % 3 ? IO_READ : IO_WRITE;
	io_submit(chain->layer, io);
}

/* A submitter that goes on from within the completion must not climb up the stack. */
static void long_chain(void **state)
{
	static uint8_t data[4096];
	lab_init(&lab);
	lab_member(&lab, "m1", "raid5", 3, 64 * MIB);
	lab_volume(&lab, "v", 4 * P, true);
	lab_opens(&lab);
	struct chain chain = {.iov = {data, sizeof data}, .left = 300000};
	rng_init(&chain.rng, 3, 0);
	chain.layer = lab_layer(&lab, "v");
	chain.io = (struct io){
	    .op = IO_WRITE,
	    .length_bytes = 4096,
	    .iov = &chain.iov,
	    .iov_count = 1,
	    .done = chain_next,
	    .owner = &chain,
	};
	io_submit(chain.layer, &chain.io);
	assert_int_equal(chain.left, UINT32_MAX);
	lab_close(&lab);
}

/* ---- the group ---- */

static void identities(void **state)
{
	uint8_t naa[2][NAA_BYTES];
	lab_init(&lab);
	lab_member(&lab, "m1", "raid10", 6, 64 * MIB)->drives.spares = 2;
	lab_volume(&lab, "a", P, true);
	lab_volume(&lab, "b", P, true)->block_bytes = 4096;
	for (int round = 0; round < 2; round++) {
		lab_opens(&lab);
		assert_int_equal(group_volume_count(lab.open), 2);
		assert_string_equal(volume_name(group_volume(lab.open, 1)), "b");
		assert_null(group_volume(lab.open, 2));
		assert_int_equal(volume_block_bytes(group_volume(lab.open, 1)), 4096);
		const uint8_t *a = volume_naa(group_volume(lab.open, 0));
		assert_int_equal(a[0] >> 4, 6);
		assert_memory_not_equal(a, volume_naa(group_volume(lab.open, 1)), NAA_BYTES);
		memcpy(naa[round], a, NAA_BYTES);
		assert_int_equal(group_member_count(lab.open), 1);
		struct member *member = group_member_at(lab.open, 0);
		assert_string_equal(member_name(member), "m1");
		assert_int_equal(member_drive_count(member), 6);
		assert_string_equal(member_drive(member, 5)->name, "m1-drive05");
		assert_null(member_drive(member, 6));
		assert_true(member_drive_is_good(member, 3));
		assert_false(member_drive_is_good(member, 4)); /* a spare */
		assert_int_equal(member->page_count, 2 * 64 * MIB / P);
		lab_close(&lab);
	}
	assert_memory_equal(naa[0], naa[1], NAA_BYTES);
}

static void impossible_groups(void **state)
{
	struct err err = {0};
	lab_init(&lab);
	lab_member(&lab, "m1", "raid10", 5, 64 * MIB);
	assert_int_equal(lab_open(&lab, &err), -EINVAL);
	assert_non_null(strstr(err.what, "member m1: raid10 needs an even number"));

	err = (struct err){0};
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, MIB);
	assert_int_equal(lab_open(&lab, &err), -EINVAL);
	assert_non_null(strstr(err.what, "less than one page"));

	err = (struct err){0};
	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 64 * MIB);
	lab_volume(&lab, "v", P, true)->pool = "other";
	assert_int_equal(lab_open(&lab, &err), -EINVAL);
	assert_non_null(strstr(err.what, "unknown pool other"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(thin_space),
	    cmocka_unit_test(spread_by_capacity),
	    cmocka_unit_test(each_volume_is_spread),
	    cmocka_unit_test(at_most_three_members),
	    cmocka_unit_test(full_pool),
	    cmocka_unit_test(thick_volumes),
	    cmocka_unit_test(unmap_waits_and_holds),
	    cmocka_unit_test(unmap_that_fails_keeps_the_page),
	    cmocka_unit_test(close_in_the_middle),
	    cmocka_unit_test(long_chain),
	    cmocka_unit_test(identities),
	    cmocka_unit_test(impossible_groups),
	};
	return cmocka_run_group_tests_name("volume", tests, NULL, NULL);
}
