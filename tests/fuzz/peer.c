/* SPDX-License-Identifier: MIT
 *
 * The peer: input in pieces, output checked.
 */
#include "tests/fuzz/peer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"

enum { OUTPUT_BYTES = 1 << 20, STUCK_MAX = 64 };

/* Also in builds without assert. */
#define MUST(condition)                                                                  \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
				#condition);                                             \
			abort();                                                         \
		}                                                                        \
	} while (0)

uint8_t fuzz_byte(struct fuzz_input *input)
{
	uint8_t byte = 0;

	fuzz_bytes(input, &byte, 1);
	return byte;
}

void fuzz_bytes(struct fuzz_input *input, void *to, size_t size)
{
	size_t have = MIN_OF(size, input->left);

	memset(to, 0, size);
	if (have > 0)
		memcpy(to, input->at, have);
	input->at += have;
	input->left -= have;
}

/* ---- the target ---- */

static struct real_target the_target;

static void array_close(void)
{
	real_target_array_close(&the_target);
}

struct real_target *fuzz_target_begin(void)
{
	if (!the_target.group) {
		MUST(real_target_array_open(&the_target, NULL) == 0);
		atexit(array_close);
	}
	MUST(real_target_serve(&the_target) == 0);
	return &the_target;
}

void fuzz_target_end(struct real_target *target)
{
	MUST(real_target_unserve(target));
}

/* ---- the connection ---- */

static void peer_wake(void *arg) {}

static void peer_closed(void *arg)
{
	struct fuzz_peer *peer = arg;

	peer->conn = NULL;
}

static const struct iscsi_shell_ops peer_ops = {peer_wake, peer_closed, NULL};

void fuzz_peer_init(struct fuzz_peer *peer, struct real_target *target, uint8_t isid_end)
{
	*peer = (struct fuzz_peer){.target = target, .isid_end = isid_end, .cmd_sn = 1};
	peer->output = malloc(OUTPUT_BYTES);
	MUST(peer->output);
}

void fuzz_peer_open(struct fuzz_peer *peer)
{
	fuzz_peer_close(peer);
	peer->stat_sn = peer->max_cmd_sn = peer->exp_cmd_sn = 0;
	peer->header_digest = peer->data_digest = peer->has_r2t = false;
	peer->output_bytes = 0;
	peer->cmd_sn = 1;
	peer->conn = iscsi_conn_new(peer->target->portal, "127.0.0.1", &peer_ops, peer);
	MUST(peer->conn);
}

void fuzz_peer_close(struct fuzz_peer *peer)
{
	if (peer->conn)
		iscsi_conn_kill(peer->conn);
	loop_turn(peer->target->loop, false);
}

void fuzz_peer_done(struct fuzz_peer *peer)
{
	fuzz_peer_close(peer);
	free(peer->output);
}

/* ---- output ---- */

static void sequence_check(struct fuzz_peer *peer, const uint8_t *bhs)
{
	uint32_t stat_sn = get_be32(bhs + BHS_STAT_SN);
	uint32_t exp = get_be32(bhs + BHS_EXP_CMD_SN), max = get_be32(bhs + BHS_MAX_CMD_SN);
	bool shows = true, counts = true;

	switch (bhs_opcode(bhs)) {
	case OP_DATA_IN:
		shows = counts = bhs[BHS_FLAGS] & FLAG_STATUS;
		break;
	case OP_R2T:
		counts = false;
		break;
	case OP_NOP_IN:
		counts = bhs_itt(bhs) != ISCSI_NO_TAG;
		break;
	default:
		break;
	}
	if (shows && peer->stat_sn != 0)
		MUST(stat_sn == peer->stat_sn);
	if (shows)
		peer->stat_sn = counts ? stat_sn + 1 : stat_sn;
	if (bhs_opcode(bhs) == OP_LOGIN_RESPONSE)
		return; /* a refusal knows no window */
	if (peer->max_cmd_sn != 0)
		MUST(!serial_less(max, peer->max_cmd_sn));
	if (peer->exp_cmd_sn != 0)
		MUST(!serial_less(exp, peer->exp_cmd_sn));
	peer->max_cmd_sn = max;
	peer->exp_cmd_sn = exp;
}

static void pdu_check(struct fuzz_peer *peer, const uint8_t *bhs)
{
	bool login = bhs_opcode(bhs) == OP_LOGIN_RESPONSE;

	MUST(bhs[BHS_OPCODE] >= OP_NOP_IN && !(bhs[BHS_OPCODE] & 0xc0));
	sequence_check(peer, bhs);
	if (bhs_opcode(bhs) == OP_R2T) {
		MUST(bhs_ttt(bhs) != ISCSI_NO_TAG);
		MUST(get_be32(bhs + BHS_DESIRED_BYTES) > 0);
		memcpy(peer->r2t, bhs, BHS_BYTES);
		peer->has_r2t = true;
	} else if (bhs_opcode(bhs) == OP_TEXT_RESPONSE) {
		peer->text_ttt = bhs_ttt(bhs);
	} else if (login && peer->conn && peer->conn->state == CONN_FULL) {
		peer->header_digest = peer->conn->params.header_digest;
		peer->data_digest = peer->conn->params.data_digest;
	}
}

