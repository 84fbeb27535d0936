/* SPDX-License-Identifier: MIT
 *
 * GET LBA STATUS, SBC-3 5.4: which blocks have space in the pool.
 */
#include "target/scsi/internal.h"

enum {
	HEADER_BYTES = 8,
	DESCRIPTOR_BYTES = 16,
	DESCRIPTORS_MAX = 64,
	STATUS_MAPPED = 0,
	STATUS_DEALLOCATED = 1,
};

static enum scsi_prepared lba_status_prepare(struct scsi_task *task)
{
	task->lba = get_be64(task->cdb + 2);
	if (task->lba >= scsi_lu_blocks(task->lu))
		return scsi_sense_fail(task, SENSE_LBA_OUT_OF_RANGE);
	return SCSI_READY;
}

/* Describes the run that begins at LBA; returns the LBA behind it. */
static uint64_t put_descriptor(const struct scsi_lu *lu, uint64_t lba, uint8_t *out)
{
	uint64_t run_bytes, blocks;
	bool mapped;

	volume_map_status(lu->volume, lba * lu->block_bytes, &mapped, &run_bytes);
	blocks = MIN_OF(run_bytes / lu->block_bytes, UINT64_C(0xffffffff));
	put_be64(out, lba);
	put_be32(out + 8, (uint32_t)blocks);
	out[12] = mapped ? STATUS_MAPPED : STATUS_DEALLOCATED;
	return lba + blocks;
}

/* As many runs as are within reason; the initiator asks again behind the last it had room for.
 * PARAMETER DATA LENGTH does not depend on that room (SBC-3 5.4.2). */
static void lba_status_execute(struct scsi_task *task)
{
	uint8_t data[HEADER_BYTES + DESCRIPTORS_MAX * DESCRIPTOR_BYTES] = {0};
	uint32_t allocation_bytes = get_be32(task->cdb + 10);
	uint64_t lba = task->lba, capacity = scsi_lu_blocks(task->lu);
	uint32_t bytes = HEADER_BYTES;

	do {
		lba = put_descriptor(task->lu, lba, data + bytes);
		bytes += DESCRIPTOR_BYTES;
	} while (lba < capacity && bytes < sizeof data);
	put_be32(data, bytes - 4);
	scsi_task_reply(task, data, bytes, allocation_bytes);
}

const struct scsi_command scsi_lba_status_commands[] = {
    {.opcode = 0x9e,
     .service_action = 0x12,
     .cdb_bytes = 16,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_READ,
     .name = "GET LBA STATUS",
     .usage = {0x9e, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = lba_status_prepare,
     .execute = lba_status_execute},
    {0},
};
