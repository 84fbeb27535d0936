/* SPDX-License-Identifier: MIT
 *
 * Dirty pages to the volume: victims of the cache, in turn, and pages that hold the checkpoint
 * back, oldest first.
 *
 * A page is written when the log is on the device beyond its newest update.  Dirty neighbours go
 * with it, in one I/O of up to coalesce_bytes; clean ones that lie between two dirty ones do too,
 * if there are no more than the write gap.
 *
 * How many writes for the checkpoint are under way depends on how far it lags: one up to 1.25
 * depths, one more for each 512 KiB beyond.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

#define URGENT_STEP_BYTES (512 * KIB)

/* ---- the queue of victims: dirty and not being written, every one of them ---- */

static void enqueue(struct ese_db *db, struct ese_frame *frame)
{
	assert(!frame->queued);
	frame->queued = true;
	frame->queue_next = NULL;
	frame->queue_prev = db->queue_last;
	if (db->queue_last)
		db->queue_last->queue_next = frame;
	else
		db->queue_first = frame;
	db->queue_last = frame;
	db->queue_count++;
}

static void dequeue(struct ese_db *db, struct ese_frame *frame)
{
	if (!frame->queued)
		return;
	frame->queued = false;
	if (frame->queue_prev)
		frame->queue_prev->queue_next = frame->queue_next;
	else
		db->queue_first = frame->queue_next;
	if (frame->queue_next)
		frame->queue_next->queue_prev = frame->queue_prev;
	else
		db->queue_last = frame->queue_prev;
	frame->queue_prev = frame->queue_next = NULL;
	db->queue_count--;
}

void writer_forget(struct ese_db *db)
{
	while (db->queue_first)
		dequeue(db, db->queue_first);
}

void writer_add_victim(struct ese_db *db, struct ese_frame *frame)
{
	if (!frame->queued)
		enqueue(db, frame);
	writer_kick(db);
}

/* ---- one write ---- */

static bool log_allows(const struct ese_db *db, const struct ese_frame *frame)
{
	return frame->lgpos_last <= db_flushed_lgpos(db);
}

static bool may_write(const struct ese_db *db, const struct ese_frame *frame)
{
	return frame->dirty && !frame->writing && log_allows(db, frame);
}

/* What is on the volume is this page: it may be written again as it is. */
static bool may_bridge(const struct ese_db *db, const struct ese_frame *frame)
{
	const struct ese_flush_map *map = ese_pager_map(db->pager);
	uint8_t flush = ese_flush_map_get(map, frame->page);

	return !frame->dirty && !frame->unreadable && flush != ESE_FLUSH_NEVER &&
	       flush != ESE_FLUSH_UNKNOWN && !ese_flush_map_unsure(map, frame->page);
}

/* How many pages on this side of PAGE go with it: the last of them is dirty. */
static unsigned reach(const struct ese_db *db, uint32_t page, int side, unsigned room)
{
	unsigned gap = db->config.constants.write_gap_bytes / ESE_PAGE_BYTES, taken = 0;

	for (unsigned i = 1; i <= room; i++) {
		const struct ese_frame *frame =
		    ese_cache_find(db->cache, db->number, page + (uint32_t)(side * (int)i));

		if (!frame || !frame->present || frame->writing)
			break;
		if (may_write(db, frame))
			taken = i;
		else if (i - taken > gap || !may_bridge(db, frame))
			break;
	}
	return taken;
}

static void write_done(struct ese_page_io *pio)
{
	struct db_write *write = container_of(pio, struct db_write, pio);
	struct ese_db *db = write->db;

	if (pio->status < 0) {
		uint64_t now_ns = loop_now_ns(db->env.loop);

		db->counters.io_errors++;
		db->hold_writes_ns = now_ns + DB_RETRY_MS * NS_PER_MS;
		loop_timer_set(db->env.loop, &db->retry, db->hold_writes_ns);
		if (!db->failing_since_ns)
			db->failing_since_ns = now_ns;
		if (db->state == DB_FLUSHING &&
		    (pio->status == -ECANCELED ||
		     now_ns - db->failing_since_ns > DB_GIVE_UP_MS * NS_PER_MS))
			db_give_up(db, pio->status);
	} else {
		db->failing_since_ns = 0;
	}
	for (unsigned i = 0; i < pio->count; i++)
		ese_cache_write_end(db->cache, write->frames[i], pio->status == 0, &write->dirt[i]);
	db->checkpoint_out -= write->checkpoint;
	db->writes_out--;
	write->busy = false;
	write->next = db->free_writes;
	db->free_writes = write;
	if (ese_cache_line(db->cache)->waiters.first || ese_cache_wants_victims(db->cache))
		loop_task_queue(db->env.loop, &db->chores);
	writer_kick(db);
	db_goes_on(db);
}

static void add_page(struct ese_db *db, struct db_write *write, unsigned index, uint32_t page)
{
	struct ese_frame *frame = ese_cache_find(db->cache, db->number, page);

	write->frames[index] = frame;
	write->pio.images[index] = &frame->image;
	if (frame->dirty) {
		write->dirt[index] =
		    (struct ese_dirt){frame->lgpos_first, frame->lgpos_last, frame->dbtime_first};
	} else {
		/* If it goes wrong it has to be written again, by no later than all others. */
		write->pio.clean |= 1U << index;
		write->dirt[index] = (struct ese_dirt){MIN_OF(db_flushed_lgpos(db), UINT64_MAX - 1),
						       0, db->dbtime + 1};
	}
	dequeue(db, frame);
	ese_cache_write_begin(db->cache, frame);
}

