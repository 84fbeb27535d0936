/* SPDX-License-Identifier: MIT
 *
 * Overwriting and erasing a whole logical unit in the background.
 */
#include "target/scsi/wipe.h"

#include <assert.h>
#include <stdlib.h>

#define OVERWRITE_BYTES_PER_SECOND (32 * MIB)
#define ERASE_CHUNK_BYTES	   (64 * POOL_PAGE_BYTES)

struct wipe {
	struct scsi_lu *lu;
	struct wipe_plan plan;
	struct scsi_task *waiting; /* for the end; NULL: nobody */
	bool io_running, closing;
	unsigned pass;
	uint64_t at_bytes, size_bytes; /* of the pass */
	uint64_t due_ns;
	struct iovec iov;
	struct io io;
	struct loop_timer timer;
};

uint32_t scsi_wipe_sense(const struct scsi_lu *lu, struct sense_extra *ret_extra)
{
	const struct wipe *wipe = lu->wipe;
	uint64_t unit = MAX_OF(wipe->size_bytes * wipe->plan.passes >> 16, UINT64_C(1));
	uint64_t done = wipe->size_bytes * wipe->pass + wipe->at_bytes;

	ret_extra->has_key_specific = true;
	ret_extra->key_specific[0] = 0;
	put_be16(ret_extra->key_specific + 1, (uint16_t)MIN_OF(done / unit, UINT64_C(0xffff)));
	return lu->conditions & LU_FORMATTING ? SENSE_FORMATTING : SENSE_SANITIZING;
}

bool scsi_wipe_ready(struct scsi_task *task)
{
	uint32_t code = SENSE_NONE;

	if (task->lu->conditions & LU_EJECTED)
		code = SENSE_NO_MEDIUM;
	else if (task->lu->conditions & LU_STOPPED)
		code = SENSE_START_REQUIRED;
	if (code != SENSE_NONE)
		scsi_sense_fail(task, code);
	return code == SENSE_NONE;
}

/* ---- the operation ---- */

static void wipe_end(struct wipe *wipe, int error)
{
	struct scsi_lu *lu = wipe->lu;
	struct scsi_task *task = wipe->waiting;

	lu->conditions &= ~wipe->plan.running;
	if (error)
		lu->conditions |= wipe->plan.failed;
	wipe->plan.pattern = buf_unref(wipe->plan.pattern);
	wipe->waiting = NULL;
	if (!task)
		return;
	if (error)
		scsi_sense_fail(task, wipe->plan.failed_code);
	scsi_task_end(task);
}

static void flush_done(struct io *io)
{
	struct wipe *wipe = io->owner;

	wipe->io_running = false;
	if (!wipe->closing)
		wipe_end(wipe, io->status);
}

static void send(struct wipe *wipe, enum io_op op, uint64_t bytes, void (*done)(struct io *io))
{
	bool writes = op == IO_WRITE;

	wipe->iov.iov_len = bytes;
	wipe->io = (struct io){
	    .op = op,
	    .offset_bytes = op == IO_FLUSH ? 0 : wipe->at_bytes,
	    .length_bytes = op == IO_FLUSH ? wipe->size_bytes : bytes,
	    .iov = writes ? &wipe->iov : NULL,
	    .iov_count = writes ? 1 : 0,
	    .done = done,
	    .owner = wipe,
	};
	wipe->io_running = true;
	io_submit(volume_layer(wipe->lu->volume), &wipe->io);
}

static void invert_pattern(struct wipe *wipe)
{
	for (size_t i = 0; i < WIPE_CHUNK_BYTES; i++)
		wipe->plan.pattern->data[i] ^= 0xff;
}

