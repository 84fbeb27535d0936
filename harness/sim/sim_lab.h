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
#include "harness/run/run.h"
#include "harness/sim/sim.h"
#include "target/target.h"

struct sim_lab_options {
	int network;		     /* enum virtual_network */
	struct sim_link_config link; /* every path's own link; its seed is derived */
	const char *out_dir;	     /* events.jsonl and the reports; NULL: none */
};

/* What virtual time has no counterpart of is an error: -EINVAL, -ENOTSUP. */
int sim_lab_check(const struct lab *lab, int network, struct err *err);

/* Runs LAB (it needs a group, hosts and a workload) in virtual time.  *ret_record is the caller's,
 * also when verdicts failed. */
int sim_lab_run(const struct lab *lab, const struct sim_lab_options *options,
		struct record **ret_record, struct err *err);

/* The same in steps.  The lab is built and its devices are connected; LAB outlives it. */
struct sim_lab;
int sim_lab_new(const struct lab *lab, const struct sim_lab_options *options,
		struct sim_lab **ret_sim, struct err *err);
/* Makes the run's engine (once); it stays the lab's.  EVENTS outlives the lab. */
int sim_lab_open(struct sim_lab *sim, struct event_log *events, struct run_engine **ret_engine,
		 struct err *err);
/* What the workload asks of its devices goes through RECORDER, which outlives the lab's engine;
 * before sim_lab_open. */
struct recorder;
void sim_lab_record(struct sim_lab *sim, struct recorder *recorder);
struct loop *sim_lab_loop(struct sim_lab *sim);
struct target *sim_lab_target(struct sim_lab *sim);
struct sim_lab *sim_lab_free(struct sim_lab *sim);

#endif
