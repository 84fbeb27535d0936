/* SPDX-License-Identifier: MIT
 *
 * The array's part of the status document: members with their state, drives, background work and
 * controllers.
 */
#include <errno.h>

#include "target/array/pool_status.h"
#include "target/array/sweep.h"
#include "target/control/command.h"
#include "target/controllers.h"
#include "target/drive/faults.h"

static const struct control_counter member_counter_names[] = {
    CONTROL_COUNTER(member_counters, reads),	  CONTROL_COUNTER(member_counters, writes),
    CONTROL_COUNTER(member_counters, read_bytes), CONTROL_COUNTER(member_counters, write_bytes),
    CONTROL_COUNTER(member_counters, errors),
};

static const struct control_counter drive_counter_names[] = {
    CONTROL_COUNTER(drive_counters, reads),
    CONTROL_COUNTER(drive_counters, writes),
    CONTROL_COUNTER(drive_counters, read_bytes),
    CONTROL_COUNTER(drive_counters, write_bytes),
    CONTROL_COUNTER(drive_counters, flushes),
    CONTROL_COUNTER(drive_counters, unmaps),
    CONTROL_COUNTER(drive_counters, errors),
    CONTROL_COUNTER(drive_counters, media_errors),
    CONTROL_COUNTER(drive_counters, checksum_errors),
    CONTROL_COUNTER(drive_counters, timeouts),
    CONTROL_COUNTER(drive_counters, gone_errors),
    CONTROL_COUNTER(drive_counters, fault_refusals),
    CONTROL_COUNTER(drive_counters, queue_peak),
    CONTROL_COUNTER(drive_counters, busy_ns),
    CONTROL_COUNTER(drive_counters, served),
    CONTROL_COUNTER(drive_counters, response_ns),
    CONTROL_COUNTER(drive_counters, completed),
    CONTROL_COUNTER(drive_counters, buffer_hits),
    CONTROL_COUNTER(drive_counters, overdue),
    CONTROL_COUNTER(drive_counters, late_max_ns),
};

/* What a storage administrator would call the member: what keeps it from serving comes first. */
static const char *state_of(struct target *target, struct member *member)
{
	const struct controllers *controllers = target_controllers(target);
	const struct controller_pair *pair = controllers_pair(controllers, member);

	if (member_is_offline(member))
		return "offline";
	if (pair && pair->phase == CONTROLLER_TAKING_OVER)
		return "failing-over";
	return member_state_names[member_state(member)];
}

static json_t *pair_status(const struct controller_pair *pair)
{
	json_t *controllers = json_array();

	for (unsigned i = 0; i < pair->count; i++)
		json_array_append_new(controllers,
				      json_pack("{s:i, s:s, s:I}", "controller", (int)i, "role",
						controller_pair_role(pair, i), "links_down",
						(json_int_t)pair->links_down[i]));
	return controllers;
}

json_t *control_controllers_status(struct target *target)
{
	const struct controller_duo *duo = controllers_duo(target_controllers(target));
	json_t *controllers = json_array();

	if (!duo) {
		json_decref(controllers);
		return NULL;
	}
	for (unsigned i = 0; i < CONTROLLER_COUNT; i++)
		json_array_append_new(controllers,
				      json_pack("{s:i, s:s, s:i}", "controller", (int)i, "role",
						duo->good[i] ? "active" : "failed", "port_group",
						(int)i + 1));
	return controllers;
}

/* -1: not known. */
static json_t *remaining_json(uint64_t remaining_ns)
{
	return json_integer(remaining_ns == UINT64_MAX ? -1 : (json_int_t)remaining_ns);
}

static json_t *rebuild_status(const struct member *member)
{
	struct rebuild_progress at;

	member_rebuild_progress(member, &at);
	if (!at.running)
		return json_pack("{s:b, s:b, s:i, s:I, s:I}", "running", 0, "paused", at.paused,
				 "waiting", (int)at.waiting, "completed", (json_int_t)at.completed,
				 "lost_bytes", (json_int_t)at.lost_bytes);
	return json_pack(
	    "{s:b, s:b, s:i, s:i, s:i, s:f, s:I, s:o, s:I, s:I}", "running", 1, "paused", at.paused,
	    "slot", (int)at.slot, "drive", at.drive == SWEEP_NO_DRIVE ? -1 : (int)at.drive,
	    "waiting", (int)at.waiting, "percent", at.percent, "bytes_per_s",
	    (json_int_t)at.bytes_per_s, "remaining_ns", remaining_json(at.remaining_ns),
	    "completed", (json_int_t)at.completed, "lost_bytes", (json_int_t)at.lost_bytes);
}

