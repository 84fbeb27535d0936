/* SPDX-License-Identifier: MIT
 *
 * The record's memory: growing tables with a bound, everything freed in one call.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/record.h"

/* Bounds of the tables; a run that reaches one keeps what it has. */
enum {
	RECORD_STREAMS_MAX = 1 << 14,
	RECORD_PATHS_MAX = 1 << 14,
	RECORD_SAMPLES_MAX = 1 << 20,
	RECORD_MARKERS_MAX = 1 << 16,
	RECORD_VERDICTS_MAX = 1 << 14,
	RECORD_FAILOVERS_MAX = 1 << 14,
};

const char *const record_instant_keys[] = {
    [RECORD_FAULT] = "fault_ns",
    [RECORD_ALIVE] = "alive_ns",
    [RECORD_LOST] = "lost_ns",
    [RECORD_FIRST_REISSUE] = "first_reissue_ns",
    [RECORD_FIRST_SUCCESS] = "first_success_ns",
    [RECORD_DRAINED] = "drained_ns",
    [RECORD_FENCED] = "fenced_ns",
    [RECORD_UP_AGAIN] = "up_again_ns",
    [RECORD_FIRST_IO] = "first_io_ns",
    [RECORD_INSTANTS] = NULL,
};

/* Makes room for one more of COUNT elements: the capacity is the next power of two, so it need
 * not be stored.  Returns the table (moved, perhaps) or NULL with the old one untouched. */
static void *table_grow(void *table, unsigned count, unsigned max, size_t size)
{
	if (count >= max)
		return NULL;
	if (count & (count - 1))
		return table;
	return reallocarray(table, count ? (size_t)count * 2 : 1, size);
}

struct record *record_new(void)
{
	return calloc(1, sizeof(struct record));
}

static void streams_free(struct record *record)
{
	for (unsigned i = 0; i < record->stream_count; i++) {
		struct record_stream *stream = &record->streams[i];

		free(stream->name);
		free(stream->host);
		free(stream->volume);
	}
	free(record->streams);
}

static void paths_free(struct record *record)
{
	for (unsigned i = 0; i < record->path_count; i++) {
		struct record_path *path = &record->paths[i];

		free(path->host);
		free(path->volume);
		free(path->portal);
		free(path->state);
	}
	free(record->paths);
}

static void samples_free(struct record *record)
{
	for (unsigned i = 0; i < record->sample_count; i++) {
		free(record->samples[i].streams);
		free(record->samples[i].paths);
	}
	free(record->samples);
}

static void markers_free(struct record *record)
{
	for (unsigned i = 0; i < record->marker_count; i++) {
		struct record_marker *marker = &record->markers[i];

		free(marker->kind);
		free(marker->host);
		free(marker->volume);
		free(marker->portal);
		free(marker->text);
	}
	free(record->markers);
}

static void failovers_free(struct record *record)
{
	for (unsigned i = 0; i < record->failover_count; i++) {
		struct record_failover *failover = &record->failovers[i];

		free(failover->host);
		free(failover->volume);
		free(failover->portal);
		free(failover->fault);
		free(failover->by);
		free(failover->other);
		free(failover->proof);
	}
	free(record->failovers);
}

static void verdicts_free(struct record *record)
{
	for (unsigned i = 0; i < record->verdict_count; i++) {
		struct record_verdict *verdict = &record->verdicts[i];

		free(verdict->id);
		free(verdict->text);
		free(verdict->hint);
		json_decref(verdict->evidence);
	}
	free(record->verdicts);
}

struct record *record_free(struct record *record)
{
	if (!record)
		return NULL;
	streams_free(record);
	paths_free(record);
	samples_free(record);
	markers_free(record);
	failovers_free(record);
	verdicts_free(record);
	free(record->version);
	free(record->lab);
	free(record->workload);
	free(record->summary);
	free(record->config_yaml);
	free(record->error);
	json_decref(record->environment);
	json_decref(record->mismatches);
	json_decref(record->observed);
	json_decref(record->replay);
	json_decref(record->curve);
	json_decref(record->target);
	json_decref(record->exchange);
	free(record);
	return NULL;
}

