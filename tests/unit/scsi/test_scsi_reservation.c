/* SPDX-License-Identifier: MIT
 *
 * PERSISTENT RESERVE IN and OUT: registrations, the six types, preempting, who is told what.
 */
#include "tests/unit/scsi/pr_client.h"

#define KEY_A UINT64_C(0xa1a2a3a4a5a6a7a8)
#define KEY_B UINT64_C(0x00000000000000b0)
#define KEY_C UINT64_C(0xc000000000000000)

#define RELEASED      0x062a04U
#define RESV_PREEMPT  0x062a03U
#define REG_PREEMPTED 0x062a05U

static const uint8_t types[] = {PR_WRITE_EXCLUSIVE,
				PR_EXCLUSIVE_ACCESS,
				PR_WRITE_EXCLUSIVE_REGISTRANTS,
				PR_EXCLUSIVE_ACCESS_REGISTRANTS,
				PR_WRITE_EXCLUSIVE_ALL,
				PR_EXCLUSIVE_ACCESS_ALL};

static const uint8_t isid_c[6] = {0x80, 0, 0, 0, 0, 3};

static struct scsi_nexus *nexus_c(struct fixture *fixture)
{
	struct scsi_nexus *nexus =
	    scsi_nexus_new(fixture->target, "iqn.2026-11.test:c", isid_c, 1, 1);

	assert_non_null(nexus);
	assert_int_equal(tur(nexus), 0x062900);
	return nexus;
}

static void register_key(struct scsi_nexus *nexus, uint64_t key)
{
	assert_int_equal(pr_out(nexus, PR_REGISTER, 0, 0, key, 0), 0);
}

static bool is_all(uint8_t type)
{
	return type == PR_WRITE_EXCLUSIVE_ALL || type == PR_EXCLUSIVE_ACCESS_ALL;
}

static void test_register(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;

	expect_keys(a, 0, 0, NULL);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, 0, 0), 0);	    /* nothing to do */
	assert_int_equal(pr_out(a, PR_REGISTER_AND_IGNORE, 0, 7, 0, 0), 0); /* nor here */
	assert_int_equal(pr_out(a, PR_REGISTER, 0, 1, KEY_A, 0), CONFLICT);
	expect_keys(a, 0, 0, NULL);
	register_key(a, KEY_A);
	expect_keys(b, 1, KEYS(KEY_A));
	register_key(b, KEY_B);
	expect_keys(b, 2, KEYS(KEY_A, KEY_B)); /* the last one too */
	assert_int_equal(pr_out(a, PR_REGISTER, 0, KEY_B, KEY_C, 0), CONFLICT);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_C, 0), CONFLICT);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, KEY_A, KEY_C, 0), 0);
	expect_keys(b, 3, KEYS(KEY_C, KEY_B));
	assert_int_equal(pr_out(a, PR_REGISTER_AND_IGNORE, 0, 77, KEY_A, 0), 0);
	expect_keys(b, 4, KEYS(KEY_A, KEY_B));
	assert_int_equal(pr_out(a, PR_REGISTER, 0, KEY_A, 0, 0), 0);
	expect_keys(b, 5, KEYS(KEY_B));
	assert_int_equal(pr_out(b, PR_REGISTER_AND_IGNORE, 0, 0, 0, 0), 0);
	expect_keys(b, 6, 0, NULL);
	assert_int_equal(tur(a), 0);
	assert_int_equal(tur(b), 0);
	/* Other logical units know nothing of it. */
	register_key(a, KEY_A);
	assert_int_equal(scsi_device_add(fixture->device, &fixture->thick)->reservations.pr->count,
			 0);
}

static void test_read_keys_truncated(void **state)
{
	struct fixture *fixture = *state;
	uint8_t data[64];

	register_key(fixture->a, KEY_A);
	register_key(fixture->b, KEY_B);
	for (uint16_t allocation = 0; allocation < 30; allocation++) {
		uint32_t bytes = pr_in(fixture->a, 0, data, allocation);

		assert_int_equal(bytes, MIN_OF(allocation, 24));
		if (bytes >= 8)
			assert_int_equal(get_be32(data + 4), 16);
	}
}

