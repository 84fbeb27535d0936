/* SPDX-License-Identifier: MIT
 *
 * Looking at the target's sessions, and what follows from two looks.
 */
#include "harness/run/observer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/run/engine.h"
#include "harness/workload/foreign.h"

enum {
	DEVICES_MAX = 64,
	SESSIONS_MAX = 512,
	SIGHTS_EVERY = 4,   /* looks */
	SIGHTS_TOLD = 2000, /* markers; the target keeps the latest itself */
};

/* Everybody has logged out for so long: nobody will come back. */
#define DESERTED_NS (2 * NS_PER_S)

/* I/O of a device or of one session: how much, and since when none. */
struct activity {
	uint64_t ios;	  /* since it was first seen */
	uint64_t last_ns; /* the look that saw the last ones */
};

struct seen_device {
	char initiator[224], target[224];
	struct activity io;
	uint64_t longest_ns, longest_at_ns; /* the longest pause of the window, and its begin */
};

struct seen_session {
	char isid[16], portal[64];
	unsigned device;
	json_int_t tsih;
	uint64_t counted; /* what the target told last */
	struct activity io;
	bool told_alua;
};

struct observer {
	struct loop *loop;
	struct target_process *target;
	struct run_engine *engine;
	struct loop_timer timer;
	uint64_t pause_ns, after_ios;
	unsigned looks, told;
	json_int_t last_sight;
	bool noticed;
	uint64_t window_ios;
	bool logged_out;      /* the last session that ended did so in order */
	uint64_t deserted_ns; /* since when nobody has been there; 0: somebody is */
	struct seen_device devices[DEVICES_MAX];
	unsigned device_count;
	struct seen_session sessions[SESSIONS_MAX];
	unsigned session_count;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* "iqn.2026-11.test.sanlab:lab:db1" is "db1" to a reader. */
static const char *short_name(const char *iqn)
{
	const char *colon = strrchr(iqn, ':');

	return colon ? colon + 1 : iqn;
}

static struct seen_device *find_device(struct observer *observer, const json_t *session)
{
	const char *initiator = text_of(session, "initiator"), *target = text_of(session, "target");
	struct seen_device *device;

	for (unsigned i = 0; i < observer->device_count; i++) {
		device = &observer->devices[i];
		if (!strcmp(device->initiator, initiator) && !strcmp(device->target, target))
			return device;
	}
	if (observer->device_count == DEVICES_MAX)
		return NULL;
	device = &observer->devices[observer->device_count++];
	snprintf(device->initiator, sizeof device->initiator, "%s", initiator);
	snprintf(device->target, sizeof device->target, "%s", target);
	return device;
}

/* A path of a device: the same ISID through the same portal, whichever session it is now. */
static struct seen_session *find_session(struct observer *observer, const json_t *json,
					 unsigned device)
{
	const char *isid = text_of(json, "isid"), *portal = text_of(json, "portal");
	struct seen_session *session;

	for (unsigned i = 0; i < observer->session_count; i++) {
		session = &observer->sessions[i];
		if (session->device == device && !strcmp(session->isid, isid) &&
		    !strcmp(session->portal, portal))
			return session;
	}
	if (observer->session_count == SESSIONS_MAX)
		return NULL;
	session = &observer->sessions[observer->session_count++];
	snprintf(session->isid, sizeof session->isid, "%s", isid);
	snprintf(session->portal, sizeof session->portal, "%s", portal);
	session->device = device;
	return session;
}

__attribute__((format(printf, 4, 5))) static void tell(struct observer *observer,
						       const struct seen_device *device,
						       const char *portal, const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	recording_marker(observer->engine, "seen", short_name(device->initiator),
			 short_name(device->target), portal, text);
}

/* ---- pauses ---- */

/* Nothing between FROM_NS and TO_NS, on the run's clock. */
static void note_gap(struct seen_device *device, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns > from_ns && to_ns - from_ns > device->longest_ns) {
		device->longest_ns = to_ns - from_ns;
		device->longest_at_ns = from_ns;
	}
}

/* I/O of DEVICE has ended: the pause before it counts for what of it lies in the window. */
static void end_pause(const struct observer *observer, struct seen_device *device, uint64_t now_ns)
{
	const struct run_engine *engine = observer->engine;
	uint64_t from_ns = MAX_OF(device->io.last_ns, engine->phase_start_ns);

	if (device->io.last_ns && engine->phase == RUN_WINDOW)
		note_gap(device, from_ns - engine->start_ns, now_ns - engine->start_ns);
}

