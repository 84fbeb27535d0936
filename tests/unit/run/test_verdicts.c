/* SPDX-License-Identifier: MIT
 *
 * Verdicts from made-up records: each criterion at both sides of its limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/run/run.h"

static void add_stream(struct record *record, const char *name, double planned, uint64_t ios,
		       uint64_t latency_ns)
{
	struct record_stream *stream = record_add_stream(record);

	stream->name = strdup(name);
	stream->host = strdup("h1");
	stream->volume = strdup("db1");
	stream->planned_per_s = planned;
	stream->ios = ios;
	for (uint64_t i = 0; i < ios; i++) {
		hist_record(&stream->response, latency_ns);
		hist_record(&stream->service, latency_ns / 2);
	}
}

static void add_path(struct record *record, unsigned index, const char *portal, double share)
{
	struct record_path *path = record_add_path(record);

	path->host = strdup("h1");
	path->volume = strdup("db1");
	path->portal = strdup(portal);
	path->state = strdup("up");
	path->index = index;
	path->share = share;
	path->ios = (uint64_t)(share * 10000);
}

/* A run that passes everything: 10 s, 100 IOPS planned and achieved. */
static struct record *good_record(void)
{
	struct record *record = record_new();

	record->window_start_ns = 5 * NS_PER_S;
	record->window_end_ns = 15 * NS_PER_S;
	record->planned_transactional_iops = 100;
	record->achieved_transactional_iops = 100;
	record->pages_checked = 5000;
	record->pages_written = 400;
	record->pages_read_back = 400;
	add_stream(record, "db-read", 64, 640, 3 * NS_PER_MS);
	add_stream(record, "db-write", 36, 360, 2 * NS_PER_MS);
	add_stream(record, "log-write", 9, 90, NS_PER_MS);
	add_stream(record, "log-read", 0.1, 0, 0);
	add_path(record, 0, "127.0.0.1:3261", 0.5);
	add_path(record, 1, "127.0.0.1:3262", 0.5);
	return record;
}

static struct lab lab_with(struct expect_config *expect, size_t count)
{
	return (struct lab){
	    .run = {.duration_ns = 10 * NS_PER_S, .verify = true},
	    .expect = {.items = expect, .count = count},
	};
}

static const struct record_verdict *find(const struct record *record, const char *id)
{
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (strcmp(record->verdicts[i].id, id) == 0)
			return &record->verdicts[i];
	return NULL;
}

enum { NONE = -1 }; /* no such verdict */

static void check(const struct record *record, size_t index, const char *id, int want)
{
	const struct record_verdict *verdict = find(record, id);
	int got = verdict ? (int)verdict->status : NONE;

	if (got != want)
		fail_msg("case %zu, %s: got %d, want %d (%s)", index, id, got, want,
			 verdict ? verdict->text : "none");
	if (verdict) {
		assert_non_null(verdict->text);
		assert_true(json_is_object(verdict->evidence));
	}
}

enum change {
	AS_IS,
	IOPS_95,
	IOPS_94,
	LIGHT_DRAW,
	SHORT_OF_DRAW,
	READ_19MS,
	READ_20MS,
	WRITE_20MS,
	LOG_9MS,
	LOG_10MS,
	NO_READS,
	ONE_ERROR,
	ONE_MISMATCH,
	UNREADABLE,
	NOT_READ_BACK,
	INTERRUPTED,
	INTERRUPTED_UNREAD,
	FAILED,
	NO_PLAN,
};

static void set_latency(struct record *record, unsigned index, uint64_t latency_ns)
{
	hist_reset(&record->streams[index].response);
	for (uint64_t i = 0; i < record->streams[index].ios; i++)
		hist_record(&record->streams[index].response, latency_ns);
}

