/* SPDX-License-Identifier: MIT
 *
 * What a run writes down: the record (streams, paths, samples, markers) and the events.
 *
 * Nothing here depends on addresses or hash order, and wall-clock time comes from the loop: on the
 * virtual loop equal seeds give equal events to the byte.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/run/engine.h"
#include "harness/run/verdict.h"

const char *const run_phase_names[] = {
    [RUN_NEW] = "new",	     [RUN_PREPARE] = "prepare", [RUN_WARMUP] = "warmup",
    [RUN_WINDOW] = "window", [RUN_DRAIN] = "drain",	[RUN_VERIFY] = "verify",
    [RUN_DONE] = "done",
};

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)MIN_OF(value, (uint64_t)INT64_MAX));
}

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static void path_info(const struct run_engine *engine, const struct run_path *path,
		      struct mpio_path_info *ret_info)
{
	mpio_path_info(engine->devices[path->device].mpio, path->path, ret_info);
}

/* ---- setting up ---- */

static int add_streams(struct run_engine *engine)
{
	for (unsigned i = 0; i < engine->workload->stream_count; i++) {
		const struct stream *stream = &engine->workload->streams[i];
		struct record_stream *to = record_add_stream(engine->record);

		if (!to)
			return -ENOMEM;
		to->name = copy(stream->name);
		to->host = copy(stream->host);
		to->volume = copy(stream->volume);
		to->write = stream->write;
		to->planned_per_s = stream->planned_per_s;
	}
	return 0;
}

static int add_paths(struct run_engine *engine)
{
	unsigned count = 0;

	for (unsigned d = 0; d < engine->device_count; d++) {
		const struct run_device *device = &engine->devices[d];

		engine->links[d] = (struct run_device_link){engine, d, count};
		for (unsigned p = 0; p < run_path_count(device); p++) {
			struct record_path *to = record_add_path(engine->record);
			struct mpio_path_info info;

			if (!to)
				return -ENOMEM;
			engine->paths[count] = (struct run_path){.device = d, .path = p};
			path_info(engine, &engine->paths[count++], &info);
			to->host = copy(device->host);
			to->volume = copy(device->volume);
			to->portal = copy(info.portal);
			to->state = copy(mpio_path_state_names[info.state]);
			to->index = p;
		}
	}
	return 0;
}

int recording_open(struct run_engine *engine)
{
	struct record *record = engine->record;
	const struct workload *workload = engine->workload;
	int r = add_streams(engine);

	if (r == 0)
		r = add_paths(engine);
	record->lab = copy(engine->lab->name);
	record->workload = copy(engine->lab->workload_ops->name);
	record->summary = copy(workload->plan.summary);
	record->seed = engine->lab->seed;
	record->planned_transactional_iops = workload->plan.transactional_iops;
	return r;
}

static json_t *devices_json(const struct run_engine *engine)
{
	json_t *devices = json_array();

	for (unsigned d = 0; d < engine->device_count; d++) {
		const struct run_device *device = &engine->devices[d];
		json_t *paths = json_array();

		for (unsigned p = 0; p < run_path_count(device); p++) {
			struct mpio_path_info info;

			mpio_path_info(device->mpio, p, &info);
			json_array_append_new(paths, json_pack("{s:s, s:s}", "portal", info.portal,
							       "state",
							       mpio_path_state_names[info.state]));
		}
		json_array_append_new(
		    devices, json_pack("{s:s, s:s, s:o, s:o}", "host", device->host, "volume",
				       device->volume, "size_bytes",
				       number(run_layer(device)->size_bytes), "paths", paths));
	}
	return devices;
}

void recording_start(struct run_engine *engine)
{
	const struct record *record = engine->record;

	event_log_emit(engine->events, "start", 0,
		       json_pack("{s:s, s:o, s:o, s:s, s:s, s:f, s:o}", "lab", record->lab, "seed",
				 number(record->seed), "start_wall_ns",
				 number(record->start_wall_ns), "workload", record->workload,
				 "summary", record->summary, "planned_transactional_iops",
				 record->planned_transactional_iops, "devices",
				 devices_json(engine)));
}

/* ---- as it happens ---- */