/* Before the window initiators find out what they have: pauses are theirs. */
static bool pause_matters(const struct observer *observer, uint64_t length_ns)
{
	return observer->engine->phase == RUN_WINDOW && length_ns >= observer->pause_ns;
}

static void session_moved(struct observer *observer, struct seen_session *session,
			  uint64_t before_ns, uint64_t now_ns)
{
	const struct seen_device *device = &observer->devices[session->device];
	char pause[32];

	if (!before_ns) {
		tell(observer, device, session->portal, "first I/O through %s", session->portal);
	} else if (pause_matters(observer, now_ns - before_ns)) {
		text_duration(pause, sizeof pause, (double)(now_ns - before_ns));
		tell(observer, device, session->portal, "I/O through %s again after %s",
		     session->portal, pause);
	}
}

static void device_moved(struct observer *observer, struct seen_device *device, uint64_t before_ns,
			 uint64_t now_ns)
{
	char pause[32];

	if (!before_ns || !pause_matters(observer, now_ns - before_ns))
		return;
	text_duration(pause, sizeof pause, (double)(now_ns - before_ns));
	tell(observer, device, NULL, "I/O goes on after %s without any", pause);
}

static void look_at_session(struct observer *observer, const json_t *json, uint64_t now_ns)
{
	struct seen_device *device = find_device(observer, json);
	struct seen_session *session;
	uint64_t counted = (uint64_t)number_of(json, "ios"), more, before_ns;

	session =
	    device ? find_session(observer, json, (unsigned)(device - observer->devices)) : NULL;
	if (!session)
		return;
	/* A new session of the same path counts from zero. */
	if (session->tsih != number_of(json, "tsih") || counted < session->counted)
		session->counted = 0;
	session->tsih = number_of(json, "tsih");
	more = counted - session->counted;
	session->counted = counted;
	if (!more)
		return;
	before_ns = device->io.last_ns;
	end_pause(observer, device, now_ns);
	device->io.ios += more;
	if (observer->engine->phase == RUN_WINDOW)
		observer->window_ios += more;
	device->io.last_ns = now_ns;
	device_moved(observer, device, before_ns, now_ns);
	before_ns = session->io.last_ns;
	session->io.ios += more;
	session->io.last_ns = now_ns;
	session_moved(observer, session, before_ns, now_ns);
	if (!observer->noticed && device->io.ios >= observer->after_ios) {
		observer->noticed = true;
		foreign_noticed(observer->engine->workload);
	}
}

/* ---- looks ---- */

static json_t *ask(struct observer *observer, json_t *request)
{
	json_t *answer = NULL;

	/* A target that is down for a fault does not answer: that is no news. */
	if (request && target_command(observer->target, request, &answer, NULL) < 0)
		answer = NULL;
	json_decref(request);
	return answer;
}

static void look_at_sessions(struct observer *observer)
{
	json_t *answer = ask(observer, json_pack("{s:s}", "command", "sessions"));
	uint64_t now_ns = loop_now_ns(observer->loop);
	bool somebody = false;
	const json_t *session;
	size_t i;

	json_array_foreach(json_object_get(answer, "sessions"), i, session)
	{
		if (strcmp(text_of(session, "target"), "discovery") == 0)
			continue;
		look_at_session(observer, session, now_ns);
		somebody = true;
	}
	if (somebody || !answer)
		observer->deserted_ns = 0;
	else if (!observer->deserted_ns)
		observer->deserted_ns = now_ns;
	json_decref(answer);
}

/* Multipath asks for access states every few seconds: that it does is told once a path. */
static bool asks_again(struct observer *observer, const json_t *sight)
{
	struct seen_device *device;
	struct seen_session *session;
	bool again;

	if (strcmp(text_of(sight, "sight"), "alua-asked") != 0)
		return false;
	device = find_device(observer, sight);
	session =
	    device ? find_session(observer, sight, (unsigned)(device - observer->devices)) : NULL;
	again = !session || session->told_alua;
	if (session)
		session->told_alua = true;
	return again;
}

