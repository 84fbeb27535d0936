/* SPDX-License-Identifier: MIT
 *
 * One command of a session, from its PDU to its answer: a SCSI task with the bookkeeping of its
 * data-out, or (while held) any other numbered PDU that came before its turn.
 *
 * Threading: the loop's thread.  Memory: slabs of the server, free list; the embedded scsi_task
 * keeps its memory between uses as scsi.h asks.
 */
#ifndef SANLAB_TARGET_ISCSI_COMMAND_H
#define SANLAB_TARGET_ISCSI_COMMAND_H

#include "target/iscsi/session.h"

enum iscsi_command_state {
	COMMAND_HELD,	 /* waits for an earlier CmdSN; not yet known to the SCSI layer */
	COMMAND_ENDED,	 /* ended in scsi_prepare; answered at the end of its PDU */
	COMMAND_READY,	 /* prepared, needs no data */
	COMMAND_COLLECT, /* prepared, data-out on its way */
	COMMAND_RUN,	 /* executing */
	COMMAND_FAILING, /* a CHECK CONDITION of ours waits until the data is drained */
	COMMAND_ABORTING,
	COMMAND_DRAIN, /* aborted; a task management function waits for data that was asked for */
};

/* A ready-to-transfer under way. */
struct iscsi_r2t {
	uint32_t ttt, offset, bytes, got_bytes, data_sn;
};

struct iscsi_command {
	struct scsi_task task;
	struct iscsi_session *session;
	struct iscsi_conn *conn; /* allegiance */
	LIST_ENTRY(iscsi_command) hash;
	TAILQ_ENTRY(iscsi_command) entry; /* session's list: held or commands */
	SLIST_ENTRY(iscsi_command) spare;
	enum iscsi_command_state state;
	uint8_t bhs[BHS_BYTES];
	uint32_t itt, cmd_sn, edtl_bytes;
	bool immediate, is_read, is_write;
	bool hashed;
	bool occupies;		     /* a place in the window */
	bool cancelled;		     /* held, and not to be run when its turn comes */
	bool receiving;		     /* held, and its PDU is not complete */
	uint16_t tmf_waiters;	     /* bit = slot of the session */
	bool drains;		     /* ... and they wait for its R2Ts, too */
	uint8_t fail_asc, fail_ascq; /* our own sense, ABORTED COMMAND; 0: none */
	uint8_t fail_status;	     /* or our own status */
	bool answers_failure;	     /* aborted by ourselves: the failure is still answered */
	/* data-out */
	struct buf *buf;
	struct iovec iov;
	uint32_t want_bytes;	    /* MIN(out_bytes, edtl) */
	bool unsolicited_open;	    /* more unsolicited Data-Out to come */
	uint32_t unsolicited_bytes; /* received, immediate data included: the next offset */
	uint32_t unsolicited_sn;
	uint32_t r2t_offset; /* asked for up to here */
	uint32_t r2t_sn;     /* R2Ts sent */
	unsigned r2t_count;
	struct iscsi_r2t r2t[ISCSI_MAX_R2T];
	uint32_t promised_bytes; /* counted in the connection's running reads */
};

/* command.c */
struct iscsi_command *iscsi_command_new(struct iscsi_conn *conn, const uint8_t *bhs);
/* A SCSI Command PDU: its header, and later its end (GOOD: the data digest was right). */
void iscsi_command_begin(struct iscsi_conn *conn, const uint8_t *bhs, const uint8_t *ahs,
			 uint32_t ahs_bytes);
void iscsi_command_end(struct iscsi_conn *conn, bool good);
/* The turn of a held SCSI command has come. */
void iscsi_command_release(struct iscsi_command *command);
/* All data is here: to the SCSI layer. */
void iscsi_command_run(struct iscsi_command *command);
/* Ends the command with CHECK CONDITION, ABORTED COMMAND, ASC/ASCQ, after what unsolicited data
 * is still to come. */
void iscsi_command_fail(struct iscsi_command *command, uint8_t asc, uint8_t ascq);
/* Continues a failing command whose data has been drained. */
void iscsi_command_fail_now(struct iscsi_command *command);
/* Ends the command without an answer; whoever waits is told (perhaps at once). */
void iscsi_command_abort(struct iscsi_command *command);
void iscsi_command_clear_slabs(struct iscsi_server *server);

/* Takes the command out of everything and frees it; tells who waits for its end. */
void iscsi_command_finish(struct iscsi_command *command);

/* respond.c: sends data-in and status, then finishes the command. */
void iscsi_respond(struct iscsi_command *command);

/* dataout.c */
/* Data-out so far is in place: asks for more, or runs the command. */
void iscsi_dataout_progress(struct iscsi_command *command);
void iscsi_dataout_begin(struct iscsi_conn *conn, const uint8_t *bhs);
void iscsi_dataout_end(struct iscsi_conn *conn, const uint8_t *bhs, bool good);
/* A Reject has been sent: fails the command the Data-Out was for, if any. */
void iscsi_dataout_rejected(struct iscsi_conn *conn);
/* Checks the F bit and the amount of immediate data; 0 or the ASCQ (0x0c, 0x0d) to fail with. */
uint8_t iscsi_unsolicited_check(const struct iscsi_command *command, uint32_t data_bytes);

/* tmf.c */
void iscsi_tmf_request(struct iscsi_conn *conn, const uint8_t *bhs);
/* COMMAND has ended: counts down those who waited for it. */
void iscsi_tmf_task_ended(struct iscsi_command *command);
/* The connection is going: its functions are no longer answered. */
void iscsi_tmf_forget(struct iscsi_conn *conn);

#endif
