/* SPDX-License-Identifier: MIT
 *
 * The slice map of a volume, and the pool's fill that thin volumes warn about.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "target/array/volume.h"
#include "tests/unit/array/lab.h"

#define P POOL_PAGE_BYTES

static struct lab lab;

static void touch(const char *volume, uint64_t page)
{
	static uint8_t sector[512] = {1};

	assert_int_equal(lab_io(&lab, volume, IO_WRITE, page * P, sector, 512), 0);
}

static void slices(void **state)
{
	uint64_t at = 0, run, pages_of[2] = {0};
	const struct member *member, *before = NULL;
	struct volume *volume;

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 1, 8 * P);
	lab_member(&lab, "m2", "raid0", 1, 8 * P);
	lab_volume(&lab, "v", 9 * P + 4096, true);
	lab_opens(&lab);
	volume = group_find_volume(lab.open, "v");
	volume_slice(volume, P + 512, &member, &run);
	assert_null(member);
	assert_int_equal(run, 8 * P + 4096 - 512);
	for (uint64_t page = 0; page < 6; page++)
		touch("v", page);
	/* Runs do not touch the same member, end at the volume's end and hold every page. */
	for (at = 0; at < 9 * P + 4096; at += run, before = member) {
		volume_slice(volume, at, &member, &run);
		assert_true(run > 0);
		assert_true(at == 0 || member != before);
		for (size_t i = 0; i < 2; i++)
			if (member == group_member_at(lab.open, i))
				pages_of[i] += run / P;
	}
	assert_int_equal(at, 9 * P + 4096);
	assert_null(member);
	assert_int_equal(pages_of[0], 3);
	assert_int_equal(pages_of[1], 3);
	lab_close(&lab);
}

static void space_of_the_pool(void **state)
{
	uint64_t used, total;
	struct volume *volume;

	lab_init(&lab);
	lab_member(&lab, "m1", "raid0", 2, 8 * P);
	lab_member(&lab, "m2", "raid10", 2, 4 * P);
	lab_volume(&lab, "a", 10 * P, true)->thin_threshold = 0.8;
	lab_volume(&lab, "b", 10 * P, true);
	lab_opens(&lab);
	volume = group_find_volume(lab.open, "a");
	volume_pool_space(volume, &used, &total);
	assert_int_equal(used, 0);
	assert_int_equal(total, 20 * P);
	touch("a", 0);
	touch("b", 0);
	touch("b", 1);
	volume_pool_space(volume, &used, &total);
	assert_int_equal(used, 3 * P);
	assert_int_equal(volume_thin_threshold_percent(volume), 80);
	assert_int_equal(volume_thin_threshold_percent(group_find_volume(lab.open, "b")), 0);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(slices),
					   cmocka_unit_test(space_of_the_pool)};

	return cmocka_run_group_tests_name("volume_space", tests, NULL, NULL);
}
