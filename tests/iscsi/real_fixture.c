/* SPDX-License-Identifier: MIT
 *
 * The fixture of the whole target.
 */
#include "tests/iscsi/real_fixture.h"

#include <stdlib.h>

enum { ATTENTIONS_MAX = 8 };

void real_pattern(uint8_t *to, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(i * 31 + (i >> 9) * 7 + seed);
}

int real_setup(void **state)
{
	struct real_fixture *f = calloc(1, sizeof *f);

	assert_non_null(f);
	assert_int_equal(real_target_array_open(&f->target, NULL), 0);
	assert_int_equal(real_target_serve(&f->target), 0);
	f->pattern = malloc(REAL_MOST_BYTES);
	f->back = malloc(REAL_MOST_BYTES);
	assert_non_null(f->pattern);
	assert_non_null(f->back);
	real_pattern(f->pattern, REAL_MOST_BYTES, 1);
	for (unsigned i = 0; i < REAL_CLIENTS; i++) {
		pdu_client_init(&f->client[i], f->target.server);
		f->client[i].isid[5] = (uint8_t)(i + 1);
	}
	*state = f;
	return 0;
}

int real_teardown(void **state)
{
	struct real_fixture *f = *state;

	for (unsigned i = 0; i < REAL_CLIENTS; i++)
		pdu_client_done(&f->client[i]);
	assert_true(real_target_unserve(&f->target));
	real_target_array_close(&f->target);
	free(f->pattern);
	free(f->back);
	free(f);
	return 0;
}

struct pdu_client *real_login_at(struct real_fixture *f, unsigned client,
				 struct iscsi_portal *portal, const char *extra, size_t extra_size)
{
	struct pdu_client *c = &f->client[client];

	pdu_client_open(c, portal);
	c->tsih = 0;
	assert_int_equal(pdu_login(c, REAL_TARGET_NAME, extra, extra_size), 0);
	c->header_digest = c->conn->params.header_digest;
	c->data_digest = c->conn->params.data_digest;
	return c;
}

struct pdu_client *real_login_only(struct real_fixture *f, unsigned client, const char *extra,
				   size_t extra_size)
{
	return real_login_at(f, client, f->target.portal, extra, extra_size);
}

struct pdu_client *real_login(struct real_fixture *f, unsigned client, const char *extra,
			      size_t extra_size)
{
	struct pdu_client *c = real_login_only(f, client, extra, extra_size);

	for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++)
		assert_int_equal(real_attention(f, c, lun), 0x062900);
	return c;
}

void real_command(struct pdu_client *c, uint8_t bhs[BHS_BYTES], unsigned lun, unsigned flags,
		  const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl, const void *data,
		  uint32_t data_bytes)
{
	uint8_t whole[16] = {0};

	assert_true(cdb_bytes <= sizeof whole);
	memcpy(whole, cdb, cdb_bytes);
	pdu_command(c, bhs, flags, whole, edtl);
	bhs[BHS_LUN + 1] = (uint8_t)lun;
	pdu_send(c, bhs, data, data_bytes);
}

/* Sends what the R2T asks for. */
static void solicited_send(const struct real_fixture *f, struct pdu_client *c,
			   const struct pdu *r2t)
{
	uint32_t offset = get_be32(r2t->bhs + BHS_OFFSET);
	uint32_t left = get_be32(r2t->bhs + BHS_DESIRED_BYTES), data_sn = 0;
	uint8_t bhs[BHS_BYTES];

	assert_in_range(left, 1, c->conn->params.max_burst_bytes);
	assert_true(offset + left <= REAL_MOST_BYTES);
	while (left > 0) {
		uint32_t size = MIN_OF(left, 8192U);

		pdu_data_out(bhs, bhs_itt(r2t->bhs), bhs_ttt(r2t->bhs), data_sn++, offset,
			     size == left);
		pdu_send(c, bhs, f->pattern + offset, size);
		offset += size;
		left -= size;
	}
}

static void data_in_take(struct real_fixture *f, const struct pdu_client *c, const struct pdu *pdu,
			 struct real_answer *answer)
{
	assert_int_equal(get_be32(pdu->bhs + BHS_DATA_SN), answer->data_pdus++);
	assert_int_equal(get_be32(pdu->bhs + BHS_OFFSET), answer->data_bytes);
	assert_int_equal(bhs_ttt(pdu->bhs), ISCSI_NO_TAG);
	assert_true(pdu->data_bytes <= c->conn->params.max_send_bytes);
	assert_true(answer->data_bytes + pdu->data_bytes <= REAL_MOST_BYTES);
	memcpy(f->back + answer->data_bytes, pdu->data, pdu->data_bytes);
	answer->data_bytes += pdu->data_bytes;
}

