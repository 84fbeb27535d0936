/* SPDX-License-Identifier: MIT
 *
 * VERIFY (10, 12, 16), SBC-3 5.29: reads the medium; BYTCHK 01b compares it with data-out, 11b each
 * of its blocks with the one block of data-out.
 */
#include "target/scsi/internal.h"

enum byte_check { CHECK_MEDIUM, CHECK_ALL, CHECK_RESERVED, CHECK_ONE };

static enum byte_check byte_check(const struct scsi_task *task)
{
	return task->cdb[1] >> 1 & 0x03;
}

size_t scsi_data_mismatch(const struct scsi_task *task, size_t skip, const uint8_t *flat,
			  size_t bytes)
{
	size_t done = 0;

	for (unsigned i = 0; i < task->out_iov_count && done < bytes; i++) {
		const uint8_t *from = task->out_iov[i].iov_base;
		size_t have = task->out_iov[i].iov_len, over = MIN_OF(skip, have), part;

		skip -= over;
		part = MIN_OF(bytes - done, have - over);
		if (part == 0 || memcmp(flat + done, from + over, part) == 0) {
			done += part;
			continue;
		}
		while (flat[done] == from[over]) {
			done++;
			over++;
		}
		return done;
	}
	return bytes;
}

static enum scsi_prepared verify_prepare(struct scsi_task *task)
{
	if (!scsi_rw_check(task))
		return SCSI_ENDED;
	switch (byte_check(task)) {
	case CHECK_ALL:
		return scsi_write_needs_data(task);
	case CHECK_ONE:
		if (task->blocks == 0)
			return SCSI_READY;
		task->out_bytes = task->lu->block_bytes;
		task->transfer_bytes = task->out_bytes;
		return SCSI_NEEDS_DATA;
	case CHECK_RESERVED:
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	default:
		return SCSI_READY;
	}
}

static bool medium_differs(const struct scsi_task *task, size_t bytes)
{
	const uint8_t *medium = task->scratch->data;
	size_t block = byte_check(task) == CHECK_ONE ? task->lu->block_bytes : bytes;

	if (byte_check(task) == CHECK_MEDIUM)
		return false;
	for (size_t at = 0; at < bytes; at += block) {
		if (scsi_data_mismatch(task, 0, medium + at, block) != block)
			return true;
	}
	return false;
}

static void verify_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_READ, io->status);
	if (task->status == SCSI_GOOD && !task->aborted && medium_differs(task, io->length_bytes))
		scsi_sense_fail(task, SENSE_MISCOMPARE);
	scsi_task_end(task);
}

static void verify_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t bytes = task->blocks * block_bytes;

	/* What did not come cannot be compared. */
	if (byte_check(task) == CHECK_ALL)
		bytes = MIN_OF(bytes, task->out_got_bytes) / block_bytes * block_bytes;
	else if (byte_check(task) == CHECK_ONE && task->out_got_bytes < block_bytes)
		bytes = 0;
	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	if (!scsi_task_scratch(task, bytes))
		return;
	task->io.flags = 0;
	scsi_task_submit(task, IO_READ, task->lba * block_bytes, bytes, verify_done);
}

#define VERIFY_FLAGS (SCSI_CMD_MEDIUM | SCSI_CMD_RANGE)

const struct scsi_command scsi_verify_commands[] = {
    {.opcode = 0x2f,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags = VERIFY_FLAGS,
     .access = SCSI_ACCESS_READ,
     .name = "VERIFY (10)",
     .usage = {0x2f, 0x16, 0xff, 0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0x04},
     .prepare = verify_prepare,
     .execute = verify_execute},
    {.opcode = 0xaf,
     .service_action = -1,
     .cdb_bytes = 12,
     .flags = VERIFY_FLAGS,
     .access = SCSI_ACCESS_READ,
     .name = "VERIFY (12)",
     .usage = {0xaf, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .prepare = verify_prepare,
     .execute = verify_execute},
    {.opcode = 0x8f,
     .service_action = -1,
     .cdb_bytes = 16,
     .flags = VERIFY_FLAGS,
     .access = SCSI_ACCESS_READ,
     .name = "VERIFY (16)",
     .usage = {0x8f, 0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = verify_prepare,
     .execute = verify_execute},
    {0},
};
