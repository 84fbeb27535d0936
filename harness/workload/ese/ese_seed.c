/* SPDX-License-Identifier: MIT
 *
 * See ese_seed.h.
 */
#include "harness/workload/ese/ese_seed.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

#define SEEN_ALREADY (ESE_DBTIME_UNREADABLE - 1) /* later than any update */

struct ese_seed {
	struct ese_seed_config config;
	uint64_t next; /* pages before it are on the target */
	uint64_t end;  /* of the run under way, whose pages are fixed; else `next` */
	uint64_t begin_ns;
	struct ese_page_io pio;
	struct ese_image images[ESE_RUN_PAGES];
	struct ese_image_pool *pool;
	bool busy, stopped, running, stepping;
	struct loop_timer timer; /* the rate */
	/* Redo waits for the run under way. */
	uint64_t wanted[ESE_PREREAD_MAX];
	unsigned wanted_count, asked_count;
	uint64_t asked[ESE_PREREAD_MAX];
	void (*fetched)(void *arg, int status);
	void *fetched_arg;
	bool fetch_waits;
};

static void step(void *arg);

static void finish(struct ese_seed *seed, int status)
{
	seed->running = false;
	loop_timer_cancel(seed->config.loop, &seed->timer);
	if (status == 0) {
		seed->next = seed->end = UINT64_MAX; /* redo goes everywhere */
		ese_db_seeded(seed->config.target, ese_db_used_pages(seed->config.source));
	}
	seed->config.done(seed->config.arg, status);
}

static void fetch_now(struct ese_seed *seed);

static void next_later(struct ese_seed *seed)
{
	uint64_t due = loop_now_ns(seed->config.loop);

	if (seed->config.bytes_per_s)
		due = seed->begin_ns + (uint64_t)((double)seed->next * ESE_PAGE_BYTES /
						  (double)seed->config.bytes_per_s * 1e9);
	loop_timer_set(seed->config.loop, &seed->timer, due);
}

static void run_written(struct ese_page_io *pio)
{
	struct ese_seed *seed = pio->owner;
	int status = pio->status;

	seed->busy = false;
	if (status == 0)
		seed->next = seed->end;
	else
		seed->end = seed->next;
	if (seed->fetch_waits)
		fetch_now(seed);
	if (status < 0 || seed->stopped)
		finish(seed, seed->stopped ? -ECANCELED : status);
	else
		next_later(seed);
}

/* From here on the run holds all that was logged so far. */
static int fix_run(struct ese_seed *seed)
{
	struct ese_page_io *pio = &seed->pio;

	for (unsigned i = 0; i < pio->count; i++) {
		const struct ese_image *newer = ese_db_cached(seed->config.source, pio->first + i);
		int r = newer ? ese_image_copy(&seed->images[i], newer) : 0;

		if (r < 0)
			return r;
		if (!newer && (pio->bad >> i & 1))
			return -EUCLEAN;
		if (!newer && (pio->unsure >> i & 1))
			return -EAGAIN;
	}
	return 0;
}

static void run_read(struct ese_page_io *pio)
{
	struct ese_seed *seed = pio->owner;
	int r = pio->status == -EUCLEAN ? 0 : pio->status;

	seed->busy = false;
	if (r == 0 && !seed->stopped)
		r = fix_run(seed);
	if (seed->stopped || (r < 0 && r != -EAGAIN)) {
		finish(seed, seed->stopped ? -ECANCELED : r);
		return;
	}
	if (r == -EAGAIN) { /* written meanwhile */
		next_later(seed);
		return;
	}
	seed->end = pio->first + pio->count;
	seed->busy = true;
	pio->stream = seed->config.write;
	pio->intended_ns = 0;
	pio->clean = 0;
	pio->done = run_written;
	ese_pager_write(ese_db_pager(seed->config.target), pio);
}

static void step(void *arg)
{
	struct ese_seed *seed = arg;
	uint64_t used = ese_db_used_pages(seed->config.source);
	struct ese_pager *pager = ese_db_pager(seed->config.source);

	if (seed->stopped || !pager) {
		finish(seed, seed->stopped ? -ECANCELED : -ENODEV);
		return;
	}
	if (seed->next >= used) {
		finish(seed, 0);
		return;
	}
	seed->pio = (struct ese_page_io){
	    .first = seed->next,
	    .count = (unsigned)MIN_OF(ESE_RUN_PAGES, used - seed->next),
	    .stream = seed->config.read,
	    .done = run_read,
	    .owner = seed,
	};
	for (unsigned i = 0; i < ESE_RUN_PAGES; i++)
		seed->pio.images[i] = &seed->images[i];
	seed->busy = true;
	ese_pager_read(pager, &seed->pio);
}

