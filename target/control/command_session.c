/* SPDX-License-Identifier: MIT
 *
 * Commands about initiators: who is logged in, and what has been seen of them.
 */
#include "target/control/command.h"
#include "target/iscsi/witness.h"

static json_t *isid_json(const uint8_t isid[6])
{
	return json_sprintf("%02x%02x%02x%02x%02x%02x", isid[0], isid[1], isid[2], isid[3], isid[4],
			    isid[5]);
}

int control_run_sessions(struct control_request *request)
{
	struct iscsi_server *server = target_server(request->target);
	uint64_t now_ns = loop_now_ns(request->loop);
	json_t *sessions = json_array();
	struct iscsi_session_info info;

	for (size_t i = 0; iscsi_server_session(server, i, &info); i++)
		json_array_append_new(
		    sessions,
		    json_pack("{s:s, s:s, s:s, s:o, s:i, s:i, s:I, s:I}", "initiator",
			      info.initiator, "target", info.target ? info.target : "discovery",
			      "portal", info.portal, "isid", isid_json(info.isid), "tsih",
			      (int)info.tsih, "connections", (int)info.connections, "age_ns",
			      (json_int_t)(now_ns - info.since_ns), "ios", (json_int_t)info.ios));
	return json_object_set_new(request->answer, "sessions", sessions);
}

static json_t *sight_json(const struct iscsi_sight *sight)
{
	json_t *json = json_pack("{s:I, s:s, s:I, s:I, s:I, s:s, s:s, s:o, s:s}", "number",
				 (json_int_t)sight->number, "sight", iscsi_sight_names[sight->kind],
				 "first_ns", (json_int_t)sight->first_ns, "last_ns",
				 (json_int_t)sight->last_ns, "count", (json_int_t)sight->count,
				 "initiator", sight->initiator, "portal", sight->portal, "isid",
				 isid_json(sight->isid), "text", sight->text);

	if (sight->target[0])
		json_object_set_new(json, "target", json_string(sight->target));
	return json;
}

/* "after": only what is newer than that number.  "now_ns" is on the clock of the sights. */
int control_run_seen(struct control_request *request)
{
	struct iscsi_server *server = target_server(request->target);
	const struct iscsi_sight *sight;
	json_t *seen = json_array();
	uint64_t after = 0;
	int r = json_object_get(request->request, "after")
		    ? control_want_uint(request, "after", INT64_MAX, &after)
		    : 0;

	while (!r && (sight = iscsi_witness_next(server, after))) {
		r = json_array_append_new(seen, sight_json(sight));
		after = sight->number;
	}
	json_object_set_new(request->answer, "now_ns",
			    json_integer((json_int_t)loop_now_ns(request->loop)));
	json_object_set_new(request->answer, "seen", seen);
	return r;
}
