/* SPDX-License-Identifier: MIT
 *
 * Pages of a simulated array on the move.
 */
#include "tests/sim/array/roam.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/page_move.h"
#include "target/drive/faults.h"
#include "tests/sim/array/crash.h"
#include "tests/unit/array/pool_invariants.h"

#define SLOW_NS (60 * NS_PER_MS)

static struct pool *pool_of(const struct world *world)
{
	return group_pool(world->group, 0);
}

/* Few requests are made: all of them are timed. */
void roam_begin(struct world *world)
{
	for (unsigned i = 0; world->roams && i < world->pool.members.count; i++) {
		struct member *member = world_member(world, i);
		member->sample_every = member->sample_left = 1;
		if (world->drains[i] == WORLD_UNSURE)
			world->drains[i] = member->draining ? WORLD_DRAINS : WORLD_STAYS;
		if (member->draining != (world->drains[i] == WORLD_DRAINS) && !crash_happened())
			world_fault(world, "the drain of member %u is %s after a restart", i + 1,
				    member->draining ? "there again" : "forgotten");
	}
}

/* ---- what happens ---- */

static void set_drain(struct world *world, unsigned index, bool drain)
{
	struct member *member = world_member(world, index);
	struct err err = {0};
	int rc = drain ? pool_drain(pool_of(world), member, &err)
		       : pool_drain_stop(pool_of(world), member, &err);

	world_trace(world, "the drain of member %u is to %s: %d", index + 1,
		    drain ? "begin" : "stop", rc);
	if (crash_happened())
		world->drains[index] = WORLD_UNSURE;
	else if (rc == 0)
		world->drains[index] = drain ? WORLD_DRAINS : WORLD_STAYS;
	else if (rc != -ENOSPC && rc != -EALREADY && rc != -ENODEV)
		world_fault(world, "a drain is refused: %s", err.what);
}

void roam_drain(struct world *world)
{
	unsigned index = (unsigned)world_pick(world, 0, world->pool.members.count - 1);
	bool drains = world_member(world, index)->draining;

	set_drain(world, index, !drains || world_pick(world, 0, 1));
}

void roam_balance(struct world *world)
{
	world_trace(world, "pages are to be balanced");
	pool_balance_now(pool_of(world));
}

void roam_slow(struct world *world)
{
	unsigned index = (unsigned)world_pick(world, 0, world->pool.members.count - 1);
	struct plight *plight = &world->plights[index];
	struct member *member = world_member(world, index);

	plight->slow = !plight->slow;
	for (unsigned i = 0; i < member_drive_count(member); i++)
		(void)drive_set_slow(member_drive(member, i), 1, plight->slow ? SLOW_NS : 0);
	world_trace(world, "member %u is slow: %d", index + 1, plight->slow);
}

void roam_focus(struct world *world)
{
	uint64_t pages = (world->shadows[0].count * SECTOR_BYTES - 1) / POOL_PAGE_BYTES + 1;

	world->focused = pages > 1 && !world->focused;
	world->focus = world_pick(world, 0, pages - 1);
	world_trace(world, "focus %d on page %llu", world->focused,
		    (unsigned long long)world->focus);
}

/* ---- members come and go ---- */

unsigned roam_find_empty(struct world *world)
{
	unsigned count = (unsigned)world->pool.members.count;

	for (unsigned i = 0; world->roams && count > 1 && i < count; i++) {
		struct drain_progress progress;
		pool_drain_progress(pool_of(world), world_member(world, i), &progress);
		if (progress.state == DRAIN_EMPTY)
			return i;
	}
	return count;
}

void roam_leave(struct world *world, unsigned index)
{
	unsigned count = (unsigned)world->pool.members.count;

	world_trace(world, "member %u leaves", index + 1);
	for (unsigned i = index; i + 1 < count; i++) {
		world->members[i] = world->members[i + 1];
		world->damaged[i] = world->damaged[i + 1];
		world->flipped[i] = world->flipped[i + 1];
		world->scrubs[i] = world->scrubs[i + 1];
		world->drains[i] = world->drains[i + 1];
	}
	world->damaged[count - 1] = world->flipped[count - 1] = 0;
	world->drains[count - 1] = WORLD_STAYS;
	world->pool.members.count = count - 1;
	/* Its directory has files of one that is gone: nobody begins anew there. */
	world->joins = false;
}

