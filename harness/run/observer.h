/* SPDX-License-Identifier: MIT
 *
 * The observer of a run whose load is somebody else's: it asks our target who is logged in, how
 * many I/Os each session has ended, and what else has been seen, and makes of that the markers,
 * the pauses and the evidence of the record.
 *
 * A device is what an initiator sees as one disk: all sessions of one initiator to one target.  A
 * pause is time in the measured window in which no I/O of a device ended; it is known to
 * OBSERVER_LOOK_NS.
 */
#ifndef SANLAB_HARNESS_RUN_OBSERVER_H
#define SANLAB_HARNESS_RUN_OBSERVER_H

#include "harness/run/run.h"
#include "harness/run/spawn.h"

#define OBSERVER_LOOK_NS (50 * NS_PER_MS)

struct observer;

/* TARGET and ENGINE are borrowed; the engine's workload is `foreign`.  Starts to look at once. */
int observer_new(struct loop *loop, struct target_process *target, struct run_engine *engine,
		 struct observer **ret_observer);
struct observer *observer_free(struct observer *observer);

/* The window has ended: the record gets what was seen, and the gap that `max-io-gap` is about. */
void observer_report(struct observer *observer, struct record *record);

#endif
