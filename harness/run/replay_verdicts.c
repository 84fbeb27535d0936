/* SPDX-License-Identifier: MIT
 *
 * Verdicts on a replay: was the trace read and sent, and in time?  Pure.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "harness/run/verdict.h"

static uint64_t count_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static void add_count(char *out, size_t size, uint64_t count, const char *what)
{
	size_t used = strlen(out);

	if (count)
		snprintf(out + used, size - used, ", %llu %s", (unsigned long long)count, what);
}

static void judge_trace(struct record *record)
{
	const json_t *replay = record->replay, *trace = json_object_get(replay, "trace");
	const json_t *left_out = json_object_get(replay, "left_out");
	const json_t *bad = json_array_get(json_object_get(trace, "malformed"), 0);
	uint64_t measured = 0;
	const char *end = "";
	char text[500] = "";
	size_t used;

	if (count_of(replay, "sent"))
		end = json_is_true(json_object_get(replay, "finished"))
			  ? ", the trace to its end"
			  : ", the trace not to its end";
	for (unsigned i = 0; i < record->stream_count; i++)
		measured += record->streams[i].ios + record->streams[i].errors;
	add_count(text, sizeof text, count_of(trace, "malformed_lines"),
		  "malformed lines left out");
	used = strlen(text);
	if (bad)
		snprintf(text + used, sizeof text - used, " (%s%.200s)",
			 count_of(trace, "malformed_lines") > 1 ? "the first: " : "",
			 json_string_value(bad));
	add_count(text, sizeof text, count_of(left_out, "unmapped"),
		  "I/Os of devices that `map` does not name left out");
	add_count(text, sizeof text, count_of(left_out, "beyond_the_end"),
		  "I/Os beyond the end left out");
	add_count(text, sizeof text, count_of(left_out, "trims_unsupported"),
		  "trims left out, which the unit does not know");
	verdict_add(record, verdict_pass_if(measured > 0), "trace", json_deep_copy(trace),
		    "%s%llu I/Os sent%s%s", measured ? "" : "none was measured: ",
		    (unsigned long long)count_of(replay, "sent"), end, text);
	if (!count_of(trace, "records"))
		return;
	verdict_hint(record, "a trace shorter than run.warmup has ended before anything counts; "
			     "`map` must name the trace's devices");
}

static void judge_lateness(const struct lab *lab, struct record *record)
{
	const json_t *lateness = json_object_get(record->replay, "lateness");
	char p99[32], max[32], limit[32];

	if (!json_is_object(lateness) || !count_of(lateness, "ios") ||
	    verdict_expected(lab, "p99-lateness") || verdict_expected(lab, "max-lateness"))
		return;
	text_duration(p99, sizeof p99, (double)count_of(lateness, "p99_ns"));
	text_duration(max, sizeof max, (double)count_of(lateness, "max_ns"));
	text_duration(limit, sizeof limit, (double)count_of(lateness, "limit_ns"));
	verdict_add(record,
		    verdict_pass_if(count_of(lateness, "p99_ns") <= count_of(lateness, "limit_ns")),
		    "lateness", json_deep_copy(lateness),
		    "99 %% of the I/Os were sent at most %s late, all at most %s (limit %s)", p99,
		    max, limit);
	if (!count_of(record->replay, "trace_ns"))
		verdict_hint(record, "the trace has no times (a fio iolog of version 2 without "
				     "`wait`?), so all was due at once: mode: afap");
	verdict_hint(record, "streams with a backlog waited for queue-depth; else this machine was "
			     "too busy to send them in time");
}

void replay_judge(const struct lab *lab, struct record *record)
{
	if (!record->replay)
		return;
	judge_trace(record);
	judge_lateness(lab, record);
}

void replay_expect(struct record *record, const struct expect_config *expect, const char *id,
		   const char *figure)
{
	const json_t *lateness = json_object_get(record->replay, "lateness");
	char value[32];

	if (!json_is_object(lateness) || !count_of(lateness, "ios")) {
		verdict_add(record, VERDICT_FAIL, id, json_object(),
			    "no I/O had an instant to be sent at (expected %s)", expect->text);
		return;
	}
	text_duration(value, sizeof value, (double)count_of(lateness, figure));
	verdict_add(record,
		    verdict_pass_if(verdict_holds(expect->op, (double)count_of(lateness, figure),
						  expect->value)),
		    id, json_deep_copy(lateness), "%s %s late (expected %s)",
		    strcmp(figure, "max_ns") == 0 ? "every I/O was sent at most"
						  : "99 % of the I/Os were sent at most",
		    value, expect->text);
}

void recorder_judge(struct record *record, const struct recorder_result *result)
{
	uint64_t asked = result->ios + result->lost;
	json_t *evidence = json_pack("{s:o, s:o, s:i}", "ios", verdict_number(result->ios), "lost",
				     verdict_number(result->lost), "status", result->status);

	if (result->status < 0)
		verdict_add(record, VERDICT_FAIL, "recording", evidence,
			    "the recording '%.200s' ends early: %s", result->file,
			    strerror(-result->status));
	else if (result->lost)
		verdict_add(record, VERDICT_FAIL, "recording", evidence,
			    "%llu of %llu I/Os are not in the recording '%.200s'",
			    (unsigned long long)result->lost, (unsigned long long)asked,
			    result->file);
	else
		verdict_add(record, VERDICT_PASS, "recording", evidence,
			    "%llu I/Os were recorded in '%.200s'", (unsigned long long)result->ios,
			    result->file);
	verdict_hint(record, "the disk it is on must take the lines as fast as they come; the load "
			     "does not wait for it");
}
