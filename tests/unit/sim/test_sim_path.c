/* SPDX-License-Identifier: MIT
 *
 * The simulated path on the virtual loop: login, I/O, exact delays, refusals and determinism.  The
 * SCSI layer is the real one, its volume a fake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "lab.h"

static void test_login(void **state)
{
	struct lab lab;
	const struct path_identity *a, *b;

	lab_init(&lab, &lab_plain_link, NULL);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(path_connect(lab.sides[i].path), 0);
		assert_int_equal(path_connect(lab.sides[i].path), -EALREADY);
		assert_int_equal(lab.sides[i].ups, 0);
	}
	lab_run_for(&lab, UP_NS - 1);
	assert_int_equal(lab.sides[0].ups, 0);
	lab_run_for(&lab, 1);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(lab.sides[i].ups, 1);
		assert_int_equal(lab.sides[i].event_ns, UP_NS);
	}
	a = &lab.sides[0].path->identity;
	b = &lab.sides[1].path->identity;
	assert_int_equal(a->designator_bytes, 16);
	assert_memory_equal(a->designator, lab.volume.naa, 16);
	assert_int_equal(b->designator_bytes, 16);
	assert_memory_equal(a->designator, b->designator, sizeof a->designator);
	assert_int_equal(a->relative_port, 3261);
	assert_int_equal(b->relative_port, 3262);
	assert_int_equal(a->target_port_group, 1);
	assert_int_equal(a->block_bytes, BLOCK);
	assert_int_equal(a->blocks, VOLUME_BYTES / BLOCK);
	assert_int_equal(a->max_transfer_blocks, 16 * MIB / BLOCK);
	assert_true(a->can_unmap);
	assert_false(a->write_protected);
	assert_int_equal(a->portal_group, 3261);
	assert_int_equal(b->portal_group, 3262);
	assert_true(a->referrals);
	assert_true(*a->serial);
	assert_string_equal(a->serial, b->serial);
	assert_string_equal(a->vendor, "SANLAB");
	assert_string_equal(a->product, "db1");
	lab_done(&lab);
}

static void test_login_fails(void **state)
{
	static const struct path_config wrong_lun = {.lun = 4};
	static const struct path_config impatient = {.lun = 3, .login_timeout_ns = 5 * DELAY_NS};
	struct lab lab;

	lab_init(&lab, &lab_plain_link, &wrong_lun);
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(lab.sides[0].ups, 0);
	assert_int_equal(lab.sides[0].downs, 1);
	assert_string_equal(lab.sides[0].why, "TEST UNIT READY failed: sense 05/25/00");
	lab_done(&lab);

	lab_init(&lab, &lab_plain_link, &impatient);
	sim_link_stall(lab.sides[0].link, true);
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	assert_int_equal(path_connect(lab.sides[1].path), 0);
	lab_run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(lab.sides[i].downs, 1);
		assert_int_equal(lab.sides[i].event_ns, 5 * DELAY_NS);
		assert_non_null(strstr(lab.sides[i].why, "timed out"));
	}
	lab_done(&lab);
}

static void test_io(void **state)
{
	struct lab lab;
	struct transfer write, read, flush, unmap;
	uint64_t begin;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	begin = loop_now_ns(lab.loop);
	transfer_start(&write, &lab.sides[0], IO_WRITE, 5, 8, 0x5a);
	assert_int_equal(lab.sides[0].path->in_flight, 1);
	assert_int_equal(lab.sides[0].path->in_flight_bytes, 4096);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(write.pio.result, PATH_OK);
	assert_int_equal(write.done_ns - begin, 2 * DELAY_NS);
	assert_int_equal(lab.sides[0].path->in_flight, 0);
	assert_int_equal(lab.sides[0].path->in_flight_bytes, 0);
	assert_int_equal(lab.volume.last.flags, 0);
	transfer_finish(&write);

	transfer_start(&read, &lab.sides[1], IO_READ, 4, 10, 0xff);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(read.pio.result, PATH_OK);
	for (unsigned i = 0; i < 10 * BLOCK; i++)
		assert_int_equal(read.data[i], i >= BLOCK && i < 9 * BLOCK ? 0x5a : 0);
	transfer_finish(&read);

	transfer_start(&flush, &lab.sides[0], IO_FLUSH, 0, 0, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(flush.pio.result, PATH_OK);
	assert_int_equal(lab.volume.flushes, 1);
	transfer_finish(&flush);
	transfer_start(&unmap, &lab.sides[0], IO_UNMAP, 6, 2, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(unmap.pio.result, PATH_OK);
	assert_int_equal(lab.volume.data[6 * BLOCK - 1], 0x5a);
	assert_int_equal(lab.volume.data[6 * BLOCK], 0);
	assert_int_equal(lab.volume.data[8 * BLOCK], 0x5a);
	transfer_finish(&unmap);
	lab_done(&lab);
}

static void test_fua(void **state)
{
	struct lab lab;
	struct transfer write;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	transfer_start(&write, &lab.sides[0], IO_WRITE, 0, 1, 1);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(lab.volume.last.flags, 0);
	write.done_count = 0;
	write.pio.flags = IO_FUA;
	path_submit(lab.sides[0].path, &write.pio);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(lab.volume.last.flags, IO_FUA);
	transfer_finish(&write);
	lab_done(&lab);
}

/* 48 bytes of header each way; 4144 bytes take 4144 us at 1 MB/s. */
static void test_rate(void **state)
{
	static const struct sim_link_config slow = {.delay_ns = DELAY_NS,
						    .rate_bytes_per_s = 1000000};
	struct lab lab;
	struct transfer writes[2], reads[2];
	uint64_t begin;

	lab_init(&lab, &slow, NULL);
	lab_connect_all(&lab);
	begin = loop_now_ns(lab.loop);
	for (unsigned i = 0; i < 2; i++)
		transfer_start(&writes[i], &lab.sides[0], IO_WRITE, 0, 8, 7);
	lab_run_for(&lab, NS_PER_S / 10);
	assert_int_equal(writes[0].done_ns - begin, 2 * DELAY_NS + (4144 + 48) * NS_PER_US);
	assert_int_equal(writes[1].done_ns - begin, 2 * DELAY_NS + (2 * 4144 + 48) * NS_PER_US);
	begin = loop_now_ns(lab.loop);
	for (unsigned i = 0; i < 2; i++)
		transfer_start(&reads[i], &lab.sides[0], IO_READ, 0, 8, 0);
	lab_run_for(&lab, NS_PER_S / 10);
	assert_int_equal(reads[0].done_ns - begin, 2 * DELAY_NS + (48 + 4144) * NS_PER_US);
	assert_int_equal(reads[1].done_ns - begin, 2 * DELAY_NS + (48 + 2 * 4144) * NS_PER_US);
	for (unsigned i = 0; i < 2; i++) {
		transfer_finish(&writes[i]);
		transfer_finish(&reads[i]);
	}
	lab_done(&lab);
}

