/* SPDX-License-Identifier: MIT
 *
 * READ and WRITE (6, 10, 12, 16), SYNCHRONIZE CACHE (10, 16): the data path.
 *
 * One io embedded in the task goes straight to the volume.  READ fills a pool buffer that the
 * transport sends, or, when it is long, borrows the memory of the stores for it; WRITE hands on the
 * transport's iovec.
 */
#include "target/scsi/internal.h"

void scsi_rw_decode(const uint8_t *cdb, uint64_t *ret_lba, uint32_t *ret_blocks)
{
	switch (cdb[0] >> 5) { /* the group code tells the CDB's layout, SAM-5 5.2.1 */
	case 0:
		*ret_lba = get_be24(cdb + 1) & 0x1fffff;
		*ret_blocks = cdb[4] ? cdb[4] : 256;
		break;
	case 1:
	case 2:
		*ret_lba = get_be32(cdb + 2);
		*ret_blocks = get_be16(cdb + 7);
		break;
	case 5:
		*ret_lba = get_be32(cdb + 2);
		*ret_blocks = get_be32(cdb + 6);
		break;
	default:
		*ret_lba = get_be64(cdb + 2);
		*ret_blocks = get_be32(cdb + 10);
		break;
	}
}

/* No sum that could wrap: LBAs go up to 2^64 - 1. */
bool scsi_range_check(struct scsi_task *task)
{
	uint64_t capacity = scsi_lu_blocks(task->lu);

	if (task->lba <= capacity && task->blocks <= capacity - task->lba)
		return true;
	scsi_sense_fail(task, SENSE_LBA_OUT_OF_RANGE);
	return false;
}

bool scsi_rw_check(struct scsi_task *task)
{
	const uint8_t *cdb = task->cdb;

	scsi_rw_decode(cdb, &task->lba, &task->blocks);
	/* RDPROTECT, WRPROTECT, VRPROTECT: there is no protection information. */
	if (cdb[0] >> 5 != 0 && (cdb[1] & 0xe0)) {
		scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return false;
	}
	if (task->blocks > SCSI_MAX_TRANSFER_BYTES / task->lu->block_bytes) {
		scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return false;
	}
	return scsi_range_check(task);
}

static enum scsi_prepared read_prepare(struct scsi_task *task)
{
	return scsi_rw_check(task) ? SCSI_READY : SCSI_ENDED;
}

/* From here on borrowing costs less than copying. */
enum { LEND_MIN_BYTES = 32 * 1024 };

static void lent_released(struct buf *buf)
{
	io_lent_give_back((struct io_lent *)buf->data);
}

/* Does the volume lend what is to be read?  Then the task has it. */
static bool read_lent(struct scsi_task *task, uint64_t offset_bytes, uint32_t bytes)
{
	struct buf *buf = buf_new(task->lu->device->pool, sizeof(struct io_lent));
	struct io_lent *lent;

	if (!buf)
		return false;
	lent = (struct io_lent *)buf->data;
	lent->count = 0;
	buf->released = lent_released;
	if (io_lend(volume_layer(task->lu->volume), offset_bytes, bytes, lent)) {
		buf_unref(buf);
		return false;
	}
	task->in_buf = buf;
	task->in_lent = true;
	task->in_bytes = task->transfer_bytes = bytes;
	return true;
}

static void read_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t bytes = task->blocks * block_bytes;

	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	if (bytes >= LEND_MIN_BYTES && read_lent(task, task->lba * block_bytes, bytes)) {
		scsi_task_end(task);
		return;
	}
	task->in_buf = buf_new(task->lu->device->pool, bytes);
	if (!task->in_buf) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	task->in_bytes = bytes;
	task->transfer_bytes = bytes;
	task->in_iov.iov_base = task->in_buf->data;
	task->in_iov.iov_len = bytes;
	task->io.flags = 0; /* DPO and FUA: a read always sees what is stable or newer */
	task->io.iov = &task->in_iov;
	task->io.iov_count = 1;
	scsi_task_submit(task, IO_READ, task->lba * block_bytes, bytes, scsi_task_io_done);
}

enum scsi_prepared scsi_write_needs_data(struct scsi_task *task)
{
	task->out_bytes = task->blocks * task->lu->block_bytes;
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

static enum scsi_prepared write_prepare(struct scsi_task *task)
{
	return scsi_rw_check(task) ? scsi_write_needs_data(task) : SCSI_ENDED;
}

void scsi_write_execute(struct scsi_task *task)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t got = MIN_OF(task->out_got_bytes, task->out_bytes);
	uint32_t bytes = got / block_bytes * block_bytes;

