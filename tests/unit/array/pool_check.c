/* SPDX-License-Identifier: MIT
 *
 * The invariants of a pool, as unit tests want them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/array/pool_check.h"
#include "tests/unit/array/pool_invariants.h"
#include "tests/unit/array/rig.h"

void pool_check(const struct pool *pool)
{
	char why[200];

	if (!pool_is_sound(pool, why, sizeof why))
		fail_msg("%s", why);
}

void pool_check_free_pages(struct loop *loop, struct pool *pool)
{
	uint8_t *data = malloc(POOL_PAGE_BYTES);

	for (unsigned i = 0; i < pool->member_count; i++)
		for (uint32_t page = 0; page < pool->members[i]->page_count; page++) {
			if (pool_page_is_used(pool->members[i], page))
				continue;
			assert_int_equal(io_wait(loop, &pool->members[i]->layer, IO_READ,
						 page * POOL_PAGE_BYTES, data, POOL_PAGE_BYTES),
					 0);
			if (data[0] || memcmp(data, data + 1, POOL_PAGE_BYTES - 1) != 0)
				fail_msg("free page %u of %s is not zeros", page,
					 pool->members[i]->name);
		}
	free(data);
}