static void status_take(const struct pdu *pdu, struct real_answer *answer)
{
	uint32_t residual = get_be32(pdu->bhs + BHS_RESIDUAL);
	unsigned flags = pdu->bhs[BHS_FLAGS];

	memcpy(answer->bhs, pdu->bhs, BHS_BYTES);
	answer->status = pdu->bhs[BHS_STATUS];
	assert_false((flags & FLAG_OVERFLOW) && (flags & FLAG_UNDERFLOW));
	if (flags & FLAG_OVERFLOW)
		answer->overflow = residual;
	else if (flags & FLAG_UNDERFLOW)
		answer->underflow = residual;
	else
		assert_int_equal(residual, 0);
	if (bhs_opcode(pdu->bhs) == OP_SCSI_RESPONSE && pdu->data_bytes > 0) {
		answer->sense_bytes = get_be16(pdu->data);
		assert_int_equal(answer->sense_bytes + 2, pdu->data_bytes);
		answer->sense_data = pdu->data + 2;
		assert_true(answer->sense_bytes >= 14);
		answer->sense = (uint32_t)(answer->sense_data[2] & 15) << 16 |
				(uint32_t)answer->sense_data[12] << 8 | answer->sense_data[13];
	}
	/* Sense data comes with CHECK CONDITION, and only with it. */
	assert_int_equal(answer->status == SCSI_CHECK_CONDITION, answer->sense_bytes > 0);
}

struct real_answer real_finish(struct real_fixture *f, struct pdu_client *c, uint32_t itt)
{
	struct real_answer answer = {0};
	struct pdu pdu;

	for (;;) {
		if (!pdu_receive(c, &pdu)) {
			/* The drives may need time. */
			real_target_pass(&f->target, NS_PER_S);
			assert_true(pdu_receive(c, &pdu));
		}
		assert_int_equal(bhs_itt(pdu.bhs), itt);
		if (bhs_opcode(pdu.bhs) == OP_R2T) {
			solicited_send(f, c, &pdu);
			continue;
		}
		if (bhs_opcode(pdu.bhs) == OP_DATA_IN) {
			data_in_take(f, c, &pdu, &answer);
			if (!(pdu.bhs[BHS_FLAGS] & FLAG_STATUS))
				continue;
		} else {
			assert_int_equal(bhs_opcode(pdu.bhs), OP_SCSI_RESPONSE);
			assert_int_equal(pdu.bhs[BHS_RESPONSE], 0);
		}
		status_take(&pdu, &answer);
		return answer;
	}
}

struct real_answer real_run(struct real_fixture *f, struct pdu_client *c, unsigned lun,
			    unsigned flags, const uint8_t *cdb, size_t cdb_bytes, uint32_t edtl,
			    const void *data, uint32_t data_bytes)
{
	uint8_t bhs[BHS_BYTES];

	real_command(c, bhs, lun, flags | FLAG_FINAL, cdb, cdb_bytes, edtl, data, data_bytes);
	return real_finish(f, c, bhs_itt(bhs));
}

void real_write(struct real_fixture *f, struct pdu_client *c, unsigned lun, uint32_t lba,
		uint16_t blocks, const uint8_t *data)
{
	uint8_t cdb[10] = {0x2a};
	struct real_answer answer;

	put_be32(cdb + 2, lba);
	put_be16(cdb + 7, blocks);
	if (data != f->pattern)
		memcpy(f->pattern, data, blocks * 512U);
	answer = real_run(f, c, lun, FLAG_WRITE, cdb, sizeof cdb, blocks * 512U, NULL, 0);
	assert_int_equal(answer.status, SCSI_GOOD);
	assert_int_equal(answer.overflow, 0);
	assert_int_equal(answer.underflow, 0);
}

const uint8_t *real_read(struct real_fixture *f, struct pdu_client *c, unsigned lun, uint32_t lba,
			 uint16_t blocks)
{
	uint8_t cdb[10] = {0x28};
	struct real_answer answer;

	put_be32(cdb + 2, lba);
	put_be16(cdb + 7, blocks);
	answer = real_run(f, c, lun, FLAG_READ, cdb, sizeof cdb, blocks * 512U, NULL, 0);
	assert_int_equal(answer.status, SCSI_GOOD);
	assert_int_equal(answer.data_bytes, blocks * 512U);
	return f->back;
}

uint32_t real_attention(struct real_fixture *f, struct pdu_client *c, unsigned lun)
{
	return real_run(f, c, lun, 0, CDB(0, 0, 0, 0, 0, 0), 0, NULL, 0).sense;
}

void real_settle_attentions(struct real_fixture *f, struct pdu_client *c, unsigned lun)
{
	unsigned count = 0;

	while (real_attention(f, c, lun) != 0)
		assert_true(++count < ATTENTIONS_MAX);
}

void real_alive(struct real_fixture *f, struct pdu_client *c)
{
	assert_int_equal(real_attention(f, c, REAL_LUN_FAST), 0);
}
