/* SPDX-License-Identifier: MIT
 *
 * What befalls members of a simulated array beside their drives.
 */
#include "tests/sim/array/trouble.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/cache_impl.h"
#include "target/array/member.h"
#include "tests/sim/array/crash.h"

static unsigned member_count(const struct world *world)
{
	return (unsigned)world->pool.members.count;
}

static unsigned index_of(const struct plight *plight)
{
	return (unsigned)(plight - plight->world->plights);
}

static bool is_lun(const struct world *world)
{
	return world->config.style == GROUP_STYLE_LUN;
}

/* ---- what follows from the state ---- */

static void set_timer(struct world *world, struct loop_timer *timer, uint64_t deadline_ns)
{
	if (deadline_ns)
		loop_timer_set(world->loop, timer, deadline_ns);
	else
		loop_timer_cancel(world->loop, timer);
}

static void apply(struct plight *plight)
{
	struct world *world = plight->world;
	struct member *member = world_member(world, index_of(plight));
	bool was_away = member_is_offline(member);
	enum member_gate_state gate = MEMBER_OPEN;

	if (plight->switched_off || (!is_lun(world) && plight->pair.phase == CONTROLLER_OFFLINE))
		gate = MEMBER_OFFLINE;
	else if (!is_lun(world) && plight->pair.phase == CONTROLLER_TAKING_OVER)
		gate = MEMBER_HOLDS;
	if (was_away != (gate == MEMBER_OFFLINE))
		plight->absence = ++world->absences;
	member_set_gate(member, gate);
	member_cache_set_mirrored(member, is_lun(world) ? world->duo.good[0] && world->duo.good[1]
							: controller_pair_mirrored(&plight->pair));
	if (!is_lun(world))
		set_timer(world, &plight->timer, plight->pair.deadline_ns);
}

static int tell_pair(struct plight *plight, enum controller_event_kind kind, unsigned controller)
{
	struct controller_event event = {.kind = kind, .controller = controller};
	int rc = controller_pair_event(&plight->pair, &event, loop_now_ns(plight->world->loop));

	if (rc == 0)
		apply(plight);
	return rc;
}

static void pair_time(void *arg)
{
	(void)tell_pair(arg, CONTROLLER_TIME, 0);
}

/* Volumes belong to the two controllers in turn. */
static void duo_act(struct world *world, const struct controller_actions *actions)
{
	for (unsigned volume = 0; volume < world->config.volumes.count; volume++) {
		for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
			if (actions->of[i] & CONTROLLER_TAKE ||
			    (actions->of[i] & CONTROLLER_TAKE_OWN && volume % 2 == i))
				world->owner[volume] = i;
		if (!world->duo.good[world->owner[volume]] &&
		    (world->duo.good[0] || world->duo.good[1]))
			world_fault(world, "volume %u stays with a controller that is dead",
				    volume);
	}
	for (unsigned i = 0; i < member_count(world); i++)
		apply(&world->plights[i]);
	set_timer(world, &world->duo_timer, world->duo.deadline_ns);
}

static int tell_duo(struct world *world, enum controller_event_kind kind, unsigned controller)
{
	struct controller_event event = {.kind = kind, .controller = controller};
	struct controller_actions actions;
	int rc = controller_duo_event(&world->duo, &event, loop_now_ns(world->loop), &actions);

	if (rc == 0)
		duo_act(world, &actions);
	return rc;
}

static void duo_time(void *arg)
{
	(void)tell_duo(arg, CONTROLLER_TIME, 0);
}

/* ---- opening and closing ---- */

void trouble_begin(struct world *world)
{
	for (unsigned i = 0; i < WORLD_MEMBERS; i++) {
		struct plight *plight = &world->plights[i];
		*plight = (struct plight){.world = world, .absence = world->absences};
		controller_pair_init(&plight->pair, CONTROLLER_COUNT,
				     world->members[i].controllers.failover_ns);
		loop_timer_init(&plight->timer, pair_time, plight);
	}
	controller_duo_init(&world->duo, world->config.controllers.transition_ns,
			    (enum controller_failback)world->config.controllers.failback);
	loop_timer_init(&world->duo_timer, duo_time, world);
	for (unsigned volume = 0; volume < WORLD_VOLUMES; volume++)
		world->owner[volume] = volume % 2;
}

/* As the target's shell: what is held goes on, to its end. */
void trouble_end(struct world *world)
{
	for (unsigned i = 0; i < member_count(world); i++) {
		loop_timer_cancel(world->loop, &world->plights[i].timer);
		member_set_gate(world_member(world, i), MEMBER_OPEN);
	}
	loop_timer_cancel(world->loop, &world->duo_timer);
}

