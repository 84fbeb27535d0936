/* SPDX-License-Identifier: MIT
 *
 * Data transfer: reads cut into Data-In, writes by immediate, unsolicited and solicited data in
 * every mixture and at every byte boundary, residuals, digests, back-pressure, counters.
 */
#include "tests/unit/iscsi/fixture.h"

#include <stdio.h>

enum { MOST_BYTES = 1 << 20 };

static uint8_t pattern[MOST_BYTES], back[MOST_BYTES];

/* Receives the Data-In of one read into `back` and checks their numbering; the last PDU. */
static struct pdu read_all(struct pdu_client *c, uint32_t itt, uint32_t *ret_bytes)
{
	uint32_t offset = 0, data_sn = 0;
	struct pdu pdu;

	do {
		pdu = pdu_expect(c, OP_DATA_IN);
		assert_int_equal(bhs_itt(pdu.bhs), itt);
		assert_int_equal(get_be32(pdu.bhs + BHS_DATA_SN), data_sn++);
		assert_int_equal(get_be32(pdu.bhs + BHS_OFFSET), offset);
		assert_int_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
		assert_true(pdu.data_bytes <= c->conn->params.max_send_bytes);
		memcpy(back + offset, pdu.data, pdu.data_bytes);
		offset += pdu.data_bytes;
		/* F at the end and where a burst ends. */
		if (offset % c->conn->params.max_burst_bytes == 0)
			assert_true(pdu.bhs[BHS_FLAGS] & FLAG_FINAL);
	} while (!(pdu.bhs[BHS_FLAGS] & FLAG_STATUS));
	assert_true(pdu.bhs[BHS_FLAGS] & FLAG_FINAL);
	*ret_bytes = offset;
	return pdu;
}

static void read_check(struct pdu_client *c, uint32_t lba, uint16_t blocks)
{
	uint8_t bhs[BHS_BYTES];
	uint32_t bytes;
	struct pdu pdu;

	pdu_read10(c, bhs, lba, blocks);
	pdu_send(c, bhs, NULL, 0);
	pdu = read_all(c, bhs_itt(bhs), &bytes);
	assert_int_equal(bytes, blocks * 512U);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL | FLAG_STATUS);
	assert_int_equal(get_be32(pdu.bhs + BHS_RESIDUAL), 0);
}

struct write_case {
	uint32_t immediate;   /* bytes with the command */
	uint32_t unsolicited; /* bytes in unsolicited Data-Out */
	uint32_t segment;     /* bytes a Data-Out */
};

/* Sends the data of one Data-Out sequence. */
static void sequence_send(struct pdu_client *c, uint32_t itt, uint32_t ttt, uint32_t offset,
			  uint32_t bytes, uint32_t segment)
{
	uint8_t bhs[BHS_BYTES];
	uint32_t data_sn = 0;

	while (bytes > 0) {
		uint32_t size = MIN_OF(bytes, segment);

		pdu_data_out(bhs, itt, ttt, data_sn++, offset, size == bytes);
		pdu_send(c, bhs, pattern + offset, size);
		offset += size;
		bytes -= size;
	}
}

/* One write from first to last byte as W says; returns the SCSI response. */
static struct pdu write_all(struct pdu_client *c, uint32_t lba, uint16_t blocks,
			    const struct write_case *w)
{
	uint8_t bhs[BHS_BYTES];
	uint32_t r2t_sn = 0, next = w->immediate + w->unsolicited;
	struct pdu pdu;

	pdu_write10(c, bhs, lba, blocks, w->unsolicited > 0 ? 0 : FLAG_FINAL);
	pdu_send(c, bhs, pattern, w->immediate);
	sequence_send(c, bhs_itt(bhs), ISCSI_NO_TAG, w->immediate, w->unsolicited, w->segment);
	while (pdu_receive(c, &pdu) && bhs_opcode(pdu.bhs) == OP_R2T) {
		uint32_t bytes = get_be32(pdu.bhs + BHS_DESIRED_BYTES);

		assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
		assert_int_equal(get_be32(pdu.bhs + BHS_DATA_SN), r2t_sn++);
		assert_int_equal(get_be32(pdu.bhs + BHS_OFFSET), next);
		assert_int_not_equal(bhs_ttt(pdu.bhs), ISCSI_NO_TAG);
		assert_in_range(bytes, 1, c->conn->params.max_burst_bytes);
		sequence_send(c, bhs_itt(bhs), bhs_ttt(pdu.bhs), next, bytes, w->segment);
		next += bytes;
	}
	assert_int_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
	assert_int_equal(get_be32(pdu.bhs + BHS_DATA_SN), r2t_sn); /* ExpDataSN */
	return pdu;
}