/* Jitter delays, it never lets one overtake another. */
static void test_jitter_keeps_order(void **state)
{
	static const struct sim_link_config shaky = {
	    .delay_ns = DELAY_NS, .jitter_ns = DELAY_NS, .seed = 7};
	struct lab lab;
	struct transfer writes[60];
	unsigned distinct = 0;

	lab_init(&lab, &shaky, NULL);
	lab_connect_all(&lab);
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++) {
		uint64_t begin = loop_now_ns(lab.loop);

		transfer_start(&writes[i], &lab.sides[0], IO_WRITE, 9, 1, (uint8_t)i);
		writes[i].index = i;
		lab_run_for(&lab, DELAY_NS / 10);
		assert_true(loop_now_ns(lab.loop) == begin + DELAY_NS / 10);
	}
	lab_run_for(&lab, NS_PER_S / 10);
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++) {
		uint64_t took = writes[i].done_ns - writes[i].pio.submit_ns;

		assert_int_equal(writes[i].order, i);
		assert_in_range(took, 2 * DELAY_NS, 4 * DELAY_NS);
		distinct += took != 2 * DELAY_NS;
		transfer_finish(&writes[i]);
	}
	assert_true(distinct > ARRAY_SIZE(writes) / 2);
	assert_int_equal(lab.volume.data[9 * BLOCK], ARRAY_SIZE(writes) - 1);
	lab_done(&lab);
}

