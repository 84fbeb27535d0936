/* SPDX-License-Identifier: MIT
 *
 * The target dies after the Nth write to a drive, in the middle of the next one: whatever the set
 * and whichever drives are missing before or after, every sector is old or new and redundancy fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/array/stripe_journal.h"
#include "tests/unit/array/world.h"

static uint8_t old[2 << 20], now[2 << 20], seen[2 << 20], again[2 << 20];

static const struct shape redundant[] = {
    {"raid1", 3, 3, 2}, {"raid10", 4, 2, 1}, {"raid5", 4, 4, 1},   {"raid50", 6, 3, 1},
    {"raid6", 6, 6, 2}, {"raid60", 8, 4, 2}, {"adapt", 12, 12, 2},
};

static const struct step {
	enum io_op op;
	uint64_t offset, length;
} steps[] = {
    {IO_WRITE, SECTOR, 2 * SECTOR},
    {IO_WRITE, 0, 8 * CHUNK},
    {IO_WRITE, 3 * SECTOR, 2 * CHUNK},
    {IO_UNMAP, 0, 9 * CHUNK},
};

/* In every state of the set: DRIVES missing so many before, and MORE after. */
static void prepare(struct rig *rig, unsigned missing)
{
	struct rng rng;
	rng_init(&rng, 7, missing);
	rig_open_journaled(rig, shape->level, shape->drives, 3 * CHUNK, CHUNK);
	assert_true(rig->set->size_bytes <= sizeof old);
	rng_fill(&rng, old, rig->set->size_bytes);
	assert_int_equal(io_wait(rig->loop, rig->set, IO_WRITE, 0, old, rig->set->size_bytes), 0);
	for (unsigned i = 0; i < missing; i++)
		drive_set_failed(rig->drives[i], true);
	/* A write that they miss. */
	rng_fill(&rng, old, rig->set->size_bytes);
	assert_int_equal(io_wait(rig->loop, rig->set, IO_WRITE, 0, old, rig->set->size_bytes), 0);
	memcpy(now, old, rig->set->size_bytes);
}

static void submit_step(struct rig *rig, const struct step *step)
{
	struct rng rng;
	uint64_t length = MIN_OF(step->length, rig->set->size_bytes - step->offset);
	uint8_t *data = now + step->offset;

	rng_init(&rng, 8, 0);
	if (step->op == IO_WRITE)
		rng_fill(&rng, data, length);
	else
		memset(data, 0, length);
	(void)io_wait(rig->loop, rig->set, step->op, step->offset,
		      step->op == IO_UNMAP ? NULL : data, length);
}

static void check_content(struct rig *rig, uint8_t *to)
{
	uint64_t size = rig->set->size_bytes;
	int rc = io_wait(rig->loop, rig->set, IO_READ, 0, to, size);
	ensure(rc == 0, "status %d", rc);
	for (uint64_t at = 0; at < size; at += SECTOR)
		ensure(memcmp(to + at, now + at, SECTOR) == 0 ||
			   memcmp(to + at, old + at, SECTOR) == 0,
		       "wrong data at %llu", (unsigned long long)at);
}

/* One crash; false when the step ended before it. */
static bool crash_once(const struct step *step, unsigned missing, unsigned more, uint64_t after)
{
	struct rig rig;

	seed = after;
	prepare(&rig, missing);
	rig.writes_left = after;
	rig.crash_armed = true;
	submit_step(&rig, step);
	bool crashed = rig.crashed;
	unsigned last = shape->drives - 1;
	for (unsigned i = 0; crashed && i < more; i++)
		drive_set_failed(rig.drives[last - i], true);
	rig_reopen(&rig);
	check_content(&rig, seen);
	ensure(rig.ops->dirty_unit(rig.set, 0) == UINT64_MAX, "dirty");
	for (uint64_t i = 0; i < rig.ops->unit_count(rig.set); i++) {
		struct raid_unit unit = {.kind = RAID_UNIT_VERIFY, .unit = i};
		rig_unit(&rig, &unit);
		ensure(unit.status == 0 && !unit.inconsistent && !unit.repaired,
		       "unit %llu: status %d, repaired %u", (unsigned long long)i, unit.status,
		       unit.repaired);
	}
	/* Through redundancy it is the same. */
	unsigned group = shape->group - 1;
	for (unsigned i = missing + more; i < shape->tolerance; i++)
		drive_set_failed(rig.drives[group - 1 - i], true);
	check_content(&rig, again);
	ensure(memcmp(seen, again, rig.set->size_bytes) == 0, "redundancy tells something else");
	rig_close(&rig);
	return crashed;
}

static void crashes(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(redundant); s++) {
		shape = &redundant[s];
		for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
			for (unsigned missing = 0; missing <= shape->tolerance; missing++)
				for (unsigned more = 0; more <= shape->tolerance - missing;
				     more++) {
					uint64_t after = 0;
					while (crash_once(&steps[i], missing, more, after))
						after++;
				}
	}
}

