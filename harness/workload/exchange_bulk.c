/* SPDX-License-Identifier: MIT
 *
 * The two sequential passes around a run: prefill before it, read-back of the written set after
 * it.  All databases at once, some 256 KiB I/Os in flight on each.
 */
#include "harness/workload/exchange.h"

#include <errno.h>

static void bulk_pump(struct exchange_db *db);

static void finish(struct exchange_db *db)
{
	struct exchange *exchange = db->exchange;
	workload_fn done = exchange->bulk_done;
	int status = exchange->stopping ? -ECANCELED : 0;

	db->bulk.step = BULK_IDLE;
	if (--exchange->bulk_active > 0)
		return;
	for (unsigned i = 0; i < exchange->db_count && status == 0; i++)
		status = exchange->dbs[i].bulk.status;
	if (status == 0)
		exchange->base.progress = 1;
	exchange->bulk_done = NULL;
	done(exchange->bulk_arg, status);
}

static bool next_fill(struct exchange_db *db, uint64_t *ret_first, uint32_t *ret_count)
{
	struct exchange_bulk *bulk = &db->bulk;

	if (bulk->status < 0 || bulk->next >= db->prefill_pages)
		return false;
	*ret_first = bulk->next;
	*ret_count = (uint32_t)MIN_OF(PAGES_PER_IO, db->prefill_pages - bulk->next);
	bulk->next += *ret_count;
	return true;
}

/* The next run of pages a write was tried on. */
static bool next_tried(struct exchange_part *part, struct exchange_bulk *bulk, uint64_t *ret_first,
		       uint32_t *ret_count)
{
	uint64_t max = EXCHANGE_IO_BYTES_MAX / part->page_bytes, first, end;

	while (bulk->next < part->set.pages && !page_set_is_tried(&part->set, bulk->next))
		bulk->next++;
	if (bulk->next >= part->set.pages)
		return false;
	first = bulk->next;
	end = first + 1;
	while (end < part->set.pages && end - first < max && page_set_is_tried(&part->set, end))
		end++;
	bulk->next = end;
	*ret_first = first;
	*ret_count = (uint32_t)(end - first);
	return true;
}

static uint64_t written_in(const struct page_set *set, uint64_t first, uint64_t count)
{
	uint64_t written = 0;

	for (uint64_t i = first; i < first + count; i++)
		written += page_set_is_written(set, i);
	return written;
}

static struct exchange_part *part_of(struct exchange_db *db)
{
	return db->bulk.step == BULK_CHECK_LOG ? &db->log : &db->pages;
}

/* The device is gone: nothing more of it can be read, and waiting for every I/O to fail would
 * take for ever. */
static void give_up(struct exchange_db *db)
{
	struct workload_check *check = &db->exchange->base.check;
	struct page_set *set = &part_of(db)->set;

	check->pages_not_readable += written_in(set, db->bulk.next, set->pages - db->bulk.next);
	if (db->bulk.step == BULK_CHECK_PAGES)
		check->pages_not_readable += db->log.set.written;
	db->bulk.gone = true;
}

/* True while there is something left to send. */
static bool bulk_next(struct exchange_db *db, uint64_t *ret_first, uint32_t *ret_count)
{
	struct exchange_bulk *bulk = &db->bulk;

	if (db->exchange->stopping || bulk->gone)
		return false;
	if (bulk->step == BULK_FILL)
		return next_fill(db, ret_first, ret_count);
	if (bulk->step == BULK_CHECK_PAGES) {
		if (next_tried(&db->pages, bulk, ret_first, ret_count))
			return true;
		bulk->step = BULK_CHECK_LOG;
		bulk->next = 0;
	}
	return next_tried(&db->log, bulk, ret_first, ret_count);
}

static void bulk_pump(struct exchange_db *db)
{
	struct exchange_bulk *bulk = &db->bulk;

	if (bulk->pumping)
		return;
	bulk->pumping = true;
	while (bulk->in_flight < BULK_DEPTH) {
		struct exchange_io *xio = exchange_io_get(db, NULL, EXCHANGE_IO_BYTES_MAX);
		uint64_t first;
		uint32_t count;

		if (!xio) {
			/* Only real shortage of memory: nothing else is in flight now. */
			if (bulk->in_flight == 0)
				bulk->status = -ENOMEM;
			break;
		}
		if (!bulk_next(db, &first, &count)) {
			exchange_io_put(xio);
			break;
		}
		xio->part = part_of(db);
		bulk->in_flight++;
		exchange_submit(xio, bulk->step == BULK_FILL ? IO_WRITE : IO_READ, first, count);
	}
	bulk->pumping = false;
	if (bulk->in_flight == 0 && bulk->step != BULK_IDLE)
		finish(db);
}

static void count_read_back(const struct exchange_io *xio, struct exchange_bulk *bulk)
{
	struct workload_check *check = &xio->db->exchange->base.check;
	uint64_t written = written_in(&xio->part->set, xio->first, xio->count);

	if (xio->io.status >= 0)
		check->pages_read_back += written;
	else
		check->pages_not_readable += written;
	if (xio->io.status == -ENODEV && !bulk->gone)
		give_up(xio->db);
}

void exchange_bulk_ended(struct exchange_io *xio)
{
	struct exchange_db *db = xio->db;
	struct exchange *exchange = db->exchange;
	int status = xio->io.status;

	exchange_settle(xio);
	if (xio->io.op == IO_READ)
		count_read_back(xio, &db->bulk);
	else if (status < 0 && db->bulk.status == 0)
		db->bulk.status = status;
	exchange->bulk_ended += xio->count;
	if (exchange->bulk_total)
		exchange->base.progress =
		    MIN_OF(1.0, (double)exchange->bulk_ended / (double)exchange->bulk_total);
	exchange_io_put(xio);
	db->bulk.in_flight--;
	bulk_pump(db);
}

static void begin(struct exchange *exchange, enum bulk_step step, workload_fn done, void *arg)
{
	exchange->bulk_done = done;
	exchange->bulk_arg = arg;
	exchange->bulk_active = exchange->db_count;
	exchange->bulk_ended = 0;
	exchange->bulk_total = 0;
	exchange->base.progress = 0;
	for (unsigned i = 0; i < exchange->db_count; i++) {
		struct exchange_db *db = &exchange->dbs[i];

		db->bulk = (struct exchange_bulk){.step = step};
		exchange->bulk_total += step == BULK_FILL
					    ? db->prefill_pages
					    : db->pages.set.written + db->log.set.written;
	}
	for (unsigned i = 0; i < exchange->db_count; i++)
		bulk_pump(&exchange->dbs[i]);
}

/* Without content there is nothing to fill in or to read back. */
static bool nothing_to_do(struct exchange *exchange, workload_fn done, void *arg)
{
	if (exchange->config.content == EXCHANGE_CONTENT_VERIFIED)
		return false;
	exchange->base.progress = 1;
	done(arg, 0);
	return true;
}

void exchange_prepare(struct workload *workload, workload_fn done, void *arg)
{
	struct exchange *exchange = container_of(workload, struct exchange, base);

	if (nothing_to_do(exchange, done, arg))
		return;
	begin(exchange, BULK_FILL, done, arg);
}

/* After stop: the workload writes nothing any more. */
void exchange_verify(struct workload *workload, workload_fn done, void *arg)
{
	struct exchange *exchange = container_of(workload, struct exchange, base);

	exchange->running = false;
	exchange->stopping = false;
	if (nothing_to_do(exchange, done, arg))
		return;
	begin(exchange, BULK_CHECK_PAGES, done, arg);
}
