/* SPDX-License-Identifier: MIT
 *
 * The state machine of automatic tuning; its rules stand in the header.
 */
#include "harness/workload/ese/ese_tuning.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/text.h"

const char *const ese_tuning_verdict_names[] = {
    [ESE_TUNING_RUNNING] = "running",		[ESE_TUNING_ACCEPTED] = "accepted",
    [ESE_TUNING_TOO_SLOW] = "latency too high", [ESE_TUNING_TOO_FEW] = "too few I/Os",
    [ESE_TUNING_UNSTABLE] = "slope unstable",	[ESE_TUNING_OUT_OF_TIME] = "out of time",
};

struct ese_tuning {
	struct ese_tuning_setup setup;
	uint64_t begin_ns;
	struct ese_tuning_cycle cycles[ESE_TUNING_CYCLES_MAX];
	unsigned cycle_count;
	unsigned samples; /* of this state */
	bool stable, over;
	double *history; /* read latencies of the last `transient` samples, database by database */
	struct ese_tuning_sample *sums; /* of the stable state, one a database */
	uint64_t transactions;
	unsigned most_too_few, fewest_too_many; /* sessions; 0: none yet */
	char why[256];
};

static struct ese_tuning_cycle *current(struct ese_tuning *tuning)
{
	return &tuning->cycles[tuning->cycle_count - 1];
}

static int begin_cycle(struct ese_tuning *tuning, uint64_t now_ns, unsigned sessions)
{
	struct ese_tuning_cycle *cycle = &tuning->cycles[tuning->cycle_count];
	unsigned databases = tuning->setup.databases;

	*cycle = (struct ese_tuning_cycle){.sessions = sessions, .begin_ns = now_ns};
	cycle->slope_ns = calloc((size_t)databases * 4 + 1, sizeof *cycle->slope_ns);
	if (!cycle->slope_ns)
		return -ENOMEM;
	cycle->read_ns = cycle->slope_ns + databases;
	cycle->log_write_ns = cycle->read_ns + databases;
	cycle->log_read_ns = cycle->log_write_ns + databases;
	tuning->cycle_count++;
	tuning->samples = 0;
	tuning->stable = false;
	return 0;
}

int ese_tuning_new(const struct ese_tuning_setup *setup, uint64_t now_ns,
		   struct ese_tuning **ret_tuning)
{
	struct ese_tuning *tuning;

	if (setup->databases == 0 || setup->databases > ESE_TUNING_DATABASES_MAX ||
	    setup->start == 0 || setup->start > setup->sessions_max || setup->transient < 2 ||
	    setup->stable < 1 || !(setup->target_iops > 0))
		return -EINVAL;
	tuning = calloc(1, sizeof *tuning);
	if (!tuning)
		return -ENOMEM;
	tuning->setup = *setup;
	tuning->begin_ns = now_ns;
	tuning->history =
	    calloc((size_t)setup->databases * setup->transient, sizeof *tuning->history);
	tuning->sums = calloc(setup->databases, sizeof *tuning->sums);
	if (!tuning->history || !tuning->sums || begin_cycle(tuning, now_ns, setup->start) < 0) {
		ese_tuning_free(tuning);
		return -ENOMEM;
	}
	*ret_tuning = tuning;
	return 0;
}

struct ese_tuning *ese_tuning_free(struct ese_tuning *tuning)
{
	if (!tuning)
		return NULL;
	for (unsigned i = 0; i < tuning->cycle_count; i++)
		free(tuning->cycles[i].slope_ns);
	free(tuning->history);
	free(tuning->sums);
	free(tuning);
	return NULL;
}

static double mean(uint64_t sum_ns, uint64_t count)
{
	return count ? (double)sum_ns / (double)count : 0;
}

__attribute__((format(printf, 3, 4))) static enum ese_tuning_step fail(
    struct ese_tuning *tuning, enum ese_tuning_verdict verdict, const char *format, ...)
{
	va_list args;

