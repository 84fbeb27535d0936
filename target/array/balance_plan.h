/* SPDX-License-Identifier: MIT
 *
 * What a pool's balancers decide: from its state to a list of moves.  Pure.
 *
 * Capacity: each volume is to spread over up to three members in proportion to their capacity.  It
 * keeps the members it has; where it has fewer than three, the emptiest others join; where another
 * member would, with the volume's part, still be emptier than the fullest of its three by
 * BALANCE_REPLACE_PERCENT points, it takes that one's place.  Small differences are left alone.
 * Members that are drained give everything.
 *
 * Performance (EqualLogic's APLB, shared domain/arrays.md 1.2): a member whose mean latency is
 * BALANCE_GAP_NS above the pool's fastest swaps hot pages for as many cold ones of the same volume
 * with a member that has a slice of it already.  Nothing happens when all are fast, when all are
 * similarly slow, when it was seen only once, or when latency swings.
 */
#ifndef SANLAB_TARGET_ARRAY_BALANCE_PLAN_H
#define SANLAB_TARGET_ARRAY_BALANCE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "target/array/pool_status.h"

enum {
	BALANCE_REPLACE_PERCENT = 25,
	BALANCE_SLACK_SHARE = 20, /* a volume's 1/20, and one page, may be in the wrong place */
	BALANCE_SWAPS_MAX = 32,	  /* of one round */
	BALANCE_HEAT_SHARE = 4,	  /* a round takes at most 1/4 of the slow member's heat */
	BALANCE_HISTORY = 4,
	BALANCE_TURN_ROUNDS = 6, /* no swaps back for so long */
};
#define BALANCE_GAP_NS (20 * NS_PER_MS)

/* ---- capacity ---- */

struct balance_member {
	uint32_t pages, used;
	bool takes, gives; /* neither while offline; a drained one only gives */
	bool leaving;	   /* everything is to go */
	bool durable;	   /* what it holds outlives the process: such pages stay with such */
};

struct balance_volume {
	uint32_t pages[POOL_MEMBERS_MAX];
};

struct balance_transfer {
	unsigned volume, from, to;
	uint32_t pages;
};

struct balance_pool {
	struct balance_member members[POOL_MEMBERS_MAX];
	unsigned member_count;
	const struct balance_volume *volumes;
	unsigned volume_count;
};

/* Up to MAX transfers; with ONLY_LEAVING nothing but what drains need.  Returns how many. */
unsigned balance_capacity(const struct balance_pool *pool, bool only_leaving,
			  struct balance_transfer *ret_transfers, unsigned max);
/* Pages of the volumes on MEMBER, and the free ones of others that may take them. */
void balance_drain_room(const struct balance_pool *pool, unsigned member, uint64_t *ret_pages,
			uint64_t *ret_room);

/* ---- performance ---- */

struct balance_load {
	uint64_t latency_ns;  /* mean of the round; 0: no requests */
	uint64_t ops_a_drive; /* busy-ness: decides between members that are equally fast */
	bool usable;	      /* may give and take pages */
};

/* What is remembered of earlier rounds. */
struct balance_watch {
	uint8_t slow[POOL_MEMBERS_MAX]; /* a bit a round, the last one is bit 0 */
	uint64_t round, swapped_round;
	unsigned swapped_from, swapped_to;
};

enum balance_verdict {
	BALANCE_SWAP,
	BALANCE_ALONE, /* fewer than two members take part */
	BALANCE_FAST,
	BALANCE_EVEN,
	BALANCE_ONCE,
	BALANCE_SWINGS,
	BALANCE_TURNED, /* the members swapped between have changed roles */
};
extern const char *const balance_verdict_words[];

/* Judges a round; *RET_SLOW and *RET_FAST when there are two members. */
enum balance_verdict balance_judge(struct balance_watch *watch, const struct balance_load *loads,
				   unsigned count, unsigned *ret_slow, unsigned *ret_fast);
/* The member that is to take hot pages of a volume with PAGES_OF pages on each, or COUNT. */
unsigned balance_peer(const struct balance_load *loads, unsigned count, unsigned slow,
		      const uint32_t *pages_of);

struct balance_page {
	uint32_t index;
	uint16_t heat;
};

struct balance_swap {
	unsigned volume, slow, fast;
	struct balance_page hot, cold;
};

/* The hottest, or the coldest, pages seen so far, in order. */
struct balance_top {
	struct balance_page pages[BALANCE_SWAPS_MAX];
	unsigned count;
};
void balance_top_hot(struct balance_top *top, struct balance_page page);
void balance_top_cold(struct balance_top *top, struct balance_page page);

struct balance_swaps {
	struct balance_swap swaps[BALANCE_SWAPS_MAX];
	unsigned count;
};
/* Pairs hot pages with cold ones of one volume, while it is worth it, into the best of the pool. */
void balance_pair(struct balance_swaps *swaps, const struct balance_top *hot,
		  const struct balance_top *cold, unsigned volume, unsigned slow, unsigned fast);
/* Keeps no more than BALANCE_HEAT_SHARE of the slow member's HEAT. */
void balance_limit(struct balance_swaps *swaps, uint64_t heat);

#endif
