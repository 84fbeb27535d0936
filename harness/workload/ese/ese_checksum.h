/* SPDX-License-Identifier: MIT
 *
 * The pass over a whole database: all pages in order in I/Os of 256 KiB, each verified against
 * checksum, identity and flush map.  As a checksum after a test and as the backup test's load.
 *
 * Threading: the loop's thread.  `done` may be called from within ese_checksum_start.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_CHECKSUM_H
#define SANLAB_HARNESS_WORKLOAD_ESE_CHECKSUM_H

#include "harness/workload/ese/ese_pager.h"

enum { ESE_CHECKSUM_DEPTH_MAX = 16 };

struct ese_checksum_config {
	struct loop *loop;
	struct ese_pager *pager;
	uint64_t first, end; /* pages [first, end); used_pages is the end */
	/* Only pages that were flushed: of a database on a volume that reads as zeros the others
	 * are as they were born, and a TB of them takes its time. */
	bool written_only;
	unsigned depth;	       /* I/Os in flight, 1..ESE_CHECKSUM_DEPTH_MAX */
	struct stream *stream; /* may be NULL */
	void (*done)(void *arg);
	void *arg;
};

struct ese_checksum_result {
	uint64_t pages, bytes; /* read */
	uint64_t written;      /* of them, pages that have been flushed at least once */
	uint64_t bad;	       /* found wrong */
	uint64_t unsure;       /* being written: not judged */
	uint64_t unreadable;   /* I/O errors */
	uint64_t of_kind[MISMATCH_KINDS];
	uint64_t duration_ns;
	int status; /* the first I/O error */
};

struct ese_checksum;

int ese_checksum_start(const struct ese_checksum_config *config,
		       struct ese_checksum **ret_checksum);
/* Reads nothing more; done follows when the last I/O has ended. */
void ese_checksum_stop(struct ese_checksum *checksum);
const struct ese_checksum_result *ese_checksum_result(const struct ese_checksum *checksum);
double ese_checksum_progress(const struct ese_checksum *checksum);
struct ese_checksum *ese_checksum_free(struct ese_checksum *checksum); /* after done */

#endif
