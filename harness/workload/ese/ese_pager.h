/* SPDX-License-Identifier: MIT
 *
 * The pager: runs of pages between compact images and the volume.  It owns buffers, flush numbers,
 * the accounting to streams, and the verdict about what is read.
 *
 * content: verified - bytes as in ese_page.h.  content: none - the I/Os are the same, but carry
 * nothing; the images that the volume would hold are kept beside (pages written only).  Nothing
 * above can tell.
 *
 * A page that was never flushed reads as its initial image (ese_image_initial).
 *
 * A read finds a page wrong: it is reported (env->mismatch, workload_check) and its bit set in
 * `bad`; the others of the run are good.  A page that is being written, or was during the read, or
 * whose last write failed, is not judged: its bit is set in `unsure` (only maintenance can meet
 * one, the cache never reads what it holds).
 *
 * Bounds: ESE_RUN_PAGES pages a request; ESE_PAGER_WRITES writes in flight, which the caller keeps
 * to; reads beyond ESE_PAGER_READS wait in order.  No malloc on the data path (content: none keeps
 * images, and grows for pages written).
 * Threading: the loop's thread.  `done` may be called from within the call.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_PAGER_H
#define SANLAB_HARNESS_WORKLOAD_ESE_PAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/loop.h"
#include "harness/workload/ese/ese_flush_map.h"
#include "harness/workload/ese/ese_page.h"
#include "harness/workload/workload.h"

enum {
	ESE_RUN_PAGES = 8, /* 256 KiB */
	ESE_PAGER_READS = 256,
	ESE_PAGER_WRITES = 64,
};

struct ese_image_rules; /* ese_image.h: what initial images follow from */

struct ese_pager;

/* One run of pages to be read or written; embedded in the caller's object. */
struct ese_page_io {
	/* Set by the caller. */
	uint64_t first;
	unsigned count;
	/* Read: filled for each page that is neither bad nor unsure; NULL: verified, not wanted.
	 * Write: what to write; it may change as soon as ese_pager_write has returned.  One write
	 * of a page at a time. */
	struct ese_image *images[ESE_RUN_PAGES];
	/* Write, bit i: page first + i has not changed since it was read or written (it only joins
	 * two others): it keeps its flush number, as no checkpoint waits for it. */
	uint32_t clean;
	bool born;	       /* write: the pages as the rules have them, of a new database */
	struct stream *stream; /* accounts it; may be NULL */
	uint64_t intended_ns;  /* when it was due; 0: now */
	void (*done)(struct ese_page_io *pio);
	void *owner;
	/* Result: 0, the I/O's negative errno, or -EUCLEAN when a page is bad. */
	int status;
	uint32_t bad, unsure;			/* bit i: page first + i */
	enum mismatch_kind kind[ESE_RUN_PAGES]; /* of the bad ones */
	/* Private. */
	struct ese_pager *pager;
	struct io io;
	struct iovec iov;
	struct buf *buf;
	uint64_t submitted_ns;
	uint8_t flush[ESE_RUN_PAGES];
	struct ese_page_io *next, *prev;
};

struct ese_pager_config {
	struct loop *loop;
	struct io_layer *layer;
	struct ese_identity identity;
	uint64_t pages; /* of the file, its header included */
	const struct ese_image_rules *rules;
	bool content;		/* verified */
	bool unwritten_is_zero; /* else pages beyond what was written at creation are not judged */
	bool fua;
	/* Who is told of mismatches and what counts them and what was verified; all may be NULL. */
	const char *host, *volume;
	struct workload_check *check;
	/* NULL, or counts pages as check->pages_written does, of this database alone. */
	uint64_t *first_writes;
	void (*mismatch)(void *arg, const struct mismatch *mismatch);
	void *arg;
};

int ese_pager_new(const struct ese_pager_config *config, struct ese_pager **ret_pager);
/* Nothing may be in flight.  NULL is fine; returns NULL. */
struct ese_pager *ese_pager_free(struct ese_pager *pager);

void ese_pager_read(struct ese_pager *pager, struct ese_page_io *pio);
/* A write that failed leaves all of its pages to be written again, also those said to be clean: on
 * the volume they may be anything. */
void ese_pager_write(struct ese_pager *pager, struct ese_page_io *pio);

/* Between a crash and the end of redo: pages with a dbtime beyond DBTIME may have any flush number,
 * and torn ones are bad, but not reported.  DBTIME: that of the last update before the checkpoint's
 * redo_lgpos (a smaller one only lets more pages by).  UINT64_MAX ends it. */
void ese_pager_recovering(struct ese_pager *pager, uint64_t dbtime);

struct ese_flush_map *ese_pager_map(struct ese_pager *pager);

struct ese_pager_counters {
	uint64_t reads, pages_read, writes, pages_written;
	uint64_t errors;   /* I/Os that failed */
	uint64_t verified; /* pages judged good */
	uint64_t unsure;   /* pages read and not judged */
	uint64_t waits;	   /* reads that waited for others to end */
};
const struct ese_pager_counters *ese_pager_counters(const struct ese_pager *pager);

#endif
