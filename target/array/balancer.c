/* SPDX-License-Identifier: MIT
 *
 * Rounds, plans and drains of a pool.
 */
#include "target/array/balancer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/heat_scan.h"
#include "target/array/move_plan.h"
#include "target/array/page_clean.h"

enum {
	SAMPLE_EVERY = 16, /* of the requests are timed */
	SAMPLES_MIN = 4,   /* of a round, for a mean */
};
#define FIRST_ROUND_NS (10 * NS_PER_S) /* a member that is new in the lab need not wait long */

const char *const drain_state_names[] = {
    [DRAIN_NONE] = "none",
    [DRAIN_UNDER_WAY] = "under-way",
    [DRAIN_STUCK] = "stuck",
    [DRAIN_EMPTY] = "empty",
    NULL,
};

struct drain {
	enum drain_state state;
	uint64_t moved_pages;
	char why[160];
};

struct balancer {
	struct loop *loop;
	struct pool *pool;
	struct balance_config config;
	struct loop_timer round, slice;
	bool stopping, scanning, forced;
	struct heat_scan scan;
	struct balance_watch watch;
	enum balance_verdict verdict;
	unsigned slow, fast;
	uint64_t seen_ops[POOL_MEMBERS_MAX];
	struct balance_volume volumes[POOL_VOLUMES_MAX]; /* of balance_pool, while planning */
	struct move_plan plan;
	bool drain_asked; /* since the plan under way was made */
	struct drain drains[POOL_MEMBERS_MAX];
	struct hot_page hottest[POOL_HOT_PAGES_MAX];
	unsigned hottest_count;
	struct pool_balance status;
};

static uint64_t pages_of_volumes(const struct pool *pool, unsigned member)
{
	uint64_t pages = 0;

	for (unsigned i = 0; i < pool->volume_count; i++)
		pages += pool->volumes[i]->member_pages[member];
	return pages;
}

/* ---- drains ---- */

static bool any_drain(const struct balancer *balancer)
{
	for (unsigned i = 0; i < balancer->pool->member_count; i++)
		if (balancer->drains[i].state == DRAIN_UNDER_WAY ||
		    balancer->drains[i].state == DRAIN_STUCK)
			return true;
	return false;
}

static void drain_became(struct balancer *balancer, unsigned index, enum drain_state state,
			 const char *why)
{
	struct drain *drain = &balancer->drains[index];

	snprintf(drain->why, sizeof drain->why, "%s", why);
	if (drain->state == state)
		return;
	drain->state = state;
	if (state != DRAIN_NONE)
		pool_event(balancer->pool, "drain of member %s: %s%s%s",
			   balancer->pool->members[index]->name, drain_state_names[state],
			   *why ? ", " : "", why);
}

static void look_for_empty(struct balancer *balancer)
{
	for (unsigned i = 0; i < balancer->pool->member_count; i++) {
		const struct member *member = balancer->pool->members[i];
		if (!member->draining || pages_of_volumes(balancer->pool, i) > 0 ||
		    cleaner_count_of(balancer->pool->cleaner, i) > 0)
			continue;
		drain_became(balancer, i, DRAIN_EMPTY,
			     member->used_pages > 0
				 ? "but for pages of volumes that the lab does not name"
				 : "");
	}
}

/* Nothing could be planned for the drains. */
static void look_for_stuck(struct balancer *balancer)
{
	for (unsigned i = 0; i < balancer->pool->member_count; i++) {
		if (!balancer->pool->members[i]->draining ||
		    pages_of_volumes(balancer->pool, i) == 0)
			continue;
		drain_became(balancer, i, DRAIN_STUCK,
			     member_is_offline(balancer->pool->members[i])
				 ? "the member is offline"
				 : "no other member has room, or pages cannot be read");
	}
}

/* ---- plans ---- */

