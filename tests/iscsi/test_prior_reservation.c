/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had with persistent reservations and ALUA (see test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "target/scsi/alua.h"

enum pr_out_action {
	REGISTER,
	RESERVE,
	RELEASE,
	CLEAR,
	PREEMPT,
	PREEMPT_AND_ABORT,
	REGISTER_AND_IGNORE,
	REGISTER_AND_MOVE
};
enum pr_in_action { READ_KEYS, READ_RESERVATION, REPORT_CAPABILITIES, READ_FULL_STATUS };
enum { WRITE_EXCLUSIVE = 1, EXCLUSIVE_ACCESS = 3, WE_REGISTRANTS = 5, TYPE_COUNT = 6 };

static const uint8_t types[TYPE_COUNT] = {1, 3, 5, 6, 7, 8};

/* PERSISTENT RESERVE OUT: status << 24 | sense. */
static uint32_t pr_out(struct real_fixture *f, struct pdu_client *c, unsigned action, unsigned type,
		       uint64_t key, uint64_t action_key)
{
	struct real_answer answer;
	uint8_t list[24] = {0};

	put_be64(list, key);
	put_be64(list + 8, action_key);
	memcpy(f->pattern, list, sizeof list); /* in case it is asked for by R2T */
	answer =
	    real_run(f, c, 0, FLAG_WRITE,
		     CDB(0x5f, (uint8_t)action, (uint8_t)type, 0, 0, 0, 0, 0, 24, 0), 24, list, 24);
	return (uint32_t)answer.status << 24 | answer.sense;
}

/* PERSISTENT RESERVE IN into f->back; its length. */
static uint32_t pr_in(struct real_fixture *f, struct pdu_client *c, unsigned action)
{
	struct real_answer answer = real_run(
	    f, c, 0, FLAG_READ, CDB(0x5e, (uint8_t)action, 0, 0, 0, 0, 0, 16, 0, 0), 4096, NULL, 0);

	assert_int_equal(answer.status, SCSI_GOOD);
	return answer.data_bytes;
}

static uint64_t holder_key(struct real_fixture *f, struct pdu_client *c)
{
	uint32_t bytes = pr_in(f, c, READ_RESERVATION);

	return bytes < 24 ? 0 : get_be64(f->back + 8);
}

/* How many registrations there are; whether KEY is among them. */
static unsigned keys_count(struct real_fixture *f, struct pdu_client *c, uint64_t key,
			   unsigned *ret_found)
{
	uint32_t bytes = pr_in(f, c, READ_KEYS);
	unsigned count = get_be32(f->back + 4) / 8;

	assert_int_equal(bytes, 8 + count * 8);
	*ret_found = 0;
	for (unsigned i = 0; i < count; i++)
		*ret_found += get_be64(f->back + 8 + i * 8) == key;
	return count;
}

#define CONFLICT ((uint32_t)SCSI_RESERVATION_CONFLICT << 24)

/* ---- 75 ---- */

static void bug_75_new_key_of_the_holder(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	unsigned found;

	for (unsigned i = 0; i < TYPE_COUNT; i++) {
		for (unsigned ignore = 0; ignore < 2; ignore++) {
			bool all = types[i] > 6; /* all registrants hold it: key 0 */

			assert_int_equal(pr_out(f, c, REGISTER, 0, 0, 0xa), 0);
			assert_int_equal(pr_out(f, c, RESERVE, types[i], 0xa, 0), 0);
			assert_int_equal(holder_key(f, c), all ? 0 : 0xa);
			assert_int_equal(pr_out(f, c, ignore ? REGISTER_AND_IGNORE : REGISTER, 0,
						ignore ? 0 : 0xa, 0xb),
					 0);
			assert_int_equal(holder_key(f, c), all ? 0 : 0xb);
			assert_int_equal(keys_count(f, c, 0xb, &found), 1);
			assert_int_equal(found, 1);
			assert_int_equal(pr_out(f, c, RELEASE, types[i], 0xa, 0), CONFLICT);
			assert_int_equal(pr_out(f, c, CLEAR, 0, 0xb, 0), 0);
		}
	}
}

/* ---- 76 ---- */

static void bug_76_every_key_and_transport_id(void **state)
{
	struct real_fixture *f = *state;
	uint64_t keys[REAL_CLIENTS] = {UINT64_C(0x0102030405060708), 1, UINT64_MAX,
				       UINT64_C(0x8000000000000000)};
	uint32_t bytes;
	unsigned found, at = 8;

	for (unsigned i = 0; i < REAL_CLIENTS; i++) {
		real_login(f, i, NULL, 0);
		assert_int_equal(pr_out(f, &f->client[i], REGISTER, 0, 0, keys[i]), 0);
		for (unsigned k = 0; k <= i; k++) { /* the last one as well, in its byte order */
			assert_int_equal(keys_count(f, &f->client[0], keys[k], &found), i + 1);
			assert_int_equal(found, 1);
		}
	}
	bytes = pr_in(f, &f->client[0], READ_FULL_STATUS);
	assert_int_equal(get_be32(f->back + 4), bytes - 8);
	for (unsigned i = 0; i < REAL_CLIENTS; i++) {
		const uint8_t *descriptor = f->back + at;
		char id[256];

		assert_int_equal(get_be64(descriptor), keys[i]);
		assert_int_equal(get_be16(descriptor + 18), 1); /* relative target port */
		/* TransportID: iSCSI, format 01b, "name,i,0xISID", padded with NULs to four bytes.
		 */
		assert_int_equal(descriptor[24], 0x45);
		assert_int_equal(get_be32(descriptor + 20), 4 + get_be16(descriptor + 26));
		assert_int_equal(get_be16(descriptor + 26) % 4, 0);
		snprintf(id, sizeof id, "%s,i,0x80000000000%u", f->client[i].initiator_name, i + 1);
		assert_string_equal((const char *)descriptor + 28, id);
		at += 24 + get_be32(descriptor + 20);
	}
	assert_int_equal(at, bytes);
}

/* ---- 78 ---- */

static void bug_78_preempt_that_only_removes_registrations(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *a = real_login(f, 0, NULL, 0), *b = real_login(f, 1, NULL, 0),
			  *d = real_login(f, 2, NULL, 0);
	unsigned found;

	/* No reservation: TYPE does not matter, and only those who lose something are told. */
	for (unsigned type = 0; type < 16; type++) {
		bool abort = type % 2;

		pr_out(f, a, REGISTER_AND_IGNORE, 0, 0, 0xaa);
		assert_int_equal(pr_out(f, b, REGISTER_AND_IGNORE, 0, 0, 0xbb), 0);
		assert_int_equal(pr_out(f, d, REGISTER_AND_IGNORE, 0, 0, 0xbb), 0);
		assert_int_equal(
		    pr_out(f, a, abort ? PREEMPT_AND_ABORT : PREEMPT, type, 0xaa, 0xbb), 0);
		assert_int_equal(keys_count(f, a, 0xaa, &found), 1);
		assert_int_equal(found, 1);
		assert_int_equal(real_attention(f, b, 0), 0x062a05); /* REGISTRATIONS PREEMPTED */
		assert_int_equal(real_attention(f, d, 0), 0x062a05);
		assert_int_equal(real_attention(f, a, 0), 0);
		assert_int_equal(real_attention(f, b, 0), 0);
		assert_int_equal(real_attention(f, b, 1), 0);
	}
	/* A key that nobody has. */
	assert_int_equal(pr_out(f, a, PREEMPT, 1, 0xaa, 0x1234), CONFLICT);
}

static void bug_78_preempt_takes_the_reservation(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *a = real_login(f, 0, NULL, 0), *b = real_login(f, 1, NULL, 0);
	unsigned found;

	for (unsigned i = 0; i < TYPE_COUNT; i++) {
		uint64_t victim = types[i] > 6 ? 0 : 0xb; /* 0: all registrants */

		assert_int_equal(pr_out(f, a, REGISTER, 0, 0, 0xa), 0);
		assert_int_equal(pr_out(f, b, REGISTER, 0, 0, 0xb), 0);
		assert_int_equal(pr_out(f, b, RESERVE, types[i], 0xb, 0), 0);
		assert_int_equal(pr_out(f, a, PREEMPT, WRITE_EXCLUSIVE, 0xa, victim), 0);
		assert_int_equal(holder_key(f, a), 0xa);
		assert_int_equal(f->back[21] & 15, WRITE_EXCLUSIVE);
		assert_int_equal(keys_count(f, a, 0xb, &found), 1);
		assert_int_equal(found, 0);
		real_settle_attentions(f, b, 0);
		assert_int_equal(real_run(f, b, 0, FLAG_WRITE, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0),
					  512, f->pattern, 512)
				     .status,
				 SCSI_RESERVATION_CONFLICT);
		assert_int_equal(pr_out(f, a, CLEAR, 0, 0xa, 0), 0);
		real_settle_attentions(f, b, 0);
	}
}

