/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had in data transfer: bursts, residuals, flow control (see
 * test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

#include <stdio.h>

enum { LBA = 64 };

/* WRITE (10) at LBA of BLOCKS, header only; the tag. */
static uint32_t write_begin(struct pdu_client *c, uint16_t blocks, uint32_t edtl, bool final,
			    const uint8_t *data, uint32_t data_bytes)
{
	uint8_t cdb[16] = {0x2a}, bhs[BHS_BYTES];

	put_be32(cdb + 2, LBA);
	put_be16(cdb + 7, blocks);
	pdu_command(c, bhs, FLAG_WRITE | (final ? FLAG_FINAL : 0), cdb, edtl);
	pdu_send(c, bhs, data, data_bytes);
	return bhs_itt(bhs);
}

/* Unsolicited Data-Out of [OFFSET, OFFSET + BYTES) in pieces of SEGMENT. */
static void unsolicited_send(const struct real_fixture *f, struct pdu_client *c, uint32_t itt,
			     uint32_t offset, uint32_t bytes, uint32_t segment)
{
	uint8_t bhs[BHS_BYTES];
	uint32_t data_sn = 0;

	while (bytes > 0) {
		uint32_t size = MIN_OF(bytes, segment);

		pdu_data_out(bhs, itt, ISCSI_NO_TAG, data_sn++, offset, size == bytes);
		pdu_send(c, bhs, f->pattern + offset, size);
		offset += size;
		bytes -= size;
	}
}

static void clear_blocks(struct real_fixture *f, struct pdu_client *c, uint16_t blocks)
{
	memset(f->pattern, 0, blocks * 512U);
	real_write(f, c, 0, LBA, blocks, f->pattern);
	real_pattern(f->pattern, REAL_MOST_BYTES, 1);
}

/* The first BYTES of the blocks are the pattern's, the rest up to BLOCKS is still zero. */
static void blocks_check(struct real_fixture *f, struct pdu_client *c, uint16_t blocks,
			 uint32_t bytes)
{
	const uint8_t *got = real_read(f, c, 0, LBA, blocks);

	assert_memory_equal(got, f->pattern, bytes);
	for (uint32_t i = bytes; i < blocks * 512U; i++)
		assert_int_equal(got[i], 0);
}

/* ---- 37 ---- */

struct burst_case {
	uint32_t first_burst, immediate, segment, edtl;
};

static const struct burst_case burst_cases[] = {
    {65536, 8192, 8192, 262144}, {65536, 0, 8192, 262144},     {65536, 65536, 8192, 262144},
    {65536, 1, 4096, 262144},	 {512, 512, 512, 8192},	       {512, 0, 512, 8192},
    {4096, 1000, 1000, 8192},	 {65536, 8192, 8192, 16384},   {65536, 0, 3000, 16384},
    {8192, 4096, 1024, 8192},	 {262144, 5792, 8192, 262144},
};

static struct pdu_client *burst_login(struct real_fixture *f, const struct burst_case *b)
{
	char keys[160];
	int n =
	    snprintf(keys, sizeof keys,
		     "InitialR2T=No%cImmediateData=Yes%cFirstBurstLength=%u%cMaxBurstLength=262144",
		     0, 0, b->first_burst, 0);

	return real_login(f, 0, keys, (size_t)n + 1);
}

/* All that may come unasked, immediate data counted: taken, and the rest asked for. */
static void bug_37_first_burst_counts_immediate_data(void **state)
{
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(burst_cases); i++) {
		const struct burst_case *b = &burst_cases[i];
		struct pdu_client *c = burst_login(f, b);
		uint32_t limit = MIN_OF(b->first_burst, b->edtl);
		uint16_t blocks = (uint16_t)(b->edtl / 512);
		uint32_t itt;

		clear_blocks(f, c, blocks);
		itt = write_begin(c, blocks, b->edtl, b->immediate == limit, f->pattern,
				  b->immediate);
		unsolicited_send(f, c, itt, b->immediate, limit - b->immediate, b->segment);
		assert_int_equal(real_finish(f, c, itt).status, SCSI_GOOD);
		blocks_check(f, c, blocks, b->edtl);
		pdu_client_close(c);
	}
}

/* The answer to a write with too much unsolicited data; anything but GOOD. */
static void refused(struct real_fixture *f, struct pdu_client *c, uint32_t itt)
{
	bool answered = false;
	struct pdu pdu;

	while (pdu_receive(c, &pdu)) {
		if (bhs_opcode(pdu.bhs) == OP_REJECT)
			continue;
		assert_int_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
		assert_int_equal(bhs_itt(pdu.bhs), itt);
		assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_CHECK_CONDITION);
		assert_int_equal(pdu.data[2 + 2] & 15, 0x0b);
		assert_int_equal(pdu.data[2 + 12], 0x0c);
		assert_in_range(pdu.data[2 + 13], 0x0c, 0x0d);
		assert_false(answered);
		answered = true;
	}
	assert_true(answered);
	real_alive(f, c);
}

