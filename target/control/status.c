/* SPDX-License-Identifier: MIT
 *
 * The target's status document: counters of portals, members, drives and volumes.
 */
#include "base/bytes.h"
#include "target/control/control.h"
#include "target/export.h"
#include "target/target.h"

/* Counter structures hold uint64_t only; a table names them. */
struct counter {
	const char *key;
	size_t offset;
};

#define COUNTER(type, field)                         \
	{                                            \
#field, offsetof(struct type, field) \
	}

static const struct counter portal_counters[] = {
    COUNTER(iscsi_portal_counters, connections_now),
    COUNTER(iscsi_portal_counters, connections_total),
    COUNTER(iscsi_portal_counters, logins),
    COUNTER(iscsi_portal_counters, login_failures),
    COUNTER(iscsi_portal_counters, redirects),
    COUNTER(iscsi_portal_counters, commands),
    COUNTER(iscsi_portal_counters, reads),
    COUNTER(iscsi_portal_counters, writes),
    COUNTER(iscsi_portal_counters, read_bytes),
    COUNTER(iscsi_portal_counters, write_bytes),
    COUNTER(iscsi_portal_counters, pdus_in),
    COUNTER(iscsi_portal_counters, pdus_out),
    COUNTER(iscsi_portal_counters, rejects),
    COUNTER(iscsi_portal_counters, protocol_errors),
    COUNTER(iscsi_portal_counters, resets),
};

static const struct counter member_counter_names[] = {
    COUNTER(member_counters, reads),	  COUNTER(member_counters, writes),
    COUNTER(member_counters, read_bytes), COUNTER(member_counters, write_bytes),
    COUNTER(member_counters, errors),
};

static const struct counter drive_counter_names[] = {
    COUNTER(drive_counters, reads),	 COUNTER(drive_counters, writes),
    COUNTER(drive_counters, read_bytes), COUNTER(drive_counters, write_bytes),
    COUNTER(drive_counters, flushes),	 COUNTER(drive_counters, errors),
    COUNTER(drive_counters, busy_ns),
};

static const struct counter volume_counter_names[] = {
    COUNTER(volume_counters, reads),	  COUNTER(volume_counters, writes),
    COUNTER(volume_counters, read_bytes), COUNTER(volume_counters, write_bytes),
    COUNTER(volume_counters, flushes),	  COUNTER(volume_counters, unmaps),
    COUNTER(volume_counters, errors),
};

static void add_counters(json_t *to, const struct counter *table, size_t count, const void *base)
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
				   : iscsi_portal_is_draining(portal) ? "draining"
								      : "up",
				   "redirects_logins", config->redirects);

	add_counters(status, portal_counters, ARRAY_SIZE(portal_counters),
		     iscsi_portal_counters(portal));
	return status;
}

static json_t *member_status(struct member *member)
{
	json_t *status = json_pack("{s:s}", "member", member_name(member));
	json_t *drives = json_array();

	add_counters(status, member_counter_names, ARRAY_SIZE(member_counter_names),
		     member_counters(member));
	for (unsigned i = 0; i < member_drive_count(member); i++) {
		const struct drive *drive = member_drive(member, i);
		json_t *one = json_pack("{s:s, s:s}", "drive", drive->name, "state",
					drive->failed ? "failed" : "ok");

		add_counters(one, drive_counter_names, ARRAY_SIZE(drive_counter_names),
			     &drive->counters);
		json_array_append_new(drives, one);
	}
	json_object_set_new(status, "drives", drives);
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
	add_counters(status, volume_counter_names, ARRAY_SIZE(volume_counter_names),
		     volume_counters(volume));
	return status;
}

json_t *control_status(struct target *target)
{
	struct iscsi_server *server = target_server(target);
	struct group *group = target_group(target);
	json_t *portals = json_array(), *members = json_array(), *volumes = json_array();

	for (size_t i = 0; i < iscsi_server_portal_count(server); i++)
		json_array_append_new(portals, portal_status(iscsi_server_portal(server, i)));
	for (size_t i = 0; i < group_member_count(group); i++)
		json_array_append_new(members, member_status(group_member_at(group, i)));
	for (size_t i = 0; i < group_volume_count(group); i++)
		json_array_append_new(volumes, volume_status(target, group_volume(group, i)));
	return json_pack("{s:s, s:s, s:I, s:I, s:o, s:o, s:o}", "schema", "sanlab/target/1", "lab",
			 target_lab_name(target), "buffers_in_use_bytes",
			 (json_int_t)buf_pool_in_use_bytes(target_buffers(target)),
			 "buffer_refusals", (json_int_t)buf_pool_refusals(target_buffers(target)),
			 "portals", portals, "members", members, "volumes", volumes);
}