static void write_check(struct fixture *f, uint16_t blocks, const struct write_case *w)
{
	struct pdu pdu;

	memset(fake_disk(f->target, 0), 0, MOST_BYTES);
	fixture_pattern(pattern, blocks * 512U, w->immediate + w->segment);
	pdu = write_all(&f->client, 3, blocks, w);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL); /* no residual (prior bug 46) */
	assert_memory_equal(fake_disk(f->target, 0) + 3 * 512, pattern, blocks * 512U);
}

static const struct write_case write_cases[] = {
    {0, 0, 8192},	 /* all by R2T */
    {4096, 0, 8192},	 /* immediate, rest by R2T */
    {5792, 0, 15880},	 /* nothing a multiple of a block (prior bug 40) */
    {0, 65536, 8192},	 /* unsolicited up to FirstBurst */
    {8192, 57344, 4096}, /* both */
    {1, 65535, 11537},	 /* padding everywhere */
    {65536, 0, 65536},	 /* immediate is the first burst */
};

static void test_writes(void **state)
{
	static const size_t splits[] = {0, 1, 7, 1000};
	struct fixture *f = *state;

	fixture_login(f, PDU_KEYS("InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=65536\0"
				  "MaxBurstLength=65536\0MaxOutstandingR2T=1"));
	for (size_t s = 0; s < ARRAY_SIZE(splits); s++) {
		f->client.read_split = f->client.write_split = splits[s];
		for (size_t i = 0; i < ARRAY_SIZE(write_cases); i++)
			write_check(f, 272, &write_cases[i]); /* 136 KiB: three bursts */
	}
	assert_int_equal(iscsi_portal_counters(f->portal)->writes,
			 ARRAY_SIZE(splits) * ARRAY_SIZE(write_cases));
	assert_int_equal(iscsi_portal_counters(f->portal)->write_bytes,
			 ARRAY_SIZE(splits) * ARRAY_SIZE(write_cases) * 272 * 512);
}

/* Immediate data alone is enough when it is all. */
static void test_small_writes(void **state)
{
	struct fixture *f = *state;

	fixture_login(f, PDU_KEYS("InitialR2T=Yes\0ImmediateData=Yes"));
	write_check(f, 8, &(struct write_case){4096, 0, 0});
	write_check(f, 8, &(struct write_case){0, 0, 4096});
	write_check(f, 8, &(struct write_case){0, 0, 500});
}

/* R2Ts: several at once, each at most MaxBurstLength, StatSN shown but not used (prior bugs 30,
 * 39). */
static void test_outstanding_r2t(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu[4], extra;
	uint32_t ttts[4];

	fixture_login(f, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=4096\0"
				  "MaxOutstandingR2T=3"));
	fixture_pattern(pattern, 16384, 5);
	pdu_write10(c, bhs, 0, 32, FLAG_FINAL);
	bhs[BHS_LUN + 1] = 1;
	pdu_send(c, bhs, NULL, 0);
	for (int i = 0; i < 3; i++) {
		pdu[i] = pdu_expect(c, OP_R2T);
		assert_int_equal(get_be32(pdu[i].bhs + BHS_OFFSET), i * 4096);
		assert_int_equal(get_be32(pdu[i].bhs + BHS_DESIRED_BYTES), 4096);
		assert_int_equal(get_be32(pdu[i].bhs + BHS_STAT_SN), c->exp_stat_sn);
		assert_int_equal(get_be32(pdu[i].bhs + BHS_EXP_CMD_SN), c->cmd_sn);
		assert_memory_equal(pdu[i].bhs + BHS_LUN, bhs + BHS_LUN, 8);
		ttts[i] = bhs_ttt(pdu[i].bhs);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(ttts[i], ttts[j]);
	}
	assert_false(pdu_receive(c, &extra));
	for (int i = 0; i < 3; i++)
		sequence_send(c, bhs_itt(bhs), ttts[i], (uint32_t)i * 4096, 4096, 1024);
	pdu[3] = pdu_expect(c, OP_R2T);
	sequence_send(c, bhs_itt(bhs), bhs_ttt(pdu[3].bhs), 12288, 4096, 4096);
	extra = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(extra.bhs[BHS_STATUS], SCSI_GOOD);
	assert_memory_equal(fake_disk(f->target, 1), pattern, 16384);
}

/* The tag counter passes ffffffff without using it (prior bug 31). */
static void test_tag_wraps(void **state)
{
	struct fixture *f = *state;

	fixture_login(f, PDU_KEYS("InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=512\0"
				  "MaxOutstandingR2T=8"));
	f->client.conn->next_ttt = 0xfffffffd;
	write_check(f, 8, &(struct write_case){0, 0, 512});
	assert_int_equal(f->client.conn->next_ttt, 6);
}

