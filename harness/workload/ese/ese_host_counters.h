/* SPDX-License-Identifier: MIT
 *
 * What the machine that runs the test had to do: samples of /proc.  Nothing on a virtual loop, as
 * its time is not the machine's.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_HOST_COUNTERS_H
#define SANLAB_HARNESS_WORKLOAD_ESE_HOST_COUNTERS_H

#include <jansson.h>

#include "base/loop.h"

struct ese_counter {
	double sum, min, max;
	uint64_t samples;
};

struct ese_host_counters {
	bool real;
	uint64_t busy, all; /* /proc/stat, of the last sample */
	struct ese_counter processor, available_mib;
};

void ese_host_counters_begin(struct ese_host_counters *counters, const struct loop *loop);
void ese_host_counters_sample(struct ese_host_counters *counters);
/* Appends {"name", "average", "minimum", "maximum"} to TO; a counter without samples: nothing. */
void ese_host_counters_json(const struct ese_host_counters *counters, json_t *to);

void ese_counter_add(struct ese_counter *counter, double value);
void ese_counter_json(const struct ese_counter *counter, const char *name, json_t *to);

#endif
