/* SPDX-License-Identifier: MIT
 *
 * Task attributes: who waits for whom, and that nobody is forgotten.
 */
#include "base/rng.h"
#include "tests/unit/scsi/fixture.h"

enum { BLOCK = 512, MANY = 64, ROUNDS = 200 };

static const uint8_t lun_thin[8] = {0, LUN_THIN};

/* A READ of block LBA, prepared and executed. */
static void start(struct request *request, struct scsi_nexus *nexus, unsigned attribute,
		  uint8_t lba)
{
	memset(request, 0, sizeof *request);
	request->task.attribute = (uint8_t)attribute;
	request_prepare(request, nexus, LUN_THIN, CDB(0x28, 0, 0, 0, 0, lba, 0, 0, 1, 0), BLOCK);
	assert_int_equal(request->prepared, SCSI_READY);
	request_execute(request, NULL);
}

/* A WRITE that waits for its data. */
static void start_write(struct request *request, struct scsi_nexus *nexus, unsigned attribute)
{
	memset(request, 0, sizeof *request);
	request->task.attribute = (uint8_t)attribute;
	request_prepare(request, nexus, LUN_THIN, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), BLOCK);
	assert_int_equal(request->prepared, SCSI_NEEDS_DATA);
}

static void finish(struct fixture *fixture, struct request *requests, unsigned count)
{
	fixture->thin.deferred = false;
	while (fixture->thin.held_count > 0)
		fake_volume_release(&fixture->thin, 1);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(requests[i].done_count, 1);
		request_release(&requests[i]);
	}
}

static void count_one(void *arg)
{
	++*(unsigned *)arg;
}

static void test_ordered(void **state)
{
	struct fixture *fixture = *state;
	struct volume *volume = &fixture->thin;
	struct request r[5];

	volume->deferred = true;
	start(&r[0], fixture->a, SCSI_SIMPLE, 0);
	start(&r[1], fixture->b, SCSI_UNTAGGED, 1);
	start(&r[2], fixture->a, SCSI_ORDERED, 2);
	start(&r[3], fixture->b, SCSI_SIMPLE, 3); /* of another nexus: the set is the same */
	start(&r[4], fixture->a, SCSI_ORDERED, 4);
	assert_int_equal(volume->reads, 2);
	fake_volume_release(volume, 1);
	assert_int_equal(volume->reads, 2);
	fake_volume_release(volume, 1);
	assert_int_equal(volume->reads, 3);
	assert_int_equal(volume->last.offset_bytes, 2 * BLOCK);
	fake_volume_release(volume, 1);
	assert_int_equal(volume->reads, 4);
	assert_int_equal(volume->last.offset_bytes, 3 * BLOCK);
	fake_volume_release(volume, 1);
	assert_int_equal(volume->reads, 5);
	finish(fixture, r, ARRAY_SIZE(r));
}

static void test_head_of_queue(void **state)
{
	struct fixture *fixture = *state;
	struct volume *volume = &fixture->thin;
	struct request r[6];

	volume->deferred = true;
	start(&r[0], fixture->a, SCSI_SIMPLE, 0);
	start(&r[1], fixture->a, SCSI_ORDERED, 1);
	start(&r[2], fixture->a, SCSI_SIMPLE, 2);
	start(&r[3], fixture->b, SCSI_HEAD_OF_QUEUE, 3);
	assert_int_equal(volume->reads, 2); /* past all of them */
	assert_int_equal(volume->last.offset_bytes, 3 * BLOCK);
	start(&r[4], fixture->a, SCSI_HEAD_OF_QUEUE, 4);
	assert_int_equal(volume->reads, 3);
	fake_volume_release(volume,
			    1); /* the first; those that wait, wait for the head of the queue */
	assert_int_equal(volume->reads, 3);
	fake_volume_release(volume, 2);
	assert_int_equal(volume->reads, 4);
	assert_int_equal(volume->last.offset_bytes, BLOCK);
	start(&r[5], fixture->b, SCSI_SIMPLE, 5);
	assert_int_equal(volume->reads, 4);
	fake_volume_release(volume, 1);
	assert_int_equal(volume->reads, 6); /* both simple ones */
	finish(fixture, r, ARRAY_SIZE(r));
}

