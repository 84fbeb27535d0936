/* SPDX-License-Identifier: MIT
 *
 * EXTENDED COPY (LID1) and RECEIVE COPY RESULTS.
 */
#include "tests/unit/scsi/fixture.h"

#include <errno.h>
#include <stdlib.h>

#include "target/scsi/alua.h"

enum {
	HEADER = 16,
	TARGET = 32,
	SEGMENT = 28,
	LIST_MAX = 16 * TARGET + 16 * SEGMENT, /* as RECEIVE COPY RESULTS says */
	HOLD = 0x00,
	DISCARD = 0x10,
	NO_ID = 0x18,
};

/* A parameter list while it is made. */
struct list {
	uint8_t data[HEADER + 2 * LIST_MAX];
	unsigned targets, segments;
};

static void list_begin(struct list *list, uint8_t id, uint8_t usage)
{
	memset(list, 0, sizeof *list);
	list->data[0] = id;
	list->data[1] = usage;
}

/* All targets come before the first segment. */
static void add_target(struct list *list, const struct volume *volume)
{
	uint8_t *at = list->data + HEADER + (size_t)TARGET * list->targets++;

	at[0] = 0xe4;
	at[4] = 1;
	at[5] = 3;
	at[7] = 16;
	memcpy(at + 8, volume->naa, 16);
	put_be24(at + 29, volume->block_bytes);
	put_be16(list->data + 2, (uint16_t)(TARGET * list->targets));
}

static uint8_t *add_segment(struct list *list, uint16_t from, uint64_t from_lba, uint16_t to,
			    uint64_t to_lba, uint16_t blocks)
{
	uint8_t *at = list->data + HEADER + (size_t)TARGET * list->targets +
		      (size_t)SEGMENT * list->segments++;

	at[0] = 0x02;
	at[3] = SEGMENT - 4;
	put_be16(at + 4, from);
	put_be16(at + 6, to);
	put_be16(at + 10, blocks);
	put_be64(at + 12, from_lba);
	put_be64(at + 20, to_lba);
	put_be32(list->data + 8, SEGMENT * list->segments);
	return at;
}

static unsigned list_bytes(const struct list *list)
{
	return HEADER + TARGET * list->targets + SEGMENT * list->segments;
}

static void start(struct request *request, struct scsi_nexus *nexus, const struct list *list,
		  unsigned bytes)
{
	uint8_t cdb[16] = {0x83};

	put_be32(cdb + 10, bytes);
	request_prepare(request, nexus, LUN_THIN, cdb, sizeof cdb, bytes);
	if (request->prepared != SCSI_ENDED)
		request_execute(request, list->data);
}

/* The whole copy; afterwards REQUEST holds its end. */
static void copy(struct fixture *fixture, struct request *request, const struct list *list)
{
	start(request, fixture->a, list, list_bytes(list));
	if (request->prepared == SCSI_ENDED)
		return;
	while (request->done_count == 0)
		assert_int_equal(loop_turn(fixture->loop, true), 0);
	assert_int_equal(request->done_count, 1);
}

static void copy_expect(struct fixture *fixture, const struct list *list, uint32_t code)
{
	struct request request = {0};

	copy(fixture, &request, list);
	if (code == 0)
		assert_int_equal(request.task.status, SCSI_GOOD);
	else
		assert_int_equal(request_sense_code(&request), code);
	request_release(&request);
}

static void fill(struct volume *volume)
{
	for (uint64_t i = 0; i < volume->layer.size_bytes; i++)
		volume->data[i] = (uint8_t)(i * 7 + i / 512 + (i >> 20));
}

static const uint8_t *results(struct request *request, struct scsi_nexus *nexus, uint8_t action,
			      uint8_t id)
{
	const uint8_t cdb[16] = {0x84, action, id, [12] = 4};

	return request_good_in(request, nexus, LUN_THIN, cdb, sizeof cdb);
}

static void no_results(struct scsi_nexus *nexus, uint8_t id)
{
	const uint8_t cdb[16] = {0x84, 0, id, [12] = 4};

	request_expect(nexus, LUN_THIN, cdb, sizeof cdb, NULL, 0, 0x052400);
}

