/* SPDX-License-Identifier: MIT
 *
 * Faults of a drive: what they do, what cures them, that each can be undone; with and without a
 * model and checksums.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "target/drive/drive.h"
#include "target/drive/faults.h"

enum { SECTOR = 512, DRIVE_BYTES = 4 << 20, BLOCK = 8 * SECTOR };

static struct loop *loop;
static struct drive *drive;
static uint8_t buffer[BLOCK];
static struct iovec iov;
static uint64_t ended_ns;
static bool ended;

static void done(struct io *io)
{
	ended = true;
	ended_ns = loop_now_ns(loop);
}

static struct io request;

static void submit(enum io_op op, uint64_t offset, uint64_t length)
{
	bool moves = op == IO_READ || op == IO_WRITE;
	iov = (struct iovec){buffer, length};
	ended = false;
	request = (struct io){
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = moves ? &iov : NULL,
	    .iov_count = moves,
	    .done = done,
	};
	io_submit(&drive->layer, &request);
}

static int run(enum io_op op, uint64_t offset, uint64_t length)
{
	submit(op, offset, length);
	if (!ended)
		assert_int_equal(loop_run(loop), 0);
	assert_true(ended);
	return request.status;
}

static void open_drive(enum drive_timing timing, bool checksums)
{
	struct drive_config config = {
	    .name = "m1-drive00",
	    .model = drive_model_find("sas-15k-600"),
	    .size_bytes = DRIVE_BYTES,
	    .timing = timing,
	    .store = &store_memory_ops,
	    .checksums = checksums,
	};
	drive = drive_close(drive);
	assert_int_equal(drive_open(loop, &config, &drive, NULL), 0);
}

static int setup(void **state)
{
	return loop_new_virtual(0, &loop);
}

static int teardown(void **state)
{
	drive = drive_close(drive);
	loop = loop_free(loop);
	return 0;
}

static void media_errors(void **state)
{
	for (int timing = 0; timing < 2; timing++) {
		open_drive((enum drive_timing)timing, timing);
		memset(buffer, 0x5a, sizeof buffer);
		assert_int_equal(run(IO_WRITE, 0, BLOCK), 0);
		/* Whole sectors, whatever was asked for. */
		assert_int_equal(drive_add_media_error(drive, 3 * SECTOR + 7, 1), 0);
		assert_int_equal(run(IO_READ, 0, BLOCK), -EIO);
		assert_int_equal(run(IO_READ, 3 * SECTOR, SECTOR), -EIO);
		assert_int_equal(run(IO_READ, 0, 3 * SECTOR), 0);
		assert_int_equal(run(IO_READ, 4 * SECTOR, 2 * SECTOR), 0);
		assert_int_equal(drive->counters.media_errors, 2);
		/* A write cures what it covers, and so does UNMAP. */
		assert_int_equal(drive_add_media_error(drive, 4 * SECTOR, 4 * SECTOR), 0);
		assert_int_equal(run(IO_WRITE, 2 * SECTOR, 3 * SECTOR), 0);
		assert_int_equal(run(IO_READ, 0, 5 * SECTOR), 0);
		assert_int_equal(run(IO_READ, 5 * SECTOR, SECTOR), -EIO);
		assert_int_equal(run(IO_UNMAP, 5 * SECTOR, SECTOR), 0);
		assert_int_equal(run(IO_READ, 5 * SECTOR, SECTOR), 0);
		assert_int_equal(buffer[0], 0);
		uint64_t offset, length;
		assert_true(drive_bad_range(drive, 0, &offset, &length));
		assert_int_equal(offset, 6 * SECTOR);
		assert_int_equal(length, 2 * SECTOR);
		assert_false(drive_bad_range(drive, 1, &offset, &length));
		assert_int_equal(drive_fault_state(drive).bad_bytes, 2 * SECTOR);
		assert_int_equal(drive_clear_media_errors(drive, 0, DRIVE_BYTES), 0);
		assert_int_equal(run(IO_READ, 0, BLOCK), 0);
		assert_int_equal(drive_add_media_error(drive, DRIVE_BYTES, SECTOR), -ERANGE);
		assert_int_equal(drive_add_media_error(drive, 0, 0), -ERANGE);
	}
}

static void media_table_is_bounded(void **state)
{
	open_drive(DRIVE_TIMING_NONE, false);
	for (unsigned i = 0; i < FAULT_RANGES_MAX; i++)
		assert_int_equal(drive_add_media_error(drive, i * 2 * SECTOR, SECTOR), 0);
	assert_int_equal(drive_add_media_error(drive, FAULT_RANGES_MAX * 2 * SECTOR, SECTOR),
			 -ENOSPC);
	assert_int_equal(drive_fault_state(drive).bad_ranges, FAULT_RANGES_MAX);
}

