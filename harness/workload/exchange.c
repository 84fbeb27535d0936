/* SPDX-License-Identifier: MIT
 *
 * The Exchange workload: arrivals, the life of one I/O, and open/start/stop.
 */
#include "harness/workload/exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define RETRY_NS       NS_PER_MS
#define POOL_LIMIT_MAX (1 * GIB)
#define DATABASE_MIN   (2 * MIB)

static const char *const kind_names[EXCHANGE_KINDS] = {
    [DB_READ] = "db-read",   [DB_WRITE] = "db-write", [LOG_WRITE] = "log-write",
    [BDM_READ] = "bdm-read", [LOG_READ] = "log-read",
};

/* ---- one I/O ---- */

struct exchange_io *exchange_io_get(struct exchange_db *db, struct exchange_part *part,
				    uint64_t bytes)
{
	struct exchange *exchange = db->exchange;
	struct exchange_io *xio = exchange->free_ios;
	struct buf *buf;

	if (!xio)
		return NULL;
	buf = buf_new(exchange->pool, bytes);
	if (!buf)
		return NULL;
	exchange->free_ios = xio->next;
	xio->db = db;
	xio->part = part;
	xio->stream = NULL;
	xio->buf = buf;
	return xio;
}

void exchange_io_put(struct exchange_io *xio)
{
	struct exchange *exchange = xio->db->exchange;

	buf_unref(xio->buf);
	xio->next = exchange->free_ios;
	exchange->free_ios = xio;
}

static void io_ended(struct io *io)
{
	struct exchange_io *xio = io->owner;
	struct exchange *exchange = xio->db->exchange;
	struct exchange_stream *stream = xio->stream;

	exchange->in_flight--;
	if (!stream) {
		exchange_bulk_ended(xio);
	} else {
		stream_account(stream->stream, xio->intended_ns, xio->submitted_ns,
			       loop_now_ns(exchange->env.loop), io->length_bytes, io->status);
		exchange_settle(xio);
		if (stream == &xio->db->streams[LOG_WRITE])
			exchange_log_written(xio);
		exchange_io_put(xio);
		if (!exchange->stopping)
			exchange_pump(stream);
	}
	if (exchange->stopping && exchange->in_flight == 0 && exchange->drained) {
		workload_fn drained = exchange->drained;

		exchange->drained = NULL;
		drained(exchange->drained_arg, 0);
	}
}

static void fill(struct exchange_io *xio)
{
	struct exchange_part *part = xio->part;

	for (uint32_t i = 0; i < xio->count; i++) {
		uint64_t page = xio->first + i;
		uint64_t generation = page_set_write_begin(&part->set, page);

		if (xio->db->exchange->config.content == EXCHANGE_CONTENT_VERIFIED)
			page_fill(&part->area, xio->buf->data + (size_t)i * part->page_bytes, page,
				  generation);
	}
}

void exchange_submit(struct exchange_io *xio, enum io_op op, uint64_t first, uint32_t count)
{
	struct exchange_part *part = xio->part;
	struct exchange *exchange = xio->db->exchange;
	uint64_t bytes = (uint64_t)count * part->page_bytes;

	assert(bytes <= xio->buf->size_bytes);
	xio->first = first;
	xio->count = count;
	xio->iov = (struct iovec){.iov_base = xio->buf->data, .iov_len = bytes};
	xio->io = (struct io){
	    .op = op,
	    .offset_bytes = part->base_bytes + first * part->page_bytes,
	    .length_bytes = bytes,
	    .iov = &xio->iov,
	    .iov_count = 1,
	    .done = io_ended,
	    .owner = xio,
	};
	if (op == IO_WRITE && part == &xio->db->log && exchange->config.log_fua)
		xio->io.flags = IO_FUA;
	if (op == IO_READ && exchange->config.content == EXCHANGE_CONTENT_NONE)
		xio->io.flags = IO_BLIND;
	page_set_lock(&part->set, first, count);
	if (op == IO_WRITE)
		fill(xio);
	exchange->in_flight++;
	xio->submitted_ns = loop_now_ns(exchange->env.loop);
	io_submit(xio->db->device->layer, &xio->io);
}

