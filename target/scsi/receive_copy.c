/* SPDX-License-Identifier: MIT
 *
 * RECEIVE COPY RESULTS (SPC-4 6.22 to 6.24, LID1): COPY STATUS, OPERATING PARAMETERS, FAILED
 * SEGMENT DETAILS.
 */
#include "target/scsi/third_party_copy.h"

enum { STATUS_BYTES = 12, PARAMETERS_BYTES = 46, DETAILS_BYTES = 60 };

static uint32_t allocation_bytes(const struct scsi_task *task)
{
	return get_be32(task->cdb + 10);
}

enum manager_status { COPY_RUNNING = 0, COPY_COMPLETED = 1, COPY_FAILED = 2 };

/* TRANSFER COUNT in bytes, or in the binary unit that lets it fit 32 bits. */
static void put_count(uint8_t *out, uint64_t bytes)
{
	uint8_t unit = 0;

	while (bytes > UINT32_MAX) {
		bytes /= 1024;
		unit++;
	}
	out[0] = unit;
	put_be32(out + 1, (uint32_t)bytes);
}

/* What is told of a copy that has ended is forgotten then; of a failed one when its details are. */
static void status_execute(struct scsi_task *task)
{
	struct copy_record *record = scsi_copy_record_find(task, task->cdb[2]);
	uint8_t data[STATUS_BYTES] = {0};

	if (!record) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	put_be32(data, STATUS_BYTES - 4);
	data[4] = record->running ? COPY_RUNNING : record->failed ? COPY_FAILED : COPY_COMPLETED;
	put_be16(data + 5, record->segments);
	put_count(data + 7, record->bytes);
	if (!record->running && !record->failed)
		scsi_copy_record_free(task->nexus, record);
	scsi_task_reply(task, data, sizeof data, allocation_bytes(task));
}

static void parameters_execute(struct scsi_task *task)
{
	uint8_t data[PARAMETERS_BYTES] = {0};

	put_be32(data, PARAMETERS_BYTES - 4);
	put_be16(data + 8, COPY_TARGETS_MAX);
	put_be16(data + 10, COPY_SEGMENTS_MAX);
	put_be32(data + 12, COPY_LIST_MAX_BYTES);
	put_be32(data + 16, COPY_SEGMENT_MAX_BYTES);
	put_be16(data + 34, COPIES_MAX);
	data[36] = COPIES_MAX;
	data[37] = 9; /* segments are multiples of 512 bytes */
	data[43] = 2;
	data[44] = COPY_SEGMENT_TYPE;
	data[45] = COPY_TARGET_TYPE;
	scsi_task_reply(task, data, sizeof data, allocation_bytes(task));
}

static void details_execute(struct scsi_task *task)
{
	struct copy_record *record = scsi_copy_record_find(task, task->cdb[2]);
	uint8_t data[DETAILS_BYTES + SCSI_SENSE_MAX_BYTES] = {0};
	unsigned bytes = 4; /* nothing to tell: AVAILABLE DATA is 0 */

	if (record && !record->running && record->failed) {
		data[56] = record->status;
		put_be16(data + 58, record->sense_bytes);
		memcpy(data + DETAILS_BYTES, record->sense, record->sense_bytes);
		bytes = DETAILS_BYTES + record->sense_bytes;
		put_be32(data, bytes - 4);
		scsi_copy_record_free(task->nexus, record);
	}
	scsi_task_reply(task, data, bytes, allocation_bytes(task));
}

#define USAGE(action)                                                                           \
	{                                                                                       \
		0x84, action, 0xff, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, \
		    0xff, 0x00, 0x04                                                            \
	}

const struct scsi_command scsi_receive_copy_commands[] = {
    {.opcode = 0x84,
     .service_action = 0x00,
     .cdb_bytes = 16,
     .access = SCSI_ACCESS_READ,
     .name = "RECEIVE COPY RESULTS, COPY STATUS",
     .usage = USAGE(0x00),
     .execute = status_execute},
    {.opcode = 0x84,
     .service_action = 0x03,
     .cdb_bytes = 16,
     .access = SCSI_ACCESS_READ,
     .name = "RECEIVE COPY RESULTS, OPERATING PARAMETERS",
     .usage = USAGE(0x03),
     .execute = parameters_execute},
    {.opcode = 0x84,
     .service_action = 0x04,
     .cdb_bytes = 16,
     .access = SCSI_ACCESS_READ,
     .name = "RECEIVE COPY RESULTS, FAILED SEGMENT DETAILS",
     .usage = USAGE(0x04),
     .execute = details_execute},
    {0},
};
