/* SPDX-License-Identifier: MIT
 *
 * The raw-PDU initiator.
 */
#include "tests/unit/iscsi/pdu_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc32c.h"

static void client_wake(void *arg) {}

static void client_closed(void *arg)
{
	struct pdu_client *client = arg;

	client->closed = true;
	client->conn = NULL;
}

static void client_reset(void *arg)
{
	struct pdu_client *client = arg;

	client->was_reset = true;
}

static const struct iscsi_shell_ops client_ops = {client_wake, client_closed, client_reset};

void pdu_client_init(struct pdu_client *client, struct iscsi_server *server)
{
	memset(client, 0, sizeof *client);
	client->server = server;
	client->initiator_name = "iqn.2026-11.test.sanlab:client";
	client->isid[0] = 0x80;
	client->isid[5] = 1;
	client->itt = 1;
	client->cmd_sn = 1;
	client->to_server = malloc(PDU_CLIENT_WIRE_BYTES);
	client->from_server = malloc(PDU_CLIENT_WIRE_BYTES);
	assert_non_null(client->to_server);
	assert_non_null(client->from_server);
}

void pdu_client_open(struct pdu_client *client, struct iscsi_portal *portal)
{
	client->closed = client->was_reset = false;
	client->sent = client->filled = client->got = client->taken = 0;
	client->header_digest = client->data_digest = false;
	client->login_text_bytes = 0;
	client->conn = iscsi_conn_new(portal, "127.0.0.1", &client_ops, client);
	assert_non_null(client->conn);
}

void pdu_client_close(struct pdu_client *client)
{
	if (client->conn)
		iscsi_conn_kill(client->conn);
	loop_turn(client->server->loop, false);
}

void pdu_client_done(struct pdu_client *client)
{
	pdu_client_close(client);
	free(client->to_server);
	free(client->from_server);
}

/* ---- the wire ---- */

static bool push_some(struct pdu_client *client)
{
	struct iovec iov[2];
	unsigned n;
	size_t moved = 0;

	if (client->conn && iscsi_conn_has_input(client->conn) && !iscsi_conn_paused(client->conn))
		iscsi_conn_received(client->conn, 0);
	if (!client->conn || client->sent == client->filled)
		return false;
	n = iscsi_conn_rx_iov(client->conn, iov);
	for (unsigned i = 0; i < n; i++) {
		size_t size = MIN_OF(iov[i].iov_len, client->filled - client->sent - moved);

		if (client->read_split > 0)
			size = MIN_OF(size, client->read_split - moved);
		memcpy(iov[i].iov_base, client->to_server + client->sent + moved, size);
		moved += size;
		if (size < iov[i].iov_len)
			break;
	}
	client->sent += moved;
	if (client->sent == client->filled)
		client->sent = client->filled = 0;
	if (moved > 0)
		iscsi_conn_received(client->conn, moved);
	return moved > 0;
}

static bool pull_some(struct pdu_client *client)
{
	struct iovec iov[TX_IOV_MAX];
	unsigned n;
	size_t moved = 0;

	if (!client->conn)
		return false;
	if (client->taken > PDU_CLIENT_WIRE_BYTES / 2 || client->taken == client->got) {
		memmove(client->from_server, client->from_server + client->taken,
			client->got - client->taken);
		client->got -= client->taken;
		client->taken = 0;
	}
	n = iscsi_conn_tx_iov(client->conn, iov, TX_IOV_MAX);
	for (unsigned i = 0; i < n; i++) {
		size_t size = iov[i].iov_len;

		if (client->write_split > 0)
			size = MIN_OF(size, client->write_split - moved);
		size = MIN_OF(size, PDU_CLIENT_WIRE_BYTES - client->got - moved);
		memcpy(client->from_server + client->got + moved, iov[i].iov_base, size);
		moved += size;
		if (size < iov[i].iov_len)
			break;
	}
	client->got += moved;
	if (moved > 0)
		iscsi_conn_sent(client->conn, moved);
	return moved > 0;
}

static void finish_close(struct pdu_client *client)
{
	if (client->conn && iscsi_conn_finished(client->conn))
		iscsi_conn_kill(client->conn);
	loop_turn(client->server->loop, false);
}

