/* SPDX-License-Identifier: MIT
 *
 * The shell around the controllers' state machines.
 */
#include "target/controllers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/member_gate.h"
#include "target/scsi/alua.h"

enum { MEMBERS_MAX = 16 };

struct member_controllers {
	struct controllers *owner;
	struct member *member;
	struct controller_pair pair;
	struct loop_timer timer;
	bool switched_off;
};

struct controllers {
	struct controllers_env env;
	enum group_style style;
	struct member_controllers members[MEMBERS_MAX];
	size_t member_count;
	struct controller_duo duo;
	struct loop_timer duo_timer;
};

static void set_timer(struct loop *loop, struct loop_timer *timer, uint64_t deadline_ns)
{
	if (deadline_ns)
		loop_timer_set(loop, timer, deadline_ns);
	else
		loop_timer_cancel(loop, timer);
}

/* ---- the pair of a member ---- */

/* Brings the member to what its controllers' state means; safe to repeat. */
static void pair_apply(struct member_controllers *at)
{
	struct iscsi_server *server = at->owner->env.server;
	const struct controller_pair *pair = &at->pair;
	enum member_gate_state gate = MEMBER_OPEN;
	unsigned port = 0;

	for (size_t i = 0; i < iscsi_server_portal_count(server); i++) {
		struct iscsi_portal *portal = iscsi_server_portal(server, i);

		if (strcmp(iscsi_portal_config(portal)->owner, member_name(at->member)) != 0)
			continue;
		iscsi_portal_set_silent(portal,
					at->switched_off || !controller_pair_serves(pair, port));
		port++;
	}
	if (at->switched_off || pair->phase == CONTROLLER_OFFLINE)
		gate = MEMBER_OFFLINE;
	else if (pair->phase == CONTROLLER_TAKING_OVER)
		gate = MEMBER_HOLDS;
	member_set_gate(at->member, gate);
	member_cache_set_mirrored(at->member, controller_pair_mirrored(pair));
	set_timer(at->owner->env.loop, &at->timer, pair->deadline_ns);
}

static void pair_time(void *arg)
{
	static const struct controller_event time = {.kind = CONTROLLER_TIME};
	struct member_controllers *at = arg;

	controller_pair_event(&at->pair, &time, loop_now_ns(at->owner->env.loop));
	pair_apply(at);
}

/* ---- the two controllers of an ALUA array ---- */

static void move_volume(struct scsi_lu *lu, unsigned to, uint64_t transition_ns, bool both)
{
	uint16_t group = (uint16_t)(1 + to), other = (uint16_t)(2 - to);
	enum alua_state state;

	if (scsi_alua_state(lu, group, &state) < 0 || state == ALUA_OPTIMIZED)
		return;
	scsi_alua_set(lu, group, ALUA_OPTIMIZED, transition_ns);
	if (both)
		scsi_alua_set(lu, other, ALUA_NON_OPTIMIZED, transition_ns);
}

static void act_on_volume(struct controllers *controllers, struct scsi_lu *lu, unsigned owner,
			  const struct controller_actions *actions)
{
	uint64_t transition_ns = controllers->duo.transition_ns;

	for (unsigned i = 0; i < CONTROLLER_COUNT; i++) {
		uint16_t group = (uint16_t)(1 + i);

		if (actions->of[i] & CONTROLLER_SILENCE)
			scsi_alua_set(lu, group, ALUA_UNAVAILABLE, 0);
		if (actions->of[i] & CONTROLLER_SPEAK)
			scsi_alua_set(lu, group, ALUA_NON_OPTIMIZED, 0);
		if (actions->of[i] & CONTROLLER_TAKE)
			move_volume(lu, i, transition_ns, false);
		if ((actions->of[i] & CONTROLLER_TAKE_OWN) && owner == i)
			move_volume(lu, i, transition_ns, true);
	}
}

static void duo_act(struct controllers *controllers, const struct controller_actions *actions)
{
	struct iscsi_server *server = controllers->env.server;
	struct group *group = controllers->env.group;

	for (size_t i = 0; i < iscsi_server_portal_count(server); i++) {
		struct iscsi_portal *portal = iscsi_server_portal(server, i);
		unsigned controller = iscsi_portal_config(portal)->target_port_group - 1U;

		if (controller >= CONTROLLER_COUNT)
			continue;
		if (actions->of[controller] & CONTROLLER_SILENCE)
			iscsi_portal_set_silent(portal, true);
		if (actions->of[controller] & CONTROLLER_SPEAK)
			iscsi_portal_set_silent(portal, false);
	}
	for (size_t i = 0; i < group_volume_count(group); i++) {
		struct scsi_device *device = controllers->env.exports->device;
		struct scsi_lu *lu = scsi_device_add(device, group_volume(group, i));
		unsigned owner = scsi_alua_owner(lu);

		act_on_volume(controllers, lu, owner ? owner - 1 : 0, actions);
	}
	for (size_t i = 0; i < controllers->member_count; i++)
		member_cache_set_mirrored(controllers->members[i].member,
					  controllers->duo.good[0] && controllers->duo.good[1]);
	set_timer(controllers->env.loop, &controllers->duo_timer, controllers->duo.deadline_ns);
}

static void duo_time(void *arg)
{
	static const struct controller_event time = {.kind = CONTROLLER_TIME};
	struct controllers *controllers = arg;
	struct controller_actions actions;

	if (controller_duo_event(&controllers->duo, &time, loop_now_ns(controllers->env.loop),
				 &actions) == 0)
		duo_act(controllers, &actions);
}

