/* SPDX-License-Identifier: MIT
 *
 * What is appended to the log and who waits for it.  See ese_log.h; the writes are in
 * ese_log_write.c.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_fill.h"
#include "harness/workload/ese/ese_log_impl.h"

static void waiters_init(struct ese_log_waiters *list)
{
	list->first = NULL;
	list->last = &list->first;
}

static void waiters_add(struct ese_log_waiters *list, struct ese_log_waiter *waiter)
{
	waiter->next = NULL;
	*list->last = waiter;
	list->last = &waiter->next;
}

static void waiters_remove(struct ese_log_waiters *list, struct ese_log_waiter *waiter)
{
	for (struct ese_log_waiter **at = &list->first; *at; at = &(*at)->next) {
		if (*at != waiter)
			continue;
		*at = waiter->next;
		if (!*at)
			list->last = at;
		return;
	}
}

static struct ese_log_waiter *waiters_take(struct ese_log_waiters *list)
{
	struct ese_log_waiter *waiter = list->first;

	if (waiter)
		waiters_remove(list, waiter);
	return waiter;
}

/* ---- room ---- */

/* Where the stream will stand after SIZE more bytes. */
static uint64_t end_of(uint64_t tip, uint32_t size)
{
	enum { PAYLOAD = ESE_SEGMENT_BYTES - ESE_SEGMENT_HEADER_BYTES };
	uint32_t off = (uint32_t)(tip % ESE_SEGMENT_BYTES);
	uint32_t room = off ? ESE_SEGMENT_BYTES - off : 0;

	if (size <= room)
		return tip + size;
	size -= room;
	tip += room;
	tip += (uint64_t)(size / PAYLOAD) * ESE_SEGMENT_BYTES;
	return size % PAYLOAD ? tip + ESE_SEGMENT_HEADER_BYTES + size % PAYLOAD : tip;
}

/* ... when its last segment is padded. */
static uint64_t end_after(const struct ese_log *log, uint32_t size)
{
	return round_up_u64(end_of(log->tip, size), ESE_SEGMENT_BYTES);
}

uint64_t ese_log_oldest_needed(const struct ese_log *log)
{
	uint64_t oldest = log->needed;

	for (unsigned i = 0; i < ESE_LOG_HOLDERS; i++)
		oldest = MIN_OF(oldest, log->held[i]);
	return oldest / ESE_LOG_FILE_BYTES * ESE_LOG_FILE_BYTES;
}

static bool ring_has_room(const struct ese_log *log, uint64_t end)
{
	return end <=
	       ese_log_oldest_needed(log) + (uint64_t)log->config.area.files * ESE_LOG_FILE_BYTES;
}

bool ese_log_short_of_room(const struct ese_log *log)
{
	return !ring_has_room(log, end_after(log, ESE_RECORD_MAX));
}

static bool has_room(const struct ese_log *log, uint64_t end)
{
	return ring_has_room(log, end) && end - log->flushed <= log->config.buffer_bytes;
}

/* ---- who waits ---- */

/* The commits that UP_TO covers, in order. */
static void tell_commits(struct ese_log *log, uint64_t up_to, int status)
{
	struct ese_log_waiter *waiter;

	/* Commits come in the order of their positions but for those of one segment, so the list is
	 * searched to its end only while it is short; it is as long as there are sessions. */
	for (struct ese_log_waiter **at = &log->commits.first; *at;) {
		waiter = *at;
		if (waiter->lgpos > up_to) {
			at = &waiter->next;
			continue;
		}
		waiters_remove(&log->commits, waiter);
		waiter->done(waiter, status);
		at = &log->commits.first; /* done may have changed the list */
	}
}

/* Those who wait now, when any record has room; who finds none after all waits again, behind all
 * others. */
static void tell_room(struct ese_log *log, int status)
{
	struct ese_log_waiter *waiter = log->room.first;
	unsigned count = 0;

	if (!waiter || (status == 0 && !has_room(log, end_after(log, ESE_RECORD_MAX))))
		return;
	for (; waiter; waiter = waiter->next)
		count++;
	for (; count && (waiter = waiters_take(&log->room)); count--)
		waiter->done(waiter, status);
}