static void test_reserve_release(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;

	assert_int_equal(pr_out(a, PR_RESERVE, 1, 0, 0, 0), CONFLICT); /* not registered */
	register_key(a, KEY_A);
	register_key(b, KEY_B);
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		uint8_t type = types[i], other = types[(i + 1) % ARRAY_SIZE(types)];
		bool told = type >= PR_WRITE_EXCLUSIVE_REGISTRANTS;

		assert_int_equal(pr_out(a, PR_RESERVE, type, KEY_B, 0, 0), CONFLICT);
		assert_int_equal(pr_out(a, PR_RESERVE, type, KEY_A, 0, 0), 0);
		assert_int_equal(pr_out(a, PR_RESERVE, type, KEY_A, 0, 0), 0);
		assert_int_equal(pr_out(a, PR_RESERVE, other, KEY_A, 0, 0), CONFLICT);
		assert_int_equal(pr_out(b, PR_RESERVE, type, KEY_B, 0, 0),
				 is_all(type) ? 0 : CONFLICT);
		expect_reservation(b, type, is_all(type) ? 0 : KEY_A);
		/* Who does not hold it releases nothing, without an error. */
		if (!is_all(type))
			assert_int_equal(pr_out(b, PR_RELEASE, type, KEY_B, 0, 0), 0);
		expect_reservation(b, type, is_all(type) ? 0 : KEY_A);
		assert_int_equal(pr_out(a, PR_RELEASE, other, KEY_A, 0, 0), 0x052604);
		assert_int_equal(pr_out(a, PR_RELEASE, type | 0x10, KEY_A, 0, 0), 0x052604);
		assert_int_equal(pr_out(a, PR_RELEASE, type, KEY_B, 0, 0), CONFLICT);
		assert_int_equal(pr_out(a, PR_RELEASE, type, KEY_A, 0, 0), 0);
		assert_int_equal(tur(a), 0);
		assert_int_equal(tur(b), told ? RELEASED : 0);
		assert_int_equal(tur(b), 0);
		expect_reservation(b, PR_NONE, 0);
		assert_int_equal(pr_out(a, PR_RELEASE, type, KEY_A, 0, 0), 0);
	}
	expect_keys(a, 2, KEYS(KEY_A, KEY_B)); /* neither counts as a generation */
}

static void test_bad_types(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t bad[] = {0, 2, 4, 9, 15, 0x11, 0x23};

	register_key(fixture->a, KEY_A);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(pr_out(fixture->a, PR_RESERVE, bad[i], KEY_A, 0, 0), 0x052400);
		expect_reservation(fixture->a, PR_NONE, 0);
	}
	for (uint8_t action = 8; action < 32; action++)
		assert_int_equal(pr_out(fixture->a, action, 0, KEY_A, 0, 0), 0x052400);
	for (uint8_t action = 4; action < 32; action++)
		assert_int_equal(run_cdb(fixture->a, CDB(0x5e, action, 0, 0, 0, 0, 0, 1, 0, 0)),
				 0x052400);
}

/* A new key of the holder is the reservation's. */
static void test_holder_changes_key(void **state)
{
	struct fixture *fixture = *state;

	register_key(fixture->a, 0xa);
	assert_int_equal(pr_out(fixture->a, PR_RESERVE, 1, 0xa, 0, 0), 0);
	assert_int_equal(pr_out(fixture->a, PR_REGISTER_AND_IGNORE, 0, 0, 0xb, 0), 0);
	expect_reservation(fixture->b, 1, 0xb);
}

