/* SPDX-License-Identifier: MIT
 *
 * The foreign workload: the load is somebody else's initiator, the lab only serves it.  There are
 * no devices and no streams here; a run with it waits for the first I/O (harness/run/observer.h
 * sees it at the target), and its window begins with that.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_FOREIGN_H
#define SANLAB_HARNESS_WORKLOAD_FOREIGN_H

#include "harness/workload/workload.h"

struct foreign_config {
	uint64_t wait_ns;   /* for the load to begin */
	uint64_t after_ios; /* ... which it has after so many I/Os */
	uint64_t pause_ns;  /* what counts as a pause */
};

extern const struct cfg_schema foreign_schema;
extern const struct workload_ops foreign_workload_ops;

/* The defaults, for a lab that says nothing of it; NULL: out of memory.  free() frees it. */
struct foreign_config *foreign_config_new(void);

/* The load has begun. */
void foreign_noticed(struct workload *workload);

#endif
