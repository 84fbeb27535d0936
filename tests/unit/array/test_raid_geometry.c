/* SPDX-License-Identifier: MIT
 *
 * Places worked out by hand, and the plans of parity writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/array.h"
#include "target/array/raid5_plan.h"
#include "target/array/raid_geometry.h"
#include "target/array/stripe_lock.h"

enum { C = 64 * 1024 };

static void striped(void **state)
{
	static const struct {
		unsigned columns;
		uint64_t offset;
		unsigned drive;
		uint64_t at, run;
	} rows[] = {
	    {3, 0, 0, 0, C},
	    {3, C - 512, 0, C - 512, 512},
	    {3, C, 1, 0, C},
	    {3, 2 * C + 100, 2, 100, C - 100},
	    {3, 3 * C, 0, C, C},
	    {3, 10 * C + 4096, 1, 3 * C + 4096, C - 4096},
	    {1, 7 * C + 1, 0, 7 * C + 1, C - 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct raid_place place = raid_place_striped(rows[i].columns, C, rows[i].offset);
		assert_int_equal(place.drive, rows[i].drive);
		assert_int_equal(place.offset_bytes, rows[i].at);
		assert_int_equal(place.run_bytes, rows[i].run);
	}
	/* Eleven mirrors: chunk 25 is on mirror 3 (drives 6 and 7), row 2. */
	struct raid_place place = raid_place_mirrored(11, C, 25 * C + 512);
	assert_int_equal(place.drive, 6);
	assert_int_equal(place.offset_bytes, 2 * C + 512);
	assert_int_equal(place.chunk, 25);
}

/* Four drives, left-symmetric:
 *   row 0:  D0 D1 D2 P
 *   row 1:  D1 D2 P  D0
 *   row 2:  D2 P  D0 D1
 *   row 3:  P  D0 D1 D2
 *   row 4:  D0 D1 D2 P                                                          */
static void left_symmetric(void **state)
{
	static const unsigned parity[] = {3, 2, 1, 0, 3};
	static const unsigned data[][3] = {{0, 1, 2}, {3, 0, 1}, {2, 3, 0}, {1, 2, 3}, {0, 1, 2}};
	const struct raid5_geometry geometry = {.sets = 1, .width = 4, .chunk_bytes = C};

	for (unsigned row = 0; row < 5; row++) {
		struct raid5_stripe at = raid5_stripe_at(&geometry, row * 3 * C + 700);
		assert_int_equal(at.stripe, row);
		assert_int_equal(at.row, row);
		assert_int_equal(at.set, 0);
		assert_int_equal(at.parity, parity[row]);
		assert_int_equal(at.within, 700);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(raid5_data_drive(4, at.parity, i), data[row][i]);
			assert_int_equal(raid5_data_index(4, at.parity, data[row][i]), i);
		}
	}
}

/* RAID 50, two sets of three: stripes alternate between the sets. */
static void striped_sets(void **state)
{
	static const struct {
		uint64_t offset;
		unsigned set;
		uint64_t row;
		unsigned parity;
	} rows[] = {
	    {0, 0, 0, 2},	  {2 * C, 1, 0, 2}, {4 * C, 0, 1, 1},
	    {6 * C + C, 1, 1, 1}, {8 * C, 0, 2, 0},
	};
	const struct raid5_geometry geometry = {.sets = 2, .width = 3, .chunk_bytes = C};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct raid5_stripe at = raid5_stripe_at(&geometry, rows[i].offset);
		assert_int_equal(at.set, rows[i].set);
		assert_int_equal(at.row, rows[i].row);
		assert_int_equal(at.parity, rows[i].parity);
	}
}

