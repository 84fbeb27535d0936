/* SPDX-License-Identifier: MIT
 *
 * PERSISTENT RESERVE OUT parameter lists: lengths, TransportIDs, SPEC_I_PT, ALL_TG_PT, REGISTER AND
 * MOVE; and PREEMPT AND ABORT.
 */
#include <stdio.h>
#include <stdlib.h>

#include "target/scsi/pr_transport_id.h"
#include "tests/unit/scsi/pr_client.h"

#define KEY_A UINT64_C(0xa)
#define KEY_B UINT64_C(0xb)
#define KEY_S UINT64_C(0x5)

enum { PORT_A = 1, PORT_B = 0x102, LIST_MAX = 1024 };

/* Appends a TransportID with TEXT; returns its length. */
static unsigned put_id(uint8_t *out, unsigned format, const char *text)
{
	unsigned bytes = MAX_OF((unsigned)round_up_u64(strlen(text) + 1, 4), 20U);

	memset(out, 0, 4 + bytes);
	out[0] = (uint8_t)(format << 6 | 5);
	put_be16(out + 2, (uint16_t)bytes);
	memcpy(out + 4, text, strlen(text) + 1);
	return 4 + bytes;
}

static uint32_t spec_i_pt(struct scsi_nexus *nexus, uint8_t *list, uint32_t ids_bytes)
{
	put_be32(list + 24, ids_bytes);
	return pr_out_list(nexus, PR_REGISTER, 0, list, 28 + ids_bytes, 28 + ids_bytes);
}

static unsigned registered(struct fixture *fixture)
{
	return scsi_device_add(fixture->device, &fixture->thin)->reservations.pr->count;
}

static int find(struct fixture *fixture, const char *name, uint8_t last_isid, uint16_t port)
{
	const uint8_t isid[6] = {0x80, 0, 0, 0, 0, last_isid};
	const struct pr_nexus nexus = {name, isid, port, pr_hash(name, isid, port)};

	return pr_find(scsi_device_add(fixture->device, &fixture->thin)->reservations.pr, &nexus);
}

static void test_lengths(void **state)
{
	struct fixture *fixture = *state;
	uint8_t list[LIST_MAX];

	pr_list(list, 0, KEY_A, 0);
	for (uint32_t length = 0; length < 40; length++) {
		/* The CDB's length, and what really comes. */
		assert_int_equal(pr_out_list(fixture->a, PR_REGISTER, 0, list, length, length),
				 length == 24 ? 0 : 0x051a00);
		if (length == 24)
			pr_out(fixture->a, PR_REGISTER, 0, KEY_A, 0, 0);
		assert_int_equal(registered(fixture), 0);
		if (length < 24)
			assert_int_equal(pr_out_list(fixture->a, PR_REGISTER, 0, list, 24, length),
					 0x051a00);
	}
	assert_int_equal(pr_out_list(fixture->a, PR_REGISTER, 0, list, 0x7fffffff, 24), 0x051a00);
	assert_int_equal(pr_out_list(fixture->a, PR_REGISTER, 0, list, 0xffffffff, 24), 0x051a00);
}

static void test_spec_i_pt(void **state)
{
	struct fixture *fixture = *state;
	uint8_t list[LIST_MAX];
	unsigned bytes;

	pr_list(list, 0, KEY_S, PR_FLAG_SPEC_I_PT);
	bytes = put_id(list + 28, 1, "iqn.2026-11.test:x,i,0x800000000007");
	bytes += put_id(list + 28 + bytes, 1, "iqn.2026-11.test:Y,i,0x80000000000A");
	/* Only with REGISTER. */
	put_be32(list + 24, bytes);
	assert_int_equal(
	    pr_out_list(fixture->a, PR_REGISTER_AND_IGNORE, 0, list, 28 + bytes, 28 + bytes),
	    0x052600);
	assert_int_equal(registered(fixture), 0);
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0);
	assert_int_equal(registered(fixture), 3);
	expect_keys(fixture->a, 1, KEYS(KEY_S, KEY_S, KEY_S));
	assert_int_equal(find(fixture, "iqn.2026-11.test:x", 7, PORT_A), 1);
	assert_int_equal(find(fixture, "iqn.2026-11.test:y", 10, PORT_A), 2);
	assert_int_equal(find(fixture, "iqn.2026-11.test:x", 7, PORT_B), -1);
	/* A registered nexus cannot; a wrong key conflicts. */
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), CONFLICT);
	put_be64(list, KEY_S);
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0x052600);
	/* Those that are registered already keep their key. */
	pr_list(list, 0, KEY_B, PR_FLAG_SPEC_I_PT);
	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, KEY_S, 0, 0), 0);
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0);
	expect_keys(fixture->a, 3, KEYS(KEY_S, KEY_S, KEY_B));
}

