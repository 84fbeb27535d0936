/* SPDX-License-Identifier: MIT
 *
 * The phases of a run: prepare -> warm-up -> window -> drain -> verify -> judge.
 *
 * Every way out leads through drain and finish, so the record is always complete; each wait has
 * an end: the window by its length, drain by its limit, prefill and read-back by a watchdog that
 * wants progress within the drain limit.
 */
#include "harness/run/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/workload/foreign.h"

#define WATCH_NS NS_PER_S

static void set_phase(struct run_engine *engine, enum run_phase phase)
{
	engine->phase = phase;
	engine->phase_start_ns = loop_now_ns(engine->loop);
	recording_phase(engine);
}

static void finish(struct run_engine *engine)
{
	if (engine->phase == RUN_DONE)
		return;
	loop_timer_cancel(engine->loop, &engine->phase_timer);
	loop_timer_cancel(engine->loop, &engine->sample_timer);
	loop_timer_cancel(engine->loop, &engine->watchdog);
	loop_task_cancel(engine->loop, &engine->ended);
	timeline_close(engine);
	engine->phase = RUN_DONE;
	recording_finish(engine);
	engine->finished(engine->arg);
}

static void free_all(struct run_engine *engine)
{
	if (engine->workload)
		engine->workload->ops->free(engine->workload);
	record_free(engine->record);
	json_decref(engine->details);
	free(engine->faults);
	free(engine->paths);
	free(engine->links);
	free(engine->workload_devices);
	free(engine->devices);
	free(engine);
}

/* ---- verify ---- */

static void watch(struct run_engine *engine)
{
	engine->watched_progress = -1;
	engine->watched_ns = loop_now_ns(engine->loop);
	loop_timer_set(engine->loop, &engine->watchdog, engine->watched_ns + WATCH_NS);
}

static void verified(void *arg, int status)
{
	struct run_engine *engine = arg;

	loop_timer_cancel(engine->loop, &engine->watchdog);
	if (status < 0 && status != -ECANCELED)
		recording_error(engine, "the read-back failed: %s", strerror(-status));
	if (!engine->stopping || status != -ECANCELED)
		finish(engine);
}

static void verify(struct run_engine *engine)
{
	set_phase(engine, RUN_VERIFY);
	if (engine->device_count && engine->devices[0].recorder)
		recorder_stop(engine->devices[0].recorder);
	engine->stopping = false;
	engine->drained = false;
	watch(engine);
	engine->workload->ops->verify(engine->workload, verified, engine);
}

/* ---- drain ---- */

static void drained(void *arg, int status)
{
	struct run_engine *engine = arg;
	bool verify_now = engine->phase == RUN_DRAIN && engine->lab->run.verify &&
			  !engine->record->interrupted && !engine->record->error;

	engine->drained = true;
	if (engine->orphan) {
		free_all(engine);
		return;
	}
	loop_timer_cancel(engine->loop, &engine->phase_timer);
	if (engine->phase == RUN_DONE)
		return;
	if (verify_now)
		verify(engine);
	else
		finish(engine);
}

/* The workload ends what it has begun; then `drained`. */
static void stop_workload(struct run_engine *engine)
{
	loop_timer_cancel(engine->loop, &engine->sample_timer);
	loop_timer_cancel(engine->loop, &engine->watchdog);
	engine->stopping = true;
	loop_timer_set(engine->loop, &engine->phase_timer,
		       loop_now_ns(engine->loop) + engine->lab->run.drain_limit_ns);
	engine->workload->ops->stop(engine->workload, drained, engine);
	engine->drain_progress = engine->workload->progress;
}

/* A workload that has much to write back gets the limit anew as long as it gets on. */
static bool drain_gets_on(struct run_engine *engine)
{
	double progress = engine->workload->progress;

	if (progress == engine->drain_progress)
		return false;
	engine->drain_progress = progress;
	loop_timer_set(engine->loop, &engine->phase_timer,
		       loop_now_ns(engine->loop) + engine->lab->run.drain_limit_ns);
	return true;
}

static void drain(struct run_engine *engine)
{
	timeline_stop(engine);
	set_phase(engine, RUN_DRAIN);
	stop_workload(engine);
}

/* ---- warm-up and window ---- */

