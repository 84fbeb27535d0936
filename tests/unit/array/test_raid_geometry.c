/* SPDX-License-Identifier: MIT
 *
 * Places worked out by hand, what every layout must have in common, counts and capacities, stripe
 * locks.
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
#include "target/array/raid_geometry.h"
#include "target/array/raid_levels.h"
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
}

static unsigned drive_of(const struct stripe_geometry *geometry, uint64_t stripe, unsigned column)
{
	struct stripe_at at = stripe_at(geometry, stripe);
	return stripe_place(geometry, &at, column).drive;
}

/* Eleven mirrors: chunk 25 is on mirror 3 (drives 6 and 7), row 2. */
static void mirrored(void **state)
{
	struct stripe_geometry geometry = raid_geometry(raid10_shape, 22, 10 * C, C);
	struct stripe_at at = stripe_at(&geometry, 25);
	assert_int_equal(geometry.sets, 11);
	assert_int_equal(stripe_place(&geometry, &at, 0).drive, 6);
	assert_int_equal(stripe_place(&geometry, &at, 1).drive, 7);
	assert_int_equal(stripe_place(&geometry, &at, 1).offset_bytes, 2 * C);
	geometry = raid_geometry(raid1_shape, 3, 10 * C, C);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(drive_of(&geometry, 7, i), i);
}

/* Left-symmetric:
 *   RAID 5, row 0:  D0 D1 D2 P         RAID 6, row 0:  Q  D0 D1 D2 P
 *           row 1:  D1 D2 P  D0                row 1:  D0 D1 D2 P  Q
 *           row 2:  D2 P  D0 D1                row 2:  D1 D2 P  Q  D0
 *           row 3:  P  D0 D1 D2                row 3:  D2 P  Q  D0 D1
 *           row 4:  D0 D1 D2 P                 row 4:  P  Q  D0 D1 D2                  */
static void left_symmetric(void **state)
{
	static const unsigned raid5[][4] = {
	    {0, 1, 2, 3}, {3, 0, 1, 2}, {2, 3, 0, 1}, {1, 2, 3, 0}, {0, 1, 2, 3},
	};
	static const unsigned raid6[][5] = {
	    {1, 2, 3, 4, 0}, {0, 1, 2, 3, 4}, {4, 0, 1, 2, 3}, {3, 4, 0, 1, 2}, {2, 3, 4, 0, 1},
	};
	struct stripe_geometry p = raid_geometry(raid5_shape, 4, 10 * C, C);
	struct stripe_geometry pq = raid_geometry(raid6_shape, 5, 10 * C, C);

	for (unsigned row = 0; row < 5; row++) {
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(drive_of(&p, row, i), raid5[row][i]);
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(drive_of(&pq, row, i), raid6[row][i]);
		assert_int_equal(stripe_at(&p, row).offset_bytes, row * C);
	}
}

/* RAID 50, two sets of three: stripes alternate between the sets. */
static void striped_sets(void **state)
{
	static const struct {
		unsigned base;
		uint64_t row;
		unsigned parity;
	} rows[] = {{0, 0, 2}, {3, 0, 2}, {0, 1, 1}, {3, 1, 1}, {0, 2, 0}};
	struct stripe_geometry geometry = raid_geometry(raid50_shape, 6, 10 * C, C);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct stripe_at at = stripe_at(&geometry, i);
		assert_int_equal(at.base, rows[i].base);
		assert_int_equal(at.offset_bytes, rows[i].row * C);
		assert_int_equal(drive_of(&geometry, i, 2), rows[i].base + rows[i].parity);
	}
}

static void divisions_into_sets(void **state)
{
	static const unsigned rows[][3] = {
	    {22, 2, 2}, {6, 2, 0},  {8, 2, 2},	{9, 3, 0}, {14, 2, 2}, {15, 3, 3}, {46, 2, 2},
	    {25, 5, 5}, {12, 2, 2}, {21, 3, 3}, {4, 0, 0}, {5, 0, 0},  {7, 0, 0},  {23, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(stripe_sets(rows[i][0], 3), rows[i][1]);
		assert_int_equal(stripe_sets(rows[i][0], 4), rows[i][2]);
	}
}

static const struct level {
	raid_shape *shape;
	unsigned drives;
} levels[] = {
    {raid1_shape, 2},  {raid1_shape, 3},   {raid10_shape, 22}, {raid5_shape, 3},  {raid5_shape, 7},
    {raid5_shape, 64}, {raid50_shape, 22}, {raid50_shape, 9},  {raid6_shape, 4},  {raid6_shape, 24},
    {raid6_shape, 64}, {raid60_shape, 22}, {raid60_shape, 12}, {adapt_shape, 12}, {adapt_shape, 13},
    {adapt_shape, 17}, {adapt_shape, 24},  {adapt_shape, 64},
};

/* Every chunk of every drive belongs to one column at most, columns of a stripe are on different
 * drives, and all drives have the same share of data and of parity. */
static void layouts_are_sound(void **state)
{
	enum { ROWS = 4160 };
	static uint8_t taken[RAID_DRIVES_MAX][ROWS];

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		unsigned drives = levels[i].drives, data[RAID_DRIVES_MAX] = {0};
		unsigned parity[RAID_DRIVES_MAX] = {0};
		struct stripe_geometry geometry =
		    raid_geometry(levels[i].shape, drives, (uint64_t)ROWS * C, C);
		/* Whole turns of the rotation, so that shares are equal to the chunk. */
		uint64_t turn = (uint64_t)geometry.sets * geometry.width;
		if (geometry.kind == STRIPE_PERMUTED)
			turn = (uint64_t)geometry.slice_stripes * drives;
		uint64_t stripes = geometry.stripe_count / turn * turn;

		memset(taken, 0, sizeof taken);
		assert_true(stripes > 0);
		for (uint64_t stripe = 0; stripe < stripes; stripe++) {
			struct stripe_at at = stripe_at(&geometry, stripe);
			uint64_t seen = 0;
			for (unsigned column = 0; column < geometry.width; column++) {
				struct stripe_place place = stripe_place(&geometry, &at, column);
				assert_true(place.drive < drives);
				assert_int_equal(place.offset_bytes % C, 0);
				assert_true(place.offset_bytes / C < ROWS);
				assert_false(seen >> place.drive & 1);
				assert_false(taken[place.drive][place.offset_bytes / C]);
				seen |= UINT64_C(1) << place.drive;
				taken[place.drive][place.offset_bytes / C] = 1;
				(column < geometry.data ? data : parity)[place.drive]++;
			}
			for (unsigned spare = 0; geometry.slots && spare < 2; spare++)
				assert_false(seen >> stripe_spare_drive(&geometry, &at, spare) & 1);
		}
		for (unsigned drive = 1; drive < drives && !geometry.copies; drive++) {
			assert_int_equal(data[drive], data[0]);
			assert_int_equal(parity[drive], parity[0]);
		}
	}
}

