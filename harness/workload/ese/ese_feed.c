/* SPDX-License-Identifier: MIT
 *
 * Log replication in file mode, as the volume of the active copy sees it: every log file that is
 * complete is read once for each other copy, first its header, then 256 KiB each.  What is still to
 * be read is not overwritten.
 */
#include <assert.h>

#include "harness/workload/ese/ese_server_impl.h"

#define HEADER_NEXT UINT64_MAX

static void go_on(struct ese_feed *feed);

static unsigned passes(const struct ese_feed *feed)
{
	return (unsigned)feed->db->server->config->copies - 1;
}

/* What is read must be the log, segment by segment. */
static void check(struct ese_feed *feed, uint64_t lgpos)
{
	struct ese_server_db *db = feed->db;
	const struct ese_log_area *area = ese_db_log_area(db->db);
	const struct ese_server_setup *setup = &db->server->setup;

	for (uint64_t at = 0; at < feed->io.length_bytes; at += ESE_SEGMENT_BYTES) {
		struct ese_segment segment;
		struct mismatch mismatch = {
		    .kind = MISMATCH_CORRUPT,
		    .host = setup->host,
		    .volume = db->place.log->volume,
		    .offset_bytes = feed->io.offset_bytes + at,
		    .at_ns = loop_now_ns(db->server->loop),
		};

		if (ese_segment_parse(feed->buf->data + at, area->signature, lgpos + at,
				      &segment) == 0)
			continue;
		setup->check->mismatches[MISMATCH_CORRUPT]++;
		if (setup->env->mismatch)
			setup->env->mismatch(setup->env->arg, &mismatch);
	}
}

static uint64_t lgpos_of(const struct ese_feed *feed)
{
	return feed->generation * ESE_LOG_FILE_BYTES +
	       (feed->offset_bytes == HEADER_NEXT ? 0 : feed->offset_bytes);
}

static void advance(struct ese_feed *feed)
{
	feed->offset_bytes =
	    feed->offset_bytes == HEADER_NEXT ? 0 : feed->offset_bytes + feed->io.length_bytes;
	if (feed->offset_bytes < ESE_LOG_FILE_BYTES)
		return;
	feed->offset_bytes = HEADER_NEXT;
	if (++feed->pass < passes(feed))
		return;
	feed->pass = 0;
	feed->generation++;
}

static void ended(struct io *io)
{
	struct ese_feed *feed = io->owner;
	struct ese_server_db *db = feed->db;
	struct ese_server *server = db->server;

	stream_account(&db->place.streams[ESE_LOG_READ], feed->submitted_ns, feed->submitted_ns,
		       loop_now_ns(server->loop), io->length_bytes, io->status);
	if (io->status == 0 && server->config->content == ESE_VERIFIED)
		check(feed, lgpos_of(feed));
	feed->busy = false;
	advance(feed);
	if (feed->running)
		loop_task_queue(server->loop, &feed->task);
	ese_server_unbusy(server);
}

static void submit(struct ese_feed *feed)
{
	struct ese_server_db *db = feed->db;
	uint64_t bytes = feed->offset_bytes == HEADER_NEXT ? ESE_SEGMENT_BYTES : ESE_LOG_WRITE_MAX;

	feed->iov = (struct iovec){feed->buf->data, bytes};
	feed->io = (struct io){
	    .op = IO_READ,
	    .flags = db->server->config->content == ESE_NO_CONTENT ? IO_BLIND : 0,
	    .offset_bytes = ese_log_offset(ese_db_log_area(db->db), lgpos_of(feed)),
	    .length_bytes = bytes,
	    .iov = &feed->iov,
	    .iov_count = 1,
	    .done = ended,
	    .owner = feed,
	};
	feed->busy = true;
	feed->submitted_ns = loop_now_ns(db->server->loop);
	db->server->busy++;
	stream_begin(&db->place.streams[ESE_LOG_READ], feed->submitted_ns);
	io_submit(db->place.log->layer, &feed->io);
}

static void go_on(struct ese_feed *feed)
{
	struct ese_log *log = ese_db_log(feed->db->db);

	if (feed->busy || !feed->running || !log)
		return;
	if (feed->generation > feed->closed) {
		ese_log_hold(log, 0, UINT64_MAX);
		return;
	}
	ese_log_hold(log, 0, feed->generation * ESE_LOG_FILE_BYTES);
	submit(feed);
}

static void posted(void *arg)
{
	go_on(arg);
}

void ese_feed_open(struct ese_feed *feed, struct ese_server_db *db)
{
	feed->db = db;
	loop_task_init(&feed->task, posted, feed);
}

void ese_feed_close(struct ese_feed *feed)
{
	assert(!feed->busy);
	if (feed->db)
		loop_task_cancel(feed->db->server->loop, &feed->task);
	feed->buf = buf_unref(feed->buf);
}

void ese_feed_start(struct ese_feed *feed)
{
	const struct ese_config *config = feed->db->server->config;

	/* Copies that are there read for themselves (ese_copy.h). */
	if (config->replication != ESE_REPLICATE_FILE || config->copies < 2 || feed->running ||
	    feed->db->place.copied || feed->db->place.copy_of)
		return;
	if (!feed->buf)
		feed->buf = buf_new(feed->db->server->buffers, ESE_LOG_WRITE_MAX);
	if (!feed->buf)
		return;
	feed->generation = ese_log_tip(ese_db_log(feed->db->db)) / ESE_LOG_FILE_BYTES;
	feed->closed = 0;
	feed->pass = 0;
	feed->offset_bytes = HEADER_NEXT;
	feed->running = true;
}

void ese_feed_stop(struct ese_feed *feed)
{
	struct ese_log *log = feed->running ? ese_db_log(feed->db->db) : NULL;

	feed->running = false;
	loop_task_cancel(feed->db->server->loop, &feed->task);
	if (log)
		ese_log_hold(log, 0, UINT64_MAX);
}

void ese_feed_closed(struct ese_feed *feed, uint64_t generation)
{
	if (!feed->running)
		return;
	feed->closed = MAX_OF(feed->closed, generation);
	if (!feed->busy)
		loop_task_queue(feed->db->server->loop, &feed->task);
}