static void check_page(struct exchange_io *xio, uint32_t index)
{
	struct exchange *exchange = xio->db->exchange;
	struct exchange_part *part = xio->part;
	uint64_t page = xio->first + index, found;
	struct page_expect expect;
	int kind;

	page_set_expect(&part->set, page, &expect);
	kind = page_verify(&part->area, xio->buf->data + (size_t)index * part->page_bytes, page,
			   &expect, &found);
	if (kind < 0)
		return;
	exchange->base.check.mismatches[kind]++;
	if (exchange->env.mismatch) {
		struct mismatch mismatch = {
		    .kind = (enum mismatch_kind)kind,
		    .host = xio->db->device->host,
		    .volume = xio->db->device->volume,
		    .offset_bytes = part->base_bytes + page * part->page_bytes,
		    .at_ns = loop_now_ns(exchange->env.loop),
		    .expected_generation = expect.high,
		    .found_generation = found,
		};

		exchange->env.mismatch(exchange->env.arg, &mismatch);
	}
}

void exchange_settle(struct exchange_io *xio)
{
	struct workload_check *check = &xio->db->exchange->base.check;
	struct page_set *set = &xio->part->set;

	if (xio->io.op == IO_WRITE) {
		uint64_t before = set->written;

		for (uint32_t i = 0; i < xio->count; i++)
			page_set_write_end(set, xio->first + i, xio->io.status >= 0);
		if (xio->db->exchange->config.content == EXCHANGE_CONTENT_VERIFIED)
			check->pages_written += set->written - before;
	} else if (xio->io.status >= 0 &&
		   xio->db->exchange->config.content == EXCHANGE_CONTENT_VERIFIED) {
		for (uint32_t i = 0; i < xio->count; i++)
			check_page(xio, i);
		if (xio->stream)
			check->pages_checked += xio->count;
	}
	page_set_unlock(set, xio->first, xio->count);
}

uint32_t exchange_run_length(struct rng *rng, double continuation, uint32_t max)
{
	uint32_t length = 1;

	while (length < max && rng_unit(rng) < continuation)
		length++;
	return length;
}

/* ---- arrivals ---- */

/* The arrival after the one at AT_NS; what is paced evenly knows no course of a day. */
static uint64_t next_from(const struct exchange_stream *stream, struct rng *gaps, uint64_t at_ns)
{
	const struct exchange *exchange = stream->db->exchange;

	if (stream->paced)
		return at_ns + (uint64_t)stream->mean_gap_ns;
	return exchange->started_ns +
	       exchange_day_after(&exchange->day, at_ns - exchange->started_ns,
				  (uint64_t)rng_exponential(gaps, stream->mean_gap_ns));
}

/* The arrivals that wait are the next ones of the stream's own random numbers. */
static void count_due_exchange(struct workload *workload, uint64_t now_ns)
{
	struct exchange *exchange = container_of(workload, struct exchange, base);

	for (unsigned i = 0; i < exchange->db_count; i++) {
		for (unsigned k = 0; k < EXCHANGE_KINDS; k++) {
			const struct exchange_stream *stream = &exchange->dbs[i].streams[k];
			struct rng gaps = stream->gaps;
			uint64_t next_ns = stream->next_ns;

			if (!stream->stream || stream->driven)
				continue;
			for (; next_ns < now_ns; next_ns = next_from(stream, &gaps, next_ns))
				stream->stream->due++;
		}
	}
}

static bool is_due(const struct exchange_stream *stream, uint64_t now_ns)
{
	return stream->driven || stream->next_ns <= now_ns;
}

/* Issues what is due; true when it had to stop short because pages or buffers were busy. */
static bool issue_due(struct exchange_stream *stream, struct loop *loop)
{
	uint64_t now_ns = loop_now_ns(loop);

	while (!stream->db->exchange->stopping && stream->stream->in_flight < stream->limit &&
	       is_due(stream, now_ns)) {
		if (!stream->issue(stream, stream->driven ? now_ns : stream->next_ns))
			return true;
		if (!stream->driven) {
			if (stream->blocked && stream->next_ns < now_ns)
				stream->stream->backlog++;
			stream->stream->due++;
			stream->next_ns = next_from(stream, &stream->gaps, stream->next_ns);
		}
		now_ns = loop_now_ns(loop);
	}
	return false;
}

