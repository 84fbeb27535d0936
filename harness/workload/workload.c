/* SPDX-License-Identifier: MIT
 *
 * The table of workloads and the accounting every kind shares.
 */
#include "harness/workload/workload.h"

#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_workload.h"
#include "harness/workload/exchange_profile.h"
#include "harness/workload/foreign.h"
#include "harness/workload/raw.h"
#include "harness/workload/replay.h"

static const struct workload_ops *const table[] = {
    &exchange_workload_ops, &ese_workload_ops,	  &foreign_workload_ops,
    &raw_workload_ops,	    &replay_workload_ops,
};

const char *const workload_names[] = {"exchange", "foreign", "raw", "replay", NULL};

const char *const mismatch_names[] = {
    [MISMATCH_CORRUPT] = "corrupt",
    [MISMATCH_TORN] = "torn",
    [MISMATCH_MISDIRECTED] = "misdirected",
    [MISMATCH_STALE] = "stale",
    [MISMATCH_FOREIGN] = "foreign",
    [MISMATCH_NEVER_WRITTEN] = "never-written",
    [MISMATCH_KINDS] = NULL,
};

const struct workload_ops *workload_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

const struct workload_ops *workload_find_engine(const char *name, const char *engine)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i]->name, name) == 0 && table[i]->engine &&
		    strcmp(table[i]->engine, engine) == 0)
			return table[i];
	return NULL;
}

const struct workload_ops *workload_at(size_t index)
{
	return index < ARRAY_SIZE(table) ? table[index] : NULL;
}

static void counters_reset(struct stream_counters *counters)
{
	counters->ios = 0;
	counters->bytes = 0;
	counters->errors = 0;
	hist_reset(&counters->response);
	hist_reset(&counters->service);
}

void workload_reset_counters(struct workload *workload)
{
	for (unsigned i = 0; i < workload->stream_count; i++) {
		struct stream *stream = &workload->streams[i];

		counters_reset(&stream->total);
		counters_reset(&stream->interval);
		stream->max_gap_ns = 0;
		stream->backlog = 0;
		stream->due = 0;
	}
}

void workload_count_due(struct workload *workload, uint64_t now_ns)
{
	if (workload->ops->count_due)
		workload->ops->count_due(workload, now_ns);
}

void workload_reset_intervals(struct workload *workload)
{
	for (unsigned i = 0; i < workload->stream_count; i++)
		if (workload->streams[i].interval.ios || workload->streams[i].interval.errors)
			counters_reset(&workload->streams[i].interval);
}

void workload_close_gaps(struct workload *workload, uint64_t now_ns)
{
	for (unsigned i = 0; i < workload->stream_count; i++) {
		struct stream *stream = &workload->streams[i];

		if (stream->due_since_ns && now_ns > stream->due_since_ns)
			stream->max_gap_ns =
			    MAX_OF(stream->max_gap_ns, now_ns - stream->due_since_ns);
	}
}

void stream_begin(struct stream *stream, uint64_t intended_ns)
{
	stream->in_flight++;
	if (!stream->due_since_ns)
		stream->due_since_ns = intended_ns;
}

static void count(struct stream_counters *counters, uint64_t response_ns, uint64_t service_ns,
		  uint64_t bytes)
{
	counters->ios++;
	counters->bytes += bytes;
	hist_record(&counters->response, response_ns);
	hist_record(&counters->service, service_ns);
}

void stream_account(struct stream *stream, uint64_t intended_ns, uint64_t submitted_ns,
		    uint64_t end_ns, uint64_t bytes, int status)
{
	stream->in_flight--;
	if (status < 0) {
		/* Nothing was achieved: the gap goes on until something is. */
		stream->total.errors++;
		stream->interval.errors++;
		return;
	}
	count(&stream->total, end_ns - intended_ns, end_ns - submitted_ns, bytes);
	count(&stream->interval, end_ns - intended_ns, end_ns - submitted_ns, bytes);
	if (end_ns > stream->due_since_ns)
		stream->max_gap_ns = MAX_OF(stream->max_gap_ns, end_ns - stream->due_since_ns);
	stream->last_end_ns = end_ns;
	stream->due_since_ns = stream->in_flight ? end_ns : 0;
}
