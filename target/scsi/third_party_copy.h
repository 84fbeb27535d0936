/* SPDX-License-Identifier: MIT
 *
 * Third-party copy (SPC-4 5.17.3, the one-byte list identifier): limits, and what is remembered of
 * copies so that RECEIVE COPY RESULTS can tell it.
 *
 * A record belongs to its nexus and dies with it.  Bounds: COPY_RECORDS_MAX a nexus, the oldest one
 * goes; COPIES_MAX copies under way on the device, beyond: BUSY.
 */
#ifndef SANLAB_TARGET_SCSI_THIRD_PARTY_COPY_H
#define SANLAB_TARGET_SCSI_THIRD_PARTY_COPY_H

#include "target/scsi/internal.h"

enum {
	COPY_HEADER_BYTES = 16,
	COPY_TARGET_BYTES = 32,	 /* identification descriptor */
	COPY_SEGMENT_BYTES = 28, /* block to block */
	COPY_TARGET_TYPE = 0xe4,
	COPY_SEGMENT_TYPE = 0x02,
	COPY_TARGETS_MAX = 16,
	COPY_SEGMENTS_MAX = 16,
	COPY_LIST_MAX_BYTES =
	    COPY_TARGETS_MAX * COPY_TARGET_BYTES + COPY_SEGMENTS_MAX * COPY_SEGMENT_BYTES,
	COPIES_MAX = 16,
	COPY_RECORDS_MAX = 16,
};
/* 65535 blocks of the largest size; what a segment's 16-bit count can say. */
#define COPY_SEGMENT_MAX_BYTES (UINT32_C(65535) * 4096)

struct copy_record {
	const struct scsi_lu *manager; /* the logical unit that got the command */
	uint8_t list_id;
	bool running, failed;
	uint16_t segments; /* done */
	uint64_t bytes;	   /* written */
	uint8_t status;	   /* SCSI status of the EXTENDED COPY, when it is over */
	uint8_t sense_bytes;
	uint8_t sense[SCSI_SENSE_MAX_BYTES];
	TAILQ_ENTRY(copy_record) entry;
};

struct copy_record *scsi_copy_record_find(const struct scsi_task *task, uint8_t list_id);
/* A new one for TASK's copy in place of one that has ended; NULL: no memory. */
struct copy_record *scsi_copy_record_new(struct scsi_task *task, uint8_t list_id);
void scsi_copy_record_free(struct scsi_nexus *nexus, struct copy_record *record);

/* The body of VPD page 8F; returns its length. */
unsigned scsi_third_party_page(uint8_t *body);

#endif
