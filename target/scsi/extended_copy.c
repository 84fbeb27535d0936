/* SPDX-License-Identifier: MIT
 *
 * EXTENDED COPY (LID1), SPC-4 6.4: copies segment by segment, chunk by chunk, through one buffer.
 *
 * The task stays in the task set of the logical unit that got the command until the copy is over;
 * an abort takes effect between two chunks.  A memory volume completes at once: after every few
 * chunks the copy waits for the loop's next turn, so that others are served as well.
 *
 * Each read and write keeps out of the way of atomic commands on its logical unit, for itself: the
 * copy never has two ranges at a time.
 */
#include "target/scsi/extended_copy.h"

#include <stdlib.h>

enum { LIST_READ_MAX_BYTES = 4096, CHUNKS_A_TURN = 4 };
#define CHUNK_BYTES MIB

/* A volume may complete within io_submit: the pump loops instead of recursing. */
enum copy_pump { PUMP_WAITING, PUMP_SUBMITTING, PUMP_COMPLETED };

struct copy {
	struct scsi_task *task;
	struct copy_record *record; /* NULL: the initiator wants no list identifier */
	struct copy_plan plan;
	unsigned segment;    /* the current one */
	uint64_t done_bytes; /* of it */
	uint64_t chunk_bytes;
	bool writing;	 /* the io at hand */
	unsigned chunks; /* since the turn began */
	enum copy_pump pump;
	struct buf *buf;
	struct iovec iov;
	struct io io;
	struct scsi_range range; /* of the io at hand */
	struct loop_timer next_turn;
};

/* COPY ABORTED, with the segment as INFORMATION. */
static void fail_segment(struct scsi_task *task, uint32_t code, unsigned segment)
{
	struct sense_extra extra = {.has_information = true, .information = segment};

	scsi_sense_fail_extra(task, code, &extra);
}

static void record_end(struct copy_record *record, struct scsi_task *task, enum list_id_usage usage)
{
	record->running = false;
	record->failed = task->aborted || task->status != SCSI_GOOD;
	record->status = task->aborted ? SCSI_TASK_ABORTED : task->status;
	record->sense_bytes = task->sense_bytes;
	memcpy(record->sense, task->sense, task->sense_bytes);
	if (usage == LIST_ID_DISCARD)
		scsi_copy_record_free(task->nexus, record);
}

static void copy_end(struct copy *copy)
{
	struct scsi_task *task = copy->task;

	if (copy->record)
		record_end(copy->record, task, copy->plan.usage);
	loop_timer_cancel(task->lu->device->loop, &copy->next_turn);
	task->lu->device->copies--;
	buf_unref(copy->buf);
	free(copy);
	scsi_task_end(task);
}

static void copy_pump(struct copy *copy);

static void copy_turn(void *arg)
{
	struct copy *copy = arg;

	copy->chunks = 0;
	copy_pump(copy);
}

/* The io at hand is over, or was never begun. */
static void copy_io_end(struct copy *copy)
{
	copy->writing = !copy->writing;
	if (copy->pump == PUMP_SUBMITTING)
		copy->pump = PUMP_COMPLETED;
	else
		copy_pump(copy);
}

static void copy_io_done(struct io *io)
{
	struct copy *copy = io->owner;

	scsi_range_leave(&copy->range);
	scsi_range_run(copy->range.lu);
	if (io->status) {
		fail_segment(copy->task, SENSE_COPY_DEVICE_FAILURE, copy->segment);
	} else if (copy->writing) {
		copy->done_bytes += copy->chunk_bytes;
		copy->chunks++;
		if (copy->record)
			copy->record->bytes += copy->chunk_bytes;
	}
	copy_io_end(copy);
}

/* The range is ours; the medium may have gone, or be sanitized, since the copy began. */
static void copy_io_begin(struct copy *copy)
{
	struct scsi_lu *lu = copy->range.lu;
	bool ready = (lu->conditions & ~(unsigned)LU_READ_ONLY) == 0 &&
		     !(copy->writing && scsi_lu_is_write_protected(lu));

	if (ready && !copy->task->aborted) {
		io_submit(volume_layer(lu->volume), &copy->io);
		return;
	}
	scsi_range_leave(&copy->range);
	scsi_range_run(lu);
	if (!ready)
		fail_segment(copy->task, SENSE_COPY_DEVICE_FAILURE, copy->segment);
	copy_io_end(copy);
}

static void copy_range_ready(struct scsi_range *range)
{
	copy_io_begin(container_of(range, struct copy, range));
}

