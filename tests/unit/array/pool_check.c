/* SPDX-License-Identifier: MIT
 *
 * The invariants of a pool.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/page_clean.h"
#include "target/array/page_move.h"
#include "tests/unit/array/pool_check.h"
#include "tests/unit/array/rig.h"

static bool is_used(const struct member *member, uint32_t page)
{
	return member->used[page / 64] >> (page % 64) & 1;
}

/* Marks the volume's pages on MEMBER as claimed and compares them with the journal. */
static void check_volume(const struct pool *pool, const struct volume *volume, unsigned index,
			 bool *claimed)
{
	const struct member *member = pool->members[index];
	uint32_t count = 0;

	for (uint32_t i = 0; i < volume->map.count; i++) {
		const struct page_entry *entry = &volume->map.entries[i];
		if (entry->page == PAGE_NONE || entry->member != index)
			continue;
		count++;
		if (entry->page >= member->page_count || !is_used(member, entry->page))
			fail_msg("%s page %u is on a free page of %s", volume->name, i,
				 member->name);
		if (claimed[entry->page])
			fail_msg("page %u of %s has two owners, %s page %u is one", entry->page,
				 member->name, volume->name, i);
		claimed[entry->page] = true;
		if (!member->journal)
			continue;
		struct page_owner owner = page_journal_owner(member->journal, entry->page);
		if (!owner.used || owner.homeless || owner.volume != volume->id ||
		    owner.page != i || owner.generation != entry->generation)
			fail_msg("%s page %u is not what the journal of %s says", volume->name, i,
				 member->name);
	}
	if (count != volume->member_pages[index])
		fail_msg("%s counts %u pages on %s, has %u", volume->name,
			 volume->member_pages[index], member->name, count);
}

static void check_member(const struct pool *pool, unsigned index)
{
	const struct member *member = pool->members[index];
	bool *claimed = calloc(member->page_count, sizeof *claimed);
	uint32_t used = 0, ownerless = 0;

	for (unsigned v = 0; v < pool->volume_count; v++)
		check_volume(pool, pool->volumes[v], index, claimed);
	for (uint32_t page = 0; page < member->page_count; page++) {
		used += is_used(member, page);
		ownerless += is_used(member, page) && !claimed[page];
		if (!member->journal)
			continue;
		struct page_owner owner = page_journal_owner(member->journal, page);
		if (owner.used != is_used(member, page))
			fail_msg("page %u of %s: map and journal differ", page, member->name);
		if (owner.used && !claimed[page] && !owner.homeless)
			fail_msg("page %u of %s is claimed in its journal only", page,
				 member->name);
	}
	free(claimed);
	assert_int_equal(used, member->used_pages);
	assert_int_equal(ownerless, cleaner_count_of(pool->cleaner, index) +
					mover_pages_taken(pool->mover, index));
}

void pool_check(const struct pool *pool)
{
	for (unsigned i = 0; i < pool->member_count; i++)
		check_member(pool, i);
	for (unsigned v = 0; v < pool->volume_count; v++) {
		const struct volume *volume = pool->volumes[v];
		uint32_t mapped = 0;
		for (unsigned i = 0; i < pool->member_count; i++)
			mapped += volume->member_pages[i];
		assert_int_equal(mapped, volume->map.mapped);
	}
}

void pool_check_free_pages(struct loop *loop, struct pool *pool)
{
	uint8_t *data = malloc(POOL_PAGE_BYTES);

	for (unsigned i = 0; i < pool->member_count; i++)
		for (uint32_t page = 0; page < pool->members[i]->page_count; page++) {
			if (is_used(pool->members[i], page))
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
