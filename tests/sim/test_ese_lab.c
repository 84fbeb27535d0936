/* SPDX-License-Identifier: MIT
 *
 * A lab with the database engine as a whole on the virtual loop: two mailbox servers over MPIO and
 * iSCSI against the array, paths and drives that fail, and not a page that is wrong.  Equal seeds
 * give equal runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "harness/sim/sim_lab.h"

/* clang-format off */
static const char lab_text[] = "name: ese\n"
			       "seed: 7\n"
			       "group:\n"
			       "  style: equallogic\n"
			       "  portal: 127.0.0.1:3260\n"
			       "  pools:\n"
			       "    - name: default\n"
			       "      members:\n"
			       "        - name: m1\n"
			       "          drives: {model: sas-15k-600, count: 8}\n"
			       "          raid: raid10\n"
			       "          portals: [127.0.0.1:3261, 127.0.0.1:3262]\n"
			       "          timing: modelled\n"
			       "  volumes:\n"
			       "    - {name: db1, size: 256MiB}\n"
			       "    - {name: db2, size: 256MiB}\n"
			       "    - {name: db3, size: 128MiB}\n"
			       "    - {name: log3, size: 128MiB}\n"
			       "hosts:\n"
			       "  - {name: mbx1, volumes: [db1, db2]}\n"
			       "  - {name: mbx2, volumes: [db3, log3]}\n"
			       "workload:\n"
			       "  type: exchange\n"
			       "  engine: ese\n"
			       "  mailboxes: 100\n"
			       "  sessions: 6\n"
			       "  copies: 2\n"
			       "  initial-size: 64MiB\n"
			       "  checkpoint-depth: 20MB\n"
			       "  cache-min: 2MiB\n"
			       "  cache-max: 8MiB\n"
			       /* Of so small a cache more must be free than one or two of a hundred. */
    "  constants: {flush-start: 6%, flush-stop: 12%}\n"
    "  placement: [{database: db3, log: log3}]\n"
			       "run: {warmup: 10s, duration: 30s, interval: 5s}\n"
			       "faults:\n"
			       "  - {at: 5s, path-down: {host: mbx1, path: 1}, for: 5s}\n"
			       "  - {at: 8s, all-paths-down: {host: mbx2}, for: 3s}\n"
			       "  - {at: 15s, drive-fail: {member: m1, drive: 2}}\n"
			       "expect:\n"
			       "  - {data-mismatches: 0}\n"
			       "  - {io-errors: 0}\n";
/* clang-format on */

static struct record *run(const char *const *sets, size_t count)
{
	struct sim_lab_options options = {.link = {.delay_ns = 100 * NS_PER_US,
						   .jitter_ns = 20 * NS_PER_US,
						   .rate_bytes_per_s = 117 * 1000 * 1000}};
	struct record *record = NULL;
	struct err err = {0};
	struct lab *lab;
	int r;

	assert_int_equal(
	    lab_parse("ese.yaml", lab_text, strlen(lab_text), sets, count, stderr, &lab), 0);
	r = sim_lab_run(lab, &options, &record, &err);
	if (r)
		fail_msg("%s", err.what);
	lab_free(lab);
	return record;
}

static void check_passed(const struct record *record)
{
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (record->verdicts[i].status == VERDICT_FAIL)
			print_message("# failed: %s: %s\n", record->verdicts[i].id,
				      record->verdicts[i].text);
	assert_true(record_passed(record));
}

static uint64_t ios_of(const struct record *record, const char *stream, const char *volume)
{
	for (unsigned i = 0; i < record->stream_count; i++)
		if (!strcmp(record->streams[i].name, stream) &&
		    !strcmp(record->streams[i].volume, volume))
			return record->streams[i].ios;
	fail_msg("no stream %s of %s", stream, volume);
	return 0;
}

static void faults_cost_no_page(void **state)
{
	struct record *record = run(NULL, 0);

	check_passed(record);
	assert_true(record->pages_written > 1000);
	assert_true(record->pages_read_back >= record->pages_written);
	assert_true(record->pages_checked > 1000);
	assert_true(ios_of(record, "db-write", "db3") > 100);
	assert_true(ios_of(record, "log-write", "log3") > 100);
	assert_true(ios_of(record, "log-read", "log3") > 5);
	assert_true(ios_of(record, "bdm-read", "db1") > 100);
	record_free(record);
}

static void equal_seeds_give_equal_runs(void **state)
{
	static const char *const sets[] = {"run.duration=5s", "faults=[]"};
	struct record *one = run(sets, 2), *two = run(sets, 2);

	assert_int_equal(one->stream_count, two->stream_count);
	for (unsigned i = 0; i < one->stream_count; i++) {
		assert_int_equal(one->streams[i].ios, two->streams[i].ios);
		assert_int_equal(one->streams[i].service.sum_ns, two->streams[i].service.sum_ns);
	}
	record_free(one);
	record_free(two);
}

/* The rate is the target's, whatever the storage takes. */
static void an_open_loop_keeps_its_rate(void **state)
{
	static const char *const sets[] = {"workload.loop=open",     "workload.sessions=auto",
					   "workload.mailboxes=500", "run.warmup=30s",
					   "run.duration=30s",	     "faults=[]"};
	struct record *record = run(sets, 6);

	check_passed(record);
	print_message("# %.1f IOPS of %.1f\n", record->achieved_transactional_iops, 500 * 0.168);
	assert_true(record->achieved_transactional_iops > 0.9 * 500 * 0.168);
	assert_true(record->achieved_transactional_iops < 1.1 * 500 * 0.168);
	record_free(record);
}

/* What is dirty at the end takes longer than the limit to be written, but gets on. */
static void writing_back_may_take_its_time(void **state)
{
	static const char *const sets[] = {
	    "run.drain-limit=400ms",	      "run.warmup=20s",		  "run.duration=30s",
	    "workload.sessions=40",	      "workload.cache-max=32MiB", "workload.log-files=100",
	    "workload.checkpoint-depth=60MB", "workload.think-time=1ms",  "faults=[]",
	};
	struct record *record = run(sets, 9);

	if (record->error)
		fail_msg("%s", record->error);
	assert_true(record->pages_read_back > 0);
	record_free(record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(faults_cost_no_page),
	    cmocka_unit_test(equal_seeds_give_equal_runs),
	    cmocka_unit_test(an_open_loop_keeps_its_rate),
	    cmocka_unit_test(writing_back_may_take_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
