/* SPDX-License-Identifier: MIT
 *
 * A plan under way: what is left of it, and which page is next.  Private to the room.
 *
 * What cannot be begun for want of room on its member is passed over for the time being.
 */
#ifndef SANLAB_TARGET_ARRAY_MOVE_PLAN_H
#define SANLAB_TARGET_ARRAY_MOVE_PLAN_H

#include "target/array/balance_plan.h"
#include "target/array/page_move.h"

enum { PLAN_TRANSFERS_MAX = 512 };

struct move_plan {
	struct balance_transfer transfers[PLAN_TRANSFERS_MAX];
	uint32_t cursor[PLAN_TRANSFERS_MAX]; /* the volume's page where the search goes on */
	unsigned transfer_count;
	struct move_order orders[2 * BALANCE_SWAPS_MAX];
	unsigned order_count;
	bool under_way;
	uint64_t done, failed;
};

void move_plan_begin(struct move_plan *plan);
/* Two moves for each swap; the one whose member has room goes first. */
void move_plan_add_swaps(struct move_plan *plan, const struct pool *pool,
			 const struct balance_swaps *swaps);
bool move_plan_next(struct move_plan *plan, const struct pool *pool, struct move_order *ret_order);
uint64_t move_plan_left(const struct move_plan *plan);

#endif