	current(tuning)->verdict = verdict;
	tuning->over = true;
	va_start(args, format);
	vsnprintf(tuning->why, sizeof tuning->why, format, args);
	va_end(args);
	return ESE_TUNING_FAILED;
}

/* ---- transient state ---- */

double ese_tuning_slope(const double *values, unsigned count)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0;

	for (unsigned i = 0; i < count; i++) {
		if (isnan(values[i]))
			continue;
		n += 1;
		x += i;
		y += values[i];
		xx += (double)i * i;
		xy += i * values[i];
	}
	return n < 2 ? 0 : (n * xy - x * y) / (n * xx - x * x);
}

static enum ese_tuning_step settle(struct ese_tuning *tuning, uint64_t now_ns,
				   const struct ese_tuning_sample *samples)
{
	const struct ese_tuning_setup *setup = &tuning->setup;
	struct ese_tuning_cycle *cycle = current(tuning);
	double worst_ns = 0;

	for (unsigned d = 0; d < setup->databases; d++) {
		double *history = tuning->history + (size_t)d * setup->transient;

		for (unsigned i = 1; i < setup->transient; i++)
			history[i - 1] = history[i];
		history[setup->transient - 1] =
		    samples[d].reads ? mean(samples[d].read_sum_ns, samples[d].reads) : NAN;
		cycle->slope_ns[d] = ese_tuning_slope(history, setup->transient);
		worst_ns = MAX_OF(worst_ns, fabs(cycle->slope_ns[d]));
	}
	if (++tuning->samples < setup->transient)
		return ESE_TUNING_GO_ON;
	if (worst_ns < setup->slope_ns) {
		tuning->stable = true;
		tuning->samples = 0;
		tuning->transactions = 0;
		for (unsigned d = 0; d < setup->databases; d++)
			tuning->sums[d] = (struct ese_tuning_sample){0};
		cycle->stable_ns = now_ns;
		return ESE_TUNING_STABLE;
	}
	if (now_ns - cycle->begin_ns < setup->cycle_limit_ns)
		return ESE_TUNING_GO_ON;
	char limit[32];

	cycle->end_ns = now_ns;
	text_duration(limit, sizeof limit, (double)setup->cycle_limit_ns);
	return fail(tuning, ESE_TUNING_UNSTABLE,
		    "unstable latency slope: with %u sessions the read latency still moves by "
		    "%.1f ms a sample after %s (limit %.1f); give `sessions` to go without tuning",
		    cycle->sessions, worst_ns / 1e6, limit, setup->slope_ns / 1e6);
}

/* ---- the judgement ---- */

/* The rule's step, doubled for each further one in the same direction after two of them: near
 * saturation a step brings less than the rule expects.  Then the hard bounds. */
static unsigned next_of(const struct ese_tuning *tuning, enum ese_tuning_verdict verdict,
			double sessions)
{
	unsigned last = tuning->cycle_count - 1, alike = 0;
	double now = tuning->cycles[last].sessions, step, most;

	while (alike < last && tuning->cycles[last - 1 - alike].verdict == verdict)
		alike++;
	step = ldexp(sessions - now, alike > 1 ? (int)alike - 1 : 0);
	most = MIN_OF((double)tuning->setup.sessions_max, now * ESE_TUNING_STEP_MAX);
	return (unsigned)MAX_OF(1.0, MIN_OF(now + step, most));
}

/* SESSIONS as the rule wants them, kept between what is known to be too few and too many; 0:
 * nothing is left in between. */
static unsigned within_bounds(const struct ese_tuning *tuning, unsigned sessions)
{
	unsigned low = tuning->most_too_few, high = tuning->fewest_too_many;

	if (high && low + 1 >= high)
		return 0;
	if (sessions > low && (!high || sessions < high))
		return sessions;
	return high ? low + (high - low) / 2 : low + 1;
}

/* Whether any of the averages is above the limit. */
static bool any_above(const double *values, unsigned count, double limit_ns, double *ret_worst_ns)
{
	*ret_worst_ns = 0;
	for (unsigned d = 0; d < count; d++)
		*ret_worst_ns = MAX_OF(*ret_worst_ns, values[d]);
	return *ret_worst_ns > limit_ns;
}

