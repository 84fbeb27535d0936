/* SPDX-License-Identifier: MIT
 *
 * Sizing: published figures come back, the arithmetic holds, what is printed is a lab.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/size_lab.h"
#include "harness/workload/exchange_profile.h"
#include "tests/unit/lab/engine_lab.h"

static int profile(const char *name)
{
	int i = 0;

	while (exchange_profile_names[i] && strcmp(exchange_profile_names[i], name) != 0)
		i++;
	assert_non_null(exchange_profile_names[i]);
	return i;
}

static void near(double got, double want, double share)
{
	if (!(fabs(got - want) <= fabs(want) * share))
		fail_msg("%.6g, not %.6g", got, want);
}

static struct exchange_sizing sized(const struct exchange_demand *demand)
{
	struct exchange_sizing sizing;
	struct err err = {0};

	if (exchange_size(demand, &sizing, &err) < 0)
		fail_msg("%s", err.what);
	return sizing;
}

/* IOPS of a mailbox as the papers have them, marked as such; what lies between is marked, too. */
static void published_iops(void **state)
{
	static const struct {
		const char *profile;
		double messages, iops;
		bool assumed;
	} figures[] = {
	    {"exchange-2010-standalone", 50, 0.060, false},
	    {"exchange-2010-standalone", 150, 0.180, false},
	    {"exchange-2010-standalone", 300, 0.360, false},
	    {"exchange-2010-standalone", 500, 0.600, true},
	    {"exchange-2010", 150, 0.150, false},
	    {"exchange-2010", 200, 0.200, false},
	    {"exchange-2010", 50, 0.050, true},
	    {"exchange-2013", 250, 0.168, false},
	    {"exchange-2013", 100, 0.067, true},
	    {"exchange-2016", 500, 0.335, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		bool assumed;

		near(exchange_message_iops(profile(figures[i].profile), figures[i].messages,
					   &assumed),
		     figures[i].iops, 0.01);
		assert_int_equal(assumed, figures[i].assumed);
	}
}

/* Plans of the papers: BP1036's 5,000 mailboxes, QNAP's 1,000 a server. */
static void published_plans(void **state)
{
	struct exchange_demand demand = {.profile = profile("exchange-2010"),
					 .mailboxes = 5000,
					 .quota_bytes = GIB,
					 .messages = 200,
					 .databases = 5};
	struct exchange_sizing sizing = sized(&demand);

	near(sizing.iops, 1000, 1e-9);
	near(sizing.planned_iops, 1200, 1e-9);
	near(sizing.reads + sizing.writes, sizing.planned_iops, 1e-9);
	near(sizing.mailboxes_per_database, 1000, 1e-9);
	assert_int_equal(sizing.demand.copies, 2);
	demand = (struct exchange_demand){.profile = profile("exchange-2013"),
					  .mailboxes = 1000,
					  .quota_bytes = 2 * GIB,
					  .messages = 250,
					  .databases = 4};
	sizing = sized(&demand);
	near(sizing.iops, 168, 1e-9);
	assert_false(sizing.iops_assumed);
	near(sizing.bdm_reads, 36, 1e-9); /* 35.98 measured */
	/* 5,000 mailboxes of BP1026: 15, 30 and 90 GB of cache at 50, 150 and 300 messages. */
	for (unsigned i = 0; i < 3; i++) {
		static const unsigned messages[] = {50, 150, 300};
		static const double gib[] = {15000.0 / 1024, 30000.0 / 1024, 90000.0 / 1024};

		demand = (struct exchange_demand){.profile = profile("exchange-2010-standalone"),
						  .mailboxes = 5000,
						  .quota_bytes = 256 * MIB,
						  .messages = messages[i]};
		near(sized(&demand).cache_bytes_per_server / (double)GIB, gib[i], 1e-9);
	}
}

static void more_of_anything_never_needs_less(void **state)
{
	struct exchange_demand demand = {.profile = profile("exchange-2013"),
					 .mailboxes = 4000,
					 .quota_bytes = GIB,
					 .messages = 100,
					 .servers = 4};
	struct exchange_sizing base = sized(&demand), more;

	demand.messages = 200;
	more = sized(&demand);
	near(more.iops, 2 * base.iops, 1e-9);
	near(more.log_bytes * (double)more.demand.databases,
	     2 * base.log_bytes * (double)base.demand.databases, 1e-9);
	assert_true(more.total_bytes > base.total_bytes);
	demand.message_bytes = 150000;
	/* Twice the size: 1.9 times the logs, twice the I/O. */
	near(sized(&demand).log_files_per_day, 1.9 * more.log_files_per_day, 1e-6);
	near(sized(&demand).iops, 2 * more.iops, 1e-9);
	/* Databases are no larger than is advised, and shared evenly. */
	demand.quota_bytes = 20 * GIB;
	more = sized(&demand);
	assert_true(more.database_bytes <= 2000e9 && more.demand.databases % 4 == 0);
	demand.copies = 1;
	assert_true(sized(&demand).database_bytes <= 200e9);
}

static void what_is_impossible_is_told(void **state)
{
	static const struct {
		struct exchange_demand demand;
		const char *what;
	} cases[] = {
	    {{.quota_bytes = GIB}, "mailboxes and their quota"},
	    {{.mailboxes = 5}, "mailboxes and their quota"},
	    {{.mailboxes = 5, .quota_bytes = GIB, .messages = 3}, "messages a day are from"},
	    {{.mailboxes = 5, .quota_bytes = GIB, .servers = 9}, "more servers than mailboxes"},
	    {{.mailboxes = 5, .quota_bytes = GIB, .copies = 99}, "more than 16 copies"},
	    {{.mailboxes = 5, .quota_bytes = GIB, .databases = 6}, "more databases than mailboxes"},
	    {{.mailboxes = 9, .quota_bytes = GIB, .databases = 3, .servers = 2}, "shared evenly"},
	    {{.mailboxes = 5000, .quota_bytes = 10 * GIB, .databases = 1}, "the most is 16 TB"},
	    {{.mailboxes = 10000000, .quota_bytes = TIB}, "more than 10000 databases"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct exchange_sizing sizing;
		struct err err = {0};

		assert_int_equal(exchange_size(&cases[i].demand, &sizing, &err), -EINVAL);
		if (!strstr(err.what, cases[i].what))
			fail_msg("'%s' is not in '%s'", cases[i].what, err.what);
	}
}

/* A faster drive needs fewer of them, a dearer write more. */
static void arrays_follow_load_and_space(void **state)
{
	struct exchange_demand demand = {.profile = profile("exchange-2010"),
					 .mailboxes = 20000,
					 .quota_bytes = 256 * MIB,
					 .messages = 300};
	struct exchange_sizing sizing = sized(&demand);

	for (int model = 0; preset_names[model]; model++) {
		struct size_array array;
		unsigned active;

		size_array(&sizing, model, &array);
		active = array.facts.drives - array.facts.spares;
		assert_string_equal(array.facts.name, preset_names[model]);
		assert_true(array.drive_iops > 60 && array.drive_iops < 250);
		assert_true(array.count >= array.for_iops && array.count >= array.for_space);
		assert_true(array.count * active >= array.iops_drives);
		assert_true(array.count * array.usable_bytes >= sizing.total_bytes);
		assert_true(array.count == 1 || (array.count - 1) * active < array.iops_drives ||
			    (array.count - 1) * array.usable_bytes < sizing.total_bytes);
		assert_int_equal(array.drives, array.count * array.facts.drives);
	}
}

static void every_lab_is_accepted(void **state)
{
	static const struct {
		uint64_t mailboxes, quota_gib, messages, servers, copies, databases;
	} demands[] = {{1, 1, 50, 1, 1},	 {1000, 2, 250, 1, 2},	   {5000, 2, 150, 4, 2},
		       {24000, 2, 100, 12, 4},	 {200000, 10, 500, 40, 3}, {3000, 1, 150, 3, 1},
		       {1200, 10, 150, 1, 2, 1}, {1, 0, 50, 1, 2}};

	for (size_t i = 0; i < ARRAY_SIZE(demands); i++) {
		struct exchange_demand demand = {
		    .profile = (int)(i % 4),
		    .mailboxes = demands[i].mailboxes,
		    .quota_bytes = demands[i].quota_gib ? demands[i].quota_gib * GIB : MIB,
		    .messages = demands[i].messages,
		    .servers = demands[i].servers,
		    .copies = demands[i].copies,
		    .databases = demands[i].databases,
		};
		struct exchange_sizing sizing = sized(&demand);

		for (int model = 0; preset_names[model]; model++) {
			char *text = NULL;
			size_t size = 0;
			FILE *to = open_memstream(&text, &size);

			assert_int_equal(size_put_lab(&sizing, model, to), 0);
			fclose(to);
			engine_lab_accepted(text);
			free(text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(published_iops),
	    cmocka_unit_test(published_plans),
	    cmocka_unit_test(more_of_anything_never_needs_less),
	    cmocka_unit_test(what_is_impossible_is_told),
	    cmocka_unit_test(arrays_follow_load_and_space),
	    cmocka_unit_test(every_lab_is_accepted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
