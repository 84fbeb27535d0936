/* SPDX-License-Identifier: MIT
 *
 * Capacity balancing: where each volume's pages should be, and the transfers that bring them there.
 */
#include "target/array/balance_plan.h"
#include "target/array/pool.h"

struct planner {
	const struct balance_pool *pool;
	uint64_t used[POOL_MEMBERS_MAX]; /* as it will be after the transfers planned so far */
	bool barred[POOL_MEMBERS_MAX];	 /* may not get pages of the volume at hand */
	struct balance_transfer *transfers;
	unsigned count, max;
};

static uint64_t room(const struct planner *planner, unsigned member)
{
	const struct balance_member *here = &planner->pool->members[member];

	return here->takes && planner->used[member] < here->pages
		   ? here->pages - planner->used[member]
		   : 0;
}

/* Is A filled less than B? */
static bool emptier(const struct planner *planner, unsigned a, unsigned b)
{
	uint64_t pages_a = planner->pool->members[a].pages,
		 pages_b = planner->pool->members[b].pages;

	return planner->used[a] * pages_b < planner->used[b] * pages_a;
}

/* The emptiest, or the fullest, of the members that take pages and are, or are not, CHOSEN. */
static unsigned extreme(const struct planner *planner, const bool *chosen, bool wanted, bool empty)
{
	unsigned count = planner->pool->member_count, best = count;

	for (unsigned i = 0; i < count; i++) {
		if (!planner->pool->members[i].takes || planner->barred[i] || chosen[i] != wanted)
			continue;
		if (best == count ||
		    (empty ? emptier(planner, i, best) : emptier(planner, best, i)))
			best = i;
	}
	return best;
}

/* Those of its members with most of it, at most three. */
static unsigned choose_own(const struct planner *planner, const struct balance_volume *volume,
			   bool *chosen)
{
	unsigned count = planner->pool->member_count, spread = 0;

	for (; spread < VOLUME_MEMBERS_MAX; spread++) {
		unsigned best = count;
		for (unsigned i = 0; i < count; i++)
			if (planner->pool->members[i].takes && !chosen[i] && volume->pages[i] > 0 &&
			    (best == count || volume->pages[i] > volume->pages[best]))
				best = i;
		if (best == count)
			break;
		chosen[best] = true;
	}
	return spread;
}

/* The fullest of the three gives way to an emptier one, if that one is still emptier when it has
 * got the volume's part: else the volume would go round in circles. */
static void replace_full(const struct planner *planner, const struct balance_volume *volume,
			 bool *chosen)
{
	const struct balance_member *members = planner->pool->members;
	unsigned full = extreme(planner, chosen, true, false);
	unsigned other = extreme(planner, chosen, false, true);
	unsigned count = planner->pool->member_count;

	if (full == count || other == count)
		return;
	uint64_t with = planner->used[other] + volume->pages[full];
	uint64_t margin =
	    (uint64_t)BALANCE_REPLACE_PERCENT * members[full].pages * members[other].pages;
	if (with * members[full].pages * 100 + margin >=
	    planner->used[full] * members[other].pages * 100)
		return;
	chosen[full] = false;
	chosen[other] = true;
}

static void choose_members(const struct planner *planner, const struct balance_volume *volume,
			   uint64_t total, bool *chosen)
{
	unsigned count = planner->pool->member_count;
	unsigned spread = choose_own(planner, volume, chosen);

	if (spread == VOLUME_MEMBERS_MAX)
		replace_full(planner, volume, chosen);
	for (; spread < VOLUME_MEMBERS_MAX && spread < total; spread++) {
		unsigned next = extreme(planner, chosen, false, true);
		if (next == count)
			return;
		chosen[next] = true;
	}
}

/* TOTAL pages over the chosen members by capacity; none gets more than it has and has room for. */
static void share_out(const struct planner *planner, const struct balance_volume *volume,
		      uint64_t total, const bool *chosen, uint64_t *target)
{
	unsigned count = planner->pool->member_count;
	uint64_t limit[POOL_MEMBERS_MAX], capacity = 0, left = total;

	for (unsigned i = 0; i < count; i++) {
		limit[i] = chosen[i] ? volume->pages[i] + room(planner, i) : 0;
		capacity += chosen[i] ? planner->pool->members[i].pages : 0;
		target[i] = 0;
	}
	for (unsigned i = 0; i < count && capacity > 0; i++)
		if (chosen[i])
			target[i] =
			    MIN_OF(limit[i], total * planner->pool->members[i].pages / capacity);
	for (unsigned i = 0; i < count; i++)
		left -= target[i];
	/* What rounding and limits left over: first where it is already. */
	for (unsigned i = 0; i < count && left > 0; i++) {
		uint64_t more = volume->pages[i] > target[i] ? volume->pages[i] - target[i] : 0;
		more = chosen[i] ? MIN_OF(more, left) : 0;
		target[i] += more;
		left -= more;
	}
	for (unsigned i = 0; i < count && left > 0; i++) {
		uint64_t more = MIN_OF(left, limit[i] - target[i]);
		target[i] += more;
		left -= more;
	}
}