void recording_marker_at(struct run_engine *engine, uint64_t at_ns, const char *kind,
			 const char *host, const char *volume, const char *portal, const char *text)
{
	struct record *record = engine->record;
	struct record_marker *marker = record_add_marker(record);

	if (!marker)
		return; /* the record's bound: the event log still has it */
	while (marker > record->markers && marker[-1].at_ns > at_ns) {
		*marker = marker[-1];
		marker--;
	}
	*marker = (struct record_marker){
	    .at_ns = at_ns,
	    .kind = copy(kind),
	    .host = copy(host),
	    .volume = copy(volume),
	    .portal = copy(portal),
	    .text = copy(text),
	};
}

void recording_marker(struct run_engine *engine, const char *kind, const char *host,
		      const char *volume, const char *portal, const char *text)
{
	recording_marker_at(engine, run_at(engine), kind, host, volume, portal, text);
}

void recording_phase(struct run_engine *engine)
{
	const char *name = run_phase_names[engine->phase];

	recording_marker(engine, "phase", NULL, NULL, NULL, name);
	event_log_emit(engine->events, "phase", run_at(engine), json_pack("{s:s}", "phase", name));
}

void recording_error(struct run_engine *engine, const char *format, ...)
{
	char text[500];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	event_log_emit(engine->events, "error", run_at(engine),
		       json_pack("{s:s}", "message", text));
	if (!engine->record->error)
		engine->record->error = copy(text);
}

void recording_path_event(void *arg, const struct mpio_event *event)
{
	struct run_device_link *link = arg;
	struct run_engine *engine = link->engine;
	const struct run_device *device = &engine->devices[link->device];
	const char *from = mpio_path_state_names[event->from];
	const char *to = mpio_path_state_names[event->to];
	const char *why = event->why ? event->why : "";
	struct mpio_path_info info;
	char text[400];

	if (engine->phase == RUN_NEW || engine->phase == RUN_DONE)
		return;
	mpio_path_info(device->mpio, event->path, &info);
	/* Attempts to come back are many and say little: the log has them, the charts do not. */
	if (event->from == MPIO_PATH_UP || event->to == MPIO_PATH_UP ||
	    event->to == MPIO_PATH_WRONG_LU) {
		snprintf(text, sizeof text, "path %u of %s/%s (%s) %s%s%s", event->path,
			 device->host, device->volume, info.portal, to, *why ? ": " : "", why);
		recording_marker(engine, "path", device->host, device->volume, info.portal, text);
	}
	event_log_emit(engine->events, "path", run_at(engine),
		       json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:i, s:s}", "host", device->host,
				 "volume", device->volume, "path", (int)event->path, "portal",
				 info.portal, "from", from, "to", to, "reissued",
				 (int)event->reissued, "why", why));
}

void recording_mismatch(void *arg, const struct mismatch *mismatch)
{
	struct run_engine *engine = arg;
	json_t *detail;

	if (engine->mismatches++ >= RUN_MISMATCH_EVENTS || !engine->record)
		return;
	detail = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "kind",
			   mismatch_names[mismatch->kind], "host", mismatch->host, "volume",
			   mismatch->volume, "offset_bytes", number(mismatch->offset_bytes),
			   "expected_generation", number(mismatch->expected_generation),
			   "found_generation", number(mismatch->found_generation), "at_ns",
			   number(mismatch->at_ns - engine->start_ns));
	if (json_array_size(engine->details) < RUN_MISMATCH_DETAILS)
		json_array_append_new(engine->details, json_deep_copy(detail));
	json_object_del(detail, "at_ns"); /* the event has its own */
	event_log_emit(engine->events, "mismatch", run_at(engine), detail);
}

/* ---- samples ---- */

static void sample_streams(struct run_engine *engine, struct record_sample *sample)
{
	for (unsigned i = 0; i < engine->workload->stream_count; i++) {
		const struct stream_counters *from = &engine->workload->streams[i].interval;

		sample->streams[i] = (struct record_stream_sample){
		    .ios = (uint32_t)from->ios,
		    .errors = (uint32_t)from->errors,
		    .bytes = from->bytes,
		    .p50_ns = from->ios ? hist_quantile_ns(&from->response, 0.5) : 0,
		    .p99_ns = from->ios ? hist_quantile_ns(&from->response, 0.99) : 0,
		    .max_ns = from->response.max_ns,
		    .mean_ns = (uint64_t)hist_mean_ns(&from->response),
		};
	}
}