/* The holder unregisters: what becomes of the reservation, and who hears of it. */
static void test_holder_unregisters(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b, *c = nexus_c(fixture);

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		uint8_t type = types[i];
		bool registrants_only = type == PR_WRITE_EXCLUSIVE_REGISTRANTS ||
					type == PR_EXCLUSIVE_ACCESS_REGISTRANTS;

		register_key(a, KEY_A);
		register_key(b, KEY_B);
		assert_int_equal(pr_out(a, PR_RESERVE, type, KEY_A, 0, 0), 0);
		assert_int_equal(pr_out(a, PR_REGISTER, 0, KEY_A, 0, 0), 0);
		assert_int_equal(tur(a), 0); /* never a stray one for who unregisters itself */
		assert_int_equal(tur(b), registrants_only ? RELEASED : 0);
		assert_int_equal(tur(b), 0);
		assert_int_equal(tur(c), 0);
		expect_reservation(c, is_all(type) ? type : PR_NONE, 0);
		assert_int_equal(pr_out(b, PR_REGISTER, 0, KEY_B, 0, 0), 0);
		expect_reservation(c, PR_NONE, 0); /* the last registrant has gone */
		assert_int_equal(tur(a), 0);
		assert_int_equal(tur(b), 0);
	}
	scsi_nexus_free(c);
}

static void test_clear(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b, *c = nexus_c(fixture);

	assert_int_equal(pr_out(a, PR_CLEAR, 0, 0, 0, 0), CONFLICT);
	register_key(a, KEY_A);
	register_key(b, KEY_B);
	assert_int_equal(pr_out(a, PR_RESERVE, 6, KEY_A, 0, 0), 0);
	assert_int_equal(pr_out(b, PR_CLEAR, 0, KEY_A, 0, 0), CONFLICT);
	assert_int_equal(pr_out(b, PR_CLEAR, 0, KEY_B, 0, 0), 0);
	assert_int_equal(tur(a), RESV_PREEMPT);
	assert_int_equal(tur(a), 0);
	assert_int_equal(tur(b), 0);
	assert_int_equal(tur(c), 0);
	expect_keys(a, 3, 0, NULL);
	expect_reservation(a, PR_NONE, 0);
	scsi_nexus_free(c);
}

/* Only registrations go: TYPE does not matter, and the sender's own goes with the key it shares. */
static void test_preempt_registrations(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b, *c = nexus_c(fixture);

	register_key(a, KEY_A);
	register_key(b, KEY_B);
	register_key(c, KEY_B);
	assert_int_equal(pr_out(a, PR_PREEMPT, 0, KEY_A, KEY_C, 0), CONFLICT);
	assert_int_equal(pr_out(a, PR_PREEMPT, 0, KEY_A, 0, 0), 0x052600);
	assert_int_equal(pr_out(a, PR_PREEMPT, 0, KEY_B, KEY_B, 0), CONFLICT);
	expect_keys(a, 3, KEYS(KEY_A, KEY_B, KEY_B));
	assert_int_equal(pr_out(a, PR_PREEMPT, 0, KEY_A, KEY_B, 0), 0);
	expect_keys(a, 4, KEYS(KEY_A));
	assert_int_equal(tur(a), 0);
	assert_int_equal(tur(b), REG_PREEMPTED);
	assert_int_equal(tur(b), 0);
	assert_int_equal(tur(c), REG_PREEMPTED);
	register_key(b, KEY_A);
	assert_int_equal(pr_out(a, PR_PREEMPT, 0, KEY_A, KEY_A, 0), 0);
	assert_int_equal(tur(b), REG_PREEMPTED);
	assert_int_equal(tur(a), 0);
	expect_keys(a, 6, 0, NULL);
	scsi_nexus_free(c);
}