static void bug_37_more_unsolicited_data_than_first_burst(void **state)
{
	static const uint32_t excess[] = {1, 4, 512, 4096};
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(burst_cases) * ARRAY_SIZE(excess); i++) {
		const struct burst_case *b = &burst_cases[i / ARRAY_SIZE(excess)];
		struct pdu_client *c = burst_login(f, b);
		uint32_t too_much =
		    MIN_OF(b->first_burst, b->edtl) + excess[i % ARRAY_SIZE(excess)];
		uint16_t blocks = (uint16_t)(b->edtl / 512);
		uint32_t itt;

		clear_blocks(f, c, blocks);
		c->read_split = i % 2 ? 100 : 0;
		itt = write_begin(c, blocks, b->edtl, false, f->pattern, b->immediate);
		unsolicited_send(f, c, itt, b->immediate, too_much - b->immediate, b->segment);
		refused(f, c, itt);
		/* The same, all of it immediate. */
		if (too_much <= c->conn->params.max_recv_bytes) {
			itt = write_begin(c, blocks, b->edtl, true, f->pattern, too_much);
			refused(f, c, itt);
		}
		blocks_check(f, c, blocks, 0);
		pdu_client_close(c);
	}
}

/* Data that the login has forbidden altogether. */
static void bug_37_unsolicited_data_that_was_not_agreed_on(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No"));
	uint32_t itt;

	clear_blocks(f, c, 16);
	itt = write_begin(c, 16, 8192, true, f->pattern, 512); /* immediate */
	refused(f, c, itt);
	itt = write_begin(c, 16, 8192, false, NULL, 0); /* F is 0: Data-Out is to follow */
	unsolicited_send(f, c, itt, 0, 8192, 4096);
	refused(f, c, itt);
	blocks_check(f, c, 16, 0);
}

/* ---- 39 ---- */

static void bug_39_r2t_keeps_max_burst_and_expected_length(void **state)
{
	static const unsigned bursts[] = {512, 4096, 8192, 65536, 262144};
	/* Blocks of the CDB; the expected length in eighths of what they are. */
	static const struct {
		uint16_t blocks;
		unsigned eighths;
	} cases[] = {{128, 8}, {128, 4}, {128, 1}, {128, 12}, {1, 8}, {8, 16}, {512, 8}, {512, 7}};
	struct real_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(bursts) * ARRAY_SIZE(cases); i++) {
		uint32_t blocks = cases[i % ARRAY_SIZE(cases)].blocks, whole = blocks * 512;
		uint32_t edtl = whole / 8 * cases[i % ARRAY_SIZE(cases)].eighths;
		uint32_t asked = MIN_OF(whole, edtl), got = 0;
		struct pdu_client *c;
		char keys[160];
		uint32_t itt;
		struct pdu pdu;
		int size;

		size = snprintf(keys, sizeof keys,
				"InitialR2T=Yes%cImmediateData=No%cFirstBurstLength=512%c"
				"MaxBurstLength=%u",
				0, 0, 0, bursts[i / ARRAY_SIZE(cases)]);
		c = real_login(f, 0, keys, (size_t)size + 1);
		assert_int_equal(c->conn->params.max_burst_bytes, bursts[i / ARRAY_SIZE(cases)]);
		clear_blocks(f, c, (uint16_t)blocks);
		itt = write_begin(c, (uint16_t)blocks, edtl, true, NULL, 0);
		while (pdu_receive(c, &pdu) && bhs_opcode(pdu.bhs) == OP_R2T) {
			uint32_t bytes = get_be32(pdu.bhs + BHS_DESIRED_BYTES);
			uint8_t out[BHS_BYTES];

			assert_in_range(bytes, 1, bursts[i / ARRAY_SIZE(cases)]);
			pdu_data_out(out, itt, bhs_ttt(pdu.bhs), 0, got, true);
			pdu_send(c, out, f->pattern + got, bytes);
			got += bytes;
		}
		assert_int_equal(got, asked);
		assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
		assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL | (edtl < whole	  ? FLAG_OVERFLOW
								   : edtl > whole ? FLAG_UNDERFLOW
										  : 0));
		assert_int_equal(get_be32(pdu.bhs + BHS_RESIDUAL),
				 edtl < whole ? whole - edtl : edtl - whole);
		blocks_check(f, c, (uint16_t)blocks, asked);
		pdu_client_close(c);
	}
}

