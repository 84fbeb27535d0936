/* SPDX-License-Identifier: MIT
 *
 * The cache against LRU-2 as one would write it down: a plain table that is searched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_cache.h"

enum { PAGES = 400, FRAMES = 64, DBS = 2 };

struct page {
	bool cached, dirty, pinned;
	bool known; /* has been used */
	uint64_t last_ns, before_ns, order, left_ns;
};

struct model {
	struct ese_cache *cache;
	struct ese_cache_config config;
	struct page pages[DBS][PAGES];
	uint64_t now_ns, lgpos, order;
	unsigned used;
	struct rng rng;
};

static struct model *model_new(uint64_t seed)
{
	struct model *model = calloc(1, sizeof *model);

	assert_non_null(model);
	model->config = (struct ese_cache_config){
	    .max_pages = FRAMES,
	    .low_share = 0.1,
	    .high_share = 0.2,
	    .correlated_ns = 100,
	    .history_ns = 20000,
	    .history_max = 100000,
	};
	assert_int_equal(ese_cache_new(&model->config, &model->cache), 0);
	for (int i = 0; i < DBS; i++)
		assert_int_equal(ese_cache_add_db(model->cache, model), i);
	model->now_ns = 1000;
	model->lgpos = 1;
	rng_init(&model->rng, seed, 1);
	return model;
}

static void model_free(struct model *model)
{
	for (unsigned db = 0; db < DBS; db++)
		ese_cache_drop_db(model->cache, db);
	assert_int_equal(ese_cache_used(model->cache), 0);
	ese_cache_free(model->cache);
	free(model);
}

/* Pages that may leave: those seen once by their last use, then the others by the last but one;
 * what was used within the correlation interval after all others. */
static struct page *expected_victim(struct model *model)
{
	uint64_t since = model->now_ns - model->config.correlated_ns;

	for (unsigned pass = 0; pass < 4; pass++) {
		bool once = pass % 2 == 0;
		struct page *best = NULL;

		for (unsigned i = 0; i < DBS * PAGES; i++) {
			struct page *page = &model->pages[i / PAGES][i % PAGES];

			if (!page->cached || page->pinned || (page->before_ns == 0) != once ||
			    (pass < 2 && page->last_ns > since))
				continue;
			if (!best ||
			    (once ? page->order < best->order : page->before_ns < best->before_ns))
				best = page;
		}
		if (best)
			return best;
	}
	return NULL;
}

static void left(struct model *model, struct page *page)
{
	page->cached = page->dirty = false;
	page->left_ns = page->last_ns;
	model->used--;
}

static void make_room(struct model *model)
{
	while (ese_cache_wants_victims(model->cache)) {
		struct page *expected = expected_victim(model);
		struct ese_frame *frame = NULL;
		enum ese_victim victim = ese_cache_victim(model->cache, model->now_ns, &frame);
		struct ese_dirt dirt = {0};

		if (!expected) {
			assert_int_equal(victim, ESE_VICTIM_NONE);
			return;
		}
		assert_int_equal(victim, expected->dirty ? ESE_VICTIM_DIRTY : ESE_VICTIM_FREED);
		if (victim == ESE_VICTIM_DIRTY) {
			assert_ptr_equal(expected, &model->pages[frame->db][frame->page]);
			ese_cache_write_begin(model->cache, frame);
			ese_cache_write_end(model->cache, frame, true, &dirt);
		}
		left(model, expected);
		assert_int_equal(ese_cache_used(model->cache), model->used);
	}
}

static void use(struct model *model, unsigned db, uint32_t number)
{
	struct page *page = &model->pages[db][number];
	struct ese_frame *frame = ese_cache_find(model->cache, db, number);

	assert_true(!!frame == page->cached);
	if (frame) {
		ese_cache_touch(model->cache, frame, model->now_ns);
		if (model->now_ns - page->last_ns > model->config.correlated_ns)
			page->before_ns = page->last_ns;
	} else {
		frame = ese_cache_take(model->cache, db, number, model->now_ns);
		assert_non_null(frame);
		ese_cache_arrived(model->cache, frame, false);
		page->before_ns =
		    page->known && model->now_ns - page->left_ns <= 20000 ? page->left_ns : 0;
		page->cached = page->known = true;
		model->used++;
	}
	page->last_ns = model->now_ns;
	page->order = model->order++;
	assert_int_equal(frame->before_ns, page->before_ns);
	if (rng_below(&model->rng, 3) == 0) {
		ese_cache_dirty(model->cache, frame, model->lgpos, model->lgpos + 1);
		model->lgpos++;
		page->dirty = true;
	}
}

