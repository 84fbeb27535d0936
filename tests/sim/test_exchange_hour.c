/* SPDX-License-Identifier: MIT
 *
 * The production workload, MPIO, SCSI, page map, RAID and delaying drives on the virtual loop: an
 * hour of Exchange load in seconds, a path cut in the middle, the verdicts of a real run; equal
 * seeds give byte-identical events.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "harness/sim/sim_lab.h"

#define CUT(seconds) "  - {at: " seconds "s, all-paths-down: {host: mbx1}, for: 200ms}\n"
#define CUTS(tens)   CUT(tens "1") CUT(tens "4") CUT(tens "7")
enum { CUT_COUNT = 8 * 3 };

static const char lab_text[] =
    "name: hour\n"
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
    "        - name: m2\n"
    "          drives: {model: sas-15k-600, count: 8}\n"
    "          raid: raid10\n"
    "          portals: [127.0.0.1:3263, 127.0.0.1:3264]\n"
    "          timing: modelled\n"
    "  volumes:\n"
    "    - {name: db1, pool: default, size: 512MiB, thin: true}\n"
    "hosts:\n"
    "  - {name: mbx1, stack: direct, mpio: {policy: round-robin}, volumes: [db1]}\n"
    "workload: {type: exchange, profile: exchange-2010, mailboxes: 300, iops-per-mailbox: 0.2}\n"
    "run: {warmup: 30s, duration: 1h, interval: 60s}\n"
    "faults:\n"
    "  - {at: 30m, path-down: {host: mbx1, path: 2}, for: 5m}\n"
    /* clang-format off */
    /* At 85 I/Os a second few are in flight at any instant: some of many cuts meet one. */
    CUTS("240") CUTS("242") CUTS("244") CUTS("246") CUTS("248") CUTS("250") CUTS("252") CUTS("254")
    "expect:\n"
    "  - {data-mismatches: 0}\n"
    "  - {io-errors: 0}\n";
/* clang-format on */

struct outcome {
	struct record *record;
	char *events;
	size_t events_bytes;
};

static void read_file(const char *dir, const char *name, char **ret_text, size_t *ret_bytes)
{
	char path[256];
	FILE *file;
	long size;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	rewind(file);
	*ret_text = malloc((size_t)size + 1);
	assert_non_null(*ret_text);
	assert_int_equal(fread(*ret_text, 1, (size_t)size, file), size);
	(*ret_text)[size] = '\0';
	*ret_bytes = (size_t)size;
	fclose(file);
}

static void remove_dir(const char *dir)
{
	char command[300];

	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	assert_int_equal(system(command), 0);
}

static struct outcome run_lab_text(const char *const *sets, size_t set_count)
{
	char dir[] = "/tmp/sanlab-sim.XXXXXX";
	struct sim_lab_options options = {.link = {.delay_ns = 100 * NS_PER_US,
						   .jitter_ns = 20 * NS_PER_US,
						   .rate_bytes_per_s = 117 * 1000 * 1000}};
	struct outcome outcome = {0};
	struct err err = {0};
	struct lab *lab;
	int r;

	assert_non_null(mkdtemp(dir));
	options.out_dir = dir;
	assert_int_equal(
	    lab_parse("hour.yaml", lab_text, strlen(lab_text), sets, set_count, stderr, &lab), 0);
	r = sim_lab_run(lab, &options, &outcome.record, &err);
	if (r)
		fail_msg("%s", err.what);
	read_file(dir, "events.jsonl", &outcome.events, &outcome.events_bytes);
	lab_free(lab);
	remove_dir(dir);
	return outcome;
}

static void outcome_done(struct outcome *outcome)
{
	record_free(outcome->record);
	free(outcome->events);
}

static void an_hour_with_a_path_failure_passes(void **state)
{
	struct outcome outcome = run_lab_text(NULL, 0);
	struct record *record = outcome.record;
	uint64_t reissued = 0, losses = 0;
	bool path_named = false;

	for (unsigned i = 0; i < record->verdict_count; i++)
		if (record->verdicts[i].status == VERDICT_FAIL)
			print_message("# failed: %s: %s\n", record->verdicts[i].id,
				      record->verdicts[i].text);
	assert_true(record_passed(record));
	assert_true(record->window_end_ns - record->window_start_ns >= 3600 * NS_PER_S);
	assert_true(record->achieved_transactional_iops >= 0.95 * 60);
	/* Modelled drives: latencies are those of disks, not of memory. */
	for (unsigned i = 0; i < record->stream_count; i++)
		if (!strcmp(record->streams[i].name, "db-read"))
			assert_true(hist_mean_ns(&record->streams[i].response) > 2e6);
	assert_int_equal(record->path_count, 4);
	for (unsigned i = 0; i < record->path_count; i++) {
		reissued += record->paths[i].reissued;
		losses += record->paths[i].losses;
	}
	assert_int_equal(losses, 1 + CUT_COUNT * 4);
	assert_true(reissued >= 1);
	assert_true(record->pages_read_back >= record->pages_written);
	assert_true(record->pages_written > 10000);
	for (unsigned i = 0; i < record->marker_count; i++)
		if (record->markers[i].portal &&
		    !strcmp(record->markers[i].portal, "127.0.0.1:3263"))
			path_named = true;
	assert_true(path_named);
	print_message("# %llu I/Os re-issued\n", (unsigned long long)reissued);
	outcome_done(&outcome);
}

static const char *const short_sets[] = {
    "run.duration=5m", "faults=[{at: 60s, path-down: {host: mbx1, path: 2}, for: 30s}]"};

static void equal_seeds_give_equal_bytes(void **state)
{
	const char *other_seed[] = {short_sets[0], short_sets[1], "seed=8"};
	struct outcome one = run_lab_text(short_sets, ARRAY_SIZE(short_sets));
	struct outcome two = run_lab_text(short_sets, ARRAY_SIZE(short_sets));
	struct outcome other = run_lab_text(other_seed, ARRAY_SIZE(other_seed));

	assert_true(one.events_bytes > 1000);
	assert_int_equal(one.events_bytes, two.events_bytes);
	assert_memory_equal(one.events, two.events, one.events_bytes);
	assert_true(one.events_bytes != other.events_bytes ||
		    memcmp(one.events, other.events, one.events_bytes) != 0);
	outcome_done(&one);
	outcome_done(&two);
	outcome_done(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_hour_with_a_path_failure_passes),
	    cmocka_unit_test(equal_seeds_give_equal_bytes),
	};

	return cmocka_run_group_tests_name("exchange_hour", tests, NULL, NULL);
}