static void apply(struct record *record, enum change change)
{
	switch (change) {
	case AS_IS:
		break;
	case IOPS_95:
		record->achieved_transactional_iops = 95;
		break;
	case IOPS_94:
		record->achieved_transactional_iops = 94.9;
		break;
	case LIGHT_DRAW:
		/* Chance drew 930 arrivals where the plan has 1000: all were served. */
		record->achieved_transactional_iops = 93;
		record->achieved_transactional_ios = record->due_transactional_ios = 930;
		break;
	case SHORT_OF_DRAW:
		/* ... and 1080 here, of which it served 1000. */
		record->achieved_transactional_ios = 1000;
		record->due_transactional_ios = 1080;
		break;
	case READ_19MS:
		set_latency(record, 0, 19900 * NS_PER_US);
		break;
	case READ_20MS:
		set_latency(record, 0, 20 * NS_PER_MS);
		break;
	case WRITE_20MS:
		set_latency(record, 1, 20 * NS_PER_MS);
		break;
	case LOG_9MS:
		set_latency(record, 2, 9900 * NS_PER_US);
		break;
	case LOG_10MS:
		set_latency(record, 2, 10 * NS_PER_MS);
		break;
	case NO_READS:
		record->streams[0].ios = 0;
		hist_reset(&record->streams[0].response);
		break;
	case ONE_ERROR:
		record->streams[1].errors = 1;
		break;
	case ONE_MISMATCH:
		record->mismatches_total = 1;
		break;
	case UNREADABLE:
		record->pages_read_back = 399;
		record->pages_not_readable = 1;
		break;
	case NOT_READ_BACK:
		record->pages_read_back = 0;
		break;
	case INTERRUPTED:
		record->interrupted = true;
		break;
	case INTERRUPTED_UNREAD:
		record->interrupted = true;
		record->pages_read_back = 0;
		break;
	case FAILED:
		record->error = strdup("something");
		break;
	case NO_PLAN:
		record->planned_transactional_iops = 0;
		break;
	}
}

static const struct {
	enum change change;
	const char *id;
	int want;
} cases[] = {
    {AS_IS, "completed", VERDICT_PASS},
    {AS_IS, "achieved-iops", VERDICT_PASS},
    {AS_IS, "db-read-latency h1/db1", VERDICT_PASS},
    {AS_IS, "db-write-latency h1/db1", VERDICT_PASS},
    {AS_IS, "log-write-latency h1/db1", VERDICT_PASS},
    {AS_IS, "log-read-latency h1/db1", NONE},
    {AS_IS, "data-mismatches", VERDICT_PASS},
    {AS_IS, "io-errors", VERDICT_PASS},
    {AS_IS, "read-back", VERDICT_PASS},
    {IOPS_95, "achieved-iops", VERDICT_PASS},
    {IOPS_94, "achieved-iops", VERDICT_FAIL},
    {LIGHT_DRAW, "achieved-iops", VERDICT_PASS},
    {SHORT_OF_DRAW, "achieved-iops", VERDICT_FAIL},
    {READ_19MS, "db-read-latency h1/db1", VERDICT_PASS},
    {READ_20MS, "db-read-latency h1/db1", VERDICT_FAIL},
    {WRITE_20MS, "db-write-latency h1/db1", VERDICT_FAIL},
    {LOG_9MS, "log-write-latency h1/db1", VERDICT_PASS},
    {LOG_10MS, "log-write-latency h1/db1", VERDICT_FAIL},
    {NO_READS, "db-read-latency h1/db1", VERDICT_FAIL},
    {ONE_ERROR, "io-errors", VERDICT_FAIL},
    {ONE_MISMATCH, "data-mismatches", VERDICT_FAIL},
    {UNREADABLE, "read-back", VERDICT_FAIL},
    {NOT_READ_BACK, "read-back", VERDICT_FAIL},
    {INTERRUPTED, "completed", VERDICT_FAIL},
    {INTERRUPTED, "read-back", VERDICT_PASS},
    {INTERRUPTED_UNREAD, "read-back", VERDICT_SKIP},
    {FAILED, "completed", VERDICT_FAIL},
    {NO_PLAN, "achieved-iops", NONE},
};

static void criteria_hold_at_their_limits(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct record *record = good_record();
		struct lab lab = lab_with(NULL, 0);

		apply(record, cases[i].change);
		verdicts_judge(&lab, record);
		check(record, i, cases[i].id, cases[i].want);
		record_free(record);
	}
}

