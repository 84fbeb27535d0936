/* SPDX-License-Identifier: MIT
 *
 * The initiator's side of a session: PDUs over a stream, and the login.  What libiscsi is to the
 * iscsi path; one connection, no digests, no security, error recovery level 0.  Private to
 * harness/sim.
 */
#ifndef SANLAB_HARNESS_SIM_INITIATOR_H
#define SANLAB_HARNESS_SIM_INITIATOR_H

#include "harness/sim/stream.h"
#include "target/iscsi/pdu.h"

enum {
	SIM_PDU_DATA_BYTES = 16 * 1024, /* of PDUs whose data is collected */
	SIM_RECEIVE_BYTES = 256 * 1024, /* our MaxRecvDataSegmentLength: as libiscsi's */
	SIM_WHY_BYTES = 160,
};

/* Keeps what is being called alive until the last of its functions has returned. */
struct sim_guard {
	unsigned depth;
	bool free_wanted;
	void (*destroy)(struct sim_guard *guard);
};

static inline void sim_enter(struct sim_guard *guard)
{
	guard->depth++;
}
static inline void sim_leave(struct sim_guard *guard)
{
	if (--guard->depth == 0 && guard->free_wanted)
		guard->destroy(guard);
}

enum sim_conn_state { SIM_CONN_CLOSED, SIM_CONN_CONNECTING, SIM_CONN_LOGIN, SIM_CONN_FULL };

struct sim_conn;

/* Called between sim_enter and sim_leave of the owner's guard. */
struct sim_conn_ops {
	void (*up)(void *arg); /* logged in */
	/* Something has arrived. */
	void (*heard)(void *arg);
	/* A part of a Data-In's data, from byte AT of the segment on. */
	void (*data_in)(void *arg, const uint8_t *bhs, uint32_t at, const uint8_t *data,
			uint32_t bytes);
	/* A whole PDU; of a Data-In without its data. */
	void (*pdu)(void *arg, const uint8_t *bhs, const uint8_t *data, uint32_t bytes);
	/* The connection is over, and closed. */
	void (*lost)(void *arg, enum path_detect by, const char *why);
};

struct sim_conn {
	struct sim_link *link;
	const struct sim_conn_ops *ops;
	void *arg;
	struct sim_guard *guard;
	const char *initiator, *target; /* names */
	uint8_t isid[6];
	uint64_t tcp_user_timeout_ns;

	enum sim_conn_state state;
	struct sim_stream *stream;
	uint32_t cmd_sn, max_cmd_sn, exp_stat_sn;
	uint32_t max_send_bytes, first_burst_bytes;
	bool immediate_data;

	uint8_t bhs[BHS_BYTES];
	uint32_t got; /* of header, data and padding together */
	uint8_t data[SIM_PDU_DATA_BYTES];
};

/* ---- initiator.c ---- */
int sim_conn_open(struct sim_conn *conn); /* link .. tcp_user_timeout_ns are set */
void sim_conn_close(struct sim_conn *conn);
/* Sends a PDU: BHS and BYTES of IOV, from byte SKIP on. */
void sim_conn_send(struct sim_conn *conn, uint8_t *bhs, const struct iovec *iov, unsigned count,
		   uint64_t skip, uint32_t bytes);
/* A header with opcode and flags; everything else zero. */
void sim_bhs_begin(uint8_t *bhs, unsigned opcode, unsigned flags);
/* Closes and tells the owner. */
void sim_conn_lose(struct sim_conn *conn, enum path_detect by, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool sim_conn_window_open(const struct sim_conn *conn)
{
	return (int32_t)(conn->max_cmd_sn - conn->cmd_sn) >= 0;
}

/* ---- initiator_login.c ---- */
void sim_login_send(struct sim_conn *conn);
void sim_login_answered(struct sim_conn *conn, const uint8_t *bhs, const uint8_t *data,
			uint32_t bytes);

#endif