void pdu_client_push(struct pdu_client *client)
{
	while (push_some(client))
		continue;
	loop_turn(client->server->loop, false);
}

void pdu_client_pump(struct pdu_client *client)
{
	bool moved;

	do {
		moved = push_some(client);
		moved |= pull_some(client);
		finish_close(client);
		if (client->conn && !iscsi_tx_empty(&client->conn->tx) &&
		    client->got < PDU_CLIENT_WIRE_BYTES)
			moved = true;
	} while (moved);
}

void pdu_send_raw(struct pdu_client *client, const void *bytes, size_t size)
{
	assert_true(client->filled + size <= PDU_CLIENT_WIRE_BYTES);
	if (size > 0)
		memcpy(client->to_server + client->filled, bytes, size);
	client->filled += size;
}

void pdu_begin(uint8_t bhs[BHS_BYTES], unsigned opcode, unsigned flags)
{
	memset(bhs, 0, BHS_BYTES);
	bhs[BHS_OPCODE] = (uint8_t)opcode;
	bhs[BHS_FLAGS] = (uint8_t)flags;
}

void pdu_send_ahs(struct pdu_client *client, uint8_t *bhs, const void *ahs, uint32_t ahs_bytes,
		  const void *data, uint32_t data_bytes)
{
	static const uint8_t zero[4];
	uint8_t digest[DIGEST_BYTES];
	uint32_t pad = pdu_pad_bytes(data_bytes);

	bhs[BHS_AHS_WORDS] = (uint8_t)(ahs_bytes / 4);
	put_be24(bhs + BHS_DATA_BYTES, data_bytes);
	put_be32(bhs + BHS_EXP_STAT_SN, client->exp_stat_sn);
	pdu_send_raw(client, bhs, BHS_BYTES);
	pdu_send_raw(client, ahs, ahs_bytes);
	if (client->header_digest) {
		put_digest(digest, crc32c(crc32c(0, bhs, BHS_BYTES), ahs, ahs_bytes));
		pdu_send_raw(client, digest, sizeof digest);
	}
	pdu_send_raw(client, data, data_bytes);
	pdu_send_raw(client, zero, pad);
	if (client->data_digest && data_bytes > 0) {
		put_digest(digest, crc32c(crc32c(0, data, data_bytes), zero, pad));
		pdu_send_raw(client, digest, sizeof digest);
	}
}

void pdu_send(struct pdu_client *client, uint8_t *bhs, const void *data, uint32_t data_bytes)
{
	pdu_send_ahs(client, bhs, NULL, 0, data, data_bytes);
}

/* StatSN: what the PDU carries must be the next one, and counts when it is a status. */
static void check_stat_sn(struct pdu_client *client, const struct pdu *pdu)
{
	uint32_t stat_sn = get_be32(pdu->bhs + BHS_STAT_SN);
	bool counts = true;

	switch (bhs_opcode(pdu->bhs)) {
	case OP_DATA_IN:
		if (!(pdu->bhs[BHS_FLAGS] & FLAG_STATUS))
			return;
		break;
	case OP_R2T:
		counts = false;
		break;
	case OP_NOP_IN:
		counts = bhs_itt(pdu->bhs) != ISCSI_NO_TAG;
		break;
	default:
		break;
	}
	if (client->exp_stat_sn != 0)
		assert_int_equal(stat_sn, client->exp_stat_sn);
	if (counts)
		client->exp_stat_sn = stat_sn + 1;
}

static void check_window(struct pdu_client *client, const struct pdu *pdu)
{
	uint32_t exp = get_be32(pdu->bhs + BHS_EXP_CMD_SN),
		 max = get_be32(pdu->bhs + BHS_MAX_CMD_SN);

	if (client->max_cmd_sn != 0)
		assert_false(serial_less(max, client->max_cmd_sn)); /* it never decreases */
	if (client->exp_cmd_sn != 0)
		assert_false(serial_less(exp, client->exp_cmd_sn));
	client->exp_cmd_sn = exp;
	client->max_cmd_sn = max;
}