void exchange_pump(struct exchange_stream *stream)
{
	struct exchange *exchange = stream->db->exchange;
	struct loop *loop = exchange->env.loop;
	bool refused;

	/* A layer that ends its I/O at once calls back into this: the loop below goes on then. */
	if (stream->pumping || !exchange->running)
		return;
	stream->pumping = true;
	refused = issue_due(stream, loop);
	stream->pumping = false;
	if (stream->driven || !exchange->running)
		return;
	if (refused) {
		stream->blocked = true;
		loop_timer_set(loop, &stream->timer, loop_now_ns(loop) + RETRY_NS);
	} else if (stream->stream->in_flight < stream->limit) {
		stream->blocked = false;
		if (stream->timer.deadline_ns != stream->next_ns ||
		    !loop_timer_pending(&stream->timer))
			loop_timer_set(loop, &stream->timer, stream->next_ns);
	} else {
		/* The next completion comes back here; what is due by then has waited. */
		stream->blocked = true;
		loop_timer_cancel(loop, &stream->timer);
	}
}

static void timer_due(void *arg)
{
	exchange_pump(arg);
}

/* ---- open ---- */

static int size_part(struct exchange_part *part, uint32_t magic, uint32_t page_bytes,
		     uint64_t base_bytes, uint64_t bytes, const struct exchange_db *db)
{
	const struct workload_env *env = &db->exchange->env;
	bool zero = db->exchange->config.unwritten == EXCHANGE_UNWRITTEN_AUTO
			? db->device->known_zero
			: db->exchange->config.unwritten == EXCHANGE_UNWRITTEN_ZEROS;

	part->area = (struct page_area){
	    .magic = magic,
	    .units = page_bytes / PAGE_UNIT_BYTES,
	    .volume = rng_stream_of(db->device->volume),
	};
	page_run_uuid(env->seed, loop_wall_ns(env->loop), part->area.run);
	part->base_bytes = base_bytes;
	part->page_bytes = page_bytes;
	return page_set_init(&part->set, bytes / page_bytes, zero);
}

static int size_error(struct err *err, const char *volume, uint64_t size_bytes, uint64_t database,
		      uint64_t log)
{
	char size[32], want_database[32], want_log[32];

	err_set(err, -EINVAL, "volume %s has %s: too small for a database of %s and logs of %s",
		volume, text_bytes(size, sizeof size, (double)size_bytes),
		text_bytes(want_database, sizeof want_database, (double)database),
		text_bytes(want_log, sizeof want_log, (double)log));
	err_hint(err, "make the volume larger, or set workload.database-size, .prefill and "
		      ".log-size");
	return -EINVAL;
}

struct sizes {
	uint64_t database, log, prefill;
};

static int work_out_sizes(const struct exchange_config *config, const char *name, uint64_t volume,
			  struct sizes *ret_sizes, struct err *err)
{
	uint64_t log = config->log_bytes / EXCHANGE_LOG_FILE_BYTES * EXCHANGE_LOG_FILE_BYTES;
	uint64_t database = config->database_bytes, prefill = config->prefill_bytes;

	if (!database)
		database = volume > log ? volume - log : 0;
	database = database / EXCHANGE_IO_BYTES_MAX * EXCHANGE_IO_BYTES_MAX;
	if (database < DATABASE_MIN || log > volume || database > volume - log)
		return size_error(err, name, volume, MAX_OF(database, DATABASE_MIN), log);
	if (prefill == EXCHANGE_PREFILL_PRESET)
		prefill = MIN_OF(prefill, database);
	prefill = prefill / EXCHANGE_IO_BYTES_MAX * EXCHANGE_IO_BYTES_MAX;
	if (prefill > database || (config->prefill_bytes && prefill < DATABASE_MIN))
		return size_error(err, name, volume, MAX_OF(prefill, DATABASE_MIN), log);
	*ret_sizes = (struct sizes){database, log, prefill};
	return 0;
}

static int check_exchange(const void *config, const char *volume, uint64_t size_bytes,
			  uint32_t block_bytes, struct err *err)
{
	struct sizes sizes;

	return work_out_sizes(config, volume, size_bytes, &sizes, err);
}

static int size_db(struct exchange_db *db, struct err *err)
{
	struct sizes sizes;
	int r = work_out_sizes(&db->exchange->config, db->device->volume,
			       db->device->layer->size_bytes, &sizes, err);

	if (r < 0)
		return r;
	r = size_part(&db->pages, PAGE_MAGIC_DATABASE, (uint32_t)EXCHANGE_PAGE_BYTES, 0,
		      sizes.database, db);
	if (r == 0)
		r = size_part(&db->log, PAGE_MAGIC_LOG, (uint32_t)EXCHANGE_SEGMENT_BYTES,
			      sizes.database, sizes.log, db);
	if (r < 0)
		return err_set(err, r, "no memory for the page map of volume %s",
			       db->device->volume);
	db->prefill_pages = sizes.prefill / EXCHANGE_PAGE_BYTES;
	db->used_pages = db->prefill_pages ? db->prefill_pages : db->pages.set.pages;
	return 0;
}

