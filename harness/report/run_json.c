/* SPDX-License-Identifier: MIT
 *
 * run.json, schema "sanlab/run/1": everything the record holds, for machines and for
 * `sanlab report`.  Integers carry their unit in the key (_ns, _bytes); times count from the
 * start of the run; reals that were not measured are null.
 */
#include <errno.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/report/json_make.h"
#include "harness/report/record.h"
#include "harness/report/view.h"
#include "harness/report/writers.h"
#include "sanlab_version.h"

/* Sets and forgets: a member that could not be made shows at the end, as ENOMEM. */
struct maker {
	bool failed;
};

static void set(struct maker *maker, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value) < 0)
		maker->failed = true;
}

static void append(struct maker *maker, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value) < 0)
		maker->failed = true;
}

static const struct {
	const char *key;
	double quantile;
} quantiles[] = {
    {"p50_ns", 0.5},  {"p90_ns", 0.9},	   {"p95_ns", 0.95},
    {"p99_ns", 0.99}, {"p99_9_ns", 0.999}, {"p99_99_ns", 0.9999},
};

static json_t *make_hist(struct maker *maker, const struct hist *hist)
{
	json_t *object = json_object(), *percentiles = json_object(), *buckets = json_array();

	set(maker, object, "count", make_count(hist->count));
	set(maker, object, "sum_ns", make_count(hist->sum_ns));
	set(maker, object, "min_ns", make_count(hist->min_ns));
	set(maker, object, "mean_ns", make_count((uint64_t)llround(hist_mean_ns(hist))));
	set(maker, object, "max_ns", make_count(hist->max_ns));
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		set(maker, percentiles, quantiles[i].key,
		    make_count(hist_quantile_ns(hist, quantiles[i].quantile)));
	set(maker, object, "percentiles", percentiles);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		json_t *bucket;

		if (!hist->bucket[i])
			continue;
		bucket = json_array();
		append(maker, bucket, make_count(hist_bucket_low_ns(i)));
		append(maker, bucket, make_count(hist_bucket_high_ns(i)));
		append(maker, bucket, make_count(hist->bucket[i]));
		append(maker, buckets, bucket);
	}
	set(maker, object, "buckets", buckets);
	return object;
}

static json_t *make_streams(struct maker *maker, const struct view *view)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < view->record->stream_count; i++) {
		const struct record_stream *stream = &view->record->streams[i];
		json_t *object = json_object();

		set(maker, object, "name", make_string(stream->name));
		set(maker, object, "host", make_string(stream->host));
		set(maker, object, "volume", make_string(stream->volume));
		set(maker, object, "op", json_string(stream->write ? "write" : "read"));
		set(maker, object, "planned_per_s", make_real(stream->planned_per_s));
		set(maker, object, "achieved_per_s",
		    make_real(view_rate(view, (double)stream->ios)));
		set(maker, object, "ios", make_count(stream->ios));
		set(maker, object, "io_bytes", make_count(stream->bytes));
		set(maker, object, "errors", make_count(stream->errors));
		set(maker, object, "max_gap_ns", make_count(stream->max_gap_ns));
		set(maker, object, "response", make_hist(maker, &stream->response));
		set(maker, object, "service", make_hist(maker, &stream->service));
		append(maker, array, object);
	}
	return array;
}

static json_t *make_paths(struct maker *maker, const struct record *record)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < record->path_count; i++) {
		const struct record_path *path = &record->paths[i];
		json_t *object = json_object();

		set(maker, object, "host", make_string(path->host));
		set(maker, object, "volume", make_string(path->volume));
		set(maker, object, "index", make_count(path->index));
		set(maker, object, "portal", make_string(path->portal));
		set(maker, object, "state", make_string(path->state));
		set(maker, object, "ios", make_count(path->ios));
		set(maker, object, "share", make_real(path->share));
		set(maker, object, "reads", make_count(path->reads));
		set(maker, object, "writes", make_count(path->writes));
		set(maker, object, "read_bytes", make_count(path->read_bytes));
		set(maker, object, "write_bytes", make_count(path->write_bytes));
		set(maker, object, "errors", make_count(path->errors));
		set(maker, object, "retries", make_count(path->retries));
		set(maker, object, "reissued", make_count(path->reissued));
		set(maker, object, "losses", make_count(path->losses));
		set(maker, object, "logins", make_count(path->logins));
		set(maker, object, "latency", make_hist(maker, &path->latency));
		append(maker, array, object);
	}
	return array;
}