static void test_reads(void **state)
{
	static const size_t splits[] = {0, 1, 333};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, PDU_KEYS("MaxRecvDataSegmentLength=1000\0MaxBurstLength=2500"));
	fixture_pattern(fake_disk(f->target, 0), MOST_BYTES, 9);
	for (size_t s = 0; s < ARRAY_SIZE(splits); s++) {
		c->write_split = splits[s];
		read_check(c, 2, 1);
		read_check(c, 2, 100);
		assert_memory_equal(back, fake_disk(f->target, 0) + 1024, 51200);
	}
	assert_int_equal(iscsi_portal_counters(f->portal)->reads, 6);
	assert_int_equal(iscsi_portal_counters(f->portal)->read_bytes, 3 * 101 * 512);
}

static void test_digests(void **state)
{
	static const size_t splits[] = {0, 1, 1000};
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f,
		      PDU_KEYS("HeaderDigest=CRC32C,None\0DataDigest=CRC32C,None\0InitialR2T=No\0"
			       "MaxRecvDataSegmentLength=10001"));
	assert_true(c->header_digest && c->data_digest);
	for (size_t s = 0; s < ARRAY_SIZE(splits); s++) {
		c->read_split = c->write_split = splits[s];
		write_check(f, 100, &(struct write_case){1001, 5000, 4097});
		read_check(c, 3, 100);
		assert_memory_equal(back, pattern, 51200);
	}
	assert_int_equal(pdu_test_unit_ready(c), SCSI_GOOD);
}

struct residual_case {
	uint8_t opcode;
	uint16_t blocks;
	uint32_t edtl, moved, residual;
	unsigned flag;
};

static const struct residual_case residual_cases[] = {
    {0x28, 9, 512, 512, 4096, FLAG_OVERFLOW}, /* prior bug 43 */
    {0x28, 1, 10000, 512, 9488, FLAG_UNDERFLOW},
    {0x28, 1, 200, 200, 312, FLAG_OVERFLOW},
    {0x28, 2, 1024, 1024, 0, 0},
    {0x28, 0, 512, 0, 512, FLAG_UNDERFLOW},
    {0x28, 1, 0, 0, 512, FLAG_OVERFLOW},
    {0x2a, 1, 0, 0, 512, FLAG_OVERFLOW}, /* prior bug 44 */
    {0x2a, 2, 512, 512, 512, FLAG_OVERFLOW},
    {0x2a, 1, 1024, 512, 512, FLAG_UNDERFLOW},
    {0x2a, 1, 10000, 512, 9488, FLAG_UNDERFLOW},
    {0x00, 0, 512, 0, 512, FLAG_UNDERFLOW},
};

static void test_residuals(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;

	fixture_login(f, PDU_KEYS("InitialR2T=No\0ImmediateData=Yes"));
	fixture_pattern(pattern, sizeof pattern, 77);
	for (size_t i = 0; i < ARRAY_SIZE(residual_cases); i++) {
		const struct residual_case *r = &residual_cases[i];
		unsigned direction = r->opcode == 0x2a ? FLAG_WRITE : FLAG_READ;
		uint8_t bhs[BHS_BYTES], cdb[16] = {r->opcode};
		bool in = r->opcode == 0x28 && r->moved > 0;
		unsigned executed = fake_executed(f->target);
		struct pdu pdu;

		put_be16(cdb + 7, r->opcode ? r->blocks : 0);
		pdu_command(c, bhs, FLAG_FINAL | (r->edtl ? direction : 0), cdb, r->edtl);
		pdu_send(c, bhs, pattern, direction == FLAG_WRITE ? r->edtl : 0);
		pdu = pdu_expect(c, in ? OP_DATA_IN : OP_SCSI_RESPONSE);
		assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_GOOD);
		assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL | r->flag | (in ? FLAG_STATUS : 0));
		assert_int_equal(get_be32(pdu.bhs + BHS_RESIDUAL), r->residual);
		assert_int_equal(pdu.data_bytes, in ? r->moved : 0);
		assert_int_equal(fake_executed(f->target) - executed,
				 r->opcode == 0x2a && r->moved > 0);
	}
}

