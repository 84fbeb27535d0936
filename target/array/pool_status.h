/* SPDX-License-Identifier: MIT
 *
 * What is known of a pool from outside the room, and what can be done to it: space, slices, page
 * moves, drains, balancing.  For the control socket and the lab's timeline.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_TARGET_ARRAY_POOL_STATUS_H
#define SANLAB_TARGET_ARRAY_POOL_STATUS_H

#include "target/array/array.h"

enum {
	POOL_MEMBERS_MAX = 8, /* as of an EqualLogic pool */
	POOL_EVENTS_MAX = 32, /* the last ones are kept */
	POOL_HOT_PAGES_MAX = 16,
};

size_t group_pool_count(const struct group *group);
struct pool *group_pool(struct group *group, size_t index);
struct pool *group_find_pool(struct group *group, const char *name);
struct pool *group_pool_of(struct group *group, const struct member *member);
struct member *group_find_member(struct group *group, const char *name);

const char *pool_name(const struct pool *pool);
unsigned pool_member_count(const struct pool *pool);
struct member *pool_member(struct pool *pool, unsigned index);

/* ---- space ---- */

struct pool_space {
	uint64_t total_bytes, used_bytes, free_bytes;
	uint64_t subscribed_bytes; /* what the volumes could come to need, as initiators see them */
	unsigned warned_percent;   /* the highest threshold that is passed, or 0 */
};
void pool_space(const struct pool *pool, struct pool_space *ret_space);

struct member_space {
	uint64_t total_bytes, used_bytes;
	uint64_t unclaimed_bytes; /* of volumes the lab does not name, or beyond a volume's end */
};
void member_space(const struct pool *pool, const struct member *member,
		  struct member_space *ret_space);

/* Bytes of the volume on each member of its pool, by the member's index there. */
void volume_slices(const struct volume *volume, uint64_t ret_bytes[POOL_MEMBERS_MAX]);
/* Grows whenever the slice map changed by moves (not by first writes or UNMAP). */
uint64_t volume_slice_changes(const struct volume *volume);

/* ---- a member that is lost, or is to leave ---- */

/* Offline: all its I/O ends with -ENODEV, it takes no pages, and moves from and to it stop. */
void member_set_offline(struct member *member, bool offline);
bool member_is_offline(const struct member *member);

enum drain_state {
	DRAIN_NONE,
	DRAIN_UNDER_WAY,
	DRAIN_STUCK, /* nothing can be moved at present; `why` tells */
	DRAIN_EMPTY, /* no volume of the lab has a page there */
};
extern const char *const drain_state_names[];

struct drain_progress {
	enum drain_state state;
	uint64_t left_bytes, moved_bytes;
	char why[160];
};
/* Moves every page of the member to the others of its pool; it takes no new ones.  -ENOSPC when
 * they have no room, -ENODEV while the member is offline, -EALREADY.  Lasts until it is stopped;
 * with a file store also over restarts of the target: noted before anything moves. */
int pool_drain(struct pool *pool, struct member *member, struct err *err);
int pool_drain_stop(struct pool *pool, struct member *member, struct err *err);
void pool_drain_progress(const struct pool *pool, const struct member *member,
			 struct drain_progress *ret_progress);

/* ---- moves and balancing ---- */

struct pool_moves {
	bool paused;
	unsigned under_way;
	uint64_t planned; /* of the present plan, not begun yet */
	uint64_t done, failed, cancelled;
	uint64_t copied_bytes;
	uint64_t longest_pause_ns; /* a page's requests waited for its switch */
	unsigned cleaning;	   /* pages that were left, on their way to become free */
};
void pool_moves(const struct pool *pool, struct pool_moves *ret_moves);
/* No page is begun or copied any more; one that is about to be switched still is. */
void pool_moves_pause(struct pool *pool, bool paused);

struct pool_balance {
	uint64_t rounds;
	uint64_t capacity_plans, performance_plans; /* rounds that moved something */
	char capacity_decision[160];		    /* the last one, with its reason */
	char performance_decision[160];
	uint64_t latency_ns[POOL_MEMBERS_MAX]; /* mean of the last round; 0: no request */
};
void pool_balance(const struct pool *pool, struct pool_balance *ret_balance);
/* A round of both balancers now, whatever the lab says of them. */
void pool_balance_now(struct pool *pool);

struct pool_hot_page {
	const struct volume *volume;
	uint64_t offset_bytes; /* in the volume */
	const struct member *member;
	uint32_t heat; /* requests, those of earlier rounds halved at each round */
};
/* The hottest of the last round, hottest first; returns how many. */
unsigned pool_hot_pages(const struct pool *pool, struct pool_hot_page *ret_pages, unsigned max);
/* The sum of the heat of the volume's pages, as of the last round. */
uint64_t volume_heat(const struct volume *volume);

/* ---- events ---- */

struct pool_event {
	uint64_t at_ns; /* of the loop's clock */
	char text[160];
};
/* The last events (space thresholds, drains, moves that failed), oldest first; returns how many. */
unsigned pool_events(const struct pool *pool, struct pool_event *ret_events, unsigned max);

#endif