static void describe(struct balancer *balancer, struct balance_pool *ret_pool)
{
	const struct pool *pool = balancer->pool;

	*ret_pool = (struct balance_pool){
	    .member_count = pool->member_count,
	    .volumes = balancer->volumes,
	    .volume_count = pool->volume_count,
	};
	for (unsigned i = 0; i < pool->member_count; i++) {
		const struct member *member = pool->members[i];
		ret_pool->members[i] = (struct balance_member){
		    .pages = member->page_count,
		    .used = member->used_pages,
		    .takes = !member_is_offline(member) && !member->draining,
		    .gives = !member_is_offline(member),
		    .leaving = member->draining,
		    .durable = member->journal != NULL,
		};
	}
	for (unsigned i = 0; i < pool->volume_count; i++)
		memcpy(balancer->volumes[i].pages, pool->volumes[i]->member_pages,
		       sizeof balancer->volumes[i].pages);
}

/* True when there is something to move. */
static bool plan_capacity(struct balancer *balancer, bool only_leaving)
{
	struct move_plan *plan = &balancer->plan;
	struct balance_pool pool;

	describe(balancer, &pool);
	unsigned count = balance_capacity(&pool, only_leaving, plan->transfers, PLAN_TRANSFERS_MAX);
	if (count == 0)
		return false;
	move_plan_begin(plan);
	plan->transfer_count = count;
	for (unsigned i = 0; i < count; i++)
		plan->cursor[i] = 0;
	mover_kick(balancer->pool->mover);
	return true;
}

static void drains_go_on(struct balancer *balancer)
{
	if (balancer->stopping || balancer->plan.under_way || !any_drain(balancer))
		return;
	look_for_empty(balancer);
	if (!any_drain(balancer))
		return;
	if (!plan_capacity(balancer, true)) {
		if (!cleaner_will_free(balancer->pool->cleaner))
			look_for_stuck(balancer);
		return;
	}
	for (unsigned i = 0; i < balancer->pool->member_count; i++)
		if (balancer->drains[i].state == DRAIN_STUCK)
			drain_became(balancer, i, DRAIN_UNDER_WAY, "");
}

static void plan_finished(struct balancer *balancer)
{
	struct pool *pool = balancer->pool;
	bool progress = balancer->plan.done > 0 || balancer->drain_asked;

	balancer->drain_asked = false;
	balancer->plan.under_way = false;
	/* Told once a plan: initiators would have to read the map again for each page. */
	for (unsigned i = 0; i < pool->volume_count; i++) {
		pool->volumes[i]->slice_changes += pool->volumes[i]->moved;
		pool->volumes[i]->moved = false;
	}
	look_for_empty(balancer);
	if (progress)
		drains_go_on(balancer);
	else if (any_drain(balancer))
		look_for_stuck(balancer); /* the next round tries again */
}

static bool next_move(void *arg, struct move_order *ret_order)
{
	struct balancer *balancer = arg;
	struct pool *pool = balancer->pool;

	if (!balancer->plan.under_way)
		return false;
	if (move_plan_next(&balancer->plan, pool, ret_order))
		return true;
	if (mover_is_idle(pool->mover) &&
	    (move_plan_left(&balancer->plan) == 0 || !cleaner_will_free(pool->cleaner)))
		plan_finished(balancer);
	return false;
}

static void move_ended(void *arg, const struct move_order *order, int status)
{
	struct balancer *balancer = arg;

	balancer->plan.done += status == 0;
	balancer->plan.failed += status != 0;
	if (status == 0 && balancer->pool->members[order->from]->draining)
		balancer->drains[order->from].moved_pages++;
	if (status && status != -ECANCELED)
		pool_event(balancer->pool, "page %u of volume %s did not move from %s to %s: %s",
			   order->index, order->volume->name,
			   balancer->pool->members[order->from]->name,
			   balancer->pool->members[order->to]->name, strerror(-status));
}

void balancer_page_freed(struct balancer *balancer)
{
	if (balancer->stopping)
		return;
	mover_kick(balancer->pool->mover);
	look_for_empty(balancer);
	drains_go_on(balancer);
}

/* ---- rounds ---- */

