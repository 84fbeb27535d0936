/* SPDX-License-Identifier: MIT
 *
 * What must hold of a pool at any time: no page is lost, none has two owners, and the page maps on
 * the members say the same.  For unit tests (pool_check.h) and the simulation.
 */
#ifndef SANLAB_TESTS_ARRAY_POOL_INVARIANTS_H
#define SANLAB_TESTS_ARRAY_POOL_INVARIANTS_H

#include "target/array/pool.h"

/* False: WHY (SIZE bytes) tells the first thing that is wrong. */
bool pool_is_sound(const struct pool *pool, char *why, size_t size);
bool pool_page_is_used(const struct member *member, uint32_t page);

#endif
