/* SPDX-License-Identifier: MIT
 *
 * ORWRITE (16), SBC-3 5.7: sets in the medium the bits that are set in data-out, without anybody
 * in between (range.c).
 */
#include "target/scsi/internal.h"

static enum scsi_prepared orwrite_prepare(struct scsi_task *task)
{
	return scsi_rw_check(task) ? scsi_write_needs_data(task) : SCSI_ENDED;
}

static void or_data(const struct scsi_task *task, uint8_t *medium, size_t bytes)
{
	for (unsigned i = 0; i < task->out_iov_count && bytes > 0; i++) {
		const uint8_t *from = task->out_iov[i].iov_base;
		size_t part = MIN_OF(bytes, task->out_iov[i].iov_len);

		for (size_t k = 0; k < part; k++)
			medium[k] |= from[k];
		medium += part;
		bytes -= part;
	}
}

static void read_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_READ, io->status);
	if (task->status != SCSI_GOOD || task->aborted) {
		scsi_task_end(task);
		return;
	}
	or_data(task, task->scratch->data, io->length_bytes);
	io->flags = task->cdb[1] & 0x08 ? IO_FUA : 0;
	scsi_task_submit(task, IO_WRITE, io->offset_bytes, io->length_bytes, scsi_task_io_done);
}

static void orwrite_execute(struct scsi_task *task)
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
	task->io.flags = 0;
	scsi_task_submit(task, IO_READ, task->lba * block_bytes, bytes, read_done);
}

const struct scsi_command scsi_orwrite_commands[] = {
    {.opcode = 0x8b,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = SCSI_CMD_MEDIUM | SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_ATOMIC,
     .name = "ORWRITE (16)",
     .usage = {0x8b, 0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = orwrite_prepare,
     .execute = orwrite_execute},
    {0},
};
