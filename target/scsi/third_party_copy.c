/* SPDX-License-Identifier: MIT
 *
 * Records of copies, and the third-party copy VPD page (SPC-4 7.8.17).
 */
#include "target/scsi/third_party_copy.h"

#include <assert.h>
#include <stdlib.h>

struct copy_record *scsi_copy_record_find(const struct scsi_task *task, uint8_t list_id)
{
	struct copy_record *record;

	TAILQ_FOREACH (record, &task->nexus->copy_records, entry) {
		if (record->manager == task->lu && record->list_id == list_id)
			return record;
	}
	return NULL;
}

void scsi_copy_record_free(struct scsi_nexus *nexus, struct copy_record *record)
{
	TAILQ_REMOVE(&nexus->copy_records, record, entry);
	nexus->copy_record_count--;
	free(record);
}

static void drop_oldest(struct scsi_nexus *nexus)
{
	struct copy_record *record;

	TAILQ_FOREACH (record, &nexus->copy_records, entry) {
		if (!record->running) {
			scsi_copy_record_free(nexus, record);
			return;
		}
	}
}

struct copy_record *scsi_copy_record_new(struct scsi_task *task, uint8_t list_id)
{
	struct scsi_nexus *nexus = task->nexus;
	struct copy_record *record = scsi_copy_record_find(task, list_id);

	if (record) { /* the list identifier is used anew */
		TAILQ_REMOVE(&nexus->copy_records, record, entry);
		nexus->copy_record_count--;
		*record = (struct copy_record){0};
	} else {
		if (nexus->copy_record_count >= COPY_RECORDS_MAX)
			drop_oldest(nexus);
		record = calloc(1, sizeof *record);
	}
	if (!record)
		return NULL;
	record->manager = task->lu;
	record->list_id = list_id;
	record->running = true;
	TAILQ_INSERT_TAIL(&nexus->copy_records, record, entry);
	nexus->copy_record_count++;
	return record;
}

void scsi_copy_records_end(struct scsi_nexus *nexus)
{
	struct copy_record *record, *next;

	for (record = TAILQ_FIRST(&nexus->copy_records); record; record = next) {
		next = TAILQ_NEXT(record, entry);
		assert(!record->running); /* its task has ended before the nexus does */
		scsi_copy_record_free(nexus, record);
	}
}

/* ---- VPD page 8F ---- */

/* Opens a descriptor of LENGTH bytes; returns where they go, zeroed. */
static uint8_t *descriptor(uint8_t **at, uint16_t type, uint16_t length)
{
	uint8_t *body = *at + 4;

	put_be16(*at, type);
	put_be16(*at + 2, length);
	memset(body, 0, length);
	*at = body + length;
	return body;
}

unsigned scsi_third_party_page(uint8_t *body)
{
	static const uint8_t commands[] = {
	    8,			       /* bytes that follow */
	    0x83, 1, 0x00,	       /* EXTENDED COPY (LID1) */
	    0x84, 3, 0x00, 0x03, 0x04, /* RECEIVE COPY RESULTS: status, parameters, details */
	};
	uint8_t *at = body, *out;

	out = descriptor(&at, 0x0001, 12); /* supported commands */
	_Static_assert(sizeof commands <= 12, "and padded to a multiple of four");
	memcpy(out, commands, sizeof commands);
	out = descriptor(&at, 0x0004, 28); /* parameter data */
	put_be16(out + 4, COPY_TARGETS_MAX);
	put_be16(out + 6, COPY_SEGMENTS_MAX);
	put_be32(out + 8, COPY_LIST_MAX_BYTES);
	out = descriptor(&at, 0x0008, 4); /* supported descriptors */
	out[0] = 2;
	out[1] = COPY_SEGMENT_TYPE;
	out[2] = COPY_TARGET_TYPE;
	out = descriptor(&at, 0x8001, 32); /* general copy operations */
	put_be32(out, COPIES_MAX);
	put_be32(out + 4, COPIES_MAX);
	put_be32(out + 8, COPY_SEGMENT_MAX_BYTES);
	out[12] = 9; /* segments are multiples of 512 bytes */
	return (unsigned)(at - body);
}