static json_t *places_json(const struct scrub_progress *at)
{
	json_t *places = json_array();

	for (unsigned i = 0; i < at->place_count; i++) {
		const struct scrub_place *place = &at->places[i];

		json_array_append_new(places,
				      json_pack("{s:I, s:I, s:i, s:b, s:b}", "offset_bytes",
						(json_int_t)place->offset_bytes, "length_bytes",
						(json_int_t)place->length_bytes, "repaired_drives",
						(int)place->repaired, "inconsistent",
						place->inconsistent, "lost", place->lost));
	}
	return places;
}

static json_t *scrub_status(const struct member *member)
{
	struct scrub_progress at;

	member_scrub_progress(member, &at);
	return json_pack("{s:b, s:b, s:b, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "running",
			 at.running, "waiting", at.waiting, "paused", at.paused, "percent",
			 at.percent, "bytes_per_s", (json_int_t)at.bytes_per_s, "completed",
			 (json_int_t)at.completed, "checked_bytes", (json_int_t)at.checked_bytes,
			 "units_checked", (json_int_t)at.units_checked, "units_repaired",
			 (json_int_t)at.units_repaired, "units_inconsistent",
			 (json_int_t)at.units_inconsistent, "units_lost", (json_int_t)at.units_lost,
			 "places", places_json(&at));
}

/* What is wrong with a drive that serves, in a few words; empty: nothing. */
static void describe_faults(const struct drive *drive, char *out, size_t size)
{
	struct drive_fault_state at = drive_fault_state(drive);
	size_t used = 0;

	out[0] = '\0';
	if (at.slow_factor > 1 || at.slow_extra_ns)
		used += (size_t)snprintf(out + used, size - used, "slow: %.3g-fold and %.3g ms; ",
					 at.slow_factor, (double)at.slow_extra_ns / 1e6);
	if (at.bad_ranges || at.media_error_rate > 0)
		used += (size_t)snprintf(out + used, size - used, "unreadable: %llu bytes; ",
					 (unsigned long long)at.bad_bytes);
	if (at.flipped_bits)
		used += (size_t)snprintf(out + used, size - used, "corrupt: %u sectors; ",
					 at.flipped_bits);
	if (at.erring || at.timeout_rate > 0)
		used += (size_t)snprintf(out + used, size - used, "%s; ",
					 at.erring ? "ends commands with errors" : "hangs");
	if (used >= 2)
		out[used - 2] = '\0';
}

static json_t *drives_status(struct member *member)
{
	json_t *drives = json_array();
	char fault[200];

	for (unsigned i = 0; i < member_drive_count(member); i++) {
		const struct drive *drive = member_drive(member, i);
		json_t *one =
		    json_pack("{s:s, s:i, s:s, s:i, s:I}", "drive", drive->name, "number", (int)i,
			      "state", member_drive_state_names[member_drive_state(member, i)],
			      "slot", member_drive_slot(member, i), "size_bytes",
			      (json_int_t)drive->layer.size_bytes);

		describe_faults(drive, fault, sizeof fault);
		json_object_set_new(one, "fault", json_string(fault));
		control_add_counters(one, drive_counter_names, ARRAY_SIZE(drive_counter_names),
				     &drive->counters);
		json_array_append_new(drives, one);
	}
	return drives;
}

static void set_part(json_t *status, const char *key, json_t *part)
{
	if (part)
		json_object_set_new(status, key, part);
}

json_t *control_member_status(struct target *target, struct member *member)
{
	const struct controller_pair *pair = controllers_pair(target_controllers(target), member);
	uint64_t total_bytes, used_bytes;
	json_t *status = json_pack("{s:s, s:s, s:s, s:s}", "member", member_name(member), "state",
				   state_of(target, member), "raid", member_raid_name(member),
				   "raid_state", member_state_names[member_state(member)]);

	member_pages(member, &total_bytes, &used_bytes);
	json_object_set_new(status, "total_bytes", json_integer((json_int_t)total_bytes));
	json_object_set_new(status, "used_bytes", json_integer((json_int_t)used_bytes));
	control_add_counters(status, member_counter_names, ARRAY_SIZE(member_counter_names),
			     member_counters(member));
	if (pair) {
		json_object_set_new(status, "controllers", pair_status(pair));
		json_object_set_new(status, "failovers", json_integer(pair->failovers));
	}
	json_object_set_new(status, "drain", control_drain_status(target, member));
	set_part(status, "cache", control_cache_status(member));
	set_part(status, "ssd_cache", control_ssd_status(member));
	json_object_set_new(status, "rebuild", rebuild_status(member));
	json_object_set_new(status, "scrub", scrub_status(member));
	json_object_set_new(status, "drives", drives_status(member));
	return status;
}
