/* SPDX-License-Identifier: MIT
 *
 * Writes that fail half-way beyond what redundancy covers: whatever fails and however it is torn,
 * every sector can be read, is old or new, and stays what it was seen to be, while the fault lasts,
 * when it is gone, and after a restart in between; and then all redundancy fits.
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

enum { BYTES = 1 << 20, WALKS = 12, STEPS = 120 };

static uint8_t old[BYTES], now[BYTES], seen[BYTES];

static const struct shape redundant[] = {
    {"raid1", 3, 3, 2}, {"raid10", 4, 2, 1}, {"raid5", 4, 4, 1},   {"raid50", 6, 3, 1},
    {"raid6", 6, 6, 2}, {"raid60", 8, 4, 2}, {"adapt", 12, 12, 2},
};

static void check(struct rig *rig, uint64_t offset, uint64_t length)
{
	int rc = io_wait(rig->loop, rig->set, IO_READ, offset, seen + offset, length);

	ensure(rc == 0, "%llu bytes at %llu: status %d", (unsigned long long)length,
	       (unsigned long long)offset, rc);
	for (uint64_t at = offset; at < offset + length; at += SECTOR)
		ensure(memcmp(seen + at, now + at, SECTOR) == 0 ||
			   memcmp(seen + at, old + at, SECTOR) == 0,
		       "wrong data at %llu", (unsigned long long)at);
	memcpy(old + offset, seen + offset, length);
	memcpy(now + offset, seen + offset, length);
}

static void check_all(struct rig *rig)
{
	for (uint64_t at = 0; at < rig->set->size_bytes; at += CHUNK / 2)
		check(rig, at, CHUNK / 2);
}

static void update(struct rig *rig, struct rng *rng)
{
	uint64_t size = rig->set->size_bytes;
	uint64_t length = 1 + rng_below(rng, rng_below(rng, 3) ? 20 : 12 * CHUNK / SECTOR);
	length = MIN_OF(length, size / SECTOR);
	uint64_t offset = rng_below(rng, size / SECTOR - length + 1) * SECTOR;
	bool unmap = rng_below(rng, 5) == 0;

	length *= SECTOR;
	if (unmap)
		memset(now + offset, 0, length);
	else
		rng_fill(rng, now + offset, length);
	int rc = io_wait(rig->loop, rig->set, unmap ? IO_UNMAP : IO_WRITE, offset,
			 unmap ? NULL : now + offset, length);
	ensure(rc == 0 || rc == -EIO || rc == -ENOSPC, "status %d", rc);
	if (rc == 0)
		memcpy(old + offset, now + offset, length);
	else
		check(rig, offset, length);
}

static void turn_fault(struct rig *rig, struct rng *rng)
{
	struct fault *fault = &rig->faults[rng_below(rng, shape->drives)];

	if (fault->full || fault->tears)
		fault->full = fault->tears = false;
	else if (rng_below(rng, 2))
		fault->full = true;
	else
		fault->tears = true;
}

/* So many drives of the first group are out before anything is written. */
static void begin(struct rig *rig, struct rng *rng, unsigned missing)
{
	rig_open_journaled(rig, shape->level, shape->drives, 6 * CHUNK, CHUNK);
	assert_true(rig->set->size_bytes <= BYTES);
	rng_fill(rng, old, rig->set->size_bytes);
	memcpy(now, old, rig->set->size_bytes);
	assert_int_equal(io_wait(rig->loop, rig->set, IO_WRITE, 0, old, rig->set->size_bytes), 0);
	for (unsigned i = 0; i < missing; i++)
		drive_set_failed(rig->drives[i], true);
}

static void mend(struct rig *rig)
{
	struct raid_unit unit = {.kind = RAID_UNIT_VERIFY};

	for (unsigned i = 0; i < shape->drives; i++) {
		rig->faults[i].full = rig->faults[i].tears = false;
		drive_set_failed(rig->drives[i], false);
	}
	check_all(rig);
	for (unsigned i = 0; i < shape->drives; i++)
		if (rig->stale_told >> i & 1)
			rig_rebuild(rig, i, rig->drives[i]);
	check_all(rig);
	ensure(rig->ops->dirty_unit(rig->set, 0) == UINT64_MAX, "dirty");
	for (unit.unit = 0; unit.unit < rig->ops->unit_count(rig->set); unit.unit++) {
		rig_unit(rig, &unit);
		ensure(unit.status == 0 && !unit.inconsistent, "unit %llu: status %d",
		       (unsigned long long)unit.unit, unit.status);
	}
}