static json_t *make_verdicts(struct maker *maker, const struct record *record)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < record->verdict_count; i++) {
		const struct record_verdict *verdict = &record->verdicts[i];
		json_t *object = json_object();

		set(maker, object, "id", make_string(verdict->id));
		set(maker, object, "status", json_string(verdict_names[verdict->status]));
		set(maker, object, "text", make_string(verdict->text));
		set(maker, object, "evidence",
		    verdict->evidence ? json_incref(verdict->evidence) : json_object());
		set(maker, object, "hint", make_string(verdict->hint));
		append(maker, array, object);
	}
	return array;
}

static json_t *make_failovers(struct maker *maker, const struct record *record)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < record->failover_count; i++) {
		const struct record_failover *failover = &record->failovers[i];
		json_t *object = json_object();

		set(maker, object, "host", make_string(failover->host));
		set(maker, object, "volume", make_string(failover->volume));
		set(maker, object, "path", make_count(failover->path));
		set(maker, object, "loss", make_count(failover->loss));
		set(maker, object, "portal", make_string(failover->portal));
		set(maker, object, "fault", make_string(failover->fault));
		set(maker, object, "by", make_string(failover->by));
		set(maker, object, "reissued", make_count(failover->reissued));
		set(maker, object, "failed", make_count(failover->failed));
		set(maker, object, "other", make_string(failover->other));
		set(maker, object, "proof", make_string(failover->proof));
		for (unsigned k = 0; k < RECORD_INSTANTS; k++)
			set(maker, object, record_instant_keys[k],
			    failover->at_ns[k] ? make_count(failover->at_ns[k]) : json_null());
		set(maker, object, "fault_end_ns",
		    failover->fault_end_ns ? make_count(failover->fault_end_ns) : json_null());
		append(maker, array, object);
	}
	return array;
}

static json_t *make_markers(struct maker *maker, const struct record *record)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < record->marker_count; i++) {
		const struct record_marker *marker = &record->markers[i];
		json_t *object = json_object();

		set(maker, object, "at_ns", make_count(marker->at_ns));
		set(maker, object, "kind", make_string(marker->kind));
		set(maker, object, "host", make_string(marker->host));
		set(maker, object, "volume", make_string(marker->volume));
		set(maker, object, "portal", make_string(marker->portal));
		set(maker, object, "text", make_string(marker->text));
		append(maker, array, object);
	}
	return array;
}

/* One column of a stream's samples; FIELD by offset so that one loop serves all. */
static const struct {
	const char *key;
	size_t offset;
	bool wide; /* uint64_t, else uint32_t */
} stream_columns[] = {
    {"ios", offsetof(struct record_stream_sample, ios), false},
    {"errors", offsetof(struct record_stream_sample, errors), false},
    {"io_bytes", offsetof(struct record_stream_sample, bytes), true},
    {"mean_ns", offsetof(struct record_stream_sample, mean_ns), true},
    {"p50_ns", offsetof(struct record_stream_sample, p50_ns), true},
    {"p99_ns", offsetof(struct record_stream_sample, p99_ns), true},
    {"max_ns", offsetof(struct record_stream_sample, max_ns), true},
};

