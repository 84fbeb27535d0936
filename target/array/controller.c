/* SPDX-License-Identifier: MIT
 *
 * Controllers: the state machines.
 */
#include "target/array/controller.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

const char *const controller_failback_names[] = {
    [CONTROLLER_FAILBACK_AUTO] = "auto", [CONTROLLER_FAILBACK_MANUAL] = "manual", NULL};

const char *const controller_phase_names[] = {
    [CONTROLLER_SERVING] = "serving",
    [CONTROLLER_TAKING_OVER] = "failing-over",
    [CONTROLLER_OFFLINE] = "offline",
    NULL,
};

/* ---- the pair of a member ---- */

void controller_pair_init(struct controller_pair *pair, unsigned count, uint64_t failover_ns)
{
	assert(count >= 1 && count <= CONTROLLER_COUNT);
	*pair = (struct controller_pair){
	    .failover_ns = failover_ns,
	    .count = count,
	    .phase = CONTROLLER_SERVING,
	    .good = {true, count > 1},
	};
}

static void take_over(struct controller_pair *pair, unsigned controller, uint64_t now_ns)
{
	pair->active = controller;
	pair->phase = CONTROLLER_TAKING_OVER;
	pair->deadline_ns = now_ns + pair->failover_ns;
	pair->failovers++;
}

static int pair_fail(struct controller_pair *pair, unsigned controller, uint64_t now_ns)
{
	unsigned other = 1 - controller;

	if (!pair->good[controller])
		return -EALREADY;
	pair->good[controller] = false;
	if (controller != pair->active)
		return 0; /* the passive one: only the mirror is lost */
	if (pair->good[other]) {
		take_over(pair, other, now_ns);
	} else {
		pair->phase = CONTROLLER_OFFLINE;
		pair->deadline_ns = 0;
	}
	return 0;
}

static int pair_return(struct controller_pair *pair, unsigned controller, uint64_t now_ns)
{
	if (pair->good[controller])
		return -EALREADY;
	pair->good[controller] = true;
	if (pair->phase == CONTROLLER_OFFLINE)
		take_over(pair, controller, now_ns);
	return 0;
}

static int pair_link(struct controller_pair *pair, const struct controller_event *event)
{
	uint32_t bit = UINT32_C(1) << event->port;
	uint32_t *down = &pair->links_down[event->controller];
	bool lost = event->kind == CONTROLLER_LINK_DOWN;

	if (((*down & bit) != 0) == lost)
		return -EALREADY;
	*down ^= bit;
	return 0;
}

int controller_pair_event(struct controller_pair *pair, const struct controller_event *event,
			  uint64_t now_ns)
{
	if (event->kind != CONTROLLER_TIME &&
	    (event->controller >= pair->count || event->port >= CONTROLLER_PORTS_MAX))
		return -EINVAL;
	switch (event->kind) {
	case CONTROLLER_FAIL:
		return pair_fail(pair, event->controller, now_ns);
	case CONTROLLER_RETURN:
		return pair_return(pair, event->controller, now_ns);
	case CONTROLLER_LINK_DOWN:
	case CONTROLLER_LINK_UP:
		return pair_link(pair, event);
	case CONTROLLER_TIME:
		if (pair->phase != CONTROLLER_TAKING_OVER || now_ns < pair->deadline_ns)
			return -EALREADY;
		pair->phase = CONTROLLER_SERVING;
		pair->deadline_ns = 0;
		return 0;
	default:
		return -EINVAL; /* no volumes of its own: there is nothing to fail back */
	}
}

/* The passive controller lends its port as long as it is there. */
bool controller_pair_serves(const struct controller_pair *pair, unsigned port)
{
	if (pair->phase != CONTROLLER_SERVING || port >= CONTROLLER_PORTS_MAX)
		return false;
	for (unsigned i = 0; i < pair->count; i++)
		if (pair->good[i] && !(pair->links_down[i] >> port & 1))
			return true;
	return false;
}

