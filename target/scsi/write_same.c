/* SPDX-License-Identifier: MIT
 *
 * WRITE SAME (10, 16), SBC-3 5.46 and 5.47: one block of data-out, or zeros with NDOB, to every
 * block of the range.  With UNMAP the range is deallocated and reads as zeros, whatever the block
 * holds: initiators send zeros, and those that do not (iscsi-test-cu) mean to deallocate all the
 * same.
 */
#include "target/scsi/internal.h"

enum {
	CHUNK_BYTES = MIB, /* of one write */
	BIT_NDOB = 0x01,   /* WRITE SAME (16) only */
	BIT_LBDATA = 0x02, /* obsolete */
	BIT_PBDATA = 0x04, /* obsolete */
	BIT_UNMAP = 0x08,
	BIT_ANCHOR = 0x10,
};

/* A volume may complete within io_submit: the pump loops instead of recursing. */
enum write_same_pump { PUMP_WAITING, PUMP_SUBMITTING, PUMP_COMPLETED };

static bool is_10(const struct scsi_task *task)
{
	return task->cdb[0] == 0x41;
}

static bool unmaps(const struct scsi_task *task)
{
	return task->cdb[1] & BIT_UNMAP;
}

static bool without_data(const struct scsi_task *task)
{
	return !is_10(task) && (task->cdb[1] & BIT_NDOB);
}

static bool bits_check(const struct scsi_task *task)
{
	unsigned bits = task->cdb[1];

	/* WRPROTECT: no protection information.  ANCHOR: ANC_SUP is 0. */
	if (bits & (0xe0 | BIT_LBDATA | BIT_PBDATA | BIT_ANCHOR))
		return false;
	if (is_10(task) && (bits & BIT_NDOB))
		return false;
	return !(bits & BIT_UNMAP) || volume_is_thin(task->lu->volume);
}

/* A length of 0 means all blocks to the end (WSNZ 0); the limit counts in any case. */
static enum scsi_prepared write_same_prepare(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint64_t blocks, limit = SCSI_WRITE_SAME_MAX_BYTES / block_bytes;

	scsi_rw_decode(task->cdb, &task->lba, &task->blocks);
	if (!bits_check(task) || task->blocks > limit)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (!scsi_range_check(task))
		return SCSI_ENDED;
	blocks = task->blocks ? task->blocks : scsi_lu_blocks(task->lu) - task->lba;
	if (blocks > limit)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	task->blocks = (uint32_t)blocks;
	if (without_data(task))
		return SCSI_READY;
	task->out_bytes = block_bytes;
	task->transfer_bytes = block_bytes;
	if (task->edtl_bytes != 0 && task->edtl_bytes != block_bytes)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	return SCSI_NEEDS_DATA;
}

static void write_same_pump(struct scsi_task *task);

static void chunk_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_WRITE, io->status);
	if (task->pump == PUMP_SUBMITTING)
		task->pump = PUMP_COMPLETED;
	else
		write_same_pump(task);
}

/* task->step counts the blocks that have been submitted. */
static void write_same_pump(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;

	while (task->status == SCSI_GOOD && !task->aborted && task->step < task->blocks) {
		uint64_t lba = task->lba + task->step;
		uint32_t blocks = MIN_OF(task->blocks - task->step, CHUNK_BYTES / block_bytes);

		task->step += blocks;
		task->in_iov.iov_len = (size_t)blocks * block_bytes;
		task->io.flags = 0;
		task->pump = PUMP_SUBMITTING;
		scsi_task_submit(task, IO_WRITE, lba * block_bytes, task->in_iov.iov_len,
				 chunk_done);
		if (task->pump == PUMP_SUBMITTING) {
			task->pump = PUMP_WAITING;
			return;
		}
	}
	scsi_task_end(task);
}

static void deallocate(struct scsi_task *task)
{
	uint64_t block_bytes = task->lu->block_bytes;

	task->io.flags = 0;
	task->io.iov = NULL;
	task->io.iov_count = 0;
	scsi_task_submit(task, IO_UNMAP, task->lba * block_bytes, task->blocks * block_bytes,
			 scsi_task_io_done);
}

static void write_same_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t bytes = (uint32_t)MIN_OF((uint64_t)task->blocks * block_bytes, CHUNK_BYTES);

	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	if (unmaps(task)) {
		deallocate(task);
		return;
	}
	if (!without_data(task) && task->out_got_bytes < block_bytes) {
		scsi_task_end(task); /* announced none: there is nothing to write */
		return;
	}
	if (!scsi_task_scratch(task, bytes))
		return;
	if (without_data(task))
		memset(task->scratch->data, 0, block_bytes);
	else
		iov_to_mem(task->out_iov, task->out_iov_count, 0, task->scratch->data, block_bytes);
	for (uint32_t done = block_bytes; done < bytes; done += block_bytes)
		memcpy(task->scratch->data + done, task->scratch->data, block_bytes);
	write_same_pump(task);
}

#define WRITE_SAME_FLAGS (SCSI_CMD_MEDIUM | SCSI_CMD_WRITES | SCSI_CMD_RANGE)

const struct scsi_command scsi_write_same_commands[] = {
    {.opcode = 0x41,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags = WRITE_SAME_FLAGS,
     .name = "WRITE SAME (10)",
     .usage = {0x41, 0x08, 0xff, 0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0x04},
     .prepare = write_same_prepare,
     .execute = write_same_execute},
    {.opcode = 0x93,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = WRITE_SAME_FLAGS,
     .name = "WRITE SAME (16)",
     .usage = {0x93, 0x09, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = write_same_prepare,
     .execute = write_same_execute},
    {0},
};