static void end_window(struct run_engine *engine)
{
	loop_timer_cancel(engine->loop, &engine->phase_timer);
	recording_sample(engine);
	if (engine->workload->ops->window)
		engine->workload->ops->window(engine->workload, false);
	recording_window_end(engine);
	drain(engine);
}

static void begin_window(struct run_engine *engine)
{
	uint64_t now_ns = loop_now_ns(engine->loop);

	recording_sample(engine);
	set_phase(engine, RUN_WINDOW);
	recording_window_begin(engine);
	if (engine->workload->ends_itself)
		watch(engine);
	else
		loop_timer_set(engine->loop, &engine->phase_timer,
			       now_ns + engine->lab->run.duration_ns);
	loop_timer_set(engine->loop, &engine->sample_timer, now_ns + engine->interval_ns);
	timeline_start(engine);
	if (engine->workload->ops->window)
		engine->workload->ops->window(engine->workload, true);
}

static void phase_due(void *arg)
{
	struct run_engine *engine = arg;

	switch (engine->phase) {
	case RUN_WARMUP:
		engine->warmup_passed = true;
		if (engine->warm)
			begin_window(engine);
		break;
	case RUN_WINDOW:
		end_window(engine);
		break;
	default: { /* what was in flight has not ended within the limit */
		char limit[32];

		if (drain_gets_on(engine))
			break;
		text_duration(limit, sizeof limit, (double)engine->lab->run.drain_limit_ns);
		recording_error(engine, "I/O was still in flight %s after the load had stopped",
				limit);
		finish(engine);
		break;
	}
	}
}

static void sample_due(void *arg)
{
	struct run_engine *engine = arg;
	uint64_t next_ns = engine->sample_timer.deadline_ns + engine->interval_ns;

	recording_sample(engine);
	loop_timer_set(engine->loop, &engine->sample_timer, next_ns);
}

static void warmed(void *arg, int status)
{
	struct run_engine *engine = arg;

	if (engine->phase != RUN_WARMUP)
		return;
	if (status < 0) {
		recording_error(engine, "the warm-up failed: %s", strerror(-status));
		loop_task_queue(engine->loop, &engine->ended);
		return;
	}
	engine->warm = true;
	if (engine->warmup_passed)
		loop_timer_set(engine->loop, &engine->phase_timer, loop_now_ns(engine->loop));
}

static void prepared(void *arg, int status)
{
	struct run_engine *engine = arg;
	uint64_t now_ns = loop_now_ns(engine->loop);

	loop_timer_cancel(engine->loop, &engine->watchdog);
	if (engine->stopping)
		return; /* `drained` goes on */
	if (status < 0) {
		recording_error(engine, "the volumes could not be prepared: %s", strerror(-status));
		drain(engine);
		return;
	}
	set_phase(engine, RUN_WARMUP);
	engine->sample_start_ns = now_ns;
	if (engine->device_count && engine->devices[0].recorder)
		recorder_start(engine->devices[0].recorder);
	engine->workload->ops->start(engine->workload);
	loop_timer_set(engine->loop, &engine->sample_timer, now_ns + engine->interval_ns);
	loop_timer_set(engine->loop, &engine->phase_timer, now_ns + engine->lab->run.warmup_ns);
	engine->warm = !engine->workload->ops->warm_up;
	if (!engine->warm)
		engine->workload->ops->warm_up(engine->workload, warmed, engine);
}

static void end_early(struct run_engine *engine)
{
	switch (engine->phase) {
	case RUN_PREPARE:
	case RUN_WARMUP:
		engine->record->window_start_ns = engine->record->window_end_ns = run_at(engine);
		drain(engine);
		break;
	case RUN_WINDOW:
		end_window(engine);
		break;
	case RUN_VERIFY:
		if (!engine->stopping)
			stop_workload(engine);
		break;
	default: /* ending already, or not begun */
		break;
	}
}

/* What the workload said from within its own work is acted upon outside of it. */
static void workload_over(void *arg)
{
	struct run_engine *engine = arg;

	if (engine->record->error)
		end_early(engine);
	else if (engine->phase == RUN_WARMUP)
		begin_window(engine);
	if (engine->phase == RUN_WINDOW)
		run_engine_end(engine);
}

