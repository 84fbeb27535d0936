/* SPDX-License-Identifier: MIT
 *
 * WRITE ATOMIC (16), SBC-4 5.48: a write that every other command sees as a whole or not at all.
 *
 * It is of whole physical blocks and at most as long as VPD page b0 says; atomic boundaries, which
 * cut a longer write into atomic pieces, are not offered (MAXIMUM ATOMIC BOUNDARY SIZE 0).
 */
#include "target/scsi/internal.h"

static enum scsi_prepared write_atomic_prepare(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;
	uint32_t limit = (uint32_t)(SCSI_ATOMIC_MAX_BYTES / task->lu->block_bytes);
	uint32_t physical = scsi_lu_physical_blocks(task->lu);

	task->lba = get_be64(cdb + 2);
	task->blocks = get_be16(cdb + 12);
	if ((cdb[1] & 0xe0) || get_be16(cdb + 10) != 0)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (!scsi_range_check(task))
		return SCSI_ENDED;
	if (task->blocks > limit || task->lba % physical != 0 || task->blocks % physical != 0)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return scsi_write_needs_data(task);
}

const struct scsi_command scsi_write_atomic_commands[] = {
    {.opcode = 0x9c,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = SCSI_CMD_MEDIUM | SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_ATOMIC,
     .name = "WRITE ATOMIC (16)",
     .usage = {0x9c, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = write_atomic_prepare,
     .execute = scsi_write_execute},
    {0},
};
