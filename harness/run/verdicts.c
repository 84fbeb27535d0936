/* SPDX-License-Identifier: MIT
 *
 * Verdicts: Jetstress' criteria, then the lab's expectations.  Pure: a record in, verdicts out.
 *
 * Jetstress passes a test when every database's average read latency is below 20 ms and its average
 * log write latency below 10 ms, when the transactional I/O achieved is within 5 % of the plan, and
 * when there was no I/O error and no bad page.  It has no limit for database writes; 20 ms is what
 * storage vendors hold them to.  Latency here is the response time: it counts from when an I/O
 * was due, so a stall cannot hide by holding I/O back.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/run/run.h"

static const struct {
	const char *stream, *key; /* key of an expectation about the same */
	const char *what;
	double limit_ns;
} latencies[] = {
    {"db-read", "db-read-latency", "database read", 20e6},
    {"db-write", "db-write-latency", "database write", 20e6},
    {"log-write", "log-write-latency", "log write", 10e6},
};

static const double iops_limit = 0.95;

/* Fewer expected I/Os than these say nothing when none came. */
static const double ios_expected_min = 5;

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)MIN_OF(value, (uint64_t)INT64_MAX));
}

static double window_s(const struct record *record)
{
	return (double)(record->window_end_ns - record->window_start_ns) / (double)NS_PER_S;
}

__attribute__((format(printf, 5, 6))) static void add(struct record *record,
						      enum verdict_status status, const char *id,
						      json_t *evidence, const char *format, ...)
{
	struct record_verdict *verdict = record_add_verdict(record);
	va_list args;

	if (!verdict) {
		json_decref(evidence);
		return;
	}
	verdict->id = strdup(id);
	verdict->status = status;
	verdict->evidence = evidence;
	va_start(args, format);
	if (vasprintf(&verdict->text, format, args) < 0)
		verdict->text = NULL;
	va_end(args);
}

/* A remedy for the last verdict, when it is a failure. */
static void hint(struct record *record, const char *text)
{
	struct record_verdict *last;

	if (record->verdict_count == 0)
		return;
	last = &record->verdicts[record->verdict_count - 1];
	if (last->status == VERDICT_FAIL && !last->hint)
		last->hint = strdup(text);
}

static enum verdict_status pass_if(bool good)
{
	return good ? VERDICT_PASS : VERDICT_FAIL;
}

static bool expected(const struct lab *lab, const char *key)
{
	const struct expect_config *expect = lab->expect.items;

	for (size_t i = 0; i < lab->expect.count; i++)
		if (expect[i].key && strcmp(expect[i].key, key) == 0)
			return true;
	return false;
}

/* What was achieved of what had to be done: of the I/Os that were due in the window, not of the
 * plan's mean, as a light load's Poisson arrivals may well be 5 % fewer by chance. */
static double share_achieved(const struct record *record)
{
	if (record->due_transactional_ios)
		return (double)record->achieved_transactional_ios /
		       (double)record->due_transactional_ios;
	return record->planned_transactional_iops > 0
		   ? record->achieved_transactional_iops / record->planned_transactional_iops
		   : 0;
}

static json_t *iops_json(const struct record *record)
{
	return json_pack("{s:f, s:f, s:o, s:o}", "planned_iops", record->planned_transactional_iops,
			 "achieved_iops", record->achieved_transactional_iops, "due_ios",
			 number(record->due_transactional_ios), "achieved_ios",
			 number(record->achieved_transactional_ios));
}

static void iops_text(const struct record *record, char *out, size_t size)
{
	int used =
	    snprintf(out, size, "achieved %.1f of %.1f planned transactional IOPS, ",
		     record->achieved_transactional_iops, record->planned_transactional_iops);

	if (record->due_transactional_ios)
		snprintf(out + used, size - (size_t)used, "%.1f %% of the %llu I/Os that were due",
			 share_achieved(record) * 100,
			 (unsigned long long)record->due_transactional_ios);
	else
		snprintf(out + used, size - (size_t)used, "%.1f %%", share_achieved(record) * 100);
}