static void workload_ended(void *arg)
{
	struct run_engine *engine = arg;

	if (engine->phase == RUN_DONE)
		return;
	engine->record->ended = true;
	loop_task_queue(engine->loop, &engine->ended);
}

static void workload_failed(void *arg, const char *why)
{
	struct run_engine *engine = arg;

	if (engine->phase == RUN_DONE)
		return;
	recording_error(engine, "%s", why);
	loop_task_queue(engine->loop, &engine->ended);
}

/* Prefill, read-back and windows that end themselves have no length of their own: they must get
 * on. */
static void watch_due(void *arg)
{
	struct run_engine *engine = arg;
	uint64_t now_ns = loop_now_ns(engine->loop);

	if (engine->workload->progress > engine->watched_progress) {
		engine->watched_progress = engine->workload->progress;
		engine->watched_ns = now_ns;
	} else if (now_ns - engine->watched_ns > engine->lab->run.drain_limit_ns) {
		char limit[32];

		text_duration(limit, sizeof limit, (double)engine->lab->run.drain_limit_ns);
		recording_error(engine, "%s made no progress for %s",
				run_phase_names[engine->phase], limit);
		if (engine->phase == RUN_WINDOW)
			end_window(engine);
		else
			stop_workload(engine);
		return;
	}
	loop_timer_set(engine->loop, &engine->watchdog, now_ns + WATCH_NS);
}

/* ---- the interface ---- */

void run_engine_on_judge(struct run_engine *engine,
			 void (*collect)(void *arg, struct record *record),
			 void (*judge)(void *arg, struct record *record), void *arg)
{
	engine->collect = collect;
	engine->judge = judge;
	engine->judge_arg = arg;
}

void run_engine_start(struct run_engine *engine, loop_fn finished, void *arg)
{
	engine->finished = finished;
	engine->arg = arg;
	engine->start_ns = loop_now_ns(engine->loop);
	engine->sample_start_ns = engine->start_ns;
	engine->record->start_wall_ns = loop_wall_ns(engine->loop);
	recording_start(engine);
	set_phase(engine, RUN_PREPARE);
	watch(engine);
	engine->workload->ops->prepare(engine->workload, prepared, engine);
}

void run_engine_stop(struct run_engine *engine, const char *why)
{
	if (engine->phase == RUN_NEW || engine->phase == RUN_DONE || engine->record->interrupted)
		return;
	engine->record->interrupted = true;
	recording_marker(engine, "phase", NULL, NULL, NULL, why);
	event_log_emit(engine->events, "interrupt", run_at(engine), json_pack("{s:s}", "why", why));
	end_early(engine);
}

void run_engine_end(struct run_engine *engine)
{
	if (engine->phase != RUN_WINDOW)
		return;
	end_window(engine);
}

void run_engine_note(struct run_engine *engine, const char *text)
{
	if (engine->phase == RUN_NEW || engine->phase == RUN_DONE)
		return;
	recording_marker(engine, "fault", NULL, NULL, NULL, text);
	event_log_emit(engine->events, "note", run_at(engine), json_pack("{s:s}", "text", text));
}

void run_engine_fail(struct run_engine *engine, const char *why)
{
	if (engine->phase == RUN_NEW || engine->phase == RUN_DONE || engine->record->error)
		return;
	recording_error(engine, "%s", why);
	end_early(engine);
}

struct record *run_engine_record(struct run_engine *engine)
{
	return engine->record;
}

struct record *run_engine_take_record(struct run_engine *engine)
{
	struct record *record = engine->record;

	engine->record = NULL;
	return record;
}

static int open_workload(struct run_engine *engine, struct err *err)
{
	struct workload_env env = {
	    .loop = engine->loop,
	    .seed = engine->lab->seed,
	    .devices = engine->workload_devices,
	    .device_count = engine->device_count,
	    .mismatch = recording_mismatch,
	    .ended = workload_ended,
	    .failed = workload_failed,
	    .arg = engine,
	    .warmup_ns = engine->lab->run.warmup_ns,
	    .window_ns = engine->lab->run.duration_ns,
	};

	for (unsigned i = 0; i < engine->device_count; i++) {
		const struct run_device *device = &engine->devices[i];
		struct io_layer *layer = run_layer(device);

		if (device->recorder)
			layer =
			    recorder_wrap(device->recorder, layer, device->host, device->volume);
		if (!layer)
			return -ENOMEM;
		engine->workload_devices[i] = (struct workload_device){
		    .host = device->host,
		    .volume = device->volume,
		    .layer = layer,
		    .block_bytes =
			device->mpio ? mpio_block_bytes(device->mpio) : device->block_bytes,
		    .known_zero = device->known_zero,
		};
	}
	return engine->lab->workload_ops->open(&env, engine->lab->workload_config,
					       &engine->workload, err);
}