static void sample_paths(struct run_engine *engine, struct record_sample *sample)
{
	for (unsigned i = 0; i < engine->path_count; i++) {
		struct run_path *path = &engine->paths[i];
		struct mpio_path_info info;

		path_info(engine, path, &info);
		sample->paths[i].ios = (uint32_t)(info.ledger->ios - path->sampled_ios);
		path->sampled_ios = info.ledger->ios;
	}
}

/* One sum a kind of stream, over all volumes. */
static json_t *kinds_json(const struct run_engine *engine)
{
	const struct workload *workload = engine->workload;
	json_t *kinds = json_object();

	for (unsigned i = 0; i < workload->stream_count; i++) {
		const char *name = workload->streams[i].name;
		uint64_t ios = 0, bytes = 0, errors = 0, sum_ns = 0, max_ns = 0;

		if (json_object_get(kinds, name))
			continue;
		for (unsigned k = i; k < workload->stream_count; k++) {
			const struct stream_counters *from = &workload->streams[k].interval;

			if (strcmp(workload->streams[k].name, name) != 0)
				continue;
			ios += from->ios;
			bytes += from->bytes;
			errors += from->errors;
			sum_ns += from->response.sum_ns;
			max_ns = MAX_OF(max_ns, from->response.max_ns);
		}
		json_object_set_new(kinds, name,
				    json_pack("{s:o, s:o, s:o, s:o, s:o}", "ios", number(ios),
					      "bytes", number(bytes), "errors", number(errors),
					      "mean_ns", number(ios ? sum_ns / ios : 0), "max_ns",
					      number(max_ns)));
	}
	return kinds;
}

static void remember_last(struct run_engine *engine, uint64_t length_ns)
{
	uint64_t ios = 0, sum_ns = 0;

	for (unsigned i = 0; i < engine->workload->stream_count; i++) {
		const struct stream_counters *from = &engine->workload->streams[i].interval;

		ios += from->ios;
		sum_ns += from->response.sum_ns;
	}
	engine->last_iops = (double)ios * (double)NS_PER_S / (double)length_ns;
	engine->last_mean_ns = ios ? (double)sum_ns / (double)ios : 0;
}

void recording_sample(struct run_engine *engine)
{
	uint64_t now_ns = loop_now_ns(engine->loop);
	uint64_t length_ns = now_ns - engine->sample_start_ns;
	struct record_sample *sample;
	json_t *paths;

	if (length_ns == 0)
		return;
	sample = record_add_sample(engine->record);
	if (sample) {
		sample->at_ns = run_at(engine);
		sample->length_ns = length_ns;
		sample->measured = engine->phase == RUN_WINDOW;
		sample_streams(engine, sample);
		sample_paths(engine, sample);
		paths = json_array();
		for (unsigned i = 0; i < engine->path_count; i++)
			json_array_append_new(paths, number(sample->paths[i].ios));
		event_log_emit(engine->events, "interval", sample->at_ns,
			       json_pack("{s:o, s:b, s:o, s:o}", "length_ns", number(length_ns),
					 "measured", sample->measured, "streams",
					 kinds_json(engine), "path_ios", paths));
	}
	remember_last(engine, length_ns);
	workload_reset_intervals(engine->workload);
	engine->sample_start_ns = now_ns;
}

/* ---- the window ---- */

