/* SPDX-License-Identifier: MIT
 *
 * What a request to a RAID set costs its drives, FLUSH and FUA on the way to them, the balance of
 * mirrors, and more updates at once than there is work space.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/bytes.h"
#include "tests/unit/array/rig.h"

enum { CHUNK = 8192, ROWS = 12 };

static void sum_up(const struct rig *rig, struct fault *sum)
{
	*sum = (struct fault){0};
	for (unsigned i = 0; i < rig->drive_count; i++) {
		sum->reads += rig->faults[i].reads;
		sum->writes += rig->faults[i].writes;
		sum->flushes += rig->faults[i].flushes;
		sum->fua_writes += rig->faults[i].fua_writes;
		sum->unmaps += rig->faults[i].unmaps;
	}
}

static void costs(void **state)
{
	static const struct {
		const char *level;
		unsigned drives;
		enum io_op op;
		uint64_t offset, length;
		uint64_t reads, writes, unmaps;
	} rows[] = {
	    {"raid0", 4, IO_READ, 0, 3 * CHUNK, 3, 0, 0},
	    {"raid10", 4, IO_READ, 4096, 4096, 1, 0, 0},
	    {"raid10", 4, IO_WRITE, 4096, 4096, 0, 2, 0},
	    {"raid10", 4, IO_UNMAP, 0, CHUNK, 0, 0, 2},
	    {"raid5", 5, IO_READ, 4096, 4096, 1, 0, 0},
	    {"raid5", 5, IO_WRITE, 4096, 4096, 2, 2, 0},	/* read-modify-write */
	    {"raid5", 5, IO_WRITE, 0, 4 * CHUNK, 0, 5, 0},	/* full stripe */
	    {"raid5", 5, IO_WRITE, 0, 3 * CHUNK, 1, 4, 0},	/* reconstruct-write */
	    {"raid5", 5, IO_WRITE, CHUNK - 512, 1024, 4, 4, 0}, /* cut between two chunks */
	    {"raid5", 5, IO_UNMAP, 0, 4 * CHUNK, 0, 0, 5},
	    {"raid50", 6, IO_WRITE, 0, 4 * CHUNK, 0, 6, 0}, /* a full stripe of each set */
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig rig;
		struct fault sum;
		static uint8_t data[4 * CHUNK];
		rig_open(&rig, rows[i].level, rows[i].drives, ROWS * CHUNK, CHUNK,
			 DRIVE_TIMING_NONE, 1);
		void *buffer = rows[i].op == IO_UNMAP ? NULL : data;
		assert_int_equal(
		    io_wait(rig.loop, rig.set, rows[i].op, rows[i].offset, buffer, rows[i].length),
		    0);
		sum_up(&rig, &sum);
		assert_int_equal(sum.reads, rows[i].reads);
		assert_int_equal(sum.writes, rows[i].writes);
		assert_int_equal(sum.unmaps, rows[i].unmaps);
		rig_close(&rig);
	}
}

static void note_done(struct io *io)
{
	*(int *)io->owner = io->status;
}

static void flush_and_fua(void **state)
{
	static const char *const levels[] = {"raid0", "raid10", "raid5", "raid50"};
	static uint8_t data[4096];
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct rig rig;
		struct fault sum;
		struct iovec iov = {data, sizeof data};
		int status = 1;
		struct io fua = {.op = IO_WRITE,
				 .flags = IO_FUA,
				 .length_bytes = sizeof data,
				 .iov = &iov,
				 .iov_count = 1,
				 .done = note_done,
				 .owner = &status};
		rig_open(&rig, levels[i], 6, ROWS * CHUNK, CHUNK, DRIVE_TIMING_NONE, 1);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_FLUSH, 0, NULL, 0), 0);
		io_submit(rig.set, &fua);
		assert_int_equal(status, 0);
		sum_up(&rig, &sum);
		assert_int_equal(sum.flushes, 6);
		assert_int_equal(sum.fua_writes, i == 0 ? 1 : 2);
		/* A failed drive matters to FLUSH only where nobody stands in for it. */
		drive_set_failed(rig.drives[0], true);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_FLUSH, 0, NULL, 0), i ? 0 : -EIO);
		drive_set_failed(rig.drives[1], true);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_FLUSH, 0, NULL, 0), -EIO);
		assert_int_equal(
		    io_wait(rig.loop, rig.set, IO_READ, rig.set->size_bytes, data, 4096), -ERANGE);
		rig_close(&rig);
	}
}

/* Without a queue, rows alternate between the halves; with one, the shorter queue wins. */
static void mirror_reads_are_balanced(void **state)
{
	struct rig rig;
	static uint8_t data[8][CHUNK];
	struct iovec iov[8];
	struct io ios[8];
	int status[8];

	rig_open(&rig, "raid10", 2, ROWS * CHUNK, CHUNK, DRIVE_TIMING_NONE, 1);
	for (int row = 0; row < 8; row++)
		assert_int_equal(
		    io_wait(rig.loop, rig.set, IO_READ, (uint64_t)row * CHUNK, data[0], CHUNK), 0);
	assert_int_equal(rig.faults[0].reads, 4);
	assert_int_equal(rig.faults[1].reads, 4);
	rig_close(&rig);

	rig_open(&rig, "raid10", 2, ROWS * CHUNK, CHUNK, DRIVE_TIMING_MODELLED, 1);
	for (int i = 0; i < 8; i++) { /* all of row 0 */
		iov[i] = (struct iovec){data[i], 512};
		ios[i] = (struct io){.op = IO_READ,
				     .length_bytes = 512,
				     .iov = &iov[i],
				     .iov_count = 1,
				     .done = note_done,
				     .owner = &status[i]};
		status[i] = 1;
		io_submit(rig.set, &ios[i]);
	}
	assert_int_equal(rig.drives[0]->in_flight, 4);
	assert_int_equal(rig.drives[1]->in_flight, 4);
	assert_int_equal(loop_run(rig.loop), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(status[i], 0);
	rig_close(&rig);
}

/* More stripes at once than there is work space, one hot stripe, then a close in the middle. */
static void crowd(void **state)
{
	struct rig rig;
	enum { COUNT = 600 };
	static uint8_t data[4096];
	static struct io ios[COUNT];
	static int status[COUNT];
	struct iovec iov = {data, sizeof data};

	rig_open(&rig, "raid5", 5, 600 * CHUNK, CHUNK, DRIVE_TIMING_MODELLED, 1);
	for (int i = 0; i < COUNT; i++) {
		uint64_t stripe = i % 2 ? 0 : (uint64_t)i;
		ios[i] = (struct io){.op = IO_WRITE,
				     .offset_bytes = stripe * 4 * CHUNK,
				     .length_bytes = sizeof data,
				     .iov = &iov,
				     .iov_count = 1,
				     .done = note_done,
				     .owner = &status[i]};
		status[i] = 1;
		io_submit(rig.set, &ios[i]);
	}
	for (int i = 0; i < 50; i++)
		assert_int_equal(loop_turn(rig.loop, true), 0);
	for (unsigned i = 0; i < rig.drive_count; i++)
		drive_drain(rig.drives[i]);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(status[i], 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(costs),
	    cmocka_unit_test(flush_and_fua),
	    cmocka_unit_test(mirror_reads_are_balanced),
	    cmocka_unit_test(crowd),
	};
	return cmocka_run_group_tests_name("raid_cost", tests, NULL, NULL);
}
