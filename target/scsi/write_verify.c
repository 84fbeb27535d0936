/* SPDX-License-Identifier: MIT
 *
 * WRITE AND VERIFY (10, 12, 16), SBC-3 5.45: writes to stable storage, reads the medium back and,
 * with BYTCHK 01b, compares it with what was to be written.
 */
#include "target/scsi/internal.h"

static bool compares(const struct scsi_task *task)
{
	return task->cdb[1] & 0x02;
}

static enum scsi_prepared write_verify_prepare(struct scsi_task *task)
{
	if (!scsi_rw_check(task))
		return SCSI_ENDED;
	if (task->cdb[1] & 0x04) /* BYTCHK 10b, 11b */
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return scsi_write_needs_data(task);
}

static void read_back_done(struct io *io)
{
	struct scsi_task *task = io->owner;
	size_t bytes = io->length_bytes;

	scsi_sense_from_io(task, IO_READ, io->status);
	if (task->status == SCSI_GOOD && !task->aborted && compares(task) &&
	    scsi_data_mismatch(task, 0, task->scratch->data, bytes) != bytes)
		scsi_sense_fail(task, SENSE_MISCOMPARE);
	scsi_task_end(task);
}

static void write_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_WRITE, io->status);
	if (task->status != SCSI_GOOD || task->aborted) {
		scsi_task_end(task);
		return;
	}
	io->flags = 0;
	scsi_task_submit(task, IO_READ, io->offset_bytes, io->length_bytes, read_back_done);
}

static void write_verify_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t got = MIN_OF(task->out_got_bytes, task->out_bytes);
	uint32_t bytes = got / block_bytes * block_bytes;

	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	if (!scsi_task_scratch(task, bytes))
		return;
	iov_to_mem(task->out_iov, task->out_iov_count, 0, task->scratch->data, bytes);
	task->io.flags = IO_FUA;
	scsi_task_submit(task, IO_WRITE, task->lba * block_bytes, bytes, write_done);
}

#define WRITE_VERIFY_FLAGS (SCSI_CMD_MEDIUM | SCSI_CMD_WRITES | SCSI_CMD_RANGE)

const struct scsi_command scsi_write_verify_commands[] = {
    {.opcode = 0x2e,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags = WRITE_VERIFY_FLAGS,
     .name = "WRITE AND VERIFY (10)",
     .usage = {0x2e, 0x16, 0xff, 0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0x04},
     .prepare = write_verify_prepare,
     .execute = write_verify_execute},
    {.opcode = 0xae,
     .service_action = -1,
     .cdb_bytes = 12,
     .flags = WRITE_VERIFY_FLAGS,
     .name = "WRITE AND VERIFY (12)",
     .usage = {0xae, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .prepare = write_verify_prepare,
     .execute = write_verify_execute},
    {.opcode = 0x8e,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = WRITE_VERIFY_FLAGS,
     .name = "WRITE AND VERIFY (16)",
     .usage = {0x8e, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = write_verify_prepare,
     .execute = write_verify_execute},
    {0},
};