static uint64_t errors_of(const struct record *record)
{
	uint64_t errors = 0;

	for (unsigned i = 0; i < record->stream_count; i++)
		errors += record->streams[i].errors;
	return errors;
}

static json_t *errors_json(const struct record *record)
{
	json_t *streams = json_array();

	for (unsigned i = 0; i < record->stream_count && json_array_size(streams) < 20; i++) {
		const struct record_stream *stream = &record->streams[i];

		if (stream->errors)
			json_array_append_new(
			    streams, json_pack("{s:s, s:s, s:s, s:o}", "host", stream->host,
					       "volume", stream->volume, "stream", stream->name,
					       "errors", number(stream->errors)));
	}
	return json_pack("{s:o, s:o}", "errors", number(errors_of(record)), "streams", streams);
}

/* ---- Jetstress' criteria ---- */

static void judge_completed(const struct lab *lab, struct record *record)
{
	double measured_ns = (double)(record->window_end_ns - record->window_start_ns);
	json_t *evidence = json_pack("{s:o, s:o}", "measured_ns",
				     number(record->window_end_ns - record->window_start_ns),
				     "planned_ns", number(lab->run.duration_ns));
	char measured[32], planned[32];

	text_duration(measured, sizeof measured, measured_ns);
	text_duration(planned, sizeof planned, (double)lab->run.duration_ns);
	if (record->error)
		add(record, VERDICT_FAIL, "completed", evidence, "the run failed: %s",
		    record->error);
	else if (record->interrupted)
		add(record, VERDICT_FAIL, "completed", evidence,
		    "the run was stopped early: measured %s of %s", measured, planned);
	else if (record->observed && measured_ns < (double)lab->run.duration_ns)
		add(record, VERDICT_PASS, "completed", evidence,
		    "measured %s of at most %s: then everybody had logged out", measured, planned);
	else
		add(record, VERDICT_PASS, "completed", evidence, "measured %s as planned",
		    measured);
}

static void judge_iops(const struct lab *lab, struct record *record)
{
	json_t *evidence;
	char text[160];

	if (record->planned_transactional_iops <= 0 || expected(lab, "achieved-iops"))
		return;
	iops_text(record, text, sizeof text);
	evidence = iops_json(record);
	json_object_set_new(evidence, "limit_share", json_real(iops_limit));
	add(record, pass_if(share_achieved(record) >= iops_limit), "achieved-iops", evidence,
	    "%s (limit %.0f %%)", text, iops_limit * 100);
	hint(record, "the storage or a path could not keep up; see the latency series for when");
}

static json_t *latency_json(const struct record_stream *stream, double limit_ns)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "host", stream->host, "volume",
			 stream->volume, "stream", stream->name, "ios", number(stream->ios),
			 "mean_response_ns", number((uint64_t)hist_mean_ns(&stream->response)),
			 "mean_service_ns", number((uint64_t)hist_mean_ns(&stream->service)),
			 "max_response_ns", number(stream->response.max_ns), "limit_ns",
			 number((uint64_t)limit_ns));
}

static void judge_latency(struct record *record, const struct record_stream *stream,
			  const char *what, double limit_ns)
{
	double mean_ns = hist_mean_ns(&stream->response);
	json_t *evidence = latency_json(stream, limit_ns);
	char id[300], mean[32], limit[32];

	snprintf(id, sizeof id, "%s-latency %s/%s", stream->name, stream->host, stream->volume);
	text_duration(mean, sizeof mean, mean_ns);
	text_duration(limit, sizeof limit, limit_ns);
	if (stream->ios == 0) {
		bool nothing_due = stream->planned_per_s * window_s(record) < ios_expected_min;

		add(record, nothing_due ? VERDICT_SKIP : VERDICT_FAIL, id, evidence,
		    "no %s of %s/%s ended in the measured window", what, stream->host,
		    stream->volume);
		return;
	}
	add(record, pass_if(mean_ns < limit_ns), id, evidence,
	    "average %s latency of %s/%s %s (limit %s)", what, stream->host, stream->volume, mean,
	    limit);
	if (hist_mean_ns(&stream->service) < limit_ns)
		hint(record, "each I/O was served in time once sent: a stall or a backlog made "
			     "them late");
}

