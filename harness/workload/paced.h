/* SPDX-License-Identifier: MIT
 *
 * The raw workload with `rate`: an open loop, verified.
 *
 * I/Os are due at even times whatever the storage does, so that a stall shows for as long as it
 * lasts; every block carries its identity (page.h), each read is checked, and the whole written set
 * is read back at the end.  An I/O that cannot be sent in time, because as many as `queue-depth`
 * are in flight, keeps the time it was due.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_PACED_H
#define SANLAB_HARNESS_WORKLOAD_PACED_H

#include "harness/workload/raw.h"

/* CONFIG's rate is not 0. */
int paced_open(const struct workload_env *env, const struct raw_config *config,
	       struct workload **ret_workload, struct err *err);
/* What it asks of a volume beyond what every raw load does. */
int paced_check(const struct raw_config *config, struct err *err);

#endif
