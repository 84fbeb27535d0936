/* SPDX-License-Identifier: MIT
 *
 * Pages of a simulated array on the move: members join, are drained and leave, pages are spread by
 * capacity, hot ones are swapped for cold ones.
 */
#ifndef SANLAB_TESTS_SIM_ROAM_H
#define SANLAB_TESTS_SIM_ROAM_H

#include "tests/sim/array/world.h"

void roam_begin(struct world *world); /* the group was opened */
/* Each does something, or nothing when nothing is possible. */
void roam_drain(struct world *world);
void roam_balance(struct world *world);
/* Members become slow or as before, requests keep to one page or do not. */
void roam_slow(struct world *world);
void roam_focus(struct world *world);
/* Between an orderly end and the next start: a member leaves that was empty, or one joins. */
unsigned roam_find_empty(struct world *world); /* its index; the number of members: none */
void roam_leave(struct world *world, unsigned index);
void roam_join(struct world *world);

bool roam_is_moving(const struct world *world);
uint64_t roam_moves_done(const struct world *world); /* since the group was opened */
/* Pages come to rest and stay there; false: they do not. */
bool roam_settle(struct world *world);
/* Page maps are sound, and with READ free pages hold zeros; for pages at rest. */
bool roam_check(struct world *world, bool read);

/* For the mutant: writes to a page that is being copied are not carried over. */
void roam_forget_writes(bool forget);

#endif
