/* SPDX-License-Identifier: MIT
 *
 * Which paths of a lab go through the relay, and its faults as the relay's.
 *
 * Only paths that a fault of the timeline needs it for: all others, and all of a lab without such
 * faults, connect directly.
 */
#ifndef SANLAB_HARNESS_RUN_RELAY_FAULTS_H
#define SANLAB_HARNESS_RUN_RELAY_FAULTS_H

#include "harness/lab/lab.h"
#include "harness/run/relay.h"

struct relay_faults;

/* *ret_faults NULL: no path needs the relay. */
int relay_faults_open(const struct lab *lab, struct relay_faults **ret_faults, struct err *err);
struct relay_faults *relay_faults_close(struct relay_faults *faults); /* NULL is fine */
/* The line for path INDEX (as lab_paths_of has it) of a host's volume: what relay_dial takes; NULL:
 * it connects directly.  FAULTS may be NULL. */
struct relay_line *relay_faults_line(const struct relay_faults *faults, const char *host,
				     const char *volume, unsigned index);
/* Begins or ends FAULT on every line that it hits; how many, or a negative errno. */
int relay_faults_apply(struct relay_faults *faults, const struct fault_config *fault, bool begin);

#endif
