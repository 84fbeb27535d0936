/* SPDX-License-Identifier: MIT
 *
 * Shipping and replay of one passive copy.  Two chains of steps run side by side: read a chunk of
 * the active's log and put it into the copy's; read the copy's log and do its records again.
 */
#include "harness/workload/ese/ese_copy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define TICK_NS NS_PER_S /* the ring is watched, and what failed tried again */

struct ese_copy {
	struct ese_copy_config config;
	enum ese_copy_state state;
	char why[160];
	bool started, stopping, source_lost, everything;
	ese_copy_fn done; /* of catch_up, source_lost, stop */
	void *arg;

	/* Shipping. */
	uint8_t *chunk;
	uint64_t chunk_lgpos;
	uint32_t chunk_bytes; /* read and not put yet */
	bool reading, wants_room;
	bool pausing; /* a read of the active's log has failed: again with the next tick */
	uint64_t submitted_ns;
	struct io io;
	struct iovec iov;
	struct ese_log_waiter room;
	struct loop_timer tick;
	uint64_t reads, read_bytes, blocks;

	/* Replay. */
	struct ese_log_reader *reader;
	struct ese_redo *redo;
	bool read_ended;
	uint64_t read_until; /* where the last round stopped reading */
	uint64_t replayed;
	const struct ese_record *waiting; /* redo had no room for it */
	uint64_t waiting_first, waiting_end;
	struct loop_task task;
};

static void go_on(struct ese_copy *copy);

static void fail(struct ese_copy *copy, const char *why)
{
	if (copy->state != ESE_COPY_FOLLOWS)
		return;
	copy->state = ESE_COPY_FAILED;
	snprintf(copy->why, sizeof copy->why, "%s", why);
	if (!copy->source_lost)
		ese_log_hold(copy->config.source.log, copy->config.holder, UINT64_MAX);
	if (copy->config.failed)
		copy->config.failed(copy->config.arg, copy->why);
}

/* ---- shipping ---- */

static uint64_t shipped(const struct ese_copy *copy)
{
	return ese_log_next_segment(copy->config.target.log);
}

/* What there is to ship now. */
static uint64_t ship_end(const struct ese_copy *copy)
{
	uint64_t end;

	if (copy->source_lost)
		return 0;
	end = ese_log_flushed(copy->config.source.log);
	/* Block mode reads only to get up to date; what follows is sent by itself. */
	return copy->everything || copy->config.block
		   ? end
		   : end / ESE_LOG_FILE_BYTES * ESE_LOG_FILE_BYTES;
}

static void put_chunk(struct ese_copy *copy)
{
	int r =
	    ese_log_put(copy->config.target.log, copy->chunk_lgpos, copy->chunk, copy->chunk_bytes);

	if (r == -EAGAIN) {
		copy->wants_room = true;
		ese_log_wait_room(copy->config.target.log, &copy->room);
		return;
	}
	copy->chunk_bytes = 0;
	if (r == -EBADMSG)
		fail(copy, "the active's log is damaged where it was not shipped yet");
	else if (r < 0)
		fail(copy, "the copy's log cannot be written");
}

static void room_again(struct ese_log_waiter *waiter, int status)
{
	struct ese_copy *copy = container_of(waiter, struct ese_copy, room);

	copy->wants_room = false;
	go_on(copy);
}

static void chunk_read(struct io *io)
{
	struct ese_copy *copy = io->owner;
	struct stream *stream = copy->config.source.log_read;

	copy->reading = false;
	if (stream)
		stream_account(stream, copy->submitted_ns, copy->submitted_ns,
			       loop_now_ns(copy->config.loop), io->length_bytes, io->status);
	if (io->status == 0) {
		copy->reads++;
		copy->read_bytes += io->length_bytes;
		copy->chunk_bytes = (uint32_t)io->length_bytes;
	} else {
		copy->pausing = true;
	}
	go_on(copy);
}

