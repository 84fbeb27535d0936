/* SPDX-License-Identifier: MIT
 *
 * The log files after a test: every segment of the newest ones must be of this log, whole, and
 * where it belongs, up to the log's tip.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/workload/ese/ese_log_read.h"
#include "harness/workload/ese/ese_test_impl.h"

#define FILES_MAX 500 /* Jetstress' LogFilesToChecksum */

static void step_ended(struct ese_test *test)
{
	if (--test->steps)
		return;
	test->phase = ESE_TEST_IDLE;
	test->scanned(test->scanned_arg, test->status);
}

/* The newest files that the ring holds for sure: the oldest one may be on its way to be the next.
 */
static uint64_t first_lgpos(const struct ese_log_area *area, uint64_t tip)
{
	uint64_t files = MIN_OF((uint64_t)area->files - 2, (uint64_t)FILES_MAX);
	uint64_t generation = tip / ESE_LOG_FILE_BYTES;

	return (generation > files ? generation - files : 1) * ESE_LOG_FILE_BYTES;
}

static void log_ended(void *arg, const struct ese_log_read_result *result)
{
	struct ese_test_db *db = arg;
	struct ese_test *test = db->server->test;
	struct ese_test_log_check *check = &db->log_check;

	check->done = result->end != ESE_LOG_END_STOPPED;
	check->segments = result->segments;
	check->end_lgpos = result->next_lgpos;
	check->status = result->end == ESE_LOG_END_ERROR ? result->status : 0;
	check->good = check->done && result->end != ESE_LOG_END_ERROR &&
		      result->end != ESE_LOG_END_CORRUPT && result->next_lgpos >= check->tip;
	if (check->done)
		ese_testlog_add(test->log, db->server->host, "%s: %llu log segments read, %s.",
				db->name, (unsigned long long)check->segments,
				check->good	    ? "all good"
				: check->status < 0 ? "then the log could not be read"
						    : "then comes a damaged one");
	step_ended(test);
}

static bool take_record(void *arg, const struct ese_record *record, uint64_t first_lgpos,
			uint64_t end_lgpos)
{
	return true;
}

static int check_log(struct ese_test *test, struct ese_test_db *db)
{
	const struct ese_log *log = ese_db_log(db->db);
	const struct ese_log_area *area = ese_db_log_area(db->db);
	struct ese_log_read_config config = {
	    .loop = test->loop,
	    .record = take_record,
	    .ended = log_ended,
	    .arg = db,
	};
	struct err err = {0};
	int r;

	if (!log || !area) /* a copy that was lost has none */
		return ese_server_gave_up(db->server->server, (unsigned)(db - db->server->dbs))
			   ? 0
			   : -ENODEV;
	db->log_check.tip = ese_log_flushed(log);
	config.area = *area;
	config.from_lgpos = MAX_OF(first_lgpos(area, db->log_check.tip), ese_db_log_from(db->db));
	config.until_lgpos = db->log_check.tip;
	db->log_check.files =
	    (double)(db->log_check.tip - MIN_OF(config.from_lgpos, db->log_check.tip)) /
	    ESE_LOG_FILE_BYTES;
	if (config.from_lgpos >= db->log_check.tip) {
		db->log_check.done = db->log_check.good = true;
		return 0;
	}
	r = ese_log_reader_new(&config, &db->log_reader, &err);
	if (r < 0)
		return r;
	test->steps++;
	ese_log_reader_start(db->log_reader);
	return 0;
}

void ese_test_check_logs(struct ese_test *test, workload_fn done, void *arg)
{
	test->scanned = done;
	test->scanned_arg = arg;
	test->phase = ESE_TEST_READING_LOGS;
	test->status = 0;
	test->steps = 1;
	for (unsigned i = 0; i < test->db_count && test->status == 0; i++)
		test->status = check_log(test, &test->dbs[i]);
	step_ended(test);
}

void ese_test_check_logs_stop(struct ese_test *test)
{
	for (unsigned i = 0; i < test->db_count; i++)
		if (test->dbs[i].log_reader && !test->dbs[i].log_check.done)
			ese_log_reader_stop(test->dbs[i].log_reader);
}