static void test_within_a_volume(void **state)
{
	struct fixture *fixture = *state;
	struct list list;

	fill(&fixture->thin);
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_segment(&list, 0, 0, 0, 4096, 2048);
	add_segment(&list, 0, 4095, 0, 2050, 3);
	copy_expect(fixture, &list, 0);
	assert_memory_equal(fixture->thin.data + 2 * MIB, fixture->thin.data, MIB);
	assert_memory_equal(fixture->thin.data + (uint64_t)2051 * 512, fixture->thin.data, 2 * 512);
}

static void test_overlap(void **state)
{
	struct fixture *fixture = *state;
	struct list list;
	uint8_t *before = malloc(3 * MIB);

	assert_non_null(before);
	for (unsigned forward = 0; forward < 2; forward++) {
		uint64_t from = forward ? 512 : 0, to = forward ? 0 : 512;

		fill(&fixture->thin);
		memcpy(before, fixture->thin.data + from * 512, 3 * MIB);
		list_begin(&list, 0, NO_ID);
		add_target(&list, &fixture->thin);
		add_segment(&list, 0, from, 0, to, 6144);
		copy_expect(fixture, &list, 0);
		assert_memory_equal(fixture->thin.data + to * 512, before, 3 * MIB);
	}
	free(before);
}

/* Between 512-byte and 4 KiB blocks; DC says whose blocks are counted. */
static void test_between_volumes(void **state)
{
	struct fixture *fixture = *state;
	struct list list;

	fill(&fixture->thin);
	list_begin(&list, 9, DISCARD);
	add_target(&list, &fixture->thin);
	add_target(&list, &fixture->thick);
	add_segment(&list, 0, 8, 1, 2, 16);	       /* 16 blocks of 512: two of 4 KiB */
	add_segment(&list, 0, 64, 1, 10, 3)[1] = 0x02; /* DC: three of 4 KiB */
	add_segment(&list, 1, 10, 0, 8000, 1);	       /* and back */
	copy_expect(fixture, &list, 0);
	assert_memory_equal(fixture->thick.data + 2 * 4096, fixture->thin.data + 4096, 8192);
	assert_memory_equal(fixture->thick.data + 10 * 4096, fixture->thin.data + 64 * 512,
			    3 * 4096);
	assert_memory_equal(fixture->thin.data + (size_t)8000 * 512, fixture->thin.data + 64 * 512,
			    4096);
	no_results(fixture->a, 9); /* discarded */
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_target(&list, &fixture->thick);
	add_segment(&list, 0, 0, 1, 0, 9); /* ends within a block */
	copy_expect(fixture, &list, 0x0a260a);
}

/* More than a few chunks: the copy lets the loop go on in between. */
static void test_turns(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	struct list list;
	unsigned turns = 0;

	fill(&fixture->thin);
	list_begin(&list, 5, HOLD);
	add_target(&list, &fixture->thin);
	for (unsigned i = 0; i < 16; i++)
		add_segment(&list, 0, 0, 0, 4096, 4096);
	start(&request, fixture->a, &list, list_bytes(&list));
	while (request.done_count == 0) {
		struct request status = {0};
		const uint8_t *data = results(&status, fixture->a, 0, 5);

		assert_int_equal(data[4], 0); /* in progress */
		request_release(&status);
		assert_int_equal(loop_turn(fixture->loop, true), 0);
		turns++;
	}
	assert_int_equal(turns, 7);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_memory_equal(fixture->thin.data + 2 * MIB, fixture->thin.data, 2 * MIB);
	request_release(&request);
}

static void test_status(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	struct list list;
	const uint8_t *data;

	no_results(fixture->a, 1);
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_segment(&list, 0, 0, 0, 4096, 2048);
	add_segment(&list, 0, 0, 0, 4096, 1);
	copy_expect(fixture, &list, 0);
	no_results(fixture->b, 1);
	no_results(fixture->a, 2);
	data = results(&request, fixture->a, 0, 1);
	assert_int_equal(request.task.in_bytes, 12);
	assert_int_equal(get_be32(data), 8);
	assert_int_equal(data[4], 1); /* completed without errors */
	assert_int_equal(get_be16(data + 5), 2);
	assert_int_equal(data[7], 0); /* bytes */
	assert_int_equal(get_be32(data + 8), MIB + 512);
	request_release(&request);
	no_results(fixture->a, 1); /* told once */
}

