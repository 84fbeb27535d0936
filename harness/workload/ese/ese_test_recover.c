/* SPDX-License-Identifier: MIT
 *
 * The soft-recovery test: the load writes log files while the checkpoint is held where it is;
 * then everything in memory is forgotten, as by a crash, and the databases recover.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/workload/ese/ese_test_impl.h"

#define POLL_NS	 (NS_PER_S / 4)
#define STUCK_NS (120 * NS_PER_S) /* no database has closed a log file for so long */

/* ---- making log files ---- */

static uint64_t files_of(const struct ese_test_db *db)
{
	const struct ese_log *log = ese_db_log(db->db);

	return log ? (ese_log_tip(log) - db->log_from) / ESE_LOG_FILE_BYTES : 0;
}

/* Of the database that has the fewest. */
static uint64_t fewest_files(const struct ese_test *test)
{
	uint64_t fewest = UINT64_MAX;

	for (unsigned i = 0; i < test->db_count; i++)
		fewest = MIN_OF(fewest, files_of(&test->dbs[i]));
	return fewest;
}

static uint64_t all_files(const struct ese_test *test)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < test->db_count; i++)
		sum += files_of(&test->dbs[i]);
	return sum;
}

void ese_test_make_logs(struct ese_test *test)
{
	ese_testlog_add(test->log, NULL, "Generating %llu log files for each database ...",
			(unsigned long long)test->config->recovery.files);
	test->phase = ESE_TEST_LOGGING;
	for (unsigned i = 0; i < test->db_count; i++) {
		struct ese_test_db *db = &test->dbs[i];
		const struct ese_log *log = ese_db_log(db->db);

		ese_db_hold_checkpoint(db->db, true);
		db->log_from = log ? ese_log_tip(log) : 0;
	}
	test->moved_ns = loop_now_ns(test->loop);
	test->moved_files = 0;
	loop_timer_set(test->loop, &test->timer, test->moved_ns + POLL_NS);
}

static void logs_made(void *arg, int status)
{
	struct ese_test *test = arg;

	if (--test->steps)
		return;
	if (test->stop_wanted) {
		ese_test_settled(test);
		return;
	}
	test->phase = ESE_TEST_READY;
	ese_test_warmed(test, 0);
}

/* The load ends; what is in the log buffers is written, the dirty pages are not. */
static void end_load(struct ese_test *test)
{
	test->phase = ESE_TEST_STOPPING;
	test->steps = 1;
	for (unsigned s = 0; s < test->server_count; s++) {
		test->steps++;
		ese_server_stop(test->servers[s].server, logs_made, test);
	}
	logs_made(test, 0);
}

void ese_test_make_logs_due(struct ese_test *test)
{
	uint64_t now_ns = loop_now_ns(test->loop), fewest = fewest_files(test);
	uint64_t all = all_files(test);
	char stuck[32];

	snprintf(test->waits_for, sizeof test->waits_for, "log files %llu of %llu",
		 (unsigned long long)fewest, (unsigned long long)test->config->recovery.files);
	test->setup.workload->waits_for = test->waits_for;
	if (fewest >= test->config->recovery.files) {
		end_load(test);
		return;
	}
	if (all > test->moved_files) {
		test->moved_files = all;
		test->moved_ns = now_ns;
	} else if (now_ns - test->moved_ns > STUCK_NS) {
		text_duration(stuck, sizeof stuck, (double)STUCK_NS);
		test->phase = ESE_TEST_IDLE;
		ese_test_fail(test, "no log file was written for %s: %s", stuck, test->waits_for);
		ese_test_warmed(test, -ETIME);
		return;
	}
	loop_timer_set(test->loop, &test->timer, now_ns + POLL_NS);
}

/* ---- recovery ---- */

static void say_recovered(const struct ese_test_db *db)
{
	const struct ese_recovery_result *result = &db->recovery;
	double seconds = (double)result->duration_ns / (double)NS_PER_S;

	ese_testlog_add(db->server->test->log, db->server->host,
			"%s: %.1f log files replayed in %.3f sec (%.3f sec per log file).",
			db->name, result->files, seconds,
			result->files > 0 ? seconds / result->files : 0);
}

static void keep_result(struct ese_test_db *db)
{
	const struct ese_recovery_result *result = ese_db_recovery(db->db);
	const struct ese_db_counters *counters = ese_db_counters(db->db);

	if (!result)
		return;
	db->recovery = *result;
	db->recovered = true;
	db->pages_read = counters->read_pages - MIN_OF(db->pages_read, counters->read_pages);
	db->pages_written =
	    counters->written_pages - MIN_OF(db->pages_written, counters->written_pages);
	say_recovered(db);
}

static void recovered(void *arg, int status)
{
	struct ese_test *test = arg;
	const struct workload_env *env = test->setup.env;

	if (status < 0 && test->status == 0)
		test->status = status;
	if (--test->steps)
		return;
	loop_timer_cancel(test->loop, &test->timer);
	for (unsigned i = 0; i < test->db_count; i++)
		keep_result(&test->dbs[i]);
	test->phase = ESE_TEST_IDLE;
	test->setup.workload->progress = 1;
	if (test->stop_wanted)
		ese_test_settled(test);
	else if (test->status < 0)
		ese_test_fail(test, "the databases do not recover: %s", strerror(-test->status));
	else if (env->ended)
		env->ended(env->arg);
}

static void dropped(void *arg, int status)
{
	struct ese_test *test = arg;

	if (--test->steps)
		return;
	/* Also when a stop has come: databases are attached when a test has stopped. */
	for (unsigned i = 0; i < test->db_count; i++) {
		const struct ese_db_counters *counters = ese_db_counters(test->dbs[i].db);

		test->dbs[i].pages_read = counters->read_pages;
		test->dbs[i].pages_written = counters->written_pages;
		ese_db_hold_checkpoint(test->dbs[i].db, false);
	}
	test->steps = 1;
	for (unsigned s = 0; s < test->server_count; s++) {
		test->steps++;
		ese_server_attach(test->servers[s].server, recovered, test);
	}
	recovered(test, 0);
}

void ese_test_recover(struct ese_test *test)
{
	ese_testlog_add(test->log, NULL, "Performing soft recovery ...");
	test->phase = ESE_TEST_RECOVERING;
	test->status = 0;
	test->setup.workload->progress = 0;
	loop_timer_set(test->loop, &test->timer, loop_now_ns(test->loop) + POLL_NS);
	test->steps = 1;
	for (unsigned s = 0; s < test->server_count; s++) {
		test->steps++;
		ese_server_drop(test->servers[s].server, dropped, test);
	}
	dropped(test, 0);
}

void ese_test_recover_due(struct ese_test *test)
{
	double sum = 0;

	for (unsigned s = 0; s < test->server_count; s++)
		sum += ese_server_progress(test->servers[s].server);
	test->setup.workload->progress = sum / test->server_count;
	loop_timer_set(test->loop, &test->timer, loop_now_ns(test->loop) + POLL_NS);
}
