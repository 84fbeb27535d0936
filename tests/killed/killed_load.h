/* SPDX-License-Identifier: MIT
 *
 * Load on one logical unit by libiscsi, and a shadow of what must be read back: each block of 4 KiB
 * carries its number and the number of the write that put it there.
 *
 * A block with an answered write holds that write; one whose write or UNMAP was under way when the
 * target died holds the old or the new content, whole.
 */
#ifndef SANLAB_TESTS_KILLED_LOAD_H
#define SANLAB_TESTS_KILLED_LOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rng.h"

struct iscsi_context;

enum {
	LOAD_BLOCK_BYTES = 4096,
	LOAD_DEPTH = 16,
	LOAD_BLOCKS_MAX = 64, /* of one write */
};

enum load_kind { LOAD_IDLE, LOAD_WRITE, LOAD_UNMAP };

struct load;

struct load_op {
	struct load *load;
	enum load_kind kind;
	uint32_t first, count; /* blocks */
	uint32_t stamp;	       /* 0: UNMAP */
	uint8_t *data;
};

struct load {
	const char *portal, *target;
	struct iscsi_context *iscsi;
	struct rng rng;
	uint32_t blocks;
	uint32_t *answered; /* stamp of each block; 0: zeros */
	uint32_t *pending;  /* stamp under way, UINT32_MAX: none */
	uint32_t stamp;
	unsigned busy;
	struct load_op ops[LOAD_DEPTH];
	uint64_t writes, unmaps; /* answered */
	bool failed;		 /* an answer was an error */
};

/* All of these tell on stderr what went wrong, and answer false. */
bool load_init(struct load *load, const char *portal, const char *target, uint32_t blocks,
	       uint64_t seed);
void load_done(struct load *load);
bool load_connect(struct load *load);
/* Keeps the depth for DURATION_MS. */
bool load_run(struct load *load, unsigned duration_ms);
/* Takes the answers that are still on their way from a target that was killed; what has none
 * then is undecided.  Disconnects. */
bool load_take_rest(struct load *load);
/* Reads everything and decides what was undecided. */
bool load_verify(struct load *load);
void load_disconnect(struct load *load);

#endif
