/* SPDX-License-Identifier: MIT
 *
 * Where and how long the I/Os of each stream are.
 *
 * Reads and writes of the database fall uniformly on its used pages (Jetstress' keys are random,
 * and the cache holds too little of a database to matter); a small share of the writes extends
 * it.  The log is one writer around a ring of files; each closed file is read once for every
 * other copy.  Maintenance walks the database in batches and leaves out pages in flight, as ESE
 * leaves out pages that are in its cache.
 */
#include "harness/workload/exchange.h"

enum {
	PLACE_TRIES = 64, /* draws until pages are found that nobody else has in flight */
	BDM_BATCH_TRIES = 4,
};

static void begin(struct exchange_stream *stream, struct exchange_io *xio, uint64_t intended_ns)
{
	xio->stream = stream;
	xio->intended_ns = intended_ns;
	stream_begin(stream->stream, intended_ns);
}

/* COUNT unlocked pages somewhere in the used part; false when none were found. */
static bool pick(struct exchange_stream *stream, uint32_t count, uint64_t *ret_first)
{
	struct exchange_db *db = stream->db;

	for (unsigned i = 0; i < PLACE_TRIES; i++) {
		uint64_t first = rng_below(&stream->place, db->used_pages - count + 1);

		if (page_set_free_run(&db->pages.set, first, count) == count) {
			*ret_first = first;
			return true;
		}
	}
	return false;
}

static bool issue_db_read(struct exchange_stream *stream, uint64_t intended_ns)
{
	struct exchange_db *db = stream->db;
	const struct exchange_profile *profile = db->exchange->rates.profile;
	uint32_t count =
	    exchange_run_length(&stream->place, profile->read_continuation, (uint32_t)PAGES_PER_IO);
	struct exchange_io *xio;
	uint64_t first;

	if (!pick(stream, count, &first))
		return false;
	xio = exchange_io_get(db, &db->pages, count * EXCHANGE_PAGE_BYTES);
	if (!xio)
		return false;
	begin(stream, xio, intended_ns);
	exchange_submit(xio, IO_READ, first, count);
	return true;
}

static bool issue_db_write(struct exchange_stream *stream, uint64_t intended_ns)
{
	struct exchange_db *db = stream->db;
	const struct exchange_profile *profile = db->exchange->rates.profile;
	uint32_t count = exchange_run_length(&stream->place, profile->write_continuation,
					     (uint32_t)PAGES_PER_IO);
	bool grows = rng_unit(&stream->place) < profile->growth_share &&
		     db->used_pages + count <= db->pages.set.pages;
	uint64_t first = db->used_pages;
	struct exchange_io *xio;

	if (!grows && !pick(stream, count, &first))
		return false;
	xio = exchange_io_get(db, &db->pages, count * EXCHANGE_PAGE_BYTES);
	if (!xio)
		return false;
	if (grows)
		db->used_pages += count;
	begin(stream, xio, intended_ns);
	exchange_submit(xio, IO_WRITE, first, count);
	return true;
}

static bool issue_log_write(struct exchange_stream *stream, uint64_t intended_ns)
{
	struct exchange_db *db = stream->db;
	uint64_t ring = db->log.set.pages, first = db->log_next;
	uint32_t wanted, count;
	struct exchange_io *xio;

	/* A reader of the file that is to be overwritten goes first. */
	if (page_set_free_run(&db->log.set, first, MIN_OF(SEGMENTS_PER_IO, ring - first)) <
	    MIN_OF(SEGMENTS_PER_IO, ring - first))
		return false;
	xio = exchange_io_get(db, &db->log, EXCHANGE_IO_BYTES_MAX);
	if (!xio)
		return false;
	wanted = db->log_carried + exchange_run_length(&stream->place,
						       db->exchange->rates.log_continuation,
						       (uint32_t)SEGMENTS_PER_IO);
	/* What does not fit before the end of the ring goes with the next write. */
	count = (uint32_t)MIN_OF(MIN_OF(wanted, SEGMENTS_PER_IO), ring - first);
	db->log_carried = wanted - count;
	db->log_next = (first + count) % ring;
	begin(stream, xio, intended_ns);
	exchange_submit(xio, IO_WRITE, first, count);
	return true;
}

void exchange_log_written(struct exchange_io *xio)
{
	struct exchange_db *db = xio->db;
	struct exchange_stream *reader = &db->streams[LOG_READ];

	db->files_closed +=
	    (xio->first + xio->count) / SEGMENTS_PER_FILE - xio->first / SEGMENTS_PER_FILE;
	if (reader->stream && !db->exchange->stopping)
		exchange_pump(reader);
}

/* The next 256 KiB of the oldest closed file that has not been read by every other copy. */
static bool issue_log_read(struct exchange_stream *stream, uint64_t intended_ns)
{
	struct exchange_db *db = stream->db;
	uint64_t files = db->log.set.pages / SEGMENTS_PER_FILE, first;
	struct exchange_io *xio;

	if (db->file_reading < db->files_closed && db->files_closed - db->file_reading >= files) {
		/* The writer has come round: what is left of that file cannot be read any more. */
		db->log_reads_skipped += db->files_closed - files + 1 - db->file_reading;
		db->file_reading = db->files_closed - files + 1;
		db->file_pass = 0;
		db->file_segment = 0;
	}
	if (db->file_reading >= db->files_closed)
		return false;
	first = db->file_reading % files * SEGMENTS_PER_FILE + db->file_segment;
	if (page_set_free_run(&db->log.set, first, SEGMENTS_PER_IO) < SEGMENTS_PER_IO)
		return false;
	xio = exchange_io_get(db, &db->log, EXCHANGE_IO_BYTES_MAX);
	if (!xio)
		return false;
	db->file_segment += (uint32_t)SEGMENTS_PER_IO;
	if (db->file_segment == SEGMENTS_PER_FILE) {
		db->file_segment = 0;
		if (++db->file_pass == db->exchange->rates.copies - 1) {
			db->file_pass = 0;
			db->file_reading++;
		}
	}
	begin(stream, xio, intended_ns);
	exchange_submit(xio, IO_READ, first, (uint32_t)SEGMENTS_PER_IO);
	return true;
}

static bool issue_bdm_read(struct exchange_stream *stream, uint64_t intended_ns)
{
	struct exchange_db *db = stream->db;

	for (unsigned i = 0; i < BDM_BATCH_TRIES; i++) {
		uint64_t first = db->bdm_next < db->used_pages ? db->bdm_next : 0;
		uint64_t end = MIN_OF(first + PAGES_PER_IO, db->used_pages);
		struct exchange_io *xio;
		uint32_t count;

		db->bdm_next = end;
		while (first < end && page_set_free_run(&db->pages.set, first, 1) == 0)
			first++;
		if (first == end)
			continue;
		count = (uint32_t)page_set_free_run(&db->pages.set, first, end - first);
		xio = exchange_io_get(db, &db->pages, count * EXCHANGE_PAGE_BYTES);
		if (!xio)
			return false;
		begin(stream, xio, intended_ns);
		exchange_submit(xio, IO_READ, first, count);
		return true;
	}
	return false;
}

bool (*const exchange_issue[EXCHANGE_KINDS])(struct exchange_stream *stream,
					     uint64_t intended_ns) = {
    [DB_READ] = issue_db_read,	 [DB_WRITE] = issue_db_write, [LOG_WRITE] = issue_log_write,
    [BDM_READ] = issue_bdm_read, [LOG_READ] = issue_log_read,
};