/* ---- what happens ---- */

static struct plight *choose(struct world *world)
{
	return &world->plights[world_pick(world, 0, member_count(world) - 1)];
}

static void switch_member(struct plight *plight, bool off)
{
	plight->switched_off = off;
	world_trace(plight->world, "member %u is switched %s", index_of(plight) + 1,
		    off ? "off" : "on");
	apply(plight);
}

void trouble_member(struct world *world)
{
	struct plight *plight = choose(world);
	if (!plight->switched_off)
		switch_member(plight, true);
}

static void fail_or_return(struct world *world, struct plight *plight, unsigned controller,
			   bool returns)
{
	enum controller_event_kind kind = returns ? CONTROLLER_RETURN : CONTROLLER_FAIL;
	int rc =
	    is_lun(world) ? tell_duo(world, kind, controller) : tell_pair(plight, kind, controller);

	world_trace(world, "controller %u %s", controller, returns ? "returns" : "fails");
	if (rc)
		world_fault(world, "controller %u cannot %s: %s", controller,
			    returns ? "return" : "fail", strerror(-rc));
}

void trouble_controller(struct world *world)
{
	struct plight *plight = choose(world);
	unsigned controller = (unsigned)world_pick(world, 0, CONTROLLER_COUNT - 1);
	const bool *good = is_lun(world) ? world->duo.good : plight->pair.good;

	/* Seldom both at a time: nothing can be seen then. */
	if (!good[1 - controller] && world_pick(world, 0, 3))
		return;
	if (good[controller])
		fail_or_return(world, plight, controller, false);
}

static void set_battery(struct plight *plight, bool good)
{
	plight->battery_lost = !good;
	world_trace(plight->world, "the battery of member %u is %s", index_of(plight) + 1,
		    good ? "charged" : "lost");
	member_cache_set_battery(world_member(plight->world, index_of(plight)), good);
}

void trouble_battery(struct world *world)
{
	struct plight *plight = choose(world);
	if (!plight->battery_lost)
		set_battery(plight, false);
}

/* ---- and is over ---- */

static void cure(struct plight *plight)
{
	struct world *world = plight->world;

	if (plight->switched_off)
		switch_member(plight, false);
	if (plight->battery_lost)
		set_battery(plight, true);
	for (unsigned c = 0; c < CONTROLLER_COUNT; c++)
		if (is_lun(world) ? !world->duo.good[c] : !plight->pair.good[c])
			fail_or_return(world, plight, c, true);
}

void trouble_cure(struct world *world)
{
	cure(choose(world));
}

static bool is_calm(struct world *world)
{
	for (unsigned i = 0; i < member_count(world); i++)
		if (member_gate_state(world_member(world, i)) != MEMBER_OPEN)
			return false;
	return !is_lun(world) || loop_now_ns(world->loop) >= world->duo.busy_until_ns;
}

bool trouble_calm(struct world *world)
{
	for (unsigned i = 0; i < member_count(world); i++)
		cure(&world->plights[i]);
	for (unsigned i = 0; !is_calm(world) && i < 100; i++)
		(void)loop_run_until(world->loop, loop_now_ns(world->loop) + 100 * NS_PER_MS);
	if (!is_calm(world) && !crash_happened())
		world_fault(world, "controllers do not come back");
	return world->fault[0] == '\0';
}

/* ---- what is known of it ---- */

bool trouble_was_away(const struct world *world, unsigned index, uint64_t absences)
{
	const struct plight *plight = &world->plights[index];
	bool away =
	    plight->switched_off || (!is_lun(world) && plight->pair.phase == CONTROLLER_OFFLINE);
	return away || plight->absence > absences;
}

bool trouble_reaches(const struct world *world, unsigned volume)
{
	return !is_lun(world) || (world->duo.good[world->owner[volume]] &&
				  loop_now_ns(world->loop) >= world->duo.busy_until_ns);
}

bool trouble_is_slow(const struct world *world)
{
	for (unsigned i = 0; i < member_count(world); i++)
		if (world->plights[i].slow)
			return true;
	return false;
}

unsigned trouble_failovers(const struct world *world)
{
	unsigned failovers = world->duo.failovers;
	for (unsigned i = 0; i < member_count(world); i++)
		failovers += world->plights[i].pair.failovers;
	return failovers;
}

bool trouble_memory_is_spent(struct world *world, unsigned index)
{
	const struct cache *cache = world_member(world, index)->cache;
	return cache && cache->through && cache->dirty_frames == 0 && cache->unflushed_frames == 0;
}
