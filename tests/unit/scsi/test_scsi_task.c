/* SPDX-License-Identifier: MIT
 *
 * Tasks and nexuses: LUN addressing, unit attentions, unknown commands, abort and reset.
 */
#include "target/scsi/internal.h"
#include "tests/unit/scsi/fixture.h"

#include <errno.h>
#include <stdlib.h>

#define TUR CDB(0, 0, 0, 0, 0, 0)

static void expect_tur(struct scsi_nexus *nexus, unsigned lun, uint32_t code)
{
	struct request request = {0};

	request_run(&request, nexus, lun, TUR, NULL, 0);
	if (code != 0)
		assert_int_equal(request_sense_code(&request), code);
	else
		assert_int_equal(request.task.status, SCSI_GOOD);
	request_release(&request);
}

static void count_done(struct scsi_task *task)
{
	struct request *request = task->owner;

	request->done_count++;
}

static void test_lun_addressing(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t lun[8];
		uint32_t code;
	} rows[] = {
	    {{0x00, 0x01}, 0},	      /* peripheral */
	    {{0x40, 0x01}, 0},	      /* flat */
	    {{0x01, 0x01}, 0x052500}, /* peripheral with bus bits */
	    {{0x41, 0x2c}, 0x052500}, /* flat 300 */
	    {{0x01, 0x2c}, 0x052500}, /* 300 as raw bits */
	    {{0x80, 0x01}, 0x052500}, /* logical unit addressing */
	    {{0xc1, 0x01}, 0x052500}, /* the REPORT LUNS well-known LU has no TEST UNIT READY */
	    {{0x00, 0x01, 0, 1}, 0x052500}, /* a second level */
	    {{0x00, 0x09}, 0x052500},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct request request = {0};

		request.task.nexus = fixture->a;
		request.task.done = count_done;
		request.task.owner = &request;
		memcpy(request.task.lun, rows[i].lun, 8);
		if (scsi_prepare(&request.task) == SCSI_ENDED) {
			assert_int_equal(request_sense_code(&request), rows[i].code);
			continue;
		}
		assert_int_equal(rows[i].code, 0);
		scsi_execute(&request.task);
		assert_int_equal(request.done_count, 1);
		assert_int_equal(request.task.status, SCSI_GOOD);
	}
}

static void test_unknown_commands(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t cdb[16];
		uint32_t code;
	} rows[] = {
	    {{0x02}, 0x052000},	      {{0x1e}, 0x052000},	{{0xff}, 0x052000},
	    {{0x9f, 0x11}, 0x052000}, {{0x9e, 0x1f}, 0x052400}, {{0x48, 0x05}, 0x052400},
	};
	struct request request = {0};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		request_run(&request, fixture->a, LUN_THIN, rows[i].cdb, 16, NULL, 0);
		assert_int_equal(request.prepared, SCSI_ENDED);
		assert_int_equal(request_sense_code(&request), rows[i].code);
		request_run(&request, fixture->a, LUN_NONE, rows[i].cdb, 16, NULL, 0);
		assert_int_equal(request_sense_code(&request), 0x052500);
	}
	request_run(&request, fixture->a, LUN_THIN, CDB(0, 0, 0, 0, 0, 4), NULL, 0); /* NACA */
	assert_int_equal(request_sense_code(&request), 0x052400);
	request_release(&request);
}

/* 29/00 once per nexus and logical unit; INQUIRY and REPORT LUNS pass it by. */
static void test_power_on(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *nexus =
	    scsi_nexus_new(fixture->target, "iqn.2026-11.test:c", (const uint8_t[6]){0}, 1, 1);
	struct request request = {0};

	assert_non_null(nexus);
	request_run(&request, nexus, LUN_THIN, CDB(0x12, 0, 0, 0, 96, 0), NULL, 96);
	assert_int_equal(request.task.status, SCSI_GOOD);
	request_release(&request);
	request_run(&request, nexus, LUN_THIN, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0), NULL,
		    256);
	assert_int_equal(request.task.status, SCSI_GOOD);
	request_release(&request);
	/* A write is refused before its data is asked for. */
	request_prepare(&request, nexus, LUN_THIN, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512);
	assert_int_equal(request.prepared, SCSI_ENDED);
	assert_int_equal(request.task.out_bytes, 0);
	assert_int_equal(request_sense_code(&request), 0x062900);
	assert_int_equal(fixture->thin.writes, 0);
	expect_tur(nexus, LUN_THIN, 0);
	/* The unknown opcode is told only after the unit attention. */
	request_run(&request, nexus, LUN_THICK, CDB(0xff), NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x062900);
	request_run(&request, nexus, LUN_THICK, CDB(0xff), NULL, 0);
	assert_int_equal(request_sense_code(&request), 0x052000);
	expect_tur(fixture->a, LUN_THIN, 0);
	request_release(&request);
	scsi_nexus_free(nexus);
}