static const struct {
	struct expect_config expect;
	enum change change;
	double gap_s, share;
	int want;
} expectations[] = {
    {{.key = "data-mismatches", .text = "0", .op = EXPECT_EQ}, AS_IS, 0, 0.5, VERDICT_PASS},
    {{.key = "data-mismatches", .text = "0", .op = EXPECT_EQ}, ONE_MISMATCH, 0, 0.5, VERDICT_FAIL},
    {{.key = "io-errors", .text = ">= 1", .op = EXPECT_GE, .value = 1},
     ONE_ERROR,
     0,
     0.5,
     VERDICT_PASS},
    {{.key = "io-errors", .text = ">= 1", .op = EXPECT_GE, .value = 1},
     AS_IS,
     0,
     0.5,
     VERDICT_FAIL},
    {{.key = "max-io-gap", .text = "<= 2s", .op = EXPECT_LE, .value = 2e9},
     AS_IS,
     2,
     0.5,
     VERDICT_PASS},
    {{.key = "max-io-gap", .text = "<= 2s", .op = EXPECT_LE, .value = 2e9},
     AS_IS,
     2.1,
     0.5,
     VERDICT_FAIL},
    {{.key = "max-io-gap", .text = "> 1s", .op = EXPECT_GT, .value = 1e9},
     AS_IS,
     2,
     0.5,
     VERDICT_FAIL},
    {{.key = "path-share", .text = "within 1%", .op = EXPECT_LE, .value = 0.01},
     AS_IS,
     0,
     0.505,
     VERDICT_PASS},
    {{.key = "path-share", .text = "within 1%", .op = EXPECT_LE, .value = 0.01},
     AS_IS,
     0,
     0.52,
     VERDICT_FAIL},
    {{.key = "path-share", .text = "within 1%", .op = EXPECT_LE, .value = 0.01},
     AS_IS,
     0,
     0.48,
     VERDICT_FAIL},
    {{.key = "achieved-iops", .text = ">= 90%", .op = EXPECT_GE, .value = 0.9},
     IOPS_94,
     0,
     0.5,
     VERDICT_PASS},
    {{.key = "achieved-iops", .text = ">= 99%", .op = EXPECT_GE, .value = 0.99},
     IOPS_95,
     0,
     0.5,
     VERDICT_FAIL},
    {{.key = "achieved-iops", .text = ">= 99%", .op = EXPECT_GE, .value = 0.99},
     NO_PLAN,
     0,
     0.5,
     VERDICT_SKIP},
    {{.key = "db-read-latency", .text = "< 30ms", .op = EXPECT_LT, .value = 30e6},
     READ_20MS,
     0,
     0.5,
     VERDICT_PASS},
    {{.key = "db-read-latency", .text = "< 1ms", .op = EXPECT_LT, .value = 1e6},
     AS_IS,
     0,
     0.5,
     VERDICT_FAIL},
    {{.key = "db-write-latency", .text = "< 1ms", .op = EXPECT_LT, .value = 1e6},
     AS_IS,
     0,
     0.5,
     VERDICT_FAIL},
    {{.key = "log-write-latency", .text = "<= 1ms", .op = EXPECT_LE, .value = 1e6},
     AS_IS,
     0,
     0.5,
     VERDICT_PASS},
    {{.key = "db-read-latency", .text = "< 30ms", .op = EXPECT_LT, .value = 30e6},
     NO_READS,
     0,
     0.5,
     VERDICT_FAIL},
};

static void expectations_hold_at_their_limits(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(expectations); i++) {
		struct expect_config expect = expectations[i].expect;
		struct record *record = good_record();
		struct lab lab = lab_with(&expect, 1);
		char id[80];

		apply(record, expectations[i].change);
		record->streams[0].max_gap_ns = (uint64_t)(expectations[i].gap_s * 1e9);
		record->paths[0].ios = (uint64_t)(expectations[i].share * 10000);
		record->paths[1].ios = 10000 - record->paths[0].ios;
		verdicts_judge(&lab, record);
		snprintf(id, sizeof id, "expect %s", expect.key);
		check(record, i, id, expectations[i].want);
		record_free(record);
	}
}

/* A path that was lost has carried less by no fault of the policy. */
static void lost_paths_are_left_out_of_the_share(void **state)
{
	struct expect_config expect = {
	    .key = "path-share", .text = "within 1%", .op = EXPECT_LE, .value = 0.01};
	const struct {
		uint64_t losses[2];
		int want;
	} losses_cases[] = {
	    {{0, 0}, VERDICT_FAIL},
	    {{0, 1}, VERDICT_PASS},
	    {{1, 1}, VERDICT_SKIP},
	};

	for (size_t i = 0; i < ARRAY_SIZE(losses_cases); i++) {
		struct record *record = good_record();
		struct lab lab = lab_with(&expect, 1);

		record->paths[0].ios = 9000;
		record->paths[1].ios = 1000;
		for (unsigned path = 0; path < 2; path++)
			record->paths[path].losses = losses_cases[i].losses[path];
		verdicts_judge(&lab, record);
		check(record, i, "expect path-share", losses_cases[i].want);
		record_free(record);
	}
}

