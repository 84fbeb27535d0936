/* SPDX-License-Identifier: MIT
 *
 * Warm-up until the caches are full and run.warmup has passed, then automatic tuning; each server
 * by itself, all at once.
 *
 * A cache counts as full at `warm-up.cache` of its maximum, or of what its databases hold where
 * that is less.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/workload/ese/ese_test_impl.h"

#define SESSIONS_PER_DATABASE	       2
#define RECOVERY_SESSIONS_PER_DATABASE 16
#define SLOPE_LIMIT_NS		       5e6
#define CYCLE_LIMIT_NS		       (600 * NS_PER_S)

unsigned ese_test_first_sessions(const struct ese_test *test, const struct ese_test_server *server)
{
	if (test->config->session_count)
		return (unsigned)test->config->session_count;
	if (test->kind == ESE_SOFT_RECOVERY) /* only to get log files */
		return RECOVERY_SESSIONS_PER_DATABASE * server->db_count;
	if (test->config->tuning.start)
		return (unsigned)test->config->tuning.start;
	return SESSIONS_PER_DATABASE * server->db_count;
}

static void again(struct ese_test *test)
{
	loop_timer_set(test->loop, &test->timer,
		       loop_now_ns(test->loop) + test->config->tuning.samples_ns);
}

/* ---- warm-up ---- */

static uint64_t wanted_bytes(const struct ese_test_server *server)
{
	uint64_t most = ese_server_cache_max_bytes(server->server), held = 0;

	for (unsigned i = 0; i < server->db_count; i++)
		held += ese_db_used_pages(server->dbs[i].db) * ESE_PAGE_BYTES;
	return (uint64_t)(server->test->config->warm_up.cache * (double)MIN_OF(most, held));
}

static void say_prerequisites(struct ese_test *test)
{
	ese_testlog_add(test->log, NULL, "Attaining prerequisites:");
}

static void say_warm(struct ese_test_server *server, uint64_t used, uint64_t wanted)
{
	server->warm = true;
	ese_testlog_add(server->test->log, server->host,
			"\\MSExchange Database(JetstressWin)\\Database Cache Size, Last: %llu.0 "
			"(lower bound: %llu.0, upper bound: none)",
			(unsigned long long)used, (unsigned long long)wanted);
}

/* Whether all caches are full. */
static bool caches_full(struct ese_test *test)
{
	char used_text[32], wanted_text[32];
	bool all = true;

	test->warm_bytes = test->wanted_bytes = 0;
	for (unsigned s = 0; s < test->server_count; s++) {
		struct ese_test_server *server = &test->servers[s];
		uint64_t used = ese_server_cache_used_bytes(server->server);
		uint64_t wanted = wanted_bytes(server);

		test->warm_bytes += used;
		test->wanted_bytes += wanted;
		if (!server->warm && used >= wanted)
			say_warm(server, used, wanted);
		all &= server->warm;
	}
	snprintf(test->waits_for, sizeof test->waits_for, "cache %s of %s",
		 ese_testlog_size(test->warm_bytes, used_text, sizeof used_text),
		 ese_testlog_size(test->wanted_bytes, wanted_text, sizeof wanted_text));
	test->setup.workload->waits_for = test->waits_for;
	return all;
}

static void begin_tuning(struct ese_test *test);

static void look_at_caches(struct ese_test *test)
{
	uint64_t limit_ns = test->config->warm_up.limit_ns;
	uint64_t waited_ns = loop_now_ns(test->loop) - test->warm_begin_ns;
	char limit[32];

	test->cache_filled = caches_full(test);
	if (test->cache_filled && waited_ns >= test->setup.env->warmup_ns) {
		begin_tuning(test);
		return;
	}
	if (test->cache_filled || waited_ns < limit_ns) {
		again(test);
		return;
	}
	text_duration(limit, sizeof limit, (double)limit_ns);
	test->phase = ESE_TEST_IDLE;
	ese_test_fail(test, "the prerequisites were not attained within %s: %s%s", limit,
		      test->waits_for,
		      test->config->loop == ESE_CLOSED ? ""
						       : "; an open loop warms at the target's "
							 "rate");
	ese_test_warmed(test, -ETIME);
}

