/* SPDX-License-Identifier: MIT
 *
 * Going from step to step.
 */
#include "harness/workload/raw_sweep.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

#define TICK_NS NS_PER_S

static uint64_t step_ns(const struct raw_sweep *sweep)
{
	return sweep->settle_ns + sweep->time_ns;
}

static void enter(struct raw_sweep *sweep)
{
	struct raw_step *step = &sweep->steps[sweep->at];

	step->from_ns = sweep->begun_ns + sweep->at * step_ns(sweep) + sweep->settle_ns;
	step->to_ns = step->from_ns + sweep->time_ns;
	sweep->stepped(sweep->arg, step->level);
}

static void leave(struct raw_sweep *sweep)
{
	if (sweep->late)
		sweep->steps[sweep->at].late = sweep->late(sweep->arg);
	sweep->at++;
}

static void set_timer(struct raw_sweep *sweep, uint64_t now_ns)
{
	loop_timer_set(sweep->loop, &sweep->timer,
		       MIN_OF(now_ns + TICK_NS, sweep->steps[sweep->at].to_ns));
}

static void tick(void *arg)
{
	struct raw_sweep *sweep = arg;
	uint64_t now_ns = loop_now_ns(sweep->loop);
	uint64_t total_ns = sweep->count * step_ns(sweep);

	*sweep->progress = (double)(now_ns - sweep->begun_ns) / (double)total_ns;
	if (now_ns < sweep->steps[sweep->at].to_ns) {
		set_timer(sweep, now_ns);
		return;
	}
	leave(sweep);
	if (sweep->at == sweep->count) {
		sweep->ended(sweep->arg);
		return;
	}
	enter(sweep);
	set_timer(sweep, now_ns);
}

int raw_sweep_open(struct raw_sweep *sweep, struct loop *loop, const struct raw_config *config)
{
	bool rates = config->sweep.rates.count > 0;
	const struct cfg_list *list = rates ? &config->sweep.rates : &config->sweep.depths;
	const uint64_t *levels = list->items;

	*sweep = (struct raw_sweep){
	    .loop = loop,
	    .by = rates ? "rate" : "queue-depth",
	    .settle_ns = config->sweep.settle_ns,
	    .time_ns = config->sweep.time_ns,
	};
	loop_timer_init(&sweep->timer, tick, sweep);
	if (!list->count)
		return 0;
	sweep->steps = calloc(list->count, sizeof *sweep->steps);
	if (!sweep->steps)
		return -ENOMEM;
	sweep->count = (unsigned)list->count;
	for (unsigned i = 0; i < sweep->count; i++)
		sweep->steps[i].level = (double)levels[i];
	return 0;
}

void raw_sweep_close(struct raw_sweep *sweep)
{
	if (sweep->loop)
		loop_timer_cancel(sweep->loop, &sweep->timer);
	free(sweep->steps);
	*sweep = (struct raw_sweep){0};
}

double raw_sweep_first(const struct raw_sweep *sweep)
{
	return sweep->steps[0].level;
}

double raw_sweep_most(const struct raw_sweep *sweep)
{
	double most = 0;

	for (unsigned i = 0; i < sweep->count; i++)
		most = MAX_OF(most, sweep->steps[i].level);
	return most;
}

void raw_sweep_begin(struct raw_sweep *sweep)
{
	sweep->begun = true;
	sweep->begun_ns = loop_now_ns(sweep->loop);
	sweep->at = 0;
	*sweep->progress = 0;
	enter(sweep);
	set_timer(sweep, sweep->begun_ns);
}

void raw_sweep_stop(struct raw_sweep *sweep)
{
	loop_timer_cancel(sweep->loop, &sweep->timer);
	/* What was cut short has been measured until now. */
	if (sweep->begun && sweep->at < sweep->count) {
		struct raw_step *step = &sweep->steps[sweep->at];

		step->to_ns = MIN_OF(step->to_ns, loop_now_ns(sweep->loop));
		step->to_ns = MAX_OF(step->to_ns, step->from_ns);
		leave(sweep);
	}
	sweep->at = sweep->count;
}

void raw_sweep_count(struct raw_sweep *sweep, bool write, uint64_t response_ns, uint64_t bytes,
		     int status)
{
	struct raw_step_side *side;
	struct raw_step *step;
	uint64_t now_ns;

	if (!sweep->begun || sweep->at >= sweep->count)
		return;
	step = &sweep->steps[sweep->at];
	now_ns = loop_now_ns(sweep->loop);
	if (now_ns < step->from_ns || now_ns > step->to_ns)
		return;
	side = &step->sides[write];
	if (status < 0) {
		side->errors++;
		return;
	}
	side->ios++;
	side->bytes += bytes;
	hist_record(&side->response, response_ns);
}

/* ---- the curve ---- */

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static void set_side(json_t *to, const struct raw_step_side *side, double seconds)
{
	static const struct {
		const char *key;
		double quantile;
	} quantiles[] = {{"p50_ns", 0.5},
			 {"p90_ns", 0.9},
			 {"p95_ns", 0.95},
			 {"p99_ns", 0.99},
			 {"p999_ns", 0.999}};

	json_object_set_new(to, "ios", number(side->ios));
	json_object_set_new(to, "bytes", number(side->bytes));
	json_object_set_new(to, "errors", number(side->errors));
	json_object_set_new(to, "iops", json_real(seconds > 0 ? (double)side->ios / seconds : 0));
	json_object_set_new(to, "bytes_per_s",
			    json_real(seconds > 0 ? (double)side->bytes / seconds : 0));
	if (!side->ios)
		return;
	json_object_set_new(to, "mean_ns", number((uint64_t)hist_mean_ns(&side->response)));
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++)
		json_object_set_new(
		    to, quantiles[i].key,
		    number(hist_quantile_ns(&side->response, quantiles[i].quantile)));
	json_object_set_new(to, "max_ns", number(side->response.max_ns));
}

static json_t *step_json(const struct raw_sweep *sweep, const struct raw_step *step,
			 struct raw_step_side *all)
{
	double seconds = (double)(step->to_ns - step->from_ns) / (double)NS_PER_S;
	json_t *json = json_object();

	*all = step->sides[0];
	all->ios += step->sides[1].ios;
	all->bytes += step->sides[1].bytes;
	all->errors += step->sides[1].errors;
	hist_merge(&all->response, &step->sides[1].response);
	json_object_set_new(json, "level", json_real(step->level));
	json_object_set_new(json, "from_ns", number(step->from_ns - sweep->begun_ns));
	json_object_set_new(json, "to_ns", number(step->to_ns - sweep->begun_ns));
	json_object_set_new(json, "late", number(step->late));
	set_side(json, all, seconds);
	for (unsigned i = 0; i < 2; i++) {
		json_t *side = json_object();

		if (step->sides[i].ios || step->sides[i].errors)
			set_side(side, &step->sides[i], seconds);
		json_object_set_new(json, i ? "writes" : "reads", side);
	}
	return json;
}

json_t *raw_sweep_json(const struct raw_sweep *sweep)
{
	struct raw_step_side *all;
	json_t *steps;

	if (!raw_sweep_is_on(sweep) || !(all = malloc(sizeof *all)))
		return NULL;
	steps = json_array();
	for (unsigned i = 0; i < sweep->count; i++)
		if (sweep->steps[i].to_ns > sweep->steps[i].from_ns)
			json_array_append_new(steps, step_json(sweep, &sweep->steps[i], all));
	free(all);
	return json_pack("{s:s, s:o}", "by", sweep->by, "steps", steps);
}