static void run(uint64_t seed)
{
	struct model *model = model_new(seed);
	uint64_t step = 1 + rng_below(&model->rng, 400);

	for (unsigned i = 0; i < 20000; i++) {
		uint32_t page =
		    (uint32_t)(rng_below(&model->rng, 3) ? rng_below(&model->rng, 60)
							 : rng_below(&model->rng, PAGES));
		struct ese_frame *frame;

		model->now_ns += 1 + rng_below(&model->rng, step);
		make_room(model);
		use(model, (unsigned)rng_below(&model->rng, DBS), page);
		/* The oldest dirty page comes first. */
		frame = ese_cache_oldest(model->cache, 0);
		for (uint64_t last = 0; frame; frame = frame->dirty_next) {
			assert_true(frame->lgpos_first > last);
			last = frame->lgpos_first;
		}
	}
	assert_true(ese_cache_used(model->cache) > FRAMES * 3 / 4);
	assert_true(ese_cache_counters(model->cache, 0)->history_hits > 0);
	model_free(model);
}

static void test_victims_are_those_of_lru_2(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		run(seed);
}

static struct ese_frame *fill(struct model *model, unsigned db, uint32_t page)
{
	struct ese_frame *frame = ese_cache_take(model->cache, db, page, ++model->now_ns);

	if (frame)
		ese_cache_arrived(model->cache, frame, false);
	return frame;
}

static void test_a_full_cache_stalls(void **state)
{
	struct model *model = model_new(1);
	struct ese_frame *frame;

	(void)state;
	for (uint32_t page = 0; page < FRAMES; page++) {
		frame = fill(model, 0, page);
		assert_non_null(frame);
		frame->pins++;
	}
	assert_int_equal(ese_cache_available(model->cache), 0);
	assert_null(fill(model, 0, 1000));
	assert_int_equal(ese_cache_stalls(model->cache), 1);
	/* All are in use. */
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &frame), ESE_VICTIM_NONE);
	ese_cache_find(model->cache, 0, 7)->pins--;
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &frame), ESE_VICTIM_FREED);
	assert_null(ese_cache_find(model->cache, 0, 7));
	for (uint32_t page = 0; page < FRAMES; page++)
		if (page != 7)
			ese_cache_find(model->cache, 0, page)->pins--;
	model_free(model);
}

/* A victim that is used while it is written stays; one whose write fails is dirty as before. */
static void test_victims_that_stay(void **state)
{
	struct model *model = model_new(1);
	struct ese_frame *frame = fill(model, 0, 3), *victim;
	struct ese_dirt dirt = {10, 20, 0};

	(void)state;
	ese_cache_dirty(model->cache, frame, 10, 20);
	model->now_ns += 1000;
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &victim), ESE_VICTIM_DIRTY);
	assert_ptr_equal(victim, frame);
	ese_cache_write_begin(model->cache, frame);
	ese_cache_touch(model->cache, frame, model->now_ns);
	ese_cache_write_end(model->cache, frame, true, &dirt);
	assert_ptr_equal(ese_cache_find(model->cache, 0, 3), frame);
	assert_false(frame->dirty);

	ese_cache_dirty(model->cache, frame, 30, 40);
	dirt = (struct ese_dirt){30, 40, 0};
	model->now_ns += 1000;
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &victim), ESE_VICTIM_DIRTY);
	ese_cache_write_begin(model->cache, frame);
	ese_cache_dirty(model->cache, frame, 50, 60); /* meanwhile */
	ese_cache_write_end(model->cache, frame, false, &dirt);
	assert_ptr_equal(ese_cache_oldest(model->cache, 0), frame);
	assert_int_equal(frame->lgpos_first, 30);
	assert_int_equal(frame->lgpos_last, 60);

	/* Written at last, it leaves. */
	model->now_ns += 1000;
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &victim), ESE_VICTIM_DIRTY);
	ese_cache_write_begin(model->cache, frame);
	ese_cache_write_end(model->cache, frame, true, &dirt);
	assert_null(ese_cache_find(model->cache, 0, 3));
	model_free(model);
}

static void test_kept_pages_never_leave(void **state)
{
	struct model *model = model_new(1);
	struct ese_frame *frame = ese_cache_take(model->cache, 0, 1, model->now_ns), *victim;

	(void)state;
	ese_cache_arrived(model->cache, frame, true);
	assert_int_equal(ese_cache_kept(model->cache), 1);
	ese_cache_touch(model->cache, frame, ++model->now_ns);
	model->now_ns += 1000;
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &victim), ESE_VICTIM_NONE);
	ese_cache_keep(model->cache, frame, false);
	assert_int_equal(ese_cache_victim(model->cache, model->now_ns, &victim), ESE_VICTIM_FREED);
	assert_int_equal(ese_cache_kept(model->cache), 0);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_victims_are_those_of_lru_2),
	    cmocka_unit_test(test_a_full_cache_stalls),
	    cmocka_unit_test(test_victims_that_stay),
	    cmocka_unit_test(test_kept_pages_never_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