/* Mean latency of the round: of the requests that ended, and of those that hang. */
static uint64_t measure_latency(struct member *member, uint64_t now_ns)
{
	uint32_t hanging;
	uint64_t sum_ns = ages_round(&member->ages, now_ns, &hanging), count = hanging;

	if (member->latency_count >= SAMPLES_MIN) {
		sum_ns += member->latency_sum_ns * member->sample_every;
		count += member->latency_count * member->sample_every;
	}
	member->latency_sum_ns = 0;
	member->latency_count = 0;
	return count ? sum_ns / count : 0;
}

static void measure(struct balancer *balancer)
{
	struct pool *pool = balancer->pool;

	for (unsigned i = 0; i < pool->member_count; i++) {
		struct member *member = pool->members[i];
		uint64_t ops = member->counters.reads + member->counters.writes - member->move_ops;
		uint64_t mean = measure_latency(member, loop_now_ns(balancer->loop));
		balancer->status.latency_ns[i] = mean;
		balancer->scan.loads[i] = (struct balance_load){
		    .latency_ns = mean,
		    .ops_a_drive = (ops - balancer->seen_ops[i]) / member->active_count,
		    .usable = !member_is_offline(member) && !member->draining,
		};
		balancer->seen_ops[i] = ops;
	}
}

static void round_begin(void *arg)
{
	struct balancer *balancer = arg;
	struct pool *pool = balancer->pool;

	if (balancer->stopping || balancer->scanning)
		return;
	balancer->status.rounds++;
	balancer->scanning = true;
	heat_scan_begin(&balancer->scan, pool);
	measure(balancer);
	balancer->verdict = balance_judge(&balancer->watch, balancer->scan.loads,
					  pool->member_count, &balancer->slow, &balancer->fast);
	balancer->scan.swapping = balancer->verdict == BALANCE_SWAP;
	balancer->scan.slow = balancer->slow;
	loop_timer_set(balancer->loop, &balancer->slice, loop_now_ns(balancer->loop));
}

static void decide_performance(struct balancer *balancer)
{
	struct heat_scan *scan = &balancer->scan;
	char *text = balancer->status.performance_decision;
	size_t size = sizeof balancer->status.performance_decision;

	if (balancer->verdict != BALANCE_SWAP) {
		snprintf(text, size, "nothing: %s", balance_verdict_words[balancer->verdict]);
		return;
	}
	const char *slow = balancer->pool->members[balancer->slow]->name;
	uint64_t slow_us = scan->loads[balancer->slow].latency_ns / NS_PER_US;
	uint64_t fast_us = scan->loads[balancer->fast].latency_ns / NS_PER_US;
	balance_limit(&scan->swaps, scan->member_heat[balancer->slow]);
	if (scan->swaps.count == 0) {
		snprintf(text, size,
			 "nothing: %s is slow (%llu us, fastest %llu us), but no page of it is "
			 "clearly hotter than those it could be swapped for",
			 slow, (unsigned long long)slow_us, (unsigned long long)fast_us);
		return;
	}
	move_plan_begin(&balancer->plan);
	move_plan_add_swaps(&balancer->plan, balancer->pool, &scan->swaps);
	balancer->watch.swapped_round = balancer->watch.round;
	balancer->watch.swapped_from = balancer->slow;
	balancer->watch.swapped_to = scan->swaps.swaps[0].fast;
	balancer->status.performance_plans++;
	snprintf(text, size, "%u hot pages of %s (%llu us, fastest %llu us) are swapped",
		 scan->swaps.count, slow, (unsigned long long)slow_us, (unsigned long long)fast_us);
	mover_kick(balancer->pool->mover);
}

static bool decide_capacity(struct balancer *balancer)
{
	char *text = balancer->status.capacity_decision;
	size_t size = sizeof balancer->status.capacity_decision;

	if (!plan_capacity(balancer, false)) {
		snprintf(text, size, "nothing: volumes are spread by capacity");
		return false;
	}
	balancer->status.capacity_plans++;
	snprintf(text, size, "%llu pages are moved to spread volumes by capacity",
		 (unsigned long long)move_plan_left(&balancer->plan));
	return true;
}

