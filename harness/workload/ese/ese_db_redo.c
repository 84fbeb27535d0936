/* SPDX-License-Identifier: MIT
 *
 * What redo needs of a database: pages through the cache, updates onto them.  For recovery, and for
 * a passive copy that replays what its active one has logged.
 */
#include <assert.h>
#include <errno.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db_impl.h"

static struct ese_frame *fetched(struct ese_db *db, uint64_t page)
{
	struct ese_frame *frame = ese_cache_find(db->cache, db->number, (uint32_t)page);

	assert(frame && frame->present && frame->pins);
	return frame;
}

static void unpin(struct ese_db *db, const uint64_t *pages, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fetched(db, pages[i])->pins--;
}

static void end_fetch(struct db_redo_fetch *fetch, struct ese_db *db, int status)
{
	void (*done)(void *arg, int status) = fetch->done;

	if (status < 0)
		unpin(db, fetch->pages, fetch->pinned);
	fetch->done = NULL;
	db_waiter_ends(db, &fetch->waiter);
	done(fetch->arg, status);
}

static void fetch_step(struct ese_page_waiter *waiter, int status)
{
	struct db_redo_fetch *fetch = container_of(waiter, struct db_redo_fetch, waiter);
	struct ese_db *db = container_of(fetch, struct ese_db, fetch);

	if (status == 0 && db->state == DB_DROPPING)
		status = -ECANCELED;
	while (status == 0 && fetch->pinned < fetch->count) {
		bool hold;
		struct ese_frame *frame =
		    db_fetch(db, (uint32_t)fetch->pages[fetch->pinned], waiter, &hold);

		if (!frame && !hold) {
			unpin(db, fetch->pages, fetch->pinned);
			fetch->pinned = 0;
		}
		if (!frame) /* it may have been stepped within the call */
			return;
		ese_cache_touch(db->cache, frame, loop_now_ns(db->env.loop));
		frame->pins++;
		fetch->pinned++;
	}
	end_fetch(fetch, db, status);
}

static void redo_fetch(void *arg, const uint64_t *pages, unsigned count,
		       void (*done)(void *done_arg, int status), void *done_arg)
{
	struct ese_db *db = arg;

	assert(!db->fetch.done);
	db->fetch = (struct db_redo_fetch){
	    .waiter = {.step = fetch_step},
	    .pages = pages,
	    .count = count,
	    .done = done,
	    .arg = done_arg,
	};
	for (unsigned i = 0; i < count; i++)
		if (pages[i] < ESE_PAGE_FIRST || pages[i] >= db->layout.pages) {
			end_fetch(&db->fetch, db, -EBADMSG);
			return;
		}
	for (unsigned i = 0; i < count; i++) {
		/* A page of the log is in use, also one that was written already. */
		db->used_pages = MAX_OF(db->used_pages, (uint32_t)pages[i] + 1);
		db_preread(db, (uint32_t)pages[i]);
	}
	fetch_step(&db->fetch.waiter, 0);
}

static void redo_release(void *arg, const uint64_t *pages, unsigned count)
{
	struct ese_db *db = arg;

	unpin(db, pages, count);
	if (ese_cache_line(db->cache)->waiters.first)
		loop_task_queue(db->env.loop, &db->chores);
}

static uint64_t redo_dbtime(void *arg, uint64_t page)
{
	const struct ese_frame *frame = fetched(arg, page);

	return frame->unreadable ? ESE_DBTIME_UNREADABLE : frame->image.dbtime;
}

static int redo_apply(void *arg, const struct ese_update *update, uint64_t first_lgpos,
		      uint64_t end_lgpos)
{
	struct ese_db *db = arg;
	struct ese_frame *frame = fetched(db, update->page);
	int r = ese_image_apply(&frame->image, update);

	if (r < 0)
		return r;
	if (frame->unreadable) {
		frame->unreadable = 0;
		db->unreadable--;
	}
	ese_cache_keep(db->cache, frame, db_keeps(db, frame));
	ese_cache_dirty(db->cache, frame, first_lgpos, end_lgpos);
	db->dbtime = MAX_OF(db->dbtime, update->dbtime_after);
	return 0;
}

static void redo_lost_flush(void *arg, uint64_t page, uint64_t found, uint64_t expected)
{
	db_report(arg, MISMATCH_STALE, page, expected, found);
}

const struct ese_redo_ops ese_db_redo_ops = {
    .fetch = redo_fetch,
    .release = redo_release,
    .dbtime = redo_dbtime,
    .apply = redo_apply,
    .lost_flush = redo_lost_flush,
};
