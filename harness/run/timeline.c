/* SPDX-License-Identifier: MIT
 *
 * The fault timeline: each fault begins at its time in the window and, with `for`, ends after it.
 * One that has begun ends at its time even when the window has closed meanwhile; one without
 * `for` lasts until the run is over.
 */
#include "harness/run/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void describe_network(const struct fault_config *fault, char *out, size_t size)
{
	if (fault->has_path && fault->kind == FAULT_SESSION_RESET)
		snprintf(out, size, "%s/%s path %llu (%s)", fault->host, fault->volume,
			 (unsigned long long)fault->path, fault->portal.text);
	else if (fault->has_path)
		snprintf(out, size, "%s path %llu (%s)", fault->host,
			 (unsigned long long)fault->path, fault->portal.text);
	else if (fault->portal.set)
		snprintf(out, size, "%s", fault->portal.text);
	else if (fault->member)
		snprintf(out, size, "paths to %s", fault->member);
	else
		snprintf(out, size, "%s", fault->host ? fault->host : "all hosts");
}

/* What is hit, as people call it. */
static void describe_place(const struct fault_config *fault, char *out, size_t size)
{
	const char *member = fault->member ? fault->member : "the array";

	if (fault->kind < FAULT_TARGET_CRASH)
		describe_network(fault, out, size);
	else if (fault->kind == FAULT_TARGET_CRASH)
		snprintf(out, size, "the target");
	else if (fault->kind == FAULT_ALUA_FLIP)
		snprintf(out, size, "%s", fault->volume ? fault->volume : "all volumes");
	else if (fault->kind == FAULT_CHAP_SECRET)
		snprintf(out, size, "user %s", fault->user);
	else if (fault_has_drive(fault->kind))
		snprintf(out, size, "%s drive %llu", member, (unsigned long long)fault->drive);
	else if (fault_is_of_workload(fault->kind))
		snprintf(out, size, "%s%s%s%s", fault->volume, fault->to ? " on " : "",
			 fault->to ? fault->to : "", fault->failover ? " (failover)" : "");
	else if (fault->kind == FAULT_LINK_DOWN)
		snprintf(out, size, "%s controller %d port %llu", member, fault->controller,
			 (unsigned long long)fault->port);
	else if (fault->kind == FAULT_CONTROLLER_FAILOVER && fault->controller >= 0)
		snprintf(out, size, "%s controller %d", member, fault->controller);
	else
		snprintf(out, size, "%s", member);
}

void timeline_describe(const struct fault_config *fault, bool begin, char *out, size_t size)
{
	char place[200];

	describe_place(fault, place, sizeof place);
	snprintf(out, size, "%s%s: %s", fault_kind_names[fault->kind],
		 fault_is_instant(fault->kind) ? ""
		 : begin		       ? " begins"
					       : " ends",
		 place);
}

static void emit(struct run_engine *engine, const struct fault_event *at, bool begin,
		 const char *failure)
{
	const struct fault_config *fault = at->fault;
	json_t *event =
	    json_pack("{s:s, s:b}", "fault", fault_kind_names[fault->kind], "begin", begin);

	if (fault->host)
		json_object_set_new(event, "host", json_string(fault->host));
	if (fault->volume)
		json_object_set_new(event, "volume", json_string(fault->volume));
	if (fault->has_path)
		json_object_set_new(event, "path", json_integer((json_int_t)fault->path));
	if (fault->portal.set)
		json_object_set_new(event, "portal", json_string(fault->portal.text));
	if (fault->member)
		json_object_set_new(event, "member", json_string(fault->member));
	if (fault_has_drive(fault->kind))
		json_object_set_new(event, "drive", json_integer((json_int_t)fault->drive));
	if (fault_has_controller(fault->kind) && fault->controller >= 0)
		json_object_set_new(event, "controller", json_integer(fault->controller));
	if (fault->kind == FAULT_LINK_DOWN)
		json_object_set_new(event, "port", json_integer((json_int_t)fault->port));
	if (begin && at->for_ns)
		json_object_set_new(event, "for_ns", json_integer((json_int_t)at->for_ns));
	if (failure)
		json_object_set_new(event, "failure", json_string(failure));
	event_log_emit(engine->events, "fault", run_at(engine), event);
}