static unsigned bad_sectors_found(uint64_t seed)
{
	open_drive(DRIVE_TIMING_NONE, false);
	assert_int_equal(drive_set_media_error_rate(drive, 0.1, seed), 0);
	unsigned found = 0;
	for (unsigned i = 0; i < 500; i++)
		found += run(IO_READ, (uint64_t)i * BLOCK, BLOCK) == -EIO;
	/* What was found stays bad when no more are. */
	assert_int_equal(drive_set_media_error_rate(drive, 0, 0), 0);
	unsigned again = 0;
	for (unsigned i = 0; i < 500; i++)
		again += run(IO_READ, (uint64_t)i * BLOCK, BLOCK) == -EIO;
	assert_int_equal(found, again);
	assert_int_equal(drive_fault_state(drive).bad_bytes, found * SECTOR);
	return found;
}

static void media_error_rate(void **state)
{
	unsigned found = bad_sectors_found(1);
	assert_in_range(found, 25, 80);
	assert_int_equal(found, bad_sectors_found(1)); /* seeded */
	assert_int_equal(drive_set_media_error_rate(drive, 1.5, 0), -EINVAL);
}

static void corruption(void **state)
{
	uint8_t clean[BLOCK];
	for (int sums = 0; sums < 2; sums++) {
		open_drive(DRIVE_TIMING_NONE, sums);
		memset(buffer, 0x5a, sizeof buffer);
		memcpy(clean, buffer, sizeof clean);
		assert_int_equal(run(IO_WRITE, BLOCK, BLOCK), 0);
		assert_int_equal(drive_corrupt(drive, BLOCK, BLOCK, 3, 7), 0);
		assert_int_equal(drive_fault_state(drive).flipped_bits, 3);
		/* Without checksums nobody notices. */
		assert_int_equal(run(IO_READ, BLOCK, BLOCK), sums ? -EILSEQ : 0);
		assert_true(memcmp(buffer, clean, BLOCK) != 0);
		assert_int_equal(drive->counters.checksum_errors, sums);
		unsigned bad = 0;
		for (unsigned i = 0; i < 8; i++) {
			int status = run(IO_READ, BLOCK + i * SECTOR, SECTOR);
			bad += status == -EILSEQ || memcmp(buffer, clean, SECTOR) != 0;
		}
		assert_int_equal(bad, 3);
		/* Undone; also of sectors that were never written. */
		assert_int_equal(drive_corrupt(drive, 0, SECTOR, 1, 7), 0);
		assert_int_equal(run(IO_READ, 0, SECTOR), sums ? -EILSEQ : 0);
		assert_int_equal(drive_undo_corruption(drive), 0);
		assert_int_equal(run(IO_READ, BLOCK, BLOCK), 0);
		assert_memory_equal(buffer, clean, BLOCK);
		assert_int_equal(run(IO_READ, 0, SECTOR), 0);
		/* A rewrite cures, and then there is nothing to undo. */
		assert_int_equal(drive_corrupt(drive, BLOCK, BLOCK, 1000, 9), 0);
		assert_int_equal(drive_fault_state(drive).flipped_bits, 8);
		memset(buffer, 0x33, sizeof buffer);
		assert_int_equal(run(IO_WRITE, BLOCK, BLOCK), 0);
		assert_int_equal(drive_fault_state(drive).flipped_bits, 0);
		assert_int_equal(drive_undo_corruption(drive), 0);
		assert_int_equal(run(IO_READ, BLOCK, BLOCK), 0);
		assert_int_equal(buffer[17], 0x33);
		assert_int_equal(drive_corrupt(drive, 0, DRIVE_BYTES, FAULT_FLIPS_MAX + 1, 1),
				 -ENOSPC);
	}
}

static void error_after(void **state)
{
	open_drive(DRIVE_TIMING_NONE, false);
	assert_int_equal(drive_set_error_after(drive, 2, -EIO), 0);
	memset(buffer, 1, sizeof buffer);
	assert_int_equal(run(IO_WRITE, 0, BLOCK), 0);
	assert_int_equal(run(IO_READ, 0, BLOCK), 0);
	assert_int_equal(drive_fault_state(drive).good_commands_left, 0);
	memset(buffer, 2, sizeof buffer);
	assert_int_equal(run(IO_WRITE, 0, BLOCK), -EIO);
	assert_int_equal(run(IO_FLUSH, 0, 0), -EIO);
	assert_int_equal(drive_set_error_after(drive, 0, 0), 0);
	assert_int_equal(run(IO_READ, 0, BLOCK), 0);
	assert_int_equal(buffer[0], 1); /* the write that failed was not carried out */
	assert_int_equal(drive_set_error_after(drive, 0, 5), -EINVAL);
}

