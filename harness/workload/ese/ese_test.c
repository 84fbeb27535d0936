/* SPDX-License-Identifier: MIT
 *
 * The phases of a test, and how each of them is broken off.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/workload/ese/ese_log_read.h"
#include "harness/workload/ese/ese_test_impl.h"

/* ---- new and free ---- */

static void timer_due(void *arg)
{
	struct ese_test *test = arg;

	switch (test->phase) {
	case ESE_TEST_WARMING:
	case ESE_TEST_TUNING:
		ese_test_tune_due(test);
		break;
	case ESE_TEST_LOGGING:
		ese_test_make_logs_due(test);
		break;
	case ESE_TEST_SCANNING:
		ese_test_scan_due(test);
		break;
	case ESE_TEST_RECOVERING:
		ese_test_recover_due(test);
		break;
	default:
		break;
	}
}

static void choose_kind(struct ese_test *test)
{
	static const struct ese_thresholds strict = {20e6, 100e6, 10e6, 100e6};
	static const struct ese_thresholds lenient = {20e6, 200e6, 10e6, 200e6};
	const struct ese_thresholds_config *own = &test->config->thresholds;

	test->kind = (enum ese_test_kind)test->config->test;
	if (test->kind == ESE_PERFORMANCE && test->setup.env->window_ns > ESE_STRESS_NS)
		test->kind = ESE_STRESS;
	test->thresholds = test->kind == ESE_STRESS ? lenient : strict;
	if (own->avg_db_read_ns)
		test->thresholds.avg_db_read_ns = (double)own->avg_db_read_ns;
	if (own->max_db_read_ns)
		test->thresholds.max_db_read_ns = (double)own->max_db_read_ns;
	if (own->avg_log_write_ns)
		test->thresholds.avg_log_write_ns = (double)own->avg_log_write_ns;
	if (own->max_log_write_ns)
		test->thresholds.max_log_write_ns = (double)own->max_log_write_ns;
}

static int open_servers(struct ese_test *test)
{
	struct ese_test_db *db;

	for (unsigned s = 0; s < test->server_count; s++)
		test->db_count += ese_server_database_count(test->setup.servers[s]);
	test->servers = calloc(test->server_count + 1U, sizeof *test->servers);
	test->dbs = calloc(test->db_count + 1U, sizeof *test->dbs);
	if (!test->servers || !test->dbs)
		return -ENOMEM;
	db = test->dbs;
	for (unsigned s = 0; s < test->server_count; s++) {
		struct ese_test_server *server = &test->servers[s];

		server->test = test;
		server->server = test->setup.servers[s];
		server->host = ese_server_host(server->server);
		server->dbs = db;
		server->db_count = ese_server_database_count(server->server);
		for (unsigned i = 0; i < server->db_count; i++, db++) {
			db->server = server;
			db->db = ese_server_database(server->server, i);
			db->streams = ese_server_place(server->server, i)->streams;
			snprintf(db->name, sizeof db->name, "Instance%u.%u", s + 1, i + 1);
		}
	}
	return 0;
}

int ese_test_new(const struct ese_test_setup *setup, struct ese_test **ret_test, struct err *err)
{
	struct ese_test *test = calloc(1, sizeof *test);
	int r = -ENOMEM;

	if (test) {
		test->setup = *setup;
		test->loop = setup->env->loop;
		test->config = setup->config;
		test->server_count = setup->server_count;
		loop_timer_init(&test->timer, timer_due, test);
		choose_kind(test);
		r = ese_testlog_new(test->loop, &test->log);
	}
	if (r == 0)
		r = open_servers(test);
	if (r < 0) {
		ese_test_free(test);
		return err_set(err, r, "no memory for the test");
	}
	setup->workload->sample_ns = ESE_SAMPLE_NS;
	setup->workload->ends_itself = test->kind == ESE_BACKUP || test->kind == ESE_SOFT_RECOVERY;
	*ret_test = test;
	return 0;
}

static void free_database(struct ese_test_db *db)
{
	ese_checksum_free(db->scan);
	ese_log_reader_free(db->log_reader);
}

struct ese_test *ese_test_free(struct ese_test *test)
{
	if (!test)
		return NULL;
	loop_timer_cancel(test->loop, &test->timer);
	loop_timer_cancel(test->loop, &test->sample_timer);
	for (unsigned s = 0; test->servers && s < test->server_count; s++) {
		ese_tuning_free(test->servers[s].tuning);
		json_decref(test->servers[s].described);
	}
	for (unsigned i = 0; test->dbs && i < test->db_count; i++)
		free_database(&test->dbs[i]);
	ese_testlog_free(test->log);
	free(test->servers);
	free(test->dbs);
	free(test);
	return NULL;
}

/* ---- failure ---- */

void ese_test_fail(struct ese_test *test, const char *format, ...)
{
	const struct workload_env *env = test->setup.env;
	va_list args;

	if (test->failure[0])
		return;
	va_start(args, format);
	vsnprintf(test->failure, sizeof test->failure, format, args);
	va_end(args);
	ese_testlog_add(test->log, NULL, "Error: %s.", test->failure);
	if (env->failed)
		env->failed(env->arg, test->failure);
}

void ese_test_warmed(struct ese_test *test, int status)
{
	workload_fn done = test->warmed;

	test->setup.workload->waits_for = NULL;
	test->warm_end_ns = loop_now_ns(test->loop);
	test->warmed = NULL;
	if (done)
		done(test->warmed_arg, status);
}