static uint64_t transfer(struct planner *planner, unsigned volume, unsigned from, unsigned to,
			 uint64_t pages)
{
	const struct balance_member *members = planner->pool->members;

	pages = MIN_OF(pages, room(planner, to));
	if (pages == 0 || planner->count == planner->max ||
	    (members[from].durable && !members[to].durable))
		return 0;
	planner->transfers[planner->count++] = (struct balance_transfer){
	    .volume = volume, .from = from, .to = to, .pages = (uint32_t)pages};
	planner->used[from] -= pages;
	planner->used[to] += pages;
	return pages;
}

/* Moves what SOURCE has too much to where something is missing. */
static void even_out(struct planner *planner, unsigned volume, unsigned source, uint64_t *have,
		     const uint64_t *target)
{
	unsigned count = planner->pool->member_count;

	for (unsigned to = 0; to < count && have[source] > target[source]; to++) {
		if (have[to] >= target[to])
			continue;
		uint64_t moved =
		    transfer(planner, volume, source, to,
			     MIN_OF(have[source] - target[source], target[to] - have[to]));
		have[source] -= moved;
		have[to] += moved;
	}
	/* A drained member's pages go anywhere rather than stay. */
	for (unsigned to = 0; planner->pool->members[source].leaving && to < count; to++) {
		if (to == source || have[source] == 0)
			continue;
		uint64_t moved = transfer(planner, volume, source, to, have[source]);
		have[source] -= moved;
		have[to] += moved;
	}
}

/* Pages that persist are not moved to where they would not. */
static void bar_members(struct planner *planner, const struct balance_volume *volume)
{
	const struct balance_pool *pool = planner->pool;
	bool persists = false;

	for (unsigned i = 0; i < pool->member_count; i++)
		persists |= volume->pages[i] > 0 && pool->members[i].durable;
	for (unsigned i = 0; i < pool->member_count; i++)
		planner->barred[i] = persists && !pool->members[i].durable;
}

static void plan_volume(struct planner *planner, unsigned index, bool only_leaving)
{
	const struct balance_pool *pool = planner->pool;
	const struct balance_volume *volume = &pool->volumes[index];
	uint64_t have[POOL_MEMBERS_MAX] = {0}, target[POOL_MEMBERS_MAX] = {0}, total = 0, worst = 0;
	bool chosen[POOL_MEMBERS_MAX] = {false};

	for (unsigned i = 0; i < pool->member_count; i++) {
		have[i] = pool->members[i].gives ? volume->pages[i] : 0;
		total += have[i];
	}
	bar_members(planner, volume);
	choose_members(planner, volume, total, chosen);
	share_out(planner, volume, total, chosen, target);
	for (unsigned i = 0; i < pool->member_count; i++)
		if (pool->members[i].leaving && pool->members[i].gives)
			even_out(planner, index, i, have, target);
	for (unsigned i = 0; i < pool->member_count; i++)
		if (have[i] > target[i] && !pool->members[i].leaving)
			worst = MAX_OF(worst, have[i] - target[i]);
	if (only_leaving || worst <= 1 + total / BALANCE_SLACK_SHARE)
		return;
	for (unsigned i = 0; i < pool->member_count; i++)
		if (pool->members[i].gives && !pool->members[i].leaving)
			even_out(planner, index, i, have, target);
}

unsigned balance_capacity(const struct balance_pool *pool, bool only_leaving,
			  struct balance_transfer *ret_transfers, unsigned max)
{
	struct planner planner = {.pool = pool, .transfers = ret_transfers, .max = max};

	for (unsigned i = 0; i < pool->member_count; i++)
		planner.used[i] = pool->members[i].used;
	for (unsigned i = 0; i < pool->volume_count; i++)
		plan_volume(&planner, i, only_leaving);
	return planner.count;
}

void balance_drain_room(const struct balance_pool *pool, unsigned member, uint64_t *ret_pages,
			uint64_t *ret_room)
{
	uint64_t pages = 0, free_pages = 0;

	for (unsigned i = 0; i < pool->volume_count; i++)
		pages += pool->volumes[i].pages[member];
	for (unsigned i = 0; i < pool->member_count; i++) {
		const struct balance_member *other = &pool->members[i];
		if (i != member && other->takes && other->pages > other->used &&
		    (other->durable || !pool->members[member].durable))
			free_pages += other->pages - other->used;
	}
	*ret_pages = pages;
	*ret_room = free_pages;
}
