/* SPDX-License-Identifier: MIT
 *
 * When an I/O of the trace is due.  Pure but for the clock; see replay.h for the rules.
 *
 * The replay's axis: nanoseconds since the trace's first I/O, times `scale-time`, passes one after
 * the other.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/workload/replay_impl.h"

/* Times that no trace has do not wrap around. */
#define LONGEST_NS (UINT64_C(1) << 62)

int replay_pace_init(struct replay *replay)
{
	struct replay_pace *pace = &replay->pace;

	if (replay->config.mode != REPLAY_DEPENDENCY)
		return 0;
	pace->open_size = 2 * replay->depth;
	pace->open = calloc(pace->open_size, sizeof *pace->open);
	return pace->open ? 0 : -ENOMEM;
}

void replay_pace_done(struct replay *replay)
{
	free(replay->pace.open);
}

static uint64_t scaled(const struct replay *replay, uint64_t ns)
{
	double value = (double)ns * replay->config.scale_time;

	if (replay->config.scale_time == 1)
		return MIN_OF(ns, LONGEST_NS);
	return value < (double)LONGEST_NS ? (uint64_t)value : LONGEST_NS;
}

/* On the replay's axis. */
static uint64_t axis(const struct replay *replay, uint64_t trace_ns)
{
	const struct replay_pace *pace = &replay->pace;

	return pace->shift_ns +
	       scaled(replay, trace_ns > pace->base_ns ? trace_ns - pace->base_ns : 0);
}

/* Of those that had ended by AT_NS: false when one is still on its way; the others are done with.
 * What comes next thinks from when the last of them has ended, here and in the trace. */
static bool pass_ended(struct replay_pace *pace, uint64_t at_ns)
{
	for (unsigned i = 0; i < pace->open_size; i++) {
		struct replay_open *open = &pace->open[i];

		if (!open->used || open->trace_end_ns > at_ns)
			continue;
		if (!open->ended)
			return false;
		open->used = false;
		pace->cause_trace_ns = MAX_OF(pace->cause_trace_ns, open->trace_end_ns);
		pace->cause_ns = MAX_OF(pace->cause_ns, open->end_ns);
		pace->has_cause = true;
	}
	return true;
}

bool replay_pace_due(struct replay *replay, const struct trace_record *record, uint64_t *ret_due_ns)
{
	struct replay_pace *pace = &replay->pace;
	uint64_t at_ns = axis(replay, record->begin_ns), due_ns;

	switch ((enum replay_mode)replay->config.mode) {
	case REPLAY_AFAP:
		due_ns = 0; /* the moment it can be sent */
		break;
	case REPLAY_TIMED:
		due_ns = pace->start_ns + at_ns;
		break;
	default:
		if (!pass_ended(pace, at_ns))
			return false;
		due_ns = pace->has_cause ? pace->cause_ns + (at_ns - pace->cause_trace_ns)
					 : pace->start_ns + at_ns;
		/* The order of the trace stays. */
		due_ns = MAX_OF(due_ns, pace->last_due_ns);
		break;
	}
	pace->last_ns = at_ns;
	pace->last_due_ns = due_ns;
	*ret_due_ns = due_ns;
	return true;
}

/* When all are taken the one that had ended first is done with: it can be waited for no more. */
static struct replay_open *find_open(struct replay_pace *pace)
{
	struct replay_open *oldest = NULL;

	for (unsigned i = 0; i < pace->open_size; i++) {
		struct replay_open *open = &pace->open[i];

		if (!open->used)
			return open;
		if (open->ended && (!oldest || open->trace_end_ns < oldest->trace_end_ns))
			oldest = open;
	}
	assert(oldest); /* fewer are in flight than there are */
	return oldest;
}

void replay_pace_sent(struct replay *replay, struct replay_io *rio,
		      const struct trace_record *record)
{
	struct replay_pace *pace = &replay->pace;
	struct replay_open *open;

	rio->open = UINT_MAX;
	if (!pace->open || record->end_ns == TRACE_NEVER)
		return;
	open = find_open(pace);
	*open = (struct replay_open){.trace_end_ns = axis(replay, record->end_ns), .used = true};
	rio->open = (unsigned)(open - pace->open);
}

void replay_pace_ended(struct replay *replay, struct replay_io *rio)
{
	if (rio->open == UINT_MAX)
		return;
	replay->pace.open[rio->open].ended = true;
	replay->pace.open[rio->open].end_ns = loop_now_ns(replay->env.loop);
}

void replay_pace_again(struct replay *replay)
{
	struct replay_pace *pace = &replay->pace;
	uint64_t length_ns = pace->last_ns - pace->shift_ns;
	uint64_t gap_ns = replay->pass_records > 1 ? length_ns / (replay->pass_records - 1) : 0;

	/* One mean gap between the last I/O and the first of the next pass; a trace of one instant
	 * has none, and would come for ever at that instant. */
	pace->shift_ns =
	    MIN_OF(pace->last_ns, LONGEST_NS) + (length_ns ? MAX_OF(gap_ns, 1U) : NS_PER_MS);
}