static int allocate(struct run_engine *engine, const struct run_device *devices)
{
	unsigned count = engine->device_count;

	for (unsigned i = 0; i < count; i++)
		engine->path_count += run_path_count(&devices[i]);
	engine->devices = calloc(count + 1, sizeof *engine->devices);
	engine->links = calloc(count + 1, sizeof *engine->links);
	engine->workload_devices = calloc(count + 1, sizeof *engine->workload_devices);
	engine->paths = calloc(engine->path_count + 1, sizeof *engine->paths);
	engine->record = record_new();
	engine->details = json_array();
	if (!engine->devices || !engine->links || !engine->workload_devices || !engine->paths ||
	    !engine->record || !engine->details)
		return -ENOMEM;
	if (count)
		memcpy(engine->devices, devices, count * sizeof *devices);
	return timeline_open(engine);
}

static uint64_t interval_of(const struct run_engine *engine)
{
	if (engine->lab->run.interval_ns)
		return engine->lab->run.interval_ns;
	return engine->workload->sample_ns ? engine->workload->sample_ns : NS_PER_S;
}

int run_engine_new(struct loop *loop, const struct lab *lab, const struct run_device *devices,
		   unsigned device_count, const struct fault_ops *faults, struct event_log *events,
		   struct run_engine **ret_engine, struct err *err)
{
	struct run_engine *engine;
	int r;

	if (device_count == 0 && lab->workload_ops != &foreign_workload_ops)
		return err_set(err, -EINVAL, "the lab's hosts have no volumes");
	engine = calloc(1, sizeof *engine);
	if (!engine)
		return err_set(err, -ENOMEM, "no memory for the run");
	engine->loop = loop;
	engine->lab = lab;
	engine->device_count = device_count;
	engine->events = events;
	if (faults)
		engine->fault_ops = *faults;
	loop_timer_init(&engine->phase_timer, phase_due, engine);
	loop_timer_init(&engine->sample_timer, sample_due, engine);
	loop_timer_init(&engine->watchdog, watch_due, engine);
	loop_task_init(&engine->ended, workload_over, engine);
	r = allocate(engine, devices);
	if (r == 0)
		r = open_workload(engine, err);
	if (r == 0)
		r = recording_open(engine);
	if (r == 0)
		engine->interval_ns = interval_of(engine);
	if (r < 0) {
		err_set(err, r, "cannot set up the run: %s", strerror(-r));
		free_all(engine);
		return r;
	}
	for (unsigned i = 0; i < device_count; i++) {
		if (!devices[i].mpio)
			continue;
		mpio_on_event(devices[i].mpio, recording_path_event, &engine->links[i]);
		mpio_on_track(devices[i].mpio, failover_track, &engine->links[i]);
	}
	*ret_engine = engine;
	return 0;
}

struct run_engine *run_engine_free(struct run_engine *engine)
{
	if (!engine)
		return NULL;
	loop_timer_cancel(engine->loop, &engine->phase_timer);
	loop_timer_cancel(engine->loop, &engine->sample_timer);
	loop_timer_cancel(engine->loop, &engine->watchdog);
	loop_task_cancel(engine->loop, &engine->ended);
	timeline_close(engine);
	for (unsigned i = 0; i < engine->device_count; i++) {
		if (!engine->devices[i].mpio)
			continue;
		mpio_on_event(engine->devices[i].mpio, NULL, NULL);
		mpio_on_track(engine->devices[i].mpio, NULL, NULL);
	}
	/* What is still in flight (a second signal, the drain limit) ends with the hosts. */
	if (engine->stopping && !engine->drained)
		engine->orphan = true;
	else
		free_all(engine);
	return NULL;
}