/* A record that was not finished, or that is damaged, was never begun. */
static void torn_record(void **state)
{
	shape = &redundant[2];
	for (unsigned place = 0; place < 8; place++) {
		struct rig rig;
		prepare(&rig, 0);
		rig.writes_left = 0;
		rig.crash_armed = true;
		submit_step(&rig, &steps[1]);
		assert_true(rig.crashed);
		/* The slot's record, legs and data follow the marks. */
		uint8_t *slot = rig.journal_then + 4096 + STRIPE_MARKS_BYTES;
		static const unsigned at[] = {0, 8, 12, 16, 24, 60, 4096, 4096 + 3 * CHUNK - 1};
		slot[at[place]] ^= 1;
		rig_reopen(&rig);
		uint64_t size = rig.set->size_bytes;
		assert_int_equal(io_wait(rig.loop, rig.set, IO_READ, 0, seen, size), 0);
		/* Half of the first leg was written before the end; no more than that happened. */
		uint64_t differ = 0;
		for (uint64_t i = 0; i < size; i += SECTOR)
			differ += memcmp(seen + i, old + i, SECTOR) != 0;
		assert_true(differ <= CHUNK / SECTOR / 2);
		rig_close(&rig);
	}
}

/* A drive misses a write, and nobody can note that: no update counts from then on, and after the
 * restart, when the drive is believed, it gets what it missed. */
static void unrecorded(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(redundant); s++) {
		struct rig rig;

		shape = &redundant[s];
		prepare(&rig, 0);
		rig.stale_fails = true;
		rig.faults[1].write_errors = 1000000;
		memset(now, 0x55, rig.set->size_bytes);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_WRITE, 0, now, rig.set->size_bytes),
				 -EIO);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_WRITE, 0, now, SECTOR), -EIO);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_UNMAP, 0, NULL, CHUNK), -EIO);
		assert_int_equal(io_wait(rig.loop, rig.set, IO_FLUSH, 0, NULL, 0), -EIO);

		rig.faults[1].write_errors = 0;
		rig_reopen(&rig);
		assert_int_equal(rig.stale_told, 0);
		check_content(&rig, seen);
		struct world world = {.rig = rig};
		world_check_redundancy(&world);
		rig_close(&rig);
	}
}

/* A write is under way when a drive fails and its slot is given distributed spare space: the record
 * tells of the drive.  After a crash the spare space misses that write, as it misses all so far,
 * and the drives it lies on are none the worse. */
static void spared_since(void **state)
{
	shape = &redundant[6];
	for (unsigned slot = 0; slot < shape->drives; slot++)
		for (size_t i = 1; i < ARRAY_SIZE(steps); i += 2) {
			struct rig rig;
			struct stripe_journal journal;

			prepare(&rig, 0);
			rig.writes_left = 5;
			rig.crash_armed = true;
			submit_step(&rig, &steps[i]);
			assert_true(rig.crashed);
			(void)stripe_journal_open(&journal, &rig.geometry, &rig.journal);
			rig.journal_then[journal.spare_of - rig.journal.memory + slot] = 1;
			rig.spared_mask = rig.stale_then = UINT64_C(1) << slot;
			drive_set_failed(rig.drives[slot], true);
			rig_reopen(&rig);
			assert_int_equal(rig.stale_told, UINT64_C(1) << slot);
			assert_int_equal(rig.ops->dirty_unit(rig.set, 0), UINT64_MAX);
			rig_rebuild(&rig, slot, NULL);
			check_content(&rig, seen);
			struct world world = {.rig = rig};
			world_verify_clean(&world);
			rig_close(&rig);
		}
}

/* More updates at a time than the journal has slots. */
static void note_done(struct io *io)
{
	++*(unsigned *)io->owner;
	assert_int_equal(io->status, 0);
}

static void crowded(void **state)
{
	enum { COUNT = 200, BIG = 1 << 20 };
	static struct io ios[COUNT];
	static uint8_t data[4096];
	struct iovec iov = {data, sizeof data};
	struct rig rig;
	unsigned ended = 0;

	rig_open_journaled(&rig, "raid6", 12, (uint64_t)COUNT * BIG, BIG);
	for (unsigned i = 0; i < rig.drive_count; i++)
		assert_int_equal(drive_model_open(rig.loop, drive_model_find(drive_model_names[0]),
						  NULL, rig.drives[i]->store,
						  &rig.drives[i]->model),
				 0);
	for (unsigned i = 0; i < COUNT; i++) {
		ios[i] = (struct io){.op = IO_WRITE,
				     .offset_bytes = (uint64_t)i * 10 * BIG,
				     .length_bytes = sizeof data,
				     .iov = &iov,
				     .iov_count = 1,
				     .done = note_done,
				     .owner = &ended};
		io_submit(rig.set, &ios[i]);
	}
	while (ended < COUNT)
		assert_int_equal(loop_turn(rig.loop, true), 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(crashes),	  cmocka_unit_test(torn_record),
	    cmocka_unit_test(unrecorded), cmocka_unit_test(spared_since),
	    cmocka_unit_test(crowded),
	};
	return cmocka_run_group_tests_name("raid_crash", tests, NULL, NULL);
}
