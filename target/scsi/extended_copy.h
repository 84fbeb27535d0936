/* SPDX-License-Identifier: MIT
 *
 * EXTENDED COPY inside: a parsed parameter list.  extended_copy_list.c reads it, extended_copy.c
 * carries it out.
 */
#ifndef SANLAB_TARGET_SCSI_EXTENDED_COPY_H
#define SANLAB_TARGET_SCSI_EXTENDED_COPY_H

#include "target/scsi/third_party_copy.h"

enum list_id_usage { LIST_ID_HOLD = 0, LIST_ID_DISCARD = 2, LIST_ID_NONE = 3 };

/* One block to block segment, in bytes. */
struct copy_segment {
	struct scsi_lu *from, *to;
	uint64_t from_bytes, to_bytes, length_bytes;
	bool backwards; /* source and destination overlap, and the latter is behind */
};

struct copy_plan {
	uint8_t list_id;
	enum list_id_usage usage;
	unsigned target_count, segment_count;
	struct scsi_lu *target[COPY_TARGETS_MAX]; /* NULL: cannot be reached */
	struct copy_segment segment[COPY_SEGMENTS_MAX];
};

/* Reads the list.  SENSE_NONE or why it is refused as a whole. */
uint32_t scsi_copy_plan_parse(const struct scsi_task *task, const uint8_t *list, unsigned bytes,
			      struct copy_plan *ret_plan);
/* Checks what a segment wants before anything is written; SENSE_NONE or why the copy is aborted,
 * and the segment. */
uint32_t scsi_copy_plan_check(const struct scsi_task *task, struct copy_plan *plan,
			      const uint8_t *list, unsigned *ret_segment);

#endif