/* Declustering: when a drive fails all others share the work of its rebuild about equally. */
static void rebuild_is_spread(void **state)
{
	enum { DRIVES = 24 };
	struct stripe_geometry geometry =
	    raid_geometry(adapt_shape, DRIVES, (uint64_t)DRIVES * ADAPT_ORDERS * 5 * C, C);
	unsigned partner[DRIVES] = {0}, least = UINT32_MAX, most = 0;

	for (uint64_t stripe = 0; stripe < geometry.stripe_count; stripe++) {
		uint64_t mask = 0;
		for (unsigned column = 0; column < geometry.width; column++)
			mask |= UINT64_C(1) << drive_of(&geometry, stripe, column);
		for (unsigned drive = 1; mask & 1 && drive < DRIVES; drive++)
			partner[drive] += mask >> drive & 1;
	}
	for (unsigned drive = 1; drive < DRIVES; drive++) {
		least = MIN_OF(least, partner[drive]);
		most = MAX_OF(most, partner[drive]);
	}
	assert_true(most < least * 3 / 2);
}

static void equallogic(void **state)
{
	struct raid_equallogic layout = {.active = 77};
	assert_int_equal(raid_equallogic_layout("raid10", 24, &layout), 0);
	assert_int_equal(layout.active, 22);
	assert_int_equal(layout.spares, 2);
	assert_int_equal(layout.sets, 11);
	assert_int_equal(raid_equallogic_layout("raid5", 7, &layout), 0);
	assert_int_equal(layout.active, 6);
	assert_int_equal(layout.spares, 1);
	assert_int_equal(raid_equallogic_layout("raid50", 24, &layout), 0);
	assert_int_equal(layout.sets, raid50_shape(layout.active).sets);
	layout.active = 77;
	assert_int_equal(raid_equallogic_layout("raid6", 5, &layout), -ENOENT);
	assert_int_equal(layout.active, 77);
	/* Whatever is documented must be possible: RAID 5 in several sets is RAID 50. */
	for (size_t i = 0; raid_level_names[i]; i++)
		for (unsigned drives = 1; drives <= RAID_DRIVES_MAX; drives++) {
			const char *name = raid_level_names[i];
			char why[200];
			if (raid_equallogic_layout(name, drives, &layout))
				continue;
			if (strcmp(name, "raid5") == 0 && layout.sets > 1)
				name = "raid50";
			assert_int_equal(layout.active + layout.spares, drives);
			assert_int_equal(raid_find(name)->check(layout.active, why, sizeof why), 0);
		}
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
	    {"raid1", 1, -EINVAL, 0},	{"raid1", 2, 0, 10},	    {"raid1", 3, 0, 10},
	    {"raid1", 65, -EINVAL, 0},	{"raid6", 3, -EINVAL, 0},   {"raid6", 4, 0, 20},
	    {"raid6", 23, 0, 210},	{"raid6", 65, -EINVAL, 0},  {"raid60", 7, -EINVAL, 0},
	    {"raid60", 8, 0, 40},	{"raid60", 22, 0, 180},	    {"raid60", 66, -EINVAL, 0},
	    {"adapt", 11, -EINVAL, 0},	{"adapt", 12, 0, 80},	    {"adapt", 22, 0, 160},
	    {"adapt", 65, -EINVAL, 0},
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
	    cmocka_unit_test(mirrored),
	    cmocka_unit_test(left_symmetric),
	    cmocka_unit_test(striped_sets),
	    cmocka_unit_test(divisions_into_sets),
	    cmocka_unit_test(layouts_are_sound),
	    cmocka_unit_test(rebuild_is_spread),
	    cmocka_unit_test(equallogic),
	    cmocka_unit_test(counts_and_capacities),
	    cmocka_unit_test(locks),
	};
	return cmocka_run_group_tests_name("raid_geometry", tests, NULL, NULL);
}
