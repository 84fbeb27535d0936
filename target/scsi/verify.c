/* SPDX-License-Identifier: MIT
 *
 * VERIFY (10, 12, 16), SBC-3 5.29: reads the medium; with BYTCHK 01b compares it with data-out.
 */
#include "target/scsi/internal.h"

static unsigned byte_check(const struct scsi_task *task)
{
	return task->cdb[1] >> 1 & 0x03;
}

static enum scsi_prepared verify_prepare(struct scsi_task *task)
{
	if (!scsi_rw_check(task))
		return SCSI_ENDED;
	if (byte_check(task) > 1)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (byte_check(task) == 0)
		return SCSI_READY;
	task->out_bytes = task->blocks * task->lu->block_bytes;
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* Does the data-out that came equal FLAT? */
static bool data_equal(const struct scsi_task *task, const uint8_t *flat, size_t bytes)
{
	for (unsigned i = 0; i < task->out_iov_count && bytes > 0; i++) {
		size_t part = MIN_OF(bytes, task->out_iov[i].iov_len);

		if (memcmp(flat, task->out_iov[i].iov_base, part) != 0)
			return false;
		flat += part;
		bytes -= part;
	}
	return true;
}

static void verify_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_READ, io->status);
	if (task->status == SCSI_GOOD && !task->aborted && byte_check(task) == 1 &&
	    !data_equal(task, task->scratch->data, io->length_bytes))
		scsi_sense_fail(task, SENSE_MISCOMPARE);
	scsi_task_end(task);
}

static void verify_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t bytes = task->blocks * block_bytes;

	if (byte_check(task) == 1)
		bytes = MIN_OF(bytes, task->out_got_bytes) / block_bytes * block_bytes;
	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	task->scratch = buf_new(task->lu->device->pool, bytes);
	if (!task->scratch) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	task->in_iov.iov_base = task->scratch->data;
	task->in_iov.iov_len = bytes;
	task->io.flags = 0;
	task->io.iov = &task->in_iov;
	task->io.iov_count = 1;
	scsi_task_submit(task, IO_READ, task->lba * block_bytes, bytes, verify_done);
}

const struct scsi_command scsi_verify_commands[] = {
    {.opcode = 0x2f,
     .service_action = -1,
     .cdb_bytes = 10,
     .name = "VERIFY (10)",
     .usage = {0x2f, 0x12, 0xff, 0xff, 0xff, 0xff, 0x1f, 0xff, 0xff, 0x04},
     .prepare = verify_prepare,
     .execute = verify_execute},
    {.opcode = 0xaf,
     .service_action = -1,
     .cdb_bytes = 12,
     .name = "VERIFY (12)",
     .usage = {0xaf, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x04},
     .prepare = verify_prepare,
     .execute = verify_execute},
    {.opcode = 0x8f,
     .service_action = -1,
     .cdb_bytes = 16,
     .name = "VERIFY (16)",
     .usage = {0x8f, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x1f, 0x04},
     .prepare = verify_prepare,
     .execute = verify_execute},
    {0},
};