struct record_stream *record_add_stream(struct record *record)
{
	struct record_stream *table;

	assert(record->sample_count == 0); /* samples are as wide as the streams */
	table =
	    table_grow(record->streams, record->stream_count, RECORD_STREAMS_MAX, sizeof *table);
	if (!table)
		return NULL;
	record->streams = table;
	table += record->stream_count++;
	memset(table, 0, sizeof *table);
	return table;
}

struct record_path *record_add_path(struct record *record)
{
	struct record_path *table;

	assert(record->sample_count == 0); /* and as the paths */
	table = table_grow(record->paths, record->path_count, RECORD_PATHS_MAX, sizeof *table);
	if (!table)
		return NULL;
	record->paths = table;
	table += record->path_count++;
	memset(table, 0, sizeof *table);
	return table;
}

struct record_sample *record_add_sample(struct record *record)
{
	struct record_sample *table, sample = {0};

	table =
	    table_grow(record->samples, record->sample_count, RECORD_SAMPLES_MAX, sizeof *table);
	if (!table)
		return NULL;
	record->samples = table;
	sample.streams = calloc(record->stream_count + 1U, sizeof *sample.streams);
	sample.paths = calloc(record->path_count + 1U, sizeof *sample.paths);
	if (!sample.streams || !sample.paths) {
		free(sample.streams);
		free(sample.paths);
		return NULL;
	}
	table += record->sample_count++;
	*table = sample;
	return table;
}

struct record_marker *record_add_marker(struct record *record)
{
	struct record_marker *table;

	table =
	    table_grow(record->markers, record->marker_count, RECORD_MARKERS_MAX, sizeof *table);
	if (!table)
		return NULL;
	record->markers = table;
	table += record->marker_count++;
	memset(table, 0, sizeof *table);
	return table;
}

static uint64_t between(uint64_t from_ns, uint64_t to_ns)
{
	/* A path may be back before its fault ends; that is no time at all, but it came. */
	return from_ns && to_ns ? MAX_OF(to_ns, from_ns + 1) - from_ns : 0;
}

uint64_t record_failover_time_ns(const struct record_failover *failover)
{
	return failover->reissued
		   ? between(failover->at_ns[RECORD_FAULT], failover->at_ns[RECORD_FIRST_SUCCESS])
		   : 0;
}

uint64_t record_failback_time_ns(const struct record_failover *failover)
{
	uint64_t back_ns = failover->at_ns[RECORD_FIRST_IO];

	return between(failover->fault_end_ns,
		       back_ns ? back_ns : failover->at_ns[RECORD_UP_AGAIN]);
}

struct record_failover *record_add_failover(struct record *record)
{
	struct record_failover *table;

	table = table_grow(record->failovers, record->failover_count, RECORD_FAILOVERS_MAX,
			   sizeof *table);
	if (!table)
		return NULL;
	record->failovers = table;
	table += record->failover_count++;
	memset(table, 0, sizeof *table);
	return table;
}

struct record_verdict *record_add_verdict(struct record *record)
{
	struct record_verdict *table;

	table =
	    table_grow(record->verdicts, record->verdict_count, RECORD_VERDICTS_MAX, sizeof *table);
	if (!table)
		return NULL;
	record->verdicts = table;
	table += record->verdict_count++;
	memset(table, 0, sizeof *table);
	return table;
}

const char *record_check_unit(const struct record *record)
{
	return record->replay ? "sectors" : "pages";
}

bool record_passed(const struct record *record)
{
	if (record->error)
		return false;
	for (unsigned i = 0; i < record->verdict_count; i++) {
		if (record->verdicts[i].status == VERDICT_FAIL)
			return false;
	}
	return true;
}