static void read_chunk(struct ese_copy *copy, uint64_t from, uint64_t end)
{
	end = MIN_OF(end, (from / ESE_LOG_WRITE_MAX + 1) * ESE_LOG_WRITE_MAX);
	copy->chunk_lgpos = from;
	copy->iov = (struct iovec){copy->chunk, end - from};
	copy->io.offset_bytes = ese_log_offset(&copy->config.source.area, from);
	copy->io.length_bytes = end - from;
	copy->reading = true;
	copy->submitted_ns = loop_now_ns(copy->config.loop);
	if (copy->config.source.log_read)
		stream_begin(copy->config.source.log_read, copy->submitted_ns);
	io_submit(copy->config.source.area.layer, &copy->io);
}

static bool may_put(const struct ese_copy *copy)
{
	return copy->state == ESE_COPY_FOLLOWS && !copy->stopping && !copy->reading &&
	       !copy->wants_room;
}

/* True when a step was taken. */
static bool ship(struct ese_copy *copy)
{
	uint64_t from = shipped(copy), end;

	if (!may_put(copy))
		return false;
	if (!copy->source_lost)
		ese_log_hold(copy->config.source.log, copy->config.holder, from);
	if (copy->chunk_bytes) {
		put_chunk(copy);
		return !copy->wants_room;
	}
	end = ship_end(copy);
	if (from >= end || copy->pausing)
		return false;
	read_chunk(copy, from, end);
	return !copy->reading;
}

void ese_copy_file_closed(struct ese_copy *copy, uint64_t generation)
{
	if (copy->started)
		loop_task_queue(copy->config.loop, &copy->task);
}

void ese_copy_written(struct ese_copy *copy, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	if (!copy->config.block || !copy->started || copy->chunk_bytes || copy->source_lost ||
	    !may_put(copy))
		return;
	if (ese_log_put(copy->config.target.log, lgpos, segments, bytes) == 0)
		copy->blocks++;
	loop_task_queue(copy->config.loop, &copy->task);
}

/* The ring of the active is full because of this copy: rather lose the copy than the service. */
static void watch_ring(struct ese_copy *copy)
{
	struct ese_log *log = copy->config.source.log;

	if (copy->state == ESE_COPY_FOLLOWS && !copy->source_lost && ese_log_short_of_room(log) &&
	    ese_log_flushed(log) - shipped(copy) >
		(uint64_t)(copy->config.source.area.files - 2) * ESE_LOG_FILE_BYTES)
		fail(copy, "it lags by the whole ring of log files");
}

static void ticked(void *arg)
{
	struct ese_copy *copy = arg;

	watch_ring(copy);
	copy->pausing = false;
	loop_timer_set(copy->config.loop, &copy->tick, loop_now_ns(copy->config.loop) + TICK_NS);
	go_on(copy);
}

/* ---- replay ---- */

static bool take_record(void *arg, const struct ese_record *record, uint64_t first_lgpos,
			uint64_t end_lgpos)
{
	struct ese_copy *copy = arg;

	if (ese_redo_add(copy->redo, record, first_lgpos, end_lgpos))
		return true;
	if (ese_redo_counters(copy->redo)->status < 0)
		ese_log_reader_stop(copy->reader);
	copy->waiting = record;
	copy->waiting_first = first_lgpos;
	copy->waiting_end = end_lgpos;
	return false;
}

static void reader_ended(void *arg, const struct ese_log_read_result *result)
{
	struct ese_copy *copy = arg;

	copy->read_ended = true;
	copy->waiting = NULL;
	if (result->end == ESE_LOG_END_CORRUPT || result->end == ESE_LOG_END_ERROR)
		fail(copy, "the copy's log cannot be read");
	/* The reader is freed from the task, not from within itself. */
	loop_task_queue(copy->config.loop, &copy->task);
}

static void redo_idle(void *arg)
{
	struct ese_copy *copy = arg;
	const struct ese_record *record = copy->waiting;

	if (ese_redo_counters(copy->redo)->status < 0) {
		if (copy->reader && !copy->read_ended)
			ese_log_reader_stop(copy->reader);
	} else if (record) {
		copy->waiting = NULL; /* add may come back here */
		if (ese_redo_add(copy->redo, record, copy->waiting_first, copy->waiting_end))
			ese_log_reader_resume(copy->reader);
		else
			copy->waiting = record;
	}
	go_on(copy);
}

