/* SPDX-License-Identifier: MIT
 *
 * Page identity: every kind of damage is named, and nothing sound is blamed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/page.h"
#include "harness/workload/page_set.h"
#include "harness/workload/workload.h"

enum { PAGE = 8 * PAGE_UNIT_BYTES };

static struct page_area area_of(uint64_t seed, uint64_t volume)
{
	struct page_area area = {.magic = PAGE_MAGIC_DATABASE, .units = 8, .volume = volume};

	page_run_uuid(seed, 1000, area.run);
	return area;
}

static uint8_t *new_page(void)
{
	uint8_t *page = aligned_alloc(4096, PAGE);

	assert_non_null(page);
	memset(page, 0, PAGE);
	return page;
}

static int verify(const uint8_t *buf, uint64_t low, uint64_t high, bool zero, uint64_t *found)
{
	struct page_area area = area_of(1, 7);
	struct page_expect expect = {low, high, zero};

	return page_verify(&area, buf, 5, &expect, found);
}

enum damage {
	CLEAN,
	ZEROED,
	BIT,
	HEADER_BIT,
	HALF_OLD,
	HALF_ZERO,
	HALF_FOREIGN,
	OTHER_PAGE,
	OTHER_VOLUME,
	UNITS_SWAPPED,
	LOG_DATA,
	OTHER_RUN,
	GARBAGE,
	ONE_UNIT_GARBAGE,
};

static void damage_page(uint8_t *buf, enum damage damage)
{
	struct page_area area = area_of(1, 7), other_run = area_of(2, 7);
	uint8_t *old = new_page();

	switch (damage) {
	case CLEAN:
		break;
	case ZEROED:
		memset(buf, 0, PAGE);
		break;
	case BIT:
		buf[3 * PAGE_UNIT_BYTES + 999] ^= 1;
		break;
	case HEADER_BIT:
		buf[45] ^= 4;
		break;
	case HALF_OLD:
		page_fill(&area, old, 5, 8);
		memcpy(buf + PAGE / 2, old + PAGE / 2, PAGE / 2);
		break;
	case HALF_ZERO:
		memset(buf + PAGE / 2, 0, PAGE / 2);
		break;
	case HALF_FOREIGN:
		page_fill(&other_run, old, 5, 9);
		memcpy(buf, old, PAGE / 2);
		break;
	case OTHER_PAGE:
		page_fill(&area, buf, 6, 9);
		break;
	case OTHER_VOLUME:
		area.volume = 8;
		page_fill(&area, buf, 5, 9);
		break;
	case UNITS_SWAPPED:
		memcpy(old, buf, PAGE_UNIT_BYTES);
		memcpy(buf, buf + PAGE_UNIT_BYTES, PAGE_UNIT_BYTES);
		memcpy(buf + PAGE_UNIT_BYTES, old, PAGE_UNIT_BYTES);
		break;
	case LOG_DATA:
		area.magic = PAGE_MAGIC_LOG;
		page_fill(&area, buf, 5, 9);
		break;
	case OTHER_RUN:
		page_fill(&other_run, buf, 5, 9);
		break;
	case GARBAGE:
		memset(buf, 0xa5, PAGE);
		break;
	case ONE_UNIT_GARBAGE:
		memset(buf + PAGE_UNIT_BYTES, 0xa5, PAGE_UNIT_BYTES);
		break;
	}
	free(old);
}

/* The page holds generation 9 before the damage. */
static const struct {
	enum damage damage;
	uint64_t low, high;
	bool zero;
	int want;
} cases[] = {
    {CLEAN, 9, 9, true, -1},
    {CLEAN, 3, 9, true, -1},
    {CLEAN, 9, 11, true, -1},
    {CLEAN, 0, 9, true, -1},
    {CLEAN, 10, 10, true, MISMATCH_STALE},
    {CLEAN, 10, 12, false, MISMATCH_STALE},
    {CLEAN, 8, 8, true, MISMATCH_FOREIGN},
    {CLEAN, 0, 0, true, MISMATCH_NEVER_WRITTEN},
    {ZEROED, 9, 9, true, MISMATCH_NEVER_WRITTEN},
    {ZEROED, 9, 9, false, MISMATCH_NEVER_WRITTEN},
    {ZEROED, 0, 9, true, -1},
    {ZEROED, 0, 0, true, -1},
    {ZEROED, 0, 0, false, -1},
    {BIT, 9, 9, true, MISMATCH_CORRUPT},
    {BIT, 0, 9, true, MISMATCH_CORRUPT},
    {HEADER_BIT, 9, 9, true, MISMATCH_CORRUPT},
    {HALF_OLD, 9, 9, true, MISMATCH_TORN},
    {HALF_OLD, 8, 9, true, MISMATCH_TORN},
    {HALF_ZERO, 9, 9, true, MISMATCH_TORN},
    {HALF_ZERO, 0, 9, true, MISMATCH_TORN},
    {HALF_FOREIGN, 9, 9, true, MISMATCH_TORN},
    {OTHER_PAGE, 9, 9, true, MISMATCH_MISDIRECTED},
    {OTHER_PAGE, 0, 0, false, MISMATCH_MISDIRECTED},
    {OTHER_PAGE, 0, 0, true, MISMATCH_MISDIRECTED},
    {OTHER_VOLUME, 9, 9, true, MISMATCH_MISDIRECTED},
    {UNITS_SWAPPED, 9, 9, true, MISMATCH_MISDIRECTED},
    {LOG_DATA, 9, 9, true, MISMATCH_MISDIRECTED},
    {OTHER_RUN, 9, 9, true, MISMATCH_FOREIGN},
    {OTHER_RUN, 0, 9, false, -1},
    {OTHER_RUN, 0, 0, true, MISMATCH_FOREIGN},
    {OTHER_RUN, 0, 0, false, -1},
    {GARBAGE, 9, 9, true, MISMATCH_CORRUPT},
    {GARBAGE, 0, 0, true, MISMATCH_NEVER_WRITTEN},
    {GARBAGE, 0, 0, false, -1},
    {ONE_UNIT_GARBAGE, 9, 9, false, MISMATCH_CORRUPT},
};

