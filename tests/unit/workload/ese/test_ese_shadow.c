/* SPDX-License-Identifier: MIT
 *
 * content: none - whatever is done to a page, the shadow gives it back, and it stays small.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/ese/ese_shadow.h"

static void rules_of(struct ese_image_rules *rules, uint64_t pages)
{
	struct ese_rules_config config = {
	    .seed = 3, .pages = pages, .record_bytes = 2129, .fanout = 50, .full_leaves = 0.1};
	struct err err = {0};

	assert_int_equal(ese_rules_init(rules, &config, &err), 0);
}

/* Some change that a tree makes to a page. */
static void change(struct rng *rng, struct ese_image *image, uint64_t dbtime)
{
	unsigned how = (unsigned)rng_below(rng, 12), at;

	image->dbtime = dbtime;
	if (how == 0) {
		image->next = (uint32_t)rng_below(rng, 1000);
	} else if (how == 1 && rng_below(rng, 4) == 0) {
		image->level ^= 1; /* and whatever else makes a page another one */
		image->base_count = image->level ? 7 : 0;
		image->count = 0;
	} else if (how < 4 && image->count) {
		at = (unsigned)rng_below(rng, image->count);
		memmove(&image->slots[at], &image->slots[at + 1],
			(image->count - at - 1) * sizeof *image->slots);
		image->count--;
	} else if (how < 7 && image->count) {
		at = (unsigned)rng_below(rng, image->count);
		if (image->level == 0)
			image->slots[at].version++;
		else
			image->slots[at].child++;
	} else if (how < 11 && (image->level || ese_leaf_fits(image, 2129))) {
		struct ese_slot slot = {.key = rng_u64(rng) >> 8};

		at = ese_image_find(image, slot.key);
		if (image->level)
			slot.child = 5;
		else
			slot.bytes = 2129;
		assert_int_equal(ese_image_reserve(image, image->count + 1u), 0);
		memmove(&image->slots[at + 1], &image->slots[at],
			(image->count - at) * sizeof *image->slots);
		image->slots[at] = slot;
		image->count++;
	} else if (how == 11) { /* as a split cuts it */
		image->count /= 2;
	}
	assert_int_equal(ese_image_settle(image), 0);
}

static void what_is_put_comes_back(void **state)
{
	enum { PAGES = 400, ROUNDS = 20000 };
	struct ese_image_pool *pool = ese_image_pool_new();
	struct ese_image *model = calloc(PAGES + 100, sizeof *model), back;
	struct ese_image_rules rules;
	struct ese_shadow *shadow;
	struct rng rng;

	(void)state;
	rules_of(&rules, PAGES);
	rng_init(&rng, 1, 1);
	assert_int_equal(ese_shadow_new(&rules, &shadow), 0);
	ese_image_init(&back, pool, 2);
	for (uint32_t page = ESE_PAGE_FIRST; page < PAGES + 100; page++) {
		ese_image_init(&model[page], pool, page);
		assert_int_equal(ese_image_initial(&rules, page, &model[page]), 0);
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t page = (uint32_t)(ESE_PAGE_FIRST + rng_below(&rng, PAGES + 98));

		if (rng_below(&rng, 2)) {
			change(&rng, &model[page], i);
			assert_int_equal(ese_shadow_put(shadow, &model[page]), 0);
		}
		assert_int_equal(ese_shadow_get(shadow, page, &back), 0);
		assert_true(ese_image_equal(&back, &model[page]));
		assert_int_equal(back.bytes, model[page].bytes);
	}
	assert_true(ese_shadow_pages(shadow) <= PAGES + 98);
	ese_shadow_free(shadow);
	ese_image_pool_free(pool);
	free(model);
}

/* The pages of a day of a TB database are written once or twice each: 200 bytes a page at most,
 * table included. */
static void it_stays_small(void **state)
{
	enum { PAGES = 100000 };
	struct ese_image_pool *pool = ese_image_pool_new();
	struct ese_image_rules rules;
	struct ese_shadow *shadow;
	struct ese_image image;

	(void)state;
	rules_of(&rules, PAGES * 10);
	assert_int_equal(ese_shadow_new(&rules, &shadow), 0);
	ese_image_init(&image, pool, 2);
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t i = 0; i < PAGES; i++) {
			assert_int_equal(ese_shadow_get(shadow, 2 + i * 9, &image), 0);
			image.dbtime = round * PAGES + i + 1;
			image.slots[round].version++;
			assert_int_equal(ese_shadow_put(shadow, &image), 0);
		}
	assert_int_equal(ese_shadow_pages(shadow), PAGES);
	assert_true(ese_shadow_bytes(shadow) / PAGES < 200);
	print_message("# %u bytes a page\n", (unsigned)(ese_shadow_bytes(shadow) / PAGES));
	ese_shadow_free(shadow);
	ese_image_pool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_put_comes_back),
	    cmocka_unit_test(it_stays_small),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
