/* SPDX-License-Identifier: MIT
 *
 * A peer for fuzzing: puts bytes of any kind into a connection of the whole target, in any split,
 * and checks what every answer must keep whatever came in: framing, lengths, StatSN, the command
 * window.  What does not hold ends the program.
 */
#ifndef SANLAB_TESTS_FUZZ_PEER_H
#define SANLAB_TESTS_FUZZ_PEER_H

#include "target/iscsi/conn.h"
#include "tests/iscsi/real_target.h"

/* Takes from the front of the fuzzer's input; zeros when it is at its end. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

uint8_t fuzz_byte(struct fuzz_input *input);
void fuzz_bytes(struct fuzz_input *input, void *to, size_t size);

struct fuzz_peer {
	struct real_target *target;
	struct iscsi_conn *conn; /* NULL: closed */
	size_t read_split;	 /* the target reads at most so many bytes at once; 0: any */
	size_t write_split;
	uint8_t isid_end;
	uint32_t cmd_sn;
	/* what the target has said */
	uint32_t stat_sn, max_cmd_sn, exp_cmd_sn; /* 0: not seen */
	bool header_digest, data_digest;
	uint8_t r2t[BHS_BYTES]; /* the last one */
	bool has_r2t;
	uint32_t text_ttt; /* of the last text response */
	uint8_t *output;
	size_t output_bytes;
};

/* The same array for all inputs, a new server for each. */
struct real_target *fuzz_target_begin(void);
void fuzz_target_end(struct real_target *target);

void fuzz_peer_init(struct fuzz_peer *peer, struct real_target *target, uint8_t isid_end);
void fuzz_peer_open(struct fuzz_peer *peer);
void fuzz_peer_close(struct fuzz_peer *peer);
void fuzz_peer_done(struct fuzz_peer *peer);
/* Puts SIZE bytes into the connection; what does not go in any more is lost. */
void fuzz_peer_feed(struct fuzz_peer *peer, const void *bytes, size_t size);
/* A PDU with digests where the login agreed on them, its length fields set. */
void fuzz_peer_send(struct fuzz_peer *peer, uint8_t *bhs, const void *data, uint32_t data_bytes,
		    bool break_digest);
void fuzz_peer_drain(struct fuzz_peer *peer);
/* A Login Request with KEYS. */
void fuzz_peer_login(struct fuzz_peer *peer, unsigned flags, const char *keys, size_t size);

#endif
