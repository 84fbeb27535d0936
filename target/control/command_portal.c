/* SPDX-License-Identifier: MIT
 *
 * Commands about what initiators see: portals and access states.
 */
#include <errno.h>
#include <string.h>

#include "target/control/command.h"
#include "target/iscsi/secrets.h"
#include "target/scsi/alua.h"

int control_run_reset(struct control_request *request)
{
	struct iscsi_portal *portal;
	const char *initiator = json_string_value(json_object_get(request->request, "initiator"));
	int r = control_want_portal(request, &portal);

	if (!r)
		json_object_set_new(request->answer, "connections",
				    json_integer(iscsi_portal_reset(portal, initiator)));
	return r;
}

int control_run_portal_down(struct control_request *request)
{
	struct iscsi_portal *portal;
	int r = control_want_portal(request, &portal);

	return r ? r : iscsi_portal_set_down(portal, true, &request->err);
}

/* "limit": how long sessions have to log out, "10s" or a number of seconds; 5 s unless given. */
int control_run_portal_drain(struct control_request *request)
{
	const json_t *limit = json_object_get(request->request, "limit");
	struct iscsi_portal *portal;
	uint64_t limit_ns;
	int r = control_want_portal(request, &portal);

	if (r)
		return r;
	if (json_is_integer(limit))
		limit_ns = (uint64_t)json_integer_value(limit) * NS_PER_S;
	else if (control_take_value(request, "limit", CFG_DURATION, 5 * NS_PER_S, &limit_ns))
		limit_ns = UINT64_MAX;
	if (limit_ns > 3600 * NS_PER_S)
		return err_set(&request->err, -EINVAL, "\"limit\" must be from 0s to 1h");
	json_object_set_new(request->answer, "asked",
			    json_integer(iscsi_portal_drain(portal, limit_ns)));
	return 0;
}

int control_run_portal_up(struct control_request *request)
{
	struct iscsi_portal *portal;
	int r = control_want_portal(request, &portal);

	return r ? r : iscsi_portal_set_down(portal, false, &request->err);
}

static int set_silent(struct control_request *request, bool silent)
{
	struct iscsi_portal *portal;
	int r = control_want_portal(request, &portal);

	if (!r)
		iscsi_portal_set_silent(portal, silent);
	return r;
}

int control_run_portal_silent(struct control_request *request)
{
	return set_silent(request, true);
}

int control_run_portal_speaks(struct control_request *request)
{
	return set_silent(request, false);
}

static int want_group(struct control_request *request, uint16_t *ret)
{
	json_t *number = json_object_get(request->request, "group");

	if (!json_is_integer(number) || json_integer_value(number) < 1 ||
	    json_integer_value(number) > UINT16_MAX)
		return err_set(&request->err, -EINVAL,
			       "\"group\" must be a target port group's number");
	*ret = (uint16_t)json_integer_value(number);
	return 0;
}

static int alua_set(struct control_request *request, struct scsi_lu *lu, uint16_t group,
		    const char *name)
{
	enum alua_state state;
	uint64_t transition_ns;
	int r;

	if (!strcmp(name, "failed")) {
		r = scsi_alua_fail(lu, group);
	} else if (scsi_alua_state_parse(name, &state)) {
		err_set(&request->err, -EINVAL, "unknown access state \"%s\"", name);
		err_hint(&request->err, "states are: optimized, non-optimized, standby, "
					"unavailable, offline, transitioning, failed");
		return -EINVAL;
	} else {
		r = control_take_value(request, "transition", CFG_DURATION, 0, &transition_ns);
		if (r)
			return r;
		r = scsi_alua_set(lu, group, state, transition_ns);
	}
	if (r == -ENOENT)
		err_set(&request->err, r, "no target port group %u", (unsigned)group);
	else if (r == -EALREADY)
		err_set(&request->err, r, "no transition is under way");
	else if (r == -ERANGE)
		err_set(&request->err, r, "a transition takes at most %d s", ALUA_TRANSITION_S);
	return r;
}

int control_run_alua_set(struct control_request *request)
{
	const char *volume = NULL, *state = NULL;
	struct scsi_lu *lu;
	uint16_t group = 0;
	int r = control_want_string(request, "volume", &volume);

	if (!r)
		r = want_group(request, &group);
	if (!r)
		r = control_want_string(request, "state", &state);
	if (r)
		return r;
	lu = target_find_lu(request->target, volume);
	if (!lu)
		return err_set(&request->err, -ENOENT, "no volume %s", volume);
	return alua_set(request, lu, group, state);
}

static int alua_flip(struct control_request *request, struct scsi_lu *lu, uint64_t transition_ns)
{
	enum alua_state one = ALUA_OPTIMIZED, two = ALUA_OPTIMIZED;
	int r = scsi_alua_next_state(lu, 1, &one);

	if (!r)
		r = scsi_alua_next_state(lu, 2, &two);
	if (r)
		return err_set(&request->err, r, "there are no two target port groups");
	if (one == ALUA_TRANSITIONING || two == ALUA_TRANSITIONING)
		return err_set(&request->err, -EBUSY, "a transition without an end is under way");
	r = scsi_alua_set(lu, 1, two, transition_ns);
	if (!r)
		r = scsi_alua_set(lu, 2, one, transition_ns);
	return r ? err_set(&request->err, r, "a transition takes at most %d s", ALUA_TRANSITION_S)
		 : 0;
}

int control_run_alua_flip(struct control_request *request)
{
	const char *name = json_string_value(json_object_get(request->request, "volume"));
	struct group *group = target_group(request->target);
	uint64_t transition_ns;
	bool found = false;
	int r = control_take_value(request, "transition", CFG_DURATION, 0, &transition_ns);

	for (size_t i = 0; !r && i < group_volume_count(group); i++) {
		const char *volume = volume_name(group_volume(group, i));
		struct scsi_lu *lu = target_find_lu(request->target, volume);

		if (!lu || (name && strcmp(name, volume) != 0))
			continue;
		found = true;
		r = alua_flip(request, lu, transition_ns);
	}
	if (!r && !found)
		return err_set(&request->err, -ENOENT, "no volume %s", name ? name : "at all");
	return r;
}

/* Sessions stay: the next login is told. */
static int change_secret(struct control_request *request, bool changed)
{
	const char *user = NULL;
	int r = control_want_string(request, "user", &user);

	if (r)
		return r;
	r = chap_secrets_change(target_secrets(request->target), user, changed);
	if (r == -ENOENT)
		err_set(&request->err, r, "no CHAP user %s", user);
	else if (r)
		err_set(&request->err, r, "the secret of %s is %s already", user,
			changed ? "changed" : "the file's");
	return r;
}

int control_run_chap_change(struct control_request *request)
{
	return change_secret(request, true);
}

int control_run_chap_restore(struct control_request *request)
{
	return change_secret(request, false);
}