static void test_preempt_holder(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b, *c = nexus_c(fixture);

	register_key(a, KEY_A);
	register_key(b, KEY_B);
	register_key(c, KEY_C);
	assert_int_equal(pr_out(a, PR_RESERVE, 1, KEY_A, 0, 0), 0);
	assert_int_equal(pr_out(b, PR_PREEMPT, 4, KEY_B, KEY_A, 0), 0x052400);
	expect_reservation(b, 1, KEY_A);
	/* A changed type is told to those that stay. */
	assert_int_equal(pr_out(b, PR_PREEMPT, 3, KEY_B, KEY_A, 0), 0);
	expect_reservation(b, 3, KEY_B);
	expect_keys(b, 4, KEYS(KEY_B, KEY_C));
	assert_int_equal(tur(a), REG_PREEMPTED);
	assert_int_equal(tur(b), 0);
	assert_int_equal(tur(c), RELEASED);
	/* The same type: those that stay hear nothing. */
	register_key(a, KEY_A);
	assert_int_equal(pr_out(c, PR_PREEMPT, 3, KEY_C, KEY_B, 0), 0);
	assert_int_equal(tur(b), REG_PREEMPTED);
	assert_int_equal(tur(c), 0);
	assert_int_equal(tur(a), 0);
	/* The holder changes its own type and stays registered. */
	assert_int_equal(pr_out(c, PR_PREEMPT, 5, KEY_C, KEY_C, 0), 0);
	expect_reservation(c, 5, KEY_C);
	expect_keys(c, 7, KEYS(KEY_C, KEY_A));
	assert_int_equal(tur(c), 0);
	assert_int_equal(tur(a), RELEASED);
	scsi_nexus_free(c);
}

/* All registrants hold it: key 0 takes it from all, another key only registrations. */
static void test_preempt_all_registrants(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b, *c = nexus_c(fixture);

	register_key(a, KEY_A);
	register_key(b, KEY_B);
	register_key(c, KEY_C);
	assert_int_equal(pr_out(a, PR_RESERVE, 7, KEY_A, 0, 0), 0);
	assert_int_equal(pr_out(b, PR_PREEMPT, 3, KEY_B, KEY_C, 0), 0);
	expect_reservation(a, 7, 0);
	assert_int_equal(tur(c), REG_PREEMPTED);
	assert_int_equal(tur(a), 0);
	register_key(c, KEY_C);
	assert_int_equal(pr_out(b, PR_PREEMPT, 1, KEY_B, 0, 0), 0);
	expect_reservation(b, 1, KEY_B);
	assert_int_equal(tur(a), REG_PREEMPTED);
	assert_int_equal(tur(b), 0);
	assert_int_equal(tur(c), REG_PREEMPTED);
	expect_keys(b, 6, KEYS(KEY_B));
	/* Every registrant removes its key and with the last one the reservation goes. */
	assert_int_equal(pr_out(b, PR_PREEMPT, 8, KEY_B, KEY_B, 0), 0);
	assert_int_equal(pr_out(b, PR_PREEMPT, 8, KEY_B, KEY_B, 0), 0);
	expect_reservation(a, PR_NONE, 0);
	expect_keys(b, 8, 0, NULL);
	scsi_nexus_free(c);
}

static void test_capabilities(void **state)
{
	struct fixture *fixture = *state;
	uint8_t data[16];

	assert_int_equal(pr_in(fixture->a, 2, data, sizeof data), 8);
	assert_int_equal(get_be16(data), 8);
	assert_int_equal(data[2], 0x1c); /* CRH, SIP_C, ATP_C; memory does not persist */
	assert_int_equal(data[3], 0xb0);
	assert_int_equal(data[4], 0xea);
	assert_int_equal(data[5], 0x01);
	/* What is not offered is refused. */
	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, PR_FLAG_APTPL), 0x052600);
	expect_keys(fixture->a, 0, 0, NULL);
	fixture->thin.state_dir = "/nonexistent";
	pr_in(fixture->a, 2, data, sizeof data);
	assert_int_equal(data[2], 0x1d);
	assert_int_equal(data[3], 0xb0);
}

