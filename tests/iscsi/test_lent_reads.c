/* SPDX-License-Identifier: MIT
 *
 * Long reads are answered from the memory of the stores: what an initiator gets must be what was
 * there when the command was carried out, however it is cut up and whatever happens to the blocks
 * before the initiator has taken it.
 */
#include "tests/iscsi/real_fixture.h"

#include <stdlib.h>

enum { BLOCKS = 1024, BYTES = BLOCKS * 512 };

/* Sends READ (10) without taking anything of its answer; the tag. */
static uint32_t read_begin(struct pdu_client *c, uint32_t lba)
{
	uint8_t bhs[BHS_BYTES];

	pdu_read10(c, bhs, lba, BLOCKS);
	pdu_send(c, bhs, NULL, 0);
	return bhs_itt(bhs);
}

static void read_check(struct real_fixture *f, struct pdu_client *c, uint32_t itt,
		       const uint8_t *wanted)
{
	struct real_answer answer;

	memset(f->back, 0x55, BYTES);
	answer = real_finish(f, c, itt);
	assert_int_equal(answer.status, SCSI_GOOD);
	assert_int_equal(answer.data_bytes, BYTES);
	assert_memory_equal(f->back, wanted, BYTES);
}

/* Digests, segments that end anywhere, an odd offset into the stores' chunks, a hole in between. */
static void cut_anywhere(void **state)
{
	static const size_t splits[] = {0, 4093};
	struct real_fixture *f = *state;
	struct pdu_client *c =
	    real_login(f, 0,
		       PDU_KEYS("HeaderDigest=CRC32C\0DataDigest=CRC32C\0"
				"MaxRecvDataSegmentLength=70001\0MaxBurstLength=200003"));
	uint8_t *wanted = calloc(1, BYTES);

	assert_non_null(wanted);
	real_pattern(wanted, 300 * 512, 3);
	real_pattern(wanted + 700 * 512, 324 * 512, 4);
	assert_true(c->header_digest && c->data_digest);
	real_write(f, c, 0, 77, 300, wanted);
	real_write(f, c, 0, 77 + 700, 324, wanted + 700 * 512);
	for (size_t s = 0; s < ARRAY_SIZE(splits); s++) {
		c->write_split = splits[s];
		read_check(f, c, read_begin(c, 77), wanted);
	}
	free(wanted);
}

/* Two initiators: one does not take its answers while the other writes, unmaps and writes again. */
static void outlives_changes(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *slow = real_login(f, 0, PDU_KEYS("MaxRecvDataSegmentLength=262144"));
	struct pdu_client *other = real_login(f, 1, PDU_KEYS("MaxRecvDataSegmentLength=262144"));
	uint8_t *first = malloc(BYTES), *second = malloc(BYTES), *zeros = calloc(1, BYTES);
	uint8_t unmap[24] = {0, 22, 0, 16}, *cdb = (uint8_t[16]){0x42, 0, 0, 0, 0, 0, 0, 0, 24};
	uint32_t itt[4];

	assert_true(first && second && zeros);
	real_pattern(first, BYTES, 3);
	real_pattern(second, BYTES, 4);
	put_be64(unmap + 8, 0);
	put_be32(unmap + 16, BLOCKS);
	real_write(f, other, 0, 0, BLOCKS, first);
	slow->write_split = 1;
	itt[0] = read_begin(slow, 0);
	pdu_client_push(slow);
	/* One block in the middle first: the rest of its chunk is as it was. */
	real_write(f, other, 0, 500, 1, second + 500 * 512);
	real_write(f, other, 0, 0, BLOCKS, second);
	itt[1] = read_begin(slow, 0);
	pdu_client_push(slow);
	real_run(f, other, 0, FLAG_WRITE | FLAG_FINAL, cdb, 16, sizeof unmap, unmap, sizeof unmap);
	itt[2] = read_begin(slow, 0);
	pdu_client_push(slow);
	real_write(f, other, 0, 0, BLOCKS, first);
	itt[3] = read_begin(slow, 0);
	pdu_client_push(slow);
	slow->write_split = 0;
	read_check(f, slow, itt[0], first);
	read_check(f, slow, itt[1], second);
	read_check(f, slow, itt[2], zeros);
	read_check(f, slow, itt[3], first);
	free(first);
	free(second);
	free(zeros);
}

/* The connection goes away with borrowed memory in its queue: nothing stays borrowed (the store
 * would say so when it is closed). */
static void given_back_by_a_lost_connection(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS("MaxRecvDataSegmentLength=262144"));

	real_write(f, c, 0, 0, BLOCKS, f->pattern);
	for (int i = 0; i < 8; i++)
		(void)read_begin(c, 0);
	pdu_client_push(c);
	pdu_client_close(c);
	c = real_login(f, 1, PDU_KEYS("MaxRecvDataSegmentLength=262144"));
	memset(f->pattern, 0, BYTES);
	real_write(f, c, 0, 0, BLOCKS, f->pattern);
	read_check(f, c, read_begin(c, 0), f->pattern);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(cut_anywhere),
	    REAL_TEST(outlives_changes),
	    REAL_TEST(given_back_by_a_lost_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