	if (bytes == 0) {
		scsi_task_end(task);
		return;
	}
	if (bytes == task->out_got_bytes) {
		task->io.iov = task->out_iov;
		task->io.iov_count = task->out_iov_count;
	} else {
		/* The initiator announced less than the CDB asks for and it ends within a block:
		 * copies the whole blocks, since an io's iovec covers exactly its length. */
		if (!scsi_task_scratch(task, bytes))
			return;
		iov_to_mem(task->out_iov, task->out_iov_count, 0, task->scratch->data, bytes);
	}
	/* WRITE (6) has LBA bits where the longer CDBs have FUA. */
	task->io.flags = task->cdb[0] >> 5 != 0 && (task->cdb[1] & 0x08) ? IO_FUA : 0;
	scsi_task_submit(task, IO_WRITE, task->lba * block_bytes, bytes, scsi_task_io_done);
}

static enum scsi_prepared sync_prepare(struct scsi_task *task)
{
	scsi_rw_decode(task->cdb, &task->lba, &task->blocks);
	return scsi_range_check(task) ? SCSI_READY : SCSI_ENDED;
}

/* IMMED only permits an early status; stable storage first is what it is asked for. */
static void sync_execute(struct scsi_task *task)
{
	uint64_t blocks = task->blocks ? task->blocks : scsi_lu_blocks(task->lu) - task->lba;

	task->io.flags = 0;
	task->io.iov = NULL;
	task->io.iov_count = 0;
	scsi_task_submit(task, IO_FLUSH, task->lba * task->lu->block_bytes,
			 blocks * task->lu->block_bytes, scsi_task_io_done);
}

#define USAGE6(op)                               \
	{                                        \
		op, 0x1f, 0xff, 0xff, 0xff, 0x04 \
	}
#define USAGE10(op, bits)                                                \
	{                                                                \
		op, bits, 0xff, 0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0x04 \
	}
#define USAGE12(op, bits)                                                            \
	{                                                                            \
		op, bits, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04 \
	}
#define USAGE16(op, bits)                                                                         \
	{                                                                                         \
		op, bits, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, \
		    0x00, 0x04                                                                    \
	}
#define ROW(op, bytes, title, bits, what, prep, exec)                                              \
	{                                                                                          \
		.opcode = (op), .service_action = -1, .cdb_bytes = (bytes), .flags = (what),       \
		.access = (what) == READS ? SCSI_ACCESS_READ : SCSI_ACCESS_WRITE, .name = (title), \
		.usage = bits, .prepare = (prep), .execute = (exec)                                \
	}
#define READS  (SCSI_CMD_MEDIUM | SCSI_CMD_RANGE)
#define WRITES (READS | SCSI_CMD_WRITES)
#define SYNCS  SCSI_CMD_MEDIUM

const struct scsi_command scsi_readwrite_commands[] = {
    ROW(0x08, 6, "READ (6)", USAGE6(0x08), READS, read_prepare, read_execute),
    ROW(0x28, 10, "READ (10)", USAGE10(0x28, 0x18), READS, read_prepare, read_execute),
    ROW(0xa8, 12, "READ (12)", USAGE12(0xa8, 0x18), READS, read_prepare, read_execute),
    ROW(0x88, 16, "READ (16)", USAGE16(0x88, 0x18), READS, read_prepare, read_execute),
    ROW(0x0a, 6, "WRITE (6)", USAGE6(0x0a), WRITES, write_prepare, scsi_write_execute),
    ROW(0x2a, 10, "WRITE (10)", USAGE10(0x2a, 0x18), WRITES, write_prepare, scsi_write_execute),
    ROW(0xaa, 12, "WRITE (12)", USAGE12(0xaa, 0x18), WRITES, write_prepare, scsi_write_execute),
    ROW(0x8a, 16, "WRITE (16)", USAGE16(0x8a, 0x18), WRITES, write_prepare, scsi_write_execute),
    ROW(0x35, 10, "SYNCHRONIZE CACHE (10)", USAGE10(0x35, 0x02), SYNCS, sync_prepare, sync_execute),
    ROW(0x91, 16, "SYNCHRONIZE CACHE (16)", USAGE16(0x91, 0x02), SYNCS, sync_prepare, sync_execute),
    {0},
};
