/* SPDX-License-Identifier: MIT
 *
 * The log reader: chunks of 256 KiB within files, one read at a time; segments are judged first,
 * then the records in them put together.
 */
#include "harness/workload/ese/ese_log_read.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

enum {
	CHUNK_BYTES = ESE_LOG_WRITE_MAX,
	/* A write that began behind the gap begins at most a whole write behind it. */
	LOOK_BEYOND_BYTES = 2 * ESE_LOG_WRITE_MAX,
};

/* The record that is being put together. */
struct assembly {
	uint64_t first_lgpos;
	uint32_t have;	       /* bytes of it taken, padding included */
	uint32_t bytes, coded; /* 0 until its header is complete */
	uint8_t *data;	       /* ESE_RECORD_MAX */
};

struct ese_log_reader {
	struct ese_log_read_config config;
	struct ese_log_read_result result;
	struct assembly record;
	struct ese_record decoded;
	struct ese_slots slots;
	uint8_t *chunk;
	uint64_t chunk_lgpos;
	uint32_t chunk_bytes;
	uint32_t valid_bytes;  /* of the chunk: segments to take records from */
	uint64_t cursor;       /* next byte to take */
	uint64_t gap_lgpos;    /* the first segment that is not valid; 0: none yet */
	uint32_t epoch;	       /* of the segments judged so far */
	uint32_t parsed_epoch; /* of the segment that records were last taken from */
	bool reading, paused, stopped, synced, finished;
	bool advancing, again; /* a read may end within its submit */
	uint64_t submitted_ns;
	struct io io;
	struct iovec iov;
};

static void advance(struct ese_log_reader *reader);

/* Notes how it ends; `advance` says so as the last thing it does. */
static void finish(struct ese_log_reader *reader, enum ese_log_end end, int status)
{
	reader->result.end = end;
	reader->result.status = status;
	reader->finished = true;
}

/* ---- reading ---- */

static void read_chunk(struct ese_log_reader *reader, uint64_t lgpos)
{
	uint64_t end = (lgpos / CHUNK_BYTES + 1) * CHUNK_BYTES;

	if (reader->config.until_lgpos && !reader->gap_lgpos)
		end = MIN_OF(end, round_up_u64(reader->config.until_lgpos, ESE_SEGMENT_BYTES));
	reader->chunk_lgpos = lgpos;
	reader->chunk_bytes = (uint32_t)(end - lgpos);
	reader->valid_bytes = 0;
	reader->iov = (struct iovec){reader->chunk, reader->chunk_bytes};
	reader->io.offset_bytes = ese_log_offset(&reader->config.area, lgpos);
	reader->io.length_bytes = reader->chunk_bytes;
	reader->reading = true;
	reader->submitted_ns = loop_now_ns(reader->config.loop);
	if (reader->config.stream)
		stream_begin(reader->config.stream, reader->submitted_ns);
	io_submit(reader->config.area.layer, &reader->io);
}

/* Takes what follows without a gap; returns where the rest of the chunk begins. */
static uint32_t judge_segments(struct ese_log_reader *reader)
{
	uint32_t off = 0;

	for (; off < reader->chunk_bytes; off += ESE_SEGMENT_BYTES) {
		struct ese_segment segment;
		uint64_t lgpos = reader->chunk_lgpos + off;

		if (ese_segment_parse(reader->chunk + off, reader->config.area.signature, lgpos,
				      &segment) < 0 ||
		    segment.epoch < reader->epoch) {
			reader->gap_lgpos = lgpos;
			break;
		}
		reader->epoch = segment.epoch;
		reader->result.epoch = MAX_OF(reader->result.epoch, segment.epoch);
		reader->result.segments++;
	}
	return off;
}

/* Behind the gap: true when there is a write that began after the gap's must have ended. */
static bool gap_is_damage(struct ese_log_reader *reader, uint32_t off)
{
	bool damage = false;

	for (; off < reader->chunk_bytes; off += ESE_SEGMENT_BYTES) {
		struct ese_segment segment;
		uint64_t lgpos = reader->chunk_lgpos + off;

		if (ese_segment_parse(reader->chunk + off, reader->config.area.signature, lgpos,
				      &segment) < 0)
			continue;
		reader->result.epoch = MAX_OF(reader->result.epoch, segment.epoch);
		if (segment.epoch >= reader->epoch &&
		    lgpos - (uint64_t)segment.write_back * ESE_SEGMENT_BYTES > reader->gap_lgpos)
			damage = true;
	}
	return damage;
}