static uint64_t replay_end(const struct ese_copy *copy)
{
	uint64_t end = ese_log_flushed(copy->config.target.log);

	return copy->everything || copy->config.block
		   ? end
		   : end / ESE_LOG_FILE_BYTES * ESE_LOG_FILE_BYTES;
}

static bool begin_replay(struct ese_copy *copy)
{
	struct ese_log_read_config config = {
	    .loop = copy->config.loop,
	    .area = copy->config.target.area,
	    .from_lgpos = copy->replayed,
	    .until_lgpos = replay_end(copy),
	    .stream = copy->config.target.log_read,
	    .record = take_record,
	    .ended = reader_ended,
	    .arg = copy,
	};

	/* From the end of the last whole record; one that was cut off is read again with its rest.
	 */
	if (config.until_lgpos <= MAX_OF(copy->read_until, copy->replayed))
		return false;
	if (ese_log_reader_new(&config, &copy->reader, NULL) < 0) {
		fail(copy, "out of memory");
		return false;
	}
	copy->read_ended = false;
	copy->read_until = config.until_lgpos;
	ese_log_reader_start(copy->reader);
	return true;
}

/* A round ends when its records are done. */
static void end_replay(struct ese_copy *copy)
{
	const struct ese_redo_counters *redo = ese_redo_counters(copy->redo);

	copy->reader = ese_log_reader_free(copy->reader);
	if (redo->status < 0) {
		fail(copy, strerror(-redo->status));
		return;
	}
	copy->replayed = MAX_OF(copy->replayed, redo->applied_lgpos);
	if (redo->pages_wrong)
		fail(copy, "a page has lost a write");
	if (copy->config.replayed)
		copy->config.replayed(copy->config.arg, copy->replayed);
}

/* True when a step was taken. */
static bool replay(struct ese_copy *copy)
{
	if (copy->reader) {
		if (!copy->read_ended) {
			if (copy->stopping || copy->state == ESE_COPY_FAILED)
				ese_log_reader_stop(copy->reader);
			return false;
		}
		if (!ese_redo_empty(copy->redo) && ese_redo_counters(copy->redo)->status == 0) {
			ese_redo_push(copy->redo); /* redo_idle follows */
			return false;
		}
		end_replay(copy);
		return true;
	}
	return copy->state == ESE_COPY_FOLLOWS && !copy->stopping && begin_replay(copy);
}

/* ---- both ---- */

static bool idle(const struct ese_copy *copy)
{
	return !copy->reading && !copy->reader;
}

static bool all_done(const struct ese_copy *copy)
{
	if (!idle(copy))
		return false;
	if (copy->stopping || copy->state == ESE_COPY_FAILED)
		return true;
	if (!copy->source_lost && shipped(copy) < ship_end(copy))
		return false;
	/* What has been put is written and replayed. */
	return ese_log_flushed(copy->config.target.log) == shipped(copy) && !copy->wants_room &&
	       MAX_OF(copy->read_until, copy->replayed) + ESE_SEGMENT_BYTES > shipped(copy);
}

static void tell_done(struct ese_copy *copy)
{
	ese_copy_fn done = copy->done;

	if (!done || !all_done(copy))
		return;
	copy->done = NULL;
	copy->everything = false;
	if (copy->stopping)
		copy->state = ESE_COPY_STOPPED;
	done(copy->arg, copy->state == ESE_COPY_FAILED ? -EIO : 0);
}

static void step(void *arg)
{
	struct ese_copy *copy = arg;
	bool stepped = ship(copy);

	if (replay(copy) || stepped)
		loop_task_queue(copy->config.loop, &copy->task);
	else
		tell_done(copy);
}

static void go_on(struct ese_copy *copy)
{
	loop_task_queue(copy->config.loop, &copy->task);
}

/* ---- life ---- */

