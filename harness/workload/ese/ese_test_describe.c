/* SPDX-License-Identifier: MIT
 *
 * What a test has to say: the lines of its log in Jetstress' words, and record->exchange.
 */
#include <stdio.h>
#include <string.h>

#include "harness/workload/ese/ese_test_impl.h"

const char *const ese_test_names[] = {
    [ESE_PERFORMANCE] = "performance",
    [ESE_STRESS] = "stress",
    [ESE_BACKUP] = "database-backup",
    [ESE_SOFT_RECOVERY] = "soft-recovery",
};

static double ms(double ns)
{
	return ns / (double)NS_PER_MS;
}

/* ---- log lines ---- */

static void say_cache(struct ese_test *test, const struct ese_test_server *server)
{
	const struct ese_constants_config *constants = &test->config->constants;
	uint64_t max = ese_server_cache_max_bytes(server->server);
	char low[32], high[32];

	ese_testlog_add(
	    test->log, server->host, "Database cache settings: (minimum: %s, maximum: %s)",
	    ese_testlog_size(ese_server_cache_min_bytes(server->server), low, sizeof low),
	    ese_testlog_size(max, high, sizeof high));
	ese_testlog_add(
	    test->log, server->host, "Database flush thresholds: (start: %s, stop: %s)",
	    ese_testlog_size((uint64_t)(constants->flush_start * (double)max), low, sizeof low),
	    ese_testlog_size((uint64_t)(constants->flush_stop * (double)max), high, sizeof high));
}

void ese_test_say_settings(struct ese_test *test)
{
	const struct ese_thresholds *limits = &test->thresholds;

	for (unsigned s = 0; s < test->server_count; s++)
		say_cache(test, &test->servers[s]);
	ese_testlog_add(test->log, NULL,
			"Database read latency thresholds: (average: %.0f msec/read, maximum: %.0f "
			"msec/read).",
			ms(limits->avg_db_read_ns), ms(limits->max_db_read_ns));
	ese_testlog_add(test->log, NULL,
			"Log write latency thresholds: (average: %.0f msec/write, maximum: %.0f "
			"msec/write).",
			ms(limits->avg_log_write_ns), ms(limits->max_log_write_ns));
}

void ese_test_say_mix(struct ese_test *test, const struct ese_test_server *server)
{
	const struct ese_mix_config *mix = &test->config->mix;
	double updates = mix->insert + mix->remove + mix->replace;

	ese_testlog_add(test->log, server->host,
			"Operation mix: Sessions %u, Inserts %.0f%%, Deletes %.0f%%, Replaces "
			"%.0f%%, Reads %.0f%%, Lazy Commits %.0f%%.",
			test->config->loop == ESE_OPEN ? 0 : ese_server_sessions(server->server),
			mix->insert * 100, mix->remove * 100, mix->replace * 100,
			MAX_OF(1 - updates, 0.0) * 100, test->config->lazy_commits * 100);
}

static void say_latency(const struct ese_test_db *db, double ns, const char *what)
{
	ese_testlog_add(db->server->test->log, db->server->host,
			"%s has %.1f for I/O %s Average Latency.", db->name, ms(ns), what);
}

/* Whether any of the databases is above the limit is what Jetstress says of the process. */
static void say_over(struct ese_test *test, const struct ese_test_server *server,
		     const double *values, double limit_ns, const char *what)
{
	for (unsigned i = 0; i < server->db_count; i++)
		if (values[i] > limit_ns) {
			ese_testlog_add(test->log, server->host,
					"The process has average %s latencies higher than %.3f "
					"msec.",
					what, ms(limit_ns));
			return;
		}
}

void ese_test_say_cycle(struct ese_test *test, const struct ese_test_server *server,
			const struct ese_tuning_cycle *cycle)
{
	if (!(cycle->iops > 0)) {
		ese_testlog_add(test->log, server->host, "%s", ese_tuning_why(server->tuning));
		return;
	}
	ese_testlog_add(test->log, server->host,
			"%.0f batch transactions/sec and %u sessions have %.0f IOPS.",
			cycle->batch_per_s, cycle->sessions, cycle->iops);
	ese_testlog_add(test->log, server->host,
			"%u sessions have actual %.0f IOPS (target IOPS: %.0f)", cycle->sessions,
			cycle->iops, ese_server_target_iops(server->server));
	for (unsigned i = 0; i < server->db_count; i++)
		say_latency(&server->dbs[i], cycle->read_ns[i], "Database Reads");
	for (unsigned i = 0; i < server->db_count; i++)
		say_latency(&server->dbs[i], cycle->log_write_ns[i], "Log Writes");
	for (unsigned i = 0; i < server->db_count; i++)
		say_latency(&server->dbs[i], cycle->log_read_ns[i], "Log Reads");
	say_over(test, server, cycle->read_ns, test->thresholds.avg_db_read_ns, "database read");
	say_over(test, server, cycle->log_write_ns, test->thresholds.avg_log_write_ns, "log write");
}

