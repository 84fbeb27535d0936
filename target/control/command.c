/* SPDX-License-Identifier: MIT
 *
 * The commands of the control socket: one table row each, and what their requests are made of.
 */
#include "target/control/command.h"

#include <errno.h>
#include <string.h>

struct control_command {
	struct control_command_info info;
	int (*run)(struct control_request *request);
};

int control_want_string(struct control_request *request, const char *key, const char **ret)
{
	const char *value = json_string_value(json_object_get(request->request, key));

	if (!value) {
		err_set(&request->err, -EINVAL, "\"%s\" (a string) is missing", key);
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

int control_want_uint(struct control_request *request, const char *key, uint64_t max, uint64_t *ret)
{
	const json_t *number = json_object_get(request->request, key);

	if (!json_is_integer(number) || json_integer_value(number) < 0 ||
	    (uint64_t)json_integer_value(number) > max)
		return err_set(&request->err, -EINVAL, "\"%s\" must be a number from 0 to %llu",
			       key, (unsigned long long)max);
	*ret = (uint64_t)json_integer_value(number);
	return 0;
}

int control_take_value(struct control_request *request, const char *key, enum cfg_type type,
		       uint64_t preset, uint64_t *ret)
{
	const json_t *value = json_object_get(request->request, key);
	const char *text = json_string_value(value);
	char number[32], why[200] = "a value with its unit is wanted";

	*ret = preset;
	if (!value)
		return 0;
	if (json_is_integer(value)) {
		snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
		text = number;
	}
	if (!text || cfg_parse_scalar(type, text, ret, why, sizeof why))
		return err_set(&request->err, -EINVAL, "\"%s\": %s", key, why);
	return 0;
}

int control_want_portal(struct control_request *request, struct iscsi_portal **ret)
{
	struct iscsi_server *server = target_server(request->target);
	const char *name;
	int r = control_want_string(request, "portal", &name);

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

int control_want_member(struct control_request *request, struct member **ret)
{
	struct group *group = target_group(request->target);
	const char *name;
	int r = control_want_string(request, "member", &name);

	if (r)
		return r;
	for (size_t i = 0; i < group_member_count(group); i++) {
		if (strcmp(member_name(group_member_at(group, i)), name) != 0)
			continue;
		*ret = group_member_at(group, i);
		return 0;
	}
	err_set(&request->err, -ENOENT, "no member %s", name);
	err_hint(&request->err, "\"status\" lists the members");
	return -ENOENT;
}

int control_want_drive(struct control_request *request, struct drive **ret)
{
	struct member *member;
	uint64_t index = 0;
	int r = control_want_member(request, &member);

	if (!r)
		r = control_want_uint(request, "drive", member_drive_count(member) - 1, &index);
	if (!r)
		*ret = member_drive(member, (unsigned)index);
	return r;
}

static int run_status(struct control_request *request)
{
	json_t *status = control_status(request->target);
	int r = json_object_update(request->answer, status);

	json_decref(status);
	return r ? -ENOMEM : 0;
}

static int run_stop(struct control_request *request)
{
	loop_stop(request->loop);
	return 0;
}

static const struct control_command commands[] = {
    {{"status", "", "what the target is, has done and is doing"}, run_status},
    {{"reset", "portal=P [initiator=IQN]", "TCP reset of the connections there"},
     control_run_reset},
    {{"portal-down", "portal=P", "resets everything there and refuses logins"},
     control_run_portal_down},
    {{"portal-up", "portal=P", "listens there again"}, control_run_portal_up},
    {{"portal-silent", "portal=P", "a black hole: nothing is accepted, answered or reset there"},
     control_run_portal_silent},
    {{"portal-speaks", "portal=P", "... and no longer: what was connected before is reset"},
     control_run_portal_speaks},
    {{"portal-drain", "portal=P [limit=5s]", "asks sessions to log out, then drops them"},
     control_run_portal_drain},
    {{"sessions", "", "who is logged in, where, and with how many I/Os"}, control_run_sessions},
    {{"seen", "[after=N]", "what has been seen of the initiators: logins, losses, resets, ..."},
     control_run_seen},
    {{"alua-set", "volume=V group=N state=S [transition=T]",
      "changes an access state: optimized, non-optimized, standby, ..."},
     control_run_alua_set},
    {{"alua-flip", "[volume=V] [transition=T]", "the states of groups 1 and 2 change places"},
     control_run_alua_flip},
    {{"chap-change", "user=U", "the target has another secret for the user: logins fail"},
     control_run_chap_change},
    {{"chap-restore", "user=U", "... and the one of the file again"}, control_run_chap_restore},
    {{"drive-fail", "member=M drive=N", "the drive is gone"}, control_run_drive_fail},
    {{"drive-return", "member=M drive=N", "it is back, with what it held then"},
     control_run_drive_return},
    {{"drive-replace", "member=M drive=N",
      "file stores: a new, empty drive in place of one that is out"},
     control_run_drive_replace},
    {{"drive-slow", "member=M drive=N [factor=F] [extra=T]",
      "its modelled times grow F-fold, each command takes T more; without both: no longer"},
     control_run_drive_slow},
    {{"drive-latent", "member=M drive=N offset=O length=L | rate=P",
      "sectors that cannot be read: there, or found by a share of the reads"},
     control_run_drive_latent},
    {{"drive-corrupt", "member=M drive=N [offset=O] [length=L] [count=C] [seed=S]",
      "flips a bit in so many sectors of the range"},
     control_run_drive_corrupt},
    {{"drive-heal", "member=M drive=N", "undoes what the three above have done"},
     control_run_drive_heal},
    {{"member-offline", "member=M", "the member is switched off"}, control_run_member_offline},
    {{"member-online", "member=M", "... and on again"}, control_run_member_online},
    {{"member-drain", "member=M", "moves every page of it to the other members of its pool"},
     control_run_member_drain},
    {{"member-drain-stop", "member=M", "stops that"}, control_run_member_drain_stop},
    {{"moves-pause", "[pool=P]", "no page is moved any more"}, control_run_moves_pause},
    {{"moves-resume", "[pool=P]", "... and again"}, control_run_moves_resume},
    {{"balance", "[pool=P]", "a round of the capacity and the performance balancer now"},
     control_run_balance},
    {{"controller-fail", "[member=M] [controller=N]",
      "a controller dies: the active one unless given; style lun: controller=0 or 1"},
     control_run_controller_fail},
    {{"controller-return", "[member=M] [controller=N]", "it is back: the dead one unless given"},
     control_run_controller_return},
    {{"controller-failback", "", "style lun: volumes go back to their controllers"},
     control_run_controller_fail_back},
    {{"link-down", "member=M controller=N port=N",
      "a port of a controller loses its link; its partner port takes over the address"},
     control_run_link_down},
    {{"link-up", "member=M controller=N port=N", "the link is back"}, control_run_link_up},
    {{"battery-lost", "member=M", "the battery of its cache fails: it writes through"},
     control_run_battery_lost},
    {{"battery-ok", "member=M", "... and is charged again"}, control_run_battery_ok},
    {{"scrub-start", "member=M", "reads everything there, repairs what does not fit"},
     control_run_scrub_start},
    {{"scrub-stop", "member=M", "stops that"}, control_run_scrub_stop},
    {{"rebuild-pause", "member=M", "pauses rebuild and scrub"}, control_run_rebuild_pause},
    {{"rebuild-resume", "member=M", "... and lets them go on"}, control_run_rebuild_resume},
    {{"rebuild-rate", "member=M rate=R", "bytes a second that both may move, 0: no limit"},
     control_run_rebuild_rate},
    {{"stop", "", "ends the target in order"}, run_stop},
};

const struct control_command_info *control_command_info(size_t index)
{
	return index < ARRAY_SIZE(commands) ? &commands[index].info : NULL;
}

static const struct control_command *find_command(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(commands[i].info.name, name))
			return &commands[i];
	return NULL;
}

static void name_commands(struct err *err)
{
	char all[1000] = "";

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		size_t used = strlen(all);

		snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "",
			 commands[i].info.name);
	}
	err_hint(err, "commands are: %s", all);
}

json_t *control_execute(struct loop *loop, struct target *target, const json_t *json)
{
	struct control_request request = {
	    .loop = loop, .target = target, .request = json, .answer = json_object()};
	const struct control_command *command = NULL;
	const char *name;
	int r = control_want_string(&request, "command", &name);

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
