/* SPDX-License-Identifier: MIT
 *
 * Errors one by one: the Nth request to a drive fails, once and for ever; places that cannot be
 * read are cured; a host without space loses no drive; a stripe that is left half-written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/array/world.h"

static uint8_t old[4 << 20], now[4 << 20], seen[4 << 20];

static const struct shape redundant[] = {
    {"raid1", 3, 3, 2},	 {"raid10", 4, 2, 1}, {"raid5", 4, 4, 1},
    {"raid50", 6, 3, 1}, {"raid6", 5, 5, 2},  {"adapt", 12, 12, 2},
};

/* A write of every method, a read across stripes, an UNMAP. */
static const struct step {
	enum io_op op;
	uint64_t offset, length;
} steps[] = {
    {IO_WRITE, 0, 2 * SECTOR},	       {IO_WRITE, CHUNK - SECTOR, 2 * SECTOR},
    {IO_READ, 0, 5 * CHUNK},	       {IO_WRITE, 2 * CHUNK, 24 * CHUNK},
    {IO_UNMAP, SECTOR, 12 * CHUNK},    {IO_WRITE, 7 * SECTOR, 3 * CHUNK},
    {IO_READ, 3 * SECTOR, 20 * CHUNK}, {IO_FLUSH, 0, 0},
};

static void fill(struct rig *rig, struct rng *rng)
{
	assert_true(rig->set->size_bytes <= sizeof old);
	rng_fill(rng, old, rig->set->size_bytes);
	memcpy(now, old, rig->set->size_bytes);
	assert_int_equal(io_wait(rig->loop, rig->set, IO_WRITE, 0, old, rig->set->size_bytes), 0);
}

static int run_step(struct rig *rig, struct rng *rng, const struct step *step)
{
	uint64_t length = MIN_OF(step->length, rig->set->size_bytes - step->offset);
	uint8_t *data = now + step->offset;
	int rc;

	if (step->op == IO_WRITE)
		rng_fill(rng, data, length);
	else if (step->op == IO_UNMAP)
		memset(data, 0, length);
	if (step->op == IO_READ)
		data = seen;
	rc = io_wait(rig->loop, rig->set, step->op, step->offset,
		     step->op == IO_UNMAP || step->op == IO_FLUSH ? NULL : data, length);
	if (step->op == IO_READ && rc == 0)
		for (uint64_t at = 0; at < length; at += SECTOR)
			ensure(memcmp(seen + at, now + step->offset + at, SECTOR) == 0 ||
				   memcmp(seen + at, old + step->offset + at, SECTOR) == 0,
			       "wrong data");
	if (step->op != IO_READ && rc == 0)
		memcpy(old + step->offset, now + step->offset, length);
	return rc;
}

/* Every sector is what it was or what was to be written; LOSSES: or an error. */
static void check_content(struct rig *rig, bool losses)
{
	uint64_t size = rig->set->size_bytes;
	for (uint64_t at = 0; at < size; at += CHUNK) {
		int rc = io_wait(rig->loop, rig->set, IO_READ, at, seen + at, CHUNK);
		ensure(rc == 0 || (losses && rc == -EIO), "status %d", rc);
		if (rc)
			memcpy(seen + at, old + at, CHUNK);
	}
	for (uint64_t at = 0; at < size; at += SECTOR)
		ensure(memcmp(seen + at, now + at, SECTOR) == 0 ||
			   memcmp(seen + at, old + at, SECTOR) == 0,
		       "wrong data at %llu", (unsigned long long)at);
}

static void clean_up(struct rig *rig)
{
	struct raid_unit unit = {.kind = RAID_UNIT_VERIFY};
	while ((unit.unit = rig->ops->dirty_unit(rig->set, 0)) != UINT64_MAX) {
		rig_unit(rig, &unit);
		ensure(unit.status == 0, "unit %llu: status %d", (unsigned long long)unit.unit,
		       unit.status);
	}
}

static void check_fits(struct rig *rig)
{
	for (uint64_t i = 0; i < rig->ops->unit_count(rig->set); i++) {
		struct raid_unit unit = {.kind = RAID_UNIT_VERIFY, .unit = i};
		rig_unit(rig, &unit);
		ensure(unit.status == 0 && !unit.inconsistent && !unit.repaired,
		       "unit %llu: status %d, repaired %u", (unsigned long long)i, unit.status,
		       unit.repaired);
	}
}