static void write_around(struct ese_db *db, struct ese_frame *frame, bool checkpoint)
{
	struct db_write *write = db->free_writes;
	unsigned most = MIN_OF(db->config.constants.coalesce_bytes / ESE_PAGE_BYTES, ESE_RUN_PAGES);
	unsigned before = reach(db, frame->page, -1, most - 1);
	unsigned after = reach(db, frame->page, 1, most - 1 - before);

	db->free_writes = write->next;
	write->pio = (struct ese_page_io){
	    .first = frame->page - before,
	    .count = before + 1 + after,
	    .stream = db->env.streams.db_write,
	    .done = write_done,
	};
	write->checkpoint = checkpoint;
	write->busy = true;
	for (unsigned i = 0; i < write->pio.count; i++)
		add_page(db, write, i, (uint32_t)write->pio.first + i);
	db->writes_out++;
	db->checkpoint_out += checkpoint;
	db->counters.write_ios++;
	db->counters.written_pages += write->pio.count;
	db->counters.written_neighbour += write->pio.count - 1;
	if (checkpoint)
		db->counters.written_checkpoint++;
	else
		db->counters.written_evict++;
	ese_pager_write(db->pager, &write->pio); /* may end at once */
}

/* ---- what is due ---- */

/* A write has failed, maybe within the call. */
static bool on_hold(const struct ese_db *db)
{
	return loop_now_ns(db->env.loop) < db->hold_writes_ns;
}

/* Who waits for the log is asked for; returns up to where. */
static uint64_t write_victims(struct ese_db *db)
{
	uint64_t wanted = 0;

	for (unsigned count = db->queue_count;
	     count && db->free_writes && db->queue_first && !on_hold(db); count--) {
		struct ese_frame *frame = db->queue_first;

		dequeue(db, frame);
		if (!frame->leaves) /* it was used again */
			continue;
		if (log_allows(db, frame)) {
			write_around(db, frame, false);
		} else {
			wanted = MAX_OF(wanted, frame->lgpos_last);
			enqueue(db, frame);
		}
	}
	return wanted;
}

static unsigned checkpoint_writes(const struct ese_db *db, uint64_t oldest)
{
	uint64_t depth = db_depth(db), tip = db->log ? ese_log_tip(db->log) : 0;
	uint64_t lag = tip > oldest ? tip - oldest : 0, background = depth + depth / 4;
	unsigned most = db->config.constants.write_depth;

	if (db->write_target == UINT64_MAX || lag > background + most * URGENT_STEP_BYTES)
		return most;
	if (lag <= background)
		return 1;
	return MIN_OF(most, 2 + (unsigned)((lag - background) / URGENT_STEP_BYTES));
}

static uint64_t write_for_checkpoint(struct ese_db *db)
{
	uint64_t wanted = 0;

	while (db->free_writes && !on_hold(db)) {
		struct ese_frame *frame = ese_cache_oldest(db->cache, db->number);

		/* At the front only those that were dirtied again while they are written. */
		while (frame && frame->lgpos_first < db->write_target && !may_write(db, frame)) {
			if (!frame->writing)
				wanted = MAX_OF(wanted, frame->lgpos_last);
			frame = frame->dirty_next;
		}
		if (!frame || frame->lgpos_first >= db->write_target ||
		    db->checkpoint_out >= checkpoint_writes(db, frame->lgpos_first))
			break;
		write_around(db, frame, true);
	}
	return wanted;
}

/* The log is written soon anyhow; it is asked for only when somebody waits for what comes of it. */
static bool is_short(const struct ese_db *db)
{
	return ese_cache_line(db->cache)->waiters.first || db->write_target == UINT64_MAX ||
	       ese_log_short_of_room(db->log) ||
	       ese_cache_available(db->cache) < ese_cache_low(db->cache) / 2;
}

void writer_kick(struct ese_db *db)
{
	uint64_t wanted, also;

	if (db->writing_now || !db->pager || db->state == DB_DROPPING || db->state == DB_CLOSED ||
	    on_hold(db))
		return;
	db->writing_now = true;
	wanted = write_victims(db);
	also = write_for_checkpoint(db);
	db->writing_now = false;
	wanted = MAX_OF(wanted, also);
	if (wanted && db->log && is_short(db))
		ese_log_flush(db->log, wanted);
	if (db->state == DB_FLUSHING)
		db_goes_on(db);
}

bool writer_oldest(const struct ese_db *db, struct ese_dirt *ret_oldest)
{
	const struct ese_frame *frame = ese_cache_oldest(db->cache, db->number);
	struct ese_dirt oldest = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

	if (frame)
		oldest =
		    (struct ese_dirt){frame->lgpos_first, frame->lgpos_last, frame->dbtime_first};
	for (unsigned i = 0; i < db->config.constants.write_depth; i++) {
		const struct db_write *write = &db->writes[i];

		for (unsigned p = 0; write->busy && p < write->pio.count; p++)
			if (write->dirt[p].lgpos_first < oldest.lgpos_first)
				oldest = write->dirt[p];
	}
	if (oldest.lgpos_first == UINT64_MAX)
		return false;
	*ret_oldest = oldest;
	return true;
}

static void again(void *arg)
{
	writer_kick(arg);
}

int writer_init(struct ese_db *db)
{
	unsigned depth = db->config.constants.write_depth;

	db->writes = calloc(depth, sizeof *db->writes);
	if (!db->writes)
		return -ENOMEM;
	for (unsigned i = 0; i < depth; i++) {
		db->writes[i].db = db;
		db->writes[i].next = db->free_writes;
		db->free_writes = &db->writes[i];
	}
	loop_timer_init(&db->retry, again, db);
	return 0;
}