static void test_spec_i_pt_device(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *second = scsi_nexus_new(fixture->target, "iqn.2026-11.test:b",
						   (const uint8_t[6]){0x80, 0, 0, 0, 0, 7}, 1, 1);
	uint8_t list[LIST_MAX];
	unsigned bytes;

	/* Format 00b stands for all known ports of the device. */
	pr_list(list, 0, KEY_S, PR_FLAG_SPEC_I_PT);
	bytes = put_id(list + 28, 0, "iqn.2026-11.test:unheard-of");
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0x052600);
	assert_int_equal(registered(fixture), 0);
	bytes = put_id(list + 28, 0, "iqn.2026-11.TEST:B");
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0);
	assert_int_equal(registered(fixture), 3);
	assert_true(find(fixture, "iqn.2026-11.test:b", 2, PORT_A) > 0);
	assert_true(find(fixture, "iqn.2026-11.test:b", 7, PORT_A) > 0);
	scsi_nexus_free(second);
}

static void test_bad_transport_ids(void **state)
{
	struct fixture *fixture = *state;
	static const char *const bad[] = {
	    "",
	    ",i,0x800000000007",
	    "iqn.2026-11.test:x",
	    "iqn.2026-11.test:x,i,0x",
	    "iqn.2026-11.test:x,i,0x80000000000",
	    "iqn.2026-11.test:x,i,0x8000000000070",
	    "iqn.2026-11.test:x,i,0x80000000000g",
	    "iqn.2026-11.test:x,i,800000000007",
	};
	uint8_t list[LIST_MAX], good[64];
	char long_name[300];
	unsigned bytes;

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		pr_list(list, 0, KEY_S, PR_FLAG_SPEC_I_PT);
		bytes = put_id(list + 28, 1, bad[i]);
		assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0x052600);
		assert_int_equal(registered(fixture), 0);
	}
	memset(long_name, 'x', sizeof long_name);
	snprintf(long_name + 224, sizeof long_name - 224, ",i,0x800000000007");
	bytes = put_id(list + 28, 1, long_name);
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0x052600);
	/* Cut short, unpadded, of another protocol or format, without its NUL. */
	bytes = put_id(good, 1, "iqn.2026-11.test:x,i,0x800000000007");
	for (unsigned i = 1; i < bytes; i++) {
		memcpy(list + 28, good, bytes);
		assert_int_equal(spec_i_pt(fixture->a, list, i), 0x052600);
	}
	for (unsigned i = 0; i < 5; i++) {
		memcpy(list + 28, good, bytes);
		if (i == 0)
			list[28] = 0x46;
		else if (i == 1)
			list[28] = 0x85;
		else if (i == 2)
			put_be16(list + 30, (uint16_t)(bytes - 5));
		else if (i == 3)
			put_be16(list + 30, 16);
		else
			memset(list + 28 + 4 + 35, 'f', bytes - 4 - 35);
		assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0x052600);
	}
	/* The length of the IDs against that of the list. */
	memcpy(list + 28, good, bytes);
	for (int wrong = -4; wrong <= 4; wrong += 8) {
		put_be32(list + 24, (uint32_t)((int)bytes + wrong));
		assert_int_equal(
		    pr_out_list(fixture->a, PR_REGISTER, 0, list, 28 + bytes, 28 + bytes),
		    0x051a00);
	}
	put_be32(list + 24, UINT32_MAX);
	assert_int_equal(pr_out_list(fixture->a, PR_REGISTER, 0, list, 28 + bytes, 28 + bytes),
			 0x051a00);
	assert_int_equal(pr_out_list(fixture->a, PR_REGISTER, 0, list, 24, 24), 0x051a00);
	assert_int_equal(registered(fixture), 0);
	assert_int_equal(spec_i_pt(fixture->a, list, bytes), 0);
	assert_int_equal(registered(fixture), 2);
}

