/* SPDX-License-Identifier: MIT
 *
 * Samples of /proc/stat and /proc/meminfo; what cannot be read is left out.
 */
#include "harness/workload/ese/ese_host_counters.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"

void ese_counter_add(struct ese_counter *counter, double value)
{
	if (counter->samples == 0 || value < counter->min)
		counter->min = value;
	if (counter->samples == 0 || value > counter->max)
		counter->max = value;
	counter->sum += value;
	counter->samples++;
}

void ese_counter_json(const struct ese_counter *counter, const char *name, json_t *to)
{
	if (counter->samples)
		json_array_append_new(to,
				      json_pack("{s:s, s:f, s:f, s:f}", "name", name, "average",
						counter->sum / (double)counter->samples, "minimum",
						counter->min, "maximum", counter->max));
}

/* Ticks since boot: all of them, and those that were not idle. */
static bool read_processor(uint64_t *ret_busy, uint64_t *ret_all)
{
	uint64_t ticks[8] = {0}, all = 0;
	FILE *from = fopen("/proc/stat", "re");
	int got;

	if (!from)
		return false;
	got = fscanf(from,
		     "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		     " %" SCNu64 " %" SCNu64,
		     &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
		     &ticks[7]);
	fclose(from);
	if (got < 4)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++)
		all += ticks[i];
	*ret_all = all;
	*ret_busy = all - ticks[3] - ticks[4]; /* idle, waiting for I/O */
	return true;
}

static bool read_available(uint64_t *ret_kib)
{
	FILE *from = fopen("/proc/meminfo", "re");
	char line[128];
	bool found = false;

	if (!from)
		return false;
	while (!found && fgets(line, sizeof line, from))
		found = sscanf(line, "MemAvailable: %" SCNu64, ret_kib) == 1;
	fclose(from);
	return found;
}

void ese_host_counters_begin(struct ese_host_counters *counters, const struct loop *loop)
{
	*counters = (struct ese_host_counters){.real = !loop_is_virtual(loop)};
	if (counters->real && !read_processor(&counters->busy, &counters->all))
		counters->all = 0;
}

void ese_host_counters_sample(struct ese_host_counters *counters)
{
	uint64_t busy, all, available_kib;

	if (!counters->real)
		return;
	if (read_processor(&busy, &all)) {
		if (counters->all && all > counters->all && busy >= counters->busy)
			ese_counter_add(&counters->processor, 100.0 *
								  (double)(busy - counters->busy) /
								  (double)(all - counters->all));
		counters->busy = busy;
		counters->all = all;
	}
	if (read_available(&available_kib))
		ese_counter_add(&counters->available_mib, (double)available_kib / 1024);
}

void ese_host_counters_json(const struct ese_host_counters *counters, json_t *to)
{
	ese_counter_json(&counters->processor, "% Processor Time", to);
	ese_counter_json(&counters->available_mib, "Available MBytes", to);
}