static void test_request_sense(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *nexus =
	    scsi_nexus_new(fixture->target, "iqn.2026-11.test:c", (const uint8_t[6]){0}, 1, 1);
	struct request request = {0};

	/* Reports and clears the unit attention with GOOD. */
	request_run(&request, nexus, LUN_THIN, CDB(3, 0, 0, 0, 252, 0), NULL, 252);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_int_equal(request.task.in_bytes, 18);
	assert_int_equal(request.task.in_buf->data[2], 6);
	assert_int_equal(request.task.in_buf->data[12], 0x29);
	request_release(&request);
	request_run(&request, nexus, LUN_THIN, CDB(3, 0, 0, 0, 252, 0), NULL, 252);
	assert_int_equal(request.task.in_buf->data[2], 0);
	request_release(&request);
	expect_tur(nexus, LUN_THIN, 0);
	/* Also with allocation length 0. */
	request_run(&request, nexus, LUN_THICK, CDB(3, 0, 0, 0, 0, 0), NULL, 0);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_int_equal(request.task.in_bytes, 0);
	expect_tur(nexus, LUN_THICK, 0);
	/* But not when it fails. */
	request_run(&request, nexus, LUN_HUGE, CDB(3, 0, 0, 0, 252, 4), NULL, 252);
	assert_int_equal(request_sense_code(&request), 0x052400);
	expect_tur(nexus, LUN_HUGE, 0x062900);
	/* Descriptor format; a LUN that does not exist. */
	request_run(&request, nexus, LUN_NONE, CDB(3, 1, 0, 0, 252, 0), NULL, 252);
	assert_int_equal(request.task.status, SCSI_GOOD);
	assert_memory_equal(request.task.in_buf->data, ((const uint8_t[8]){0x72, 5, 0x25}), 8);
	request_release(&request);
	scsi_nexus_free(nexus);
}

static void finished(void *arg)
{
	++*(unsigned *)arg;
}

static const uint8_t lun_thin[8] = {0, LUN_THIN};
static const uint8_t lun_thick[8] = {0, LUN_THICK};

/* Conditions queue once each and come in order; the nexus that resets is told as well. */
static void test_attention_order(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_lu *lu = scsi_device_add(fixture->device, &fixture->thin);
	struct request request = {0};
	unsigned count = 0;

	assert_int_equal(scsi_reset_lu(fixture->a, lun_thin, finished, &count), 0);
	assert_int_equal(scsi_reset_lu(fixture->a, lun_thin, finished, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(scsi_target_add_lun(fixture->target, 5, lu), 0);
	assert_int_equal(scsi_target_add_lun(fixture->target, 5, lu), -EEXIST);
	assert_int_equal(scsi_target_add_lun(fixture->target, 256, lu), -ERANGE);
	expect_tur(fixture->b, LUN_THIN, 0x062903);
	expect_tur(fixture->b, LUN_THIN, 0x063f0e);
	expect_tur(fixture->b, LUN_THIN, 0);
	expect_tur(fixture->b, 5, 0x062900);
	expect_tur(fixture->b, 5, 0);
	expect_tur(fixture->a, LUN_THIN, 0x062903);
	expect_tur(fixture->a, LUN_THIN, 0x063f0e);
	/* REPORT LUNS clears the changed inventory on the other logical units. */
	request_run(&request, fixture->a, LUN_THIN, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0),
		    NULL, 256);
	request_release(&request);
	expect_tur(fixture->a, LUN_THICK, 0);
	assert_int_equal(
	    scsi_reset_lu(fixture->a, (const uint8_t[8]){0, LUN_NONE}, finished, &count), -ENXIO);
	assert_int_equal(count, 2);
	/* The same unit behind two LUNs: both tell. */
	assert_int_equal(scsi_reset_lu(fixture->b, lun_thin, finished, &count), 0);
	expect_tur(fixture->a, LUN_THIN, 0x062903);
	expect_tur(fixture->a, 5, 0x062900);
	expect_tur(fixture->a, 5, 0x062903);
	expect_tur(fixture->a, 5, 0);
}

static void start_read(struct fixture *fixture, struct request *request, struct scsi_nexus *nexus)
{
	memset(request, 0, sizeof *request);
	request_prepare(request, nexus, LUN_THIN, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0), 4096);
	assert_int_equal(request->prepared, SCSI_READY);
	request_execute(request, NULL);
	assert_int_equal(request->done_count, 0);
}

