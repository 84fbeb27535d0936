/* SPDX-License-Identifier: MIT
 *
 * Passes over all pages of all databases at once: the backup test's load, and the checksum after
 * a test.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness/workload/ese/ese_test_impl.h"

#define POLL_NS (NS_PER_S / 4)

static void step_ended(struct ese_test *test)
{
	if (--test->steps)
		return;
	loop_timer_cancel(test->loop, &test->timer);
	test->phase = ESE_TEST_IDLE;
	test->setup.workload->progress = 1;
	test->scanned(test->scanned_arg, test->status);
}

static void say_result(const struct ese_test_db *db, const struct ese_checksum_result *result)
{
	struct ese_test *test = db->server->test;
	double seconds = (double)result->duration_ns / (double)NS_PER_S;

	ese_testlog_add(test->log, db->server->host,
			"%s: %llu pages read (%.1f MB/sec), %llu bad, %llu not readable.", db->name,
			(unsigned long long)result->pages,
			seconds > 0 ? (double)result->bytes / seconds / (double)MIB : 0,
			(unsigned long long)result->bad, (unsigned long long)result->unreadable);
}

static void scan_ended(void *arg)
{
	struct ese_test_db *db = arg;
	struct ese_test *test = db->server->test;
	struct ese_checksum_result *result = test->backup ? &db->backup : &db->check;

	*result = *ese_checksum_result(db->scan);
	*(test->backup ? &db->backed_up : &db->checked) = true;
	say_result(db, result);
	step_ended(test);
}

static int scan(struct ese_test *test, struct ese_test_db *db)
{
	struct ese_checksum_config config = {
	    .loop = test->loop,
	    .pager = ese_db_pager(db->db),
	    .first = ESE_PAGE_FIRST,
	    .end = ese_db_used_pages(db->db),
	    /* After a stress test all of them, as Jetstress does; else what may have changed. */
	    .written_only = !test->backup && test->config->test != ESE_STRESS,
	    .depth = test->backup ? (unsigned)test->config->backup_depth : ESE_SCAN_DEPTH,
	    .stream = test->backup ? &db->streams[ESE_DB_READ] : NULL,
	    .done = scan_ended,
	    .arg = db,
	};

	if (!config.pager) { /* a copy that was lost needs a seed, not a check */
		if (!ese_server_gave_up(db->server->server, (unsigned)(db - db->server->dbs)))
			return -ENODEV;
		ese_db_forget_written(db->db);
		return 0;
	}
	db->scan = ese_checksum_free(db->scan);
	test->steps++;
	return ese_checksum_start(&config, &db->scan);
}

void ese_test_scan(struct ese_test *test, bool backup, workload_fn done, void *arg)
{
	test->scanned = done;
	test->scanned_arg = arg;
	test->backup = backup;
	test->phase = ESE_TEST_SCANNING;
	test->status = 0;
	test->steps = 1;
	test->setup.workload->progress = 0;
	loop_timer_set(test->loop, &test->timer, loop_now_ns(test->loop) + POLL_NS);
	for (unsigned i = 0; i < test->db_count && test->status == 0; i++)
		test->status = scan(test, &test->dbs[i]);
	step_ended(test);
}

void ese_test_scan_due(struct ese_test *test)
{
	double sum = 0;

	for (unsigned i = 0; i < test->db_count; i++)
		sum += test->dbs[i].scan ? ese_checksum_progress(test->dbs[i].scan) : 1;
	test->setup.workload->progress = sum / test->db_count;
	loop_timer_set(test->loop, &test->timer, loop_now_ns(test->loop) + POLL_NS);
}

void ese_test_scan_stop(struct ese_test *test)
{
	for (unsigned i = 0; i < test->db_count; i++)
		if (test->dbs[i].scan)
			ese_checksum_stop(test->dbs[i].scan);
}