/* ---- 79 ---- */

static void bug_79_lengths_of_register_and_move(void **state)
{
	static const uint32_t id_lengths[] = {0, 1, 20, 24, 28, 64, 250, 1000, 0xffff, 0xffffffff};
	static const uint32_t list_lengths[] = {0, 8, 23, 24, 25, 28, 48, 52, 100};
	struct real_fixture *f = *state;
	struct pdu_client *a = real_login(f, 0, NULL, 0);

	assert_int_equal(pr_out(f, a, REGISTER, 0, 0, 0xa), 0);
	assert_int_equal(pr_out(f, a, RESERVE, EXCLUSIVE_ACCESS, 0xa, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(id_lengths) * ARRAY_SIZE(list_lengths); i++) {
		uint32_t list = list_lengths[i / ARRAY_SIZE(id_lengths)];
		uint8_t *out = f->pattern;
		struct real_answer answer;

		memset(out, 0, 256);
		put_be64(out, 0xa);
		put_be64(out + 8, 0xc);
		put_be16(out + 18, 1);
		put_be32(out + 20, id_lengths[i % ARRAY_SIZE(id_lengths)]);
		out[24] = 0x45;
		put_be16(out + 26, 200);
		(void)snprintf((char *)out + 28, 256 - 28, "%s",
			       "iqn.2026-11.test.sanlab:elsewhere");
		answer = real_run(f, a, 0, FLAG_WRITE,
				  CDB(0x5f, REGISTER_AND_MOVE, EXCLUSIVE_ACCESS, 0, 0, 0, 0,
				      (uint8_t)(list >> 8), (uint8_t)list, 0),
				  list, out, list);
		assert_int_equal(answer.status, SCSI_CHECK_CONDITION);
		assert_true(answer.sense == 0x051a00 || answer.sense >> 8 == 0x0526);
		assert_int_equal(holder_key(f, a), 0xa); /* nothing has moved */
	}
}

/* ---- 82 ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* The target ends and begins again on the same files. */
static void target_again(struct real_fixture *f, const char *directory)
{
	for (unsigned i = 0; i < REAL_CLIENTS; i++)
		pdu_client_close(&f->client[i]);
	assert_true(real_target_unserve(&f->target));
	real_target_array_close(&f->target);
	assert_int_equal(real_target_array_open(&f->target, directory), 0);
	assert_int_equal(real_target_serve(&f->target), 0);
	for (unsigned i = 0; i < REAL_CLIENTS; i++)
		f->client[i].server = f->target.server;
}

/* REGISTER AND IGNORE EXISTING KEY with APTPL as given. */
static void register_aptpl(struct real_fixture *f, struct pdu_client *c, uint64_t key, bool aptpl)
{
	uint8_t list[24] = {0};

	put_be64(list + 8, key);
	list[20] = aptpl;
	assert_int_equal(real_run(f, c, 0, FLAG_WRITE,
				  CDB(0x5f, REGISTER_AND_IGNORE, 0, 0, 0, 0, 0, 0, 24, 0), 24, list,
				  24)
			     .status,
			 SCSI_GOOD);
}

static void bug_82_registrations_outlive_the_target(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *a = &f->client[0], *b = &f->client[1];
	char directory[] = "/tmp/sanlab-prior-XXXXXX";
	unsigned found;

	assert_non_null(mkdtemp(directory));
	for (unsigned i = 0; i < TYPE_COUNT * 2; i++) {
		bool aptpl = i % 2 == 0, all = types[i / 2] > 6;

		target_again(f, directory);
		real_login(f, 0, NULL, 0);
		real_login(f, 1, NULL, 0);
		register_aptpl(f, a, 0xa, aptpl);
		register_aptpl(f, b, 0xb, aptpl);
		assert_int_equal(pr_out(f, a, RESERVE, types[i / 2], 0xa, 0), 0);
		target_again(f, directory);
		real_login(f, 0, NULL, 0);
		real_login(f, 1, NULL, 0);
		assert_int_equal(keys_count(f, b, 0xa, &found), aptpl ? 2 : 0);
		assert_int_equal(get_be32(f->back), 0); /* PRgeneration begins anew */
		assert_int_equal(found, aptpl);
		assert_int_equal(holder_key(f, b), aptpl && !all ? 0xa : 0);
		if (aptpl) { /* and each still belongs to its nexus */
			assert_int_equal(
			    pr_out(f, b, RESERVE, types[(i / 2 + 1) % TYPE_COUNT], 0xb, 0),
			    CONFLICT);
			assert_int_equal(pr_out(f, a, CLEAR, 0, 0xa, 0), 0);
		}
		/* Nothing is left that could come back. */
		target_again(f, directory);
		real_login(f, 0, NULL, 0);
		assert_int_equal(keys_count(f, a, 0xa, &found), 0);
	}
	target_again(f, NULL);
	nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- 85 and 87 ---- */

static struct scsi_lu *fast_lu(struct real_fixture *f)
{
	return scsi_device_add(f->target.exports.device,
			       group_volume(f->target.group, REAL_LUN_FAST));
}

static void bug_85_transition_is_told_and_ends(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint8_t bhs[BHS_BYTES];

	/* A write that is under way when the transition begins is carried out. */
	real_command(c, bhs, 0, FLAG_FINAL | FLAG_WRITE, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 8, 0), 4096,
		     NULL, 0);
	pdu_client_push(c);
	assert_int_equal(scsi_alua_set(fast_lu(f), 1, ALUA_OPTIMIZED, 3 * NS_PER_S), 0);
	assert_int_equal(real_finish(f, c, bhs_itt(bhs)).status, SCSI_GOOD);
	assert_int_equal(real_attention(f, c, 0), 0x062a06);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(real_attention(f, c, 0), 0x02040a);
		assert_int_equal(real_run(f, c, 0, FLAG_WRITE, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0),
					  512, f->pattern, 512)
				     .sense,
				 0x02040a);
		real_target_pass(&f->target, NS_PER_S / 5);
	}
	real_target_pass(&f->target, 2 * NS_PER_S);
	real_settle_attentions(f, c, 0);
	real_write(f, c, 0, 0, 8, f->pattern);
	assert_int_equal(real_attention(f, c, 1), 0); /* no other unit's business */
}