/* A task holds others up also while its data is on the way; aborting it lets them go. */
static void test_waiting_for_data(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t block[BLOCK] = "data";
	struct request write, r[2];

	fixture->thin.deferred = true;
	start_write(&write, fixture->a, SCSI_HEAD_OF_QUEUE);
	start(&r[0], fixture->b, SCSI_SIMPLE, 0);
	assert_true(scsi_must_wait(&r[0].task));
	assert_int_equal(fixture->thin.reads, 0);
	request_execute(&write, block);
	assert_int_equal(fixture->thin.writes, 1);
	assert_int_equal(fixture->thin.reads, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(fixture->thin.reads, 1);
	fake_volume_release(&fixture->thin, 1);
	assert_memory_equal(r[0].task.in_buf->data, block, sizeof block);
	request_release(&write);

	start_write(&write, fixture->a, SCSI_SIMPLE);
	start(&r[1], fixture->b, SCSI_ORDERED, 1);
	assert_int_equal(fixture->thin.reads, 1);
	scsi_abort(&write.task);
	assert_int_equal(write.done_count, 1);
	assert_int_equal(fixture->thin.reads, 2);
	request_release(&write);
	finish(fixture, r, ARRAY_SIZE(r));
}

/* Who waits is aborted at once, alone or with the whole set. */
static void test_abort_dormant(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t ready[6] = {0};
	struct request r[4];
	unsigned resets = 0;

	fixture->thin.deferred = true;
	start(&r[0], fixture->a, SCSI_SIMPLE, 0);
	start(&r[1], fixture->a, SCSI_ORDERED, 1);
	start(&r[2], fixture->a, SCSI_SIMPLE, 2);
	scsi_abort(&r[1].task);
	assert_int_equal(r[1].done_count, 1);
	assert_int_equal(r[1].task.status, SCSI_TASK_ABORTED);
	assert_int_equal(fixture->thin.reads, 2); /* what waited for it */
	start(&r[3], fixture->b, SCSI_ORDERED, 3);
	assert_int_equal(fixture->thin.reads, 2);
	assert_int_equal(scsi_reset_lu(fixture->b, lun_thin, count_one, &resets), 0);
	assert_int_equal(r[3].done_count, 1);
	assert_int_equal(resets, 0);
	fixture->thin.deferred = false;
	fake_volume_release(&fixture->thin, 2);
	assert_int_equal(resets, 1);
	assert_int_equal(fixture->thin.reads, 2); /* the aborted one never began */
	for (unsigned i = 0; i < ARRAY_SIZE(r); i++)
		request_release(&r[i]);
	request_expect(fixture->a, LUN_THIN, ready, sizeof ready, NULL, 0, 0x062903);
	request_expect(fixture->a, LUN_THIN, ready, sizeof ready, NULL, 0, 0);
}

static void test_refused(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data;

	for (uint8_t attribute = SCSI_ACA; attribute < 8; attribute++) {
		request.task.attribute = attribute;
		request_run(&request, fixture->a, LUN_THIN, CDB(0, 0, 0, 0, 0, 0), NULL, 0);
		assert_int_equal(request_sense_code(&request), 0x052400);
		request_release(&request);
	}
	request.task.attribute = SCSI_UNTAGGED;
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0x86, 0, 0xff, 0));
	assert_int_equal(data[5] & 0x0f, 0x07); /* HEADSUP, ORDSUP, SIMPSUP */
	request_release(&request);
}

/* ---- any order of anything ---- */

static unsigned attribute_at(const struct request *requests, unsigned i)
{
	return requests[i].task.attribute;
}

/* May I begin while OTHER, which is in the set, has not ended? */
static bool stands_back(const struct request *requests, unsigned i, unsigned other)
{
	unsigned mine = attribute_at(requests, i), its = attribute_at(requests, other);

	if (mine == SCSI_HEAD_OF_QUEUE)
		return false;
	return its == SCSI_HEAD_OF_QUEUE ||
	       (other < i && (mine == SCSI_ORDERED || its == SCSI_ORDERED));
}

/* After each step those and only those are with the drive whom no other task holds up. */
static void check(const struct fixture *fixture, const struct request *requests, unsigned count,
		  bool *begun, unsigned seed)
{
	unsigned with_drive = 0;

	for (unsigned i = 0; i < count; i++) {
		bool held_up = false;

		if (requests[i].done_count > 0)
			continue;
		for (unsigned j = 0; j < count; j++)
			held_up |=
			    j != i && requests[j].done_count == 0 && stands_back(requests, i, j);
		begun[i] |= !held_up; /* who has begun is not stopped any more */
		with_drive += begun[i];
	}
	if (fixture->thin.held_count != with_drive)
		fail_msg("seed %u, %u tasks: %u begun, expected %u", seed, count,
			 fixture->thin.held_count, with_drive);
}

static void test_random(void **state)
{
	struct fixture *fixture = *state;
	static struct request requests[MANY];

	for (unsigned seed = 1; seed <= ROUNDS; seed++) {
		bool begun[MANY] = {false};
		unsigned count = 0;
		struct rng rng;

		rng_init(&rng, seed, 0);
		fixture->thin.deferred = true;
		while (count < MANY) {
			static const uint8_t attributes[] = {SCSI_SIMPLE, SCSI_SIMPLE, SCSI_ORDERED,
							     SCSI_HEAD_OF_QUEUE};

			if (rng_below(&rng, 3) > 0) {
				start(&requests[count],
				      rng_below(&rng, 2) ? fixture->a : fixture->b,
				      attributes[rng_below(&rng, 4)], (uint8_t)count);
				count++;
			} else if (fixture->thin.held_count > 0) {
				fake_volume_release(&fixture->thin, 1);
			}
			check(fixture, requests, count, begun, seed);
		}
		while (fixture->thin.held_count > 0) {
			fake_volume_release(&fixture->thin, 1);
			check(fixture, requests, count, begun, seed);
		}
		finish(fixture, requests, count);
	}
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_ordered),	      CASE(test_head_of_queue), CASE(test_waiting_for_data),
	    CASE(test_abort_dormant), CASE(test_refused),	CASE(test_random),
	};

	return cmocka_run_group_tests_name("scsi_ordering", tests, NULL, NULL);
}
