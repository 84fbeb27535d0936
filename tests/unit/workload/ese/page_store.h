/* SPDX-License-Identifier: MIT
 *
 * A store of make-believe pages for redo: each keeps its dbtime and a sum over all that was ever
 * done to it, in order.
 */
#ifndef SANLAB_TESTS_UNIT_WORKLOAD_ESE_PAGE_STORE_H
#define SANLAB_TESTS_UNIT_WORKLOAD_ESE_PAGE_STORE_H

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_recover.h"

enum { STORE_PAGES = 300 };

struct store_page {
	uint64_t dbtime, sum;
};

struct page_store {
	struct loop *loop;
	struct store_page pages[STORE_PAGES];
	uint64_t fetch_ns; /* 0: at once */
	int fetch_status;
	struct loop_timer timer;
	void (*fetched)(void *arg, int status);
	void *fetched_arg;
	unsigned held;
	uint64_t lost_page, lost_found, lost_expected, lost_count;
	uint64_t batch_max;
};

/* What writes the log: pages as they should be. */
struct page_model {
	struct rng rng;
	struct store_page pages[STORE_PAGES];
	bool clean[STORE_PAGES]; /* not changed since it was last written */
	uint64_t dbtime;
};

static void store_fetch_due(void *arg)
{
	struct page_store *store = arg;

	store->fetched(store->fetched_arg, store->fetch_status);
}

static void store_fetch(void *arg, const uint64_t *pages, unsigned count,
			void (*done)(void *done_arg, int status), void *done_arg)
{
	struct page_store *store = arg;

	assert_int_equal(store->held, 0);
	assert_true(count > 0 && count <= ESE_PREREAD_MAX);
	for (unsigned i = 1; i < count; i++)
		assert_true(pages[i - 1] < pages[i]);
	store->batch_max = MAX_OF(store->batch_max, count);
	if (store->fetch_status == 0)
		store->held = count;
	store->fetched = done;
	store->fetched_arg = done_arg;
	if (!store->fetch_ns) {
		done(done_arg, store->fetch_status);
		return;
	}
	loop_timer_init(&store->timer, store_fetch_due, store);
	loop_timer_set(store->loop, &store->timer, loop_now_ns(store->loop) + store->fetch_ns);
}

static void store_release(void *arg, const uint64_t *pages, unsigned count)
{
	struct page_store *store = arg;

	assert_int_equal(store->held, count);
	store->held = 0;
}

static uint64_t store_dbtime(void *arg, uint64_t page)
{
	return ((struct page_store *)arg)->pages[page].dbtime;
}

static void store_change(struct store_page *page, const struct ese_update *update)
{
	if (update->kind == ESE_UPDATE_IMAGE)
		page->sum = update->slots[0].key;
	else
		page->sum = page->sum * 31 + update->key;
	page->dbtime = update->dbtime_after;
}

static int store_apply(void *arg, const struct ese_update *update, uint64_t first, uint64_t end)
{
	struct page_store *store = arg;

	assert_true(store->held > 0);
	assert_true(first < end);
	store_change(&store->pages[update->page], update);
	return 0;
}

static void store_lost_flush(void *arg, uint64_t page, uint64_t found, uint64_t expected)
{
	struct page_store *store = arg;

	store->lost_count++;
	store->lost_page = page;
	store->lost_found = found;
	store->lost_expected = expected;
}

static const struct ese_redo_ops page_store_ops = {
    .fetch = store_fetch,
    .release = store_release,
    .dbtime = store_dbtime,
    .apply = store_apply,
    .lost_flush = store_lost_flush,
};

static inline void model_init(struct page_model *model, uint64_t seed)
{
	*model = (struct page_model){.dbtime = 0};
	rng_init(&model->rng, seed, 0);
	for (unsigned i = 0; i < STORE_PAGES; i++)
		model->clean[i] = true;
}

/* One record that changes 1..8 pages; a page that was clean is logged as a whole. */
static inline void model_record(struct page_model *model, struct ese_log *log)
{
	struct ese_record record = {
	    .kind = ESE_RECORD_SPLIT,
	    .update_count =
		1 + (unsigned)rng_below(&model->rng, 8) * (rng_below(&model->rng, 4) == 0),
	    .padded_bytes = (uint32_t)rng_below(&model->rng, 8000),
	};
	struct ese_slot slots[ESE_UPDATES_MAX];
	uint64_t first, end, base = rng_below(&model->rng, STORE_PAGES - ESE_UPDATES_MAX);

	record.update_count = MIN_OF(record.update_count, (unsigned)ESE_UPDATES_MAX);
	for (unsigned i = 0; i < record.update_count; i++) {
		struct ese_update *update = &record.updates[i];
		uint64_t page = base + i;

		*update = (struct ese_update){
		    .page = page,
		    .dbtime_before = model->pages[page].dbtime,
		    .dbtime_after = ++model->dbtime,
		    .kind = ESE_UPDATE_PUT,
		    .key = rng_u64(&model->rng),
		};
		store_change(&model->pages[page], update);
		if (model->clean[page]) {
			slots[i] = (struct ese_slot){.key = model->pages[page].sum};
			update->kind = ESE_UPDATE_IMAGE;
			update->slots = &slots[i];
			update->slot_count = 1;
		}
		model->clean[page] = false;
	}
	assert_int_equal(ese_log_append(log, &record, &first, &end), 0);
}

#endif