/* ---- redo beside it ---- */

static bool on_its_way(const struct ese_seed *seed, uint64_t page)
{
	return page >= seed->next && page < seed->end;
}

static void fetch_now(struct ese_seed *seed)
{
	seed->fetch_waits = false;
	seed->wanted_count = 0;
	for (unsigned i = 0; i < seed->asked_count; i++)
		if (seed->asked[i] < seed->next)
			seed->wanted[seed->wanted_count++] = seed->asked[i];
	if (seed->wanted_count)
		ese_db_redo_ops.fetch(seed->config.target, seed->wanted, seed->wanted_count,
				      seed->fetched, seed->fetched_arg);
	else
		seed->fetched(seed->fetched_arg, 0);
}

static void redo_fetch(void *arg, const uint64_t *pages, unsigned count,
		       void (*done)(void *done_arg, int status), void *done_arg)
{
	struct ese_seed *seed = arg;
	bool waits = false;

	memcpy(seed->asked, pages, count * sizeof *pages);
	seed->asked_count = count;
	seed->fetched = done;
	seed->fetched_arg = done_arg;
	for (unsigned i = 0; i < count; i++)
		waits = waits || on_its_way(seed, pages[i]);
	seed->fetch_waits = waits;
	if (!waits)
		fetch_now(seed);
}

static void redo_release(void *arg, const uint64_t *pages, unsigned count)
{
	struct ese_seed *seed = arg;

	if (seed->wanted_count)
		ese_db_redo_ops.release(seed->config.target, seed->wanted, seed->wanted_count);
}

static bool was_fetched(const struct ese_seed *seed, uint64_t page)
{
	for (unsigned i = 0; i < seed->wanted_count; i++)
		if (seed->wanted[i] == page)
			return true;
	return false;
}

static uint64_t redo_dbtime(void *arg, uint64_t page)
{
	struct ese_seed *seed = arg;

	/* Of a page that is still to come nothing need be done. */
	return was_fetched(seed, page) ? ese_db_redo_ops.dbtime(seed->config.target, page)
				       : SEEN_ALREADY;
}

static int redo_apply(void *arg, const struct ese_update *update, uint64_t first_lgpos,
		      uint64_t end_lgpos)
{
	struct ese_seed *seed = arg;

	return ese_db_redo_ops.apply(seed->config.target, update, first_lgpos, end_lgpos);
}

static void redo_lost_flush(void *arg, uint64_t page, uint64_t found, uint64_t expected)
{
	struct ese_seed *seed = arg;

	ese_db_redo_ops.lost_flush(seed->config.target, page, found, expected);
}

const struct ese_redo_ops ese_seed_redo_ops = {
    .fetch = redo_fetch,
    .release = redo_release,
    .dbtime = redo_dbtime,
    .apply = redo_apply,
    .lost_flush = redo_lost_flush,
};

/* ---- life ---- */

int ese_seed_new(const struct ese_seed_config *config, struct ese_seed **ret_seed)
{
	struct ese_seed *seed = calloc(1, sizeof *seed);

	if (!seed)
		return -ENOMEM;
	seed->config = *config;
	seed->pool = ese_image_pool_new();
	if (!seed->pool) {
		free(seed);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < ESE_RUN_PAGES; i++)
		ese_image_init(&seed->images[i], seed->pool, 0);
	seed->next = seed->end = ESE_PAGE_FIRST;
	loop_timer_init(&seed->timer, step, seed);
	*ret_seed = seed;
	return 0;
}

struct ese_seed *ese_seed_free(struct ese_seed *seed)
{
	if (!seed)
		return NULL;
	assert(!seed->running);
	ese_image_pool_free(seed->pool);
	free(seed);
	return NULL;
}

void ese_seed_start(struct ese_seed *seed)
{
	seed->running = true;
	seed->begin_ns = loop_now_ns(seed->config.loop);
	loop_timer_set(seed->config.loop, &seed->timer, seed->begin_ns);
}

void ese_seed_stop(struct ese_seed *seed)
{
	if (!seed->running)
		return;
	seed->stopped = true;
	if (!seed->busy)
		loop_timer_set(seed->config.loop, &seed->timer, 0);
}

bool ese_seed_running(const struct ese_seed *seed)
{
	return seed->running;
}

uint64_t ese_seed_bytes(const struct ese_seed *seed)
{
	uint64_t pages =
	    seed->next == UINT64_MAX ? ese_db_used_pages(seed->config.target) : seed->next;

	return pages * ESE_PAGE_BYTES;
}