void recording_window_begin(struct run_engine *engine)
{
	engine->record->window_start_ns = engine->record->window_end_ns = run_at(engine);
	for (unsigned i = 0; i < engine->path_count; i++) {
		struct run_path *path = &engine->paths[i];
		struct mpio_path_info info;

		path_info(engine, path, &info);
		path->before.ios += info.ledger->ios;
		path->before.reads += info.ledger->reads;
		path->before.writes += info.ledger->writes;
		path->before.losses += info.ledger->losses;
		path->before.errors += info.ledger->errors;
		path->before.retries += info.ledger->retries;
		path->sampled_ios = 0;
	}
	for (unsigned d = 0; d < engine->device_count; d++)
		if (engine->devices[d].mpio)
			mpio_ledger_reset(engine->devices[d].mpio);
	workload_reset_counters(engine->workload);
	for (unsigned i = 0; i < engine->workload->stream_count; i++) {
		struct stream *stream = &engine->workload->streams[i];

		/* What has been due since the warm-up counts from here. */
		if (stream->due_since_ns)
			stream->due_since_ns =
			    MAX_OF(stream->due_since_ns, loop_now_ns(engine->loop));
	}
}

static void copy_path(struct record_path *to, const struct mpio_ledger *from)
{
	to->ios = from->ios;
	to->reads = from->reads;
	to->writes = from->writes;
	to->read_bytes = from->read_bytes;
	to->write_bytes = from->write_bytes;
	to->errors = from->errors;
	to->retries = from->retries;
	to->reissued = from->reissued;
	to->losses = from->losses;
	to->logins = from->logins;
	to->latency = from->latency;
}

static void copy_paths(struct run_engine *engine)
{
	struct record *record = engine->record;

	for (unsigned d = 0; d < engine->device_count; d++) {
		unsigned first = engine->links[d].first_path;
		unsigned count = run_path_count(&engine->devices[d]);
		uint64_t ios = 0;

		for (unsigned i = first; i < first + count; i++) {
			struct mpio_path_info info;

			path_info(engine, &engine->paths[i], &info);
			copy_path(&record->paths[i], info.ledger);
			ios += info.ledger->ios;
		}
		for (unsigned i = first; i < first + count; i++)
			record->paths[i].share =
			    ios ? (double)record->paths[i].ios / (double)ios : 0;
	}
}

/* What the plan's transactional IOPS are made of; a closed loop of databases plans no rates of
 * its streams. */
static bool is_transactional(const struct stream *stream)
{
	if (strcmp(stream->name, "db-read") == 0 || strcmp(stream->name, "db-write") == 0)
		return true;
	return stream->planned_per_s > 0 &&
	       (strcmp(stream->name, "read") == 0 || strcmp(stream->name, "write") == 0);
}

static void copy_streams(struct run_engine *engine)
{
	struct record *record = engine->record;
	uint64_t ios = 0, transactional = 0, due = 0;
	double window_s;

	for (unsigned i = 0; i < record->stream_count; i++) {
		const struct stream *from = &engine->workload->streams[i];
		struct record_stream *to = &record->streams[i];

		to->ios = from->total.ios;
		to->bytes = from->total.bytes;
		to->max_gap_ns = from->max_gap_ns;
		to->response = from->total.response;
		to->service = from->total.service;
		ios += to->ios;
		if (is_transactional(from)) {
			transactional += to->ios;
			due += from->due;
		}
	}
	record->achieved_transactional_ios = transactional;
	record->due_transactional_ios = due;
	window_s = (double)(record->window_end_ns - record->window_start_ns) / (double)NS_PER_S;
	if (window_s > 0) {
		record->total_iops = (double)ios / window_s;
		record->achieved_transactional_iops = (double)transactional / window_s;
	}
}

void recording_window_end(struct run_engine *engine)
{
	engine->record->window_end_ns = run_at(engine);
	workload_close_gaps(engine->workload, loop_now_ns(engine->loop));
	workload_count_due(engine->workload, loop_now_ns(engine->loop));
	copy_streams(engine);
	copy_paths(engine);
}

/* ---- the end ---- */

static void copy_check(struct run_engine *engine)
{
	const struct workload_check *check = &engine->workload->check;
	struct record *record = engine->record;
	json_t *by_kind = json_object();

	record->pages_checked = check->pages_checked;
	record->pages_read_back = check->pages_read_back;
	record->pages_written = check->pages_written;
	record->pages_not_readable = check->pages_not_readable;
	record->mismatches_total = 0;
	for (unsigned i = 0; i < MISMATCH_KINDS; i++) {
		record->mismatches_total += check->mismatches[i];
		json_object_set_new(by_kind, mismatch_names[i], number(check->mismatches[i]));
	}
	record->mismatches = json_pack("{s:o, s:O}", "by_kind", by_kind, "first", engine->details);
}