static void append(char *out, size_t size, const char *text)
{
	size_t used = strlen(out);

	snprintf(out + used, size - used, "%s", text);
}

/* "a, b, c and d" of what FORMAT_ONE says of each database. */
static void list(const struct ese_test_server *server, char *out, size_t size,
		 void (*one)(const struct ese_test_db *db, char *text, size_t text_size))
{
	char text[64];

	*out = '\0';
	for (unsigned i = 0; i < server->db_count; i++) {
		if (i)
			append(out, size, i + 1 == server->db_count ? " and " : ", ");
		one(&server->dbs[i], text, sizeof text);
		append(out, size, text);
	}
}

static void transactions_of(const struct ese_test_db *db, char *text, size_t size)
{
	snprintf(text, size, "%llu", (unsigned long long)db->transactions);
}

static void complete(const struct ese_test_db *db, char *text, size_t size)
{
	snprintf(text, size, "%s (complete)", db->name);
}

void ese_test_say_end(struct ese_test *test)
{
	char text[400];

	for (unsigned s = 0; s < test->server_count && test->window_end_ns; s++) {
		if (test->kind == ESE_BACKUP || test->kind == ESE_SOFT_RECOVERY)
			break;
		list(&test->servers[s], text, sizeof text, transactions_of);
		ese_testlog_add(test->log, test->servers[s].host,
				"JetInterop batch transaction stats: %s.", text);
	}
	if (test->kind != ESE_BACKUP)
		ese_testlog_add(test->log, NULL, "Dispatching transactions ends.");
	ese_testlog_add(test->log, NULL, "Shutting down databases ...");
	for (unsigned s = 0; s < test->server_count; s++) {
		list(&test->servers[s], text, sizeof text, complete);
		ese_testlog_add(test->log, test->servers[s].host, "%s", text);
	}
}

static void say_report(struct ese_test *test)
{
	ese_testlog_add(test->log, NULL, "Creating test report ...");
	for (unsigned s = 0; s < test->server_count && test->window_end_ns; s++) {
		const struct ese_test_server *server = &test->servers[s];

		for (unsigned i = 0; i < server->db_count; i++)
			say_latency(&server->dbs[i], server->dbs[i].read_ns, "Database Reads");
		for (unsigned i = 0; i < server->db_count; i++)
			if (server->dbs[i].has_log_writes)
				say_latency(&server->dbs[i], server->dbs[i].log_write_ns,
					    "Log Writes");
		ese_testlog_add(test->log, server->host,
				"Test has %.0f Maximum Database Page Fault Stalls/sec.",
				server->stalls_max_per_s);
		ese_testlog_add(
		    test->log, server->host,
		    "The test has %u Database Page Fault Stalls/sec samples higher than "
		    "0.",
		    server->samples_with_stalls);
	}
}

/* ---- record->exchange ---- */

static json_t *integer(double value)
{
	return json_integer((json_int_t)value);
}

static double seconds_of(uint64_t ns)
{
	return (double)ns / (double)NS_PER_S;
}

static json_t *thresholds(const struct ese_test *test)
{
	const struct ese_thresholds_config *config = &test->config->thresholds;
	const struct ese_thresholds *limits = &test->thresholds;

	return json_pack(
	    "{s:o, s:o, s:o, s:o, s:I, s:f, s:f}", "avg_db_read_ns",
	    integer(limits->avg_db_read_ns), "max_db_read_ns", integer(limits->max_db_read_ns),
	    "avg_log_write_ns", integer(limits->avg_log_write_ns), "max_log_write_ns",
	    integer(limits->max_log_write_ns), "max_latency_samples", (json_int_t)config->samples,
	    "iops_margin", config->margin, "stalls_per_s", config->stalls);
}