static void walk(unsigned missing)
{
	struct rig rig;
	struct rng rng;

	rng_init(&rng, seed, missing);
	begin(&rig, &rng, missing);
	for (unsigned step = 0; step < STEPS; step++) {
		switch (rng_below(&rng, 20)) {
		case 0:
		case 1:
		case 2:
			turn_fault(&rig, &rng);
			break;
		case 3:
			rig_reopen(&rig);
			break;
		case 4:
			check_all(&rig);
			break;
		default:
			update(&rig, &rng);
		}
	}
	check_all(&rig);
	mend(&rig);
	/* Through redundancy it is the same. */
	for (unsigned i = 0; i < shape->tolerance; i++)
		drive_set_failed(rig.drives[i], true);
	check_all(&rig);
	rig_close(&rig);
}

static void walks(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(redundant); s++) {
		shape = &redundant[s];
		for (seed = 1; seed <= WALKS; seed++)
			for (unsigned missing = 0; missing <= shape->tolerance; missing++)
				walk(missing);
	}
}

/* A column is missing, a write of its stripe finds no space for one leg: the column can be read
 * through what was to be written, and is rebuilt when there is space again. */
static void missing_column(void **state)
{
	static uint8_t data[3 * CHUNK];
	struct raid_unit unit = {.kind = RAID_UNIT_REBUILD, .slot = 2};
	struct rig rig;

	rig_open_journaled(&rig, "raid5", 4, 6 * CHUNK, CHUNK);
	memset(data, 1, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 0, data, sizeof data), 0);
	drive_set_failed(rig.drives[2], true);
	rig.faults[0].full = true;
	memset(data, 2, sizeof data);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, SECTOR, data, SECTOR), -ENOSPC);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(io_wait(NULL, rig.set, IO_READ, i * CHUNK, data, CHUNK), 0);
		assert_int_equal(data[0], 1);
		assert_int_equal(data[SECTOR], i ? 1 : 2);
		assert_int_equal(data[2 * SECTOR], 1);
	}
	/* Its place takes nothing else, others do. */
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, SECTOR, data, SECTOR), -ENOSPC);
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, CHUNK + 3 * SECTOR, data, SECTOR), 0);
	/* A rebuild that comes by before there is space cannot work it out ... */
	drive_set_failed(rig.drives[2], false);
	rig_replace(&rig, 2, rig.drives[2]);
	for (unit.unit = 0; unit.unit < rig.ops->unit_count(rig.set); unit.unit++) {
		rig_unit(&rig, &unit);
		assert_int_equal(unit.status, unit.unit ? 0 : -EIO);
	}
	rig_good(&rig, 2);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 2 * CHUNK, data, CHUNK), 0);
	assert_int_equal(data[0], 1);
	/* ... and a look at what is dirty does it afterwards. */
	rig.faults[0].full = false;
	unit.kind = RAID_UNIT_VERIFY;
	unit.unit = rig.ops->dirty_unit(rig.set, 0);
	assert_int_equal(unit.unit, 0);
	rig_unit(&rig, &unit);
	assert_int_equal(unit.status, 0);
	assert_int_equal(rig.ops->dirty_unit(rig.set, 0), UINT64_MAX);
	assert_int_equal(rig.stale_told, 0);
	drive_set_failed(rig.drives[0], true);
	assert_int_equal(io_wait(NULL, rig.set, IO_READ, 0, data, CHUNK), 0);
	assert_int_equal(data[SECTOR], 2);
	rig_close(&rig);
}

/* More fail than the journal keeps: what would be too much is refused before it is begun. */
static void many(void **state)
{
	static uint8_t data[CHUNK], read[CHUNK];
	struct rig rig;

	shape = &redundant[1];
	rig_open_journaled(&rig, "raid10", 4, 400 * CHUNK, CHUNK);
	for (unsigned i = 0; i < 2; i++)
		rig.faults[i].tears = true;
	for (uint64_t i = 0; i < 800; i++) {
		memset(data, (int)(i % 250 + 1), sizeof data);
		int rc = io_wait(NULL, rig.set, IO_WRITE, i * CHUNK, data, CHUNK);
		/* Every other one is on the pair that nothing happened to. */
		assert_int_equal(rc, i % 2 ? 0 : -EIO);
	}
	assert_int_equal(rig.stale_told, 0);
	for (unsigned i = 0; i < 2; i++)
		rig.faults[i].tears = false;
	for (uint64_t i = 0; i < 800; i++) {
		assert_int_equal(io_wait(NULL, rig.set, IO_READ, i * CHUNK, read, CHUNK), 0);
		for (unsigned at = 0; at < CHUNK; at += SECTOR)
			if (read[at] != i % 250 + 1 && (i % 2 || read[at] != 0))
				fail_msg("chunk %llu: %u", (unsigned long long)i, read[at]);
	}
	assert_int_equal(io_wait(NULL, rig.set, IO_WRITE, 798 * CHUNK, data, CHUNK), 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(walks),
	    cmocka_unit_test(missing_column),
	    cmocka_unit_test(many),
	};
	return cmocka_run_group_tests_name("raid_kept", tests, NULL, NULL);
}