void roam_join(struct world *world)
{
	if (!world->joins)
		return;
	world->joins = false;
	world->pool.members.count++;
	world_trace(world, "a member joins");
}

/* ---- at rest ---- */

bool roam_is_moving(const struct world *world)
{
	struct pool_moves moves;

	pool_moves(pool_of(world), &moves);
	return moves.under_way || moves.planned || moves.cleaning;
}

uint64_t roam_moves_done(const struct world *world)
{
	struct pool_moves moves;

	pool_moves(pool_of(world), &moves);
	return moves.done;
}

bool roam_settle(struct world *world)
{
	uint64_t end_ns = loop_now_ns(world->loop) + 600 * NS_PER_S;

	world->focused = false;
	for (unsigned i = 0; i < world->pool.members.count; i++) {
		set_drain(world, i, false);
		if (world->plights[i].slow) {
			struct member *member = world_member(world, i);
			for (unsigned d = 0; d < member_drive_count(member); d++)
				(void)drive_set_slow(member_drive(member, d), 1, 0);
			world->plights[i].slow = false;
		}
	}
	while (roam_is_moving(world) && !crash_happened() && loop_now_ns(world->loop) < end_ns)
		(void)loop_run_until(world->loop, loop_now_ns(world->loop) + 100 * NS_PER_MS);
	if (roam_is_moving(world) && !crash_happened())
		world_fault(world, "pages do not come to rest");
	pool_moves_pause(pool_of(world), true);
	return world->fault[0] == '\0';
}

/* ---- what must hold ---- */

enum { LOOK_BYTES = 512 * 1024 };

struct look {
	struct io io;
	struct iovec iov;
	bool done;
	uint8_t data[LOOK_BYTES];
};

static void look_done(struct io *io)
{
	((struct look *)io->owner)->done = true;
}

static void check_zeros(struct world *world, unsigned index, uint32_t page, uint64_t offset)
{
	static struct look look;
	struct member *member = world_member(world, index);

	look.done = false;
	look.iov = (struct iovec){look.data, LOOK_BYTES};
	look.io = (struct io){
	    .op = IO_READ,
	    .offset_bytes = page * POOL_PAGE_BYTES + offset,
	    .length_bytes = LOOK_BYTES,
	    .iov = &look.iov,
	    .iov_count = 1,
	    .done = look_done,
	    .owner = &look,
	};
	io_submit(&member->layer, &look.io);
	for (unsigned i = 0; !look.done && i < 1000; i++)
		(void)loop_run_until(world->loop, loop_now_ns(world->loop) + 10 * NS_PER_MS);
	if (!look.done)
		world_fault(world, "a read of free page %u of member %u never ends", page,
			    index + 1);
	else if (look.io.status)
		world_fault(world, "a read of free page %u of member %u ends with %s", page,
			    index + 1, strerror(-look.io.status));
	else if (look.data[0] || memcmp(look.data, look.data + 1, LOOK_BYTES - 1) != 0)
		world_fault(world, "free page %u of member %u is not zeros", page, index + 1);
}

bool roam_check(struct world *world, bool read)
{
	char why[200];

	if (!pool_is_sound(pool_of(world), why, sizeof why)) {
		world_fault(world, "the pool is not sound: %s", why);
		return false;
	}
	for (unsigned i = 0; read && i < world->pool.members.count; i++) {
		const struct member *member = world_member(world, i);
		for (uint32_t page = 0; page < member->page_count; page++) {
			/* Where most was written. */
			if (pool_page_is_used(member, page))
				continue;
			check_zeros(world, i, page, 0);
			check_zeros(world, i, page, POOL_PAGE_BYTES - LOOK_BYTES);
		}
	}
	return world->fault[0] == '\0';
}

/* ---- the mutant ---- */

static bool forgetful;

void __real_mover_written(struct mover *mover, const struct page_entry *entry,
			  uint64_t offset_bytes, uint64_t length_bytes);
void __wrap_mover_written(struct mover *mover, const struct page_entry *entry,
			  uint64_t offset_bytes, uint64_t length_bytes);

void __wrap_mover_written(struct mover *mover, const struct page_entry *entry,
			  uint64_t offset_bytes, uint64_t length_bytes)
{
	if (!forgetful)
		__real_mover_written(mover, entry, offset_bytes, length_bytes);
}

void roam_forget_writes(bool forget)
{
	forgetful = forget;
}