static void test_failed_details(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	struct list list;
	const uint8_t *data;

	fixture->thin.fail_status = -EIO;
	list_begin(&list, 3, HOLD);
	add_target(&list, &fixture->thin);
	add_segment(&list, 0, 0, 0, 4096, 0);
	add_segment(&list, 0, 0, 0, 4096, 8);
	copy(fixture, &request, &list);
	assert_int_equal(request_sense_code(&request), 0x0a0d01);
	assert_int_equal(request.task.sense[0] & 0x80, 0x80);
	assert_int_equal(get_be32(request.task.sense + 3), 1); /* the second segment */
	request_release(&request);
	fixture->thin.fail_status = 0;
	data = results(&request, fixture->a, 0, 3);
	assert_int_equal(data[4], 2); /* completed with errors */
	assert_int_equal(get_be16(data + 5), 1);
	request_release(&request);
	data = results(&request, fixture->a, 4, 3);
	assert_int_equal(get_be32(data), 56 + 18);
	assert_int_equal(request.task.in_bytes, 60 + 18);
	assert_int_equal(data[56], SCSI_CHECK_CONDITION);
	assert_int_equal(get_be16(data + 58), 18);
	assert_int_equal(data[60 + 2], 0x0a);
	request_release(&request);
	data = results(&request, fixture->a, 4, 3);
	assert_int_equal(request.task.in_bytes, 4);
	assert_int_equal(get_be32(data), 0);
	request_release(&request);
	no_results(fixture->a, 3);
}

static void test_parameters(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	const uint8_t *data = results(&request, fixture->a, 3, 0);

	assert_int_equal(get_be32(data), request.task.in_bytes - 4);
	assert_int_equal(get_be16(data + 8), 16);
	assert_int_equal(get_be16(data + 10), 16);
	assert_int_equal(get_be32(data + 12), LIST_MAX);
	assert_int_equal(data[43], 2);
	assert_int_equal(data[44], 0x02);
	assert_int_equal(data[45], 0xe4);
	request_release(&request);
	data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x12, 1, 0x8f, 4, 0, 0));
	assert_int_equal(get_be16(data + 2), request.task.in_bytes - 4);
	assert_int_equal(get_be16(data + 4), 0x0001);
	for (const uint8_t *at = data + 4, *end = data + request.task.in_bytes; at < end;) {
		assert_int_equal(get_be16(at + 2) % 4, 0);
		at += 4 + get_be16(at + 2);
		assert_true(at <= end);
	}
	request_release(&request);
}

/* What is wrong with the list refuses the command and leaves no trace. */
static void test_refused_lists(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	struct list good, list;

	list_begin(&good, 1, HOLD);
	add_target(&good, &fixture->thin);
	add_segment(&good, 0, 0, 0, 4096, 1);
	for (unsigned bytes = 0; bytes <= list_bytes(&good); bytes++) {
		start(&request, fixture->a, &good, bytes);
		if (bytes == 0 || bytes == list_bytes(&good))
			assert_int_equal(request.task.status, SCSI_GOOD);
		else
			assert_int_equal(request_sense_code(&request), 0x051a00);
		request_release(&request);
	}
	request_expect(fixture->a, LUN_THIN,
		       CDB(0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0), good.data, HEADER,
		       0x051a00);
#define REFUSED(change, code)                      \
	do {                                       \
		list = good;                       \
		change;                            \
		copy_expect(fixture, &list, code); \
	} while (0)
	REFUSED(list.data[15] = 4, 0x05260b);			/* inline data */
	REFUSED(list.data[1] = 0x08, 0x052600);			/* reserved LIST ID USAGE */
	REFUSED(list.data[1] = NO_ID, 0x052600);		/* but there is one */
	REFUSED(list.data[HEADER] = 0xe0, 0x052607);		/* Fibre Channel */
	REFUSED(list.data[HEADER + 1] = 1, 0x052600);		/* a tape */
	REFUSED(list.data[HEADER + TARGET] = 3, 0x052609);	/* stream to stream */
	REFUSED(list.data[HEADER + TARGET + 3] = 20, 0x052600); /* its length */
	REFUSED(list.data[3] = 1, 0x052600);			/* a torn target */
	REFUSED(put_be32(list.data + 8, 0xffffffff), 0x051a00);
	no_results(fixture->a, 7);
}

