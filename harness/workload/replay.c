/* SPDX-License-Identifier: MIT
 *
 * The replay's life, and what comes next.
 */
#include "harness/workload/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/replay_impl.h"

/* Records that are looked at in one go, so that a trace of which little is replayed does not hold
 * up everything else. */
enum { LOOK_MAX = 4096 };

/* ---- what comes next ---- */

static void fail(struct replay *replay, const char *why)
{
	replay->running = false;
	replay->exhausted = true;
	replay->env.failed(replay->env.arg, why);
}

/* All of a pass was left out: another would be no better. */
static void fail_unused(struct replay *replay)
{
	const struct trace_names *names = trace_set_names(replay->trace);
	const struct trace_counts *counts = trace_set_counts(replay->trace);
	char why[400];
	size_t used;

	if (!names->count) {
		used = (size_t)snprintf(why, sizeof why, "the trace holds no I/O");
		if (counts->bad_kept)
			snprintf(why + used, sizeof why - used, "; malformed lines: %llu, %.300s",
				 (unsigned long long)counts->bad, counts->bad_line[0]);
		fail(replay, why);
		return;
	}
	used = (size_t)snprintf(
	    why, sizeof why,
	    "no I/O of the trace is replayed: %llu of devices that `map` does not "
	    "name, %llu beyond the end; its devices are",
	    (unsigned long long)replay->unmapped, (unsigned long long)replay->beyond);
	for (unsigned i = 0; i < names->count && used < sizeof why - 1; i++)
		used += (size_t)snprintf(why + used, sizeof why - used, "%s %.60s", i ? "," : "",
					 names->name[i]);
	fail(replay, why);
}

/* The trace is at its end; true: it begins again. */
static bool again(struct replay *replay)
{
	struct err err = {0};

	replay->passes++;
	if (replay->pass_used == 0) {
		fail_unused(replay);
		return false;
	}
	if (replay->config.loops && replay->passes >= replay->config.loops) {
		replay->exhausted = true;
		return false;
	}
	if (trace_set_rewind(replay->trace, &err) < 0) {
		fail(replay, err.what);
		return false;
	}
	replay_pace_again(replay);
	replay->pass_records = replay->pass_used = 0;
	return true;
}

/* Makes parts of RECORD; false: it is not replayed. */
static bool use(struct replay *replay, const struct trace_record *record)
{
	struct replay_region *region = replay_region_of(replay, record->device, record->class);
	char why[300];
	int r;

	if (replay->passes == 0 && replay->pass_records == 0)
		replay->pace.base_ns = record->begin_ns;
	replay->pass_records++;
	if (!region) {
		replay->unmapped++;
		return false;
	}
	r = replay_parts_begin(replay, region, record);
	if (r < 0) {
		snprintf(why, sizeof why,
			 "an I/O of %.100s at offset %llu is beyond the end of its region of %llu "
			 "bytes (beyond: fail)",
			 trace_set_names(replay->trace)->name[record->device],
			 (unsigned long long)record->offset_bytes,
			 (unsigned long long)region->size_bytes);
		fail(replay, why);
	}
	if (r <= 0)
		return false;
	replay->pass_used++;
	region->ios++;
	region->bytes += record->length_bytes;
	return true;
}

/* The next record that is replayed; false: there is none now. */
static bool fetch(struct replay *replay)
{
	struct trace_record record;
	struct err err = {0};
	int r;

	for (unsigned i = 0; i < LOOK_MAX && !replay->exhausted; i++) {
		r = trace_set_next(replay->trace, &record, &err);
		if (r < 0) {
			fail(replay, err.what);
			return false;
		}
		if (r == 0) {
			if (!again(replay))
				return false;
			continue;
		}
		if (use(replay, &record)) {
			replay->has_due = false;
			return true;
		}
	}
	if (!replay->exhausted)
		loop_timer_set(replay->env.loop, &replay->timer, loop_now_ns(replay->env.loop));
	return false;
}

static bool send_part(struct replay *replay)
{
	struct replay_parts *parts = &replay->parts;
	struct replay_part part;

	replay_parts_next(replay, &part);
	/* In line before it is sent: it may end at once. */
	if (!replay_send(replay, &part, &parts->record, replay->due_ns)) {
		struct replay_device *device = &replay->devices[part.device];

		if (!replay->waited)
			device->streams[parts->record.class][parts->record.op]->backlog++;
		replay->waited = true;
		return false;
	}
	replay->waited = false;
	replay->part_ios += !parts->first;
	replay_parts_sent(replay, &part);
	return true;
}

