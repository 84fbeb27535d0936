/* SPDX-License-Identifier: MIT
 *
 * How the log gets to the device: one write at a time, up to 256 KiB, not across files.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_log_impl.h"

#define RETRY_PAUSE_NS (100 * NS_PER_MS)

static void write_next(struct ese_log *log);

/* ---- when a flush begins ---- */

static void begin_flush(struct ese_log *log, enum ese_flush_reason reason)
{
	if (reason == ESE_FLUSH_CAPACITY) {
		log->target = log->tip & ~(uint64_t)(ESE_SEGMENT_BYTES - 1);
		log->counters.flushes_capacity++;
	} else {
		ese_log_pad(log);
		log->target = log->tip;
		log->lazy_due = false;
		loop_timer_cancel(log->config.loop, &log->lazy_timer);
		if (reason == ESE_FLUSH_DURABLE)
			log->counters.flushes_durable++;
		else
			log->counters.flushes_lazy++;
	}
	write_next(log);
}

/* True when one has begun. */
static bool begin_due(struct ese_log *log)
{
	uint64_t now_ns = loop_now_ns(log->config.loop);

	if (log->want_now > log->target) {
		begin_flush(log,
			    log->want_durable > log->target ? ESE_FLUSH_DURABLE : ESE_FLUSH_LAZY);
		return true;
	}
	if (log->want_durable > log->target) {
		if (log->gather_until_ns <= now_ns) {
			begin_flush(log, ESE_FLUSH_DURABLE);
			return true;
		}
		loop_timer_set(log->config.loop, &log->gather_timer, log->gather_until_ns);
	}
	if (log->lazy_due && log->tip > log->target) {
		begin_flush(log, ESE_FLUSH_LAZY);
		return true;
	}
	if (log->tip - log->flushed >= log->config.buffer_bytes / 2) {
		begin_flush(log, ESE_FLUSH_CAPACITY);
		return true;
	}
	return false;
}

void ese_log_kick(struct ese_log *log)
{
	if (log->kicking)
		return;
	log->kicking = true;
	/* A write may end within its submit. */
	while (log->status == 0 && !log->writing && begin_due(log))
		;
	log->kicking = false;
}

static void gathered(void *arg)
{
	ese_log_kick(arg);
}

static void lazy_due(void *arg)
{
	struct ese_log *log = arg;

	log->lazy_due = log->tip > log->target;
	ese_log_kick(log);
}

/* ---- one write ---- */

static void seal(struct ese_log *log, uint64_t from, uint64_t to)
{
	for (uint64_t lgpos = from; lgpos < to; lgpos += ESE_SEGMENT_BYTES) {
		uint8_t *bytes = log->buffer + lgpos % log->config.buffer_bytes;
		struct ese_segment segment;

		memcpy(&segment, bytes, sizeof segment);
		assert(segment.lgpos == lgpos);
		segment.write_back = (uint16_t)((lgpos - from) / ESE_SEGMENT_BYTES);
		memset(bytes, 0, ESE_SEGMENT_HEADER_BYTES);
		ese_segment_seal(bytes, log->config.area.signature, &segment);
	}
}

static void submit(struct ese_log *log)
{
	log->submitted_ns = loop_now_ns(log->config.loop);
	log->stream = log->config.stream;
	if (log->stream)
		stream_begin(log->stream, log->submitted_ns);
	io_submit(log->config.area.layer, &log->io);
}

/* The part of the flush from FLUSHED on. */
static void write_next(struct ese_log *log)
{
	uint64_t from = log->flushed, file_end, to, at, part;

	file_end = (from / ESE_LOG_FILE_BYTES + 1) * ESE_LOG_FILE_BYTES;
	to = MIN_OF(MIN_OF(log->target, file_end), from + ESE_LOG_WRITE_MAX);
	assert(to > from);
	seal(log, from, to);
	at = from % log->config.buffer_bytes;
	part = MIN_OF(to - from, log->config.buffer_bytes - at);
	log->iov[0] = (struct iovec){log->buffer + at, part};
	log->iov[1] = (struct iovec){log->buffer, to - from - part};
	log->io.offset_bytes = ese_log_offset(&log->config.area, from);
	log->io.length_bytes = to - from;
	log->io.iov_count = log->iov[1].iov_len ? 2 : 1;
	log->write_end = to;
	log->writing = true;
	log->failing_since_ns = 0;
	submit(log);
}

static void retry(void *arg)
{
	submit(arg);
}

/* Segments are written again as they are: who got them already loses nothing. */
static void failed(struct ese_log *log, int status, uint64_t now_ns)
{
	log->counters.errors++;
	if (!log->failing_since_ns)
		log->failing_since_ns = now_ns;
	if (now_ns - log->failing_since_ns < log->config.retry_ns && status != -ECANCELED &&
	    log->status == 0) {
		loop_timer_set(log->config.loop, &log->retry_timer, now_ns + RETRY_PAUSE_NS);
		return;
	}
	log->writing = false;
	log->status = status;
	loop_timer_cancel(log->config.loop, &log->gather_timer);
	loop_timer_cancel(log->config.loop, &log->lazy_timer);
	if (log->config.down)
		log->config.down(log->config.arg, status);
	ese_log_progress(log);
}

static void tell_written(struct ese_log *log, uint64_t from)
{
	for (unsigned i = 0; i < log->io.iov_count && log->config.written; i++) {
		log->config.written(log->config.arg, from, log->iov[i].iov_base,
				    (uint32_t)log->iov[i].iov_len);
		from += log->iov[i].iov_len;
	}
}

static void write_ended(struct io *io)
{
	struct ese_log *log = io->owner;
	uint64_t now_ns = loop_now_ns(log->config.loop), from = log->flushed;
	uint64_t to = log->write_end;

	if (log->stream)
		stream_account(log->stream, log->submitted_ns, log->submitted_ns, now_ns,
			       io->length_bytes, io->status);
	if (io->status < 0) {
		failed(log, io->status, now_ns);
		return;
	}
	log->counters.writes++;
	log->counters.write_bytes += io->length_bytes;
	tell_written(log, from);
	log->writing = false;
	log->flushed = to;
	if (to < log->target && log->status == 0)
		write_next(log); /* may end at once, and then has told its own progress */
	if (from / ESE_LOG_FILE_BYTES != to / ESE_LOG_FILE_BYTES) {
		log->counters.files_closed++;
		if (log->config.file_closed)
			log->config.file_closed(log->config.arg, from / ESE_LOG_FILE_BYTES);
	}
	ese_log_progress(log);
	ese_log_kick(log);
}

void ese_log_write_init(struct ese_log *log)
{
	log->io = (struct io){
	    .op = IO_WRITE,
	    .flags = log->config.fua ? IO_FUA : 0,
	    .iov = log->iov,
	    .done = write_ended,
	    .owner = log,
	};
	loop_timer_init(&log->gather_timer, gathered, log);
	loop_timer_init(&log->lazy_timer, lazy_due, log);
	loop_timer_init(&log->retry_timer, retry, log);
}
