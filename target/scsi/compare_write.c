/* SPDX-License-Identifier: MIT
 *
 * COMPARE AND WRITE, SBC-3 5.2: data-out is two instances of the range; the second is written if
 * the medium equals the first.  Cluster file systems build their locks on it, so nothing may come
 * between the read and the write: range.c keeps everybody else away.
 */
#include "target/scsi/internal.h"

static enum scsi_prepared compare_write_prepare(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;

	task->lba = get_be64(cdb + 2);
	task->blocks = cdb[13];
	if ((cdb[1] & 0xe0) || task->blocks > SCSI_COMPARE_WRITE_MAX_BLOCKS)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (!scsi_range_check(task))
		return SCSI_ENDED;
	task->out_bytes = 2 * task->blocks * task->lu->block_bytes;
	task->transfer_bytes = task->out_bytes;
	/* Half a comparison must not pass for one: the initiator means what the CDB says. */
	if (task->edtl_bytes != task->out_bytes)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* INFORMATION tells where the first difference is. */
static void miscompare(struct scsi_task *task, size_t offset_bytes)
{
	struct sense_extra extra = {.has_information = true, .information = offset_bytes};

	scsi_sense_fail_extra(task, SENSE_MISCOMPARE, &extra);
	scsi_task_end(task);
}

static void compare_done(struct io *io)
{
	struct scsi_task *task = io->owner;
	size_t bytes = io->length_bytes, same;

	scsi_sense_from_io(task, IO_READ, io->status);
	if (task->status != SCSI_GOOD || task->aborted) {
		scsi_task_end(task);
		return;
	}
	same = scsi_data_mismatch(task, 0, task->scratch->data, bytes);
	if (same != bytes) {
		miscompare(task, same);
		return;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, bytes, task->scratch->data, bytes);
	io->flags = task->cdb[1] & 0x08 ? IO_FUA : 0;
	scsi_task_submit(task, IO_WRITE, io->offset_bytes, bytes, scsi_task_io_done);
}

static void compare_write_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t bytes = task->blocks * block_bytes;

	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	if (task->out_got_bytes < task->out_bytes) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	if (!scsi_task_scratch(task, bytes))
		return;
	task->io.flags = 0;
	scsi_task_submit(task, IO_READ, task->lba * block_bytes, bytes, compare_done);
}

const struct scsi_command scsi_compare_write_commands[] = {
    {.opcode = 0x89,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = SCSI_CMD_MEDIUM | SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_ATOMIC,
     .name = "COMPARE AND WRITE",
     .usage = {0x89, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0xff,
	       0x00, 0x04},
     .prepare = compare_write_prepare,
     .execute = compare_write_execute},
    {0},
};