static void every_damage_is_named(void **state)
{
	struct page_area area = area_of(1, 7);
	uint8_t *buf = new_page();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t found = 99;
		int got;

		page_fill(&area, buf, 5, 9);
		damage_page(buf, cases[i].damage);
		got = verify(buf, cases[i].low, cases[i].high, cases[i].zero, &found);
		if (got != cases[i].want)
			fail_msg("case %zu: got %d, want %d", i, got, cases[i].want);
		if (got < 0)
			assert_int_equal(found, 99);
		if (got == MISMATCH_STALE)
			assert_int_equal(found, 9);
	}
	free(buf);
}

static void clean_pages_are_never_blamed(void **state)
{
	struct rng rng;
	uint8_t *buf = new_page();
	uint64_t found;

	rng_init(&rng, 3, 1);
	for (unsigned i = 0; i < 100000; i++) {
		struct page_area area = {
		    .magic = PAGE_MAGIC_DATABASE,
		    .units = i % 16 == 0 ? 8 : 1, /* one unit mostly: that is what takes the time */
		    .volume = rng_u64(&rng),
		};
		uint64_t page = rng_u64(&rng), generation = 1 + rng_below(&rng, UINT32_MAX);
		struct page_expect expect = {generation, generation, rng_below(&rng, 2) != 0};

		page_run_uuid(rng_u64(&rng), rng_u64(&rng), area.run);
		page_fill(&area, buf, page, generation);
		assert_int_equal(page_verify(&area, buf, page, &expect, &found), -1);
	}
	free(buf);
}

static void pages_do_not_repeat(void **state)
{
	struct page_area area = area_of(1, 7);
	uint8_t *a = new_page(), *b = new_page();

	page_fill(&area, a, 5, 9);
	page_fill(&area, b, 5, 10);
	for (unsigned at = 0; at < PAGE; at += 512) {
		assert_memory_not_equal(a + at, b + at, 512);
		assert_memory_not_equal(a + at, a + (at + 512) % PAGE, 512);
	}
	page_fill(&area, b, 6, 9);
	assert_memory_not_equal(a + 1024, b + 1024, 512);
	page_fill(&area, b, 5, 9);
	assert_memory_equal(a, b, PAGE);
	free(a);
	free(b);
}

static void a_run_has_its_own_uuid(void **state)
{
	uint8_t a[16], b[16];

	page_run_uuid(1, 1000, a);
	page_run_uuid(1, 1000, b);
	assert_memory_equal(a, b, sizeof a);
	page_run_uuid(1, 1001, b);
	assert_memory_not_equal(a, b, sizeof a);
	page_run_uuid(2, 1000, b);
	assert_memory_not_equal(a, b, sizeof a);
}

static void expect_is(const struct page_set *set, uint64_t page, uint64_t low, uint64_t high)
{
	struct page_expect expect;

	page_set_expect(set, page, &expect);
	assert_int_equal(expect.low, low);
	assert_int_equal(expect.high, high);
}

static void write_once(struct page_set *set, uint64_t page, bool acknowledged)
{
	page_set_lock(set, page, 1);
	page_set_write_begin(set, page);
	page_set_write_end(set, page, acknowledged);
	page_set_unlock(set, page, 1);
}

static void failed_writes_leave_both_possible(void **state)
{
	struct page_set set;

	assert_int_equal(page_set_init(&set, 100, true), 0);
	expect_is(&set, 70, 0, 0);
	write_once(&set, 70, false);
	expect_is(&set, 70, 0, 1);
	assert_false(page_set_is_written(&set, 70));
	assert_true(page_set_is_tried(&set, 70));
	assert_int_equal(set.written, 0);
	write_once(&set, 70, true);
	expect_is(&set, 70, 2, 2);
	assert_int_equal(set.written, 1);
	write_once(&set, 70, false);
	write_once(&set, 70, false);
	expect_is(&set, 70, 2, 4);
	assert_true(page_set_is_written(&set, 70));
	write_once(&set, 70, true);
	expect_is(&set, 70, 5, 5);
	assert_int_equal(set.written, 1);
	expect_is(&set, 71, 0, 0);
	page_set_done(&set);
}

static void a_page_in_flight_is_locked(void **state)
{
	struct page_set set;

	assert_int_equal(page_set_init(&set, 200, true), 0);
	assert_int_equal(page_set_free_run(&set, 60, 10), 10);
	page_set_lock(&set, 63, 2);
	assert_int_equal(page_set_free_run(&set, 60, 10), 3);
	assert_int_equal(page_set_free_run(&set, 63, 1), 0);
	assert_int_equal(page_set_free_run(&set, 65, 135), 135);
	page_set_write_begin(&set, 63);
	expect_is(&set, 63, 0, 1);
	page_set_write_end(&set, 63, true);
	page_set_unlock(&set, 63, 2);
	assert_int_equal(page_set_free_run(&set, 60, 10), 10);
	page_set_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_damage_is_named),
	    cmocka_unit_test(clean_pages_are_never_blamed),
	    cmocka_unit_test(pages_do_not_repeat),
	    cmocka_unit_test(a_run_has_its_own_uuid),
	    cmocka_unit_test(failed_writes_leave_both_possible),
	    cmocka_unit_test(a_page_in_flight_is_locked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
