/* SPDX-License-Identifier: MIT
 *
 * READ CAPACITY (10) and (16), SBC-3 5.15 and 5.16.
 */
#include "target/scsi/internal.h"

static enum scsi_prepared capacity10_prepare(struct scsi_task *task)
{
	if (!(task->cdb[8] & 0x01) && get_be32(task->cdb + 2) != 0) /* LBA without PMI */
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return SCSI_READY;
}

static void capacity10_execute(struct scsi_task *task)
{
	uint64_t last = scsi_lu_blocks(task->lu) - 1;
	uint8_t data[8];

	/* All ones send the initiator to READ CAPACITY (16). */
	put_be32(data, (uint32_t)MIN_OF(last, UINT64_C(0xffffffff)));
	put_be32(data + 4, task->lu->block_bytes);
	scsi_task_reply(task, data, sizeof data, sizeof data);
}

/* log2 of logical blocks per physical block: 3 for 512e, 0 for plain 512 and 4 KiB. */
static uint8_t physical_exponent(const struct scsi_lu *lu)
{
	uint8_t exponent = 0;

	while (1U << exponent < scsi_lu_physical_blocks(lu))
		exponent++;
	return exponent;
}

static void capacity16_execute(struct scsi_task *task)
{
	uint8_t data[32] = {0};

	put_be64(data, scsi_lu_blocks(task->lu) - 1);
	put_be32(data + 8, task->lu->block_bytes);
	data[13] = physical_exponent(task->lu);
	if (volume_is_thin(task->lu->volume))
		data[14] = 0x80 | 0x40; /* LBPME, LBPRZ */
	scsi_task_reply(task, data, sizeof data, get_be32(task->cdb + 10));
}

const struct scsi_command scsi_capacity_commands[] = {
    {.opcode = 0x25,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_FREE,
     .name = "READ CAPACITY (10)",
     .usage = {0x25, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x01, 0x04},
     .prepare = capacity10_prepare,
     .execute = capacity10_execute},
    {.opcode = 0x9e,
     .service_action = 0x10,
     .cdb_bytes = 16,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_FREE,
     .name = "READ CAPACITY (16)",
     .usage = {0x9e, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .execute = capacity16_execute},
    {0},
};