void ese_log_progress(struct ese_log *log)
{
	void (*drained)(void *arg, int status) = log->drained;

	if (log->status == 0 && log->config.flushed)
		log->config.flushed(log->config.arg, log->flushed);
	tell_commits(log, log->status ? UINT64_MAX : log->flushed, log->status);
	tell_room(log, log->status);
	if (!drained || log->writing || (log->status == 0 && log->flushed < log->tip))
		return;
	log->drained = NULL;
	drained(log->drained_arg, log->status);
}

static int check_config(const struct ese_log_config *config, struct err *err)
{
	uint64_t ring = (uint64_t)config->area.files * ESE_LOG_FILE_BYTES;
	uint64_t size = config->area.layer->size_bytes;

	if (config->area.files < 4)
		return err_set(err, -EINVAL, "a ring of %u log files is too small: 4 at least",
			       config->area.files);
	if (config->area.ring_offset_bytes > size || ring > size - config->area.ring_offset_bytes)
		return err_set(err, -ERANGE, "the log of %u MiB reaches beyond the volume's end",
			       config->area.files);
	return 0;
}

static void set_defaults(struct ese_log_config *config)
{
	if (!config->start_lgpos)
		config->start_lgpos = ESE_LOG_FILE_BYTES;
	if (!config->needed_lgpos)
		config->needed_lgpos = config->start_lgpos;
	if (!config->buffer_bytes)
		config->buffer_bytes = ESE_LOG_BUFFER_BYTES;
	if (!config->lazy_flush_ns)
		config->lazy_flush_ns = ESE_LAZY_FLUSH_NS;
	if (!config->retry_ns)
		config->retry_ns = ESE_LOG_RETRY_NS;
}

int ese_log_open(const struct ese_log_config *config, struct ese_log **ret_log, struct err *err)
{
	int r = check_config(config, err);
	struct ese_log *log;

	if (r < 0)
		return r;
	log = calloc(1, sizeof *log);
	if (!log)
		return err_set(err, -ENOMEM, "out of memory");
	log->config = *config;
	set_defaults(&log->config);
	assert(log->config.start_lgpos % ESE_SEGMENT_BYTES == 0);
	assert(log->config.buffer_bytes % ESE_SEGMENT_BYTES == 0);
	/* A record and the segment it begins in must fit beside one that is being written. */
	assert(log->config.buffer_bytes >= 2 * ESE_RECORD_MAX + 4 * ESE_SEGMENT_BYTES);
	log->buffer = aligned_alloc(ESE_SEGMENT_BYTES, log->config.buffer_bytes);
	log->coded = malloc(ESE_RECORD_MAX);
	if (!log->buffer || !log->coded) {
		free(log->buffer);
		free(log->coded);
		free(log);
		return err_set(err, -ENOMEM, "out of memory for a log buffer");
	}
	log->tip = log->flushed = log->target = log->config.start_lgpos;
	log->needed = log->config.needed_lgpos;
	for (unsigned i = 0; i < ESE_LOG_HOLDERS; i++)
		log->held[i] = UINT64_MAX;
	waiters_init(&log->commits);
	waiters_init(&log->room);
	ese_log_write_init(log);
	*ret_log = log;
	return 0;
}

struct ese_log *ese_log_close(struct ese_log *log)
{
	if (!log)
		return NULL;
	assert(!log->writing);
	loop_timer_cancel(log->config.loop, &log->gather_timer);
	loop_timer_cancel(log->config.loop, &log->lazy_timer);
	loop_timer_cancel(log->config.loop, &log->retry_timer);
	if (log->status == 0)
		log->status = -ECANCELED;
	tell_commits(log, UINT64_MAX, log->status);
	tell_room(log, log->status);
	free(log->buffer);
	free(log->coded);
	free(log);
	return NULL;
}

/* ---- appending ---- */

static uint8_t *at(struct ese_log *log, uint64_t lgpos)
{
	return log->buffer + lgpos % log->config.buffer_bytes;
}

/* The header of the segment that is being filled is its account until it is sealed. */
static struct ese_segment *open_segment(struct ese_log *log)
{
	return (struct ese_segment *)(void *)at(log, log->tip & ~(uint64_t)(ESE_SEGMENT_BYTES - 1));
}