/* 100 reads of 3 ms, 64 of them at 100 ms; all writes and the log are fast. */
static void percentiles_are_judged(void **state)
{
	static const struct {
		const char *key, *stream;
		double limit_ns;
		int want;
	} percentile_cases[] = {
	    {"p50-latency", NULL, 4e6, VERDICT_PASS},
	    {"p50-latency", NULL, 2e6, VERDICT_FAIL},
	    {"p90-latency", NULL, 4e6, VERDICT_FAIL},
	    {"p90-latency", "db-write", 4e6, VERDICT_PASS},
	    {"p95-latency", "db-read", 110e6, VERDICT_PASS},
	    {"p99-latency", NULL, 110e6, VERDICT_PASS},
	    {"p99-latency", "db-read", 90e6, VERDICT_FAIL},
	    {"p99.9-latency", "log-write", 2e6, VERDICT_PASS},
	    {"max-latency", NULL, 99e6, VERDICT_FAIL},
	    {"max-latency", NULL, 101e6, VERDICT_PASS},
	    {"p99-latency", "nonsense", 1e9, VERDICT_FAIL},
	    {"max-io-gap", "nonsense", 1e9, VERDICT_FAIL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(percentile_cases); i++) {
		struct expect_config expect = {.key = percentile_cases[i].key,
					       .stream = percentile_cases[i].stream,
					       .text = "< some",
					       .op = EXPECT_LT,
					       .value = percentile_cases[i].limit_ns};
		struct record *record = good_record();
		struct lab lab = lab_with(&expect, 1);
		char id[80];

		for (unsigned k = 0; k < 100; k++)
			hist_record(&record->streams[0].response, 100 * NS_PER_MS);
		verdicts_judge(&lab, record);
		snprintf(id, sizeof id, "expect %s", expect.key);
		check(record, i, id, percentile_cases[i].want);
		record_free(record);
	}
}

static void add_loss(struct record *record, uint64_t fault_ns, uint64_t success_ns, uint64_t end_ns,
		     uint64_t up_ns, uint64_t io_ns)
{
	struct record_failover *loss = record_add_failover(record);

	loss->host = strdup("h1");
	loss->volume = strdup("db1");
	loss->portal = strdup("127.0.0.1:3261");
	loss->by = strdup("keep-alive");
	loss->fault = fault_ns ? strdup("black-hole begins: h1 path 0") : NULL;
	loss->reissued = success_ns ? 7 : 0;
	loss->at_ns[RECORD_FAULT] = fault_ns * NS_PER_MS;
	loss->at_ns[RECORD_LOST] = (fault_ns + 1) * NS_PER_MS;
	loss->at_ns[RECORD_FIRST_SUCCESS] = success_ns * NS_PER_MS;
	loss->fault_end_ns = end_ns * NS_PER_MS;
	loss->at_ns[RECORD_UP_AGAIN] = up_ns * NS_PER_MS;
	loss->at_ns[RECORD_FIRST_IO] = io_ns * NS_PER_MS;
}

static void forget_verdicts(struct record *record)
{
	for (unsigned i = 0; i < record->verdict_count; i++) {
		free(record->verdicts[i].id);
		free(record->verdicts[i].text);
		free(record->verdicts[i].hint);
		json_decref(record->verdicts[i].evidence);
	}
	record->verdict_count = 0;
}

static const struct {
	/* of two losses, ms: fault, first success, fault's end, up again, first I/O */
	uint64_t loss[2][5];
	unsigned losses;
	bool stuck; /* I/O of the last one has succeeded nowhere */
	int failover, failback;
} loss_cases[] = {
    {{{0}}, 0, false, VERDICT_FAIL, VERDICT_FAIL},
    {{{1000, 2000, 3000, 3100, 3200}}, 1, false, VERDICT_PASS, VERDICT_PASS},
    {{{1000, 3001, 3000, 3100, 8001}}, 1, false, VERDICT_FAIL, VERDICT_FAIL},
    /* Nothing was on its way; the policy sends nothing to the path that is back. */
    {{{1000, 0, 3000, 3100, 0}}, 1, false, VERDICT_PASS, VERDICT_PASS},
    /* Back before the fault was over. */
    {{{1000, 2000, 3000, 2100, 2200}}, 1, false, VERDICT_PASS, VERDICT_PASS},
    /* Never back. */
    {{{1000, 2000, 3000, 0, 0}}, 1, false, VERDICT_PASS, VERDICT_FAIL},
    {{{1000, 2000, 0, 0, 0}}, 1, false, VERDICT_PASS, VERDICT_FAIL},
    {{{1000, 2000, 3000, 3100, 3200}, {5000, 0, 6000, 6100, 6200}},
     2,
     true,
     VERDICT_FAIL,
     VERDICT_PASS},
    {{{1000, 2000, 3000, 3100, 3200}, {5000, 8000, 9000, 9100, 20000}},
     2,
     false,
     VERDICT_FAIL,
     VERDICT_FAIL},
    /* One that no fault explains is told, not timed. */
    {{{1000, 2000, 3000, 3100, 3200}, {0, 90000, 0, 0, 0}}, 2, false, VERDICT_PASS, VERDICT_PASS},
};

static void failovers_are_timed(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(loss_cases); i++) {
		struct expect_config expect[] = {
		    {.key = "failover-time", .text = "<= 2s", .op = EXPECT_LE, .value = 2e9},
		    {.key = "failback-time", .text = "<= 5s", .op = EXPECT_LE, .value = 5e9},
		};
		struct record *record = good_record();
		struct lab lab = lab_with(expect, ARRAY_SIZE(expect));

		for (unsigned k = 0; k < loss_cases[i].losses; k++) {
			const uint64_t *ms = loss_cases[i].loss[k];

			add_loss(record, ms[0], ms[1], ms[2], ms[3], ms[4]);
		}
		if (loss_cases[i].stuck)
			record->failovers[record->failover_count - 1].reissued = 3;
		verdicts_judge(&lab, record);
		if (loss_cases[i].stuck) {
			/* Lost once more, with another path: that loss tells. */
			check(record, i, "expect failover-time", VERDICT_FAIL);
			record->failovers[record->failover_count - 1].at_ns[RECORD_DRAINED] = 1;
			forget_verdicts(record);
			verdicts_judge(&lab, record);
			check(record, i, "expect failover-time", VERDICT_PASS);
			/* Ended, but without success: no path was left. */
			record->failovers[record->failover_count - 1].failed = 2;
			forget_verdicts(record);
			verdicts_judge(&lab, record);
			check(record, i, "expect failover-time", VERDICT_FAIL);
			record_free(record);
			continue;
		}
		check(record, i, "expect failover-time", loss_cases[i].failover);
		check(record, i, "expect failback-time", loss_cases[i].failback);
		record_free(record);
	}
}

