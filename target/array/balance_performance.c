/* SPDX-License-Identifier: MIT
 *
 * Performance balancing: which member is slow, which pages are to be swapped.
 */
#include <string.h>

#include "target/array/balance_plan.h"

const char *const balance_verdict_words[] = {
    [BALANCE_SWAP] = "one member is 20 ms above the fastest",
    [BALANCE_ALONE] = "fewer than two members take part",
    [BALANCE_FAST] = "all members are fast",
    [BALANCE_EVEN] = "all members are similarly slow",
    [BALANCE_ONCE] = "a member is slow for the first time",
    [BALANCE_SWINGS] = "the latency of the slow member swings",
    [BALANCE_TURNED] = "the members of the last swap have changed roles",
};

static bool swings(uint8_t slow)
{
	unsigned turns = 0;

	for (unsigned i = 0; i + 1 < BALANCE_HISTORY; i++)
		turns += (slow >> i & 1) != (slow >> (i + 1) & 1);
	return turns > 1;
}

static bool turned(const struct balance_watch *watch, unsigned slow, unsigned fast)
{
	return watch->swapped_round > 0 &&
	       watch->round - watch->swapped_round < BALANCE_TURN_ROUNDS &&
	       watch->swapped_from == fast && watch->swapped_to == slow;
}

enum balance_verdict balance_judge(struct balance_watch *watch, const struct balance_load *loads,
				   unsigned count, unsigned *ret_slow, unsigned *ret_fast)
{
	unsigned slow = count, fast = count, usable = 0;

	watch->round++;
	for (unsigned i = 0; i < count; i++) {
		watch->slow[i] = (uint8_t)(watch->slow[i] << 1);
		if (!loads[i].usable)
			continue;
		usable++;
		if (slow == count || loads[i].latency_ns > loads[slow].latency_ns)
			slow = i;
		if (fast == count || loads[i].latency_ns < loads[fast].latency_ns)
			fast = i;
	}
	if (usable < 2)
		return BALANCE_ALONE;
	for (unsigned i = 0; i < count; i++)
		watch->slow[i] |= loads[i].usable &&
				  loads[i].latency_ns >= loads[fast].latency_ns + BALANCE_GAP_NS;
	*ret_slow = slow;
	*ret_fast = fast;
	if (loads[slow].latency_ns < BALANCE_GAP_NS)
		return BALANCE_FAST;
	if (!(watch->slow[slow] & 1))
		return BALANCE_EVEN;
	if (swings(watch->slow[slow]))
		return BALANCE_SWINGS;
	if (!(watch->slow[slow] & 2))
		return BALANCE_ONCE;
	return turned(watch, slow, fast) ? BALANCE_TURNED : BALANCE_SWAP;
}

unsigned balance_peer(const struct balance_load *loads, unsigned count, unsigned slow,
		      const uint32_t *pages_of)
{
	unsigned best = count;

	for (unsigned i = 0; i < count; i++) {
		if (i == slow || !loads[i].usable || pages_of[i] == 0 ||
		    loads[i].latency_ns + BALANCE_GAP_NS > loads[slow].latency_ns)
			continue;
		if (best == count || loads[i].latency_ns < loads[best].latency_ns ||
		    (loads[i].latency_ns == loads[best].latency_ns &&
		     loads[i].ops_a_drive < loads[best].ops_a_drive))
			best = i;
	}
	return best;
}

/* Puts PAGE in at AT, where the last one may fall off the end. */
static void insert(struct balance_top *top, unsigned at, struct balance_page page)
{
	if (at == BALANCE_SWAPS_MAX)
		return;
	unsigned kept = MIN_OF(top->count, BALANCE_SWAPS_MAX - 1);
	memmove(&top->pages[at + 1], &top->pages[at], (kept - at) * sizeof *top->pages);
	top->pages[at] = page;
	top->count = kept + 1;
}

void balance_top_hot(struct balance_top *top, struct balance_page page)
{
	unsigned at = top->count;

	while (at > 0 && page.heat > top->pages[at - 1].heat)
		at--;
	insert(top, at, page);
}

void balance_top_cold(struct balance_top *top, struct balance_page page)
{
	unsigned at = top->count;

	while (at > 0 && page.heat < top->pages[at - 1].heat)
		at--;
	insert(top, at, page);
}

static uint64_t gain(const struct balance_swap *swap)
{
	return (uint64_t)swap->hot.heat - swap->cold.heat;
}

static void add(struct balance_swaps *swaps, const struct balance_swap *swap)
{
	unsigned at = swaps->count;

	while (at > 0 && gain(swap) > gain(&swaps->swaps[at - 1]))
		at--;
	if (at == BALANCE_SWAPS_MAX)
		return;
	unsigned kept = MIN_OF(swaps->count, BALANCE_SWAPS_MAX - 1);
	memmove(&swaps->swaps[at + 1], &swaps->swaps[at], (kept - at) * sizeof *swap);
	swaps->swaps[at] = *swap;
	swaps->count = kept + 1;
}

void balance_pair(struct balance_swaps *swaps, const struct balance_top *hot,
		  const struct balance_top *cold, unsigned volume, unsigned slow, unsigned fast)
{
	enum { WORTH_FACTOR = 4, WORTH_REQUESTS = 8 };

	for (unsigned i = 0; i < hot->count && i < cold->count; i++) {
		struct balance_swap swap = {
		    .volume = volume,
		    .slow = slow,
		    .fast = fast,
		    .hot = hot->pages[i],
		    .cold = cold->pages[i],
		};
		if (swap.hot.heat < WORTH_FACTOR * swap.cold.heat + WORTH_REQUESTS)
			return;
		add(swaps, &swap);
	}
}

void balance_limit(struct balance_swaps *swaps, uint64_t heat)
{
	uint64_t taken = 0;

	for (unsigned i = 0; i < swaps->count; i++) {
		taken += gain(&swaps->swaps[i]);
		/* One swap is always possible, however hot its page. */
		if (i > 0 && taken > heat / BALANCE_HEAT_SHARE) {
			swaps->count = i;
			return;
		}
	}
}
