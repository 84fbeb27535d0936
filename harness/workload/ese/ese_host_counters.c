/* SPDX-License-Identifier: MIT
 *
 * Samples of /proc/stat and /proc/meminfo; what cannot be read is left out.
 */
#include "harness/workload/ese/ese_host_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The numbers behind KEY in the first line of FILE that begins with it, at most COUNT of them.
 * Returns how many there were. */
static unsigned read_numbers(const char *file, const char *key, uint64_t *ret_numbers,
			     unsigned count)
{
	FILE *from = fopen(file, "re");
	char line[512], *at = NULL, *end;
	unsigned got = 0;

	if (!from)
		return 0;
	while (!at && fgets(line, sizeof line, from))
		if (strncmp(line, key, strlen(key)) == 0)
			at = line + strlen(key);
	fclose(from);
	for (; at && got < count; at = end, got++) {
		ret_numbers[got] = strtoull(at, &end, 10);
		if (end == at)
			break;
	}
	return got;
}

/* Ticks since boot: all of them, and those that were not idle. */
static bool read_processor(uint64_t *ret_busy, uint64_t *ret_all)
{
	uint64_t ticks[8] = {0}, all = 0;

	if (read_numbers("/proc/stat", "cpu ", ticks, ARRAY_SIZE(ticks)) < 5)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ticks); i++)
		all += ticks[i];
	*ret_all = all;
	*ret_busy = all - ticks[3] - ticks[4]; /* idle, waiting for I/O */
	return true;
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
	if (read_numbers("/proc/meminfo", "MemAvailable:", &available_kib, 1))
		ese_counter_add(&counters->available_mib, (double)available_kib / 1024);
}

void ese_host_counters_json(const struct ese_host_counters *counters, json_t *to)
{
	ese_counter_json(&counters->processor, "% Processor Time", to);
	ese_counter_json(&counters->available_mib, "Available MBytes", to);
}
