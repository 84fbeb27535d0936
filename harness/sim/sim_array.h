/* SPDX-License-Identifier: MIT
 *
 * Faults of the array in a simulated lab: drives, members, and the active/passive pairs of members,
 * whose silent portals are links that stall.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_ARRAY_H
#define SANLAB_HARNESS_SIM_SIM_ARRAY_H

#include "harness/lab/lab.h"
#include "target/array/array.h"

struct sim_array;

/* SILENCE is told when a member's portals fall silent and when they speak again. */
int sim_array_new(struct loop *loop, const struct lab *lab, struct group *group,
		  void (*silence)(void *arg, const struct member_config *member, bool silent),
		  void *arg, struct sim_array **ret_array);
struct sim_array *sim_array_free(struct sim_array *array);
/* -ENOTSUP: the simulation has no such fault. */
int sim_array_apply(struct sim_array *array, const struct fault_config *fault, bool begin,
		    struct err *err);

#endif
