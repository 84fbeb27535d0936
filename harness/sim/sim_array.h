/* SPDX-License-Identifier: MIT
 *
 * Faults of the array in a simulated lab: drives, members and their controllers.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_ARRAY_H
#define SANLAB_HARNESS_SIM_SIM_ARRAY_H

#include "harness/lab/lab.h"
#include "target/target.h"

/* -ENOTSUP: the simulation has no such fault. */
int sim_array_apply(struct target *target, const struct fault_config *fault, bool begin,
		    struct err *err);

#endif