/* ---- the phases ---- */

void ese_test_note(struct ese_test *test, const char *text)
{
	ese_testlog_add(test->log, NULL, "%s", text);
}

void ese_test_prepare(struct ese_test *test)
{
	ese_testlog_add(test->log, NULL, "Preparing for testing ...");
	ese_testlog_add(test->log, NULL, "Attaching databases ...");
}

void ese_test_start(struct ese_test *test)
{
	ese_testlog_add(test->log, NULL, "Preparations for testing are complete.");
	if (test->kind == ESE_BACKUP)
		return;
	ese_testlog_add(test->log, NULL, "Starting transaction dispatch ..");
	test->started = true;
	ese_test_say_settings(test);
	for (unsigned s = 0; s < test->server_count; s++) {
		struct ese_test_server *server = &test->servers[s];

		ese_server_start(server->server);
		if (test->config->loop == ESE_CLOSED)
			ese_server_set_sessions(server->server,
						ese_test_first_sessions(test, server));
	}
}

void ese_test_warm_up(struct ese_test *test, workload_fn done, void *arg)
{
	test->warmed = done;
	test->warmed_arg = arg;
	test->warm_begin_ns = loop_now_ns(test->loop);
	if (test->kind == ESE_BACKUP)
		ese_test_warmed(test, 0);
	else if (test->kind == ESE_SOFT_RECOVERY)
		ese_test_make_logs(test);
	else
		ese_test_warm(test);
}

static void test_over(void *arg, int status)
{
	struct ese_test *test = arg;
	const struct workload_env *env = test->setup.env;

	if (test->stop_wanted)
		ese_test_settled(test);
	else if (status < 0)
		ese_test_fail(test, "the databases cannot be read: %s", strerror(-status));
	else if (env->ended)
		env->ended(env->arg);
}

void ese_test_window(struct ese_test *test, bool begins)
{
	if (!begins) {
		ese_test_window_end(test);
		return;
	}
	ese_test_window_begin(test);
	if (test->kind == ESE_BACKUP)
		ese_test_scan(test, true, test_over, test);
	else if (test->kind == ESE_SOFT_RECOVERY)
		ese_test_recover(test);
}

/* ---- stop ---- */

static void server_stopped(void *arg, int status)
{
	struct ese_test *test = arg;
	workload_fn done = test->stop_done;

	if (--test->steps)
		return;
	test->started = false;
	test->phase = ESE_TEST_IDLE;
	test->stop_wanted = false;
	test->stop_done = NULL;
	if (!test->said_end)
		ese_test_say_end(test);
	test->said_end = true;
	done(test->stop_arg, 0);
}

static void stop_servers(struct ese_test *test)
{
	test->phase = ESE_TEST_STOPPING;
	test->steps = 1;
	for (unsigned s = 0; test->started && s < test->server_count; s++) {
		test->steps++;
		ese_server_stop(test->servers[s].server, server_stopped, test);
	}
	server_stopped(test, 0);
}

void ese_test_settled(struct ese_test *test)
{
	if (test->stop_done)
		stop_servers(test);
}

void ese_test_stop(struct ese_test *test, workload_fn done, void *arg)
{
	enum ese_test_phase phase = test->phase;

	loop_timer_cancel(test->loop, &test->timer);
	test->setup.workload->waits_for = NULL;
	test->warmed = NULL;
	test->stop_wanted = true;
	test->stop_done = done;
	test->stop_arg = arg;
	for (unsigned i = 0; test->kind == ESE_SOFT_RECOVERY && i < test->db_count; i++)
		ese_db_hold_checkpoint(test->dbs[i].db, false);
	/* A pass is broken off, recovery and servers that stop already are awaited. */
	if (phase == ESE_TEST_SCANNING)
		ese_test_scan_stop(test);
	else if (phase == ESE_TEST_READING_LOGS)
		ese_test_check_logs_stop(test);
	else if (phase != ESE_TEST_RECOVERING && phase != ESE_TEST_STOPPING)
		stop_servers(test);
}

/* ---- verify ----
 *
 * Pages that are bad or cannot be read make a verdict, not an error of the pass. */

static void logs_checked(void *arg, int status)
{
	struct ese_test *test = arg;
	workload_fn done = test->done;
	bool stopped = test->stop_wanted;

	test->done = NULL;
	if (stopped)
		ese_test_settled(test);
	done(test->arg, stopped ? -ECANCELED : status);
}

static void checked(void *arg, int status)
{
	struct ese_test *test = arg;
	struct workload_check *check = &test->setup.workload->check;

	for (unsigned i = 0; i < test->db_count; i++) {
		const struct ese_checksum_result *result = &test->dbs[i].check;

		/* The pager has counted them as everything that it verifies. */
		check->pages_checked -= MIN_OF(result->pages, check->pages_checked);
		check->pages_read_back += result->written;
		check->pages_not_readable += result->unreadable;
	}
	/* Earlier runs have written as well. */
	check->pages_written =
	    MAX_OF(check->pages_written, check->pages_read_back + check->pages_not_readable);
	if (test->stop_wanted || status < 0)
		logs_checked(test, status);
	else
		ese_test_check_logs(test, logs_checked, test);
}

void ese_test_verify(struct ese_test *test, workload_fn done, void *arg)
{
	assert(!test->done);
	test->done = done;
	test->arg = arg;
	ese_testlog_add(test->log, NULL, "Verifying the checksums of all databases ...");
	ese_test_scan(test, false, checked, test);
}