/* The reader itself, on memory that ends where the TransportID does. */
static void test_read_transport_id(void **state)
{
	/* 36 characters: the text fills the field, and no NUL ends it. */
	static const char text[] = "iqn.2026-11.test:xy,i,0x800000000007";
	struct pr_initiator initiator;
	uint8_t *exact = malloc(41), padded[64], again[PR_TRANSPORT_ID_MAX_BYTES];
	bool is_device;
	size_t bytes;

	(void)state;
	assert_non_null(exact);
	exact[0] = 0x45;
	exact[1] = 0;
	put_be16(exact + 2, 36);
	memcpy(exact + 4, text, 37); /* the NUL is beyond */
	assert_false(pr_transport_id_get(exact, 40, &initiator, &is_device, &bytes));
	free(exact);
	assert_int_equal(put_id(padded, 1, text), 44);
	assert_true(pr_transport_id_get(padded, 44, &initiator, &is_device, &bytes));
	assert_int_equal(bytes, 44);
	assert_false(is_device);
	assert_string_equal(initiator.name, "iqn.2026-11.test:xy");
	assert_int_equal(pr_transport_id_put(again, &initiator), 44);
	assert_memory_equal(again, padded, 44);
	put_be16(padded + 2, 39); /* not a multiple of four, though it fits */
	assert_false(pr_transport_id_get(padded, 44, &initiator, &is_device, &bytes));
	/* The longest name there is, and the shortest. */
	memset(initiator.name, 'n', PR_NAME_BYTES - 1);
	assert_int_equal(pr_transport_id_put(again, &initiator), PR_TRANSPORT_ID_MAX_BYTES);
	assert_true(pr_transport_id_get(again, sizeof again, &initiator, &is_device, &bytes));
	assert_int_equal(strlen(initiator.name), PR_NAME_BYTES - 1);
	snprintf(initiator.name, sizeof initiator.name, "n");
	assert_int_equal(pr_transport_id_put(again, &initiator), 24);
	assert_true(pr_transport_id_get(again, 24, &initiator, &is_device, &bytes));
	assert_string_equal(initiator.name, "n");
}

/* As if the request had come through each target port: all or none. */
static void test_all_target_ports(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a;
	struct scsi_nexus *a2 =
	    scsi_nexus_new(fixture->target, a->initiator_name, a->isid, 2, PORT_B);

	assert_int_equal(tur(a2), 0x062900);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_A, PR_FLAG_ALL_TG_PT), 0);
	expect_keys(a, 1, KEYS(KEY_A, KEY_A));
	assert_true(find(fixture, a->initiator_name, 1, PORT_A) >= 0);
	assert_true(find(fixture, a->initiator_name, 1, PORT_B) >= 0);
	/* One of them changes: now the ports differ, and REGISTER through all conflicts. */
	assert_int_equal(pr_out(a2, PR_REGISTER, 0, KEY_A, KEY_B, 0), 0);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, KEY_A, KEY_S, PR_FLAG_ALL_TG_PT), CONFLICT);
	expect_keys(a, 2, KEYS(KEY_A, KEY_B));
	assert_int_equal(pr_out(a, PR_REGISTER_AND_IGNORE, 0, 0, KEY_S, PR_FLAG_ALL_TG_PT), 0);
	expect_keys(a, 3, KEYS(KEY_S, KEY_S));
	assert_int_equal(pr_out(a, PR_RESERVE, 5, KEY_S, 0, 0), 0);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, KEY_S, 0, PR_FLAG_ALL_TG_PT), 0);
	expect_keys(a, 4, 0, NULL);
	assert_int_equal(tur(a), 0);
	assert_int_equal(tur(a2), 0); /* no longer registered when the reservation went */
	scsi_nexus_free(a2);
}

/* ---- REGISTER AND MOVE ---- */

