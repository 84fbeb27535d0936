/* SPDX-License-Identifier: MIT
 *
 * Commands about the array: members, controllers, background work.
 */
#include <errno.h>

#include "target/array/cache.h"
#include "target/array/sweep.h"
#include "target/control/command.h"
#include "target/controllers.h"

/* ---- members ---- */

static int set_offline(struct control_request *request, bool offline)
{
	struct member *member;
	int r = control_want_member(request, &member);

	return r ? r
		 : controllers_set_offline(target_controllers(request->target), member, offline,
					   &request->err);
}

int control_run_member_offline(struct control_request *request)
{
	return set_offline(request, true);
}

int control_run_member_online(struct control_request *request)
{
	return set_offline(request, false);
}

/* ---- controllers ---- */

/* Which one is meant when none is named. */
static unsigned default_controller(const struct control_request *request,
				   const struct member *member, enum controller_event_kind kind)
{
	struct controllers *controllers = target_controllers(request->target);
	const struct controller_pair *pair = member ? controllers_pair(controllers, member) : NULL;
	const struct controller_duo *duo = controllers_duo(controllers);
	const bool *good = duo ? duo->good : pair ? pair->good : NULL;

	if (!good)
		return 0;
	if (kind == CONTROLLER_FAIL)
		return pair ? pair->active : 0;
	return good[0] ? 1 : 0;
}

static int controller_event(struct control_request *request, enum controller_event_kind kind)
{
	struct controllers *controllers = target_controllers(request->target);
	struct controller_event event = {.kind = kind};
	bool lun = controllers_duo(controllers);
	struct member *member = NULL;
	uint64_t number = 0;
	int r = lun ? 0 : control_want_member(request, &member);

	if (r)
		return r;
	event.controller = default_controller(request, member, kind);
	if (json_object_get(request->request, "controller") || (lun && kind == CONTROLLER_FAIL)) {
		r = control_want_uint(request, "controller", CONTROLLER_COUNT - 1, &number);
		event.controller = (unsigned)number;
	}
	if (!r && (kind == CONTROLLER_LINK_DOWN || kind == CONTROLLER_LINK_UP)) {
		r = control_want_uint(request, "port", CONTROLLER_PORTS_MAX - 1, &number);
		event.port = (unsigned)number;
	}
	if (r)
		return r;
	json_object_set_new(request->answer, "controller", json_integer(event.controller));
	return controllers_event(controllers, member, &event, &request->err);
}

int control_run_controller_fail(struct control_request *request)
{
	return controller_event(request, CONTROLLER_FAIL);
}

int control_run_controller_return(struct control_request *request)
{
	return controller_event(request, CONTROLLER_RETURN);
}

int control_run_controller_fail_back(struct control_request *request)
{
	static const struct controller_event event = {.kind = CONTROLLER_FAIL_BACK};

	return controllers_event(target_controllers(request->target), NULL, &event, &request->err);
}

int control_run_link_down(struct control_request *request)
{
	return controller_event(request, CONTROLLER_LINK_DOWN);
}

int control_run_link_up(struct control_request *request)
{
	return controller_event(request, CONTROLLER_LINK_UP);
}

/* ---- cache ---- */

static int set_battery(struct control_request *request, bool good)
{
	struct cache_status status;
	struct member *member;
	int r = control_want_member(request, &member);

	if (r)
		return r;
	if (!member_cache_status(member, &status))
		return err_set(&request->err, -ENOTSUP, "member %s has no cache",
			       member_name(member));
	member_cache_set_battery(member, good);
	return 0;
}

int control_run_battery_lost(struct control_request *request)
{
	return set_battery(request, false);
}

int control_run_battery_ok(struct control_request *request)
{
	return set_battery(request, true);
}

/* ---- background work ---- */

int control_run_scrub_start(struct control_request *request)
{
	struct member *member;
	int r = control_want_member(request, &member);

	if (r)
		return r;
	r = member_scrub_start(member);
	if (r == -ENOTSUP)
		err_set(&request->err, r, "member %s has no redundancy to check",
			member_name(member));
	else if (r == -EALREADY)
		err_set(&request->err, r, "member %s is being scrubbed already",
			member_name(member));
	return r;
}

int control_run_scrub_stop(struct control_request *request)
{
	struct member *member;
	int r = control_want_member(request, &member);

	if (!r)
		member_scrub_stop(member);
	return r;
}

static int set_paused(struct control_request *request, bool paused)
{
	struct member *member;
	int r = control_want_member(request, &member);

	if (!r)
		member_background_pause(member, paused);
	return r;
}

int control_run_rebuild_pause(struct control_request *request)
{
	return set_paused(request, true);
}

int control_run_rebuild_resume(struct control_request *request)
{
	return set_paused(request, false);
}

int control_run_rebuild_rate(struct control_request *request)
{
	struct member *member;
	uint64_t rate;
	int r = control_want_member(request, &member);

	if (!r && !json_object_get(request->request, "rate"))
		r = err_set(&request->err, -EINVAL, "\"rate\" (a size, a second) is missing");
	if (!r)
		r = control_take_value(request, "rate", CFG_SIZE, 0, &rate);
	if (!r)
		member_set_rebuild_rate(member, rate);
	return r;
}
