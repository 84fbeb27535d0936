/* SPDX-License-Identifier: MIT
 *
 * Pools in the status document: space, moves, balancing, hot pages, what happened.
 */
#include "target/array/pool_status.h"
#include "target/control/command.h"

static json_t *moves_status(const struct pool *pool)
{
	struct pool_moves at;

	pool_moves(pool, &at);
	return json_pack("{s:b, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:i}", "paused", at.paused,
			 "under_way", (int)at.under_way, "planned", (json_int_t)at.planned, "done",
			 (json_int_t)at.done, "failed", (json_int_t)at.failed, "cancelled",
			 (json_int_t)at.cancelled, "copied_bytes", (json_int_t)at.copied_bytes,
			 "longest_pause_ns", (json_int_t)at.longest_pause_ns, "cleaning",
			 (int)at.cleaning);
}

static json_t *hot_pages(const struct pool *pool)
{
	struct pool_hot_page pages[POOL_HOT_PAGES_MAX];
	unsigned count = pool_hot_pages(pool, pages, POOL_HOT_PAGES_MAX);
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:s, s:I}", "volume",
						      volume_name(pages[i].volume), "offset_bytes",
						      (json_int_t)pages[i].offset_bytes, "member",
						      member_name(pages[i].member), "heat",
						      (json_int_t)pages[i].heat));
	return list;
}

static json_t *events_status(const struct pool *pool)
{
	struct pool_event events[POOL_EVENTS_MAX];
	unsigned count = pool_events(pool, events, POOL_EVENTS_MAX);
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(list,
				      json_pack("{s:I, s:s}", "at_ns", (json_int_t)events[i].at_ns,
						"text", events[i].text));
	return list;
}

static json_t *pool_document(struct pool *pool)
{
	struct pool_balance balance;
	struct pool_space space;
	json_t *latencies = json_object(), *status;

	pool_space(pool, &space);
	pool_balance(pool, &balance);
	for (unsigned i = 0; i < pool_member_count(pool); i++)
		json_object_set_new(latencies, member_name(pool_member(pool, i)),
				    json_integer((json_int_t)balance.latency_ns[i]));
	status = json_pack("{s:s, s:I, s:I, s:I, s:I, s:i}", "pool", pool_name(pool), "total_bytes",
			   (json_int_t)space.total_bytes, "used_bytes",
			   (json_int_t)space.used_bytes, "free_bytes", (json_int_t)space.free_bytes,
			   "subscribed_bytes", (json_int_t)space.subscribed_bytes, "warned_percent",
			   (int)space.warned_percent);
	json_object_set_new(status, "moves", moves_status(pool));
	json_object_set_new(status, "balance_rounds", json_integer((json_int_t)balance.rounds));
	json_object_set_new(status, "capacity_decision", json_string(balance.capacity_decision));
	json_object_set_new(status, "performance_decision",
			    json_string(balance.performance_decision));
	json_object_set_new(status, "member_latency_ns", latencies);
	json_object_set_new(status, "hot_pages", hot_pages(pool));
	json_object_set_new(status, "events", events_status(pool));
	return status;
}

json_t *control_pools_status(struct target *target)
{
	struct group *group = target_group(target);
	json_t *pools = json_array();

	for (size_t i = 0; i < group_pool_count(group); i++)
		json_array_append_new(pools, pool_document(group_pool(group, i)));
	return pools;
}

json_t *control_drain_status(struct target *target, struct member *member)
{
	struct pool *pool = group_pool_of(target_group(target), member);
	struct drain_progress at;

	pool_drain_progress(pool, member, &at);
	return json_pack("{s:s, s:I, s:I, s:s}", "state", drain_state_names[at.state], "left_bytes",
			 (json_int_t)at.left_bytes, "moved_bytes", (json_int_t)at.moved_bytes,
			 "why", at.why);
}