static uint32_t move(struct scsi_nexus *nexus, uint64_t key, uint64_t service_key, uint8_t flags,
		     uint16_t port, unsigned format, const char *to)
{
	uint8_t list[LIST_MAX] = {0};
	unsigned bytes = put_id(list + 24, format, to);

	put_be64(list, key);
	put_be64(list + 8, service_key);
	list[17] = flags;
	put_be16(list + 18, port);
	put_be32(list + 20, bytes);
	return pr_out_list(nexus, PR_REGISTER_AND_MOVE, 0, list, 24 + bytes, 24 + bytes);
}

static void test_move(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;
	static const char to_b[] = "iqn.2026-11.test:b,i,0x800000000002";

	assert_int_equal(move(a, 0, KEY_B, 0, PORT_B, 1, to_b), CONFLICT);
	pr_out(a, PR_REGISTER, 0, 0, KEY_A, 0);
	assert_int_equal(move(a, KEY_A, KEY_B, 0, PORT_B, 1, to_b), CONFLICT); /* no holder */
	assert_int_equal(pr_out(a, PR_RESERVE, 1, KEY_A, 0, 0), 0);
	assert_int_equal(move(a, KEY_S, KEY_B, 0, PORT_B, 1, to_b), CONFLICT);
	assert_int_equal(move(a, KEY_A, 0, 0, PORT_B, 1, to_b), 0x052600);
	assert_int_equal(move(a, KEY_A, KEY_B, 0, 99, 1, to_b), 0x052600);
	assert_int_equal(move(a, KEY_A, KEY_B, 0, PORT_B, 1, "iqn.2026-11.test:a,i,0x800000000001"),
			 0x052600);
	expect_keys(a, 1, KEYS(KEY_A));
	assert_int_equal(move(a, KEY_A, KEY_B, 0, PORT_B, 1, to_b), 0);
	expect_keys(a, 2, KEYS(KEY_A, KEY_B));
	expect_reservation(a, 1, KEY_B);
	assert_int_equal(tur(a), 0);
	assert_int_equal(tur(b), 0);
	assert_int_equal(move(a, KEY_A, KEY_B, 0, PORT_B, 1, to_b), CONFLICT); /* not the holder */
	/* Back, to a nexus that has a key already, and UNREG; format 00b with one known port. */
	assert_int_equal(move(b, KEY_B, KEY_S, 0x02, PORT_A, 0, "iqn.2026-11.test:a"), 0);
	expect_keys(a, 3, KEYS(KEY_S));
	expect_reservation(a, 1, KEY_S);
	/* All registrants: nobody can hand it on. */
	assert_int_equal(pr_out(a, PR_PREEMPT, 7, KEY_S, KEY_S, 0), 0);
	assert_int_equal(move(a, KEY_S, KEY_B, 0, PORT_B, 1, to_b), CONFLICT);
}

static void test_move_lengths(void **state)
{
	struct fixture *fixture = *state;
	uint8_t list[LIST_MAX] = {0};
	unsigned bytes;

	pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, 0);
	pr_out(fixture->a, PR_RESERVE, 1, KEY_A, 0, 0);
	put_be64(list, KEY_A);
	put_be64(list + 8, KEY_B);
	put_be16(list + 18, PORT_B);
	bytes = put_id(list + 24, 1, "iqn.2026-11.test:b,i,0x800000000002");
	put_be32(list + 20, bytes);
	/* The TransportID is announced but the list ends before it. */
	for (uint32_t length = 24; length < 24 + bytes; length++)
		assert_int_equal(
		    pr_out_list(fixture->a, PR_REGISTER_AND_MOVE, 0, list, length, length),
		    0x051a00);
	put_be32(list + 20, 0);
	assert_int_equal(pr_out_list(fixture->a, PR_REGISTER_AND_MOVE, 0, list, 24, 24), 0x052600);
	/* Two TransportIDs. */
	memcpy(list + 24 + bytes, list + 24, bytes);
	list[24 + bytes + 4 + 17] = 'c';
	put_be32(list + 20, 2 * bytes);
	assert_int_equal(
	    pr_out_list(fixture->a, PR_REGISTER_AND_MOVE, 0, list, 24 + 2 * bytes, 24 + 2 * bytes),
	    0x052600);
	expect_reservation(fixture->a, 1, KEY_A);
}

/* ---- PREEMPT AND ABORT ---- */