static void decide(struct balancer *balancer)
{
	struct pool_balance *status = &balancer->status;
	bool capacity = balancer->config.capacity || balancer->forced;
	bool performance = balancer->config.performance || balancer->forced;

	drains_go_on(balancer);
	if (balancer->plan.under_way) {
		snprintf(status->capacity_decision, sizeof status->capacity_decision,
			 "nothing: pages are being moved");
		snprintf(status->performance_decision, sizeof status->performance_decision,
			 "nothing: pages are being moved");
		return;
	}
	if (!capacity)
		snprintf(status->capacity_decision, sizeof status->capacity_decision,
			 "nothing: the lab says so");
	if (!performance)
		snprintf(status->performance_decision, sizeof status->performance_decision,
			 "nothing: the lab says so");
	bool moving = capacity && decide_capacity(balancer);
	if (performance && moving)
		snprintf(status->performance_decision, sizeof status->performance_decision,
			 "nothing: pages are being moved for capacity");
	else if (performance)
		decide_performance(balancer);
}

static void round_slice(void *arg)
{
	struct balancer *balancer = arg;
	uint64_t now = loop_now_ns(balancer->loop);

	if (!heat_scan_slice(&balancer->scan)) {
		loop_timer_set(balancer->loop, &balancer->slice, now);
		return;
	}
	balancer->scanning = false;
	balancer->hottest_count = balancer->scan.hottest_count;
	memcpy(balancer->hottest, balancer->scan.hottest, sizeof balancer->hottest);
	decide(balancer);
	balancer->forced = false;
	if (balancer->config.every_ns)
		loop_timer_set(balancer->loop, &balancer->round, now + balancer->config.every_ns);
}

/* ---- opening ---- */

int balancer_open(struct loop *loop, struct pool *pool, const struct balance_config *config,
		  struct balancer **ret_balancer)
{
	struct balancer *balancer = calloc(1, sizeof *balancer);
	if (!balancer)
		return -ENOMEM;
	struct mover_owner owner = {.next = next_move, .ended = move_ended, .arg = balancer};
	int rc = mover_open(loop, pool, config->rate_bytes_per_s, &owner, &pool->mover);
	if (rc) {
		free(balancer);
		return rc;
	}
	balancer->loop = loop;
	balancer->pool = pool;
	balancer->config = *config;
	loop_timer_init(&balancer->round, round_begin, balancer);
	loop_timer_init(&balancer->slice, round_slice, balancer);
	if (config->every_ns)
		loop_timer_set(loop, &balancer->round,
			       loop_now_ns(loop) + MIN_OF(config->every_ns, FIRST_ROUND_NS));
	for (unsigned i = 0; config->every_ns && pool->member_count > 1 && i < pool->member_count;
	     i++)
		pool->members[i]->sample_every = pool->members[i]->sample_left = SAMPLE_EVERY;
	*ret_balancer = balancer;
	return 0;
}

void balancer_start(struct balancer *balancer)
{
	for (unsigned i = 0; i < balancer->pool->member_count; i++)
		if (balancer->pool->members[i]->draining)
			drain_became(balancer, i, DRAIN_UNDER_WAY, "");
	drains_go_on(balancer);
}

void balancer_stop(struct balancer *balancer)
{
	balancer->stopping = true;
	loop_timer_cancel(balancer->loop, &balancer->round);
	loop_timer_cancel(balancer->loop, &balancer->slice);
}

struct balancer *balancer_close(struct balancer *balancer)
{
	if (!balancer)
		return NULL;
	balancer_stop(balancer);
	free(balancer);
	return NULL;
}

/* ---- what is asked from outside ---- */

/* A crash must not give the member new pages of which nobody knows that they are to leave. */
static int set_draining(struct member *member, bool draining, struct err *err)
{
	int rc = member->journal ? page_journal_set_drains(member->journal, draining) : 0;
	if (rc)
		return err_set(err, rc, "cannot write the page map of member %s: %s", member->name,
			       strerror(-rc));
	member->draining = draining;
	return 0;
}