void ese_test_warm(struct ese_test *test)
{
	test->phase = ESE_TEST_WARMING;
	say_prerequisites(test);
	look_at_caches(test);
}

/* ---- tuning ---- */

static void take_sample(struct ese_test_db *db, struct ese_tuning_sample *ret_sample)
{
	const struct stream *streams = db->streams;
	struct ese_tuning_sample now = {
	    .reads = streams[ESE_DB_READ].total.ios,
	    .read_sum_ns = streams[ESE_DB_READ].total.response.sum_ns,
	    .writes = streams[ESE_DB_WRITE].total.ios,
	    .log_writes = streams[ESE_LOG_WRITE].total.ios,
	    .log_sum_ns = streams[ESE_LOG_WRITE].total.response.sum_ns,
	    .log_reads = streams[ESE_LOG_READ].total.ios,
	    .log_read_sum_ns = streams[ESE_LOG_READ].total.response.sum_ns,
	};

	*ret_sample = (struct ese_tuning_sample){
	    .reads = now.reads - db->seen.reads,
	    .read_sum_ns = now.read_sum_ns - db->seen.read_sum_ns,
	    .writes = now.writes - db->seen.writes,
	    .log_writes = now.log_writes - db->seen.log_writes,
	    .log_sum_ns = now.log_sum_ns - db->seen.log_sum_ns,
	    .log_reads = now.log_reads - db->seen.log_reads,
	    .log_read_sum_ns = now.log_read_sum_ns - db->seen.log_read_sum_ns,
	};
	db->seen = now;
}

static void take_samples(struct ese_test_server *server, struct ese_tuning_sample *ret_samples,
			 uint64_t *ret_transactions)
{
	struct ese_server_counts counts;

	for (unsigned i = 0; i < server->db_count; i++)
		take_sample(&server->dbs[i], &ret_samples[i]);
	ese_server_counts(server->server, &counts);
	*ret_transactions = counts.transactions - server->tuned_transactions;
	server->tuned_transactions = counts.transactions;
}

static int open_tuning(struct ese_test *test, struct ese_test_server *server)
{
	const struct ese_tuning_config *config = &test->config->tuning;
	struct ese_tuning_setup setup = {
	    .databases = server->db_count,
	    .start = ese_test_first_sessions(test, server),
	    .sessions_max = ESE_SESSIONS_MAX,
	    .target_iops = ese_server_target_iops(server->server),
	    .read_limit_ns = test->thresholds.avg_db_read_ns,
	    .log_limit_ns = test->thresholds.avg_log_write_ns,
	    .transient = (unsigned)config->transient,
	    .stable = (unsigned)config->stable,
	    .slope_ns = SLOPE_LIMIT_NS,
	    .cycle_limit_ns = CYCLE_LIMIT_NS,
	    .limit_ns = config->limit_ns,
	};
	struct ese_tuning_sample first[ESE_TUNING_DATABASES_MAX];
	uint64_t transactions;

	if (server->db_count > ESE_TUNING_DATABASES_MAX)
		return -E2BIG;
	take_samples(server, first, &transactions);
	return ese_tuning_new(&setup, loop_now_ns(test->loop), &server->tuning);
}

static void say_logging(struct ese_test *test, uint64_t interval_ns)
{
	ese_testlog_add(test->log, NULL, "Performance logging started (interval: %llu ms).",
			(unsigned long long)(interval_ns / NS_PER_MS));
}

static void ready(struct ese_test *test)
{
	test->phase = ESE_TEST_READY;
	for (unsigned s = 0; s < test->server_count; s++)
		ese_test_say_mix(test, &test->servers[s]);
	say_logging(test, ESE_SAMPLE_NS);
	say_prerequisites(test);
	for (unsigned s = 0; s < test->server_count; s++)
		say_warm(&test->servers[s], ese_server_cache_used_bytes(test->servers[s].server),
			 wanted_bytes(&test->servers[s]));
	ese_test_warmed(test, 0);
}

