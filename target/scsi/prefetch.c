/* SPDX-License-Identifier: MIT
 *
 * PRE-FETCH (10, 16), SBC-3 5.9 and 5.10.  Blocks that are in memory anyway need no fetching and
 * nothing is kept apart for the rest: GOOD says that not all of them are promised to be in a cache
 * (CONDITION MET would).
 */
#include "target/scsi/internal.h"

static enum scsi_prepared prefetch_prepare(struct scsi_task *task)
{
	scsi_rw_decode(task->cdb, &task->lba, &task->blocks);
	return scsi_range_check(task) ? SCSI_READY : SCSI_ENDED;
}

static void prefetch_execute(struct scsi_task *task)
{
	scsi_task_end(task);
}

const struct scsi_command scsi_prefetch_commands[] = {
    {.opcode = 0x34,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_READ,
     .name = "PRE-FETCH (10)",
     .usage = {0x34, 0x02, 0xff, 0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0x04},
     .prepare = prefetch_prepare,
     .execute = prefetch_execute},
    {.opcode = 0x90,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = SCSI_CMD_MEDIUM,
     .access = SCSI_ACCESS_READ,
     .name = "PRE-FETCH (16)",
     .usage = {0x90, 0x02, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = prefetch_prepare,
     .execute = prefetch_execute},
    {0},
};
