/* SPDX-License-Identifier: MIT
 *
 * READ DEFECT DATA (10, 12), SBC-3 5.17 and 5.18.  The drives' defects are the array's affair: both
 * lists of a logical unit are empty, in whatever address format they are asked for.
 */
#include "target/scsi/internal.h"

/* PLISTV, GLISTV and the format, as REQ_PLIST, REQ_GLIST and the format asked for. */
static uint8_t lists(uint8_t request)
{
	return request & 0x1f;
}

static void defect10_execute(struct scsi_task *task)
{
	uint8_t data[4] = {0};

	data[1] = lists(task->cdb[2]);
	scsi_task_reply(task, data, sizeof data, get_be16(task->cdb + 7));
}

static void defect12_execute(struct scsi_task *task)
{
	uint8_t data[8] = {0};

	data[1] = lists(task->cdb[1]);
	scsi_task_reply(task, data, sizeof data, get_be32(task->cdb + 6));
}

const struct scsi_command scsi_defect_commands[] = {
    {.opcode = 0x37,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_READ,
     .name = "READ DEFECT DATA (10)",
     .usage = {0x37, 0x00, 0x1f, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .execute = defect10_execute},
    {.opcode = 0xb7,
     .service_action = -1,
     .cdb_bytes = 12,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_READ,
     .name = "READ DEFECT DATA (12)",
     .usage = {0xb7, 0x1f, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .execute = defect12_execute},
    {0},
};
