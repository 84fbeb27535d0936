/* SPDX-License-Identifier: MIT
 *
 * Dirty stripes: two treaps, the list by age, the queue of whole ones.
 */
#include "target/array/cache_plan.h"

#include <assert.h>

#include "base/bytes.h"

/* ---- treaps ---- */

static uint64_t priority(const struct plan_stripe *stripe)
{
	uint64_t x = stripe->number + UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Cuts ROOT into what is below NUMBER and what is not. */
static void split(struct plan_stripe *root, uint64_t number, struct plan_stripe **below,
		  struct plan_stripe **rest)
{
	while (root) {
		if (root->number < number) {
			*below = root;
			below = &root->right;
			root = root->right;
		} else {
			*rest = root;
			rest = &root->left;
			root = root->left;
		}
	}
	*below = NULL;
	*rest = NULL;
}

static struct plan_stripe **find_link(struct plan_stripe **link, uint64_t number)
{
	while (*link && (*link)->number != number)
		link = (*link)->number < number ? &(*link)->right : &(*link)->left;
	return link;
}

static void insert(struct plan_stripe **root, struct plan_stripe *stripe)
{
	struct plan_stripe **link = root;
	while (*link && priority(*link) > priority(stripe))
		link = (*link)->number < stripe->number ? &(*link)->right : &(*link)->left;
	struct plan_stripe *under = *link;
	split(under, stripe->number, &stripe->left, &stripe->right);
	*link = stripe;
}

static void take_out(struct plan_stripe **root, struct plan_stripe *stripe)
{
	struct plan_stripe **link = find_link(root, stripe->number);
	struct plan_stripe *low = stripe->left, *high = stripe->right;

	assert(*link == stripe);
	while (low && high) {
		if (priority(low) > priority(high)) {
			*link = low;
			link = &low->right;
			low = low->right;
		} else {
			*link = high;
			link = &high->left;
			high = high->left;
		}
	}
	*link = low ? low : high;
}

/* The first that is not below NUMBER. */
static struct plan_stripe *find_from(struct plan_stripe *root, uint64_t number)
{
	struct plan_stripe *best = NULL;
	while (root) {
		if (root->number >= number) {
			best = root;
			root = root->left;
		} else {
			root = root->right;
		}
	}
	return best;
}

/* ---- stripes ---- */

void plan_init(struct plan *plan, uint32_t stripe_sectors, uint64_t age_ns, uint32_t stripes_max)
{
	*plan = (struct plan){.stripe_sectors = stripe_sectors, .age_ns = age_ns};
	TAILQ_INIT(&plan->age);
	TAILQ_INIT(&plan->whole);
	freelist_init(&plan->stripes, sizeof(struct plan_stripe), stripes_max);
}

static void give_all(struct plan *plan, struct plan_stripe **root)
{
	while (*root) {
		struct plan_stripe *stripe = *root;
		take_out(root, stripe);
		freelist_give(&plan->stripes, stripe);
	}
}

void plan_done(struct plan *plan)
{
	give_all(plan, &plan->ready);
	give_all(plan, &plan->held);
	freelist_done(&plan->stripes);
}

struct plan_stripe *plan_find(const struct plan *plan, uint64_t number)
{
	struct plan_stripe *ready = plan->ready, *held = plan->held;
	struct plan_stripe *stripe = *find_link(&ready, number);
	return stripe ? stripe : *find_link(&held, number);
}

/* Whole stripes queue in the order in which they became whole: a sequential writer's own. */
static void requeue(struct plan *plan, struct plan_stripe *stripe)
{
	bool whole = !stripe->held && stripe->dirty == plan->stripe_sectors;
	if (whole == stripe->whole_queued)
		return;
	if (whole)
		TAILQ_INSERT_TAIL(&plan->whole, stripe, whole_entry);
	else
		TAILQ_REMOVE(&plan->whole, stripe, whole_entry);
	stripe->whole_queued = whole;
}

static void show(struct plan *plan, struct plan_stripe *stripe)
{
	stripe->held = false;
	insert(&plan->ready, stripe);
	struct plan_stripe *oldest = TAILQ_FIRST(&plan->age);
	if (oldest && stripe->since_ns < oldest->since_ns)
		TAILQ_INSERT_HEAD(&plan->age, stripe, age_entry);
	else
		TAILQ_INSERT_TAIL(&plan->age, stripe, age_entry);
	requeue(plan, stripe);
}

static void hide(struct plan *plan, struct plan_stripe *stripe)
{
	take_out(&plan->ready, stripe);
	TAILQ_REMOVE(&plan->age, stripe, age_entry);
	stripe->held = true;
	requeue(plan, stripe);
}

void plan_dirtied(struct plan *plan, uint64_t number, uint32_t sectors, uint64_t now_ns)
{
	struct plan_stripe *stripe = plan_find(plan, number);
	if (!stripe) {
		stripe = freelist_take(&plan->stripes);
		assert(stripe); /* there are as many as pages */
		*stripe = (struct plan_stripe){.number = number, .since_ns = now_ns};
		show(plan, stripe);
	}
	stripe->dirty += sectors;
	assert(stripe->dirty <= plan->stripe_sectors);
	requeue(plan, stripe);
}

void plan_cleaned(struct plan *plan, uint64_t number, uint32_t sectors)
{
	struct plan_stripe *stripe = plan_find(plan, number);
	assert(stripe && stripe->dirty >= sectors);
	stripe->dirty -= sectors;
	requeue(plan, stripe);
	if (stripe->dirty || stripe->held)
		return;
	hide(plan, stripe);
	freelist_give(&plan->stripes, stripe);
}

void plan_hold(struct plan *plan, struct plan_stripe *stripe)
{
	assert(!stripe->held);
	hide(plan, stripe);
	insert(&plan->held, stripe);
}

void plan_release(struct plan *plan, struct plan_stripe *stripe, uint64_t now_ns)
{
	assert(stripe->held);
	take_out(&plan->held, stripe);
	if (!stripe->dirty) {
		freelist_give(&plan->stripes, stripe);
		return;
	}
	stripe->since_ns = now_ns;
	show(plan, stripe);
}

struct plan_stripe *plan_held_from(const struct plan *plan, uint64_t number)
{
	return find_from(plan->held, number);
}

unsigned plan_depth(uint64_t dirty, uint64_t limit, unsigned most)
{
	uint64_t low = limit * CACHE_LOW_PERCENT / 100, high = limit * CACHE_HIGH_PERCENT / 100;
	if (dirty >= high)
		return most;
	if (dirty < low)
		return 0;
	return 1 + (unsigned)((most - 1) * (dirty - low) / (high - low));
}

struct plan_stripe *plan_next(struct plan *plan, bool aged_only, uint64_t now_ns)
{
	struct plan_stripe *stripe;

	if (aged_only)
		return plan_due_ns(plan) <= now_ns ? TAILQ_FIRST(&plan->age) : NULL;
	stripe = TAILQ_FIRST(&plan->whole);
	if (stripe)
		return stripe;
	stripe = find_from(plan->ready, plan->cursor);
	if (!stripe)
		stripe = find_from(plan->ready, 0);
	if (stripe)
		plan->cursor = stripe->number + 1;
	return stripe;
}

uint64_t plan_due_ns(const struct plan *plan)
{
	const struct plan_stripe *oldest = TAILQ_FIRST(&plan->age);
	return oldest ? oldest->since_ns + plan->age_ns : UINT64_MAX;
}
