/* SPDX-License-Identifier: MIT
 *
 * Faults within what the members bear.
 */
#include "tests/killed/killed_faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "target/control/control.h"

static const uint64_t call_limit_ns = 30 * NS_PER_S;

static json_t *call(const struct faults *faults, json_t *request, struct err *err)
{
	json_t *answer = NULL;
	int rc = control_call(faults->control, request, call_limit_ns, &answer, err);

	if (rc && rc != -EREMOTEIO)
		fprintf(stderr, "the control socket does not answer: %s\n", err->what);
	json_decref(request);
	return rc ? NULL : answer;
}

static json_t *take_status(const struct faults *faults)
{
	struct err err = {0};
	return call(faults, json_pack("{s:s}", "command", "status"), &err);
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	return value ? value : "";
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/* DRIVE -1: none is named. */
static bool command(const struct faults *faults, const char *name, const json_t *member, int drive,
		    bool may_refuse)
{
	json_t *request =
	    json_pack("{s:s, s:s}", "command", name, "member", text(member, "member"));
	struct err err = {0};

	if (drive >= 0)
		json_object_set_new(request, "drive", json_integer(drive));
	json_t *answer = call(faults, request, &err);
	bool done = answer || may_refuse;
	if (!done)
		fprintf(stderr, "%s member=%s drive=%d: %s\n", name, text(member, "member"), drive,
			err.what);
	json_decref(answer);
	return done;
}

/* ---- drives ---- */

static unsigned tolerance(const json_t *member)
{
	static const char *const two[] = {"raid6", "raid60", "adapt"};

	for (size_t i = 0; i < ARRAY_SIZE(two); i++)
		if (strcmp(text(member, "raid"), two[i]) == 0)
			return 2;
	return 1;
}

/* Slots of the set whose content is not complete. */
static unsigned exposed(const json_t *member)
{
	const json_t *rebuild = json_object_get(member, "rebuild");
	const json_t *drives = json_object_get(member, "drives"), *drive;
	unsigned slots, count = 0;
	size_t i;

	slots = (unsigned)number(rebuild, "waiting") +
		json_is_true(json_object_get(rebuild, "running"));
	json_array_foreach(drives, i, drive)
	{
		count += number(drive, "slot") >= 0 && strcmp(text(drive, "state"), "online") != 0;
	}
	return MAX_OF(slots, count);
}

/* One of the drives that are FAILED or not, or -1. */
static int choose_drive(struct faults *faults, const json_t *member, bool failed)
{
	const json_t *drives = json_object_get(member, "drives"), *drive;
	unsigned seen = 0;
	int chosen = -1;
	size_t i;

	json_array_foreach(drives, i, drive)
	{
		if ((strcmp(text(drive, "state"), "failed") == 0) == failed &&
		    rng_below(&faults->rng, ++seen) == 0)
			chosen = (int)i;
	}
	return chosen;
}

static bool fail_drive(struct faults *faults, const json_t *member)
{
	int drive = choose_drive(faults, member, false);

	if (drive < 0 || exposed(member) >= tolerance(member))
		return true;
	faults->failed++;
	return command(faults, "drive-fail", member, drive, false);
}

/* Of MEMBER, or of another one where it has no drive that is out. */
static bool bring_drive(struct faults *faults, const json_t *members, const json_t *member)
{
	int drive = choose_drive(faults, member, true);

	for (size_t i = 0; drive < 0 && i < json_array_size(members); i++) {
		member = json_array_get(members, i);
		drive = choose_drive(faults, member, true);
	}
	if (drive < 0)
		return fail_drive(faults, member);
	/* Refused while its content counts. */
	if (rng_below(&faults->rng, 3) == 0) {
		faults->replaced++;
		return command(faults, "drive-replace", member, drive, true);
	}
	faults->returned++;
	return command(faults, "drive-return", member, drive, false);
}

/* ---- other things ---- */

static bool scrub(struct faults *faults, const json_t *member)
{
	const json_t *at = json_object_get(member, "scrub");

	if (json_is_true(json_object_get(at, "running")))
		return true;
	faults->scrubs++;
	return command(faults, "scrub-start", member, -1, false);
}

static bool battery(struct faults *faults, const json_t *member)
{
	if (!json_object_get(member, "cache"))
		return true;
	faults->batteries++;
	return command(faults, rng_below(&faults->rng, 2) ? "battery-lost" : "battery-ok", member,
		       -1, false);
}

/* Of a member that is draining already: no more. */
static bool drain(struct faults *faults, const json_t *members, const json_t *member)
{
	const json_t *other;
	size_t i;

	json_array_foreach(members, i, other)
	{
		if (strcmp(text(json_object_get(other, "drain"), "state"), "none") != 0)
			return command(faults, "member-drain-stop", other, -1, false);
	}
	faults->drains++;
	return command(faults, "member-drain", member, -1, true); /* there may be no room */
}

bool faults_step(struct faults *faults)
{
	json_t *status = take_status(faults);
	const json_t *members = json_object_get(status, "members");
	bool done = false;

	if (json_array_size(members) > 0) {
		const json_t *member =
		    json_array_get(members, rng_below(&faults->rng, json_array_size(members)));
		uint64_t what = rng_below(&faults->rng, 20);

		done = what < 8	   ? fail_drive(faults, member)
		       : what < 15 ? bring_drive(faults, members, member)
		       : what < 17 ? scrub(faults, member)
		       : what < 19 ? battery(faults, member)
				   : drain(faults, members, member);
	}
	json_decref(status);
	return done;
}

/* ---- before a kill ---- */

static bool check_member(struct faults *faults, const json_t *member)
{
	static const char *const findings[] = {"units_repaired", "units_inconsistent",
					       "units_lost"};
	const json_t *at = json_object_get(member, "scrub"),
		     *rebuild = json_object_get(member, "rebuild");
	bool good = true;

	for (size_t i = 0; i < ARRAY_SIZE(findings); i++) {
		if (number(at, findings[i]) == 0)
			continue;
		fprintf(stderr, "scrub of %s: %s %lld\n", text(member, "member"), findings[i],
			(long long)number(at, findings[i]));
		good = false;
	}
	if (number(rebuild, "lost_bytes") || strcmp(text(member, "raid_state"), "failed") == 0) {
		fprintf(stderr, "%s is %s, the rebuild lost %lld bytes\n", text(member, "member"),
			text(member, "raid_state"), (long long)number(rebuild, "lost_bytes"));
		good = false;
	}
	faults->while_out += exposed(member) > 0;
	faults->while_rebuilding += json_is_true(json_object_get(rebuild, "running"));
	faults->while_scrubbing += json_is_true(json_object_get(at, "running"));
	faults->while_dirty += number(json_object_get(member, "cache"), "dirty_bytes") > 0;
	faults->while_draining +=
	    strcmp(text(json_object_get(member, "drain"), "state"), "none") != 0;
	return good;
}

bool faults_check(struct faults *faults)
{
	json_t *status = take_status(faults);
	const json_t *members = json_object_get(status, "members"), *member;
	bool good = status;
	size_t i;

	json_array_foreach(members, i, member)
	{
		good &= check_member(faults, member);
	}
	json_decref(status);
	return good;
}
