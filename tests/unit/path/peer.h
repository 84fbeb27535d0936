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
};

struct peer {
	struct loop *loop;
	char portal[64];
	int listen_fd, fd;
	struct loop_watch listen_watch, watch;
	uint8_t *input;
	uint32_t have;
	uint8_t *disk;
	uint32_t stat_sn;

	/* how to behave */
	bool silent;	       /* accepts, never answers */
	bool close_at_login;   /* the first login PDU is answered with the end of the connection */
	bool garbage;	       /* ... with noise */
	uint16_t login_status; /* 0: success; class << 8 | detail */
	const char *redirect_to;
	unsigned attentions; /* unit attentions before the first success */
	bool mute_io;	     /* READ and WRITE are never answered, NOP is */
	bool mute_all;	     /* nothing is answered once logged in and identified */
	bool no_capacity16, no_dpofua, write_protected, no_unit;
	bool short_read;      /* GOOD with half of the data */
	unsigned close_after; /* READs and WRITEs answered before the connection is reset */
	uint8_t io_status;    /* of READ and WRITE, with sense 03/11/00 for CHECK CONDITION */

	/* what happened */
	unsigned connections, logins, logouts, nops, reads, writes, flushes, unmaps;
	uint8_t isids[16][6];
	uint8_t last_cdb[16];
	uint8_t last_lun[8];
};

void peer_open(struct peer *peer, struct loop *loop);
void peer_drop(struct peer *peer, bool reset); /* the connection */
void peer_close(struct peer *peer);

#endif