/* ---- 40 ---- */

static void bug_40_data_cut_at_any_byte(void **state)
{
	static const uint32_t cuts[][8] = {
	    {5792, 15880, 11536, 2848, 11536, 5744, 12200},
	    {1, 511, 513, 1, 32767, 31743},
	    {3, 5, 7, 11, 65510},
	    {65535, 1},
	    {0, 65536},
	    {65536},
	    {2, 2, 2, 2, 65528},
	    {12200, 5744, 11536, 2848, 11536, 15880, 5792},
	};
	static const size_t reads[] = {0, 1, 1460, 5000};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(
	    f, 0, PDU_KEYS("InitialR2T=No\0FirstBurstLength=65536\0MaxBurstLength=65536"));

	for (size_t i = 0; i < ARRAY_SIZE(cuts) * ARRAY_SIZE(reads) * 2; i++) {
		const uint32_t *cut = cuts[i / 2 % ARRAY_SIZE(cuts)];
		bool unsolicited = i % 2;
		uint32_t at = cut[0], itt, ttt = ISCSI_NO_TAG, data_sn = 0;
		uint8_t out[BHS_BYTES];

		c->read_split = reads[i / 2 / ARRAY_SIZE(cuts)];
		clear_blocks(f, c, 128);
		itt = write_begin(c, 128, 65536, at == 65536 || !unsolicited, f->pattern, at);
		if (!unsolicited && at < 65536)
			ttt = bhs_ttt(pdu_expect(c, OP_R2T).bhs);
		for (unsigned piece = 1; at < 65536; piece++) {
			pdu_data_out(out, itt, ttt, data_sn++, at, at + cut[piece] == 65536);
			pdu_send(c, out, f->pattern + at, cut[piece]);
			at += cut[piece];
		}
		assert_int_equal(real_finish(f, c, itt).status, SCSI_GOOD);
		blocks_check(f, c, 128, 65536);
	}
}

/* ---- 43 ---- */

/* READ of BLOCKS in the CDB form of OPCODE. */
static void read_cdb(uint8_t cdb[16], uint8_t opcode, uint8_t blocks)
{
	memset(cdb, 0, 16);
	cdb[0] = opcode;
	cdb[opcode == 0x08 ? 4 : opcode == 0x28 ? 8 : opcode == 0xa8 ? 9 : 13] = blocks;
}

static void bug_43_overflow_and_underflow_of_reads(void **state)
{
	static const uint8_t opcodes[] = {0x08, 0x28, 0xa8, 0x88};
	static const uint8_t blocks[] = {1, 2, 9, 200};
	static const uint32_t expected[] = {1,	  2,	3,    4,    200,   511,	  512,	  513,
					    1024, 4607, 4608, 4609, 10000, 65536, 102400, 200000};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS("MaxRecvDataSegmentLength=8192"));
	uint8_t cdb[16];

	clear_blocks(f, c, 1);
	for (size_t i = 0; i < ARRAY_SIZE(opcodes) * ARRAY_SIZE(blocks); i++) {
		for (size_t e = 0; e < ARRAY_SIZE(expected); e++) {
			uint32_t whole = blocks[i % ARRAY_SIZE(blocks)] * 512U;
			struct real_answer answer;

			read_cdb(cdb, opcodes[i / ARRAY_SIZE(blocks)],
				 blocks[i % ARRAY_SIZE(blocks)]);
			answer =
			    real_run(f, c, 0, FLAG_READ, cdb, sizeof cdb, expected[e], NULL, 0);
			assert_int_equal(answer.status, SCSI_GOOD);
			assert_int_equal(answer.data_bytes, MIN_OF(whole, expected[e]));
			assert_int_equal(answer.overflow,
					 whole > expected[e] ? whole - expected[e] : 0);
			assert_int_equal(answer.underflow,
					 whole < expected[e] ? expected[e] - whole : 0);
		}
	}
	real_alive(f, c);
}

/* ---- 44 ---- */