static void sets_of_raid50(void **state)
{
	static const unsigned rows[][2] = {
	    {22, 2}, {6, 2}, {9, 3}, {14, 2}, {15, 3}, {46, 2}, {25, 5},
	    {4, 0},  {5, 0}, {7, 0}, {23, 0}, {3, 0},  {0, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(raid50_sets(rows[i][0]), rows[i][1]);
}

static void counts_and_capacities(void **state)
{
	static const struct {
		const char *level;
		unsigned drives;
		int rc;
		uint64_t chunks; /* of ten a drive */
	} rows[] = {
	    {"raid0", 0, -EINVAL, 0},	{"raid0", 1, 0, 10},	    {"raid0", 22, 0, 220},
	    {"raid10", 1, -EINVAL, 0},	{"raid10", 3, -EINVAL, 0},  {"raid10", 2, 0, 10},
	    {"raid10", 22, 0, 110},	{"raid5", 2, -EINVAL, 0},   {"raid5", 3, 0, 20},
	    {"raid5", 7, 0, 60},	{"raid50", 5, -EINVAL, 0},  {"raid50", 6, 0, 40},
	    {"raid50", 22, 0, 200},	{"raid50", 23, -EINVAL, 0}, {"raid0", 65, -EINVAL, 0},
	    {"raid10", 66, -EINVAL, 0}, {"raid5", 65, -EINVAL, 0},  {"raid50", 66, -EINVAL, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct raid_ops *ops = raid_find(rows[i].level);
		char why[200] = "";
		assert_int_equal(ops->check(rows[i].drives, why, sizeof why), rows[i].rc);
		if (rows[i].rc) {
			char number[16];
			snprintf(number, sizeof number, "%u", rows[i].drives);
			assert_non_null(strstr(why, rows[i].level));
			assert_non_null(strstr(why, number));
			continue;
		}
		/* What does not fill a chunk is not used. */
		assert_int_equal(ops->usable_bytes(rows[i].drives, 10 * C + 4096, C),
				 rows[i].chunks * C);
	}
	assert_null(raid_find("raid7"));
	for (size_t i = 0; raid_level_names[i]; i++)
		assert_string_equal(raid_find(raid_level_names[i])->name, raid_level_names[i]);
}

/* Five drives, parity on 4: data drive i is drive i. */
static void plans(void **state)
{
	enum { P = 1 << 4 };
	static const struct {
		uint64_t lo, hi, unreadable, out;
		enum raid5_method method;
		uint64_t hull_lo, hull_hi, reads, writes;
	} rows[] = {
	    /* healthy: one chunk of four costs two reads to modify, three to reconstruct */
	    {4096, 8192, 0, 0, RAID5_READ_MODIFY_WRITE, 4096, 8192, 1 | P, 1 | P},
	    {0, 4 * C, 0, 0, RAID5_RECONSTRUCT_WRITE, 0, C, 0, 15 | P},
	    {0, 3 * C, 0, 0, RAID5_RECONSTRUCT_WRITE, 0, C, 8, 7 | P},
	    {C, 3 * C, 0, 0, RAID5_RECONSTRUCT_WRITE, 0, C, 1 | 8, 6 | P},
	    /* three chunks, the last one only in part: read it and the fourth */
	    {0, 2 * C + 512, 0, 0, RAID5_RECONSTRUCT_WRITE, 0, C, 4 | 8, 7 | P},
	    /* no parity drive; or one that can be written but not read */
	    {4096, 8192, P, P, RAID5_DATA_ONLY, 4096, 8192, 0, 1 | P},
	    {4096, 8192, P, 0, RAID5_RECONSTRUCT_WRITE, 4096, 8192, 2 | 4 | 8, 1 | P},
	    /* a data drive that the write leaves alone */
	    {4096, 8192, 2, 2, RAID5_READ_MODIFY_WRITE, 4096, 8192, 1 | P, 1 | P},
	    /* the data drive that is written: its new content goes into the parity */
	    {4096, 8192, 1, 1, RAID5_RECONSTRUCT_WRITE, 4096, 8192, 2 | 4 | 8, 1 | P},
	    /* of which only a part is written: its old content is needed */
	    {512, 2 * C, 1, 1, RAID5_REBUILD_WRITE, 0, C, 2 | 4 | 8 | P, 3 | P},
	    {512, 2 * C, 2, 2, RAID5_RECONSTRUCT_WRITE, 0, C, 1 | 4 | 8, 3 | P},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct raid5_write write = {5, 4, C, rows[i].lo, rows[i].hi};
		struct raid5_plan plan;
		assert_int_equal(raid5_plan_write(&write, rows[i].unreadable, rows[i].out, &plan),
				 0);
		assert_int_equal(plan.method, rows[i].method);
		assert_int_equal(plan.hull.lo, rows[i].hull_lo);
		assert_int_equal(plan.hull.hi, rows[i].hull_hi);
		assert_int_equal(plan.read_mask, rows[i].reads);
		assert_int_equal(plan.write_mask, rows[i].writes);
		if (plan.method == RAID5_REBUILD_WRITE)
			assert_int_equal(plan.lost, 0);
	}
	struct raid5_write write = {5, 4, C, 0, 512};
	struct raid5_plan plan = {.lost = 77};
	assert_int_equal(raid5_plan_write(&write, 3, 1, &plan), -EIO);
	assert_int_equal(plan.lost, 77);
}

/* ---- stripe locks ---- */

static struct stripe_lock *granted[8];
static unsigned granted_count;

static void on_granted(struct stripe_lock *lock)
{
	granted[granted_count++] = lock;
}

static void locks(void **state)
{
	static struct stripe_locks table;
	struct stripe_lock lock[] = {
	    {.stripe = 1, .lo = 0, .hi = 100},	 /* 0: held */
	    {.stripe = 2, .lo = 0, .hi = 100},	 /* 1: another stripe */
	    {.stripe = 1, .lo = 100, .hi = 200}, /* 2: other columns */
	    {.stripe = 1, .lo = 50, .hi = 150},	 /* 3: waits for 0 and 2 */
	    {.stripe = 1, .lo = 0, .hi = 10},	 /* 4: waits for 0 */
	    {.stripe = 1, .lo = 60, .hi = 70},	 /* 5: waits for 0, then behind 3 */
	};
	const bool held[] = {true, true, true, false, false, false};

	stripe_locks_init(&table);
	granted_count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(lock); i++) {
		lock[i].granted = on_granted;
		assert_int_equal(stripe_lock_acquire(&table, &lock[i]), held[i]);
	}
	stripe_lock_release(&table, &lock[0]);
	assert_int_equal(granted_count, 1);
	assert_ptr_equal(granted[0], &lock[4]);
	stripe_lock_release(&table, &lock[2]);
	assert_int_equal(granted_count, 2);
	assert_ptr_equal(granted[1], &lock[3]);
	stripe_lock_release(&table, &lock[3]);
	assert_int_equal(granted_count, 3);
	assert_ptr_equal(granted[2], &lock[5]);
	stripe_lock_release(&table, &lock[1]);
	stripe_lock_release(&table, &lock[4]);
	stripe_lock_release(&table, &lock[5]);
	assert_int_equal(granted_count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(striped),
	    cmocka_unit_test(left_symmetric),
	    cmocka_unit_test(striped_sets),
	    cmocka_unit_test(sets_of_raid50),
	    cmocka_unit_test(counts_and_capacities),
	    cmocka_unit_test(plans),
	    cmocka_unit_test(locks),
	};
	return cmocka_run_group_tests_name("raid_geometry", tests, NULL, NULL);
}