static void read_ended(struct io *io)
{
	struct ese_log_reader *reader = io->owner;
	uint64_t now_ns = loop_now_ns(reader->config.loop);

	reader->reading = false;
	if (reader->config.stream)
		stream_account(reader->config.stream, reader->submitted_ns, reader->submitted_ns,
			       now_ns, io->length_bytes, io->status);
	if (io->status < 0) {
		finish(reader, ESE_LOG_END_ERROR, io->status);
		advance(reader);
		return;
	}
	reader->result.reads++;
	reader->result.read_bytes += io->length_bytes;
	if (!reader->gap_lgpos) {
		reader->valid_bytes = judge_segments(reader);
		reader->result.next_lgpos = reader->chunk_lgpos + reader->valid_bytes;
		if (reader->valid_bytes && reader->config.segments)
			reader->config.segments(reader->config.arg, reader->chunk_lgpos,
						reader->chunk, reader->valid_bytes);
	}
	advance(reader);
}

/* ---- records ---- */

static void begin_record(struct assembly *record, uint64_t lgpos)
{
	record->first_lgpos = lgpos;
	record->have = record->bytes = record->coded = 0;
}

/* Takes bytes of one segment; returns how many, or -EBADMSG. */
static int take(struct assembly *record, const uint8_t *from, uint32_t size, uint64_t lgpos)
{
	uint32_t want, part;

	if (record->have == 0)
		begin_record(record, lgpos);
	want = record->have < ESE_RECORD_HEADER_BYTES ? ESE_RECORD_HEADER_BYTES
	       : record->have < record->coded	      ? record->coded
						      : record->bytes;
	part = MIN_OF(want - record->have, size);
	/* Padding is counted only. */
	if (record->have < ESE_RECORD_HEADER_BYTES || record->have < record->coded)
		memcpy(record->data + record->have, from, part);
	record->have += part;
	if (record->have == ESE_RECORD_HEADER_BYTES && record->bytes == 0 &&
	    ese_record_peek(record->data, &record->bytes, &record->coded) < 0)
		return -EBADMSG;
	return (int)part;
}

/* Where to go on at the begin of a segment: a record that another epoch cut off is dropped. */
static void enter_segment(struct ese_log_reader *reader, const struct ese_segment *segment,
			  uint32_t last_epoch)
{
	bool begins = !reader->synced || segment->epoch != last_epoch;

	if (!begins) {
		reader->cursor += ESE_SEGMENT_HEADER_BYTES;
		return;
	}
	reader->record.have = 0;
	reader->synced = segment->first_record != 0;
	reader->cursor += segment->first_record ? segment->first_record : ESE_SEGMENT_BYTES;
}

/* A whole record: hands it out.  Negative: not one. */
static int hand_out(struct ese_log_reader *reader)
{
	struct assembly *record = &reader->record;
	int r = ese_record_decode(record->data, record->coded, &reader->decoded, &reader->slots);

	if (r < 0)
		return r;
	record->have = 0;
	reader->result.records++;
	reader->result.end_lgpos = reader->cursor;
	if (reader->config.record && !reader->config.record(reader->config.arg, &reader->decoded,
							    record->first_lgpos, reader->cursor))
		reader->paused = true;
	return 0;
}

static int parse_segment(struct ese_log_reader *reader, uint64_t start)
{
	const uint8_t *bytes = reader->chunk + (start - reader->chunk_lgpos);
	struct ese_segment segment;
	uint64_t end;

	/* Judged already; its fields are needed again. */
	if (ese_segment_parse(bytes, reader->config.area.signature, start, &segment) < 0)
		return -EBADMSG;
	if (reader->cursor == start)
		enter_segment(reader, &segment, reader->parsed_epoch);
	reader->parsed_epoch = segment.epoch;
	end = start + segment.used;
	while (reader->cursor < end && !reader->paused) {
		int part = take(&reader->record, bytes + (reader->cursor - start),
				(uint32_t)(end - reader->cursor), reader->cursor);

		if (part < 0)
			return part;
		reader->cursor += (uint32_t)part;
		if (reader->record.bytes && reader->record.have == reader->record.bytes) {
			int r = hand_out(reader);

			if (r < 0)
				return r;
		}
	}
	if (!reader->paused || reader->cursor >= end)
		reader->cursor = start + ESE_SEGMENT_BYTES;
	return 0;
}

