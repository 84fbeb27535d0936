/* SPDX-License-Identifier: MIT
 *
 * SANITIZE, SBC-3 5.22 and 4.11: overwrite, block erase, cryptographic erase, exit failure mode.
 *
 * The operation belongs to the logical unit.  It goes on whatever becomes of the command that
 * started it (abort, reset, logout); a command without IMMED merely waits for its end.  Meanwhile
 * commands on the logical unit get NOT READY, SANITIZE IN PROGRESS with the progress made
 * (medium.c).
 *
 * Overwriting goes at the pace of one disk, piece by piece on a timer, so that the array has time
 * for its other volumes.  Erasing deallocates, which is quick: it only lets the loop turn between
 * pieces.  The data of a cryptographic erase is as gone as that of a block erase.
 */
#include <assert.h>
#include <stdlib.h>

#include "target/scsi/internal.h"

enum sanitize_action {
	SANITIZE_OVERWRITE = 0x01,
	SANITIZE_BLOCK_ERASE = 0x02,
	SANITIZE_CRYPTO_ERASE = 0x03,
	SANITIZE_EXIT_FAILURE_MODE = 0x1f,
};

enum { LIST_HEADER_BYTES = 4, BIT_IMMED = 0x80, BIT_ZNR = 0x40, BIT_AUSE = 0x20 };

#define OVERWRITE_CHUNK_BYTES	   MIB
#define OVERWRITE_BYTES_PER_SECOND (32 * MIB)
#define ERASE_CHUNK_BYTES	   (64 * POOL_PAGE_BYTES)

struct sanitize {
	struct scsi_lu *lu;
	struct scsi_task *waiting; /* for the end; NULL: nobody */
	enum sanitize_action action;
	bool unrestricted; /* AUSE: EXIT FAILURE MODE may follow a failure */
	bool invert;	   /* the pattern after each pass */
	bool io_running, closing;
	unsigned pass, passes;
	uint64_t at_bytes, size_bytes; /* of the pass */
	uint64_t due_ns;
	struct buf *pattern; /* OVERWRITE_CHUNK_BYTES of it */
	struct iovec iov;
	struct io io;
	struct loop_timer timer;
};

void scsi_sanitize_progress(const struct scsi_lu *lu, struct sense_extra *ret_extra)
{
	const struct sanitize *sanitize = lu->sanitize;
	uint64_t unit = MAX_OF(sanitize->size_bytes * sanitize->passes >> 16, UINT64_C(1));
	uint64_t done = sanitize->size_bytes * sanitize->pass + sanitize->at_bytes;

	ret_extra->has_key_specific = true;
	ret_extra->key_specific[0] = 0;
	put_be16(ret_extra->key_specific + 1, (uint16_t)MIN_OF(done / unit, UINT64_C(0xffff)));
}

/* ---- the operation ---- */

static void sanitize_end(struct sanitize *sanitize, int error)
{
	struct scsi_lu *lu = sanitize->lu;
	struct scsi_task *task = sanitize->waiting;

	lu->conditions &= ~(unsigned)LU_SANITIZING;
	if (error)
		lu->conditions |= LU_SANITIZE_FAILED;
	sanitize->pattern = buf_unref(sanitize->pattern);
	sanitize->waiting = NULL;
	if (!task)
		return;
	if (error)
		scsi_sense_fail(task, SENSE_SANITIZE_FAILED);
	scsi_task_end(task);
}

static void flush_done(struct io *io)
{
	struct sanitize *sanitize = io->owner;

	sanitize->io_running = false;
	if (!sanitize->closing)
		sanitize_end(sanitize, io->status);
}

static void send(struct sanitize *sanitize, enum io_op op, uint64_t bytes,
		 void (*done)(struct io *io))
{
	bool writes = op == IO_WRITE;

	sanitize->iov.iov_len = bytes;
	sanitize->io = (struct io){
	    .op = op,
	    .offset_bytes = op == IO_FLUSH ? 0 : sanitize->at_bytes,
	    .length_bytes = op == IO_FLUSH ? sanitize->size_bytes : bytes,
	    .iov = writes ? &sanitize->iov : NULL,
	    .iov_count = writes ? 1 : 0,
	    .done = done,
	    .owner = sanitize,
	};
	sanitize->io_running = true;
	io_submit(volume_layer(sanitize->lu->volume), &sanitize->io);
}

