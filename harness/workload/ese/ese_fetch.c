/* SPDX-License-Identifier: MIT
 *
 * Pages that are not in the cache: reading them, those who wait for them, and the line of those for
 * whom there is no free frame.
 *
 * Frames are kept free ahead of need (the two marks of ese_cache.h), by a task that runs once a
 * turn of the loop: it takes victims, of any database of the cache, and steps those in the line.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

enum { KEPT_PART = 8 };

/* Nobody gets a frame before those who wait for one. */
static bool has_turn(struct ese_db *db, const struct ese_page_waiter *waiter)
{
	const struct ese_cache_line *line = ese_cache_line(db->cache);

	return !line->waiters.first ||
	       (waiter && (line->privileged == waiter || line->stepping == waiter));
}

struct ese_frame *db_take_frame(struct ese_db *db, uint32_t page,
				const struct ese_page_waiter *waiter)
{
	struct ese_frame *frame = NULL;

	if (has_turn(db, waiter))
		frame = ese_cache_take(db->cache, db->number, page, loop_now_ns(db->env.loop));
	if (!frame || ese_cache_wants_victims(db->cache))
		loop_task_queue(db->env.loop, &db->chores);
	return frame;
}

/* Nodes above the parents of leaves stay, as far as that leaves a cache. */
bool db_keeps(const struct ese_db *db, const struct ese_frame *frame)
{
	return (frame->image.level >= 2 || frame->page == db->rules.root) &&
	       (frame->pinned || ese_cache_kept(db->cache) < ese_cache_max(db->cache) / KEPT_PART);
}

void db_arrived(struct ese_db *db, struct ese_frame *frame)
{
	ese_cache_arrived(db->cache, frame, db_keeps(db, frame));
}

/* ---- reading ---- */

/* An image that is there, or why it is not. */
static int outcome(const struct db_read *read, unsigned index)
{
	const struct ese_page_io *pio = &read->pio;

	if (read->db->state == DB_DROPPING)
		return -ECANCELED;
	if (pio->status < 0 && pio->status != -EUCLEAN)
		return pio->status;
	if ((pio->bad | pio->unsure) >> index & 1)
		return -EUCLEAN;
	return 0;
}

/* What was read of one page; those who waited for it go to DONE or FAILED. */
static void settle_page(struct db_read *read, unsigned index, struct ese_page_waiters *done,
			struct ese_page_waiters *failed, int *ret_status)
{
	struct ese_db *db = read->db;
	struct ese_frame *frame = read->frames[index];
	int status = outcome(read, index);
	struct ese_page_waiters *list = status == 0 ? done : failed;
	struct ese_page_waiter *waiter;

	if (status == -EUCLEAN && db->state == DB_RECOVERING) {
		/* Torn by the crash, perhaps: redo decides. */
		ese_image_clear(&frame->image);
		frame->unreadable = (uint8_t)(1 + read->pio.kind[index]);
		db->unreadable++;
		list = done;
	}
	while ((waiter = ese_page_wake(&frame->waiters)))
		ese_page_wait(list, waiter);
	if (frame->unreadable) {
		ese_cache_arrived(db->cache, frame, true);
	} else if (status == 0) {
		db_arrived(db, frame);
	} else {
		*ret_status = status == -EUCLEAN ? -EIO : status;
		ese_cache_give_up(db->cache, frame);
	}
}

static void read_done(struct ese_page_io *pio)
{
	struct db_read *read = container_of(pio, struct db_read, pio);
	struct ese_db *db = read->db;
	struct ese_page_waiters done = {0}, failed = {0};
	struct ese_page_waiter *waiter;
	int status = 0;

	if (pio->status < 0)
		db->counters.io_errors++;
	for (unsigned i = 0; i < pio->count; i++)
		settle_page(read, i, &done, &failed, &status);
	read->next = db->free_reads;
	db->free_reads = read;
	db->reads_out--;
	if (ese_cache_line(db->cache)->waiters.first)
		loop_task_queue(db->env.loop, &db->chores);
	while ((waiter = ese_page_wake(&done)))
		waiter->step(waiter, 0);
	while ((waiter = ese_page_wake(&failed)))
		waiter->step(waiter, status);
	db_goes_on(db);
}

