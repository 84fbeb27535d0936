/* SPDX-License-Identifier: MIT
 *
 * Knobs from the environment.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/knob.h"

static const char *const names[] = {"SANLAB_TEST_DIGESTS", "SANLAB_TEST_SPLIT_READS",
				    "SANLAB_TEST_SMALL_WRITES", "SANLAB_TEST_SMALL_MRDSL"};

static void clear_environment(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		unsetenv(names[i]);
}

static void test_none(void **state)
{
	struct err err = {0};

	clear_environment();
	setenv("SANLAB_TEST_DIGESTS", "", 1);
	knobs.split_reads_bytes = 7;
	assert_int_equal(knobs_load(&err), 0);
	assert_int_equal(knobs.digests, 0);
	assert_int_equal(knobs.split_reads_bytes, 0);
}

static void test_values(void **state)
{
	struct err err = {0};

	clear_environment();
	setenv("SANLAB_TEST_DIGESTS", "1", 1);
	setenv("SANLAB_TEST_SPLIT_READS", "1", 1);
	setenv("SANLAB_TEST_SMALL_WRITES", "4294967295", 1);
	setenv("SANLAB_TEST_SMALL_MRDSL", "512", 1);
	assert_int_equal(knobs_load(&err), 0);
	assert_int_equal(knobs.digests, 1);
	assert_int_equal(knobs.split_reads_bytes, 1);
	assert_int_equal(knobs.small_writes_bytes, UINT32_MAX);
	assert_int_equal(knobs.small_mrdsl_bytes, 512);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *name, *value;
	} cases[] = {
	    {"SANLAB_TEST_DIGESTS", "2"},
	    {"SANLAB_TEST_DIGESTS", "yes"},
	    {"SANLAB_TEST_SPLIT_READS", "0"},
	    {"SANLAB_TEST_SPLIT_READS", "-1"},
	    {"SANLAB_TEST_SPLIT_READS", " 1"},
	    {"SANLAB_TEST_SPLIT_READS", "1k"},
	    {"SANLAB_TEST_SMALL_WRITES", "4294967296"},
	    {"SANLAB_TEST_SMALL_MRDSL", "511"},
	    {"SANLAB_TEST_SMALL_MRDSL", "262145"},
	    {"SANLAB_TEST_SMALL_MRDSL", "99999999999999999999"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {0};

		clear_environment();
		setenv(cases[i].name, cases[i].value, 1);
		assert_int_equal(knobs_load(&err), -EINVAL);
		assert_non_null(strstr(err.what, cases[i].name));
	}
	clear_environment();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_none),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