static void invert_pattern(struct sanitize *sanitize)
{
	for (size_t i = 0; i < OVERWRITE_CHUNK_BYTES; i++)
		sanitize->pattern->data[i] ^= 0xff;
}

/* The next piece is due when one disk would have got there. */
static void piece_done(struct io *io)
{
	struct sanitize *sanitize = io->owner;
	struct loop *loop = sanitize->lu->device->loop;

	sanitize->io_running = false;
	if (sanitize->closing)
		return;
	if (io->status) {
		sanitize_end(sanitize, io->status);
		return;
	}
	sanitize->at_bytes += io->length_bytes;
	if (sanitize->at_bytes == sanitize->size_bytes) {
		sanitize->at_bytes = 0;
		sanitize->pass++;
		if (sanitize->invert && sanitize->pass < sanitize->passes)
			invert_pattern(sanitize);
	}
	if (sanitize->action == SANITIZE_OVERWRITE)
		sanitize->due_ns +=
		    io->length_bytes * UINT64_C(1000000000) / OVERWRITE_BYTES_PER_SECOND;
	loop_timer_set(loop, &sanitize->timer, sanitize->due_ns);
}

static void next_piece(void *arg)
{
	struct sanitize *sanitize = arg;
	bool overwrites = sanitize->action == SANITIZE_OVERWRITE;
	uint64_t chunk = overwrites ? OVERWRITE_CHUNK_BYTES : ERASE_CHUNK_BYTES;
	uint64_t rest = sanitize->size_bytes - sanitize->at_bytes;

	if (sanitize->pass == sanitize->passes)
		send(sanitize, IO_FLUSH, 0, flush_done);
	else
		send(sanitize, overwrites ? IO_WRITE : IO_UNMAP, MIN_OF(chunk, rest), piece_done);
}

void scsi_sanitize_free(struct scsi_lu *lu)
{
	struct sanitize *sanitize = lu->sanitize;

	if (!sanitize)
		return;
	assert(!sanitize->waiting);
	sanitize->closing = true;
	loop_timer_cancel(lu->device->loop, &sanitize->timer);
	while (sanitize->io_running)
		loop_turn(lu->device->loop, true);
	buf_unref(sanitize->pattern);
	free(sanitize);
	lu->sanitize = NULL;
}

/* ---- the command ---- */

static enum sanitize_action action_of(const struct scsi_task *task)
{
	return task->cdb[1] & 0x1f;
}

static enum scsi_prepared sanitize_prepare(struct scsi_task *task)
{
	static const uint8_t reserved[5];
	uint32_t list_bytes = get_be16(task->cdb + 7);
	bool list_ok = list_bytes == 0;

	if (task->lu->conditions & LU_EJECTED)
		return scsi_sense_fail(task, SENSE_NO_MEDIUM);
	if (task->lu->conditions & LU_STOPPED)
		return scsi_sense_fail(task, SENSE_START_REQUIRED);
	if (action_of(task) == SANITIZE_OVERWRITE)
		list_ok = list_bytes > LIST_HEADER_BYTES &&
			  list_bytes <= LIST_HEADER_BYTES + task->lu->block_bytes;
	if (!list_ok || (task->cdb[1] & BIT_ZNR) ||
	    memcmp(task->cdb + 2, reserved, sizeof reserved) != 0)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	task->out_bytes = list_bytes;
	task->transfer_bytes = list_bytes;
	return list_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* Fills the pattern buffer: every logical block begins with the initialization pattern. */
static void fill_pattern(const struct scsi_task *task, uint8_t *out, uint32_t pattern_bytes)
{
	uint32_t block_bytes = task->lu->block_bytes;

	iov_to_mem(task->out_iov, task->out_iov_count, LIST_HEADER_BYTES, out, pattern_bytes);
	for (uint32_t done = pattern_bytes; done < block_bytes; done++)
		out[done] = out[done - pattern_bytes];
	for (uint32_t done = block_bytes; done < OVERWRITE_CHUNK_BYTES; done += block_bytes)
		memcpy(out + done, out, block_bytes);
}

/* Takes the parameter list of an overwrite; false: the task has ended. */
static bool overwrite_begin(struct sanitize *sanitize, struct scsi_task *task)
{
	uint8_t header[LIST_HEADER_BYTES];
	uint32_t pattern_bytes;

	if (task->out_got_bytes < task->out_bytes) {
		scsi_task_fail(task, SENSE_PARAMETER_LIST_LENGTH);
		return false;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, 0, header, sizeof header);
	pattern_bytes = get_be16(header + 2);
	sanitize->invert = header[0] & 0x80;
	sanitize->passes = header[0] & 0x1f;
	if (sanitize->passes == 0 || pattern_bytes == 0 ||
	    pattern_bytes > task->out_bytes - LIST_HEADER_BYTES) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_LIST);
		return false;
	}
	sanitize->pattern = buf_new(task->lu->device->pool, OVERWRITE_CHUNK_BYTES);
	if (!sanitize->pattern) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return false;
	}
	fill_pattern(task, sanitize->pattern->data, pattern_bytes);
	sanitize->iov.iov_base = sanitize->pattern->data;
	return true;
}

