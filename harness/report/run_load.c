/* SPDX-License-Identifier: MIT
 *
 * run.json back into a record.  Strict: a document that is not what run_json.c writes is
 * refused with the place (line and column of the syntax, or the path of the member).
 */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/json_make.h"
#include "harness/report/report.h"
#include "harness/report/writers.h"

/* The first complaint wins; all getters go on and give zero after it, so that callers check
 * once at the end. */
struct loader {
	struct err *err;
	int status;
	char at[96]; /* "streams[3]", "" at the top */
};

__attribute__((format(printf, 3, 4))) static void complain(struct loader *loader, const char *key,
							   const char *format, ...)
{
	char what[200];
	va_list ap;

	if (loader->status < 0)
		return;
	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	loader->status = err_set(loader->err, -EINVAL, "%s%s%s: %s", loader->at,
				 *loader->at && *key ? "." : "", key, what);
}

static void out_of_memory(struct loader *loader)
{
	if (loader->status == 0)
		loader->status = err_set(loader->err, -ENOMEM, "out of memory");
}

static json_t *get(struct loader *loader, const json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	if (!value)
		complain(loader, key, "missing");
	return value;
}

static uint64_t get_count(struct loader *loader, const json_t *object, const char *key)
{
	const json_t *value = get(loader, object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0) {
		complain(loader, key, "a whole number is wanted");
		return 0;
	}
	return (uint64_t)json_integer_value(value);
}

static double get_real(struct loader *loader, const json_t *object, const char *key)
{
	const json_t *value = get(loader, object, key);

	if (json_is_null(value))
		return NAN;
	if (!json_is_number(value))
		complain(loader, key, "a number or null is wanted");
	return json_number_value(value);
}

static bool get_bool(struct loader *loader, const json_t *object, const char *key)
{
	const json_t *value = get(loader, object, key);

	if (!json_is_boolean(value))
		complain(loader, key, "true or false is wanted");
	return json_is_true(value);
}

/* NULL for null; the record owns the copy. */
static char *get_string(struct loader *loader, const json_t *object, const char *key)
{
	const json_t *value = get(loader, object, key);
	char *copy;

	if (json_is_null(value))
		return NULL;
	if (!json_is_string(value)) {
		complain(loader, key, "a string or null is wanted");
		return NULL;
	}
	copy = strdup(json_string_value(value));
	if (!copy)
		out_of_memory(loader);
	return copy;
}

/* NULL for null, otherwise a reference. */
static json_t *get_any(struct loader *loader, const json_t *object, const char *key)
{
	json_t *value = get(loader, object, key);

	return json_is_null(value) ? NULL : json_incref(value);
}

static const json_t *get_object(struct loader *loader, const json_t *object, const char *key)
{
	const json_t *value = get(loader, object, key);

	if (!json_is_object(value))
		complain(loader, key, "an object is wanted");
	return value;
}

static const json_t *get_array(struct loader *loader, const json_t *object, const char *key)
{
	const json_t *value = get(loader, object, key);

	if (!json_is_array(value))
		complain(loader, key, "a list is wanted");
	return value;
}