static void start_write(struct fixture *fixture, struct request *request, struct scsi_nexus *nexus)
{
	memset(request, 0, sizeof *request);
	request_prepare(request, nexus, LUN_THIN, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512);
	assert_int_equal(request->prepared, SCSI_NEEDS_DATA);
}

static void test_abort(void **state)
{
	struct fixture *fixture = *state;
	struct request read, write, other;

	fixture->thin.deferred = true;
	start_read(fixture, &read, fixture->a);
	start_read(fixture, &other, fixture->a);
	start_write(fixture, &write, fixture->a);
	scsi_abort(&write.task); /* waits for data: done at once */
	assert_int_equal(write.done_count, 1);
	assert_true(write.task.aborted);
	request_release(&write);
	scsi_abort(&read.task);
	scsi_abort(&read.task);
	assert_int_equal(read.done_count, 0); /* the volume holds the buffer */
	assert_non_null(read.task.in_buf);
	fake_volume_release(&fixture->thin, 2);
	assert_int_equal(read.done_count, 1);
	assert_true(read.task.aborted);
	assert_int_equal(other.done_count, 1);
	assert_false(other.task.aborted);
	assert_int_equal(other.task.status, SCSI_GOOD);
	scsi_abort(&other.task); /* too late: no second done */
	assert_int_equal(other.done_count, 1);
	assert_false(other.task.aborted);
	assert_int_equal(fixture->thin.writes, 0);
	request_release(&read);
	request_release(&other);
}

