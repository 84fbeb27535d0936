/* SPDX-License-Identifier: MIT
 *
 * What must hold of a pool at any time: no page is lost, none has two owners.
 */
#ifndef SANLAB_TESTS_ARRAY_POOL_CHECK_H
#define SANLAB_TESTS_ARRAY_POOL_CHECK_H

#include "target/array/pool.h"

/* Walks all page maps, the members' bitmaps and their journals; fails the test with the reason. */
void pool_check(const struct pool *pool);
/* Besides: every free page reads as zeros.  Runs the loop. */
void pool_check_free_pages(struct loop *loop, struct pool *pool);

#endif