int ese_copy_new(const struct ese_copy_config *config, struct ese_copy **ret_copy)
{
	struct ese_copy *copy = calloc(1, sizeof *copy);

	if (!copy)
		return -ENOMEM;
	copy->config = *config;
	copy->chunk = aligned_alloc(ESE_SEGMENT_BYTES, ESE_LOG_WRITE_MAX);
	if (!copy->chunk || ese_redo_new(config->loop, config->ops, config->ops_arg, redo_idle,
					 copy, &copy->redo) < 0) {
		free(copy->chunk);
		free(copy);
		return -ENOMEM;
	}
	copy->io = (struct io){
	    .op = IO_READ,
	    .iov = &copy->iov,
	    .iov_count = 1,
	    .done = chunk_read,
	    .owner = copy,
	};
	copy->room.done = room_again;
	copy->replayed = config->replayed_lgpos;
	loop_timer_init(&copy->tick, ticked, copy);
	loop_task_init(&copy->task, step, copy);
	*ret_copy = copy;
	return 0;
}

struct ese_copy *ese_copy_free(struct ese_copy *copy)
{
	if (!copy)
		return NULL;
	assert(idle(copy));
	if (copy->wants_room)
		ese_log_forget(copy->config.target.log, &copy->room);
	loop_timer_cancel(copy->config.loop, &copy->tick);
	loop_task_cancel(copy->config.loop, &copy->task);
	ese_redo_free(copy->redo);
	free(copy->chunk);
	free(copy);
	return NULL;
}

void ese_copy_start(struct ese_copy *copy)
{
	copy->started = true;
	ese_log_hold(copy->config.source.log, copy->config.holder, shipped(copy));
	loop_timer_set(copy->config.loop, &copy->tick, loop_now_ns(copy->config.loop) + TICK_NS);
	go_on(copy);
}

static void begin(struct ese_copy *copy, ese_copy_fn done, void *arg)
{
	assert(!copy->done);
	copy->done = done;
	copy->arg = arg;
	go_on(copy);
}

void ese_copy_catch_up(struct ese_copy *copy, ese_copy_fn done, void *arg)
{
	copy->everything = true;
	begin(copy, done, arg);
}

void ese_copy_source_lost(struct ese_copy *copy, ese_copy_fn done, void *arg)
{
	copy->everything = true;
	copy->source_lost = true;
	begin(copy, done, arg);
}

void ese_copy_stop(struct ese_copy *copy, ese_copy_fn done, void *arg)
{
	copy->stopping = true;
	copy->started = false;
	loop_timer_cancel(copy->config.loop, &copy->tick);
	if (!copy->source_lost)
		ese_log_hold(copy->config.source.log, copy->config.holder, UINT64_MAX);
	begin(copy, done, arg);
}

enum ese_copy_state ese_copy_state(const struct ese_copy *copy)
{
	return copy->state;
}

const char *ese_copy_why(const struct ese_copy *copy)
{
	return copy->why;
}

void ese_copy_counters(const struct ese_copy *copy, struct ese_copy_counters *ret_counters)
{
	const struct ese_redo_counters *redo = ese_redo_counters(copy->redo);
	uint64_t end = shipped(copy), source = end;

	if (!copy->source_lost)
		source = MAX_OF(end, ese_log_flushed(copy->config.source.log));
	*ret_counters = (struct ese_copy_counters){
	    .reads = copy->reads,
	    .read_bytes = copy->read_bytes,
	    .blocks = copy->blocks,
	    .records = redo->records,
	    .updates_done = redo->updates_done,
	    .updates_there = redo->updates_there,
	    .pages_wrong = redo->pages_wrong,
	    .shipped_lgpos = end,
	    .replayed_lgpos = copy->replayed,
	    .copy_queue_files = source / ESE_LOG_FILE_BYTES - end / ESE_LOG_FILE_BYTES,
	    .replay_queue_files = end / ESE_LOG_FILE_BYTES - copy->replayed / ESE_LOG_FILE_BYTES,
	    .copy_queue_bytes = source - end,
	};
}