static void bug_44_expected_length_zero(void **state)
{
	static const uint8_t blocks[] = {1, 2, 8, 255};
	static const unsigned flags[] = {0, FLAG_READ, FLAG_WRITE};
	static const uint8_t opcodes[] = {0x28, 0x2a, 0x88, 0x8a, 0xa8, 0xaa};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, PDU_KEYS("InitialR2T=No\0ImmediateData=Yes"));

	clear_blocks(f, c, 255);
	for (size_t i = 0; i < ARRAY_SIZE(blocks) * ARRAY_SIZE(flags) * ARRAY_SIZE(opcodes); i++) {
		uint8_t cdb[16] = {0}, opcode = opcodes[i % ARRAY_SIZE(opcodes)];
		uint8_t count = blocks[i / ARRAY_SIZE(opcodes) % ARRAY_SIZE(blocks)];
		struct real_answer answer;

		read_cdb(cdb, opcode & 0xfd, count);
		cdb[0] = opcode;
		cdb[opcode >> 5 == 4 ? 9 : 5] = LBA;
		answer = real_run(f, c, 0, flags[i / ARRAY_SIZE(opcodes) / ARRAY_SIZE(blocks)], cdb,
				  sizeof cdb, 0, NULL, 0);
		assert_int_equal(answer.status, SCSI_GOOD);
		assert_int_equal(answer.data_bytes, 0);
		assert_int_equal(answer.overflow, count * 512);
	}
	blocks_check(f, c, 255, 0);
	real_alive(f, c);
}

/* ---- 46 ---- */

static void bug_46_no_underflow_where_nothing_is_missing(void **state)
{
	static const uint32_t immediate[] = {0, 512, 8192};
	struct real_fixture *f = *state;
	struct pdu_client *c =
	    real_login(f, 0, PDU_KEYS("InitialR2T=Yes\0ImmediateData=Yes\0FirstBurstLength=8192"));

	for (size_t i = 0; i < ARRAY_SIZE(immediate); i++) {
		for (uint16_t blocks = 0; blocks <= 300; blocks += blocks < 40 ? 1 : 37) {
			uint32_t bytes = blocks * 512U;
			uint32_t itt = write_begin(c, blocks, bytes, true, f->pattern,
						   MIN_OF(immediate[i], bytes));
			struct real_answer answer = real_finish(f, c, itt);

			assert_int_equal(answer.status, SCSI_GOOD);
			assert_int_equal(answer.bhs[BHS_FLAGS], FLAG_FINAL);
		}
	}
	/* No bytes moved at all. */
	assert_int_equal(real_finish(f, c, write_begin(c, 0, 512, true, NULL, 0)).underflow, 512);
}

/* ---- 48 ---- */

static void bug_48_reads_go_on_when_a_slow_reader_reads(void **state)
{
	enum { READS = 128, BYTES = 1 << 20, WINDOW_BYTES = 18 << 20 };
	static const size_t takes[] = {0, 1460, 65536, 1000000};
	struct real_fixture *f = *state;

	for (size_t t = 0; t < ARRAY_SIZE(takes); t++) {
		struct pdu_client *c =
		    real_login(f, 0, PDU_KEYS("MaxRecvDataSegmentLength=262144"));
		uint8_t bhs[BHS_BYTES];
		uint32_t first = 0;

		for (unsigned i = 0; i < READS; i++) {
			real_command(c, bhs, i % 3 ? REAL_LUN_FAST : REAL_LUN_SLOW,
				     FLAG_FINAL | FLAG_READ, CDB(0x28, 0, 0, 0, 0, 0, 0, 8, 0, 0),
				     BYTES, NULL, 0);
			if (i == 0)
				first = bhs_itt(bhs);
			pdu_client_push(c);
			/* What waits is bounded, however much is asked for. */
			assert_true(buf_pool_in_use_bytes(f->target.pool) <= WINDOW_BYTES);
		}
		real_target_pass(&f->target, NS_PER_S);
		c->write_split = takes[t];
		for (unsigned done = 0; done < READS;) {
			struct pdu pdu;

			if (!pdu_receive(c, &pdu)) {
				real_target_pass(&f->target, NS_PER_S);
				assert_true(pdu_receive(c, &pdu));
			}
			assert_int_equal(bhs_opcode(pdu.bhs), OP_DATA_IN);
			assert_in_range(bhs_itt(pdu.bhs), first, first + READS - 1);
			if (pdu.bhs[BHS_FLAGS] & FLAG_STATUS) {
				assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
				done++;
			}
			if (done % 16 == 15)
				real_target_pass(&f->target, NS_PER_MS);
		}
		c->write_split = 0;
		real_alive(f, c);
		pdu_client_close(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_37_first_burst_counts_immediate_data),
	    REAL_TEST(bug_37_more_unsolicited_data_than_first_burst),
	    REAL_TEST(bug_37_unsolicited_data_that_was_not_agreed_on),
	    REAL_TEST(bug_39_r2t_keeps_max_burst_and_expected_length),
	    REAL_TEST(bug_40_data_cut_at_any_byte),
	    REAL_TEST(bug_43_overflow_and_underflow_of_reads),
	    REAL_TEST(bug_44_expected_length_zero),
	    REAL_TEST(bug_46_no_underflow_where_nothing_is_missing),
	    REAL_TEST(bug_48_reads_go_on_when_a_slow_reader_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