static void judge_latencies(const struct lab *lab, struct record *record)
{
	for (size_t i = 0; i < ARRAY_SIZE(latencies); i++) {
		if (expected(lab, latencies[i].key))
			continue;
		for (unsigned s = 0; s < record->stream_count; s++)
			if (strcmp(record->streams[s].name, latencies[i].stream) == 0)
				judge_latency(record, &record->streams[s], latencies[i].what,
					      latencies[i].limit_ns);
	}
}

static void judge_mismatches(struct record *record)
{
	uint64_t read = record->pages_checked + record->pages_read_back;

	if (!read && !record->pages_written && !record->mismatches_total)
		return;
	add(record, pass_if(record->mismatches_total == 0), "data-mismatches",
	    record->mismatches ? json_incref(record->mismatches) : json_object(),
	    "%llu of %llu pages read held wrong data", (unsigned long long)record->mismatches_total,
	    (unsigned long long)read);
	hint(record, "the first ones, with volume and offset, are in run.json and events.jsonl");
}

static void judge_errors(const struct lab *lab, struct record *record)
{
	if (record->observed || expected(lab, "io-errors"))
		return;
	add(record, pass_if(errors_of(record) == 0), "io-errors", errors_json(record),
	    "%llu I/Os failed", (unsigned long long)errors_of(record));
	hint(record,
	     "see the path events for what went down; mpio.no-path says how long I/O waits");
}

static void judge_read_back(const struct lab *lab, struct record *record)
{
	enum verdict_status status = VERDICT_PASS;
	json_t *evidence;

	if (!lab->run.verify || !record->pages_written)
		return;
	evidence = json_pack("{s:o, s:o, s:o}", "pages_written", number(record->pages_written),
			     "pages_read_back", number(record->pages_read_back),
			     "pages_not_readable", number(record->pages_not_readable));
	if (record->pages_not_readable)
		status = VERDICT_FAIL;
	else if (record->pages_read_back < record->pages_written)
		status = record->interrupted ? VERDICT_SKIP : VERDICT_FAIL;
	add(record, status, "read-back", evidence,
	    "%llu of %llu written pages were read back at the end",
	    (unsigned long long)record->pages_read_back, (unsigned long long)record->pages_written);
	if (record->pages_not_readable)
		hint(record, "the rest could not be read: no path was left, or the reads failed");
}

/* ---- the lab's expectations ---- */

static bool holds(int op, double value, double limit)
{
	switch (op) {
	case EXPECT_EQ:
		return value == limit;
	case EXPECT_LE:
		return value <= limit;
	case EXPECT_LT:
		return value < limit;
	case EXPECT_GE:
		return value >= limit;
	default:
		return value > limit;
	}
}

/* The value that is hardest for OP to hold. */
static bool is_worse(int op, double value, double than)
{
	return op == EXPECT_GE || op == EXPECT_GT ? value < than : value > than;
}

static void expect_count(struct record *record, const struct expect_config *expect, const char *id,
			 uint64_t value, json_t *evidence, const char *what)
{
	add(record, pass_if(holds(expect->op, (double)value, expect->value)), id, evidence,
	    "%llu %s (expected %s)", (unsigned long long)value, what, expect->text);
}