static void begin_tuning(struct ese_test *test)
{
	if (test->config->loop == ESE_OPEN || test->config->session_count) {
		ready(test);
		return;
	}
	test->phase = ESE_TEST_TUNING;
	say_logging(test, ESE_TUNE_LOG_NS);
	ese_testlog_add(test->log, NULL, "Automatic tuning is starting ...");
	for (unsigned s = 0; s < test->server_count; s++) {
		int r = open_tuning(test, &test->servers[s]);

		if (r < 0) {
			ese_test_fail(test, "tuning of %s cannot begin: %s", test->servers[s].host,
				      strerror(-r));
			ese_test_warmed(test, r);
			return;
		}
	}
	again(test);
}

static void say_slope(const struct ese_test_server *server)
{
	unsigned last = ese_tuning_cycle_count(server->tuning) - 1;
	const struct ese_tuning_cycle *cycle = ese_tuning_cycle(server->tuning, last);

	for (unsigned i = 0; i < server->db_count; i++)
		ese_testlog_add(server->test->log, server->host,
				"%s has %.2f for read latency slope.", server->dbs[i].name,
				cycle->slope_ns[i] / (double)NS_PER_MS);
}

/* The cycle that has just been judged: the last one, or the one before a new one. */
static void say_judged(struct ese_test_server *server, bool next)
{
	unsigned last = ese_tuning_cycle_count(server->tuning) - 1;

	ese_test_say_cycle(server->test, server,
			   ese_tuning_cycle(server->tuning, next ? last - 1 : last));
}

static void tuning_failed(struct ese_test *test, struct ese_test_server *server)
{
	test->phase = ESE_TEST_IDLE;
	ese_testlog_add(test->log, NULL, "Performance logging has ended.");
	ese_testlog_add(test->log, server->host, "Automatic tuning failed.");
	ese_test_fail(test, "automatic tuning of %s failed: %s", server->host,
		      ese_tuning_why(server->tuning));
	ese_test_warmed(test, -ETIME);
}

/* False: tuning has failed. */
static bool tune(struct ese_test *test, struct ese_test_server *server)
{
	struct ese_tuning_sample samples[ESE_TUNING_DATABASES_MAX];
	uint64_t transactions;

	take_samples(server, samples, &transactions);
	switch (ese_tuning_sample(server->tuning, loop_now_ns(test->loop), samples, transactions)) {
	case ESE_TUNING_STABLE:
		say_slope(server);
		break;
	case ESE_TUNING_NEXT:
		say_judged(server, true);
		ese_server_set_sessions(server->server, ese_tuning_sessions(server->tuning));
		ese_test_say_mix(test, server);
		break;
	case ESE_TUNING_SUCCEEDED:
		say_judged(server, false);
		server->tuned = true;
		break;
	case ESE_TUNING_FAILED:
		say_judged(server, false);
		tuning_failed(test, server);
		return false;
	default:
		break;
	}
	return true;
}

static void tune_all(struct ese_test *test)
{
	bool all = true;

	for (unsigned s = 0; s < test->server_count; s++) {
		struct ese_test_server *server = &test->servers[s];

		if (server->tuned)
			continue;
		if (!tune(test, server))
			return;
		all &= server->tuned;
		ese_tuning_describe(server->tuning, test->waits_for, sizeof test->waits_for);
		test->setup.workload->waits_for = test->waits_for;
	}
	if (!all) {
		again(test);
		return;
	}
	ese_testlog_add(test->log, NULL, "Performance logging has ended.");
	ese_testlog_add(test->log, NULL, "Automatic tuning succeeded.");
	ready(test);
}

void ese_test_tune_due(struct ese_test *test)
{
	if (test->phase == ESE_TEST_WARMING)
		look_at_caches(test);
	else
		tune_all(test);
}
