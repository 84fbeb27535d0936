/* SPDX-License-Identifier: MIT
 *
 * Crashes of a simulated array: it reaches its files through a table of the system's calls
 * (target/drive/vfs.h), and from the chosen call on nothing of what it does has an effect any more.
 * That call itself is carried out in part, as when the process is killed in the middle.
 *
 * With a loss of the host's power, what was written and not synced may be lost as well, sector by
 * sector; the redundancy of such places has to be scrubbed before a drive may fail.
 * Battery-backed memory keeps what it held at the crash.
 */
#ifndef SANLAB_TESTS_SIM_CRASH_H
#define SANLAB_TESTS_SIM_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

/* Faults of the storage below, and of the array, that the simulation has to notice. */
enum crash_mutant {
	MUTANT_NONE,
	MUTANT_LOST_WRITE,   /* one of many writes to drives is acknowledged and not carried out */
	MUTANT_LYING_SYNC,   /* syncs are acknowledged and not carried out */
	MUTANT_DEAD_BATTERY, /* battery-backed memory comes back empty */
	MUTANT_LOST_LINE,    /* parts of a cache's memory come back empty */
	MUTANT_LOST_UPDATE,  /* (of the mover) a write to a page is not carried over to its copy */
};
extern const char *const crash_mutant_names[];

/* For one seed; DIR is where the battery-backed memory lies. */
void crash_begin(const char *dir, uint64_t seed, bool power, enum crash_mutant mutant);
void crash_end(void);
/* The CALLS-th change from now on is the last. */
void crash_arm(uint64_t calls);
void crash_disarm(void);
void crash_now(void); /* between two calls */
/* After a crash: the memory NAME, in the directory, will be empty (an administrator's doing). */
void crash_give_up(const char *name);
bool crash_happened(void);
/* Calls FN at the moment of a crash, from within the call that is the last; NULL: nobody. */
void crash_tell(void (*fn)(void *arg), void *arg);
/* After the array was closed: its files are as the crash left them. */
void crash_recover(void);

#endif