/* Pages behind PAGE that are read with it: a geometric number, as far as they are not cached. */
static unsigned run_length(struct ese_db *db, uint32_t page)
{
	unsigned most = MIN_OF(db->config.constants.coalesce_bytes / ESE_PAGE_BYTES, ESE_RUN_PAGES);
	uint32_t end = db->rules.count[0] + ESE_PAGE_FIRST;
	unsigned count = 1;

	if (page >= end) /* a node, or a leaf that came of a split */
		return 1;
	while (count < most && page + count < end &&
	       rng_unit(&db->rng) < db->config.constants.read_run &&
	       !ese_cache_find(db->cache, db->number, page + count))
		count++;
	return count;
}

/* NULL: nothing free. */
static struct db_read *begin_read(struct ese_db *db, uint32_t page,
				  const struct ese_page_waiter *waiter)
{
	struct db_read *read = db->free_reads;
	unsigned wanted = db->state == DB_OPEN ? run_length(db, page) : 1, count = 0;
	struct ese_page_io pio = {.first = page, .stream = db->env.streams.db_read};

	if (!read)
		return NULL;
	while (count < wanted) {
		struct ese_frame *frame = db_take_frame(db, page + count, count ? NULL : waiter);

		if (!frame)
			break;
		frame->preread = count > 0;
		pio.images[count] = &frame->image;
		read->frames[count++] = frame;
	}
	if (!count)
		return NULL;
	db->free_reads = read->next;
	db->reads_out++;
	pio.count = count;
	pio.done = read_done;
	read->pio = pio;
	db->counters.read_ios++;
	db->counters.read_pages += count;
	return read;
}

bool db_stall(struct ese_db *db, struct ese_page_waiter *waiter)
{
	struct ese_cache_line *line = ese_cache_line(db->cache);

	loop_task_queue(db->env.loop, &db->chores);
	db->counters.stalls++;
	if (!line->privileged)
		line->privileged = waiter;
	if (line->privileged == waiter) {
		ese_page_wait_first(&line->waiters, waiter);
		return true;
	}
	ese_page_wait(&line->waiters, waiter);
	return false;
}

void db_waiter_ends(struct ese_db *db, const struct ese_page_waiter *waiter)
{
	struct ese_cache_line *line = ese_cache_line(db->cache);

	if (line->privileged == waiter)
		line->privileged = NULL;
	if (line->waiters.first) /* what was pinned can leave now */
		loop_task_queue(db->env.loop, &db->chores);
}

struct ese_frame *db_fetch(struct ese_db *db, uint32_t page, struct ese_page_waiter *waiter,
			   bool *ret_hold)
{
	struct ese_frame *frame = ese_cache_find(db->cache, db->number, page);
	struct db_read *read;

	*ret_hold = true;
	if (frame && frame->present)
		return frame;
	if (frame) {
		frame->preread = false;
		ese_page_wait(&frame->waiters, waiter);
		return NULL;
	}
	read = begin_read(db, page, waiter);
	if (!read) {
		*ret_hold = db_stall(db, waiter);
		return NULL;
	}
	ese_page_wait(&read->frames[0]->waiters, waiter);
	ese_pager_read(db->pager, &read->pio); /* may end at once */
	return NULL;
}

void db_preread(struct ese_db *db, uint32_t page)
{
	struct db_read *read;

	if (ese_cache_find(db->cache, db->number, page))
		return;
	read = begin_read(db, page, NULL);
	if (read)
		ese_pager_read(db->pager, &read->pio);
}

/* ---- free frames ---- */

static void take_victims(struct ese_cache *cache, uint64_t now_ns)
{
	while (ese_cache_wants_victims(cache)) {
		struct ese_frame *frame;

		switch (ese_cache_victim(cache, now_ns, &frame)) {
		case ESE_VICTIM_NONE:
			return;
		case ESE_VICTIM_DIRTY:
			writer_add_victim(ese_cache_owner(cache, frame->db), frame);
			break;
		case ESE_VICTIM_FREED:
			break;
		}
	}
}

static void step_stalled(struct ese_cache *cache)
{
	struct ese_cache_line *line = ese_cache_line(cache);
	struct ese_page_waiter *waiter, *last = line->waiters.last;

	while (ese_cache_available(cache) && (waiter = ese_page_wake(&line->waiters))) {
		if (!line->privileged)
			line->privileged = waiter;
		line->stepping = waiter;
		waiter->step(waiter, 0); /* WAITER may be gone */
		line->stepping = NULL;
		if (waiter == last || line->waiters.first == waiter)
			break;
	}
}

void db_chores(void *arg)
{
	struct ese_db *db = arg;

	take_victims(db->cache, loop_now_ns(db->env.loop));
	step_stalled(db->cache);
}