/* The next read or write of the current segment. */
static void copy_submit(struct copy *copy)
{
	const struct copy_segment *segment = &copy->plan.segment[copy->segment];
	struct scsi_lu *lu = copy->writing ? segment->to : segment->from;
	uint64_t left = segment->length_bytes - copy->done_bytes, at;

	copy->chunk_bytes = MIN_OF(left, CHUNK_BYTES);
	at = segment->backwards ? left - copy->chunk_bytes : copy->done_bytes;
	copy->iov = (struct iovec){copy->buf->data, copy->chunk_bytes};
	copy->io.op = copy->writing ? IO_WRITE : IO_READ;
	copy->io.flags = copy->writing && !lu->mode.write_cache ? IO_FUA : 0;
	copy->io.offset_bytes = (copy->writing ? segment->to_bytes : segment->from_bytes) + at;
	copy->io.length_bytes = copy->chunk_bytes;
	copy->io.iov = &copy->iov;
	copy->io.iov_count = 1;
	copy->io.done = copy_io_done;
	copy->io.owner = copy;
	copy->range.lu = lu;
	copy->range.lba = copy->io.offset_bytes / lu->block_bytes;
	copy->range.blocks = copy->chunk_bytes / lu->block_bytes;
	copy->range.ready = copy_range_ready;
	if (scsi_range_enter(&copy->range))
		copy_io_begin(copy);
}

/* Goes on to the next segment with something left; false: there is none. */
static bool copy_more(struct copy *copy)
{
	while (copy->segment < copy->plan.segment_count &&
	       copy->done_bytes == copy->plan.segment[copy->segment].length_bytes) {
		copy->segment++;
		copy->done_bytes = 0;
		if (copy->record)
			copy->record->segments++;
	}
	return copy->segment < copy->plan.segment_count;
}

static void copy_pump(struct copy *copy)
{
	struct scsi_task *task = copy->task;
	struct loop *loop = task->lu->device->loop;

	while (task->status == SCSI_GOOD && !task->aborted && copy_more(copy)) {
		if (copy->chunks >= CHUNKS_A_TURN) {
			loop_timer_set(loop, &copy->next_turn, loop_now_ns(loop));
			return;
		}
		copy->pump = PUMP_SUBMITTING;
		copy_submit(copy);
		if (copy->pump == PUMP_SUBMITTING) {
			copy->pump = PUMP_WAITING;
			return;
		}
	}
	copy_end(copy);
}

/* Everything a copy needs, or NULL. */
static struct copy *copy_new(struct scsi_task *task, const struct copy_plan *plan)
{
	struct copy *copy = NULL;
	struct buf *buf;

	if (task->lu->device->copies >= COPIES_MAX)
		return NULL;
	buf = buf_new(task->lu->device->pool, CHUNK_BYTES);
	if (buf)
		copy = calloc(1, sizeof *copy);
	if (copy && plan->usage != LIST_ID_NONE)
		copy->record = scsi_copy_record_new(task, plan->list_id);
	if (!copy || (!copy->record && plan->usage != LIST_ID_NONE)) {
		buf_unref(buf);
		free(copy);
		return NULL;
	}
	copy->task = task;
	copy->plan = *plan;
	copy->buf = buf;
	loop_timer_init(&copy->next_turn, copy_turn, copy);
	task->lu->device->copies++;
	return copy;
}

static enum scsi_prepared extended_copy_prepare(struct scsi_task *task)
{
	task->out_bytes = get_be32(task->cdb + 10);
	if (task->out_bytes > LIST_READ_MAX_BYTES)
		return scsi_sense_fail(task, SENSE_PARAMETER_LIST_LENGTH);
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

static void extended_copy_execute(struct scsi_task *task)
{
	unsigned bytes = MIN_OF(task->out_bytes, task->out_got_bytes), segment = 0;
	uint8_t list[LIST_READ_MAX_BYTES];
	struct copy_plan plan;
	struct copy_record *same;
	struct copy *copy;
	uint32_t code;

	if (task->out_bytes == 0) {
		scsi_task_end(task);
		return;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, 0, list, bytes);
	code = scsi_copy_plan_parse(task, list, bytes, &plan);
	if (code != SENSE_NONE) {
		scsi_task_fail(task, code);
		return;
	}
	same = plan.usage == LIST_ID_NONE ? NULL : scsi_copy_record_find(task, plan.list_id);
	if (same && same->running) {
		scsi_task_fail(task, SENSE_OPERATION_IN_PROGRESS);
		return;
	}
	copy = copy_new(task, &plan);
	if (!copy) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	code = scsi_copy_plan_check(task, &copy->plan, list, &segment);
	if (code != SENSE_NONE)
		fail_segment(task, code, segment);
	copy_pump(copy);
}

const struct scsi_command scsi_extended_copy_commands[] = {
    {.opcode = 0x83,
     .service_action = 0x00,
     .cdb_bytes = 16,
     .name = "EXTENDED COPY (LID1)",
     .usage = {0x83, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff,
	       0x00, 0x04},
     .prepare = extended_copy_prepare,
     .execute = extended_copy_execute},
    {0},
};
