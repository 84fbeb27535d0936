/* SPDX-License-Identifier: MIT
 *
 * The commands of the control socket: one table row each.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "target/control/control.h"
#include "target/scsi/alua.h"
#include "target/target.h"

struct control_request {
	struct loop *loop;
	struct target *target;
	const json_t *request;
	json_t *answer;
	struct err err;
};

struct control_command {
	const char *name;
	int (*run)(struct control_request *request);
};

static int want_string(struct control_request *request, const char *key, const char **ret)
{
	const char *value = json_string_value(json_object_get(request->request, key));

	if (!value) {
		err_set(&request->err, -EINVAL, "\"%s\" (a string) is missing", key);
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

static int want_portal(struct control_request *request, struct iscsi_portal **ret)
{
	struct iscsi_server *server = target_server(request->target);
	const char *name;
	int r = want_string(request, "portal", &name);

	if (r)
		return r;
	for (size_t i = 0; i < iscsi_server_portal_count(server); i++) {
		struct iscsi_portal *portal = iscsi_server_portal(server, i);

		if (!strcmp(iscsi_portal_config(portal)->address.text, name)) {
			*ret = portal;
			return 0;
		}
	}
	err_set(&request->err, -ENOENT, "no portal %s", name);
	err_hint(&request->err, "\"status\" lists the portals");
	return -ENOENT;
}

static int want_drive(struct control_request *request, struct drive **ret)
{
	struct group *group = target_group(request->target);
	json_t *number = json_object_get(request->request, "drive");
	const char *name;
	int r = want_string(request, "member", &name);

	if (r)
		return r;
	for (size_t i = 0; i < group_member_count(group); i++) {
		struct member *member = group_member_at(group, i);

		if (strcmp(member_name(member), name) != 0)
			continue;
		if (!json_is_integer(number) || json_integer_value(number) < 0 ||
		    json_integer_value(number) >= member_drive_count(member))
			return err_set(&request->err, -EINVAL,
				       "\"drive\" must be a number from 0 to %u",
				       member_drive_count(member) - 1);
		*ret = member_drive(member, (unsigned)json_integer_value(number));
		return 0;
	}
	return err_set(&request->err, -ENOENT, "no member %s", name);
}

static int run_status(struct control_request *request)
{
	json_t *status = control_status(request->target);
	int r = json_object_update(request->answer, status);

	json_decref(status);
	return r ? -ENOMEM : 0;
}

static int run_reset(struct control_request *request)
{
	struct iscsi_portal *portal;
	const char *initiator = json_string_value(json_object_get(request->request, "initiator"));
	int r = want_portal(request, &portal);

	if (!r)
		json_object_set_new(request->answer, "connections",
				    json_integer(iscsi_portal_reset(portal, initiator)));
	return r;
}

static int run_portal_down(struct control_request *request)
{
	struct iscsi_portal *portal;
	int r = want_portal(request, &portal);

	return r ? r : iscsi_portal_set_down(portal, true, &request->err);
}

/* "limit": how long sessions have to log out, "10s" or a number of seconds; 5 s unless given. */
static int run_portal_drain(struct control_request *request)
{
	const json_t *limit = json_object_get(request->request, "limit");
	const char *text = json_string_value(limit);
	uint64_t limit_ns = 5 * NS_PER_S;
	struct iscsi_portal *portal;
	char why[200];
	int r = want_portal(request, &portal);

	if (r)
		return r;
	if (json_is_integer(limit))
		limit_ns = (uint64_t)json_integer_value(limit) * NS_PER_S;
	else if (limit &&
		 (!text || cfg_parse_scalar(CFG_DURATION, text, &limit_ns, why, sizeof why)))
		limit_ns = UINT64_MAX;
	if (limit_ns > 3600 * NS_PER_S)
		return err_set(&request->err, -EINVAL, "\"limit\" must be from 0s to 1h");
	json_object_set_new(request->answer, "asked",
			    json_integer(iscsi_portal_drain(portal, limit_ns)));
	return 0;
}

static int run_portal_up(struct control_request *request)
{
	struct iscsi_portal *portal;
	int r = want_portal(request, &portal);

	return r ? r : iscsi_portal_set_down(portal, false, &request->err);
}

static int run_drive_fail(struct control_request *request)
{
	struct drive *drive = NULL;
	int r = want_drive(request, &drive);

	if (!r)
		drive_set_failed(drive, true);
	return r;
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

/* A duration as in the lab file; absent: none. */
static int take_duration(struct control_request *request, const char *key, uint64_t *ret_ns)
{
	const json_t *value = json_object_get(request->request, key);
	char why[200] = "a duration such as \"3s\" is wanted";

	*ret_ns = 0;
	if (!value)
		return 0;
	if (!json_is_string(value) ||
	    cfg_parse_scalar(CFG_DURATION, json_string_value(value), ret_ns, why, sizeof why))
		return err_set(&request->err, -EINVAL, "\"%s\": %s", key, why);
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
		r = take_duration(request, "transition", &transition_ns);
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

static int run_alua_set(struct control_request *request)
{
	const char *volume = NULL, *state = NULL;
	struct scsi_lu *lu;
	uint16_t group = 0;
	int r = want_string(request, "volume", &volume);

	if (!r)
		r = want_group(request, &group);
	if (!r)
		r = want_string(request, "state", &state);
	if (r)
		return r;
	lu = target_find_lu(request->target, volume);
	if (!lu)
		return err_set(&request->err, -ENOENT, "no volume %s", volume);
	return alua_set(request, lu, group, state);
}

static int run_stop(struct control_request *request)
{
	loop_stop(request->loop);
	return 0;
}

static const struct control_command commands[] = {
    {"status", run_status},
    {"reset", run_reset},
    {"portal-down", run_portal_down},
    {"portal-up", run_portal_up},
    {"portal-drain", run_portal_drain},
    {"drive-fail", run_drive_fail},
    {"stop", run_stop},
    {"alua-set", run_alua_set},
};

static const struct control_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void name_commands(struct err *err)
{
	char all[200] = "";

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		size_t used = strlen(all);

		snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", commands[i].name);
	}
	err_hint(err, "commands are: %s", all);
}

json_t *control_execute(struct loop *loop, struct target *target, const json_t *json)
{
	struct control_request request = {
	    .loop = loop, .target = target, .request = json, .answer = json_object()};
	const struct control_command *command = NULL;
	const char *name;
	int r = want_string(&request, "command", &name);

	if (!r) {
		command = find_command(name);
		if (!command) {
			r = err_set(&request.err, -EINVAL, "unknown command \"%s\"", name);
			name_commands(&request.err);
		}
	}
	if (command)
		r = command->run(&request);
	if (!r) {
		json_object_set_new(request.answer, "ok", json_true());
		return request.answer;
	}
	json_decref(request.answer);
	return json_pack("{s:b, s:s, s:s}", "ok", 0, "error",
			 request.err.what[0] ? request.err.what : strerror(-r), "hint",
			 request.err.hint);
}