/* The index of the bucket that begins at LOW_NS, or -1. */
static int bucket_at(uint64_t low_ns)
{
	unsigned low = 0, high = HIST_BUCKETS;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (hist_bucket_low_ns(middle) < low_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < HIST_BUCKETS && hist_bucket_low_ns(low) == low_ns ? (int)low : -1;
}

static void load_hist(struct loader *loader, const json_t *object, const char *key,
		      struct hist *hist)
{
	const json_t *from = get_object(loader, object, key), *bucket;
	const json_t *buckets = get_array(loader, from, "buckets");
	size_t i;

	hist->count = get_count(loader, from, "count");
	hist->sum_ns = get_count(loader, from, "sum_ns");
	hist->min_ns = get_count(loader, from, "min_ns");
	hist->max_ns = get_count(loader, from, "max_ns");
	json_array_foreach(buckets, i, bucket)
	{
		json_int_t low = json_integer_value(json_array_get(bucket, 0));
		json_int_t count = json_integer_value(json_array_get(bucket, 2));
		int index =
		    json_array_size(bucket) == 3 && low >= 0 ? bucket_at((uint64_t)low) : -1;

		if (index < 0 || count <= 0 || count > UINT32_MAX) {
			complain(loader, key,
				 "bucket %zu is not [low_ns, high_ns, count] of the "
				 "known histogram",
				 i);
			return;
		}
		hist->bucket[index] = (uint32_t)count;
	}
}

static void load_stream(struct loader *loader, const json_t *from, struct record *record)
{
	struct record_stream *stream = record_add_stream(record);
	char *op;

	if (!stream) {
		out_of_memory(loader);
		return;
	}
	stream->name = get_string(loader, from, "name");
	stream->host = get_string(loader, from, "host");
	stream->volume = get_string(loader, from, "volume");
	op = get_string(loader, from, "op");
	if (op && strcmp(op, "read") != 0 && strcmp(op, "write") != 0)
		complain(loader, "op", "read or write is wanted");
	stream->write = op && strcmp(op, "write") == 0;
	free(op);
	stream->planned_per_s = get_real(loader, from, "planned_per_s");
	stream->ios = get_count(loader, from, "ios");
	stream->bytes = get_count(loader, from, "io_bytes");
	stream->errors = get_count(loader, from, "errors");
	stream->max_gap_ns = get_count(loader, from, "max_gap_ns");
	load_hist(loader, from, "response", &stream->response);
	load_hist(loader, from, "service", &stream->service);
}

static void load_path(struct loader *loader, const json_t *from, struct record *record)
{
	struct record_path *path = record_add_path(record);

	if (!path) {
		out_of_memory(loader);
		return;
	}
	path->host = get_string(loader, from, "host");
	path->volume = get_string(loader, from, "volume");
	path->index = (unsigned)get_count(loader, from, "index");
	path->portal = get_string(loader, from, "portal");
	path->state = get_string(loader, from, "state");
	path->ios = get_count(loader, from, "ios");
	path->share = get_real(loader, from, "share");
	path->reads = get_count(loader, from, "reads");
	path->writes = get_count(loader, from, "writes");
	path->read_bytes = get_count(loader, from, "read_bytes");
	path->write_bytes = get_count(loader, from, "write_bytes");
	path->errors = get_count(loader, from, "errors");
	path->retries = get_count(loader, from, "retries");
	path->reissued = get_count(loader, from, "reissued");
	path->losses = get_count(loader, from, "losses");
	path->logins = get_count(loader, from, "logins");
	load_hist(loader, from, "latency", &path->latency);
}

static void load_verdict(struct loader *loader, const json_t *from, struct record *record)
{
	struct record_verdict *verdict = record_add_verdict(record);
	char *status;
	int known = -1;

	if (!verdict) {
		out_of_memory(loader);
		return;
	}
	verdict->id = get_string(loader, from, "id");
	status = get_string(loader, from, "status");
	for (int i = 0; verdict_names[i]; i++) {
		if (status && strcmp(status, verdict_names[i]) == 0)
			known = i;
	}
	free(status);
	if (known < 0)
		complain(loader, "status", "pass, fail or skip is wanted");
	else
		verdict->status = (enum verdict_status)known;
	verdict->text = get_string(loader, from, "text");
	verdict->evidence = get_any(loader, from, "evidence");
	verdict->hint = get_string(loader, from, "hint");
}

static void load_marker(struct loader *loader, const json_t *from, struct record *record)
{
	struct record_marker *marker = record_add_marker(record);

	if (!marker) {
		out_of_memory(loader);
		return;
	}
	marker->at_ns = get_count(loader, from, "at_ns");
	marker->kind = get_string(loader, from, "kind");
	marker->host = get_string(loader, from, "host");
	marker->volume = get_string(loader, from, "volume");
	marker->portal = get_string(loader, from, "portal");
	marker->text = get_string(loader, from, "text");
}

static void load_failover(struct loader *loader, const json_t *from, struct record *record)
{
	struct record_failover *failover = record_add_failover(record);

	if (!failover) {
		out_of_memory(loader);
		return;
	}
	failover->host = get_string(loader, from, "host");
	failover->volume = get_string(loader, from, "volume");
	failover->path = (unsigned)get_count(loader, from, "path");
	failover->loss = (unsigned)get_count(loader, from, "loss");
	failover->portal = get_string(loader, from, "portal");
	failover->fault = get_string(loader, from, "fault");
	failover->by = get_string(loader, from, "by");
	failover->reissued = get_count(loader, from, "reissued");
	failover->failed = get_count(loader, from, "failed");
	failover->other = get_string(loader, from, "other");
	failover->proof = get_string(loader, from, "proof");
	for (unsigned k = 0; k < RECORD_INSTANTS; k++)
		if (json_is_integer(json_object_get(from, record_instant_keys[k])))
			failover->at_ns[k] = get_count(loader, from, record_instant_keys[k]);
	if (json_is_integer(json_object_get(from, "fault_end_ns")))
		failover->fault_end_ns = get_count(loader, from, "fault_end_ns");
}

static void load_list(struct loader *loader, const json_t *root, const char *key,
		      void (*load)(struct loader *, const json_t *, struct record *),
		      struct record *record)
{
	const json_t *array = get_array(loader, root, key), *element;
	size_t i;

	json_array_foreach(array, i, element)
	{
		if (loader->status < 0)
			return;
		snprintf(loader->at, sizeof loader->at, "%s[%zu]", key, i);
		load(loader, element, record);
	}
	loader->at[0] = '\0';
}

/* Element INDEX of the column KEY, which must have as many as there are samples. */
static uint64_t column_count(struct loader *loader, const json_t *columns, const char *key,
			     size_t index, uint64_t max)
{
	const json_t *value = json_array_get(json_object_get(columns, key), index);
	json_int_t count = json_integer_value(value);

	if (!json_is_integer(value) || count < 0 || (uint64_t)count > max) {
		complain(loader, key, "element %zu is missing or not a count", index);
		return 0;
	}
	return (uint64_t)count;
}

static void load_stream_sample(struct loader *loader, const json_t *from, size_t index,
			       struct record_stream_sample *sample)
{
	sample->ios = (uint32_t)column_count(loader, from, "ios", index, UINT32_MAX);
	sample->errors = (uint32_t)column_count(loader, from, "errors", index, UINT32_MAX);
	sample->bytes = column_count(loader, from, "io_bytes", index, UINT64_MAX);
	sample->mean_ns = column_count(loader, from, "mean_ns", index, UINT64_MAX);
	sample->p50_ns = column_count(loader, from, "p50_ns", index, UINT64_MAX);
	sample->p99_ns = column_count(loader, from, "p99_ns", index, UINT64_MAX);
	sample->max_ns = column_count(loader, from, "max_ns", index, UINT64_MAX);
}

static void load_samples(struct loader *loader, const json_t *root, struct record *record)
{
	const json_t *samples = get_object(loader, root, "samples");
	const json_t *measured = get_array(loader, samples, "measured");
	const json_t *streams = get_array(loader, samples, "streams");
	const json_t *paths = get_array(loader, samples, "paths");
	uint64_t count = get_count(loader, samples, "count");

	if (json_array_size(streams) != record->stream_count ||
	    json_array_size(paths) != record->path_count)
		complain(loader, "samples", "not one column set for each stream and path");
	for (size_t i = 0; i < count && loader->status == 0; i++) {
		struct record_sample *sample = record_add_sample(record);

		if (!sample) {
			out_of_memory(loader);
			return;
		}
		sample->at_ns = column_count(loader, samples, "at_ns", i, UINT64_MAX);
		sample->length_ns = column_count(loader, samples, "length_ns", i, UINT64_MAX);
		sample->measured = json_is_true(json_array_get(measured, i));
		for (unsigned s = 0; s < record->stream_count; s++)
			load_stream_sample(loader, json_array_get(streams, s), i,
					   &sample->streams[s]);
		for (unsigned p = 0; p < record->path_count; p++)
			sample->paths[p].ios = (uint32_t)column_count(
			    loader, json_array_get(paths, p), "ios", i, UINT32_MAX);
	}
}

static void load_seed(struct loader *loader, const json_t *root, struct record *record)
{
	const json_t *seed = get(loader, root, "seed");
	char *end = NULL;

	if (json_is_string(seed)) {
		errno = 0;
		record->seed = strtoull(json_string_value(seed), &end, 10);
		if (errno || *end || !json_string_length(seed))
			complain(loader, "seed", "not a number");
	} else {
		record->seed = get_count(loader, root, "seed");
	}
}

static void load_head(struct loader *loader, const json_t *root, struct record *record)
{
	const json_t *window = get_object(loader, root, "window");

	record->version = get_string(loader, root, "version");
	record->lab = get_string(loader, root, "lab");
	record->workload = get_string(loader, root, "workload");
	record->interrupted = get_bool(loader, root, "interrupted");
	if (json_object_get(root, "error"))
		record->error = get_string(loader, get_object(loader, root, "error"), "message");
	load_seed(loader, root, record);
	record->start_wall_ns = get_count(loader, root, "start_wall_ns");
	record->end_ns = get_count(loader, root, "end_ns");
	record->window_start_ns = get_count(loader, window, "start_ns");
	record->window_end_ns = get_count(loader, window, "end_ns");
}

static void load_results(struct loader *loader, const json_t *root, struct record *record)
{
	const json_t *plan = get_object(loader, root, "plan");
	const json_t *achieved = get_object(loader, root, "achieved");
	const json_t *check = get_object(loader, root, "data_check");

	record->summary = get_string(loader, plan, "summary");
	record->planned_transactional_iops = get_real(loader, plan, "transactional_iops");
	record->achieved_transactional_iops = get_real(loader, achieved, "transactional_iops");
	record->total_iops = get_real(loader, achieved, "total_iops");
	record->pages_checked = get_count(loader, check, "pages_checked");
	record->pages_read_back = get_count(loader, check, "pages_read_back");
	record->pages_written = get_count(loader, check, "pages_written");
	record->pages_not_readable = get_count(loader, check, "pages_not_readable");
	record->mismatches_total = get_count(loader, check, "mismatches_total");
	record->mismatches = get_any(loader, check, "mismatches");
}

static void load_record(struct loader *loader, const json_t *root, struct record *record)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));

	if (!schema || strcmp(schema, RUN_SCHEMA) != 0) {
		complain(loader, "schema", "%s is wanted, not %s", RUN_SCHEMA,
			 schema ? schema : "something else");
		err_hint(loader->err, "render it with the sanlab version that wrote it");
		return;
	}
	load_head(loader, root, record);
	load_results(loader, root, record);
	load_list(loader, root, "streams", load_stream, record);
	load_list(loader, root, "paths", load_path, record);
	load_samples(loader, root, record);
	load_list(loader, root, "markers", load_marker, record);
	if (json_object_get(root, "failovers")) /* runs of older versions have none */
		load_list(loader, root, "failovers", load_failover, record);
	load_list(loader, root, "verdicts", load_verdict, record);
	record->environment = get_any(loader, root, "environment");
	record->config_yaml = get_string(loader, root, "config_yaml");
	if (json_object_get(root, "observed"))
		record->observed = get_any(loader, root, "observed");
	if (json_object_get(root, "curve"))
		record->curve = get_any(loader, root, "curve");
	if (json_object_get(root, "replay"))
		record->replay = get_any(loader, root, "replay");
	if (json_object_get(root, "exchange"))
		record->exchange = get_any(loader, root, "exchange");
	record->target = get_any(loader, root, "target");
}