static void test_target_errors(void **state)
{
	struct lab lab;
	struct transfer transfer;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	lab.volume.fail_status = -EIO;
	transfer_start(&transfer, &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(transfer.pio.result, PATH_SENSE);
	assert_int_equal(transfer.pio.sense_key, 3);
	assert_int_equal(transfer.pio.asc, 0x11);
	transfer_finish(&transfer);
	lab.volume.fail_status = -EBUSY;
	transfer_start(&transfer, &lab.sides[0], IO_WRITE, 0, 1, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(transfer.pio.result, PATH_STATUS);
	assert_int_equal(transfer.pio.scsi_status, 0x08);
	transfer_finish(&transfer);
	lab.volume.fail_status = 0;
	transfer_start(&transfer, &lab.sides[0], IO_WRITE, VOLUME_BYTES / BLOCK, 1, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(transfer.pio.result, PATH_SENSE);
	assert_int_equal(transfer.pio.asc, 0x21);
	transfer_finish(&transfer);
	assert_true(lab.sides[0].path->up);
	lab_done(&lab);
}

static void test_not_sent(void **state)
{
	static const struct path_config narrow = {.lun = 3, .max_in_flight = 2};
	struct lab lab;
	struct transfer early, transfers[3];

	lab_init(&lab, &lab_plain_link, &narrow);
	transfer_start(&early, &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, 1);
	assert_int_equal(early.pio.result, PATH_NOT_SENT);
	transfer_finish(&early);
	lab_connect_all(&lab);
	for (unsigned i = 0; i < 3; i++)
		transfer_start(&transfers[i], &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transfers[i].pio.result, i < 2 ? PATH_OK : PATH_NOT_SENT);
		transfer_finish(&transfers[i]);
	}
	lab_done(&lab);
}

/* Same seed, same trace to the byte; another seed, another. */
static void run_scenario(uint64_t seed, char *out, size_t size)
{
	const struct sim_link_config shaky = {.delay_ns = 300 * NS_PER_US,
					      .jitter_ns = 200 * NS_PER_US,
					      .rate_bytes_per_s = 125000000,
					      .seed = seed};
	struct lab lab;
	struct transfer transfers[40];

	lab_init(&lab, &shaky, NULL);
	lab_connect_all(&lab);
	for (unsigned i = 0; i < ARRAY_SIZE(transfers); i++) {
		transfer_start(&transfers[i], &lab.sides[i % 2], i % 3 ? IO_WRITE : IO_READ, i,
			       1 + i % 5, (uint8_t)i);
		transfers[i].index = i;
		lab_run_for(&lab, 90 * NS_PER_US);
		if (i == 25)
			sim_link_cut(lab.sides[1].link, true);
	}
	lab_run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < ARRAY_SIZE(transfers); i++)
		transfer_finish(&transfers[i]);
	snprintf(out, size, "%s", lab.trace);
	lab_done(&lab);
}

static void test_deterministic(void **state)
{
	static char first[16384], again[16384], other[16384];

	run_scenario(1, first, sizeof first);
	run_scenario(1, again, sizeof again);
	run_scenario(2, other, sizeof other);
	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
	assert_non_null(strstr(first, "down 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_login),
	    cmocka_unit_test(test_login_fails),
	    cmocka_unit_test(test_io),
	    cmocka_unit_test(test_fua),
	    cmocka_unit_test(test_rate),
	    cmocka_unit_test(test_jitter_keeps_order),
	    cmocka_unit_test(test_target_errors),
	    cmocka_unit_test(test_not_sent),
	    cmocka_unit_test(test_deterministic),
	};

	return cmocka_run_group_tests_name("sim_path", tests, NULL, NULL);
}