static void start_write(struct request *request, struct scsi_nexus *nexus, uint8_t *data)
{
	request_prepare(request, nexus, LUN_THIN, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512);
	assert_int_equal(request->prepared, SCSI_NEEDS_DATA);
	if (data)
		request_execute(request, data);
}

/* It ends when the commands of those it preempts have, and those of others go on. */
static void test_preempt_and_abort(void **state)
{
	struct fixture *fixture = *state;
	struct request mine = {0}, victim = {0}, waiting = {0}, preempt = {0};
	uint8_t list[24], data[512] = {0};
	const uint8_t cdb[10] = {0x5f, PR_PREEMPT_AND_ABORT, 1, [8] = 24};

	pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, 0);
	pr_out(fixture->b, PR_REGISTER, 0, 0, KEY_B, 0);
	pr_out(fixture->b, PR_RESERVE, 5, KEY_B, 0, 0);
	fixture->thin.deferred = true;
	start_write(&mine, fixture->a, data);
	start_write(&victim, fixture->b, data);
	start_write(&waiting, fixture->b, NULL); /* its data has not come */
	pr_list(list, KEY_A, KEY_B, 0);
	request_prepare(&preempt, fixture->a, LUN_THIN, cdb, sizeof cdb, 24);
	request_execute(&preempt, list);
	assert_int_equal(waiting.done_count, 1);
	assert_true(waiting.task.aborted);
	assert_int_equal(preempt.done_count, 0);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(mine.done_count, 1);
	assert_int_equal(outcome(&mine), 0);
	assert_int_equal(preempt.done_count, 0);
	/* The reservation has changed hands already. */
	expect_reservation(fixture->a, 1, KEY_A);
	fake_volume_release(&fixture->thin, 1);
	assert_int_equal(victim.done_count, 1);
	assert_true(victim.task.aborted);
	assert_int_equal(preempt.done_count, 1);
	assert_int_equal(outcome(&preempt), 0);
	fixture->thin.deferred = false;
	assert_int_equal(tur(fixture->b), 0x062a05);
	assert_int_equal(tur(fixture->b), 0);
	request_release(&preempt);
	request_release(&mine);
	request_release(&victim);
	request_release(&waiting);
}

/* The holder preempts itself: its own other commands are aborted. */
static void test_abort_own(void **state)
{
	struct fixture *fixture = *state;
	struct request mine = {0}, preempts[SCSI_MAX_PREEMPTS + 1] = {0};
	uint8_t list[24], data[512] = {0};
	const uint8_t cdb[10] = {0x5f, PR_PREEMPT_AND_ABORT, 1, [8] = 24};

	pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, 0);
	pr_out(fixture->a, PR_RESERVE, 1, KEY_A, 0, 0);
	fixture->thin.deferred = true;
	start_write(&mine, fixture->a, data);
	pr_list(list, KEY_A, KEY_A, 0);
	for (unsigned i = 0; i <= SCSI_MAX_PREEMPTS; i++) {
		request_prepare(&preempts[i], fixture->a, LUN_THIN, cdb, sizeof cdb, 24);
		request_execute(&preempts[i], list);
		assert_int_equal(preempts[i].done_count, i == SCSI_MAX_PREEMPTS);
	}
	assert_int_equal(outcome(&preempts[SCSI_MAX_PREEMPTS]), SCSI_BUSY);
	fake_volume_release(&fixture->thin, 1);
	assert_true(mine.task.aborted);
	/* All but the last were hit by their successors. */
	for (unsigned i = 0; i < SCSI_MAX_PREEMPTS; i++) {
		assert_int_equal(preempts[i].done_count, 1);
		assert_int_equal(preempts[i].task.aborted, i < SCSI_MAX_PREEMPTS - 1);
		request_release(&preempts[i]);
	}
	request_release(&preempts[SCSI_MAX_PREEMPTS]);
	request_release(&mine);
	expect_reservation(fixture->a, 1, KEY_A);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_lengths),
	    TEST(test_spec_i_pt),
	    TEST(test_spec_i_pt_device),
	    TEST(test_bad_transport_ids),
	    TEST(test_read_transport_id),
	    TEST(test_all_target_ports),
	    TEST(test_move),
	    TEST(test_move_lengths),
	    TEST(test_preempt_and_abort),
	    TEST(test_abort_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