static void timeouts(void **state)
{
	for (int timing = 0; timing < 2; timing++) {
		open_drive((enum drive_timing)timing, false);
		assert_int_equal(drive_set_timeouts(drive, 1, 5 * NS_PER_S, 3), 0);
		uint64_t from_ns = loop_now_ns(loop);
		memset(buffer, 7, sizeof buffer);
		assert_int_equal(run(IO_WRITE, 0, BLOCK), -ETIMEDOUT);
		assert_int_equal(ended_ns, from_ns + 5 * NS_PER_S);
		assert_int_equal(drive->counters.timeouts, 1);
		assert_int_equal(drive_set_timeouts(drive, 0, 0, 0), 0);
		assert_int_equal(run(IO_READ, 0, BLOCK), 0);
		assert_int_equal(buffer[0], 0); /* not carried out */
	}
	/* Some of them only. */
	open_drive(DRIVE_TIMING_NONE, false);
	assert_int_equal(drive_set_timeouts(drive, 0.2, 1000, 3), 0);
	unsigned late = 0;
	for (unsigned i = 0; i < 500; i++)
		late += run(IO_READ, 0, BLOCK) == -ETIMEDOUT;
	assert_in_range(late, 60, 140);
	/* A drive that is drained has nothing hanging. */
	assert_int_equal(drive_set_timeouts(drive, 1, NS_PER_S, 3), 0);
	submit(IO_READ, 0, BLOCK);
	assert_false(ended);
	assert_int_equal(drive_fault_state(drive).held, 1);
	drive_drain(drive);
	assert_true(ended);
	assert_int_equal(drive->in_flight, 0);
}

static void slow(void **state)
{
	open_drive(DRIVE_TIMING_NONE, false);
	assert_int_equal(drive_set_slow(drive, 1, NS_PER_MS), 0);
	assert_int_equal(run(IO_READ, 0, BLOCK), 0);
	assert_int_equal(ended_ns, NS_PER_MS);
	assert_int_equal(drive_set_slow(drive, 1, 0), 0);
	submit(IO_READ, 0, BLOCK);
	assert_true(ended);
	assert_int_equal(drive_set_slow(drive, 0.5, 0), -EINVAL);

	open_drive(DRIVE_TIMING_MODELLED, false);
	assert_int_equal(drive_set_slow(drive, 100, 0), 0);
	assert_int_equal(run(IO_READ, DRIVE_BYTES / 2, BLOCK), 0);
	uint64_t busy_ns = drive->counters.busy_ns;
	assert_true(busy_ns > 100 * NS_PER_MS / 10);
	assert_int_equal(drive_clear_faults(drive), 0);
	assert_true(drive_fault_state(drive).slow_factor == 1);
	assert_int_equal(run(IO_READ, 0, BLOCK), 0);
	assert_true(drive->counters.busy_ns - busy_ns < 15 * NS_PER_MS);
}

static void all_undone(void **state)
{
	open_drive(DRIVE_TIMING_NONE, true);
	assert_int_equal(drive_add_media_error(drive, 0, BLOCK), 0);
	assert_int_equal(drive_corrupt(drive, BLOCK, BLOCK, 2, 1), 0);
	assert_int_equal(drive_set_media_error_rate(drive, 1, 1), 0);
	assert_int_equal(drive_set_timeouts(drive, 1, 1, 1), 0);
	assert_int_equal(drive_set_error_after(drive, 0, -EIO), 0);
	assert_int_equal(run(IO_READ, 4 * BLOCK, BLOCK), -EIO);
	assert_int_equal(drive_clear_faults(drive), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(run(IO_READ, (uint64_t)i * BLOCK, BLOCK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(media_errors, setup, teardown),
	    cmocka_unit_test_setup_teardown(media_table_is_bounded, setup, teardown),
	    cmocka_unit_test_setup_teardown(media_error_rate, setup, teardown),
	    cmocka_unit_test_setup_teardown(corruption, setup, teardown),
	    cmocka_unit_test_setup_teardown(error_after, setup, teardown),
	    cmocka_unit_test_setup_teardown(timeouts, setup, teardown),
	    cmocka_unit_test_setup_teardown(slow, setup, teardown),
	    cmocka_unit_test_setup_teardown(all_undone, setup, teardown),
	};
	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