/* A logical unit reset ends every nexus' tasks and finishes only when the last has gone. */
static void test_reset_waits(void **state)
{
	struct fixture *fixture = *state;
	struct request read_a, read_b, write_b, late, later;
	unsigned first = 0, second = 0, other = 0;

	fixture->thin.deferred = true;
	start_read(fixture, &read_a, fixture->a);
	start_read(fixture, &read_b, fixture->b);
	start_write(fixture, &write_b, fixture->b);
	assert_int_equal(scsi_reset_lu(fixture->a, lun_thin, finished, &first), 0);
	assert_int_equal(write_b.done_count, 1);
	assert_true(write_b.task.aborted);
	assert_int_equal(first, 0);
	assert_int_equal(scsi_reset_lu(fixture->a, lun_thick, finished, &other), 0);
	assert_int_equal(other, 1); /* another unit does not wait */
	expect_tur(fixture->a, LUN_THIN, 0x062903);
	start_read(fixture, &late, fixture->a);	  /* after the reset: not affected by it */
	start_write(fixture, &later, fixture->a); /* ends before what the reset waits for */
	scsi_abort(&later.task);
	assert_int_equal(later.done_count, 1);
	start_write(fixture, &later, fixture->a);
	scsi_abort(&later.task);
	assert_int_equal(first, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_true(read_a.task.aborted);
	assert_int_equal(first, 0);
	assert_int_equal(scsi_reset_lu(fixture->b, lun_thin, finished, &second), 0);
	fake_volume_release(&fixture->thin, 1);
	assert_true(read_b.task.aborted);
	assert_int_equal(first, 1);
	assert_int_equal(second, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_true(late.task.aborted);
	assert_int_equal(late.done_count, 1);
	assert_int_equal(second, 1);
	assert_int_equal(first, 1);
	fixture->thin.deferred = false;
	expect_tur(fixture->b, LUN_THIN, 0x062903);
	expect_tur(fixture->b, LUN_THIN, 0);
	expect_tur(fixture->a, LUN_THIN, 0x062903);
	expect_tur(fixture->a, LUN_THIN, 0);
	request_release(&read_a);
	request_release(&read_b);
	request_release(&write_b);
	request_release(&late);
}

static void test_task_set_full(void **state)
{
	struct fixture *fixture = *state;
	enum { LIMIT = 4096 };
	struct request *many = calloc(LIMIT + 1, sizeof *many);

	assert_non_null(many);
	for (unsigned i = 0; i <= LIMIT; i++) {
		request_prepare(&many[i], fixture->a, LUN_THIN, TUR, 0);
		assert_int_equal(many[i].prepared, i < LIMIT ? SCSI_READY : SCSI_ENDED);
	}
	assert_int_equal(many[LIMIT].task.status, SCSI_TASK_SET_FULL);
	assert_int_equal(many[LIMIT].task.sense_bytes, 0);
	for (unsigned i = 0; i < LIMIT; i++) {
		scsi_execute(&many[i].task);
		assert_int_equal(many[i].done_count, 1);
	}
	expect_tur(fixture->a, LUN_THIN, 0);
	free(many);
}

/* A reset through one target is felt through the other. */
static void test_two_targets_share_a_unit(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_target *target =
	    scsi_target_new(fixture->device, "iqn.2026-11.test.sanlab:unit:second");
	struct scsi_lu *lu = scsi_device_add(fixture->device, &fixture->thin);
	struct scsi_nexus *nexus;
	struct request read;
	unsigned count = 0;

	assert_non_null(target);
	assert_string_equal(scsi_target_name(target), "iqn.2026-11.test.sanlab:unit:second");
	assert_int_equal(scsi_target_add_lun(target, 0, lu), 0);
	nexus = scsi_nexus_new(target, "iqn.2026-11.test:c", (const uint8_t[6]){0}, 1, 1);
	expect_tur(nexus, 0, 0x062900);
	fixture->thin.deferred = true;
	start_read(fixture, &read, nexus);
	assert_int_equal(scsi_reset_lu(fixture->a, lun_thin, finished, &count), 0);
	assert_int_equal(count, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_true(read.task.aborted);
	assert_int_equal(count, 1);
	expect_tur(nexus, 0, 0x062903);
	expect_tur(nexus, 0, 0);
	request_release(&read);
	scsi_nexus_free(nexus);
	scsi_target_free(target);
}

/* Beyond its bound the queue collapses into 29/00; within it nothing queues twice. */
static void test_attention_bound(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 0; i < SCSI_UA_MAX; i++) {
		scsi_ua_add(fixture->a, LUN_THIN, 0x062a00 + i);
		scsi_ua_add(fixture->a, LUN_THIN, 0x062a00);
	}
	for (uint32_t i = 0; i < SCSI_UA_MAX; i++)
		assert_int_equal(scsi_ua_take(fixture->a, LUN_THIN), 0x062a00 + i);
	assert_int_equal(scsi_ua_take(fixture->a, LUN_THIN), SENSE_NONE);
	for (uint32_t i = 0; i <= SCSI_UA_MAX; i++)
		scsi_ua_add(fixture->a, LUN_THIN, 0x062a00 + i);
	assert_int_equal(scsi_ua_take(fixture->a, LUN_THIN), SENSE_UA_POWER_ON);
	assert_int_equal(scsi_ua_take(fixture->a, LUN_THIN), SENSE_NONE);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_lun_addressing),
	    CASE(test_unknown_commands),
	    CASE(test_power_on),
	    CASE(test_request_sense),
	    CASE(test_attention_order),
	    CASE(test_abort),
	    CASE(test_reset_waits),
	    CASE(test_task_set_full),
	    CASE(test_two_targets_share_a_unit),
	    CASE(test_attention_bound),
	};

	return cmocka_run_group_tests_name("scsi_task", tests, NULL, NULL);
}
