/* SPDX-License-Identifier: MIT
 *
 * RAID sets under random requests against a shadow, many at a time, while drives fail, err and
 * return; parity and mirrors seen from below; failures beyond the tolerance.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/array/world.h"

static void healthy_body(struct world *world)
{
	world_load(world, ROUNDS);
	world_quiesce(world);
	world_check_redundancy(world);
	world_verify_clean(world);
	world_read_all(world);
	ensure(world->completed > ROUNDS / 8, "hardly anything ran");
	ensure(world->rig.stale_told == 0, "a drive became stale for nothing");
}

static void healthy(void **state)
{
	world_everywhere(healthy_body, false);
}

/* As many drives of each group as may fail do so in the middle of the load. */
static void degraded_body(struct world *world)
{
	unsigned count = 0;

	world_load(world, ROUNDS / 2);
	for (unsigned base = 0; base < shape->drives; base += shape->group) {
		uint64_t victims = world_victims(world, base, shape->tolerance);
		for (; victims; victims &= victims - 1, count++) {
			drive_set_failed(world->rig.drives[__builtin_ctzll(victims)], true);
			world_load(world, ROUNDS / 4);
		}
	}
	world_quiesce(world);
	world_read_all(world);
	/* Stale drives that come back are not believed. */
	for (unsigned i = 0; i < shape->drives; i++)
		drive_set_failed(world->rig.drives[i], false);
	world_read_all(world);
	world_load(world, ROUNDS / 4);
	world_quiesce(world);
	world_read_all(world);
	ensure(__builtin_popcountll(world->rig.stale_told) == (int)count, "stale drives: %llx",
	       (unsigned long long)world->rig.stale_told);
}

static void degraded(void **state)
{
	world_everywhere(degraded_body, true);
}

/* A drive that was away while nothing was written is as good as before. */
static void returned_body(struct world *world)
{
	unsigned victim = (unsigned)rng_below(&world->rng, shape->drives);
	world_load(world, ROUNDS / 2);
	world_quiesce(world);
	drive_set_failed(world->rig.drives[victim], true);
	world_read_all(world);
	drive_set_failed(world->rig.drives[victim], false);
	ensure(world->rig.stale_told == 0, "stale without a missed write");
	world_load(world, ROUNDS / 2);
	world_quiesce(world);
	world_check_redundancy(world);
	world_read_all(world);
}

static void returned(void **state)
{
	world_everywhere(returned_body, true);
}

/* Reads of one drive of each group fail now and then: redundancy hides it, and since the drive
 * takes its writes it stays in the set. */
static void medium_errors_body(struct world *world)
{
	for (unsigned base = 0; base < shape->drives; base += shape->group) {
		unsigned victim = base + (unsigned)rng_below(&world->rng, shape->group);
		world->rig.faults[victim].read_errors = 0.2;
	}
	world_load(world, ROUNDS);
	world_quiesce(world);
	world_check_redundancy(world);
	world_read_all(world);
	ensure(world->rig.stale_told == 0, "stale by reads");
}

static void medium_errors(void **state)
{
	world_everywhere(medium_errors_body, true);
}

/* A write error puts the drive out of the set, and nothing is lost. */
static void write_error_body(struct world *world)
{
	unsigned victim = (unsigned)rng_below(&world->rng, shape->drives);
	world_load(world, ROUNDS / 2);
	world->rig.faults[victim].write_errors = 1;
	for (int i = 0; i < 8 && world->rig.faults[victim].write_errors; i++)
		world_load(world, ROUNDS / 4);
	world_quiesce(world);
	world_read_all(world);
	ensure(world->rig.faults[victim].write_errors == 0, "no write reached the victim");
	ensure(world->rig.stale_told == UINT64_C(1) << victim, "stale: %llx",
	       (unsigned long long)world->rig.stale_told);
}

static void write_error(void **state)
{
	world_everywhere(write_error_body, true);
}

/* One drive more of a group: errors where the data is gone, never wrong data, and the rest works.
 */
static void beyond_body(struct world *world)
{
	unsigned groups = shape->drives / shape->group;
	unsigned base = (unsigned)rng_below(&world->rng, groups) * shape->group;
	uint64_t victims = world_victims(world, base, shape->tolerance + 1);

	world_load(world, ROUNDS / 2);
	for (; victims; victims &= victims - 1) {
		/* Requests that are under way when the last one fails may fail too. */
		world->errors_allowed = !(victims & (victims - 1));
		drive_set_failed(world->rig.drives[__builtin_ctzll(victims)], true);
		world_load(world, ROUNDS / 4);
	}
	world_quiesce(world);
	world->failed = 0;
	uint64_t before = world->completed;
	world_read_all(world);
	uint64_t reads = world->completed - before;
	ensure(world->failed > 0, "nothing failed with too many drives gone");
	if (groups > 1 || shape->group > shape->tolerance + 1)
		ensure(world->failed < reads, "ranges that are not affected fail too");
	if (groups > 1 && shape->tolerance)
		ensure(world->failed <= reads / groups + 1, "other groups are affected");
	/* Whether the first drives return or not, no read may give anything false. */
	for (unsigned i = 0; i < shape->drives; i++)
		drive_set_failed(world->rig.drives[i], false);
	world_read_all(world);
}

static void beyond_tolerance(void **state)
{
	world_everywhere(beyond_body, false);
}

/* Writes to one place at a time: afterwards mirrors agree and parity is right. */
static void overlapping_body(struct world *world)
{
	static struct request writes[64];
	uint64_t size = world->rig.set->size_bytes;
	for (unsigned i = 0; i < 64; i++) {
		struct request *request = &writes[i];
		uint64_t length = (1 + rng_below(&world->rng, 40)) * SECTOR;
		uint64_t offset =
		    rng_below(&world->rng, MIN_OF(size, 6 * CHUNK) / SECTOR - 40) * SECTOR;
		*request = (struct request){.buffer = malloc(length)};
		rng_fill(&world->rng, request->buffer, length);
		memset(world->unsure + offset / SECTOR, 1, length / SECTOR);
		world_request(world, request, IO_WRITE, offset, length);
		io_submit(world->rig.set, &request->io);
	}
	world_quiesce(world);
	for (unsigned i = 0; i < 64; i++)
		free(writes[i].buffer);
	world_check_redundancy(world);
}

static void overlapping(void **state)
{
	world_everywhere(overlapping_body, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(healthy),	   cmocka_unit_test(degraded),
	    cmocka_unit_test(returned),	   cmocka_unit_test(medium_errors),
	    cmocka_unit_test(write_error), cmocka_unit_test(beyond_tolerance),
	    cmocka_unit_test(overlapping),
	};
	return cmocka_run_group_tests_name("raid", tests, NULL, NULL);
}
