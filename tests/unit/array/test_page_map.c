/* SPDX-License-Identifier: MIT
 *
 * The page map: requests cut at page borders, runs of adjacent pages joined.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/bytes.h"
#include "target/array/array.h"
#include "target/array/page_map.h"

#define P POOL_PAGE_BYTES

static void extents(void **state)
{
	static const struct {
		uint64_t offset, length;
		bool mapped;
		unsigned member;
		uint64_t at, run;
		uint32_t first, count;
	} rows[] = {
	    {0, 512, true, 0, 7 * P, 512, 0, 1},
	    {P - 512, 512, true, 0, 8 * P - 512, 512, 0, 1},
	    {P - 512, 1024, true, 0, 8 * P - 512, 1024, 0, 2},	   /* 7 and 8 are adjacent */
	    {100, 3 * P, true, 0, 7 * P + 100, 2 * P - 100, 0, 2}, /* 9 is on another member */
	    {2 * P, P, true, 1, 9 * P, P, 2, 1},
	    {3 * P + 512, 4 * P, false, 0, 0, 2 * P - 512, 3, 2}, /* two holes */
	    {5 * P, P, true, 0, 3 * P, P, 5, 1},
	    {5 * P, 2 * P, true, 0, 3 * P, P, 5, 1}, /* page 2 does not follow page 3 */
	    {6 * P + 1024, 512, true, 0, 2 * P + 1024, 512, 6, 1},
	};
	struct page_map map;
	assert_int_equal(page_map_init(&map, 6 * P + 4096), 0);
	assert_int_equal(map.count, 7);
	map.entries[0] = (struct page_entry){.page = 7};
	map.entries[1] = (struct page_entry){.page = 8};
	map.entries[2] = (struct page_entry){.page = 9, .member = 1};
	map.entries[5] = (struct page_entry){.page = 3};
	map.entries[6] = (struct page_entry){.page = 2};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct page_extent run = page_map_extent(&map, rows[i].offset, rows[i].length);
		assert_int_equal(run.mapped, rows[i].mapped);
		if (run.mapped) {
			assert_int_equal(run.member, rows[i].member);
			assert_int_equal(run.offset_bytes, rows[i].at);
		}
		assert_int_equal(run.length_bytes, rows[i].run);
		assert_int_equal(run.first, rows[i].first);
		assert_int_equal(run.count, rows[i].count);
	}
	page_map_done(&map);
}

static void sizes(void **state)
{
	struct page_map map;
	assert_int_equal(page_map_init(&map, 0), -EINVAL);
	assert_int_equal(page_map_init(&map, P), 0);
	assert_int_equal(map.count, 1);
	assert_int_equal(map.entries[0].page, PAGE_NONE);
	page_map_done(&map);
	assert_int_equal(page_map_init(&map, P + 1), 0);
	assert_int_equal(map.count, 2);
	page_map_done(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(extents), cmocka_unit_test(sizes)};
	return cmocka_run_group_tests_name("page_map", tests, NULL, NULL);
}
