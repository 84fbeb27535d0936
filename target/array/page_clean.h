/* SPDX-License-Identifier: MIT
 *
 * Pages of a pool's members that no volume has any more, on their way to become free: unmapped
 * and flushed first, so that a free page reads as zeros, then given back.  One at a time; what
 * fails (its member is offline) is tried again later.  Private to the room.
 */
#ifndef SANLAB_TARGET_ARRAY_PAGE_CLEAN_H
#define SANLAB_TARGET_ARRAY_PAGE_CLEAN_H

#include "target/array/pool.h"

struct cleaner;

/* FREED is told after a page became free, or could not be made so for the time being. */
int cleaner_open(struct loop *loop, struct pool *pool, void (*freed)(struct pool *pool),
		 struct cleaner **ret_cleaner);
struct cleaner *cleaner_close(struct cleaner *cleaner);
void cleaner_stop(struct cleaner *cleaner);

/* Room for MORE pages; -ENOMEM. */
int cleaner_reserve(struct cleaner *cleaner, unsigned more);
/* Room has been reserved. */
void cleaner_add(struct cleaner *cleaner, unsigned member, uint32_t page);
unsigned cleaner_count(const struct cleaner *cleaner);
unsigned cleaner_count_of(const struct cleaner *cleaner, unsigned member);
/* Is there a page of a member that answers? */
bool cleaner_will_free(const struct cleaner *cleaner);

#endif