static int apply_to_workload(struct run_engine *engine, const struct fault_config *config,
			     struct err *err)
{
	const struct workload_fault fault = {
	    .kind =
		config->kind == FAULT_COPY_RESEED ? WORKLOAD_COPY_RESEED : WORKLOAD_COPY_ACTIVATE,
	    .volume = config->volume,
	    .to = config->to,
	    .failover = config->failover,
	    .lost_files_max = (unsigned)config->lost_logs_max,
	    .bytes_per_s = config->rate_bytes,
	};
	const struct workload_ops *ops = engine->workload->ops;

	return ops->fault ? ops->fault(engine->workload, &fault, err) : -ENOTSUP;
}

static void apply(struct run_fault *fault, bool begin)
{
	struct run_engine *engine = fault->engine;
	const struct fault_config *config = fault->event->fault;
	struct err err = {0};
	char text[300];
	int r = -ENOTSUP;

	timeline_describe(config, begin, text, sizeof text);
	if (begin)
		fault->begun_ns = run_at(engine);
	if (!begin || fault_is_instant(config->kind))
		fault->ended_ns = run_at(engine);
	recording_marker(engine, "fault", config->host, NULL,
			 config->portal.set ? config->portal.text : NULL, text);
	if (fault_is_of_workload(config->kind))
		r = apply_to_workload(engine, config, &err);
	else if (engine->fault_ops.apply)
		r = engine->fault_ops.apply(engine->fault_ops.arg, config, begin, &err);
	if (r < 0 && !err.what[0])
		err_set(&err, r, "not possible here");
	emit(engine, fault->event, begin, r < 0 ? err.what : NULL);
	if (r < 0)
		recording_error(engine, "fault not carried out: %s: %s", text, err.what);
}

static void fault_due(void *arg)
{
	struct run_fault *fault = arg;
	bool begin = !fault->active;

	fault->active = begin;
	if (begin && fault->event->for_ns)
		loop_timer_set(fault->engine->loop, &fault->timer,
			       fault->timer.deadline_ns + fault->event->for_ns);
	apply(fault, begin);
}

int timeline_open(struct run_engine *engine)
{
	engine->fault_count = (unsigned)engine->lab->timeline_count;
	if (!engine->fault_count)
		return 0;
	engine->faults = calloc(engine->fault_count, sizeof *engine->faults);
	if (!engine->faults)
		return -ENOMEM;
	for (unsigned i = 0; i < engine->fault_count; i++) {
		engine->faults[i].engine = engine;
		engine->faults[i].begun_ns = engine->faults[i].ended_ns = UINT64_MAX;
		engine->faults[i].event = &engine->lab->timeline[i];
		loop_timer_init(&engine->faults[i].timer, fault_due, &engine->faults[i]);
	}
	return 0;
}

void timeline_start(struct run_engine *engine)
{
	uint64_t now_ns = loop_now_ns(engine->loop);

	for (unsigned i = 0; i < engine->fault_count; i++)
		loop_timer_set(engine->loop, &engine->faults[i].timer,
			       now_ns + engine->faults[i].event->at_ns);
}

void timeline_stop(struct run_engine *engine)
{
	for (unsigned i = 0; i < engine->fault_count; i++)
		if (!engine->faults[i].active)
			loop_timer_cancel(engine->loop, &engine->faults[i].timer);
}

void timeline_close(struct run_engine *engine)
{
	for (unsigned i = 0; engine->faults && i < engine->fault_count; i++)
		loop_timer_cancel(engine->loop, &engine->faults[i].timer);
}