/* Of a load that is not ours, what the target has seen. */
static void expect_observed_gap(struct record *record, const struct expect_config *expect,
				const char *id)
{
	const json_t *device, *worst = NULL;
	double gap_ns, worst_ns = 0;
	char gap[32];
	size_t i;

	json_array_foreach(json_object_get(record->observed, "devices"), i, device)
	{
		gap_ns = (double)json_integer_value(json_object_get(device, "max_gap_ns"));
		if (!worst || is_worse(expect->op, gap_ns, worst_ns)) {
			worst = device;
			worst_ns = gap_ns;
		}
	}
	if (!worst) {
		add(record, VERDICT_FAIL, id, json_object(), "no initiator did any I/O");
		return;
	}
	text_duration(gap, sizeof gap, worst_ns);
	add(record, pass_if(holds(expect->op, worst_ns, expect->value)), id, json_deep_copy(worst),
	    "longest time without I/O as the target saw it %s, %s on %s (expected %s)", gap,
	    json_string_value(json_object_get(worst, "initiator")),
	    json_string_value(json_object_get(worst, "target")), expect->text);
}

static void expect_gap(struct record *record, const struct expect_config *expect, const char *id)
{
	const struct record_stream *worst = NULL;
	char gap[32];

	if (record->observed) {
		expect_observed_gap(record, expect, id);
		return;
	}
	for (unsigned i = 0; i < record->stream_count; i++)
		if (!worst || is_worse(expect->op, (double)record->streams[i].max_gap_ns,
				       (double)worst->max_gap_ns))
			worst = &record->streams[i];
	if (!worst) {
		add(record, VERDICT_SKIP, id, json_object(), "no stream ran");
		return;
	}
	text_duration(gap, sizeof gap, (double)worst->max_gap_ns);
	add(record, pass_if(holds(expect->op, (double)worst->max_gap_ns, expect->value)), id,
	    json_pack("{s:s, s:s, s:s, s:o, s:o}", "host", worst->host, "volume", worst->volume,
		      "stream", worst->name, "max_gap_ns", number(worst->max_gap_ns), "limit_ns",
		      number((uint64_t)expect->value)),
	    "longest gap without a completion %s, %s of %s/%s (expected %s)", gap, worst->name,
	    worst->host, worst->volume, expect->text);
}

/* What a path carried of what its volume's steady paths did.  Paths that were lost have missed
 * part of the window by no fault of the policy: they are told, and left out of the comparison. */
struct steady_share {
	double share, even;
	unsigned lost;
};

static struct steady_share share_among_steady(const struct record *record,
					      const struct record_path *path)
{
	struct steady_share result = {0};
	uint64_t ios = 0;
	unsigned steady = 0;

	for (unsigned i = 0; i < record->path_count; i++) {
		const struct record_path *other = &record->paths[i];

		if (strcmp(other->host, path->host) != 0 ||
		    strcmp(other->volume, path->volume) != 0)
			continue;
		result.lost += other->losses > 0;
		steady += other->losses == 0;
		ios += other->losses == 0 ? other->ios : 0;
	}
	result.even = steady ? 1.0 / steady : 0;
	result.share = ios ? (double)path->ios / (double)ios : 0;
	return result;
}

/* How far the share of a path may be from even. */
static void expect_share(struct record *record, const struct expect_config *expect, const char *id)
{
	const struct record_path *worst = NULL;
	struct steady_share worst_share = {0};
	double worst_by = 0;
	char lost[64] = "";

	for (unsigned i = 0; i < record->path_count; i++) {
		struct steady_share now = share_among_steady(record, &record->paths[i]);
		double by = now.share > now.even ? now.share - now.even : now.even - now.share;

		if (record->paths[i].losses == 0 &&
		    (!worst || is_worse(expect->op, by, worst_by))) {
			worst = &record->paths[i];
			worst_share = now;
			worst_by = by;
		}
	}
	if (!worst) {
		add(record, VERDICT_SKIP, id, json_object(), "no path was up all the time");
		return;
	}
	if (worst_share.lost)
		snprintf(lost, sizeof lost, "; %u lost path%s left out", worst_share.lost,
			 worst_share.lost > 1 ? "s" : "");
	add(record, pass_if(holds(expect->op, worst_by, expect->value)), id,
	    json_pack("{s:s, s:s, s:i, s:s, s:o, s:f, s:f, s:i}", "host", worst->host, "volume",
		      worst->volume, "path", (int)worst->index, "portal", worst->portal, "ios",
		      number(worst->ios), "share", worst_share.share, "even_share",
		      worst_share.even, "lost_paths", (int)worst_share.lost),
	    "path %u of %s/%s (%s) carried %.2f %%, even would be %.2f %% (expected %s%s)",
	    worst->index, worst->host, worst->volume, worst->portal, worst_share.share * 100,
	    worst_share.even * 100, expect->text, lost);
}

