/* SPDX-License-Identifier: MIT
 *
 * Faults of a target under load, through its control socket: drives that fail, return and are
 * replaced, rebuilds and scrubs that are under way, a battery that is lost, a member that is
 * drained.  Never more than the members' levels tolerate, so that no request may fail.
 *
 * Ownership: the caller's.  Threading: blocks for as long as a command takes.
 */
#ifndef SANLAB_TESTS_KILLED_FAULTS_H
#define SANLAB_TESTS_KILLED_FAULTS_H

#include <stdbool.h>

#include "base/rng.h"

struct faults {
	const char *control; /* the socket's path */
	struct rng rng;
	/* what was done */
	unsigned failed, returned, replaced, scrubs, batteries, drains;
	/* kills in the middle of something */
	unsigned while_out, while_rebuilding, while_scrubbing, while_dirty, while_draining;
};

/* All of these tell on stderr what went wrong, and answer false. */

/* Does one thing to one member. */
bool faults_step(struct faults *faults);
/* Before a kill: counts what it interrupts.  No scrub has found anything, and nothing is lost. */
bool faults_check(struct faults *faults);

#endif
