/* SPDX-License-Identifier: MIT
 *
 * The course of a day: how the rate of an open loop goes up and down over 24 hours, as the mail of
 * an office does.  The IOPS of a mailbox are those of the busiest hour.  Pure.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_EXCHANGE_DAY_H
#define SANLAB_HARNESS_WORKLOAD_EXCHANGE_DAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"

enum { EXCHANGE_DAY_HOURS = 24 };
enum exchange_day_shape { EXCHANGE_DAY_FLAT, EXCHANGE_DAY_OFFICE, EXCHANGE_DAY_OWN };
enum exchange_client { EXCHANGE_CACHED, EXCHANGE_ONLINE };

struct exchange_day_config {
	int shape;  /* enum exchange_day_shape */
	int client; /* enum exchange_client */
	uint64_t from_ns, length_ns;
	struct cfg_list hours; /* const char *: percentages of the busiest hour */
};
extern const struct cfg_schema exchange_day_schema;

/* Checks what the schema cannot; for the workload's configure.  OPEN_LOOP: the rate is the load's.
 */
void exchange_day_check(struct cfg *cfg, const struct exchange_day_config *config, bool open_loop);

struct exchange_day {
	bool flat;
	uint64_t from_ns, length_ns;
	double share[EXCHANGE_DAY_HOURS]; /* of the rate, at the beginning of each hour */
};

void exchange_day_init(struct exchange_day *day, const struct exchange_day_config *config);
/* What a client costs beside the cached one. */
double exchange_client_factor(const struct exchange_day_config *config);
/* The share of the full rate at AT_NS since the load began. */
double exchange_day_at(const struct exchange_day *day, uint64_t at_ns);
/* ... on average between two instants. */
double exchange_day_mean(const struct exchange_day *day, uint64_t from_ns, uint64_t to_ns);
/* When as many arrivals have come since FROM_NS as the full rate would bring in WORK_NS. */
uint64_t exchange_day_after(const struct exchange_day *day, uint64_t from_ns, uint64_t work_ns);

#endif