static void sum_up(struct ese_tuning *tuning, uint64_t now_ns)
{
	struct ese_tuning_cycle *cycle = current(tuning);
	double seconds = (double)(now_ns - cycle->stable_ns) / (double)NS_PER_S;
	uint64_t ios = 0;

	cycle->end_ns = now_ns;
	for (unsigned d = 0; d < tuning->setup.databases; d++) {
		const struct ese_tuning_sample *sum = &tuning->sums[d];

		ios += sum->reads + sum->writes;
		cycle->read_ns[d] = mean(sum->read_sum_ns, sum->reads);
		cycle->log_write_ns[d] = mean(sum->log_sum_ns, sum->log_writes);
		cycle->log_read_ns[d] = mean(sum->log_read_sum_ns, sum->log_reads);
	}
	cycle->iops = seconds > 0 ? (double)ios / seconds : 0;
	cycle->batch_per_s = seconds > 0 ? (double)tuning->transactions / seconds : 0;
}

static enum ese_tuning_step nothing_fits(struct ese_tuning *tuning, enum ese_tuning_verdict verdict)
{
	struct ese_tuning_cycle *cycle = current(tuning);

	if (verdict == ESE_TUNING_TOO_SLOW && cycle->sessions == 1)
		return fail(tuning, verdict,
			    "one session alone makes %.0f IOPS at a latency above the limit "
			    "(target %.0f); `loop: open` holds the target's rate",
			    cycle->iops, tuning->setup.target_iops);
	if (verdict == ESE_TUNING_TOO_FEW && cycle->sessions >= tuning->setup.sessions_max)
		return fail(tuning, verdict,
			    "%u sessions, the most there may be, make %.0f IOPS (target %.0f)",
			    cycle->sessions, cycle->iops, tuning->setup.target_iops);
	return fail(tuning, verdict,
		    "%u sessions miss the target of %.0f IOPS, and %u exceed the latency limit: no "
		    "number fits; `loop: open` holds the target's rate exactly",
		    tuning->most_too_few, tuning->setup.target_iops, tuning->fewest_too_many);
}

static enum ese_tuning_step next_cycle(struct ese_tuning *tuning, uint64_t now_ns,
				       enum ese_tuning_verdict verdict, unsigned sessions)
{
	struct ese_tuning_cycle *cycle = current(tuning);

	if (!sessions || sessions > tuning->setup.sessions_max)
		return nothing_fits(tuning, verdict);
	if (tuning->cycle_count == ESE_TUNING_CYCLES_MAX)
		return fail(tuning, verdict, "%u cycles have not found a number of sessions",
			    tuning->cycle_count);
	cycle->verdict = verdict;
	cycle->next_sessions = sessions;
	if (begin_cycle(tuning, now_ns, sessions) < 0)
		return fail(tuning, verdict, "out of memory");
	return ESE_TUNING_NEXT;
}

static enum ese_tuning_step judge(struct ese_tuning *tuning, uint64_t now_ns)
{
	const struct ese_tuning_setup *setup = &tuning->setup;
	struct ese_tuning_cycle *cycle = current(tuning);
	double read_ns, log_ns, wanted;
	bool slow;

