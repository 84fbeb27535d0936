/* SPDX-License-Identifier: MIT
 *
 * Space of pools and members, and where volumes have theirs, for whoever asks.
 */
#include "base/bytes.h"
#include "target/array/page_clean.h"
#include "target/array/page_move.h"

const char *pool_name(const struct pool *pool)
{
	return pool->name;
}

unsigned pool_member_count(const struct pool *pool)
{
	return pool->member_count;
}

struct member *pool_member(struct pool *pool, unsigned index)
{
	return index < pool->member_count ? pool->members[index] : NULL;
}

void pool_space(const struct pool *pool, struct pool_space *ret_space)
{
	struct pool_space space = {.warned_percent = pool->warned_percent};

	for (unsigned i = 0; i < pool->member_count; i++) {
		space.total_bytes += pool->members[i]->page_count * POOL_PAGE_BYTES;
		space.used_bytes += pool->members[i]->used_pages * POOL_PAGE_BYTES;
	}
	space.free_bytes = space.total_bytes - space.used_bytes;
	for (unsigned i = 0; i < pool->volume_count; i++)
		space.subscribed_bytes += pool->volumes[i]->map.count * POOL_PAGE_BYTES;
	*ret_space = space;
}

void member_space(const struct pool *pool, const struct member *member,
		  struct member_space *ret_space)
{
	unsigned index = pool_index_of(pool, member);
	uint64_t claimed_pages = cleaner_count_of(pool->cleaner, index);

	for (unsigned i = 0; i < pool->volume_count; i++)
		claimed_pages += pool->volumes[i]->member_pages[index];
	claimed_pages += mover_pages_taken(pool->mover, index);
	*ret_space = (struct member_space){
	    .total_bytes = member->page_count * POOL_PAGE_BYTES,
	    .used_bytes = member->used_pages * POOL_PAGE_BYTES,
	    .unclaimed_bytes = (member->used_pages - claimed_pages) * POOL_PAGE_BYTES,
	};
}

void volume_slices(const struct volume *volume, uint64_t ret_bytes[POOL_MEMBERS_MAX])
{
	for (unsigned i = 0; i < POOL_MEMBERS_MAX; i++)
		ret_bytes[i] = volume->member_pages[i] * POOL_PAGE_BYTES;
}

uint64_t volume_slice_changes(const struct volume *volume)
{
	return volume->slice_changes;
}

uint64_t volume_heat(const struct volume *volume)
{
	return volume->heat;
}