static void an_expectation_replaces_the_criterion(void **state)
{
	struct expect_config expect[] = {
	    {.key = "achieved-iops", .text = ">= 90%", .op = EXPECT_GE, .value = 0.9},
	    {.key = "io-errors", .text = ">= 1", .op = EXPECT_GE, .value = 1},
	    {.key = "db-read-latency", .text = "< 30ms", .op = EXPECT_LT, .value = 30e6},
	    {.key = "data-mismatches", .text = "0", .op = EXPECT_EQ},
	    {.key = "io-errors", .text = "<= 3", .op = EXPECT_LE, .value = 3},
	};
	struct record *record = good_record();
	struct lab lab = lab_with(expect, ARRAY_SIZE(expect));

	apply(record, IOPS_94);
	apply(record, ONE_ERROR);
	apply(record, READ_20MS);
	verdicts_judge(&lab, record);
	check(record, 0, "achieved-iops", NONE);
	check(record, 0, "io-errors", NONE);
	check(record, 0, "db-read-latency h1/db1", NONE);
	check(record, 0, "db-write-latency h1/db1", VERDICT_PASS);
	check(record, 0, "expect io-errors", VERDICT_PASS);
	check(record, 0, "expect io-errors 2", VERDICT_PASS);
	/* Wrong data is never what a lab may ask for instead. */
	check(record, 0, "data-mismatches", VERDICT_PASS);
	assert_true(record_passed(record));
	record_free(record);
}

static void failures_come_with_a_hint(void **state)
{
	static const enum change changes[] = {IOPS_94, READ_20MS, ONE_ERROR, ONE_MISMATCH,
					      UNREADABLE};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct record *record = good_record();
		struct lab lab = lab_with(NULL, 0);
		unsigned failed = 0;

		apply(record, changes[i]);
		verdicts_judge(&lab, record);
		for (unsigned v = 0; v < record->verdict_count; v++)
			if (record->verdicts[v].status == VERDICT_FAIL) {
				failed++;
				assert_non_null(record->verdicts[v].hint);
			} else {
				assert_null(record->verdicts[v].hint);
			}
		assert_int_equal(failed, 1);
		record_free(record);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(criteria_hold_at_their_limits),
	    cmocka_unit_test(expectations_hold_at_their_limits),
	    cmocka_unit_test(lost_paths_are_left_out_of_the_share),
	    cmocka_unit_test(percentiles_are_judged),
	    cmocka_unit_test(failovers_are_timed),
	    cmocka_unit_test(an_expectation_replaces_the_criterion),
	    cmocka_unit_test(failures_come_with_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
