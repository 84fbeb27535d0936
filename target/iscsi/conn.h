/* SPDX-License-Identifier: MIT
 *
 * One connection: the receive machine, its output, and what they drive.
 *
 * Pure: the shell (socket.c, or a test) asks where to read to (iscsi_conn_rx_iov), reports how much
 * came (iscsi_conn_received), and writes what iscsi_conn_tx_iov gives.  Headers and small
 * data go through a ring; of a data segment what is not in the ring yet is read straight to where
 * it belongs.  Nothing in here knows a descriptor.
 *
 * The shell is told through its ops: `wake` when there is something to write or when reading may
 * go on; `closed` when the connection is over (at once, once).  After `closed` the shell must not
 * touch the connection again: it lives on until its last task has ended.
 */
#ifndef SANLAB_TARGET_ISCSI_CONN_H
#define SANLAB_TARGET_ISCSI_CONN_H

#include "target/iscsi/command.h"
#include "target/iscsi/login.h"
#include "target/iscsi/tx.h"
#include "target/iscsi/witness.h"

enum {
	RX_RING_BYTES = 128 * 1024,
	RX_BESIDE_BYTES = 4096, /* read into the ring beside a large payload */
};

enum iscsi_conn_state {
	CONN_LOGIN,
	CONN_FULL,
	CONN_LOGOUT, /* the answer waits for commands to end */
	CONN_FLUSH,  /* close when the output is written */
	CONN_DEAD,
};

struct iscsi_shell_ops {
	void (*wake)(void *arg);
	void (*closed)(void *arg);
	void (*reset)(void *arg); /* the close that follows shall be a reset; may be NULL */
	/* From now on nothing is read, written or acknowledged, until the close; may be NULL. */
	void (*silence)(void *arg);
};

enum rx_state { RX_HEADER, RX_DATA, RX_TAIL };

/* What becomes of the PDU whose data is being received. */
enum rx_action {
	RX_DROP, /* nothing: drained */
	RX_REJECT,
	RX_COMMAND,
	RX_DATA_OUT,
	RX_CONTROL, /* NOP, text, task management, logout */
	RX_LOGIN,
};

struct iscsi_rx {
	uint8_t *ring;
	size_t start, end;
	enum rx_state state;
	enum rx_action action;
	uint8_t bhs[BHS_BYTES];
	uint8_t *to;	    /* NULL: drop */
	uint32_t to_bytes;  /* how many of the next bytes go there; the rest is dropped */
	uint32_t data_left; /* of the data segment */
	uint32_t crc;
	uint32_t direct_bytes; /* first entry of the last iov goes to `to` */
	bool header_digest, data_digest;
	struct buf *data;	       /* RX_CONTROL: the data segment */
	struct iscsi_command *command; /* RX_COMMAND, RX_DATA_OUT */
	struct iscsi_r2t *r2t;	       /* RX_DATA_OUT: solicited by */
	uint8_t reject_reason;
	uint8_t fail_ascq; /* RX_REJECT of a Data-Out: what its command fails with */
};

/* A text negotiation of the full feature phase. */
struct iscsi_text_state {
	char *in; /* collected while C is set */
	size_t in_bytes;
	char *out; /* answer being sent in parts */
	size_t out_bytes, out_sent;
	uint32_t ttt; /* ISCSI_NO_TAG: no exchange under way */
};

struct iscsi_conn {
	struct iscsi_server *server;
	struct iscsi_portal *portal;
	struct iscsi_session *session;
	TAILQ_ENTRY(iscsi_conn) entry;
	enum iscsi_conn_state state;
	const struct iscsi_shell_ops *shell;
	void *shell_arg;
	char local_host[48]; /* where the initiator reached us: for wildcard portals */
	uint8_t peer[16];    /* its own address, as cidr_parse_address gives it; zero: unknown */
	struct iscsi_login_env login_env;
	struct iscsi_login *login; /* NULL after the login */
	bool login_waiting;	   /* for an old session to end */
	struct iscsi_session *waits_for;
	struct iscsi_conn *ancestor; /* whose CID this login takes over once that is gone */
	struct iscsi_conn *heir;     /* ... and the other way round */
	uint8_t login_answer[BHS_BYTES];
	char initiator_name[ISCSI_NAME_BYTES];
	char user[CHAP_USER_BYTES]; /* proven by CHAP; empty: nobody */
	uint16_t cid;
	struct iscsi_params params;
	struct iscsi_rx rx;
	struct iscsi_tx tx;
	struct iscsi_text_state text;
	unsigned command_count; /* commands with allegiance to this connection */
	uint64_t running_bytes; /* reads in the SCSI layer */
	uint32_t next_ttt;
	uint64_t rx_bytes, rx_bytes_at_tick;
	uint32_t ping_ttt;	 /* ISCSI_NO_TAG: no ping under way */
	struct loop_timer timer; /* login, then keep-alive */
	bool failed;		 /* to be killed as soon as nobody is in the middle of something */
	const char *login_text;	 /* of login_answer; inside login */
	uint32_t login_text_bytes;
	uint8_t logout_bhs[BHS_BYTES];
	struct iscsi_conn *logout_via; /* answers the logout of this one; NULL: nobody */
	const char *end_why; /* what ended it, or will; NULL: the target, for a reason of its own */
};