/* ---- both ---- */

static struct member_controllers *find(const struct controllers *controllers,
				       const struct member *member)
{
	for (size_t i = 0; i < controllers->member_count; i++)
		if (controllers->members[i].member == member)
			return (struct member_controllers *)&controllers->members[i];
	return NULL;
}

static const struct member_config *member_config_at(const struct group_config *config, size_t index)
{
	const struct pool_config *pools = config->pools.items;

	for (size_t i = 0; i < config->pools.count; i++) {
		const struct member_config *members = pools[i].members.items;

		if (index < pools[i].members.count)
			return &members[index];
		index -= pools[i].members.count;
	}
	return NULL;
}

int controllers_open(const struct group_config *config, const struct controllers_env *env,
		     struct controllers **ret_controllers, struct err *err)
{
	struct controllers *controllers = calloc(1, sizeof *controllers);

	if (!controllers)
		return err_set(err, -ENOMEM, "no memory for the controllers");
	controllers->env = *env;
	controllers->style = (enum group_style)config->style;
	controllers->member_count = MIN_OF(group_member_count(env->group), (size_t)MEMBERS_MAX);
	for (size_t i = 0; i < controllers->member_count; i++) {
		struct member_controllers *at = &controllers->members[i];
		const struct member_config *member = member_config_at(config, i);
		uint64_t count = member ? member->controllers.count : 0;

		at->owner = controllers;
		at->member = group_member_at(env->group, i);
		controller_pair_init(&at->pair, count ? (unsigned)count : CONTROLLER_COUNT,
				     member && member->controllers.failover_ns
					 ? member->controllers.failover_ns
					 : config->controllers.failover_ns);
		loop_timer_init(&at->timer, pair_time, at);
		if (controllers->style == GROUP_STYLE_EQUALLOGIC)
			member_cache_set_mirrored(at->member, controller_pair_mirrored(&at->pair));
	}
	controller_duo_init(&controllers->duo, config->controllers.transition_ns,
			    (enum controller_failback)config->controllers.failback);
	loop_timer_init(&controllers->duo_timer, duo_time, controllers);
	*ret_controllers = controllers;
	return 0;
}

struct controllers *controllers_close(struct controllers *controllers)
{
	if (!controllers)
		return NULL;
	for (size_t i = 0; i < controllers->member_count; i++) {
		loop_timer_cancel(controllers->env.loop, &controllers->members[i].timer);
		member_set_gate(controllers->members[i].member, MEMBER_OPEN);
	}
	loop_timer_cancel(controllers->env.loop, &controllers->duo_timer);
	free(controllers);
	return NULL;
}

static int say_why(int r, const struct controller_event *event, struct err *err)
{
	if (r == -EINVAL && event->kind == CONTROLLER_FAIL_BACK)
		err_set(err, r, "an active/passive pair owns no volumes to give back");
	else if (r == -EALREADY && event->kind == CONTROLLER_FAIL_BACK)
		err_set(err, r, "a controller is away: nothing can be given back");
	else if (r == -EALREADY)
		err_set(err, r, "controller %u is in that state already", event->controller);
	else if (r < 0)
		err_set(err, r,
			"there is no such controller or port, or such a controller has "
			"nothing of the kind");
	return r;
}

int controllers_event(struct controllers *controllers, struct member *member,
		      const struct controller_event *event, struct err *err)
{
	uint64_t now_ns = loop_now_ns(controllers->env.loop);
	struct controller_actions actions;
	struct member_controllers *at;
	int r;

	if (controllers->style == GROUP_STYLE_LUN) {
		r = controller_duo_event(&controllers->duo, event, now_ns, &actions);
		if (r == 0)
			duo_act(controllers, &actions);
		return say_why(r, event, err);
	}
	if (event->kind == CONTROLLER_FAIL_BACK)
		return say_why(-EINVAL, event, err);
	at = member ? find(controllers, member) : NULL;
	if (!at)
		return err_set(err, -EINVAL,
			       "in style equallogic controllers are a member's: "
			       "name the member");
	r = controller_pair_event(&at->pair, event, now_ns);
	if (r == 0) {
		log_debug("member %s: %s", member_name(member),
			  controller_phase_names[at->pair.phase]);
		pair_apply(at);
	}
	return say_why(r, event, err);
}

int controllers_set_offline(struct controllers *controllers, struct member *member, bool offline,
			    struct err *err)
{
	struct member_controllers *at = find(controllers, member);

	if (!at)
		return err_set(err, -ENOENT, "no such member");
	if (at->switched_off == offline)
		return err_set(err, -EALREADY, "member %s is %s already", member_name(member),
			       offline ? "offline" : "online");
	at->switched_off = offline;
	/* Style lun: members are enclosures behind the same two controllers, which stay. */
	if (controllers->style == GROUP_STYLE_LUN)
		member_set_gate(member, offline ? MEMBER_OFFLINE : MEMBER_OPEN);
	else
		pair_apply(at);
	return 0;
}

const struct controller_pair *controllers_pair(const struct controllers *controllers,
					       const struct member *member)
{
	const struct member_controllers *at = find(controllers, member);

	return at && controllers->style == GROUP_STYLE_EQUALLOGIC ? &at->pair : NULL;
}

const struct controller_duo *controllers_duo(const struct controllers *controllers)
{
	return controllers->style == GROUP_STYLE_LUN ? &controllers->duo : NULL;
}

bool controllers_is_switched_off(const struct controllers *controllers, const struct member *member)
{
	const struct member_controllers *at = find(controllers, member);

	return at && at->switched_off;
}
