/* SPDX-License-Identifier: MIT
 *
 * The failover record: MPIO's milestones of each loss, and the fault that was behind it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/run/engine.h"

/* How long after a fault began answers still arrive; after it ended, what it did. */
enum { ON_ITS_WAY_NS = 100 * NS_PER_MS, EFFECT_NS = NS_PER_S };

static const enum record_instant instants[MPIO_MILESTONES] = {
    [MPIO_LOST] = RECORD_LOST,
    [MPIO_FIRST_REISSUE] = RECORD_FIRST_REISSUE,
    [MPIO_FIRST_SUCCESS] = RECORD_FIRST_SUCCESS,
    [MPIO_DRAINED] = RECORD_DRAINED,
    [MPIO_FENCED] = RECORD_FENCED,
    [MPIO_UP_AGAIN] = RECORD_UP_AGAIN,
    [MPIO_FIRST_IO] = RECORD_FIRST_IO,
};

static char *copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static bool same(const char *a, const char *b)
{
	return !a || !b || strcmp(a, b) == 0;
}

/* Long over: the path has been well since FAULT ended.  (Its last effects take a moment to arrive.)
 */
static bool is_over(const struct run_fault *fault, const struct record_failover *failover)
{
	return fault->ended_ns != UINT64_MAX &&
	       failover->at_ns[RECORD_ALIVE] > fault->ended_ns + EFFECT_NS;
}

static bool is_silence(const char *by)
{
	return by && (strcmp(by, path_detect_names[PATH_DETECT_KEEPALIVE]) == 0 ||
		      strcmp(by, path_detect_names[PATH_DETECT_TCP_TIMEOUT]) == 0 ||
		      strcmp(by, path_detect_names[PATH_DETECT_COMMAND]) == 0);
}

/* The later of two faults, but for silence: that began with the first since the last sign of life.
 */
static bool is_likelier(const struct run_fault *fault, const struct run_fault *than,
			const struct record_failover *failover)
{
	uint64_t alive_ns = failover->at_ns[RECORD_ALIVE];

	if (!is_silence(failover->by) || than->begun_ns + ON_ITS_WAY_NS < alive_ns)
		return fault->begun_ns >= than->begun_ns;
	return fault->begun_ns + ON_ITS_WAY_NS >= alive_ns && fault->begun_ns < than->begun_ns;
}

/* The likeliest fault of those that could have taken the path by then. */
static const struct run_fault *find_fault(const struct run_engine *engine,
					  const struct record_failover *failover)
{
	const struct run_fault *found = NULL;

	for (unsigned i = 0; i < engine->fault_count; i++) {
		const struct run_fault *fault = &engine->faults[i];

		if (fault->begun_ns <= failover->at_ns[RECORD_LOST] && !is_over(fault, failover) &&
		    (!found || is_likelier(fault, found, failover)) &&
		    lab_fault_hits(engine->lab, fault->event->fault, failover->host,
				   failover->volume, failover->path, failover->portal))
			found = fault;
	}
	return found;
}

static uint64_t since_start(const struct run_engine *engine, uint64_t at_ns)
{
	return at_ns - MIN_OF(at_ns, engine->start_ns);
}

/* A fault that lasts takes a path that has come back meanwhile again: from then. */
static uint64_t began_ns(const struct record *record, const struct record_failover *failover,
			 const struct run_fault *fault)
{
	for (unsigned i = record->failover_count - 1; i-- > 0;) {
		const struct record_failover *before = &record->failovers[i];

		if (before->path == failover->path && same(before->host, failover->host) &&
		    same(before->volume, failover->volume))
			return MAX_OF(before->at_ns[RECORD_UP_AGAIN], fault->begun_ns);
	}
	return fault->begun_ns;
}

static void begin(struct run_engine *engine, unsigned path, const struct mpio_track *track)
{
	struct record *record = engine->record;
	const struct record_path *lost = &record->paths[path];
	struct record_failover *failover = record_add_failover(record);
	const struct run_fault *fault;
	char text[300];

	if (!failover)
		return; /* the record's bound: the event log still has it */
	failover->host = copy(lost->host);
	failover->volume = copy(lost->volume);
	failover->portal = copy(lost->portal);
	failover->path = track->path;
	failover->loss = track->loss;
	failover->by = copy(path_detect_names[track->by]);
	failover->reissued = track->ios;
	failover->at_ns[RECORD_LOST] = since_start(engine, track->at_ns);
	failover->at_ns[RECORD_ALIVE] = since_start(engine, track->alive_ns);
	fault = find_fault(engine, failover);
	if (!fault)
		return;
	failover->at_ns[RECORD_FAULT] = began_ns(record, failover, fault);
	timeline_describe(fault->event->fault, true, text, sizeof text);
	failover->fault = copy(text);
}

static struct record_failover *find(struct record *record, const struct record_path *path,
				    const struct mpio_track *track)
{
	for (unsigned i = record->failover_count; i-- > 0;) {
		struct record_failover *failover = &record->failovers[i];

		if (failover->path == track->path && failover->loss == track->loss &&
		    same(failover->host, path->host) && same(failover->volume, path->volume))
			return failover;
	}
	return NULL;
}

static void reach(struct run_engine *engine, unsigned first_path, const struct mpio_track *track)
{
	struct record *record = engine->record;
	struct record_failover *failover =
	    find(record, &record->paths[first_path + track->path], track);

	if (!failover)
		return;
	failover->at_ns[instants[track->milestone]] = since_start(engine, track->at_ns);
	if (track->milestone == MPIO_FIRST_SUCCESS)
		failover->other = copy(record->paths[first_path + track->other].portal);
	else if (track->milestone == MPIO_DRAINED)
		failover->failed = track->ios;
	else if (track->milestone == MPIO_FENCED)
		failover->proof = copy(mpio_proof_names[track->proof]);
}

void failover_track(void *arg, const struct mpio_track *track)
{
	const struct run_device_link *link = arg;
	struct run_engine *engine = link->engine;
	const struct record_path *path = &engine->record->paths[link->first_path + track->path];
	json_t *event = json_pack("{s:s, s:s, s:s, s:i, s:i, s:s, s:i}", "host", path->host,
				  "volume", path->volume, "portal", path->portal, "path",
				  (int)track->path, "loss", (int)track->loss, "milestone",
				  mpio_milestone_names[track->milestone], "ios", (int)track->ios);

	if (track->milestone == MPIO_LOST)
		begin(engine, link->first_path + track->path, track);
	else
		reach(engine, link->first_path, track);
	event_log_emit(engine->events, "failover", since_start(engine, track->at_ns), event);
}

void failover_finish(struct run_engine *engine)
{
	struct record *record = engine->record;

	for (unsigned i = 0; i < record->failover_count; i++) {
		struct record_failover *failover = &record->failovers[i];
		const struct run_fault *fault = find_fault(engine, failover);

		if (fault && fault->ended_ns != UINT64_MAX)
			failover->fault_end_ns = fault->ended_ns;
	}
}