static void error_loop(bool lasting)
{
	for (size_t s = 0; s < ARRAY_SIZE(redundant); s++) {
		shape = &redundant[s];
		bool touched = true;
		for (seed = 1; touched; seed++) {
			struct rig rig;
			struct rng rng;
			rng_init(&rng, 1, 1);
			rig_open(&rig, shape->level, shape->drives, 6 * CHUNK, CHUNK,
				 DRIVE_TIMING_NONE, 1);
			fill(&rig, &rng);
			rig.ios = 0;
			rig.fail_at = seed;
			rig.lasting = lasting;
			bool failed = false;
			for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
				bool update = steps[i].op == IO_WRITE || steps[i].op == IO_UNMAP;
				if (failed && update)
					continue; /* there would be three contents to expect */
				int rc = run_step(&rig, &rng, &steps[i]);
				ensure(rc == 0 || (lasting && rc == -EIO), "step %zu: status %d", i,
				       rc);
				failed |= rc != 0;
			}
			touched = rig.ios >= seed;
			rig.fail_at = 0;
			ensure(__builtin_popcountll(rig.stale_told) <=
				   (int)(lasting ? shape->tolerance : 1) *
				       (int)(shape->drives / shape->group),
			       "stale: %llx", (unsigned long long)rig.stale_told);
			/* A drive that missed an update and then a stripe that is half-written:
			 * that is one failure too many. */
			check_content(&rig, lasting && rig.stale_told);
			if (lasting && rig.stale_told) {
				rig_close(&rig);
				continue;
			}
			clean_up(&rig);
			check_content(&rig, false);
			for (unsigned i = 0; i < shape->drives; i++)
				if (rig.stale_told >> i & 1)
					rig_rebuild(&rig, i, rig.drives[i]);
			check_fits(&rig);
			check_content(&rig, false);
			rig_close(&rig);
		}
	}
}

static void one_error(void **state)
{
	error_loop(false);
}

static void errors_for_ever(void **state)
{
	error_loop(true);
}

/* What a request that failed has left is the content from now on. */
static void settle(struct rig *rig)
{
	check_content(rig, false);
	memcpy(old, seen, rig->set->size_bytes);
	memcpy(now, seen, rig->set->size_bytes);
}

/* No drive is to blame, whichever legs find no space.  Until there is some again, and afterwards,
 * be it in the same process or in the next one, the content is one and the same. */
static void no_space(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(redundant); s++) {
		shape = &redundant[s];
		for (seed = 0; seed <= shape->drives; seed++) {
			struct rig rig;
			struct rng rng;
			rng_init(&rng, 1, 1);
			rig_open_journaled(&rig, shape->level, shape->drives, 6 * CHUNK, CHUNK);
			fill(&rig, &rng);
			for (unsigned i = 0; i < shape->drives; i++)
				rig.faults[i].full = seed == shape->drives || i == seed;
			for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
				int rc = run_step(&rig, &rng, &steps[i]);
				ensure(rc == 0 || rc == -ENOSPC, "step %zu: status %d", i, rc);
				ensure(rc == 0 || steps[i].op == IO_WRITE ||
					   steps[i].op == IO_UNMAP,
				       "step %zu: status %d", i, rc);
				if (rc)
					settle(&rig);
			}
			check_content(&rig, false);
			ensure(rig.stale_told == 0, "stale for want of space");
			ensure(rig.ops->dirty_unit(rig.set, 0) != UINT64_MAX, "nothing is dirty");
			for (unsigned i = 0; i < shape->drives; i++)
				rig.faults[i].full = false;
			if (seed % 2)
				rig_reopen(&rig);
			check_content(&rig, false);
			ensure(rig.ops->dirty_unit(rig.set, 0) == UINT64_MAX, "still dirty");
			check_fits(&rig);
			check_content(&rig, false);
			rig_close(&rig);
		}
	}
}

/* A half-written stripe: what is still there is read, what would come from its parity is not; a
 * write of the whole stripe cleans it. */
static void dirty(void **state)
{
	static uint8_t data[4 * CHUNK];
	struct rig rig;

	rig_open(&rig, "raid5", 5, 6 * CHUNK, CHUNK, DRIVE_TIMING_NONE, 1);
	memset(data, 1, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, sizeof data), 0);
	rig.faults[1].full = true;
	memset(data, 2, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, sizeof data), -ENOSPC);
	rig.faults[1].full = false;
	assert_int_equal(rig.ops->dirty_unit(rig.set, 0), 0);
	assert_int_equal(rig.ops->dirty_unit(rig.set, 1), UINT64_MAX);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(io_wait(NULL, rig.set, IO_READ, i * CHUNK, data, CHUNK), 0);
		assert_int_equal(data[0], i == 1 ? 1 : 2);
	}
	drive_set_failed(rig.drives[2], true);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 2 * CHUNK, data, CHUNK), -EIO);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 4 * CHUNK + 2 * CHUNK, data, CHUNK), 0);
	/* Around what is lost writes go on; it itself cannot be written in part. */
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, SECTOR), 0);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 2 * CHUNK, data, SECTOR), -EIO);
	memset(data, 3, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, sizeof data), 0);
	assert_int_equal(rig.ops->dirty_unit(rig.set, 0), UINT64_MAX);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 2 * CHUNK, data, CHUNK), 0);
	assert_int_equal(data[0], 3);
	rig_close(&rig);
}

/* More drives are out than the level covers, but fewer in some stripes: a write there could not be
 * acknowledged, so none is begun, and nothing is half-way when the drives return. */