bool pdu_receive(struct pdu_client *client, struct pdu *ret_pdu)
{
	const uint8_t *at;
	size_t have, need;
	uint32_t data_bytes, padded;

	pdu_client_pump(client);
	at = client->from_server + client->taken;
	have = client->got - client->taken;
	if (have == 0)
		return false;
	assert_true(have >= BHS_BYTES);
	data_bytes = bhs_data_bytes(at);
	padded = data_bytes + pdu_pad_bytes(data_bytes);
	need = BHS_BYTES + (client->header_digest ? DIGEST_BYTES : 0);
	memcpy(ret_pdu->bhs, at, BHS_BYTES);
	assert_int_equal(at[BHS_AHS_WORDS], 0);
	if (client->header_digest)
		assert_int_equal(get_digest(at + BHS_BYTES), crc32c(0, at, BHS_BYTES));
	ret_pdu->data = at + need;
	ret_pdu->data_bytes = data_bytes;
	need += padded;
	if (client->data_digest && data_bytes > 0) {
		assert_int_equal(get_digest(at + need), crc32c(0, ret_pdu->data, padded));
		need += DIGEST_BYTES;
	}
	assert_true(have >= need);
	client->taken += need;
	check_stat_sn(client, ret_pdu);
	check_window(client, ret_pdu);
	return true;
}

struct pdu pdu_expect(struct pdu_client *client, unsigned opcode)
{
	struct pdu pdu = {0};

	assert_true(pdu_receive(client, &pdu));
	assert_int_equal(bhs_opcode(pdu.bhs), opcode);
	return pdu;
}

void pdu_expect_nothing(struct pdu_client *client)
{
	struct pdu pdu;

	assert_false(pdu_receive(client, &pdu));
}

/* ---- login ---- */

void pdu_login_send(struct pdu_client *client, unsigned flags, const char *keys, size_t size)
{
	uint8_t bhs[BHS_BYTES];

	pdu_begin(bhs, OP_LOGIN | OP_IMMEDIATE, flags);
	memcpy(bhs + BHS_ISID, client->isid, sizeof client->isid);
	put_be16(bhs + BHS_TSIH, client->tsih);
	put_be16(bhs + BHS_CID, client->cid);
	put_be32(bhs + BHS_ITT, 0);
	put_be32(bhs + BHS_CMD_SN, client->cmd_sn);
	pdu_send(client, bhs, keys, (uint32_t)size);
}

void pdu_login_step(struct pdu_client *client, unsigned flags, const char *keys, size_t size)
{
	struct pdu pdu;

	pdu_login_send(client, flags, keys, size);
	pdu = pdu_expect(client, OP_LOGIN_RESPONSE);
	client->login_status = get_be16(pdu.bhs + BHS_STATUS_CLASS);
	assert_true(client->login_text_bytes + pdu.data_bytes < sizeof client->login_text);
	if (pdu.data_bytes > 0)
		memcpy(client->login_text + client->login_text_bytes, pdu.data, pdu.data_bytes);
	client->login_text_bytes += pdu.data_bytes;
	if (client->login_status == 0 && (pdu.bhs[BHS_FLAGS] & 0x83) == 0x83) {
		client->tsih = get_be16(pdu.bhs + BHS_TSIH);
		assert_int_not_equal(client->tsih, 0);
	}
}

static size_t keys_add(char *text, size_t at, const char *key, const char *value)
{
	int n = snprintf(text + at, 4096 - at, "%s=%s", key, value);

	assert_true(n > 0);
	return at + (size_t)n + 1;
}

static uint16_t login(struct pdu_client *client, const char *first, const char *value,
		      const char *usual, size_t usual_size, const char *extra, size_t extra_size)
{
	char text[4096];
	size_t at = 0;

	client->exp_stat_sn = client->exp_cmd_sn = client->max_cmd_sn = 0;
	at = keys_add(text, at, "InitiatorName", client->initiator_name);
	at = keys_add(text, at, first, value);
	at = keys_add(text, at, "AuthMethod", "None");
	pdu_login_step(client, 0x81, text, at);
	if (client->login_status != 0)
		return client->login_status;
	memcpy(text, usual, usual_size);
	if (extra_size > 0)
		memcpy(text + usual_size, extra, extra_size);
	pdu_login_step(client, 0x87, text, usual_size + extra_size);
	return client->login_status;
}