static int read_document(const char *file, json_t **ret_root, struct err *err)
{
	json_error_t error;
	FILE *from = fopen(file, "re");
	json_t *root;
	int r;

	if (!from) {
		r = err_set(err, -errno, "cannot read the run: %s", strerror(errno));
		err_where(err, "%s", file);
		err_hint(err, "name the directory a run was written to (sanlab run --out DIR)");
		return r;
	}
	root = json_loadf(from, JSON_REJECT_DUPLICATES, &error);
	fclose(from);
	if (!root) {
		r = err_set(err, -EINVAL, "not a JSON document: %s", error.text);
		err_where(err, "%s:%d:%d", file, error.line, error.column);
		return r;
	}
	*ret_root = root;
	return 0;
}

int report_load(const char *dir, struct record **ret_record, struct err *err)
{
	struct loader loader = {.err = err};
	struct record *record;
	json_t *root = NULL;
	char *file;
	int r;

	if (asprintf(&file, "%s/run.json", dir) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	r = read_document(file, &root, err);
	if (r < 0) {
		free(file);
		return r;
	}
	record = record_new();
	if (!record)
		out_of_memory(&loader);
	else
		load_record(&loader, root, record);
	json_decref(root);
	if (loader.status < 0) {
		err_where(err, "%s", file);
		record_free(record);
	} else {
		*ret_record = record;
	}
	free(file);
	return loader.status;
}