static void uncovered(void **state)
{
	static uint8_t data[CHUNK];
	struct rig rig;
	struct rng rng;
	unsigned refused = 0, count = 0;

	rng_init(&rng, 1, 0);
	rig_open(&rig, "adapt", 12, 12 * CHUNK, CHUNK, DRIVE_TIMING_NONE, 1);
	fill(&rig, &rng);
	for (unsigned i = 3; i < 6; i++)
		drive_set_failed(rig.drives[i], true);
	for (uint64_t at = 0; at < rig.set->size_bytes; at += CHUNK, count++) {
		rng_fill(&rng, data, CHUNK);
		enum io_op op = at / CHUNK % 3 ? IO_WRITE : IO_UNMAP;
		int rc = io_wait(NULL, rig.set, op, at, op == IO_WRITE ? data : NULL, CHUNK);
		ensure(rc == 0 || rc == -EIO, "status %d", rc);
		refused += rc != 0;
		if (rc == 0 && op == IO_UNMAP)
			memset(now + at, 0, CHUNK);
		else if (rc == 0)
			memcpy(now + at, data, CHUNK);
	}
	assert_in_range(refused, count / 2, count);
	assert_int_equal(rig.ops->dirty_unit(rig.set, 0), UINT64_MAX);
	for (unsigned i = 3; i < 6; i++)
		drive_set_failed(rig.drives[i], false);
	memcpy(old, now, rig.set->size_bytes);
	check_content(&rig, false);
	check_fits(&rig);
	rig_close(&rig);
}

/* A column that cannot be rebuilt is lost, not wrong; whatever makes it known again heals it. */
static void lost(void **state)
{
	static uint8_t data[4 * CHUNK];
	struct rig rig;
	struct raid_unit unit = {.kind = RAID_UNIT_REBUILD, .slot = 2};

	rig_open(&rig, "raid5", 5, 6 * CHUNK, CHUNK, DRIVE_TIMING_NONE, 1);
	memset(data, 1, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, sizeof data), 0);
	rig.faults[0].bad_bytes = SECTOR;
	rig.faults[0].bad_status = -EIO;
	rig_replace(&rig, 2, rig.drives[2]);
	for (unit.unit = 0; unit.unit < 6; unit.unit++) {
		rig_unit(&rig, &unit);
		assert_int_equal(unit.status, unit.unit ? 0 : -EIO);
	}
	rig_good(&rig, 2);
	assert_int_equal(rig.ops->dirty_unit(rig.set, 0), 0);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 2 * CHUNK, data, CHUNK), -EIO);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, CHUNK, data, CHUNK), 0);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 0, data, CHUNK), -EIO);
	/* The other one is written: that cures it, and so all is known again but column 2. */
	memset(data, 2, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, CHUNK), 0);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 0, data, CHUNK), 0);
	assert_int_equal(data[0], 2);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 2 * CHUNK, data, CHUNK), -EIO);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 2 * CHUNK, data, CHUNK), 0);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 2 * CHUNK, data, CHUNK), 0);
	unit.kind = RAID_UNIT_VERIFY;
	unit.unit = 0;
	rig_unit(&rig, &unit);
	assert_int_equal(unit.status, 0);
	assert_int_equal(rig.ops->dirty_unit(rig.set, 0), UINT64_MAX);
	rig_close(&rig);
}

/* A place that cannot be read, met by a read and by every kind of write. */
static void cures(void **state)
{
	static const struct step users[] = {
	    {IO_READ, 0, CHUNK},
	    {IO_WRITE, SECTOR, SECTOR},
	    {IO_WRITE, 0, 2 * SECTOR},
	    {IO_WRITE, 0, 3 * CHUNK},
	};
	for (size_t s = 0; s < ARRAY_SIZE(redundant); s++)
		for (seed = 0; seed < ARRAY_SIZE(users); seed++) {
			struct rig rig;
			struct rng rng;
			shape = &redundant[s];
			rng_init(&rng, 1, 1);
			rig_open(&rig, shape->level, shape->drives, 6 * CHUNK, CHUNK,
				 DRIVE_TIMING_NONE, 1);
			fill(&rig, &rng);
			struct stripe_at at = stripe_at(&rig.geometry, 0);
			struct stripe_place place = stripe_place(&rig.geometry, &at, 0);
			struct fault *fault = &rig.faults[place.drive];
			fault->bad_offset = place.offset_bytes + SECTOR;
			fault->bad_bytes = SECTOR;
			fault->bad_status = seed % 2 ? -EILSEQ : -EIO;
			ensure(run_step(&rig, &rng, &users[seed]) == 0, "not hidden");
			check_content(&rig, false);
			ensure(fault->bad_bytes == 0, "not cured");
			ensure(rig.stale_told == 0, "stale");
			check_fits(&rig);
			rig_close(&rig);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_error), cmocka_unit_test(errors_for_ever),
	    cmocka_unit_test(no_space),	 cmocka_unit_test(dirty),
	    cmocka_unit_test(uncovered), cmocka_unit_test(lost),
	    cmocka_unit_test(cures),
	};
	return cmocka_run_group_tests_name("raid_faults", tests, NULL, NULL);
}