/* The next piece is due when one disk would have got there. */
static void piece_done(struct io *io)
{
	struct wipe *wipe = io->owner;
	struct loop *loop = wipe->lu->device->loop;

	wipe->io_running = false;
	if (wipe->closing)
		return;
	if (io->status) {
		wipe_end(wipe, io->status);
		return;
	}
	wipe->at_bytes += io->length_bytes;
	if (wipe->at_bytes == wipe->size_bytes) {
		wipe->at_bytes = 0;
		wipe->pass++;
		if (wipe->plan.invert && wipe->pass < wipe->plan.passes)
			invert_pattern(wipe);
	}
	if (wipe->plan.pattern)
		wipe->due_ns += io->length_bytes * NS_PER_S / OVERWRITE_BYTES_PER_SECOND;
	loop_timer_set(loop, &wipe->timer, wipe->due_ns);
}

static void next_piece(void *arg)
{
	struct wipe *wipe = arg;
	bool overwrites = wipe->plan.pattern;
	uint64_t chunk = overwrites ? WIPE_CHUNK_BYTES : ERASE_CHUNK_BYTES;
	uint64_t rest = wipe->size_bytes - wipe->at_bytes;

	if (wipe->pass == wipe->plan.passes)
		send(wipe, IO_FLUSH, 0, flush_done);
	else
		send(wipe, overwrites ? IO_WRITE : IO_UNMAP, MIN_OF(chunk, rest), piece_done);
}

void scsi_wipe_free(struct scsi_lu *lu)
{
	struct wipe *wipe = lu->wipe;

	if (!wipe)
		return;
	assert(!wipe->waiting);
	wipe->closing = true;
	loop_timer_cancel(lu->device->loop, &wipe->timer);
	while (wipe->io_running)
		loop_turn(lu->device->loop, true);
	buf_unref(wipe->plan.pattern);
	free(wipe);
	lu->wipe = NULL;
}

/* ---- for the commands ---- */

struct buf *scsi_wipe_pattern(struct scsi_task *task, uint32_t skip, uint32_t pattern_bytes)
{
	uint32_t block_bytes = task->lu->block_bytes;
	struct buf *buf = buf_new(task->lu->device->pool, WIPE_CHUNK_BYTES);

	if (!buf) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return NULL;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, skip, buf->data, pattern_bytes);
	for (uint32_t done = pattern_bytes; done < block_bytes; done++)
		buf->data[done] = buf->data[done - pattern_bytes];
	for (uint32_t done = block_bytes; done < WIPE_CHUNK_BYTES; done += block_bytes)
		memcpy(buf->data + done, buf->data, block_bytes);
	return buf;
}

static struct wipe *wipe_of(struct scsi_lu *lu)
{
	if (lu->wipe)
		return lu->wipe;
	lu->wipe = calloc(1, sizeof *lu->wipe);
	if (!lu->wipe)
		return NULL;
	lu->wipe->lu = lu;
	loop_timer_init(&lu->wipe->timer, next_piece, lu->wipe);
	return lu->wipe;
}

void scsi_wipe_begin(struct scsi_task *task, const struct wipe_plan *plan, bool immediate)
{
	struct scsi_lu *lu = task->lu;
	struct wipe *wipe = wipe_of(lu);

	if (!wipe) {
		buf_unref(plan->pattern);
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	wipe->plan = *plan;
	wipe->pass = 0;
	wipe->at_bytes = 0;
	wipe->size_bytes = scsi_lu_blocks(lu) * lu->block_bytes;
	wipe->due_ns = loop_now_ns(lu->device->loop);
	if (plan->pattern)
		wipe->iov.iov_base = plan->pattern->data;
	lu->conditions = (lu->conditions & ~plan->failed) | plan->running;
	loop_timer_set(lu->device->loop, &wipe->timer, wipe->due_ns);
	/* All earlier commands are through; later ones are to fail, not to wait. */
	scsi_range_leave(&task->range);
	if (immediate)
		scsi_task_end(task);
	else
		wipe->waiting = task;
	scsi_range_run(lu);
}

void scsi_wipe_abort(struct scsi_task *task)
{
	struct wipe *wipe = task->lu->wipe;

	if (!wipe || wipe->waiting != task)
		return; /* it waits for its range and ends when its turn comes */
	wipe->waiting = NULL;
	scsi_task_end(task);
}