static void expect_iops(struct record *record, const struct expect_config *expect, const char *id)
{
	char text[160];

	if (record->planned_transactional_iops <= 0) {
		add(record, VERDICT_SKIP, id, json_object(),
		    "the workload has no planned transactional IOPS");
		return;
	}
	iops_text(record, text, sizeof text);
	add(record, pass_if(holds(expect->op, share_achieved(record), expect->value)), id,
	    iops_json(record), "%s (expected %s)", text, expect->text);
}

static void expect_latency(struct record *record, const struct expect_config *expect,
			   const char *id, const char *stream_name, const char *what)
{
	const struct record_stream *worst = NULL;
	double worst_ns = 0;
	char mean[32];

	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct record_stream *stream = &record->streams[i];
		double mean_ns = hist_mean_ns(&stream->response);

		if (strcmp(stream->name, stream_name) != 0 || stream->ios == 0 ||
		    (worst && !is_worse(expect->op, mean_ns, worst_ns)))
			continue;
		worst = stream;
		worst_ns = mean_ns;
	}
	if (!worst) {
		add(record, VERDICT_FAIL, id, json_object(), "no %s ended in the measured window",
		    what);
		return;
	}
	text_duration(mean, sizeof mean, worst_ns);
	add(record, pass_if(holds(expect->op, worst_ns, expect->value)), id,
	    latency_json(worst, expect->value),
	    "average %s latency at worst %s, %s/%s (expected %s)", what, mean, worst->host,
	    worst->volume, expect->text);
}

static void judge_expectation(struct record *record, const struct expect_config *expect,
			      const char *id)
{
	if (strcmp(expect->key, "data-mismatches") == 0)
		expect_count(record, expect, id, record->mismatches_total, json_object(),
			     "pages held wrong data");
	else if (strcmp(expect->key, "io-errors") == 0)
		expect_count(record, expect, id, errors_of(record), errors_json(record),
			     "I/Os failed");
	else if (strcmp(expect->key, "max-io-gap") == 0)
		expect_gap(record, expect, id);
	else if (strcmp(expect->key, "path-share") == 0)
		expect_share(record, expect, id);
	else if (strcmp(expect->key, "achieved-iops") == 0)
		expect_iops(record, expect, id);
	else
		for (size_t i = 0; i < ARRAY_SIZE(latencies); i++)
			if (strcmp(expect->key, latencies[i].key) == 0)
				expect_latency(record, expect, id, latencies[i].stream,
					       latencies[i].what);
}

static void judge_expectations(const struct lab *lab, struct record *record)
{
	const struct expect_config *expect = lab->expect.items;

	for (size_t i = 0; i < lab->expect.count; i++) {
		unsigned before = 0;
		char id[120];

		if (!expect[i].key)
			continue;
		for (size_t k = 0; k < i; k++)
			before += expect[k].key && strcmp(expect[k].key, expect[i].key) == 0;
		if (before)
			snprintf(id, sizeof id, "expect %s %u", expect[i].key, before + 1);
		else
			snprintf(id, sizeof id, "expect %s", expect[i].key);
		judge_expectation(record, &expect[i], id);
	}
}

void verdicts_judge(const struct lab *lab, struct record *record)
{
	judge_completed(lab, record);
	judge_iops(lab, record);
	judge_latencies(lab, record);
	judge_mismatches(record);
	judge_errors(lab, record);
	judge_read_back(lab, record);
	judge_expectations(lab, record);
}
