/* SPDX-License-Identifier: MIT
 *
 * The invariants of a pool.
 */
#include "tests/unit/array/pool_invariants.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/array/page_clean.h"
#include "target/array/page_move.h"

struct finding {
	char *why;
	size_t size;
};

static bool __attribute__((format(printf, 2, 3)))
wrong(const struct finding *finding, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(finding->why, finding->size, format, args);
	va_end(args);
	return false;
}

bool pool_page_is_used(const struct member *member, uint32_t page)
{
	return member->used[page / 64] >> (page % 64) & 1;
}

/* Marks the volume's page I as claimed and compares it with the journal. */
static bool check_entry(const struct finding *finding, const struct volume *volume, uint32_t i,
			const struct member *member, bool *claimed)
{
	const struct page_entry *entry = &volume->map.entries[i];

	if (entry->page >= member->page_count || !pool_page_is_used(member, entry->page))
		return wrong(finding, "%s page %u is on a free page of %s", volume->name, i,
			     member->name);
	if (claimed[entry->page])
		return wrong(finding, "page %u of %s has two owners, %s page %u is one",
			     entry->page, member->name, volume->name, i);
	claimed[entry->page] = true;
	if (!member->journal)
		return true;
	struct page_owner owner = page_journal_owner(member->journal, entry->page);
	if (!owner.used || owner.homeless || owner.volume != volume->id || owner.page != i ||
	    owner.generation != entry->generation)
		return wrong(finding, "%s page %u is not what the journal of %s says", volume->name,
			     i, member->name);
	return true;
}

static bool check_volume(const struct finding *finding, const struct pool *pool,
			 const struct volume *volume, unsigned index, bool *claimed)
{
	const struct member *member = pool->members[index];
	uint32_t count = 0;

	for (uint32_t i = 0; i < volume->map.count; i++) {
		const struct page_entry *entry = &volume->map.entries[i];
		if (entry->page == PAGE_NONE || entry->member != index)
			continue;
		count++;
		if (!check_entry(finding, volume, i, member, claimed))
			return false;
	}
	if (count != volume->member_pages[index])
		return wrong(finding, "%s counts %u pages on %s, has %u", volume->name,
			     volume->member_pages[index], member->name, count);
	return true;
}

static bool check_pages(const struct finding *finding, const struct pool *pool, unsigned index,
			const bool *claimed)
{
	const struct member *member = pool->members[index];
	uint32_t used = 0, ownerless = 0;

	for (uint32_t page = 0; page < member->page_count; page++) {
		used += pool_page_is_used(member, page);
		ownerless += pool_page_is_used(member, page) && !claimed[page];
		if (!member->journal)
			continue;
		struct page_owner owner = page_journal_owner(member->journal, page);
		if (owner.used != pool_page_is_used(member, page))
			return wrong(finding, "page %u of %s: map and journal differ", page,
				     member->name);
		if (owner.used && !claimed[page] && !owner.homeless)
			return wrong(finding, "page %u of %s is claimed in its journal only", page,
				     member->name);
	}
	uint32_t expected =
	    cleaner_count_of(pool->cleaner, index) + mover_pages_taken(pool->mover, index);
	if (used != member->used_pages)
		return wrong(finding, "%s counts %u used pages, has %u", member->name,
			     member->used_pages, used);
	if (ownerless != expected)
		return wrong(finding, "%s has %u pages of nobody, %u are being cleaned or moved",
			     member->name, ownerless, expected);
	return true;
}

static bool check_member(const struct finding *finding, const struct pool *pool, unsigned index)
{
	bool *claimed = calloc(pool->members[index]->page_count, sizeof *claimed);
	bool sound = claimed || wrong(finding, "no memory");

	for (unsigned v = 0; sound && v < pool->volume_count; v++)
		sound = check_volume(finding, pool, pool->volumes[v], index, claimed);
	sound = sound && check_pages(finding, pool, index, claimed);
	free(claimed);
	return sound;
}

bool pool_is_sound(const struct pool *pool, char *why, size_t size)
{
	const struct finding finding = {why, size};

	for (unsigned i = 0; i < pool->member_count; i++)
		if (!check_member(&finding, pool, i))
			return false;
	for (unsigned v = 0; v < pool->volume_count; v++) {
		const struct volume *volume = pool->volumes[v];
		uint32_t mapped = 0;
		for (unsigned i = 0; i < pool->member_count; i++)
			mapped += volume->member_pages[i];
		if (mapped != volume->map.mapped)
			return wrong(&finding, "%s counts %u mapped pages, members have %u",
				     volume->name, volume->map.mapped, mapped);
	}
	return true;
}