/* A controller that takes over is alone until it serves: the other has died or just come. */
bool controller_pair_mirrored(const struct controller_pair *pair)
{
	return pair->phase == CONTROLLER_SERVING && pair->good[0] && pair->good[1];
}

const char *controller_pair_role(const struct controller_pair *pair, unsigned controller)
{
	if (controller >= pair->count)
		return "absent";
	if (!pair->good[controller])
		return "failed";
	return controller == pair->active ? "active" : "passive";
}

/* ---- the two controllers of an ALUA array ---- */

void controller_duo_init(struct controller_duo *duo, uint64_t transition_ns,
			 enum controller_failback failback)
{
	*duo = (struct controller_duo){
	    .transition_ns = transition_ns,
	    .failback = failback,
	    .good = {true, true},
	};
}

static void volumes_move(struct controller_duo *duo, uint64_t now_ns)
{
	duo->busy_until_ns = now_ns + duo->transition_ns;
}

static int duo_fail(struct controller_duo *duo, unsigned controller, uint64_t now_ns,
		    struct controller_actions *actions)
{
	if (!duo->good[controller])
		return -EALREADY;
	duo->good[controller] = false;
	duo->wants_back = false;
	duo->deadline_ns = 0;
	actions->of[controller] = CONTROLLER_SILENCE;
	if (!duo->good[1 - controller])
		return 0;
	actions->of[1 - controller] = CONTROLLER_TAKE;
	duo->failovers++;
	volumes_move(duo, now_ns);
	return 0;
}

/* Volumes that are changing hands arrive first. */
static void give_back(struct controller_duo *duo, uint64_t now_ns,
		      struct controller_actions *actions)
{
	if (now_ns < duo->busy_until_ns) {
		duo->wants_back = true;
		duo->deadline_ns = duo->busy_until_ns;
		return;
	}
	duo->wants_back = false;
	duo->deadline_ns = 0;
	actions->of[0] |= CONTROLLER_TAKE_OWN;
	actions->of[1] |= CONTROLLER_TAKE_OWN;
	volumes_move(duo, now_ns);
}

static int duo_return(struct controller_duo *duo, unsigned controller, uint64_t now_ns,
		      struct controller_actions *actions)
{
	if (duo->good[controller])
		return -EALREADY;
	duo->good[controller] = true;
	actions->of[controller] = CONTROLLER_SPEAK;
	if (!duo->good[1 - controller]) {
		/* Nobody else has them. */
		actions->of[controller] |= CONTROLLER_TAKE;
		volumes_move(duo, now_ns);
	} else if (duo->failback == CONTROLLER_FAILBACK_AUTO) {
		give_back(duo, now_ns, actions);
	}
	return 0;
}

int controller_duo_event(struct controller_duo *duo, const struct controller_event *event,
			 uint64_t now_ns, struct controller_actions *ret_actions)
{
	struct controller_actions actions = {{0, 0}};
	int r = -EINVAL;

	if (event->controller >= CONTROLLER_COUNT)
		return -EINVAL;
	switch (event->kind) {
	case CONTROLLER_FAIL:
		r = duo_fail(duo, event->controller, now_ns, &actions);
		break;
	case CONTROLLER_RETURN:
		r = duo_return(duo, event->controller, now_ns, &actions);
		break;
	case CONTROLLER_FAIL_BACK:
		r = duo->good[0] && duo->good[1] ? 0 : -EALREADY;
		if (r == 0)
			give_back(duo, now_ns, &actions);
		break;
	case CONTROLLER_TIME:
		r = duo->wants_back && now_ns >= duo->deadline_ns ? 0 : -EALREADY;
		if (r == 0)
			give_back(duo, now_ns, &actions);
		break;
	default:
		break; /* each portal is one controller's: a lost link is a portal that is down */
	}
	if (r == 0)
		*ret_actions = actions;
	return r;
}
