/* SPDX-License-Identifier: MIT
 *
 * UNMAP, SBC-3 5.28: every descriptor is checked before the first is carried out, then they go to
 * the volume one after the other.
 */
#include "target/scsi/internal.h"

enum { UNMAP_HEADER_BYTES = 8, UNMAP_DESCRIPTOR_BYTES = 16 };

/* A volume may complete within io_submit: the pump loops instead of recursing. */
enum unmap_pump { PUMP_WAITING, PUMP_SUBMITTING, PUMP_COMPLETED };

static enum scsi_prepared unmap_prepare(struct scsi_task *task)
{
	if (task->cdb[1] & 0x01) /* ANCHOR: ANC_SUP is 0 */
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	task->out_bytes = get_be16(task->cdb + 7);
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

static void descriptor_get(const struct scsi_task *task, uint32_t index, uint64_t *ret_lba,
			   uint32_t *ret_blocks)
{
	uint8_t raw[UNMAP_DESCRIPTOR_BYTES];

	iov_to_mem(task->out_iov, task->out_iov_count,
		   UNMAP_HEADER_BYTES + (uint64_t)index * UNMAP_DESCRIPTOR_BYTES, raw, sizeof raw);
	*ret_lba = get_be64(raw);
	*ret_blocks = get_be32(raw + 8);
}

/* Checks the parameter list; SENSE_NONE and the number of descriptors when it may be done. */
static uint32_t list_check(const struct scsi_task *task, uint32_t *ret_count)
{
	const uint64_t capacity = scsi_lu_blocks(task->lu);
	uint64_t limit = SCSI_UNMAP_GRANULE_BYTES / task->lu->block_bytes;
	uint32_t got = MIN_OF(task->out_got_bytes, task->out_bytes);
	uint64_t total = 0;
	uint8_t header[UNMAP_HEADER_BYTES];
	uint32_t bytes, count;

	limit *= SCSI_UNMAP_MAX_GRANULES;
	if (got < sizeof header)
		return SENSE_PARAMETER_LIST_LENGTH;
	iov_to_mem(task->out_iov, task->out_iov_count, 0, header, sizeof header);
	bytes = get_be16(header + 2);
	if (bytes > got - sizeof header)
		return SENSE_PARAMETER_LIST_LENGTH;
	count = bytes / UNMAP_DESCRIPTOR_BYTES;
	if (count > SCSI_UNMAP_MAX_DESCRIPTORS)
		return SENSE_INVALID_FIELD_IN_LIST;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t lba;
		uint32_t blocks;

		descriptor_get(task, i, &lba, &blocks);
		if (lba > capacity || blocks > capacity - lba)
			return SENSE_LBA_OUT_OF_RANGE;
		total += blocks;
	}
	if (total > limit)
		return SENSE_INVALID_FIELD_IN_LIST;
	*ret_count = count;
	return SENSE_NONE;
}

static void unmap_pump(struct scsi_task *task);

static void unmap_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, IO_UNMAP, io->status);
	if (task->pump == PUMP_SUBMITTING)
		task->pump = PUMP_COMPLETED;
	else
		unmap_pump(task);
}

/* task->blocks counts the descriptors, task->step is the next one. */
static void unmap_pump(struct scsi_task *task)
{
	uint64_t block_bytes = task->lu->block_bytes;

	while (task->status == SCSI_GOOD && !task->aborted && task->step < task->blocks) {
		uint64_t lba;
		uint32_t blocks;

		descriptor_get(task, task->step++, &lba, &blocks);
		if (blocks == 0)
			continue;
		task->pump = PUMP_SUBMITTING;
		scsi_task_submit(task, IO_UNMAP, lba * block_bytes, blocks * block_bytes,
				 unmap_done);
		if (task->pump == PUMP_SUBMITTING) {
			task->pump = PUMP_WAITING;
			return;
		}
	}
	scsi_task_end(task);
}

static void unmap_execute(struct scsi_task *task)
{
	uint32_t code, count = 0;

	if (task->out_bytes > 0) {
		code = list_check(task, &count);
		if (code != SENSE_NONE) {
			scsi_task_fail(task, code);
			return;
		}
	}
	task->blocks = count;
	task->step = 0;
	task->io.flags = 0;
	task->io.iov = NULL;
	task->io.iov_count = 0;
	unmap_pump(task);
}

const struct scsi_command scsi_unmap_commands[] = {
    {.opcode = 0x42,
     .service_action = -1,
     .cdb_bytes = 10,
     .flags =
	 SCSI_CMD_THIN | SCSI_CMD_MEDIUM | SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_WHOLE_LU,
     .name = "UNMAP",
     .usage = {0x42, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .prepare = unmap_prepare,
     .execute = unmap_execute},
    {0},
};
