/* SPDX-License-Identifier: MIT
 *
 * Pools: their members and the placement of pages.
 */
#include "target/array/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "target/array/balancer.h"
#include "target/array/member_cache.h"
#include "target/array/page_clean.h"
#include "target/array/page_move.h"

static void wake_held(struct pool *pool)
{
	for (unsigned i = 0; i < pool->volume_count; i++)
		if (pool->volumes[i]->held.first)
			volume_wake(pool->volumes[i]);
}

/* A page became free. */
static void page_freed(struct pool *pool)
{
	pool_check_space(pool);
	wake_held(pool);
	balancer_page_freed(pool->balancer);
}

/* What a crash left of moves: pages that no volume has. */
static int clean_homeless(struct pool *pool)
{
	for (unsigned i = 0; i < pool->member_count; i++) {
		const struct member *member = pool->members[i];
		for (uint32_t page = 0; member->journal && page < member->page_count; page++) {
			struct page_owner owner = page_journal_owner(member->journal, page);
			if (!owner.used || !owner.homeless)
				continue;
			int rc = cleaner_reserve(pool->cleaner, 1);
			if (rc)
				return rc;
			cleaner_add(pool->cleaner, i, page);
		}
	}
	return 0;
}

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
	pool->loop = loop;
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
	rc = cleaner_open(loop, pool, page_freed, &pool->cleaner);
	if (rc == 0)
		rc = balancer_open(loop, pool, &config->balance, &pool->balancer);
	if (rc == 0)
		rc = clean_homeless(pool);
	if (rc) {
		pool_close(pool);
		return err_set(err, rc, "no memory for pool %s", config->name);
	}
	*ret_pool = pool;
	return 0;
}

void pool_stop(struct pool *pool)
{
	if (pool->balancer)
		balancer_stop(pool->balancer);
	if (pool->mover)
		mover_stop(pool->mover);
	if (pool->cleaner)
		cleaner_stop(pool->cleaner);
	wake_held(pool); /* the page they wait for will not become free any more */
}

/* Nothing is written any more.  True: all members have noted that. */
static bool end_members(struct pool *pool)
{
	uint64_t number = pool_identity_ending(pool->identity);
	struct err err = {0};
	int rc = 0;

	for (unsigned i = 0; number && rc == 0 && i < pool->member_count; i++)
		rc = member_end(pool->members[i], number, &err);
	if (rc)
		log_warn("%s: old copies of its files might not be recognised", err.what);
	return number && rc == 0;
}

struct pool *pool_close(struct pool *pool)
{
	if (!pool)
		return NULL;
	pool_stop(pool);
	for (unsigned i = 0; i < pool->member_count; i++)
		member_drain(pool->members[i]);
	mover_close(pool->mover);
	balancer_close(pool->balancer);
	cleaner_close(pool->cleaner);
	uint32_t used_pages[POOL_MEMBERS_MAX] = {0};
	for (unsigned i = 0; i < pool->member_count; i++) {
		used_pages[i] = pool->members[i]->used_pages;
		pool_identity_cached(pool->identity, i,
				     member_cache_may_hold(pool->members[i], false));
	}
	if (pool->identity)
		pool_identity_end(pool->identity, used_pages, end_members(pool));
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

int pool_choose(const struct pool *pool, const uint32_t *volume_pages, unsigned *ret_member)
{
	unsigned best = POOL_MEMBERS_MAX, other = POOL_MEMBERS_MAX, spread = 0;

	for (unsigned i = 0; i < pool->member_count; i++)
		spread += volume_pages[i] > 0;
	for (unsigned i = 0; i < pool->member_count; i++) {
		if (!member_takes_pages(pool->members[i]))
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

int pool_add_volume(struct pool *pool, struct volume *volume, struct err *err)
{
	if (pool->volume_count == POOL_VOLUMES_MAX)
		return err_set(err, -ENOSPC, "pool %s has %d volumes already", pool->name,
			       POOL_VOLUMES_MAX);
	pool->volumes[pool->volume_count++] = volume;
	return 0;
}

void pool_remove_volume(struct pool *pool, const struct volume *volume)
{
	for (unsigned i = 0; i < pool->volume_count; i++)
		if (pool->volumes[i] == volume)
			pool->volumes[i] = pool->volumes[--pool->volume_count];
}

unsigned pool_index_of(const struct pool *pool, const struct member *member)
{
	unsigned index = 0;

	while (index < pool->member_count && pool->members[index] != member)
		index++;
	return index;
}