/* True: something was sent, and the next may be due as well. */
static bool step(struct replay *replay)
{
	struct replay_parts *parts = &replay->parts;

	if (!parts->active && !fetch(replay))
		return false;
	if (!replay->has_due && !replay_pace_due(replay, &parts->record, &replay->due_ns))
		return false;
	replay->has_due = true;
	if (replay->due_ns > loop_now_ns(replay->env.loop)) {
		loop_timer_set(replay->env.loop, &replay->timer, replay->due_ns);
		return false;
	}
	return send_part(replay);
}

void replay_pump(struct replay *replay)
{
	if (replay->pumping)
		return;
	replay->pumping = true;
	while (replay->running && step(replay))
		;
	replay->pumping = false;
	if (replay->running && replay->exhausted && !replay->parts.active && !replay->in_flight &&
	    !replay->ended) {
		replay->ended = true;
		replay->env.ended(replay->env.arg);
	}
}

static void timer_due(void *arg)
{
	replay_pump(arg);
}

/* ---- life ---- */

static void beat(void *arg)
{
	struct replay *replay = arg;

	/* A pause of the trace is no standstill. */
	replay->steps += replay->in_flight == 0;
	replay->base.progress = (double)replay->steps / ((double)replay->steps + 1e6);
	loop_timer_set(replay->env.loop, &replay->heartbeat,
		       loop_now_ns(replay->env.loop) + NS_PER_S / 2);
}

static void prepare(struct workload *workload, workload_fn done, void *arg)
{
	workload->progress = 1;
	done(arg, 0);
}

static void start(struct workload *workload)
{
	struct replay *replay = container_of(workload, struct replay, base);

	replay->running = true;
	replay->pace.start_ns = loop_now_ns(replay->env.loop);
	workload->progress = 0;
	if (workload->ends_itself)
		beat(replay);
	replay_pump(replay);
}

/* Lateness is told of the window. */
static void window(struct workload *workload, bool begins)
{
	struct replay *replay = container_of(workload, struct replay, base);

	if (!begins)
		return;
	hist_reset(&replay->lateness);
	replay->late = 0;
}

void replay_tell_drained(struct replay *replay)
{
	workload_fn drained = replay->drained;

	if (!replay->stopping || replay->in_flight || !drained)
		return;
	replay->drained = NULL;
	drained(replay->drained_arg, 0);
}

static void stop(struct workload *workload, workload_fn drained, void *arg)
{
	struct replay *replay = container_of(workload, struct replay, base);

	replay->running = false;
	replay->stopping = true;
	replay->drained = drained;
	replay->drained_arg = arg;
	loop_timer_cancel(replay->env.loop, &replay->timer);
	loop_timer_cancel(replay->env.loop, &replay->heartbeat);
	replay_tell_drained(replay);
}

static void free_replay(struct workload *workload)
{
	struct replay *replay = container_of(workload, struct replay, base);

	loop_timer_cancel(replay->env.loop, &replay->timer);
	loop_timer_cancel(replay->env.loop, &replay->heartbeat);
	trace_set_close(replay->trace);
	replay_io_done(replay);
	replay_pace_done(replay);
	for (size_t i = 0; replay->files && i < replay->config.traces.count; i++)
		free(replay->files[i]);
	free(replay->files);
	free(replay->regions);
	free(replay->spread);
	free(replay->base.streams);
	free(replay);
}

/* ---- open ---- */

static const char *stream_name(enum trace_class class, enum trace_op op)
{
	static const char *const names[TRACE_CLASSES][2] = {
	    [TRACE_PLAIN] = {"read", "write"},
	    [TRACE_DATABASE] = {"db-read", "db-write"},
	    [TRACE_LOG] = {"log-read", "log-write"},
	    [TRACE_CHECKPOINT] = {"chk-read", "chk-write"},
	};

	if (op == TRACE_FLUSH)
		return "flush";
	return op == TRACE_TRIM ? "trim" : names[class][op == TRACE_WRITE];
}

static void add_streams(struct replay *replay, struct replay_device *device)
{
	const struct trace_format *format = trace_set_format(replay->trace);

	for (unsigned op = 0; op < TRACE_OPS; op++)
		for (unsigned class = 0; class < TRACE_CLASSES; class ++) {
			struct stream **stream = &device->streams[class][op];

			if ((op == TRACE_FLUSH && !format->has_flushes) ||
			    (op == TRACE_TRIM && !format->has_trims) ||
			    (class != TRACE_PLAIN && !format->has_classes))
				continue;
			if (class != TRACE_PLAIN && op != TRACE_READ && op != TRACE_WRITE) {
				*stream = device->streams[TRACE_PLAIN][op];
				continue;
			}
			*stream = &replay->base.streams[replay->base.stream_count++];
			**stream = (struct stream){
			    .name = stream_name((enum trace_class) class, (enum trace_op)op),
			    .host = device->device->host,
			    .volume = device->device->volume,
			    .write = op != TRACE_READ,
			};
		}
}