/* ---- for the shell ---- */

/* NULL: out of memory or too many connections. */
struct iscsi_conn *iscsi_conn_new(struct iscsi_portal *portal, const char *local_host,
				  const struct iscsi_shell_ops *shell, void *shell_arg);
/* Where the peer is: its address as text, for access rules. */
void iscsi_conn_set_peer(struct iscsi_conn *conn, const char *host);
/* Ends the connection that has been at its login for the longest time: whoever only connects must
 * not keep others out.  False: there is none.  Not from within a connection's own functions. */
bool iscsi_conn_make_room(struct iscsi_server *server);
/* Room for the next bytes: 1 or 2 entries; 0 while reading is paused. */
unsigned iscsi_conn_rx_iov(struct iscsi_conn *conn, struct iovec iov[2]);
/* BYTES have been put there.  0: only goes on with what is buffered. */
void iscsi_conn_received(struct iscsi_conn *conn, size_t bytes);
bool iscsi_conn_paused(const struct iscsi_conn *conn);
/* Complete input waits in the ring for a pause to end. */
bool iscsi_conn_has_input(const struct iscsi_conn *conn);
static inline unsigned iscsi_conn_tx_iov(struct iscsi_conn *conn, struct iovec *iov, unsigned max)
{
	return iscsi_tx_iov(&conn->tx, iov, max);
}
static inline void iscsi_conn_sent(struct iscsi_conn *conn, size_t bytes)
{
	iscsi_tx_sent(&conn->tx, bytes);
}
/* Everything has been written and nothing more will come: close in order. */
static inline bool iscsi_conn_finished(const struct iscsi_conn *conn)
{
	return conn->state == CONN_FLUSH && iscsi_tx_empty(&conn->tx);
}
/* Ends the connection: closed to the shell at once, tasks aborted.  Dead ones: nothing. */
void iscsi_conn_kill(struct iscsi_conn *conn);

/* ---- inside the room ---- */

void iscsi_conn_free(struct iscsi_conn *conn); /* dead, without commands */
void iscsi_conn_wake(struct iscsi_conn *conn);
/* A tag for R2T, text and NOP-In; never ffffffff. */
uint32_t iscsi_conn_tag(struct iscsi_conn *conn);
/* A new output item; NULL when there is none, and then the connection is about to be killed. */
struct iscsi_tx_item *iscsi_conn_item(struct iscsi_conn *conn);
void iscsi_conn_push(struct iscsi_conn *conn, struct iscsi_tx_item *item, bool advance);
/* Rejects the PDU with header BHS. */
void iscsi_conn_reject(struct iscsi_conn *conn, const uint8_t *bhs, uint8_t reason);
/* A command has ended: goes on with a logout that waited for it. */
void iscsi_conn_settle(struct iscsi_conn *conn);
/* Closes when the output has been written. */
void iscsi_conn_flush(struct iscsi_conn *conn);
/* COMMAND is going: nothing of the PDU under way may be put into it any more. */
void iscsi_conn_forget_command(struct iscsi_conn *conn, const struct iscsi_command *command);

/* dispatch.c: which PDU goes where */
void iscsi_pdu_begin(struct iscsi_conn *conn, const uint8_t *ahs, uint32_t ahs_bytes);
void iscsi_pdu_end(struct iscsi_conn *conn, bool good);
void iscsi_control_run(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data);

/* login_conn.c: the login machine on a connection */
void iscsi_conn_login_init(struct iscsi_conn *conn);
void iscsi_conn_login_begin(struct iscsi_conn *conn, const uint8_t *bhs);
void iscsi_conn_login_end(struct iscsi_conn *conn, const uint8_t *bhs);
/* The old session has gone: finishes the login that waited. */
void iscsi_conn_login_finish(struct iscsi_conn *conn, struct iscsi_session *join);
/* What access rules look at. */
struct access_peer iscsi_conn_peer(const struct iscsi_conn *conn);
void iscsi_conn_login_refuse(struct iscsi_conn *conn, enum iscsi_login_status status);

/* text.c */
void iscsi_text_request(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data);
void iscsi_text_clear(struct iscsi_conn *conn);

/* control.c: NOP, logout, keep-alive */
void iscsi_nop_out(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data);
void iscsi_logout_request(struct iscsi_conn *conn, const uint8_t *bhs);
/* CONN has no commands any more: the logout that waited for that goes on. */
void iscsi_logout_settle(struct iscsi_conn *conn);
/* CONN is going: whoever waits for it to log out has what it wanted. */
void iscsi_logout_lost(struct iscsi_conn *conn);
void iscsi_keepalive_tick(struct iscsi_conn *conn);

#endif
