/* SPDX-License-Identifier: MIT
 *
 * Going over all blocks of a logical unit: what SANITIZE and FORMAT UNIT have in common.
 *
 * The operation belongs to the logical unit.  It goes on whatever becomes of the command that
 * started it (abort, reset, logout); a command that is not immediate merely waits for its end.
 * Meanwhile commands on the logical unit get NOT READY with the progress made (medium.c).
 *
 * Overwriting goes at the pace of one disk, piece by piece on a timer, so that the array has time
 * for its other volumes.  Erasing deallocates, which is quick: it only lets the loop turn between
 * pieces.
 */
#ifndef SANLAB_TARGET_SCSI_WIPE_H
#define SANLAB_TARGET_SCSI_WIPE_H

#include "target/scsi/internal.h"

#define WIPE_CHUNK_BYTES MIB /* what a pattern buffer holds: whole blocks */

struct wipe_plan {
	struct buf *pattern; /* what is written, a reference that is taken over; NULL: erase */
	unsigned passes;
	bool invert; /* the pattern after each pass */
	/* Bits of lu->conditions (enum lu_condition) while it runs, and once it has failed; sense
	 * of the command that waits in vain. */
	unsigned running, failed;
	uint32_t failed_code;
};

/* May an operation begin in this condition of the medium?  False: sense is set. */
bool scsi_wipe_ready(struct scsi_task *task);
/* A buffer in which every logical block begins with PATTERN_BYTES (1 to a block) of TASK's data-out
 * at SKIP, repeated.  NULL: out of memory, and TASK has ended with BUSY. */
struct buf *scsi_wipe_pattern(struct scsi_task *task, uint32_t skip, uint32_t pattern_bytes);
/* Begins; TASK, which has its range (all of it), ends now when IMMEDIATE, or at the end. */
void scsi_wipe_begin(struct scsi_task *task, const struct wipe_plan *plan, bool immediate);
/* For the abort of TASK's command: it does not wait any longer. */
void scsi_wipe_abort(struct scsi_task *task);

#endif