/* Whole PDUs of the output so far. */
static void output_check(struct fuzz_peer *peer)
{
	size_t at = 0;

	for (;;) {
		const uint8_t *bhs = peer->output + at;
		bool login;
		uint32_t data_bytes;
		size_t head = BHS_BYTES, need;

		if (peer->output_bytes - at < BHS_BYTES)
			break;
		login = bhs_opcode(bhs) == OP_LOGIN_RESPONSE;
		data_bytes = bhs_data_bytes(bhs);
		MUST(bhs[BHS_AHS_WORDS] == 0);
		MUST(data_bytes <= (login ? ISCSI_DEFAULT_MRDSL : 1U << 24));
		if (!login && peer->header_digest)
			head += DIGEST_BYTES;
		need = head + data_bytes + pdu_pad_bytes(data_bytes);
		if (!login && peer->data_digest && data_bytes > 0)
			need += DIGEST_BYTES;
		if (peer->output_bytes - at < need)
			break;
		if (head > BHS_BYTES)
			MUST(get_digest(bhs + BHS_BYTES) == crc32c(0, bhs, BHS_BYTES));
		if (!login && peer->data_digest && data_bytes > 0)
			MUST(get_digest(bhs + need - DIGEST_BYTES) ==
			     crc32c(0, bhs + head, need - DIGEST_BYTES - head));
		pdu_check(peer, bhs);
		at += need;
	}
	memmove(peer->output, peer->output + at, peer->output_bytes - at);
	peer->output_bytes -= at;
}

static bool drain_some(struct fuzz_peer *peer)
{
	struct iovec iov[TX_IOV_MAX];
	size_t moved = 0;
	unsigned n;

	if (!peer->conn)
		return false;
	n = iscsi_conn_tx_iov(peer->conn, iov, TX_IOV_MAX);
	for (unsigned i = 0; i < n; i++) {
		size_t size = iov[i].iov_len;

		if (peer->write_split > 0)
			size = MIN_OF(size, peer->write_split - moved);
		size = MIN_OF(size, OUTPUT_BYTES - peer->output_bytes - moved);
		memcpy(peer->output + peer->output_bytes + moved, iov[i].iov_base, size);
		moved += size;
		if (size < iov[i].iov_len)
			break;
	}
	peer->output_bytes += moved;
	if (moved > 0) {
		iscsi_conn_sent(peer->conn, moved);
		output_check(peer);
	}
	return moved > 0;
}

void fuzz_peer_drain(struct fuzz_peer *peer)
{
	do {
		while (drain_some(peer))
			continue;
		if (peer->conn && iscsi_conn_finished(peer->conn))
			iscsi_conn_kill(peer->conn);
		loop_turn(peer->target->loop, false);
		/* What waited in the ring for room in the output. */
		if (peer->conn && iscsi_conn_has_input(peer->conn) &&
		    !iscsi_conn_paused(peer->conn))
			iscsi_conn_received(peer->conn, 0);
	} while (peer->conn && !iscsi_tx_empty(&peer->conn->tx));
}

/* ---- input ---- */

void fuzz_peer_feed(struct fuzz_peer *peer, const void *bytes, size_t size)
{
	const uint8_t *from = bytes;
	unsigned stuck = 0;

	while (peer->conn && size > 0) {
		struct iovec iov[2];
		unsigned n = iscsi_conn_rx_iov(peer->conn, iov);
		size_t moved = 0;

		for (unsigned i = 0; i < n; i++) {
			size_t part = MIN_OF(iov[i].iov_len, size - moved);

			if (peer->read_split > 0)
				part = MIN_OF(part, peer->read_split - moved);
			memcpy(iov[i].iov_base, from + moved, part);
			moved += part;
			if (part < iov[i].iov_len)
				break;
		}
		from += moved;
		size -= moved;
		if (moved > 0) {
			iscsi_conn_received(peer->conn, moved);
			stuck = 0;
			continue;
		}
		/* Reading is paused: for the output, for drives, or for good. */
		fuzz_peer_drain(peer);
		if (++stuck > STUCK_MAX)
			return;
		real_target_pass(peer->target, NS_PER_S);
	}
}

void fuzz_peer_send(struct fuzz_peer *peer, uint8_t *bhs, const void *data, uint32_t data_bytes,
		    bool break_digest)
{
	static const uint8_t zero[4];
	uint32_t pad = pdu_pad_bytes(data_bytes);
	uint8_t digest[DIGEST_BYTES];

	bhs[BHS_AHS_WORDS] = 0;
	put_be24(bhs + BHS_DATA_BYTES, data_bytes);
	fuzz_peer_feed(peer, bhs, BHS_BYTES);
	if (peer->header_digest) {
		put_digest(digest, crc32c(0, bhs, BHS_BYTES) ^ (break_digest && data_bytes == 0));
		fuzz_peer_feed(peer, digest, sizeof digest);
	}
	fuzz_peer_feed(peer, data, data_bytes);
	fuzz_peer_feed(peer, zero, pad);
	if (peer->data_digest && data_bytes > 0) {
		put_digest(digest, crc32c(crc32c(0, data, data_bytes), zero, pad) ^ break_digest);
		fuzz_peer_feed(peer, digest, sizeof digest);
	}
}

void fuzz_peer_login(struct fuzz_peer *peer, unsigned flags, const char *keys, size_t size)
{
	uint8_t bhs[BHS_BYTES] = {OP_LOGIN | OP_IMMEDIATE, (uint8_t)flags};

	bhs[BHS_ISID] = 0x80;
	bhs[BHS_ISID + 5] = peer->isid_end;
	put_be32(bhs + BHS_CMD_SN, peer->cmd_sn);
	fuzz_peer_send(peer, bhs, keys, (uint32_t)size, false);
	fuzz_peer_drain(peer);
}