static void tell_sight(struct observer *observer, const json_t *sight, json_int_t target_now_ns)
{
	struct run_engine *engine = observer->engine;
	uint64_t age_ns = (uint64_t)(target_now_ns - number_of(sight, "first_ns"));
	const char *portal = text_of(sight, "portal");
	char text[260];

	if (strcmp(text_of(sight, "sight"), "ended") == 0)
		observer->logged_out = strcmp(text_of(sight, "text"), "logged out") == 0;
	if (observer->told >= SIGHTS_TOLD || asks_again(observer, sight))
		return;
	observer->told++;
	snprintf(text, sizeof text, "%s at %s: %s", text_of(sight, "sight"), portal,
		 text_of(sight, "text"));
	recording_marker_at(engine, run_at(engine) - MIN_OF(age_ns, run_at(engine)), "seen",
			    short_name(text_of(sight, "initiator")),
			    short_name(text_of(sight, "target")), portal, text);
}

static void look_at_sights(struct observer *observer)
{
	json_t *answer = ask(
	    observer, json_pack("{s:s, s:I}", "command", "seen", "after", observer->last_sight));
	json_int_t now_ns = number_of(answer, "now_ns");
	const json_t *sight;
	size_t i;

	if (!answer) /* it may have died, and the next one numbers from one */
		observer->last_sight = 0;
	json_array_foreach(json_object_get(answer, "seen"), i, sight)
	{
		tell_sight(observer, sight, now_ns);
		observer->last_sight = number_of(sight, "number");
	}
	json_decref(answer);
}

static void look(void *arg)
{
	struct observer *observer = arg;

	if (observer->looks++ % SIGHTS_EVERY == 0)
		look_at_sights(observer);
	look_at_sessions(observer);
	if (observer->deserted_ns && observer->logged_out &&
	    loop_now_ns(observer->loop) - observer->deserted_ns >= DESERTED_NS)
		run_engine_end(observer->engine);
	loop_timer_set(observer->loop, &observer->timer,
		       loop_now_ns(observer->loop) + OBSERVER_LOOK_NS);
}

int observer_new(struct loop *loop, struct target_process *target, struct run_engine *engine,
		 struct observer **ret_observer)
{
	const struct foreign_config *config = engine->lab->workload_config;
	struct observer *observer = calloc(1, sizeof *observer);

	if (!observer)
		return -ENOMEM;
	observer->loop = loop;
	observer->target = target;
	observer->engine = engine;
	observer->pause_ns = config->pause_ns;
	observer->after_ios = config->after_ios;
	loop_timer_init(&observer->timer, look, observer);
	loop_timer_set(loop, &observer->timer, loop_now_ns(loop));
	*ret_observer = observer;
	return 0;
}

struct observer *observer_free(struct observer *observer)
{
	if (observer)
		loop_timer_cancel(observer->loop, &observer->timer);
	free(observer);
	return NULL;
}

/* ---- the record ---- */

static json_t *paths_json(const struct observer *observer, unsigned device)
{
	json_t *paths = json_array();

	for (unsigned i = 0; i < observer->session_count; i++) {
		const struct seen_session *session = &observer->sessions[i];

		if (session->device == device)
			json_array_append_new(
			    paths, json_pack("{s:s, s:s, s:I}", "portal", session->portal, "isid",
					     session->isid, "ios", (json_int_t)session->io.ios));
	}
	return paths;
}

void observer_report(struct observer *observer, struct record *record)
{
	uint64_t end_ns = observer->deserted_ns && observer->logged_out
			      ? observer->deserted_ns - observer->engine->start_ns
			      : record->window_end_ns;
	double window_s = (double)(record->window_end_ns - record->window_start_ns) / 1e9;
	json_t *devices = json_array(), *sights;

	loop_timer_cancel(observer->loop, &observer->timer);
	for (unsigned i = 0; i < observer->device_count; i++) {
		struct seen_device *device = &observer->devices[i];
		uint64_t last_ns = device->io.last_ns - observer->engine->start_ns;

		if (device->io.last_ns)
			note_gap(device, MAX_OF(last_ns, record->window_start_ns), end_ns);
		json_array_append_new(
		    devices,
		    json_pack("{s:s, s:s, s:I, s:I, s:I, s:o}", "initiator", device->initiator,
			      "target", device->target, "ios", (json_int_t)device->io.ios,
			      "max_gap_ns", (json_int_t)device->longest_ns, "max_gap_at_ns",
			      (json_int_t)device->longest_at_ns, "paths", paths_json(observer, i)));
	}
	if (window_s > 0)
		record->total_iops = (double)observer->window_ios / window_s;
	sights = ask(observer, json_pack("{s:s}", "command", "seen"));
	record->observed =
	    json_pack("{s:o, s:O?}", "devices", devices, "seen", json_object_get(sights, "seen"));
	json_decref(sights);
}
