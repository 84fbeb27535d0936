/* SPDX-License-Identifier: MIT
 *
 * Verdicts: Jetstress' criteria, then the lab's expectations.  Pure: a record in, verdicts out.
 * Those for loads of streams stand here, those for tests of the engine in jetstress_verdicts.c.
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
#include "harness/run/verdict.h"

const struct verdict_latency verdict_latencies[VERDICT_LATENCIES] = {
    {"db-read", "db-read-latency", "database read", 20e6},
    {"db-write", "db-write-latency", "database write", 20e6},
    {"log-write", "log-write-latency", "log write", 10e6},
};

static const double iops_limit = 0.95;

/* Fewer expected I/Os than these say nothing when none came. */
static const double ios_expected_min = 5;

json_t *verdict_number(uint64_t value)
{
	return json_integer((json_int_t)MIN_OF(value, (uint64_t)INT64_MAX));
}

static double window_s(const struct record *record)
{
	return (double)(record->window_end_ns - record->window_start_ns) / (double)NS_PER_S;
}

void verdict_add(struct record *record, enum verdict_status status, const char *id,
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

void verdict_hint(struct record *record, const char *text)
{
	struct record_verdict *last;

	if (record->verdict_count == 0)
		return;
	last = &record->verdicts[record->verdict_count - 1];
	if (last->status == VERDICT_FAIL && !last->hint)
		last->hint = strdup(text);
}

enum verdict_status verdict_pass_if(bool good)
{
	return good ? VERDICT_PASS : VERDICT_FAIL;
}

bool verdict_expected(const struct lab *lab, const char *key)
{
	const struct expect_config *expect = lab->expect.items;

	for (size_t i = 0; i < lab->expect.count; i++)
		if (expect[i].key && strcmp(expect[i].key, key) == 0)
			return true;
	return false;
}

/* What was achieved of what had to be done: of the I/Os that were due in the window, not of the
 * plan's mean, as a light load's Poisson arrivals may well be 5 % fewer by chance. */
double verdict_share_achieved(const struct record *record)
{
	if (record->due_transactional_ios)
		return (double)record->achieved_transactional_ios /
		       (double)record->due_transactional_ios;
	return record->planned_transactional_iops > 0
		   ? record->achieved_transactional_iops / record->planned_transactional_iops
		   : 0;
}

json_t *verdict_iops_json(const struct record *record)
{
	return json_pack("{s:f, s:f, s:o, s:o}", "planned_iops", record->planned_transactional_iops,
			 "achieved_iops", record->achieved_transactional_iops, "due_ios",
			 verdict_number(record->due_transactional_ios), "achieved_ios",
			 verdict_number(record->achieved_transactional_ios));
}

void verdict_iops_text(const struct record *record, char *out, size_t size)
{
	int used =
	    snprintf(out, size, "achieved %.1f of %.1f planned transactional IOPS, ",
		     record->achieved_transactional_iops, record->planned_transactional_iops);

	if (record->due_transactional_ios)
		snprintf(out + used, size - (size_t)used, "%.1f %% of the %llu I/Os that were due",
			 verdict_share_achieved(record) * 100,
			 (unsigned long long)record->due_transactional_ios);
	else
		snprintf(out + used, size - (size_t)used, "%.1f %%",
			 verdict_share_achieved(record) * 100);
}

uint64_t verdict_errors_of(const struct record *record)
{
	uint64_t errors = 0;

	for (unsigned i = 0; i < record->stream_count; i++)
		errors += record->streams[i].errors;
	return errors;
}

json_t *verdict_errors_json(const struct record *record)
{
	json_t *streams = json_array();

	for (unsigned i = 0; i < record->stream_count && json_array_size(streams) < 20; i++) {
		const struct record_stream *stream = &record->streams[i];

		if (stream->errors)
			json_array_append_new(
			    streams, json_pack("{s:s, s:s, s:s, s:o}", "host", stream->host,
					       "volume", stream->volume, "stream", stream->name,
					       "errors", verdict_number(stream->errors)));
	}
	return json_pack("{s:o, s:o}", "errors", verdict_number(verdict_errors_of(record)),
			 "streams", streams);
}

/* ---- Jetstress' criteria ---- */

static void judge_completed(const struct lab *lab, struct record *record)
{
	double measured_ns = (double)(record->window_end_ns - record->window_start_ns);
	json_t *evidence =
	    json_pack("{s:o, s:o}", "measured_ns",
		      verdict_number(record->window_end_ns - record->window_start_ns), "planned_ns",
		      verdict_number(lab->run.duration_ns));
	char measured[32], planned[32];

	text_duration(measured, sizeof measured, measured_ns);
	text_duration(planned, sizeof planned, (double)lab->run.duration_ns);
	if (record->error)
		verdict_add(record, VERDICT_FAIL, "completed", evidence, "the run failed: %s",
			    record->error);
	else if (record->interrupted)
		verdict_add(record, VERDICT_FAIL, "completed", evidence,
			    "the run was stopped early: measured %s of %s", measured, planned);
	else if (record->observed && measured_ns < (double)lab->run.duration_ns)
		verdict_add(record, VERDICT_PASS, "completed", evidence,
			    "measured %s of at most %s: then everybody had logged out", measured,
			    planned);
	else if (record->ended)
		verdict_add(record, VERDICT_PASS, "completed", evidence,
			    "measured %s: then the load had come to its end", measured);
	else
		verdict_add(record, VERDICT_PASS, "completed", evidence, "measured %s as planned",
			    measured);
}

static void judge_iops(const struct lab *lab, struct record *record)
{
	json_t *evidence;
	char text[160];

	if (record->planned_transactional_iops <= 0 || verdict_expected(lab, "achieved-iops"))
		return;
	verdict_iops_text(record, text, sizeof text);
	evidence = verdict_iops_json(record);
	json_object_set_new(evidence, "limit_share", json_real(iops_limit));
	verdict_add(record, verdict_pass_if(verdict_share_achieved(record) >= iops_limit),
		    "achieved-iops", evidence, "%s (limit %.0f %%)", text, iops_limit * 100);
	verdict_hint(record,
		     "the storage or a path could not keep up; see the latency series for when");
}

json_t *verdict_latency_json(const struct record_stream *stream, double limit_ns)
{
	return json_pack(
	    "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "host", stream->host, "volume",
	    stream->volume, "stream", stream->name, "ios", verdict_number(stream->ios),
	    "mean_response_ns", verdict_number((uint64_t)hist_mean_ns(&stream->response)),
	    "mean_service_ns", verdict_number((uint64_t)hist_mean_ns(&stream->service)),
	    "max_response_ns", verdict_number(stream->response.max_ns), "limit_ns",
	    verdict_number((uint64_t)limit_ns));
}

void verdict_latency(struct record *record, const struct record_stream *stream, const char *what,
		     double limit_ns)
{
	double mean_ns = hist_mean_ns(&stream->response);
	json_t *evidence = verdict_latency_json(stream, limit_ns);
	char id[300], mean[32], limit[32];

	snprintf(id, sizeof id, "%s-latency %s/%s", stream->name, stream->host, stream->volume);
	text_duration(mean, sizeof mean, mean_ns);
	text_duration(limit, sizeof limit, limit_ns);
	if (stream->ios == 0) {
		bool nothing_due = stream->planned_per_s * window_s(record) < ios_expected_min;

		verdict_add(record, nothing_due ? VERDICT_SKIP : VERDICT_FAIL, id, evidence,
			    "no %s of %s/%s ended in the measured window", what, stream->host,
			    stream->volume);
		return;
	}
	verdict_add(record, verdict_pass_if(mean_ns < limit_ns), id, evidence,
		    "average %s latency of %s/%s %s (limit %s)", what, stream->host, stream->volume,
		    mean, limit);
	if (hist_mean_ns(&stream->service) < limit_ns)
		verdict_hint(record,
			     "each I/O was served in time once sent: a stall or a backlog made "
			     "them late");
}

static void judge_latencies(const struct lab *lab, struct record *record)
{
	/* A trace may be sent faster than its server did: its latency is the lab's to judge. */
	if (record->replay)
		return;
	for (size_t i = 0; i < VERDICT_LATENCIES; i++) {
		if (verdict_expected(lab, verdict_latencies[i].key))
			continue;
		for (unsigned s = 0; s < record->stream_count; s++)
			if (strcmp(record->streams[s].name, verdict_latencies[i].stream) == 0)
				verdict_latency(record, &record->streams[s],
						verdict_latencies[i].what,
						verdict_latencies[i].limit_ns);
	}
}

static void judge_mismatches(struct record *record)
{
	uint64_t read = record->pages_checked + record->pages_read_back;

	if (!read && !record->pages_written && !record->mismatches_total)
		return;
	verdict_add(record, verdict_pass_if(record->mismatches_total == 0), "data-mismatches",
		    record->mismatches ? json_incref(record->mismatches) : json_object(),
		    "%llu of %llu %s read held wrong data",
		    (unsigned long long)record->mismatches_total, (unsigned long long)read,
		    record_check_unit(record));
	verdict_hint(record,
		     "the first ones, with volume and offset, are in run.json and events.jsonl");
}

static void judge_errors(const struct lab *lab, struct record *record)
{
	if (record->observed || verdict_expected(lab, "io-errors"))
		return;
	verdict_add(record, verdict_pass_if(verdict_errors_of(record) == 0), "io-errors",
		    verdict_errors_json(record), "%llu I/Os failed",
		    (unsigned long long)verdict_errors_of(record));
	verdict_hint(
	    record, "see the path events for what went down; mpio.no-path says how long I/O waits");
}

static void judge_read_back(const struct lab *lab, struct record *record)
{
	enum verdict_status status = VERDICT_PASS;
	json_t *evidence;

	if (!lab->run.verify || !record->pages_written)
		return;
	evidence =
	    json_pack("{s:o, s:o, s:o}", "pages_written", verdict_number(record->pages_written),
		      "pages_read_back", verdict_number(record->pages_read_back),
		      "pages_not_readable", verdict_number(record->pages_not_readable));
	if (record->pages_not_readable)
		status = VERDICT_FAIL;
	else if (record->pages_read_back < record->pages_written)
		status = record->interrupted ? VERDICT_SKIP : VERDICT_FAIL;
	verdict_add(record, status, "read-back", evidence,
		    "%llu of %llu written %s were read back at the end",
		    (unsigned long long)record->pages_read_back,
		    (unsigned long long)record->pages_written, record_check_unit(record));
	if (record->pages_not_readable)
		verdict_hint(record,
			     "the rest could not be read: no path was left, or the reads failed");
}

void verdicts_judge(const struct lab *lab, struct record *record)
{
	judge_completed(lab, record);
	if (record->exchange) {
		jetstress_judge(lab, record);
	} else {
		judge_iops(lab, record);
		judge_latencies(lab, record);
	}
	judge_mismatches(record);
	judge_errors(lab, record);
	judge_read_back(lab, record);
	replay_judge(lab, record);
	expectations_judge(lab, record);
}
