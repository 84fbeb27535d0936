/* SPDX-License-Identifier: MIT
 *
 * Where a volume's space is: the slice map over the members, and how full the pool is.
 */
#include <assert.h>

#include "base/bytes.h"
#include "target/array/volume.h"

void volume_pool_space(const struct volume *volume, uint64_t *ret_used_bytes,
		       uint64_t *ret_total_bytes)
{
	struct pool_space space;

	pool_space(volume->pool, &space);
	*ret_used_bytes = space.used_bytes;
	*ret_total_bytes = space.total_bytes;
}

unsigned volume_thin_threshold_percent(const struct volume *volume)
{
	return volume->thin_threshold_percent;
}

static const struct member *page_member(const struct volume *volume, uint32_t index)
{
	const struct page_entry *entry = &volume->map.entries[index];

	return entry->page == PAGE_NONE ? NULL : volume->pool->members[entry->member];
}

void volume_slice(const struct volume *volume, uint64_t offset_bytes,
		  const struct member **ret_member, uint64_t *ret_run_bytes)
{
	uint32_t first = (uint32_t)(offset_bytes / POOL_PAGE_BYTES), last = first + 1;
	const struct member *member;

	assert(offset_bytes < volume->layer.size_bytes);
	member = page_member(volume, first);
	while (last < volume->map.count && page_member(volume, last) == member)
		last++;
	*ret_member = member;
	*ret_run_bytes = MIN_OF(last * POOL_PAGE_BYTES, volume->layer.size_bytes) - offset_bytes;
}
