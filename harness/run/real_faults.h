/* SPDX-License-Identifier: MIT
 *
 * The fault timeline on a real target: each fault becomes commands on its control socket.
 *
 *  path-reset      RST on the connections of that host at the path's portal
 *  path-down       the path's portal resets everything and refuses logins.  A path of a host is a
 *                  portal, so all volumes of the host lose that path, and so does any other host.
 *  portal-down     the same, by the portal's name
 *  all-paths-down  every portal that a path of the host (or of any host) goes through
 *  the others      what the array's own commands of these names do
 */
#ifndef SANLAB_HARNESS_RUN_REAL_FAULTS_H
#define SANLAB_HARNESS_RUN_REAL_FAULTS_H

#include "harness/lab/lab.h"
#include "harness/run/spawn.h"

struct real_faults {
	const struct lab *lab;
	struct target_process *target;
};

/* For struct fault_ops; ARG is a struct real_faults. */
int real_faults_apply(void *arg, const struct fault_config *fault, bool begin, struct err *err);

#endif