static int open_trace(struct replay *replay, struct err *err)
{
	size_t count = replay->config.traces.count;
	char path[REPLAY_PATH_MAX];

	replay->files = calloc(count + 1, sizeof *replay->files);
	for (size_t i = 0; replay->files && i < count; i++) {
		replay_trace_path(&replay->config, i, path, sizeof path);
		replay->files[i] = strdup(path);
		if (!replay->files[i])
			return err_set(err, -ENOMEM, "no memory for the workload");
	}
	if (!replay->files)
		return err_set(err, -ENOMEM, "no memory for the workload");
	replay_trace_options(&replay->config, (const char *const *)replay->files, &replay->options);
	return trace_set_open(&replay->options, &replay->trace, err);
}

static int set_up(struct replay *replay, struct err *err)
{
	int r = replay_map_check(replay, err);

	if (r == 0)
		r = open_trace(replay, err);
	if (r == 0)
		r = replay_io_init(replay, err);
	if (r < 0)
		return r;
	replay->base.streams = calloc((size_t)replay->env.device_count * TRACE_CLASSES * TRACE_OPS,
				      sizeof *replay->base.streams);
	replay->regions =
	    calloc((size_t)TRACE_DEVICES_MAX * TRACE_CLASSES, sizeof *replay->regions);
	replay->spread = calloc(TRACE_DEVICES_MAX, sizeof *replay->spread);
	if (!replay->base.streams || !replay->regions || !replay->spread ||
	    replay_pace_init(replay) < 0)
		return err_set(err, -ENOMEM, "no memory for the workload");
	for (unsigned d = 0; d < replay->env.device_count; d++)
		add_streams(replay, &replay->devices[d]);
	return 0;
}

static void summarize(struct replay *replay)
{
	const struct replay_config *config = &replay->config;
	const char *mode = replay_mode_names[config->mode];
	char speed[60] = "";

	if (config->mode != REPLAY_AFAP && config->scale_time != 1)
		snprintf(speed, sizeof speed, ", times x %g", config->scale_time);
	snprintf(replay->summary, sizeof replay->summary, "replay: %s%s%s (%s), %s%s, %s",
		 config->traces.count == 1 ? strrchr(replay->files[0], '/')
						 ? strrchr(replay->files[0], '/') + 1
						 : replay->files[0]
					   : "several traces",
		 "", "", trace_set_format(replay->trace)->name, mode, speed,
		 config->verify ? "verified by sectors" : "data not verified");
	replay->base.plan.summary = replay->summary;
}

static int open_replay(const struct workload_env *env, const void *config,
		       struct workload **ret_workload, struct err *err)
{
	struct replay *replay;
	int r;

	if (env->device_count == 0 || env->device_count > REPLAY_VOLUMES_MAX)
		return err_set(err, -EINVAL, "a replay goes to 1 to %d volumes, not %u",
			       REPLAY_VOLUMES_MAX, env->device_count);
	replay = calloc(1, sizeof *replay);
	if (!replay)
		return err_set(err, -ENOMEM, "no memory for the workload");
	replay->base.ops = &replay_workload_ops;
	replay->env = *env;
	replay->config = *(const struct replay_config *)config;
	replay->depth = (unsigned)replay->config.queue_depth;
	loop_timer_init(&replay->timer, timer_due, replay);
	loop_timer_init(&replay->heartbeat, beat, replay);
	r = set_up(replay, err);
	if (r < 0) {
		free_replay(&replay->base);
		return r;
	}
	replay->base.ends_itself = replay->config.whole;
	summarize(replay);
	*ret_workload = &replay->base;
	return 0;
}

const struct workload_ops replay_workload_ops = {
    .name = "replay",
    .help = "the I/Os of a trace: fio iolog, blkparse, MSR Cambridge, SPC, Exchange ETW",
    .schema = &replay_schema,
    .configure = replay_configure,
    .check_names = replay_check_names,
    .open = open_replay,
    .prepare = prepare,
    .start = start,
    .stop = stop,
    .verify = replay_verify,
    .free = free_replay,
    .window = window,
    .describe = replay_describe,
};