static void bug_87_standby_refuses_the_medium_alone(void **state)
{
	static const struct {
		uint8_t cdb[16];
		bool allowed;
	} cases[] = {
	    {{0x12, 0, 0, 0, 96}, true},		   /* INQUIRY */
	    {{0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64}, true},	   /* REPORT LUNS */
	    {{0x03, 0, 0, 0, 18}, true},		   /* REQUEST SENSE */
	    {{0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64}, true}, /* RTPG */
	    {{0x5e, 0, 0, 0, 0, 0, 0, 0, 64}, true},	   /* PR IN */
	    {{0x28, 0, 0, 0, 0, 0, 0, 0, 1}, false},
	    {{0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, false},
	    {{0x08, 0, 0, 0, 1}, false},
	    {{0x00}, false},
	};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	assert_int_equal(scsi_alua_set(fast_lu(f), 1, ALUA_STANDBY, 0), 0);
	assert_int_equal(real_attention(f, c, 0), 0x062a06);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct real_answer answer =
		    real_run(f, c, 0, cases[i].cdb[0] ? FLAG_READ : 0, cases[i].cdb, 16,
			     cases[i].cdb[0] ? 512 : 0, NULL, 0);

		assert_int_equal(answer.sense, cases[i].allowed ? 0 : 0x02040b);
	}
	assert_int_equal(real_run(f, c, 0, FLAG_WRITE, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512,
				  f->pattern, 512)
			     .sense,
			 0x02040b);
	assert_int_equal(pr_out(f, c, REGISTER, 0, 0, 0xa), 0);
	assert_int_equal(scsi_alua_set(fast_lu(f), 1, ALUA_OPTIMIZED, 0), 0);
	real_settle_attentions(f, c, 0);
	assert_int_equal(real_read(f, c, 0, 0, 1)[0], 0); /* nothing was written */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_75_new_key_of_the_holder),
	    REAL_TEST(bug_76_every_key_and_transport_id),
	    REAL_TEST(bug_78_preempt_that_only_removes_registrations),
	    REAL_TEST(bug_78_preempt_takes_the_reservation),
	    REAL_TEST(bug_79_lengths_of_register_and_move),
	    REAL_TEST(bug_82_registrations_outlive_the_target),
	    REAL_TEST(bug_85_transition_is_told_and_ends),
	    REAL_TEST(bug_87_standby_refuses_the_medium_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
