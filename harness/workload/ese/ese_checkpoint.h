/* SPDX-License-Identifier: MIT
 *
 * The checkpoint of a database: where redo must begin, and what the log does not say.
 *
 * Two slots of 4 KiB, written in turn; the valid one with the higher sequence counts, so a torn
 * write costs one checkpoint and no more.  The flush map's pages are written before it.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_CHECKPOINT_H
#define SANLAB_HARNESS_WORKLOAD_ESE_CHECKPOINT_H

#include "harness/workload/ese/ese_log.h"

enum { ESE_CHECKPOINT_BYTES = 4096, ESE_CHECKPOINT_TREE_BYTES = 256 };

struct ese_checkpoint {
	uint64_t sequence;	/* set by ese_checkpoint_write */
	uint64_t signature;	/* of the log */
	uint32_t epoch;		/* of the log's segments since the database was attached */
	bool clean;		/* detached in order: no redo */
	uint64_t redo_lgpos;	/* the oldest update that is not in a written page; else the tip */
	uint64_t flushed_lgpos; /* the log reaches at least to here */
	uint64_t dbtime;
	uint64_t used_pages;
	uint64_t root_page;
	uint32_t levels;
	uint8_t tree[ESE_CHECKPOINT_TREE_BYTES]; /* what the tree wants to find again */
};

void ese_checkpoint_encode(const struct ese_checkpoint *checkpoint, void *slot);
/* -EBADMSG: no checkpoint of the log with SIGNATURE (0: of any). */
int ese_checkpoint_decode(const void *slot, uint64_t signature, struct ese_checkpoint *ret);

typedef void (*ese_checkpoint_fn)(void *arg, int status);

/* Reads and writes the slots; one request at a time. */
struct ese_checkpointer {
	struct ese_log_area area;
	uint64_t sequence; /* the last one written or read */
	bool busy;
	bool fua;
	/* private */
	struct io io;
	struct iovec iov;
	void *buf;
	struct ese_checkpoint *ret;
	ese_checkpoint_fn done;
	void *arg;
};

int ese_checkpointer_init(struct ese_checkpointer *pointer, const struct ese_log_area *area);
void ese_checkpointer_fini(struct ese_checkpointer *pointer);
/* -ENOENT: neither slot is valid. */
void ese_checkpoint_read(struct ese_checkpointer *pointer, struct ese_checkpoint *ret,
			 ese_checkpoint_fn done, void *arg);
void ese_checkpoint_write(struct ese_checkpointer *pointer, const struct ese_checkpoint *checkpoint,
			  ese_checkpoint_fn done, void *arg);

#endif