static double rate_of(const struct exchange_rates *rates, enum exchange_kind kind)
{
	const double of[EXCHANGE_KINDS] = {
	    [DB_READ] = rates->read, [DB_WRITE] = rates->write,	   [LOG_WRITE] = rates->log_write,
	    [BDM_READ] = rates->bdm, [LOG_READ] = rates->log_read,
	};

	return of[kind];
}

/* Of a day as a whole. */
static double mean_share(const struct exchange *exchange)
{
	return exchange_day_mean(&exchange->day, 0, exchange->day.length_ns);
}

static void open_stream(struct exchange_db *db, enum exchange_kind kind)
{
	struct exchange *exchange = db->exchange;
	struct exchange_stream *stream = &db->streams[kind];
	double rate = rate_of(&exchange->rates, kind);
	char name[256];

	if (rate <= 0)
		return;
	stream->db = db;
	stream->stream = &exchange->base.streams[exchange->base.stream_count++];
	*stream->stream = (struct stream){
	    .name = kind_names[kind],
	    .host = db->device->host,
	    .volume = db->device->volume,
	    .write = kind == DB_WRITE || kind == LOG_WRITE,
	    .planned_per_s = kind == BDM_READ ? rate : rate * mean_share(exchange),
	};
	snprintf(name, sizeof name, "%s/%s/%s", db->device->host, db->device->volume,
		 kind_names[kind]);
	rng_init(&stream->gaps, exchange->env.seed, rng_stream_of(name));
	rng_init(&stream->place, exchange->env.seed, ~rng_stream_of(name));
	loop_timer_init(&stream->timer, timer_due, stream);
	stream->mean_gap_ns = (double)NS_PER_S / rate;
	stream->limit =
	    kind == DB_READ || kind == DB_WRITE ? (unsigned)exchange->config.max_outstanding : 1;
	stream->paced = kind == BDM_READ;
	stream->driven = kind == LOG_READ;
	stream->issue = exchange_issue[kind];
}

static int allocate(struct exchange *exchange)
{
	uint64_t depth = exchange->config.max_outstanding;
	uint64_t ios = exchange->db_count * (2 * depth + 4 + BULK_DEPTH);
	uint64_t bytes =
	    exchange->db_count * (2 * depth * 64 * KIB + (4 + BULK_DEPTH) * EXCHANGE_IO_BYTES_MAX);

	assert(exchange->db_count > 0 && ios > 0); /* check_devices() saw to it */
	exchange->pool = buf_pool_new(MIN_OF(bytes, POOL_LIMIT_MAX));
	exchange->ios = calloc(ios, sizeof *exchange->ios);
	exchange->dbs = calloc(exchange->db_count, sizeof *exchange->dbs);
	exchange->base.streams =
	    calloc((size_t)exchange->db_count * EXCHANGE_KINDS, sizeof *exchange->base.streams);
	if (!exchange->pool || !exchange->ios || !exchange->dbs || !exchange->base.streams)
		return -ENOMEM;
	for (uint64_t i = ios; i-- > 0;) {
		exchange->ios[i].next = exchange->free_ios;
		exchange->free_ios = &exchange->ios[i];
	}
	return 0;
}

static void free_exchange(struct workload *workload)
{
	struct exchange *exchange = container_of(workload, struct exchange, base);

	for (unsigned i = 0; exchange->dbs && i < exchange->db_count; i++) {
		struct exchange_db *db = &exchange->dbs[i];

		for (unsigned k = 0; k < EXCHANGE_KINDS; k++)
			loop_timer_cancel(exchange->env.loop, &db->streams[k].timer);
		page_set_done(&db->pages.set);
		page_set_done(&db->log.set);
	}
	free(exchange->base.streams);
	free(exchange->dbs);
	free(exchange->ios);
	if (exchange->pool)
		buf_pool_free(exchange->pool);
	free(exchange);
}

static int check_devices(const struct workload_env *env, struct err *err)
{
	if (env->device_count == 0)
		return err_set(err, -EINVAL, "the exchange workload has no volume to work on");
	for (unsigned i = 0; i < env->device_count; i++)
		for (unsigned k = 0; k < i; k++)
			if (strcmp(env->devices[i].volume, env->devices[k].volume) == 0)
				return err_set(err, -EINVAL,
					       "volume %s has two users, %s and %s: a database "
					       "belongs to one",
					       env->devices[i].volume, env->devices[k].host,
					       env->devices[i].host);
	return 0;
}

