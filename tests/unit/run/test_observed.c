/* SPDX-License-Identifier: MIT
 *
 * Verdicts on a load that is somebody else's: the target has seen pauses, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/run/run.h"

static int status_of(const struct record *record, const char *id)
{
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (strcmp(record->verdicts[i].id, id) == 0)
			return (int)record->verdicts[i].status;
	return -1;
}

/* What nobody looked at has not passed. */
static void only_gaps_are_judged(void **state)
{
	struct expect_config expect[] = {
	    {.key = "data-mismatches", .text = "0", .op = EXPECT_EQ},
	    {.key = "p99-latency", .text = "< 1s", .op = EXPECT_LT, .value = 1e9},
	    {.key = "max-io-gap", .text = "<= 1s", .op = EXPECT_LE, .value = 1e9},
	};
	struct lab lab = {.expect = {.items = expect, .count = ARRAY_SIZE(expect)},
			  .run = {.duration_ns = NS_PER_S}};
	static const int gaps_ns[] = {1000 * 1000 * 1000, 1000 * 1000 * 1000 + 1};
	static const enum verdict_status wanted[] = {VERDICT_PASS, VERDICT_FAIL};

	for (size_t i = 0; i < ARRAY_SIZE(gaps_ns); i++) {
		struct record *record = record_new();

		record->window_end_ns = NS_PER_S;
		record->observed =
		    json_pack("{s:[{s:i, s:s, s:s}]}", "devices", "max_gap_ns", gaps_ns[i],
			      "initiator", "iqn.host", "target", "iqn.array");
		verdicts_judge(&lab, record);
		assert_int_equal(status_of(record, "completed"), VERDICT_PASS);
		assert_int_equal(status_of(record, "io-errors"), -1);
		assert_int_equal(status_of(record, "expect data-mismatches"), VERDICT_SKIP);
		assert_int_equal(status_of(record, "expect p99-latency"), VERDICT_SKIP);
		assert_int_equal(status_of(record, "expect max-io-gap"), wanted[i]);
		record_free(record);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(only_gaps_are_judged)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
