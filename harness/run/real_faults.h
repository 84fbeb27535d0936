/* SPDX-License-Identifier: MIT
 *
 * The fault timeline on real targets: commands on the control socket of the lab's own target, the
 * relay for what the network does and for paths to somebody else's target, and signals.
 *
 *  path-reset      RST on the connections of that host at the path's portal
 *  path-down       the path's portal resets everything and refuses logins.  A path of a host is a
 *                  portal, so all volumes of the host lose that path, and so does any other host.
 *  portal-down     the same, by the portal's name
 *  all-paths-down  every portal that a path of the host (or of any host) goes through
 *  target-crash    SIGKILL; at its end the target is started again
 *  of the network  the relay; path-reset, path-down and all-paths-down, too, where a path is a URL
 *  the others      what the target's own commands of these names do
 */
#ifndef SANLAB_HARNESS_RUN_REAL_FAULTS_H
#define SANLAB_HARNESS_RUN_REAL_FAULTS_H

#include "harness/lab/lab.h"
#include "harness/run/relay_faults.h"
#include "harness/run/spawn.h"

struct real_faults {
	const struct lab *lab;
	struct target_process *target; /* NULL: somebody else's */
	struct relay_faults *relay;    /* NULL: no path needs it */
	/* A restarted target listens (0), or does not. */
	void (*restarted)(void *arg, int status);
	void *arg;
};

/* For struct fault_ops; ARG is a struct real_faults. */
int real_faults_apply(void *arg, const struct fault_config *fault, bool begin, struct err *err);

#endif