/* Records of the chunk's valid part, until it is used up or the consumer wants a pause. */
static int parse(struct ese_log_reader *reader)
{
	uint64_t end = reader->chunk_lgpos + reader->valid_bytes;
	uint64_t until = reader->config.until_lgpos ? reader->config.until_lgpos : UINT64_MAX;
	int r = 0;

	if (!reader->valid_bytes) /* behind the gap */
		return 0;
	while (r == 0 && !reader->paused && reader->cursor < MIN_OF(end, until))
		r = parse_segment(reader, reader->cursor & ~(uint64_t)(ESE_SEGMENT_BYTES - 1));
	return r;
}

/* The chunk is used up: on to the next one, or the end. */
static void next_chunk(struct ese_log_reader *reader)
{
	uint64_t end = reader->chunk_lgpos + reader->chunk_bytes;

	if (reader->gap_lgpos) {
		uint64_t beyond = MAX_OF(reader->gap_lgpos, reader->chunk_lgpos);

		if (gap_is_damage(reader, (uint32_t)(beyond - reader->chunk_lgpos)))
			finish(reader, ESE_LOG_END_CORRUPT, -EBADMSG);
		else if (end >= reader->gap_lgpos + LOOK_BEYOND_BYTES)
			finish(reader, ESE_LOG_END_REACHED, 0);
		else
			read_chunk(reader, end);
		return;
	}
	if (reader->config.until_lgpos && end >= reader->config.until_lgpos)
		finish(reader, ESE_LOG_END_UNTIL, 0);
	else
		read_chunk(reader, end);
}

static void step(struct ese_log_reader *reader)
{
	int r = parse(reader);

	if (r < 0)
		finish(reader, ESE_LOG_END_CORRUPT, r);
	else if (!reader->paused)
		next_chunk(reader);
}

/* Goes on with what has been read; the reader may be gone afterwards. */
static void advance(struct ese_log_reader *reader)
{
	reader->again = true;
	if (reader->advancing)
		return;
	reader->advancing = true;
	while (reader->again && !reader->finished) {
		reader->again = false;
		if (reader->stopped)
			finish(reader, ESE_LOG_END_STOPPED, -ECANCELED);
		else
			step(reader);
	}
	reader->advancing = false;
	if (reader->finished && !reader->reading)
		reader->config.ended(reader->config.arg, &reader->result);
}

/* ---- life ---- */

int ese_log_reader_new(const struct ese_log_read_config *config, struct ese_log_reader **ret_reader,
		       struct err *err)
{
	struct ese_log_reader *reader = calloc(1, sizeof *reader);

	if (!reader)
		return err_set(err, -ENOMEM, "out of memory");
	reader->config = *config;
	reader->chunk = aligned_alloc(ESE_SEGMENT_BYTES, CHUNK_BYTES);
	reader->record.data = malloc(ESE_RECORD_MAX);
	if (!reader->chunk || !reader->record.data) {
		ese_log_reader_free(reader);
		return err_set(err, -ENOMEM, "out of memory");
	}
	reader->io = (struct io){
	    .op = IO_READ,
	    .iov = &reader->iov,
	    .iov_count = 1,
	    .done = read_ended,
	    .owner = reader,
	};
	reader->cursor = config->from_lgpos;
	reader->result.end_lgpos = config->from_lgpos;
	reader->result.next_lgpos = config->from_lgpos;
	reader->synced = config->from_lgpos % ESE_SEGMENT_BYTES != 0;
	*ret_reader = reader;
	return 0;
}

void ese_log_reader_start(struct ese_log_reader *reader)
{
	read_chunk(reader, reader->cursor & ~(uint64_t)(ESE_SEGMENT_BYTES - 1));
}

void ese_log_reader_resume(struct ese_log_reader *reader)
{
	if (!reader->paused || reader->finished)
		return;
	reader->paused = false;
	advance(reader);
}

void ese_log_reader_stop(struct ese_log_reader *reader)
{
	if (reader->stopped || reader->finished)
		return;
	reader->stopped = true;
	if (!reader->reading)
		advance(reader);
}

struct ese_log_reader *ese_log_reader_free(struct ese_log_reader *reader)
{
	if (!reader)
		return NULL;
	assert(!reader->reading);
	free(reader->chunk);
	free(reader->record.data);
	free(reader);
	return NULL;
}