	sum_up(tuning, now_ns);
	if (!(cycle->iops > 0))
		return fail(tuning, ESE_TUNING_TOO_FEW, "%u sessions have made no I/O at all",
			    cycle->sessions);
	wanted = (double)cycle->sessions * setup->target_iops / cycle->iops;
	slow = any_above(cycle->read_ns, setup->databases, setup->read_limit_ns, &read_ns);
	if (any_above(cycle->log_write_ns, setup->databases, setup->log_limit_ns, &log_ns))
		slow = true;
	if (slow && cycle->iops < setup->target_iops)
		return fail(tuning, ESE_TUNING_TOO_SLOW,
			    "the storage does not reach the target within the latency limits: %u "
			    "sessions make %.0f of %.0f IOPS, reads take %.1f ms (limit %.1f), log "
			    "writes %.1f ms (limit %.1f)",
			    cycle->sessions, cycle->iops, setup->target_iops, read_ns / 1e6,
			    setup->read_limit_ns / 1e6, log_ns / 1e6, setup->log_limit_ns / 1e6);
	if (slow) {
		tuning->fewest_too_many = cycle->sessions;
		return next_cycle(
		    tuning, now_ns, ESE_TUNING_TOO_SLOW,
		    within_bounds(tuning, next_of(tuning, ESE_TUNING_TOO_SLOW, floor(wanted))));
	}
	if (cycle->iops < setup->target_iops) {
		tuning->most_too_few = cycle->sessions;
		return next_cycle(
		    tuning, now_ns, ESE_TUNING_TOO_FEW,
		    within_bounds(tuning, next_of(tuning, ESE_TUNING_TOO_FEW, ceil(wanted))));
	}
	cycle->verdict = ESE_TUNING_ACCEPTED;
	tuning->over = true;
	return ESE_TUNING_SUCCEEDED;
}

static enum ese_tuning_step add_up(struct ese_tuning *tuning, uint64_t now_ns,
				   const struct ese_tuning_sample *samples, uint64_t transactions)
{
	for (unsigned d = 0; d < tuning->setup.databases; d++) {
		struct ese_tuning_sample *sum = &tuning->sums[d];

		sum->reads += samples[d].reads;
		sum->read_sum_ns += samples[d].read_sum_ns;
		sum->writes += samples[d].writes;
		sum->log_writes += samples[d].log_writes;
		sum->log_sum_ns += samples[d].log_sum_ns;
		sum->log_reads += samples[d].log_reads;
		sum->log_read_sum_ns += samples[d].log_read_sum_ns;
	}
	tuning->transactions += transactions;
	if (++tuning->samples < tuning->setup.stable)
		return ESE_TUNING_GO_ON;
	return judge(tuning, now_ns);
}

enum ese_tuning_step ese_tuning_sample(struct ese_tuning *tuning, uint64_t now_ns,
				       const struct ese_tuning_sample *samples,
				       uint64_t transactions)
{
	enum ese_tuning_step step;
	char limit[32];

	if (tuning->over)
		return tuning->why[0] ? ESE_TUNING_FAILED : ESE_TUNING_SUCCEEDED;
	step = tuning->stable ? add_up(tuning, now_ns, samples, transactions)
			      : settle(tuning, now_ns, samples);
	if (tuning->over || now_ns - tuning->begin_ns < tuning->setup.limit_ns)
		return step;
	current(tuning)->end_ns = now_ns;
	text_duration(limit, sizeof limit, (double)tuning->setup.limit_ns);
	return fail(tuning, ESE_TUNING_OUT_OF_TIME,
		    "no number of sessions has met target and latency limits within %s; give "
		    "`sessions`, or tuning.start close to what is needed",
		    limit);
}

/* ---- what came of it ---- */

unsigned ese_tuning_sessions(const struct ese_tuning *tuning)
{
	return tuning->cycles[tuning->cycle_count - 1].sessions;
}

unsigned ese_tuning_cycle_count(const struct ese_tuning *tuning)
{
	return tuning->cycle_count;
}

const struct ese_tuning_cycle *ese_tuning_cycle(const struct ese_tuning *tuning, unsigned index)
{
	return index < tuning->cycle_count ? &tuning->cycles[index] : NULL;
}

const char *ese_tuning_why(const struct ese_tuning *tuning)
{
	return tuning->why;
}

void ese_tuning_describe(const struct ese_tuning *tuning, char *out, unsigned size)
{
	if (tuning->stable)
		snprintf(out, size, "tuning: %u sessions, sample %u of %u",
			 ese_tuning_sessions(tuning), tuning->samples, tuning->setup.stable);
	else
		snprintf(out, size, "tuning: %u sessions settle", ese_tuning_sessions(tuning));
}
