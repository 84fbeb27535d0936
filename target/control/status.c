/* SPDX-License-Identifier: MIT
 *
 * The target's status document: group, portals and volumes; members are in status_array.c.
 */
#include "target/array/pool_status.h"
#include "target/control/command.h"
#include "target/export.h"

static const struct control_counter portal_counters[] = {
    CONTROL_COUNTER(iscsi_portal_counters, connections_now),
    CONTROL_COUNTER(iscsi_portal_counters, connections_total),
    CONTROL_COUNTER(iscsi_portal_counters, logins),
    CONTROL_COUNTER(iscsi_portal_counters, login_failures),
    CONTROL_COUNTER(iscsi_portal_counters, redirects),
    CONTROL_COUNTER(iscsi_portal_counters, commands),
    CONTROL_COUNTER(iscsi_portal_counters, reads),
    CONTROL_COUNTER(iscsi_portal_counters, writes),
    CONTROL_COUNTER(iscsi_portal_counters, read_bytes),
    CONTROL_COUNTER(iscsi_portal_counters, write_bytes),
    CONTROL_COUNTER(iscsi_portal_counters, pdus_in),
    CONTROL_COUNTER(iscsi_portal_counters, pdus_out),
    CONTROL_COUNTER(iscsi_portal_counters, rejects),
    CONTROL_COUNTER(iscsi_portal_counters, protocol_errors),
    CONTROL_COUNTER(iscsi_portal_counters, resets),
};

static const struct control_counter volume_counter_names[] = {
    CONTROL_COUNTER(volume_counters, reads),	  CONTROL_COUNTER(volume_counters, writes),
    CONTROL_COUNTER(volume_counters, read_bytes), CONTROL_COUNTER(volume_counters, write_bytes),
    CONTROL_COUNTER(volume_counters, flushes),	  CONTROL_COUNTER(volume_counters, unmaps),
    CONTROL_COUNTER(volume_counters, errors),
};

void control_add_counters(json_t *to, const struct control_counter *table, size_t count,
			  const void *base)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value;

		memcpy(&value, (const char *)base + table[i].offset, sizeof value);
		json_object_set_new(to, table[i].key, json_integer((json_int_t)value));
	}
}

static json_t *portal_status(const struct iscsi_portal *portal)
{
	const struct iscsi_portal_config *config = iscsi_portal_config(portal);
	json_t *status = json_pack("{s:s, s:s, s:s, s:b}", "portal", config->address.text, "owner",
				   config->owner, "state",
				   iscsi_portal_is_down(portal)	      ? "down"
				   : iscsi_portal_is_silent(portal)   ? "silent"
				   : iscsi_portal_is_draining(portal) ? "draining"
								      : "up",
				   "redirects_logins", config->redirects);

	control_add_counters(status, portal_counters, ARRAY_SIZE(portal_counters),
			     iscsi_portal_counters(portal));
	return status;
}

static json_t *volume_status(struct target *target, struct volume *volume)
{
	char iqn[224];
	json_t *status;

	export_iqn(iqn, sizeof iqn, target_style(target), target_lab_name(target),
		   volume_name(volume));
	status = json_pack("{s:s, s:s, s:I, s:I, s:b, s:I}", "volume", volume_name(volume),
			   "target", iqn, "size_bytes",
			   (json_int_t)volume_layer(volume)->size_bytes, "block_bytes",
			   (json_int_t)volume_block_bytes(volume), "thin", volume_is_thin(volume),
			   "allocated_bytes", (json_int_t)volume_allocated_bytes(volume));
	json_object_set_new(status, "heat", json_integer((json_int_t)volume_heat(volume)));
	control_add_counters(status, volume_counter_names, ARRAY_SIZE(volume_counter_names),
			     volume_counters(volume));
	return status;
}

json_t *control_status(struct target *target)
{
	struct iscsi_server *server = target_server(target);
	struct group *group = target_group(target);
	json_t *portals = json_array(), *members = json_array(), *volumes = json_array();
	json_t *status, *controllers;

	for (size_t i = 0; i < iscsi_server_portal_count(server); i++)
		json_array_append_new(portals, portal_status(iscsi_server_portal(server, i)));
	for (size_t i = 0; i < group_member_count(group); i++)
		json_array_append_new(members,
				      control_member_status(target, group_member_at(group, i)));
	for (size_t i = 0; i < group_volume_count(group); i++)
		json_array_append_new(volumes, volume_status(target, group_volume(group, i)));
	status = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "schema", "sanlab/target/1",
			   "lab", target_lab_name(target), "style",
			   group_style_names[target_style(target)], "buffers_in_use_bytes",
			   (json_int_t)buf_pool_in_use_bytes(target_buffers(target)),
			   "buffer_refusals", (json_int_t)buf_pool_refusals(target_buffers(target)),
			   "portals", portals, "members", members, "volumes", volumes);
	controllers = control_controllers_status(target);
	json_object_set_new(status, "pools", control_pools_status(target));
	if (controllers)
		json_object_set_new(status, "controllers", controllers);
	return status;
}
