/* SPDX-License-Identifier: MIT
 *
 * A whole lab in one process on one loop: the target, simulated links, the hosts' MPIO devices and
 * the run engine.  On the virtual loop an hour of load takes seconds, and equal seeds give equal
 * results to the byte.
 *
 * What differs from `sanlab run`: no sockets, and the initiator's PDUs are not libiscsi's.
 * Workload, MPIO, the whole target, fault timeline and verdicts are the same code.
 */
#ifndef SANLAB_HARNESS_SIM_SIM_LAB_H
#define SANLAB_HARNESS_SIM_SIM_LAB_H

#include "base/err.h"
#include "harness/lab/lab.h"
#include "harness/report/record.h"
#include "harness/sim/sim.h"

struct sim_lab_options {
	struct sim_link_config link; /* every path's own link; its seed is derived */
	const char *out_dir;	     /* events.jsonl and the reports; NULL: none */
};

/* Runs LAB (it needs a group, hosts and a workload) in virtual time.  *ret_record is the caller's,
 * also when verdicts failed. */
int sim_lab_run(const struct lab *lab, const struct sim_lab_options *options,
		struct record **ret_record, struct err *err);

#endif