static json_t *warm_up(const struct ese_test *test)
{
	uint64_t end_ns = test->warm_end_ns ? test->warm_end_ns : loop_now_ns(test->loop);
	bool wanted = test->kind == ESE_PERFORMANCE || test->kind == ESE_STRESS;

	return json_pack("{s:f, s:b, s:s?, s:o, s:o}", "seconds",
			 test->warm_begin_ns ? seconds_of(end_ns - test->warm_begin_ns) : 0.0,
			 "met", !wanted || test->cache_filled, "why",
			 !wanted || test->cache_filled || !test->waits_for[0] ? NULL
									      : test->waits_for,
			 "cache_bytes", integer((double)test->warm_bytes), "cache_wanted_bytes",
			 integer((double)test->wanted_bytes));
}

static json_t *checksum(const struct ese_checksum_result *result)
{
	double seconds = seconds_of(result->duration_ns);

	return json_pack("{s:I, s:I, s:I, s:f, s:f}", "pages", (json_int_t)result->pages, "bad",
			 (json_int_t)result->bad, "not_readable", (json_int_t)result->unreadable,
			 "seconds", seconds, "bytes_per_s",
			 seconds > 0 ? (double)result->bytes / seconds : 0.0);
}

/* All together: the longest of the passes, which ran side by side. */
static json_t *checksum_of_all(const struct ese_test *test)
{
	struct ese_checksum_result sum = {0};
	bool any = false;

	for (unsigned i = 0; i < test->db_count; i++) {
		const struct ese_checksum_result *result = &test->dbs[i].check;

		any |= test->dbs[i].checked;
		sum.pages += result->pages;
		sum.bytes += result->bytes;
		sum.bad += result->bad;
		sum.unreadable += result->unreadable;
		sum.duration_ns = MAX_OF(sum.duration_ns, result->duration_ns);
	}
	return any ? checksum(&sum) : json_null();
}

static json_t *recovery(const struct ese_test_db *db)
{
	const struct ese_recovery_result *result = &db->recovery;
	double seconds = seconds_of(result->duration_ns);

	return json_pack("{s:f, s:f, s:f, s:I, s:I, s:I}", "files", result->files, "seconds",
			 seconds, "seconds_per_file",
			 result->files > 0 ? seconds / result->files : 0.0, "records",
			 (json_int_t)result->records, "pages_read", (json_int_t)db->pages_read,
			 "pages_written", (json_int_t)db->pages_written);
}

static json_t *backup(const struct ese_checksum_result *result)
{
	double seconds = seconds_of(result->duration_ns);

	return json_pack("{s:I, s:f, s:f, s:I, s:I, s:I}", "bytes", (json_int_t)result->bytes,
			 "seconds", seconds, "bytes_per_s",
			 seconds > 0 ? (double)result->bytes / seconds : 0.0, "pages",
			 (json_int_t)result->pages, "bad", (json_int_t)result->bad, "not_readable",
			 (json_int_t)result->unreadable);
}

static json_t *log_checksum(const struct ese_test_log_check *check)
{
	return json_pack("{s:f, s:I, s:b}", "files", check->files, "segments",
			 (json_int_t)check->segments, "good", check->good);
}

static void add_to_database(const struct ese_test_db *db, json_t *to)
{
	json_object_set_new(to, "name", json_string(db->name));
	json_object_set_new(to, "transactions", json_integer((json_int_t)db->transactions));
	if (db->backed_up)
		json_object_set_new(to, "backup", backup(&db->backup));
	if (db->recovered)
		json_object_set_new(to, "recovery", recovery(db));
	if (db->checked)
		json_object_set_new(to, "checksum", checksum(&db->check));
	if (db->log_check.done)
		json_object_set_new(to, "log_checksum", log_checksum(&db->log_check));
}

static json_t *counters_of(const struct ese_test_server *server, double window_s)
{
	struct ese_counter stalls = {.min = server->stalls_min_per_s,
				     .max = server->stalls_max_per_s,
				     .samples = server->samples ? 1 : 0};
	json_t *counters = json_array();

	ese_host_counters_json(&server->test->host_counters, counters);
	stalls.sum =
	    window_s > 0 ? (double)(server->ended.stalls - server->begun.stalls) / window_s : 0;
	ese_counter_json(&stalls, "Database Page Fault Stalls/sec", counters);
	return counters;
}