uint16_t pdu_login(struct pdu_client *client, const char *target, const char *extra,
		   size_t extra_size)
{
	static const char usual[] = "DefaultTime2Wait=2\0DefaultTime2Retain=0\0IFMarker=No\0"
				    "OFMarker=No\0ErrorRecoveryLevel=0\0MaxConnections=1";

	return login(client, "TargetName", target, usual, sizeof usual, extra, extra_size);
}

uint16_t pdu_login_discovery(struct pdu_client *client, const char *extra, size_t extra_size)
{
	static const char usual[] = "DefaultTime2Wait=2";

	return login(client, "SessionType", "Discovery", usual, sizeof usual, extra, extra_size);
}

const char *pdu_login_value(const struct pdu_client *client, const char *key)
{
	size_t size = strlen(key), at = 0;

	while (at < client->login_text_bytes) {
		const char *pair = client->login_text + at;

		if (strncmp(pair, key, size) == 0 && pair[size] == '=')
			return pair + size + 1;
		at += strlen(pair) + 1;
	}
	return NULL;
}

/* ---- commands ---- */

void pdu_command(struct pdu_client *client, uint8_t bhs[BHS_BYTES], unsigned flags,
		 const uint8_t *cdb, uint32_t edtl)
{
	pdu_begin(bhs, OP_SCSI_COMMAND, flags);
	put_be32(bhs + BHS_ITT, client->itt++);
	put_be32(bhs + BHS_EDTL, edtl);
	put_be32(bhs + BHS_CMD_SN, client->cmd_sn++);
	memcpy(bhs + BHS_CDB, cdb, 16);
}

void pdu_read10(struct pdu_client *client, uint8_t bhs[BHS_BYTES], uint32_t lba, uint16_t blocks)
{
	uint8_t cdb[16] = {0x28};

	put_be32(cdb + 2, lba);
	put_be16(cdb + 7, blocks);
	pdu_command(client, bhs, FLAG_FINAL | FLAG_READ, cdb, blocks * 512U);
}

void pdu_write10(struct pdu_client *client, uint8_t bhs[BHS_BYTES], uint32_t lba, uint16_t blocks,
		 unsigned flags)
{
	uint8_t cdb[16] = {0x2a};

	put_be32(cdb + 2, lba);
	put_be16(cdb + 7, blocks);
	pdu_command(client, bhs, flags | FLAG_WRITE, cdb, blocks * 512U);
}

void pdu_data_out(uint8_t bhs[BHS_BYTES], uint32_t itt, uint32_t ttt, uint32_t data_sn,
		  uint32_t offset, bool final)
{
	pdu_begin(bhs, OP_DATA_OUT, final ? FLAG_FINAL : 0);
	put_be32(bhs + BHS_ITT, itt);
	put_be32(bhs + BHS_TTT, ttt);
	put_be32(bhs + BHS_DATA_SN, data_sn);
	put_be32(bhs + BHS_OFFSET, offset);
}

uint8_t pdu_test_unit_ready(struct pdu_client *client)
{
	static const uint8_t cdb[16];
	uint8_t bhs[BHS_BYTES];
	struct pdu pdu;

	pdu_command(client, bhs, FLAG_FINAL, cdb, 0);
	pdu_send(client, bhs, NULL, 0);
	pdu = pdu_expect(client, OP_SCSI_RESPONSE);
	assert_int_equal(bhs_itt(pdu.bhs), bhs_itt(bhs));
	return pdu.bhs[BHS_STATUS];
}

void pdu_tmf(struct pdu_client *client, uint8_t bhs[BHS_BYTES], unsigned function,
	     uint32_t referenced_itt, uint32_t ref_cmd_sn)
{
	pdu_begin(bhs, OP_TASK_MANAGEMENT | OP_IMMEDIATE, FLAG_FINAL | function);
	put_be32(bhs + BHS_ITT, client->itt++);
	put_be32(bhs + BHS_REFERENCED_TAG, referenced_itt);
	put_be32(bhs + BHS_CMD_SN, client->cmd_sn);
	put_be32(bhs + BHS_REF_CMD_SN, ref_cmd_sn);
}
