/* SPDX-License-Identifier: MIT
 *
 * Task attributes from the PDU to the drives: ORDERED waits, HEAD OF QUEUE does not, ACA is
 * refused; and no queue of them keeps a connection from taking the data they wait for.
 */
#include "tests/iscsi/real_fixture.h"

enum { BLOCKS = 128, BYTES = BLOCKS * 512, LARGE_BLOCKS = 2048, READS = 32 };

static const uint8_t ready[16] = {0};
static const uint8_t slow_read[16] = {0x28, [8] = 8};

static uint32_t send_ready(struct pdu_client *c, unsigned attribute)
{
	uint8_t bhs[BHS_BYTES];

	real_command(c, bhs, REAL_LUN_SLOW, FLAG_FINAL | attribute, ready, 6, 0, NULL, 0);
	return bhs_itt(bhs);
}

static uint32_t send_slow_read(struct pdu_client *c, unsigned attribute)
{
	uint8_t bhs[BHS_BYTES];

	real_command(c, bhs, REAL_LUN_SLOW, FLAG_FINAL | FLAG_READ | attribute, slow_read, 10, 4096,
		     NULL, 0);
	return bhs_itt(bhs);
}

/* What touches no drive overtakes a read, unless it is ordered or comes after something ordered. */
static void order_of_answers(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint32_t read, simple, head, ordered, late;

	real_settle_attentions(f, c, REAL_LUN_SLOW);
	read = send_slow_read(c, SCSI_SIMPLE);
	ordered = send_ready(c, SCSI_ORDERED);
	late = send_ready(c, SCSI_SIMPLE);
	head = send_ready(c, SCSI_HEAD_OF_QUEUE);
	assert_int_equal(bhs_itt(pdu_expect(c, OP_SCSI_RESPONSE).bhs), head);
	pdu_expect_nothing(c);
	real_target_pass(&f->target, NS_PER_S);
	assert_int_equal(bhs_itt(pdu_expect(c, OP_DATA_IN).bhs), read);
	assert_int_equal(bhs_itt(pdu_expect(c, OP_SCSI_RESPONSE).bhs), ordered);
	assert_int_equal(bhs_itt(pdu_expect(c, OP_SCSI_RESPONSE).bhs), late);
	read = send_slow_read(c, SCSI_SIMPLE);
	simple = send_ready(c, SCSI_UNTAGGED);
	assert_int_equal(bhs_itt(pdu_expect(c, OP_SCSI_RESPONSE).bhs), simple);
	real_target_pass(&f->target, NS_PER_S);
	assert_int_equal(bhs_itt(pdu_expect(c, OP_DATA_IN).bhs), read);
}

static void refused(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	for (unsigned attribute = SCSI_ACA; attribute <= FLAG_ATTRIBUTE; attribute++) {
		struct real_answer answer =
		    real_run(f, c, 0, FLAG_FINAL | attribute, ready, 6, 0, NULL, 0);

		assert_int_equal(answer.sense, 0x052400);
	}
	real_alive(f, c);
}

/* Large reads that wait for an ordered one, which waits for a write, whose data comes last: they
 * must not count as output under way, or nobody would read that data. */
static void data_behind_reads(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No"));
	uint8_t bhs[BHS_BYTES], data_out[BHS_BYTES];
	uint32_t itt[READS];
	struct pdu r2t;

	pdu_write10(c, bhs, 0, BLOCKS, FLAG_FINAL);
	pdu_send(c, bhs, NULL, 0);
	r2t = pdu_expect(c, OP_R2T);
	for (unsigned i = 0; i < READS; i++) {
		uint8_t read[BHS_BYTES];

		pdu_read10(c, read, 0, LARGE_BLOCKS);
		read[BHS_FLAGS] = (uint8_t)((read[BHS_FLAGS] & ~FLAG_ATTRIBUTE) |
					    (i == 0 ? SCSI_ORDERED : SCSI_SIMPLE));
		pdu_send(c, read, NULL, 0);
		itt[i] = bhs_itt(read);
	}
	pdu_expect_nothing(c);
	pdu_data_out(data_out, bhs_itt(bhs), bhs_ttt(r2t.bhs), 0, 0, true);
	pdu_send(c, data_out, f->pattern, BYTES);
	assert_int_equal(real_finish(f, c, bhs_itt(bhs)).status, SCSI_GOOD);
	for (unsigned i = 0; i < READS; i++) {
		struct real_answer answer = real_finish(f, c, itt[i]);

		assert_int_equal(answer.status, SCSI_GOOD);
		assert_int_equal(answer.data_bytes, LARGE_BLOCKS * 512);
		assert_memory_equal(f->back, f->pattern, BYTES);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(order_of_answers),
	    REAL_TEST(refused),
	    REAL_TEST(data_behind_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