static void test_full_status(void **state)
{
	struct fixture *fixture = *state;
	static const char name_a[] = "iqn.2026-11.test:a,i,0x800000000001";
	uint8_t data[512];
	uint32_t bytes;

	register_key(fixture->a, KEY_A);
	register_key(fixture->b, KEY_B);
	assert_int_equal(pr_out(fixture->b, PR_RESERVE, 5, KEY_B, 0, 0), 0);
	bytes = pr_in(fixture->a, 3, data, sizeof data);
	assert_int_equal(get_be32(data), 2);
	assert_int_equal(get_be32(data + 4), bytes - 8);
	assert_int_equal(bytes, 8 + 2 * (24 + 4 + 36));
	assert_true(get_be64(data + 8) == KEY_A);
	assert_int_equal(data[20], 0x00);
	assert_int_equal(data[21], 0x00);
	assert_int_equal(get_be16(data + 26), 1);
	assert_int_equal(get_be32(data + 28), 40);
	assert_int_equal(data[32], 0x45);
	assert_int_equal(get_be16(data + 34), 36);
	assert_memory_equal(data + 36, name_a, sizeof name_a);
	assert_true(get_be64(data + 72) == KEY_B);
	assert_int_equal(data[84], 0x01);
	assert_int_equal(data[85], 0x05);
	assert_int_equal(get_be16(data + 90), 0x102);
	/* All registrants: all hold it. */
	assert_int_equal(pr_out(fixture->b, PR_PREEMPT, 8, KEY_B, KEY_B, 0), 0);
	assert_int_equal(tur(fixture->a), RELEASED);
	pr_in(fixture->a, 3, data, sizeof data);
	assert_int_equal(data[20], 0x01);
	assert_int_equal(data[21], 0x08);
	assert_int_equal(data[84], 0x01);
}

/* A registration outlives the session and is found again when the nexus returns. */
static void test_nexus_returns(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t other_isid[6] = {0x80, 0, 0, 0, 0, 9};
	struct scsi_nexus *c = nexus_c(fixture);
	const uint8_t write[10] = {0x2a, [8] = 1};
	static uint8_t block[512];
	struct request request = {0};

	register_key(c, KEY_C);
	assert_int_equal(pr_out(c, PR_RESERVE, 3, KEY_C, 0, 0), 0);
	scsi_nexus_free(c);
	expect_reservation(fixture->a, 3, KEY_C);
	/* Another ISID, another port: other nexuses. */
	for (unsigned i = 0; i < 3; i++) {
		c = scsi_nexus_new(fixture->target, "iqn.2026-11.TEST:c",
				   i == 0 ? other_isid : isid_c, 1, i == 1 ? 2 : 1);
		assert_int_equal(tur(c), 0x062900);
		request_run(&request, c, LUN_THIN, write, sizeof write, block, 512);
		assert_int_equal(outcome(&request), i == 2 ? 0 : CONFLICT);
		request_release(&request);
		if (i == 2)
			assert_int_equal(pr_out(c, PR_RELEASE, 3, KEY_C, 0, 0), 0);
		scsi_nexus_free(c);
	}
	expect_reservation(fixture->a, PR_NONE, 0);
}

/* A reset leaves persistent reservations alone. */
static void nothing(void *arg)
{
	(void)arg;
}

static void test_reset(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t lun[8] = {0, LUN_THIN};

	register_key(fixture->a, KEY_A);
	assert_int_equal(pr_out(fixture->a, PR_RESERVE, 3, KEY_A, 0, 0), 0);
	assert_int_equal(scsi_reset_lu(fixture->b, lun, nothing, NULL), 0);
	assert_int_equal(tur(fixture->a), 0x062903);
	expect_reservation(fixture->a, 3, KEY_A);
}

static void test_table_is_bounded(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_lu *lu = scsi_device_add(fixture->device, &fixture->thin);
	struct pr_initiator initiator = {.name = "iqn.2026-11.test:many"};

	for (unsigned i = 0; i < PR_MAX_REGISTRATIONS; i++) {
		put_be32(initiator.isid + 2, i);
		assert_int_equal(pr_add(lu->reservations.pr, &initiator, 1, 1), 0);
	}
	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, 0), 0x055504);
	assert_int_equal(lu->reservations.pr->count, PR_MAX_REGISTRATIONS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_register),
	    TEST(test_read_keys_truncated),
	    TEST(test_reserve_release),
	    TEST(test_bad_types),
	    TEST(test_holder_changes_key),
	    TEST(test_holder_unregisters),
	    TEST(test_clear),
	    TEST(test_preempt_registrations),
	    TEST(test_preempt_holder),
	    TEST(test_preempt_all_registrants),
	    TEST(test_capabilities),
	    TEST(test_full_status),
	    TEST(test_nexus_returns),
	    TEST(test_reset),
	    TEST(test_table_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
