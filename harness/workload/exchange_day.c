/* SPDX-License-Identifier: MIT
 *
 * The day is a polygon through 24 points.  It is taken in steps of five minutes of its own, in each
 * of which the rate is even: exact enough for a day, and sums are finite.
 */
#include "harness/workload/exchange_day.h"

#include <math.h>
#include <string.h>

#include "base/bytes.h"

enum { STEPS = EXCHANGE_DAY_HOURS * 12 };
/* A rate of nothing would never come to an end. */
#define SHARE_MIN 0.005

/* Assumed: no public document has the curve of LoadGen's day, only that it lasts eight hours. */
static const double office[EXCHANGE_DAY_HOURS] = {
    .03, .02, .02, .02, .03, .05, .15, .45, .80, 1.0, .95, .85,
    .60, .75, .90, .95, .85, .60, .30, .15, .10, .08, .06, .04,
};

static const char *const shape_names[] = {"flat", "office", "hours", NULL};
static const char *const client_names[] = {"cached", "online", NULL};

#define AT(member) offsetof(struct exchange_day_config, member)
static const struct cfg_field fields[] = {
    {.key = "shape",
     .type = CFG_ENUM,
     .offset = AT(shape),
     .preset = "flat",
     .names = shape_names,
     .help = "flat: always the full rate; office: a working day (an assumed curve), the full rate "
	     "from 9 to 10 h; hours: as given"},
    {.key = "client",
     .type = CFG_ENUM,
     .offset = AT(client),
     .preset = "cached",
     .names = client_names,
     .help = "Outlook's mode: online costs half as much I/O again (unverified)"},
    {.key = "from",
     .type = CFG_DURATION,
     .offset = AT(from_ns),
     .preset = "0s",
     .max = 86400e9,
     .help = "time of day at which the load begins: 8h"},
    {.key = "length",
     .type = CFG_DURATION,
     .offset = AT(length_ns),
     .preset = "24h",
     .min = 24e9,
     .max = 30 * 86400e9,
     .help = "how long the day lasts in the run: the same curve, faster"},
    {.key = "hours",
     .type = CFG_STRINGS,
     .offset = AT(hours),
     .help = "shape: hours: 24 percentages of the full rate, from midnight on"},
};
#undef AT

const struct cfg_schema exchange_day_schema = {
    .name = "workload.day",
    .size = sizeof(struct exchange_day_config),
    .fields = fields,
    .field_count = ARRAY_SIZE(fields),
};

static const char *hour_text(const struct exchange_day_config *config, size_t hour)
{
	return ((const char *const *)config->hours.items)[hour];
}

void exchange_day_check(struct cfg *cfg, const struct exchange_day_config *config, bool open_loop)
{
	double largest = 0;

	if (config->shape != EXCHANGE_DAY_FLAT && !open_loop)
		cfg_error_at(cfg, &config->shape,
			     "sessions that wait for their I/O have no course of a day: set 'loop: "
			     "open'");
	if ((config->shape == EXCHANGE_DAY_OWN) != (config->hours.count > 0)) {
		cfg_error_at(cfg, &config->shape, "'hours' and 'shape: hours' belong together");
		return;
	}
	if (config->shape != EXCHANGE_DAY_OWN)
		return;
	if (config->hours.count != EXCHANGE_DAY_HOURS) {
		cfg_error_at(cfg, &config->hours, "'hours' has %zu percentages, not %d",
			     config->hours.count, EXCHANGE_DAY_HOURS);
		return;
	}
	for (size_t i = 0; i < config->hours.count; i++) {
		double share = -1;
		char why[160];

		if (cfg_parse_scalar(CFG_PERCENT, hour_text(config, i), &share, why, sizeof why) ||
		    share < 0 || share > 1) {
			cfg_error_at(cfg, &config->hours,
				     "hour %zu: '%s' is no percentage from 0%% to 100%%", i,
				     hour_text(config, i));
			return;
		}
		largest = fmax(largest, share);
	}
	if (!(largest > 0))
		cfg_error_at(cfg, &config->hours, "a day without any load");
}

void exchange_day_init(struct exchange_day *day, const struct exchange_day_config *config)
{
	*day = (struct exchange_day){
	    .flat = config->shape == EXCHANGE_DAY_FLAT || !config->length_ns,
	    .length_ns = config->length_ns,
	};
	if (day->flat)
		return;
	/* The time of day, on the day's own scale. */
	day->from_ns = (uint64_t)((double)config->from_ns / 86400e9 * (double)config->length_ns);
	memcpy(day->share, office, sizeof day->share);
	for (size_t i = 0; config->shape == EXCHANGE_DAY_OWN && i < EXCHANGE_DAY_HOURS; i++) {
		char why[160];

		cfg_parse_scalar(CFG_PERCENT, hour_text(config, i), &day->share[i], why,
				 sizeof why);
	}
}

double exchange_client_factor(const struct exchange_day_config *config)
{
	return config->client == EXCHANGE_ONLINE ? 1.5 : 1;
}

/* Step STEP of the day has the rate of its middle. */
static double share_of_step(const struct exchange_day *day, uint64_t step)
{
	double hour = ((double)(step % STEPS) + 0.5) * EXCHANGE_DAY_HOURS / STEPS;
	unsigned before = (unsigned)hour % EXCHANGE_DAY_HOURS;
	double along = hour - floor(hour);

	return fmax(SHARE_MIN, day->share[before] * (1 - along) +
				   day->share[(before + 1) % EXCHANGE_DAY_HOURS] * along);
}

static uint64_t step_ns(const struct exchange_day *day)
{
	return day->length_ns / STEPS;
}

double exchange_day_at(const struct exchange_day *day, uint64_t at_ns)
{
	return day->flat ? 1 : share_of_step(day, (day->from_ns + at_ns) / step_ns(day));
}

double exchange_day_mean(const struct exchange_day *day, uint64_t from_ns, uint64_t to_ns)
{
	double sum = 0;

	if (day->flat || to_ns <= from_ns)
		return exchange_day_at(day, from_ns);
	for (uint64_t at = day->from_ns + from_ns, end = day->from_ns + to_ns; at < end;) {
		uint64_t step = at / step_ns(day), next = MIN_OF((step + 1) * step_ns(day), end);

		sum += (double)(next - at) * share_of_step(day, step);
		at = next;
	}
	return sum / (double)(to_ns - from_ns);
}

uint64_t exchange_day_after(const struct exchange_day *day, uint64_t from_ns, uint64_t work_ns)
{
	uint64_t at = day->from_ns + from_ns;
	double work = (double)work_ns;

	if (day->flat)
		return from_ns + work_ns;
	for (;;) {
		uint64_t step = at / step_ns(day), next = (step + 1) * step_ns(day);
		double share = share_of_step(day, step), done = (double)(next - at) * share;

		if (done >= work)
			return at - day->from_ns + (uint64_t)(work / share);
		work -= done;
		at = next;
	}
}
