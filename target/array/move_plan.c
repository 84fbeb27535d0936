/* SPDX-License-Identifier: MIT
 *
 * The plan under way.
 */
#include "target/array/move_plan.h"

void move_plan_begin(struct move_plan *plan)
{
	plan->transfer_count = 0;
	plan->order_count = 0;
	plan->done = 0;
	plan->failed = 0;
	plan->under_way = true;
}

void move_plan_add_swaps(struct move_plan *plan, const struct pool *pool,
			 const struct balance_swaps *swaps)
{
	for (unsigned i = 0; i < swaps->count; i++) {
		const struct balance_swap *swap = &swaps->swaps[i];
		struct volume *volume = pool->volumes[swap->volume];

		plan->orders[plan->order_count++] =
		    (struct move_order){volume, swap->hot.index, swap->slow, swap->fast};
		plan->orders[plan->order_count++] =
		    (struct move_order){volume, swap->cold.index, swap->fast, swap->slow};
	}
}

static bool next_order(struct move_plan *plan, const struct pool *pool,
		       struct move_order *ret_order)
{
	for (unsigned i = 0; i < plan->order_count; i++) {
		if (!member_takes_pages(pool->members[plan->orders[i].to]))
			continue;
		*ret_order = plan->orders[i];
		plan->order_count--;
		for (; i < plan->order_count; i++)
			plan->orders[i] = plan->orders[i + 1];
		return true;
	}
	return false;
}

static bool next_page(struct move_plan *plan, unsigned index, const struct pool *pool,
		      struct move_order *ret_order)
{
	struct balance_transfer *transfer = &plan->transfers[index];
	struct volume *volume = pool->volumes[transfer->volume];

	while (plan->cursor[index] < volume->map.count) {
		uint32_t page = plan->cursor[index]++;
		const struct page_entry *entry = &volume->map.entries[page];
		if (entry->page == PAGE_NONE || entry->member != transfer->from || entry->leaving ||
		    entry->moving)
			continue;
		transfer->pages--;
		*ret_order = (struct move_order){volume, page, transfer->from, transfer->to};
		return true;
	}
	transfer->pages = 0; /* unmapped meanwhile */
	return false;
}

bool move_plan_next(struct move_plan *plan, const struct pool *pool, struct move_order *ret_order)
{
	if (next_order(plan, pool, ret_order))
		return true;
	for (unsigned i = 0; i < plan->transfer_count; i++)
		if (plan->transfers[i].pages > 0 &&
		    member_takes_pages(pool->members[plan->transfers[i].to]) &&
		    next_page(plan, i, pool, ret_order))
			return true;
	return false;
}

uint64_t move_plan_left(const struct move_plan *plan)
{
	uint64_t left = plan->order_count;

	for (unsigned i = 0; i < plan->transfer_count; i++)
		left += plan->transfers[i].pages;
	return left;
}