static void plan(struct exchange *exchange)
{
	const struct exchange_rates *rates = &exchange->rates;
	double count = exchange->db_count, mean = mean_share(exchange);
	char messages[60];

	exchange->base.plan.transactional_iops = rates->transactional * count * mean;
	exchange->base.plan.total_iops =
	    ((rates->transactional + rates->log_write + rates->log_read) * mean + rates->bdm) *
	    count;
	exchange_messages_note(exchange->config.profile, exchange->config.messages, messages,
			       sizeof messages);
	snprintf(exchange->summary, sizeof exchange->summary,
		 "%s: %u %s, %llu mailboxes x %.3f IOPS%s", rates->profile->name,
		 exchange->db_count, exchange->db_count == 1 ? "database" : "databases",
		 (unsigned long long)exchange->config.mailboxes, rates->iops_per_mailbox, messages);
	exchange->base.plan.summary = exchange->summary;
}

static int open_exchange(const struct workload_env *env, const void *config,
			 struct workload **ret_workload, struct err *err)
{
	struct exchange *exchange;
	int r = check_devices(env, err);

	if (r < 0)
		return r;
	exchange = calloc(1, sizeof *exchange);
	if (!exchange)
		return err_set(err, -ENOMEM, "no memory for the workload");
	exchange->base.ops = &exchange_workload_ops;
	exchange->env = *env;
	exchange->config = *(const struct exchange_config *)config;
	exchange->db_count = env->device_count;
	exchange_rates(&exchange->config, exchange->db_count, &exchange->rates);
	exchange_day_init(&exchange->day, &exchange->config.day);
	r = allocate(exchange);
	if (r < 0)
		err_set(err, r, "no memory for %u databases", exchange->db_count);
	for (unsigned i = 0; r == 0 && i < exchange->db_count; i++) {
		struct exchange_db *db = &exchange->dbs[i];

		db->exchange = exchange;
		db->device = &env->devices[i];
		for (unsigned k = 0; k < EXCHANGE_KINDS; k++)
			open_stream(db, k);
		r = size_db(db, err);
	}
	if (r < 0) {
		free_exchange(&exchange->base);
		return r;
	}
	plan(exchange);
	*ret_workload = &exchange->base;
	return 0;
}

/* ---- start and stop ---- */

static void start_exchange(struct workload *workload)
{
	struct exchange *exchange = container_of(workload, struct exchange, base);
	uint64_t now_ns = loop_now_ns(exchange->env.loop);

	exchange->running = true;
	exchange->started_ns = now_ns;
	for (unsigned i = 0; i < exchange->db_count; i++)
		for (unsigned k = 0; k < EXCHANGE_KINDS; k++) {
			struct exchange_stream *stream = &exchange->dbs[i].streams[k];

			if (!stream->stream || stream->driven)
				continue;
			/* Even gaps begin anywhere within the first, so that databases spread. */
			stream->next_ns =
			    stream->paced
				? now_ns + (uint64_t)(rng_unit(&stream->gaps) * stream->mean_gap_ns)
				: next_from(stream, &stream->gaps, now_ns);
			loop_timer_set(exchange->env.loop, &stream->timer, stream->next_ns);
		}
}

static void stop_exchange(struct workload *workload, workload_fn drained, void *arg)
{
	struct exchange *exchange = container_of(workload, struct exchange, base);

	exchange->stopping = true;
	for (unsigned i = 0; i < exchange->db_count; i++)
		for (unsigned k = 0; k < EXCHANGE_KINDS; k++)
			loop_timer_cancel(exchange->env.loop, &exchange->dbs[i].streams[k].timer);
	exchange->running = false;
	if (exchange->in_flight == 0) {
		drained(arg, 0);
		return;
	}
	exchange->drained = drained;
	exchange->drained_arg = arg;
}

const struct workload_ops exchange_workload_ops = {
    .name = "exchange",
    .engine = "streams",
    .help = "Exchange databases: reads, writes, logs, maintenance and log replication",
    .schema = &exchange_schema,
    .configure = exchange_configure,
    .open = open_exchange,
    .prepare = exchange_prepare,
    .start = start_exchange,
    .stop = stop_exchange,
    .verify = exchange_verify,
    .free = free_exchange,
    .count_due = count_due_exchange,
    .check = check_exchange,
};