static json_t *describe_server(const struct ese_test_server *server)
{
	const struct ese_test *test = server->test;
	double window_s = seconds_of(test->window_end_ns - test->window_begin_ns);
	json_t *json = server->described ? json_deep_copy(server->described)
					 : ese_server_describe(server->server);
	json_t *database;
	size_t i;

	json_array_foreach(json_object_get(json, "databases"), i, database)
	{
		if (i < server->db_count)
			add_to_database(&server->dbs[i], database);
	}
	if (test->config->loop == ESE_OPEN || test->kind == ESE_BACKUP)
		json_object_set_new(json, "sessions", json_integer(0));
	if (test->setup.workload->plan.transactional_iops <= 0)
		json_object_set_new(json, "target_iops", json_real(0));
	else
		/* What the day has asked for in the window. */
		json_object_set_new(
		    json, "target_iops",
		    json_real(ese_server_mean_target_iops(server->server, &server->begun,
							  &server->ended) *
			      ese_server_day_share(server->server, test->window_begin_ns,
						   test->window_end_ns)));
	json_object_set_new(json, "achieved_iops",
			    json_real(window_s > 0 ? (double)server->ios / window_s : 0));
	json_object_set_new(
	    json, "stalls",
	    json_integer((json_int_t)(server->ended.stalls - server->begun.stalls)));
	json_object_set_new(json, "stalls_max_per_s", json_real(server->stalls_max_per_s));
	json_object_set_new(
	    json, "transactions",
	    json_integer((json_int_t)(server->ended.transactions - server->begun.transactions)));
	json_object_set_new(
	    json, "failed_transactions",
	    json_integer((json_int_t)(server->ended.failed - server->begun.failed)));
	json_object_set_new(json, "host_counters", counters_of(server, window_s));
	return json;
}

static json_t *reals(const double *values, unsigned count, double unit)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(array, json_real(values[i] / unit));
	return array;
}

static json_t *cycle_json(const struct ese_test_server *server, unsigned index)
{
	const struct ese_tuning_cycle *cycle = ese_tuning_cycle(server->tuning, index);
	double sample_s = seconds_of(server->test->config->tuning.samples_ns);

	return json_pack(
	    "{s:s, s:i, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:s, s:i}", "host", server->host,
	    "sessions", (int)cycle->sessions, "iops", cycle->iops, "target_iops",
	    ese_server_target_iops(server->server), "batch_per_s", cycle->batch_per_s, "seconds",
	    cycle->end_ns ? seconds_of(cycle->end_ns - cycle->begin_ns) : 0.0, "read_ns",
	    reals(cycle->read_ns, server->db_count, 1), "log_write_ns",
	    reals(cycle->log_write_ns, server->db_count, 1), "slope_ms_per_s",
	    reals(cycle->slope_ns, server->db_count, 1e6 * sample_s), "verdict",
	    ese_tuning_verdict_names[cycle->verdict], "next_sessions", (int)cycle->next_sessions);
}

static json_t *tuning(const struct ese_test *test)
{
	json_t *cycles = json_array();
	const char *why = NULL;
	bool any = false, all = true;

	for (unsigned s = 0; s < test->server_count; s++) {
		const struct ese_test_server *server = &test->servers[s];

		all &= server->tuned;
		if (!server->tuning)
			continue;
		any = true;
		for (unsigned i = 0; i < ese_tuning_cycle_count(server->tuning); i++)
			json_array_append_new(cycles, cycle_json(server, i));
		if (!why && ese_tuning_why(server->tuning)[0])
			why = ese_tuning_why(server->tuning);
	}
	if (any && !all && !why)
		why = "the run was stopped while it was tuned";
	return json_pack("{s:s, s:s?, s:o}", "result",
			 !any  ? "not run"
			 : all ? "succeeded"
			       : "failed",
			 "why", why, "cycles", cycles);
}

json_t *ese_test_describe(struct ese_test *test)
{
	json_t *servers = json_array();

	say_report(test);
	for (unsigned s = 0; s < test->server_count; s++)
		json_array_append_new(servers, describe_server(&test->servers[s]));
	return json_pack("{s:s, s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:o}", "engine", "ese", "test",
			 ese_test_names[test->kind], "error",
			 test->failure[0] ? test->failure : NULL, "thresholds", thresholds(test),
			 "warm_up", warm_up(test), "servers", servers, "tuning", tuning(test),
			 "checksum", checksum_of_all(test), "log", ese_testlog_json(test->log));
}
