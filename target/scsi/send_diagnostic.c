/* SPDX-License-Identifier: MIT
 *
 * SEND DIAGNOSTIC, SPC-4 6.42: the default self-test, which reads the first and the last block of
 * the medium.  There are no diagnostic pages, and no self-tests with a log of their own.
 */
#include <errno.h>

#include "target/scsi/internal.h"

enum { BIT_SELF_TEST = 0x04 };

static enum scsi_prepared diagnostic_prepare(struct scsi_task *task)
{
	if (task->cdb[1] >> 5 != 0) /* SELF-TEST CODE */
		return scsi_sense_fail_cdb(task, 1);
	if (get_be16(task->cdb + 3) != 0) /* PARAMETER LIST LENGTH */
		return scsi_sense_fail_cdb(task, 3);
	return SCSI_READY;
}

static void read_block(struct scsi_task *task, uint64_t lba, void (*done)(struct io *io))
{
	uint32_t block_bytes = task->lu->block_bytes;

	scsi_task_submit(task, IO_READ, lba * block_bytes, block_bytes, done);
}

static void last_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	if (io->status == -EBUSY || io->status == -ENOMEM)
		scsi_sense_from_io(task, IO_READ, io->status); /* says nothing about the medium */
	else if (io->status)
		scsi_sense_fail(task, SENSE_SELF_TEST_FAILED);
	scsi_task_end(task);
}

static void first_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	if (io->status || task->aborted)
		last_done(io);
	else
		read_block(task, scsi_lu_blocks(task->lu) - 1, last_done);
}

static void diagnostic_execute(struct scsi_task *task)
{
	if (!(task->cdb[1] & BIT_SELF_TEST))
		scsi_task_end(task);
	else if (scsi_task_scratch(task, task->lu->block_bytes))
		read_block(task, 0, first_done);
}

const struct scsi_command scsi_diagnostic_commands[] = {
    {.opcode = 0x1d,
     .service_action = -1,
     .cdb_bytes = 6,
     .flags = SCSI_CMD_MEDIUM,
     .name = "SEND DIAGNOSTIC",
     .usage = {0x1d, 0xe4, 0x00, 0xff, 0xff, 0x04},
     .prepare = diagnostic_prepare,
     .execute = diagnostic_execute},
    {0},
};
