/* SPDX-License-Identifier: MIT
 *
 * A scripted iSCSI target for one initiator at a time, on the loop of the path under test: just
 * enough of RFC 7143 to be logged in to, and switches to misbehave at every point.
 */
#ifndef SANLAB_TESTS_PEER_H
#define SANLAB_TESTS_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"

enum {
	PEER_BLOCK_BYTES = 512,
	PEER_BLOCKS = 2048,
	PEER_INPUT_MAX = 1 << 20,
	PEER_COMMANDS_MAX = 256,
	PEER_BHS_BYTES = 48,
};

/* PDU opcodes (RFC 7143 11.1.1). */
enum {
	PEER_NOP_OUT = 0x00,
	PEER_COMMAND = 0x01,
	PEER_TASK_MANAGEMENT = 0x02,
	PEER_LOGIN = 0x03,
	PEER_DATA_OUT = 0x05,
	PEER_LOGOUT = 0x06,
	PEER_NOP_IN = 0x20,
	PEER_RESPONSE = 0x21,
	PEER_TASK_MANAGEMENT_RESPONSE = 0x22,
	PEER_LOGIN_RESPONSE = 0x23,
	PEER_DATA_IN = 0x25,
	PEER_LOGOUT_RESPONSE = 0x26,
	PEER_R2T = 0x31,
};

/* A PDU as it came; what it points to is valid until the callback returns. */
struct peer_pdu {
	const uint8_t *bhs, *data;
	uint32_t size; /* of the data segment, without padding */
};

struct peer {
	struct loop *loop;
	char portal[64];
	int listen_fd, fd;
	struct loop_watch listen_watch, watch;
	uint8_t *input;
	uint32_t have;
	uint8_t *disk;
	uint32_t stat_sn, max_cmd_sn;
	bool header_digest; /* on this connection, from the end of its login */

	/* how to behave */
	bool silent;	       /* accepts, never answers */
	bool close_at_login;   /* the first login PDU is answered with the end of the connection */
	bool garbage;	       /* ... with noise */
	uint16_t login_status; /* 0: success; class << 8 | detail */
	const char *redirect_to;
	unsigned attentions; /* unit attentions before the first success */
	bool mute_io;	     /* READ and WRITE are never answered, NOP is */
	bool mute_all;	     /* nothing is answered once logged in and identified */
	uint8_t no_access;   /* ascq of 02/04/xx for what a port without access refuses */
	bool no_capacity16, no_dpofua, write_protected, no_unit;
	bool short_read;      /* GOOD with half of the data */
	unsigned close_after; /* READs and WRITEs answered before the connection is reset */
	uint8_t io_status;    /* of READ and WRITE, with sense 03/11/00 for CHECK CONDITION */

	const char *login_keys; /* NULL: the usual ones; "KEY=VALUE\0...", ends with an empty one */
	bool window_closed;	/* MaxCmdSN stays where it is */
	/* Sees each PDU first; true: it has been dealt with. */
	bool (*script)(struct peer *peer, const struct peer_pdu *pdu);
	void *script_arg;

	/* what happened */
	unsigned connections, logins, logouts, nops, reads, writes, flushes, unmaps;
	unsigned refused; /* for want of access */
	uint8_t isids[16][6];
	uint8_t last_cdb[16];
	uint8_t last_lun[8];
};

void peer_open(struct peer *peer, struct loop *loop);
void peer_drop(struct peer *peer, bool reset); /* the connection */
void peer_stop_listening(struct peer *peer);
void peer_close(struct peer *peer);

/* ---- for scripts ---- */
/* The header of an answer to REQUEST: ITT, StatSN, ExpCmdSN and MaxCmdSN are in it. */
void peer_header(struct peer *peer, const uint8_t *request, uint8_t opcode, uint8_t *bhs);
/* Sends BHS with SIZE bytes of DATA; fills in the length and, when agreed on, the digest. */
void peer_send(struct peer *peer, uint8_t *bhs, const void *data, uint32_t size);
/* A SCSI response; sense KEY/ASC/ASCQ goes with CHECK CONDITION. */
void peer_respond(struct peer *peer, const uint8_t *request, uint8_t status, uint8_t key,
		  uint8_t asc, uint8_t ascq);
/* One last Data-In with GOOD, for a command that may have been kept since it came. */
void peer_data_in(struct peer *peer, const uint8_t *request, const void *data, uint32_t size);

#endif