int pool_drain(struct pool *pool, struct member *member, struct err *err)
{
	struct balancer *balancer = pool->balancer;
	unsigned index = pool_index_of(pool, member);
	struct balance_pool state;
	uint64_t pages, room;

	if (member->draining)
		return err_set(err, -EALREADY, "member %s is being drained already", member->name);
	if (member_is_offline(member))
		return err_set(err, -ENODEV, "member %s is offline", member->name);
	describe(balancer, &state);
	balance_drain_room(&state, index, &pages, &room);
	if (pages > room) {
		err_set(err, -ENOSPC,
			"member %s holds %llu pages of volumes, the others of pool %s have room "
			"for %llu",
			member->name, (unsigned long long)pages, pool->name,
			(unsigned long long)room);
		err_hint(err, "add a member to the pool, or delete or unmap what is not needed");
		return -ENOSPC;
	}
	int rc = set_draining(member, true, err);
	if (rc)
		return rc;
	balancer->drains[index] = (struct drain){.state = DRAIN_NONE};
	drain_became(balancer, index, DRAIN_UNDER_WAY, "");
	balancer->drain_asked = balancer->plan.under_way;
	drains_go_on(balancer);
	return 0;
}

int pool_drain_stop(struct pool *pool, struct member *member, struct err *err)
{
	struct balancer *balancer = pool->balancer;
	unsigned index = pool_index_of(pool, member);

	int rc = member->draining ? set_draining(member, false, err) : -EALREADY;
	if (rc)
		return rc == -EALREADY ? 0 : rc;
	balancer->drains[index] = (struct drain){.state = DRAIN_NONE};
	pool_event(pool, "drain of member %s: stopped", member->name);
	/* What is under way ends; what was planned for the drain is forgotten with the plan. */
	balancer->plan.transfer_count = 0;
	mover_kick(pool->mover);
	return 0;
}

void pool_drain_progress(const struct pool *pool, const struct member *member,
			 struct drain_progress *ret_progress)
{
	unsigned index = pool_index_of(pool, member);
	const struct drain *drain = &pool->balancer->drains[index];

	*ret_progress = (struct drain_progress){
	    .state = drain->state,
	    .left_bytes = pages_of_volumes(pool, index) * POOL_PAGE_BYTES,
	    .moved_bytes = drain->moved_pages * POOL_PAGE_BYTES,
	};
	snprintf(ret_progress->why, sizeof ret_progress->why, "%s", drain->why);
}

void pool_moves(const struct pool *pool, struct pool_moves *ret_moves)
{
	const struct balancer *balancer = pool->balancer;

	mover_counters(pool->mover, ret_moves);
	ret_moves->planned = balancer->plan.under_way ? move_plan_left(&balancer->plan) : 0;
	ret_moves->cleaning = cleaner_count(pool->cleaner);
}

void pool_moves_pause(struct pool *pool, bool paused)
{
	mover_pause(pool->mover, paused);
}

void pool_balance(const struct pool *pool, struct pool_balance *ret_balance)
{
	*ret_balance = pool->balancer->status;
}

void pool_balance_now(struct pool *pool)
{
	pool->balancer->forced = true;
	round_begin(pool->balancer);
}

unsigned pool_hot_pages(const struct pool *pool, struct pool_hot_page *ret_pages, unsigned max)
{
	const struct balancer *balancer = pool->balancer;
	unsigned count = MIN_OF(max, balancer->hottest_count);

	for (unsigned i = 0; i < count; i++) {
		const struct hot_page *hot = &balancer->hottest[i];
		const struct page_entry *entry = &hot->volume->map.entries[hot->index];
		ret_pages[i] = (struct pool_hot_page){
		    .volume = hot->volume,
		    .offset_bytes = hot->index * POOL_PAGE_BYTES,
		    .member = entry->page == PAGE_NONE ? NULL : pool->members[entry->member],
		    .heat = hot->heat,
		};
	}
	return count;
}
