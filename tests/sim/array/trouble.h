/* SPDX-License-Identifier: MIT
 *
 * What befalls members of a simulated array beside their drives: they go offline and return, their
 * controllers fail over, their caches lose battery and mirror.
 *
 * The controllers' state machines are the target's (target/array/controller.h), style lun with two
 * for all members, style equallogic with a pair a member; what follows from their state for the
 * members is done here as the target's shell does it.  All is well again after a restart.
 */
#ifndef SANLAB_TESTS_SIM_TROUBLE_H
#define SANLAB_TESTS_SIM_TROUBLE_H

#include "tests/sim/array/world.h"

void trouble_begin(struct world *world); /* the group was opened */
void trouble_end(struct world *world);	 /* it is about to be closed */
/* Each does something, or nothing when nothing is possible. */
void trouble_member(struct world *world);
void trouble_controller(struct world *world);
void trouble_battery(struct world *world);
void trouble_cure(struct world *world);
/* All is to be well again; false: it does not become so. */
bool trouble_calm(struct world *world);

/* Was member INDEX away at any time since there had been that number of ABSENCES? */
bool trouble_was_away(const struct world *world, unsigned index, uint64_t absences);
bool trouble_is_slow(const struct world *world);       /* any drive */
unsigned trouble_failovers(const struct world *world); /* since the group was opened */
/* Do initiators reach the volume now? */
bool trouble_reaches(const struct world *world, unsigned volume);
/* Does all that member INDEX has answered lie in its drives?  Then its cache's memory can be given
 * up: with a battery or a mirror lost it must not count. */
bool trouble_memory_is_spent(struct world *world, unsigned index);

#endif
