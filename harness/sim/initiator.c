/* SPDX-License-Identifier: MIT
 *
 * PDUs of the initiator over a stream: cutting what arrives into headers and data, and sending.
 */
#include "harness/sim/initiator.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "target/iscsi/window.h"

void sim_bhs_begin(uint8_t *bhs, unsigned opcode, unsigned flags)
{
	memset(bhs, 0, BHS_BYTES);
	bhs[BHS_OPCODE] = (uint8_t)opcode;
	bhs[BHS_FLAGS] = (uint8_t)flags;
}

void sim_conn_send(struct sim_conn *conn, uint8_t *bhs, const struct iovec *iov, unsigned count,
		   uint64_t skip, uint32_t bytes)
{
	uint32_t pad = pdu_pad_bytes(bytes);
	struct sim_segment *segment =
	    sim_segment_new(conn->stream, SIM_DATA, SIM_TO_TARGET, BHS_BYTES + bytes + pad);

	put_be24(bhs + BHS_DATA_BYTES, bytes);
	put_be32(bhs + BHS_EXP_STAT_SN, conn->exp_stat_sn);
	memcpy(segment->data, bhs, BHS_BYTES);
	if (bytes > 0)
		iov_to_mem(iov, count, skip, segment->data + BHS_BYTES, bytes);
	memset(segment->data + BHS_BYTES + bytes, 0, pad);
	sim_stream_send(segment);
}

void sim_conn_close(struct sim_conn *conn)
{
	struct sim_stream *stream = conn->stream;

	conn->state = SIM_CONN_CLOSED;
	conn->stream = NULL;
	if (stream)
		sim_stream_close(stream);
}

void sim_conn_lose(struct sim_conn *conn, enum path_detect by, const char *format, ...)
{
	char why[SIM_WHY_BYTES];
	va_list args;

	if (conn->state == SIM_CONN_CLOSED)
		return;
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	sim_conn_close(conn);
	conn->ops->lost(conn->arg, by, why);
}

/* ---- receiving ---- */

static void take_numbers(struct sim_conn *conn)
{
	uint32_t max = get_be32(conn->bhs + BHS_MAX_CMD_SN);

	if (serial_less(conn->max_cmd_sn, max))
		conn->max_cmd_sn = max;
	/* Data-In without status and R2T carry none of their own. */
	switch (bhs_opcode(conn->bhs)) {
	case OP_R2T:
		return;
	case OP_DATA_IN:
		if (!(conn->bhs[BHS_FLAGS] & FLAG_STATUS))
			return;
		break;
	case OP_NOP_IN:
		if (bhs_itt(conn->bhs) == ISCSI_NO_TAG)
			return;
		break;
	default:
		break;
	}
	conn->exp_stat_sn = get_be32(conn->bhs + BHS_STAT_SN) + 1;
}

static void pdu_complete(struct sim_conn *conn)
{
	uint32_t bytes = bhs_data_bytes(conn->bhs);

	conn->got = 0;
	if (conn->state == SIM_CONN_LOGIN) {
		sim_login_answered(conn, conn->bhs, conn->data, bytes);
		return;
	}
	take_numbers(conn);
	conn->ops->pdu(conn->arg, conn->bhs, conn->data, bytes);
}

/* Takes what belongs to the data segment and its padding; how much that was. */
static uint32_t take_data(struct sim_conn *conn, const uint8_t *data, uint32_t bytes)
{
	uint32_t segment = bhs_data_bytes(conn->bhs);
	uint32_t at = conn->got - BHS_BYTES;
	uint32_t part = MIN_OF(bytes, segment + pdu_pad_bytes(segment) - at);
	uint32_t kept = at < segment ? MIN_OF(part, segment - at) : 0;

	conn->got += part;
	if (kept == 0)
		return part;
	if (bhs_opcode(conn->bhs) == OP_DATA_IN)
		conn->ops->data_in(conn->arg, conn->bhs, at, data, kept);
	else
		memcpy(conn->data + at, data, kept);
	return part;
}

static uint32_t take(struct sim_conn *conn, const uint8_t *data, uint32_t bytes)
{
	uint32_t part;

	if (conn->got >= BHS_BYTES)
		return take_data(conn, data, bytes);
	part = MIN_OF(bytes, BHS_BYTES - conn->got);
	memcpy(conn->bhs + conn->got, data, part);
	conn->got += part;
	if (conn->got == BHS_BYTES) {
		bool data_in = bhs_opcode(conn->bhs) == OP_DATA_IN;
		uint32_t limit = data_in ? SIM_RECEIVE_BYTES : SIM_PDU_DATA_BYTES;

		if (bhs_data_bytes(conn->bhs) > limit || bhs_ahs_bytes(conn->bhs) > 0)
			sim_conn_lose(conn, PATH_DETECT_PROTOCOL, "protocol error: a PDU too long");
	}
	return part;
}

static bool pdu_is_complete(const struct sim_conn *conn)
{
	uint32_t bytes;

	if (conn->got < BHS_BYTES)
		return false;
	bytes = bhs_data_bytes(conn->bhs);
	return conn->got == BHS_BYTES + bytes + pdu_pad_bytes(bytes);
}

static void received(void *arg, const uint8_t *data, uint32_t bytes)
{
	struct sim_conn *conn = arg;
	struct sim_guard *guard = conn->guard;

	sim_enter(guard);
	conn->ops->heard(conn->arg);
	while (bytes > 0 && conn->state != SIM_CONN_CLOSED) {
		uint32_t part = take(conn, data, bytes);

		data += part;
		bytes -= part;
		if (conn->state != SIM_CONN_CLOSED && pdu_is_complete(conn))
			pdu_complete(conn);
	}
	sim_leave(guard);
}

static void connected(void *arg)
{
	struct sim_conn *conn = arg;
	struct sim_guard *guard = conn->guard;

	sim_enter(guard);
	conn->ops->heard(conn->arg);
	conn->state = SIM_CONN_LOGIN;
	sim_login_send(conn);
	sim_leave(guard);
}

static void ended(void *arg, enum sim_end how)
{
	static const struct {
		enum path_detect by;
		const char *why;
	} ends[] = {
	    [SIM_END_CLOSED] = {PATH_DETECT_CLOSED, "connection closed by the target"},
	    [SIM_END_RESET] = {PATH_DETECT_RESET, "connection reset"},
	    [SIM_END_REFUSED] = {PATH_DETECT_RESET, "connection refused"},
	    [SIM_END_TIMEOUT] = {PATH_DETECT_TCP_TIMEOUT, "connection timed out"},
	};
	struct sim_conn *conn = arg;
	struct sim_guard *guard = conn->guard;
	bool login = conn->state == SIM_CONN_LOGIN;

	sim_enter(guard);
	conn->stream = NULL; /* gone by itself */
	sim_conn_lose(conn, ends[how].by, "%s%s%s", ends[how].why,
		      conn->link->cut ? ": the link was cut" : "", login ? " during login" : "");
	sim_leave(guard);
}

int sim_conn_open(struct sim_conn *conn)
{
	static const struct sim_stream_ops stream_ops = {connected, received, ended};

	assert(conn->state == SIM_CONN_CLOSED && !conn->stream);
	conn->got = 0;
	conn->cmd_sn = 1;
	conn->max_cmd_sn = 0;
	conn->exp_stat_sn = 0;
	conn->stream = sim_stream_connect(conn->link, conn->tcp_user_timeout_ns, &stream_ops, conn);
	if (!conn->stream)
		return -ENOMEM;
	conn->state = SIM_CONN_CONNECTING;
	return 0;
}