static void begin_segment(struct ese_log *log)
{
	*open_segment(log) = (struct ese_segment){
	    .lgpos = log->tip,
	    .epoch = log->config.epoch,
	    .used = ESE_SEGMENT_HEADER_BYTES,
	};
	log->tip += ESE_SEGMENT_HEADER_BYTES;
}

/* Padding up to SIZE bytes on; no two places of the log begin alike. */
static void pad(struct ese_log *log, uint32_t size)
{
	ese_fill(at(log, log->tip), size,
		 (log->tip ^ log->config.area.signature) * UINT64_C(0xbf58476d1ce4e5b9));
}

/* FROM NULL: padding. */
static void put(struct ese_log *log, const uint8_t *from, uint32_t size)
{
	while (size) {
		uint32_t room, part;

		if (log->tip % ESE_SEGMENT_BYTES == 0)
			begin_segment(log);
		room = ESE_SEGMENT_BYTES - (uint32_t)(log->tip % ESE_SEGMENT_BYTES);
		part = MIN_OF(room, size);
		if (from)
			memcpy(at(log, log->tip), from, part);
		else
			pad(log, part);
		open_segment(log)->used = (uint16_t)(open_segment(log)->used + part);
		log->tip += part;
		size -= part;
		if (from)
			from += part;
	}
}

void ese_log_pad(struct ese_log *log)
{
	uint32_t off = (uint32_t)(log->tip % ESE_SEGMENT_BYTES);

	if (!off)
		return;
	pad(log, ESE_SEGMENT_BYTES - off);
	log->tip += ESE_SEGMENT_BYTES - off;
}

static int refuse(struct ese_log *log, uint64_t end)
{
	if (!ring_has_room(log, end))
		log->counters.waits_ring++;
	else
		log->counters.waits_buffer++;
	/* Pages can be written, and a checkpoint taken, only behind the log. */
	ese_log_flush(log, log->tip);
	return -EAGAIN;
}

int ese_log_append(struct ese_log *log, const struct ese_record *record, uint64_t *ret_first,
		   uint64_t *ret_end)
{
	uint32_t bytes = ese_record_bytes(record), coded;
	uint64_t end = end_after(log, bytes);
	struct ese_segment *segment;

	if (log->status < 0)
		return log->status;
	if (!has_room(log, end))
		return refuse(log, end);
	coded = ese_record_encode(record, log->coded);
	if (log->tip % ESE_SEGMENT_BYTES == 0)
		begin_segment(log);
	segment = open_segment(log);
	if (!segment->first_record)
		segment->first_record = (uint16_t)(log->tip % ESE_SEGMENT_BYTES);
	*ret_first = log->tip;
	put(log, log->coded, coded);
	put(log, NULL, bytes - coded);
	*ret_end = log->tip;
	log->counters.records++;
	log->counters.record_bytes += bytes;
	if (!loop_timer_pending(&log->lazy_timer) && !log->lazy_due)
		loop_timer_set(log->config.loop, &log->lazy_timer,
			       loop_now_ns(log->config.loop) + log->config.lazy_flush_ns);
	if (log->tip - log->flushed >= log->config.buffer_bytes / 2)
		ese_log_kick(log);
	return 0;
}

int ese_log_put(struct ese_log *log, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct ese_segment segment;

	if (log->status < 0)
		return log->status;
	if (lgpos != log->tip || lgpos % ESE_SEGMENT_BYTES)
		return -ESTALE;
	if (!has_room(log, lgpos + bytes))
		return refuse(log, lgpos + bytes);
	for (uint32_t off = 0; off < bytes; off += ESE_SEGMENT_BYTES)
		if (ese_segment_parse((const uint8_t *)segments + off, log->config.area.signature,
				      lgpos + off, &segment) < 0)
			return -EBADMSG;
	for (uint32_t off = 0; off < bytes; off += ESE_SEGMENT_BYTES) {
		uint8_t *to = at(log, lgpos + off);

		/* To be sealed again with the writes of this log. */
		memcpy(to, (const uint8_t *)segments + off, ESE_SEGMENT_BYTES);
		ese_segment_parse(to, log->config.area.signature, lgpos + off, &segment);
		memcpy(to, &segment, sizeof segment);
		log->epoch_seen = MAX_OF(log->epoch_seen, segment.epoch);
	}
	log->tip += bytes;
	ese_log_flush(log, log->tip);
	return 0;
}

