/* SPDX-License-Identifier: MIT
 *
 * Pools: their members and the placement of pages.
 */
#include "target/array/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int pool_open(struct loop *loop, const struct pool_config *config, const char *lab_name,
	      uint64_t seed, struct pool **ret_pool, struct err *err)
{
	const struct member_config *members = config->members.items;
	if (config->members.count == 0 || config->members.count > POOL_MEMBERS_MAX)
		return err_set(err, -EINVAL, "pool %s has %zu members, 1 to %d are possible",
			       config->name, config->members.count, POOL_MEMBERS_MAX);
	struct pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return err_set(err, -ENOMEM, "no memory for pool %s", config->name);
	snprintf(pool->name, sizeof pool->name, "%s", config->name);
	int rc = pool_identity_begin(config, lab_name, &pool->identity, err);
	for (unsigned i = 0; rc == 0 && i < config->members.count; i++) {
		rc = member_open(loop, &members[i], pool_identity_origin(pool->identity, i), seed,
				 &pool->members[i], err);
		pool->member_count += rc == 0;
	}
	if (rc) {
		pool_close(pool);
		return rc;
	}
	*ret_pool = pool;
	return 0;
}

struct pool *pool_close(struct pool *pool)
{
	if (!pool)
		return NULL;
	uint32_t used_pages[POOL_MEMBERS_MAX] = {0};
	for (unsigned i = 0; i < pool->member_count; i++)
		used_pages[i] = pool->members[i]->used_pages;
	if (pool->identity)
		pool_identity_end(pool->identity, used_pages);
	for (unsigned i = 0; i < pool->member_count; i++)
		member_close(pool->members[i]);
	pool_identity_free(pool->identity);
	free(pool);
	return NULL;
}

/* Is A filled less than B?  Shares are compared as fractions, without division. */
static bool less_filled(const struct pool *pool, const uint32_t *volume_pages, unsigned a,
			unsigned b)
{
	uint64_t capacity_a = pool->members[a]->page_count;
	uint64_t capacity_b = pool->members[b]->page_count;
	uint64_t own_a = volume_pages[a] * capacity_b, own_b = volume_pages[b] * capacity_a;

	if (own_a != own_b)
		return own_a < own_b;
	return pool->members[a]->used_pages * capacity_b <
	       pool->members[b]->used_pages * capacity_a;
}

static bool has_room(const struct member *member)
{
	return member->used_pages < member->page_count && member->gate.state != MEMBER_OFFLINE;
}

int pool_choose(const struct pool *pool, const uint32_t *volume_pages, unsigned *ret_member)
{
	unsigned best = POOL_MEMBERS_MAX, other = POOL_MEMBERS_MAX, spread = 0;

	for (unsigned i = 0; i < pool->member_count; i++)
		spread += volume_pages[i] > 0;
	for (unsigned i = 0; i < pool->member_count; i++) {
		if (!has_room(pool->members[i]))
			continue;
		bool own = volume_pages[i] > 0 || spread < VOLUME_MEMBERS_MAX;
		unsigned *slot = own ? &best : &other;
		if (*slot == POOL_MEMBERS_MAX || less_filled(pool, volume_pages, i, *slot))
			*slot = i;
	}
	if (best == POOL_MEMBERS_MAX)
		best = other;
	if (best == POOL_MEMBERS_MAX)
		return -ENOSPC;
	*ret_member = best;
	return 0;
}