static json_t *make_stream_column(struct maker *maker, const struct record *record, unsigned stream,
				  size_t column)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < record->sample_count; i++) {
		const char *at = (const char *)&record->samples[i].streams[stream] +
				 stream_columns[column].offset;
		uint64_t wide;
		uint32_t narrow;

		if (stream_columns[column].wide) {
			memcpy(&wide, at, sizeof wide);
		} else {
			memcpy(&narrow, at, sizeof narrow);
			wide = narrow;
		}
		append(maker, array, make_count(wide));
	}
	return array;
}

/* Columns, not rows: half the size, and ready for a data frame. */
static json_t *make_samples(struct maker *maker, const struct record *record)
{
	json_t *object = json_object();
	json_t *at = json_array(), *length = json_array(), *measured = json_array();
	json_t *streams = json_array(), *paths = json_array();

	for (unsigned i = 0; i < record->sample_count; i++) {
		append(maker, at, make_count(record->samples[i].at_ns));
		append(maker, length, make_count(record->samples[i].length_ns));
		append(maker, measured, json_boolean(record->samples[i].measured));
	}
	for (unsigned s = 0; s < record->stream_count; s++) {
		json_t *columns = json_object();

		for (size_t c = 0; c < ARRAY_SIZE(stream_columns); c++)
			set(maker, columns, stream_columns[c].key,
			    make_stream_column(maker, record, s, c));
		append(maker, streams, columns);
	}
	for (unsigned p = 0; p < record->path_count; p++) {
		json_t *columns = json_object(), *ios = json_array();

		for (unsigned i = 0; i < record->sample_count; i++)
			append(maker, ios, make_count(record->samples[i].paths[p].ios));
		set(maker, columns, "ios", ios);
		append(maker, paths, columns);
	}
	set(maker, object, "count", make_count(record->sample_count));
	set(maker, object, "at_ns", at);
	set(maker, object, "length_ns", length);
	set(maker, object, "measured", measured);
	set(maker, object, "streams", streams);
	set(maker, object, "paths", paths);
	return object;
}

static json_t *make_utc(uint64_t wall_ns)
{
	char text[40];

	return json_string(text_utc(text, sizeof text, wall_ns));
}

static void set_head(struct maker *maker, json_t *root, const struct view *view)
{
	const struct record *record = view->record;
	json_t *window = json_object(), *error;

	set(maker, root, "schema", json_string(RUN_SCHEMA));
	set(maker, root, "version",
	    make_string(record->version ? record->version : SANLAB_VERSION));
	set(maker, root, "lab", make_string(record->lab));
	set(maker, root, "workload", make_string(record->workload));
	set(maker, root, "passed", json_boolean(record_passed(record)));
	set(maker, root, "interrupted", json_boolean(record->interrupted));
	if (record->error) {
		error = json_object();
		set(maker, error, "message", make_string(record->error));
		set(maker, root, "error", error);
	}
	/* JSON integers end at 2^63 in most readers, this one included. */
	if (record->seed <= INT64_MAX) {
		set(maker, root, "seed", make_count(record->seed));
	} else {
		char text[24];

		snprintf(text, sizeof text, "%" PRIu64, record->seed);
		set(maker, root, "seed", json_string(text));
	}
	set(maker, root, "start_utc", make_utc(record->start_wall_ns));
	set(maker, root, "start_wall_ns", make_count(record->start_wall_ns));
	set(maker, root, "end_ns", make_count(record->end_ns));
	set(maker, window, "start_ns", make_count(record->window_start_ns));
	set(maker, window, "end_ns", make_count(record->window_end_ns));
	set(maker, window, "start_utc", make_utc(record->start_wall_ns + record->window_start_ns));
	set(maker, window, "end_utc", make_utc(record->start_wall_ns + record->window_end_ns));
	set(maker, root, "window", window);
}