uint32_t ese_log_lead(struct ese_log *log)
{
	log->config.epoch = MAX_OF(log->config.epoch, log->epoch_seen + 1);
	return log->config.epoch;
}

uint64_t ese_log_oldest(const struct ese_log *log)
{
	return log->needed / ESE_LOG_FILE_BYTES * ESE_LOG_FILE_BYTES;
}

void ese_log_set_stream(struct ese_log *log, struct stream *stream)
{
	log->config.stream = stream;
}

uint64_t ese_log_next_segment(const struct ese_log *log)
{
	return round_up_u64(log->tip, ESE_SEGMENT_BYTES);
}

void ese_log_wait_room(struct ese_log *log, struct ese_log_waiter *waiter)
{
	waiter->lgpos = 0;
	waiters_add(&log->room, waiter);
}

void ese_log_forget(struct ese_log *log, struct ese_log_waiter *waiter)
{
	waiters_remove(&log->room, waiter);
	waiters_remove(&log->commits, waiter);
}

/* ---- committing ---- */

void ese_log_commit(struct ese_log *log, uint64_t lgpos, struct ese_log_waiter *waiter)
{
	uint64_t now_ns;

	if (!waiter) {
		log->counters.commits_lazy++;
		return;
	}
	log->counters.commits_durable++;
	if (log->status < 0 || lgpos <= log->flushed) {
		waiter->done(waiter, lgpos <= log->flushed ? 0 : log->status);
		return;
	}
	waiter->lgpos = lgpos;
	waiters_add(&log->commits, waiter);
	if (lgpos <= log->target) /* on its way */
		return;
	now_ns = loop_now_ns(log->config.loop);
	if (log->want_durable <= log->target)
		log->gather_until_ns = now_ns + log->config.gather_ns;
	log->want_durable = MAX_OF(log->want_durable, lgpos);
	ese_log_kick(log);
}

void ese_log_flush(struct ese_log *log, uint64_t lgpos)
{
	log->want_now = MAX_OF(log->want_now, MIN_OF(lgpos, log->tip));
	ese_log_kick(log);
}

void ese_log_drain(struct ese_log *log, void (*done)(void *arg, int status), void *arg)
{
	assert(!log->drained);
	log->drained = done;
	log->drained_arg = arg;
	ese_log_flush(log, log->tip);
	if (log->drained && !log->writing)
		ese_log_progress(log);
}

void ese_log_halt(struct ese_log *log, void (*done)(void *arg, int status), void *arg)
{
	assert(!log->drained);
	if (log->status == 0)
		log->status = -ECANCELED;
	loop_timer_cancel(log->config.loop, &log->gather_timer);
	loop_timer_cancel(log->config.loop, &log->lazy_timer);
	if (loop_timer_pending(&log->retry_timer)) {
		loop_timer_cancel(log->config.loop, &log->retry_timer);
		log->writing = false;
	}
	log->drained = done;
	log->drained_arg = arg;
	if (!log->writing)
		ese_log_progress(log);
}

/* ---- what others ask ---- */

uint64_t ese_log_tip(const struct ese_log *log)
{
	uint64_t tip = log->tip;

	return tip % ESE_SEGMENT_BYTES ? tip : tip + ESE_SEGMENT_HEADER_BYTES;
}

uint64_t ese_log_flushed(const struct ese_log *log)
{
	return log->flushed;
}

int ese_log_status(const struct ese_log *log)
{
	return log->status;
}

const struct ese_log_counters *ese_log_counters(const struct ese_log *log)
{
	return &log->counters;
}

void ese_log_checkpoint_at(struct ese_log *log, uint64_t lgpos)
{
	uint64_t before = ese_log_oldest_needed(log);

	log->needed = MAX_OF(log->needed, lgpos);
	if (ese_log_oldest_needed(log) > before)
		tell_room(log, log->status);
}

void ese_log_hold(struct ese_log *log, unsigned holder, uint64_t lgpos)
{
	uint64_t before = ese_log_oldest_needed(log);

	assert(holder < ESE_LOG_HOLDERS);
	log->held[holder] = lgpos;
	if (ese_log_oldest_needed(log) > before)
		tell_room(log, log->status);
}