/* CHECK CONDITION: sense with its length, U = EDTL; unsolicited data is drained. */
static void test_check_condition(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	fixture_login(f, PDU_KEYS("InitialR2T=No\0ImmediateData=Yes"));
	pdu_read10(c, bhs, FAKE_BLOCKS, 1);
	pdu_send(c, bhs, NULL, 0);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_CHECK_CONDITION);
	assert_int_equal(pdu.bhs[BHS_FLAGS], FLAG_FINAL | FLAG_UNDERFLOW);
	assert_int_equal(get_be32(pdu.bhs + BHS_RESIDUAL), 512);
	assert_int_equal(pdu.data_bytes, 20);
	assert_int_equal(get_be16(pdu.data), 18);
	assert_int_equal(pdu.data[2 + 12], 0x21);
	/* A write refused at once, its data still on its way: no second answer, no harm. */
	fake_attention(f->target);
	pdu_write10(c, bhs, 0, 16, 0);
	pdu_send(c, bhs, pattern, 1024);
	sequence_send(c, bhs_itt(bhs), ISCSI_NO_TAG, 1024, 7168, 3000);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_CHECK_CONDITION);
	assert_int_equal(pdu.data[2 + 12], 0x29);
	pdu_expect_nothing(c);
	assert_int_equal(fake_executed(f->target), 0);
	write_check(f, 16, &(struct write_case){1024, 7168, 3000});
	assert_int_equal(iscsi_portal_counters(f->portal)->reads, 0);
	assert_int_equal(iscsi_portal_counters(f->portal)->writes, 1);
	assert_int_equal(iscsi_portal_counters(f->portal)->commands, 3);
	assert_int_equal(iscsi_portal_counters(f->portal)->rejects, 0);
}

/* No buffer for the data: BUSY, and the data is drained. */
static void test_no_buffer(void **state)
{
	struct fixture *f = *state;
	struct buf_pool *whole = f->server->pool, *tiny = buf_pool_new(8192);
	struct buf *last = buf_new(tiny, 8192);
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	fixture_login(f, PDU_KEYS("InitialR2T=No"));
	f->server->pool = tiny;
	pdu_write10(c, bhs, 0, 16, 0);
	pdu_send(c, bhs, pattern, 1024);
	pdu_expect_nothing(c);
	sequence_send(c, bhs_itt(bhs), ISCSI_NO_TAG, 1024, 7168, 3000);
	pdu = pdu_expect(c, OP_SCSI_RESPONSE);
	assert_int_equal(pdu.bhs[BHS_STATUS], SCSI_BUSY);
	f->server->pool = whole;
	write_check(f, 16, &(struct write_case){1024, 7168, 3000});
	buf_unref(last);
	buf_pool_free(tiny);
}

/* 64 reads of 1 MiB and a reader that takes its time: all complete, output stays bounded (prior
 * bug 48). */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];

	fixture_login(f, PDU_KEYS("MaxRecvDataSegmentLength=262144"));
	fixture_pattern(fake_disk(f->target, 0), MOST_BYTES, 4);
	for (int i = 0; i < 64; i++) {
		pdu_read10(c, bhs, 0, MOST_BYTES / 512);
		pdu_send(c, bhs, NULL, 0);
	}
	pdu_client_push(c);
	assert_true(iscsi_conn_paused(c->conn));
	assert_true(c->conn->tx.queued_bytes < ISCSI_PAUSE_BYTES + 2 * MIB);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t bytes;

		memset(back, 0, sizeof back);
		read_all(c, bhs_itt(bhs) - 63 + i, &bytes);
		assert_int_equal(bytes, MOST_BYTES);
		assert_memory_equal(back, fake_disk(f->target, 0), MOST_BYTES);
	}
	assert_int_equal(c->conn->tx.queued_bytes, 0);
	assert_int_equal(c->conn->running_bytes, 0);
	assert_int_equal(iscsi_portal_counters(f->portal)->reads, 64);
}

/* What was answered but never went out does not count. */
static void test_counts_what_was_sent(void **state)
{
	struct fixture *f = *state;
	struct pdu_client *c = &f->client;
	uint8_t bhs[BHS_BYTES];

	fixture_login(f, NULL, 0);
	read_check(c, 0, 8);
	pdu_read10(c, bhs, 0, 8);
	pdu_send(c, bhs, NULL, 0);
	pdu_client_push(c);
	pdu_client_close(c);
	assert_int_equal(iscsi_portal_counters(f->portal)->reads, 1);
	assert_int_equal(iscsi_portal_counters(f->portal)->read_bytes, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_writes),
	    FIXTURE_TEST(test_small_writes),
	    FIXTURE_TEST(test_outstanding_r2t),
	    FIXTURE_TEST(test_tag_wraps),
	    FIXTURE_TEST(test_reads),
	    FIXTURE_TEST(test_digests),
	    FIXTURE_TEST(test_residuals),
	    FIXTURE_TEST(test_check_condition),
	    FIXTURE_TEST(test_no_buffer),
	    FIXTURE_TEST(test_slow_reader),
	    FIXTURE_TEST(test_counts_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