static struct sanitize *sanitize_of(struct scsi_lu *lu)
{
	if (lu->sanitize)
		return lu->sanitize;
	lu->sanitize = calloc(1, sizeof *lu->sanitize);
	if (!lu->sanitize)
		return NULL;
	lu->sanitize->lu = lu;
	loop_timer_init(&lu->sanitize->timer, next_piece, lu->sanitize);
	return lu->sanitize;
}

static void sanitize_execute(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;
	struct sanitize *sanitize = sanitize_of(lu);

	if (!sanitize) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	sanitize->action = action_of(task);
	sanitize->passes = 1;
	if (sanitize->action == SANITIZE_OVERWRITE && !overwrite_begin(sanitize, task))
		return;
	sanitize->unrestricted = task->cdb[1] & BIT_AUSE;
	sanitize->pass = 0;
	sanitize->at_bytes = 0;
	sanitize->size_bytes = scsi_lu_blocks(lu) * lu->block_bytes;
	sanitize->due_ns = loop_now_ns(lu->device->loop);
	lu->conditions &= ~(unsigned)LU_SANITIZE_FAILED;
	lu->conditions |= LU_SANITIZING;
	loop_timer_set(lu->device->loop, &sanitize->timer, sanitize->due_ns);
	/* All earlier commands are through; later ones are to fail, not to wait. */
	scsi_range_leave(&task->range);
	if (task->cdb[1] & BIT_IMMED)
		scsi_task_end(task);
	else
		sanitize->waiting = task;
	scsi_range_run(lu);
}

static void sanitize_abort(struct scsi_task *task)
{
	struct sanitize *sanitize = task->lu->sanitize;

	if (!sanitize || sanitize->waiting != task)
		return; /* it waits for its range and ends when its turn comes */
	sanitize->waiting = NULL;
	scsi_task_end(task);
}

static void exit_failure_execute(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;

	if ((lu->conditions & LU_SANITIZE_FAILED) && !lu->sanitize->unrestricted) {
		scsi_task_fail(task, SENSE_SANITIZE_FAILED);
		return;
	}
	lu->conditions &= ~(unsigned)LU_SANITIZE_FAILED;
	scsi_task_end(task);
}

#define SANITIZE_ROW(action, more, title)                                                          \
	{                                                                                          \
		.opcode = 0x48, .service_action = (action), .cdb_bytes = 10,                       \
		.flags = SCSI_CMD_WRITES | SCSI_CMD_RANGE | SCSI_CMD_WHOLE_LU | SCSI_CMD_ATOMIC |  \
			 (more),                                                                   \
		.name = (title),                                                                   \
		.usage = {0x48, 0xa0 | (action), 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},  \
		.prepare = sanitize_prepare, .execute = sanitize_execute, .abort = sanitize_abort, \
	}

const struct scsi_command scsi_sanitize_commands[] = {
    SANITIZE_ROW(SANITIZE_OVERWRITE, 0, "SANITIZE, OVERWRITE"),
    /* Block erase leaves the blocks deallocated, as only a thin volume can tell. */
    SANITIZE_ROW(SANITIZE_BLOCK_ERASE, SCSI_CMD_THIN, "SANITIZE, BLOCK ERASE"),
    SANITIZE_ROW(SANITIZE_CRYPTO_ERASE, 0, "SANITIZE, CRYPTOGRAPHIC ERASE"),
    {.opcode = 0x48,
     .service_action = SANITIZE_EXIT_FAILURE_MODE,
     .cdb_bytes = 10,
     .name = "SANITIZE, EXIT FAILURE MODE",
     .usage = {0x48, 0x1f, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0x04},
     .prepare = sanitize_prepare,
     .execute = exit_failure_execute},
    {0},
};