static void set_results(struct maker *maker, json_t *root, const struct view *view)
{
	const struct record *record = view->record;
	json_t *plan = json_object(), *achieved = json_object(), *check = json_object();

	set(maker, plan, "summary", make_string(record->summary));
	set(maker, plan, "transactional_iops", make_real(record->planned_transactional_iops));
	set(maker, root, "plan", plan);
	set(maker, achieved, "transactional_iops", make_real(record->achieved_transactional_iops));
	set(maker, achieved, "total_iops", make_real(record->total_iops));
	set(maker, achieved, "bytes_per_s", make_real(view_rate(view, (double)view->bytes)));
	set(maker, achieved, "max_gap_ns", make_count(view->max_gap_ns));
	set(maker, root, "achieved", achieved);
	set(maker, check, "pages_checked", make_count(record->pages_checked));
	set(maker, check, "pages_read_back", make_count(record->pages_read_back));
	set(maker, check, "pages_written", make_count(record->pages_written));
	set(maker, check, "pages_not_readable", make_count(record->pages_not_readable));
	set(maker, check, "mismatches_total", make_count(record->mismatches_total));
	set(maker, check, "mismatches", make_ref(record->mismatches));
	set(maker, root, "data_check", check);
	set(maker, root, "verdicts", make_verdicts(maker, record));
}

static json_t *make_histogram_parameters(void)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:[s,s,s]}", "kind", "log-linear", "unit", "ns",
			 "sub_bucket_bits", HIST_SUB_BITS, "max_bits", HIST_MAX_BITS, "bucket",
			 "low_ns", "high_ns", "count");
}

/* 15 digits come back as the same double, and 0.2 stays 0.2. */
enum { DUMP_FLAGS = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) };

/* One member a line, and one element a line of lists of objects: small, and yet to be read and
 * compared by people. */
static int dump_root(json_t *root, FILE *to)
{
	const char *key, *comma = "{";
	json_t *value, *element;
	size_t index;

	json_object_foreach(root, key, value)
	{
		bool rows = json_is_object(json_array_get(value, 0));

		fprintf(to, "%s\n\"%s\": ", comma, key);
		comma = ",";
		if (!rows && json_dumpf(value, to, DUMP_FLAGS) < 0)
			return -EIO;
		json_array_foreach(rows ? value : NULL, index, element)
		{
			fputs(index ? ",\n " : "[\n ", to);
			if (json_dumpf(element, to, DUMP_FLAGS) < 0)
				return -EIO;
		}
		if (rows)
			fputs("\n]", to);
	}
	return fputs("\n}\n", to) == EOF ? -EIO : 0;
}

static int run_json_write(const struct record *record, FILE *to)
{
	struct maker maker = {0};
	json_t *root = json_object();
	struct view *view;
	int r = view_new(record, &view);

	if (r < 0) {
		json_decref(root);
		return r;
	}
	set_head(&maker, root, view);
	set_results(&maker, root, view);
	set(&maker, root, "histogram", make_histogram_parameters());
	set(&maker, root, "streams", make_streams(&maker, view));
	set(&maker, root, "paths", make_paths(&maker, record));
	set(&maker, root, "samples", make_samples(&maker, record));
	set(&maker, root, "markers", make_markers(&maker, record));
	set(&maker, root, "failovers", make_failovers(&maker, record));
	set(&maker, root, "environment", make_ref(record->environment));
	set(&maker, root, "config_yaml", make_string(record->config_yaml));
	if (record->observed)
		set(&maker, root, "observed", make_ref(record->observed));
	if (record->curve)
		set(&maker, root, "curve", make_ref(record->curve));
	if (record->replay)
		set(&maker, root, "replay", make_ref(record->replay));
	if (record->exchange)
		set(&maker, root, "exchange", make_ref(record->exchange));
	set(&maker, root, "target", make_ref(record->target));
	view_free(view);
	r = maker.failed ? -ENOMEM : dump_root(root, to);
	json_decref(root);
	return r;
}

const struct report_writer run_json_writer = {
    .file = "run.json",
    .help = "everything, for machines (schema " RUN_SCHEMA ")",
    .write = run_json_write,
};