static void test_too_many(void **state)
{
	struct fixture *fixture = *state;
	struct list list;

	list_begin(&list, 1, HOLD);
	for (unsigned i = 0; i < 17; i++)
		add_target(&list, &fixture->thin);
	add_segment(&list, 0, 0, 0, 1, 1);
	copy_expect(fixture, &list, 0x052606);
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	for (unsigned i = 0; i < 17; i++)
		add_segment(&list, 0, 0, 0, 1, 1);
	copy_expect(fixture, &list, 0x052608);
	list_begin(&list, 1, HOLD);
	for (unsigned i = 0; i < 17; i++)
		add_target(&list, &fixture->thin);
	for (unsigned i = 0; i < 17; i++)
		add_segment(&list, 0, 0, 0, 1, 1);
	copy_expect(fixture, &list, 0x051a00);
}

/* What a segment cannot have aborts the copy before anything is written. */
static void test_aborted_segments(void **state)
{
	struct fixture *fixture = *state;
	const uint64_t blocks = THIN_BYTES / 512;
	const struct {
		uint16_t from, to, count;
		uint64_t from_lba, to_lba;
		uint32_t code;
	} rows[] = {
	    {0, 1, 1, 0, 0, 0x0a0804}, /* unknown identifier */
	    {0, 2, 1, 0, 0, 0x0a0804}, /* no such descriptor */
	    {5, 0, 1, 0, 0, 0x0a0804},		{0, 0, 2, 0, blocks - 1, 0x0a0000},
	    {0, 0, 2, blocks - 1, 0, 0x0a0000}, {0, 0, 1, 0, UINT64_MAX, 0x0a0000},
	    {0, 0, 0, blocks, blocks, 0}, /* nothing, at the end */
	};
	struct volume stranger = fixture->thin;

	stranger.naa[15] ^= 1;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct list list;

		list_begin(&list, 1, HOLD);
		add_target(&list, &fixture->thin);
		add_target(&list, &stranger);
		add_segment(&list, 0, 0, 0, 4096, 1);
		add_segment(&list, rows[i].from, rows[i].from_lba, rows[i].to, rows[i].to_lba,
			    rows[i].count);
		fixture->thin.writes = 0;
		copy_expect(fixture, &list, rows[i].code);
		assert_int_equal(fixture->thin.writes, rows[i].code == 0);
	}
}

/* No way past a login: a volume of a target where the initiator is not cannot be reached. */
static void test_other_target(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_target *other = scsi_target_new(fixture->device, "iqn.2026-11.test.sanlab:u:o");
	struct scsi_nexus *nexus;
	static struct volume hidden;
	struct list list;

	fake_volume_init(&hidden, "secret", MIB, 512, false, true);
	assert_non_null(other);
	assert_int_equal(scsi_target_add_lun(other, 0, scsi_device_add(fixture->device, &hidden)),
			 0);
	list_begin(&list, 1, HOLD);
	add_target(&list, &hidden);
	add_target(&list, &fixture->thin);
	add_segment(&list, 0, 0, 1, 0, 8);
	copy_expect(fixture, &list, 0x0a0804);
	nexus = scsi_nexus_new(other, "iqn.2026-11.test:b", (const uint8_t[6]){0x80}, 1, 1);
	copy_expect(fixture, &list, 0x0a0804); /* somebody else's */
	scsi_nexus_free(nexus);
	nexus = scsi_nexus_new(other, "iqn.2026-11.test:a", (const uint8_t[6]){0x80}, 1, 1);
	copy_expect(fixture, &list, 0);
	scsi_nexus_free(nexus);
	scsi_target_free(other);
	fake_volume_done(&hidden);
}

static void test_not_usable(void **state)
{
	struct fixture *fixture = *state;
	struct list list;

	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_target(&list, &fixture->thick);
	add_segment(&list, 0, 0, 1, 0, 8);
	assert_int_equal(
	    scsi_alua_set(scsi_device_add(fixture->device, &fixture->thick), 1, ALUA_STANDBY, 0),
	    0);
	copy_expect(fixture, &list, 0x0a0d02);
	assert_int_equal(scsi_alua_set(scsi_device_add(fixture->device, &fixture->thick), 1,
				       ALUA_NON_OPTIMIZED, 0),
			 0);
	copy_expect(fixture, &list, 0);
}

static void reserve(struct scsi_nexus *nexus, uint8_t action, uint8_t type)
{
	uint8_t list[24] = {0};
	const uint8_t cdb[10] = {0x5f, action, type, [8] = sizeof list};

	put_be64(list + (action == 0 ? 8 : 0), 0x1234);
	request_expect(nexus, LUN_THICK, cdb, sizeof cdb, list, sizeof list, 0);
}