static void describe(struct run_engine *engine)
{
	const struct workload_ops *ops = engine->workload->ops;
	struct record *record = engine->record;

	if (!ops->describe)
		return;
	if (strcmp(ops->name, "replay") == 0)
		record->replay = ops->describe(engine->workload);
	else if (strcmp(ops->name, "raw") == 0)
		record->curve = ops->describe(engine->workload);
	else
		record->exchange = ops->describe(engine->workload);
}

void recording_finish(struct run_engine *engine)
{
	struct record *record = engine->record;
	json_t *verdicts = json_array();
	static const char *const results[] = {"pass", "fail", "skip"};

	record->end_ns = run_at(engine);
	copy_check(engine);
	describe(engine);
	/* I/Os that failed after the window had closed were sent in it. */
	for (unsigned i = 0; i < record->stream_count; i++)
		record->streams[i].errors = engine->workload->streams[i].total.errors;
	for (unsigned i = 0; i < engine->path_count; i++) {
		struct mpio_path_info info;

		path_info(engine, &engine->paths[i], &info);
		free(record->paths[i].state);
		record->paths[i].state = copy(mpio_path_state_names[info.state]);
	}
	if (engine->collect)
		engine->collect(engine->judge_arg, record);
	failover_finish(engine);
	verdicts_judge(engine->lab, record);
	if (engine->device_count && engine->devices[0].recorder) {
		struct recorder_result result;

		recorder_finish(engine->devices[0].recorder, &result);
		recorder_judge(record, &result);
	}
	if (engine->judge)
		engine->judge(engine->judge_arg, record);
	for (unsigned i = 0; i < record->verdict_count; i++)
		json_array_append_new(verdicts,
				      json_pack("{s:s, s:s}", "id", record->verdicts[i].id,
						"status", results[record->verdicts[i].status]));
	event_log_emit(engine->events, "end", record->end_ns,
		       json_pack("{s:b, s:b, s:o, s:o}", "passed", record_passed(record),
				 "interrupted", record->interrupted, "mismatches",
				 number(record->mismatches_total), "verdicts", verdicts));
}

void run_engine_progress(const struct run_engine *engine, struct run_progress *ret_progress)
{
	const struct run_config *run = &engine->lab->run;
	struct run_progress progress = {
	    .phase = run_phase_names[engine->phase],
	    .elapsed_ns = run_at(engine),
	    .phase_ns = loop_now_ns(engine->loop) - engine->phase_start_ns,
	    .done = engine->workload->progress,
	    .iops = engine->last_iops,
	    .mean_ns = engine->last_mean_ns,
	    .paths = engine->path_count,
	    .mismatches = engine->mismatches,
	    .waits_for = engine->phase == RUN_WARMUP ? engine->workload->waits_for : NULL,
	};

	if (engine->phase == RUN_WARMUP)
		progress.phase_length_ns = run->warmup_ns;
	else if (engine->phase == RUN_WINDOW && !engine->workload->ends_itself)
		progress.phase_length_ns = run->duration_ns;
	for (unsigned i = 0; i < engine->path_count; i++) {
		struct mpio_path_info info;

		path_info(engine, &engine->paths[i], &info);
		progress.paths_up += info.state == MPIO_PATH_UP;
	}
	for (unsigned i = 0; i < engine->workload->stream_count; i++)
		progress.errors += engine->workload->streams[i].total.errors;
	*ret_progress = progress;
}

bool run_engine_path_total(const struct run_engine *engine, unsigned index,
			   struct run_path_total *ret_total)
{
	const struct run_path *path;
	struct mpio_path_info info;

	if (index >= engine->path_count)
		return false;
	path = &engine->paths[index];
	path_info(engine, path, &info);
	*ret_total = (struct run_path_total){
	    .portal = info.portal,
	    .reads = path->before.reads + info.ledger->reads,
	    .writes = path->before.writes + info.ledger->writes,
	    .losses = path->before.losses + info.ledger->losses,
	    .errors = path->before.errors + info.ledger->errors,
	    .retries = path->before.retries + info.ledger->retries,
	};
	return true;
}