/* A reservation at the other end counts as it does for a read or write from there. */
static void test_reserved(void **state)
{
	struct fixture *fixture = *state;
	struct list list;

	reserve(fixture->b, 0, 0);
	reserve(fixture->b, 1, 1); /* write exclusive */
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_target(&list, &fixture->thick);
	add_segment(&list, 0, 0, 1, 0, 8);
	copy_expect(fixture, &list, 0x0a0d01);
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_target(&list, &fixture->thick);
	add_segment(&list, 1, 0, 0, 0, 1);
	copy_expect(fixture, &list, 0);
	reserve(fixture->b, 2, 1);
	reserve(fixture->b, 1, 3); /* exclusive access */
	copy_expect(fixture, &list, 0x0a0d01);
}

static void test_abort(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0}, other = {0};
	struct list list;

	fixture->thin.deferred = true;
	list_begin(&list, 1, HOLD);
	add_target(&list, &fixture->thin);
	add_segment(&list, 0, 0, 0, 4096, 4096);
	start(&request, fixture->a, &list, list_bytes(&list));
	assert_int_equal(fixture->thin.held_count, 1);
	/* the list identifier is in use */
	start(&other, fixture->a, &list, list_bytes(&list));
	assert_int_equal(request_sense_code(&other), 0x050016);
	request_release(&other);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(fixture->thin.writes, 1);
	scsi_abort(&request.task);
	assert_int_equal(request.done_count, 0); /* the volume has the buffer */
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(request.done_count, 1);
	assert_true(request.task.aborted);
	assert_int_equal(fixture->thin.held_count, 0);
	request_release(&request);
	/* in the pause between two turns */
	fixture->thin.deferred = false;
	for (unsigned i = 0; i < 8; i++)
		add_segment(&list, 0, 0, 0, 4096, 4096);
	start(&request, fixture->a, &list, list_bytes(&list));
	assert_int_equal(request.done_count, 0);
	scsi_abort(&request.task);
	assert_int_equal(loop_turn(fixture->loop, true), 0);
	assert_int_equal(request.done_count, 1);
	assert_int_equal(fixture->thin.held_count, 0);
	request_release(&request);
}

/* Seventeen at once: the last is told to come again. */
static void test_concurrent(void **state)
{
	struct fixture *fixture = *state;
	struct request *many = calloc(17, sizeof *many);
	struct list list;

	assert_non_null(many);
	fixture->thin.deferred = true;
	for (unsigned i = 0; i < 17; i++) {
		list_begin(&list, (uint8_t)i, HOLD);
		add_target(&list, &fixture->thin);
		add_segment(&list, 0, 0, 0, 4096, 1);
		start(&many[i], fixture->a, &list, list_bytes(&list));
		assert_int_equal(many[i].done_count, i == 16);
	}
	assert_int_equal(many[16].task.status, SCSI_BUSY);
	fake_volume_release(&fixture->thin, 16);
	fake_volume_release(&fixture->thin, 16);
	for (unsigned i = 0; i < 17; i++) {
		assert_int_equal(many[i].done_count, 1);
		request_release(&many[i]);
	}
	free(many);
}

/* Results that nobody fetches do not pile up, and end with the nexus. */
static void test_records_bound(void **state)
{
	struct fixture *fixture = *state;
	struct list list;
	struct request request = {0};

	for (unsigned i = 0; i < 40; i++) {
		list_begin(&list, (uint8_t)i, HOLD);
		add_target(&list, &fixture->thin);
		add_segment(&list, 0, 0, 0, 4096, 1);
		copy_expect(fixture, &list, 0);
	}
	no_results(fixture->a, 23);
	results(&request, fixture->a, 0, 24);
	request_release(&request);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_within_a_volume), CASE(test_overlap),
	    CASE(test_between_volumes), CASE(test_turns),
	    CASE(test_status),		CASE(test_failed_details),
	    CASE(test_parameters),	CASE(test_refused_lists),
	    CASE(test_too_many),	CASE(test_aborted_segments),
	    CASE(test_other_target),	CASE(test_not_usable),
	    CASE(test_abort),		CASE(test_reserved),
	    CASE(test_concurrent),	CASE(test_records_bound),
	};

	return cmocka_run_group_tests_name("scsi_copy", tests, NULL, NULL);
}
