/* SPDX-License-Identifier: MIT
 *
 * Commands about drives: failing and returning, and the faults of target/drive/faults.h.
 */
#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "target/control/command.h"
#include "target/drive/faults.h"

static int set_failed(struct control_request *request, bool failed)
{
	struct drive *drive;
	int r = control_want_drive(request, &drive);

	if (r)
		return r;
	if (drive->failed == failed)
		return err_set(&request->err, -EALREADY, "drive %s %s", drive->name,
			       failed ? "has failed already" : "has not failed");
	drive_set_failed(drive, failed);
	return 0;
}

int control_run_drive_fail(struct control_request *request)
{
	return set_failed(request, true);
}

int control_run_drive_return(struct control_request *request)
{
	return set_failed(request, false);
}

int control_run_drive_replace(struct control_request *request)
{
	struct member *member;
	struct drive *drive;
	int r = control_want_member(request, &member);

	if (r == 0)
		r = control_want_drive(request, &drive);
	for (unsigned i = 0; r == 0 && i < member_drive_count(member); i++)
		if (member_drive(member, i) == drive)
			return member_renew_drive(member, i, &request->err);
	return r;
}

static int say_why(struct control_request *request, const struct drive *drive, int r)
{
	if (r == -ENOSPC)
		err_set(&request->err, r, "drive %s has no room for more faults", drive->name);
	else if (r < 0)
		err_set(&request->err, r, "drive %s: %s", drive->name, strerror(-r));
	return r;
}

/* A number, or a text that TYPE (CFG_REAL, CFG_PERCENT) reads; absent: PRESET. */
static int take_real(struct control_request *request, const char *key, enum cfg_type type,
		     double preset, double *ret)
{
	const json_t *value = json_object_get(request->request, key);
	char why[200] = "a number is wanted";

	*ret = preset;
	if (!value)
		return 0;
	if (json_is_number(value)) {
		*ret = json_number_value(value);
		return 0;
	}
	if (!json_is_string(value) ||
	    cfg_parse_scalar(type, json_string_value(value), ret, why, sizeof why))
		return err_set(&request->err, -EINVAL, "\"%s\": %s", key, why);
	return 0;
}

int control_run_drive_slow(struct control_request *request)
{
	const json_t *extra = json_object_get(request->request, "extra_ns");
	uint64_t extra_ns = (uint64_t)json_integer_value(extra);
	struct drive *drive;
	double factor = 1;
	int r = control_want_drive(request, &drive);

	if (!r)
		r = take_real(request, "factor", CFG_REAL, 1, &factor);
	if (!r && !extra)
		r = control_take_value(request, "extra", CFG_DURATION, 0, &extra_ns);
	if (r)
		return r;
	if (factor < 1 || factor > 1000 || extra_ns > 60 * NS_PER_S)
		return err_set(&request->err, -EINVAL,
			       "\"factor\" must be from 1 to 1000, \"extra\" at most 60s");
	return say_why(request, drive, drive_set_slow(drive, factor, extra_ns));
}

/* The range of a drive that a request names; all of it unless it does. */
static int take_range(struct control_request *request, const struct drive *drive,
		      uint64_t *ret_offset, uint64_t *ret_length)
{
	uint64_t size = drive->layer.size_bytes, offset, length;
	int r = control_take_value(request, "offset", CFG_SIZE, 0, &offset);

	if (!r)
		r = control_take_value(request, "length", CFG_SIZE,
				       offset < size ? size - offset : 0, &length);
	if (r)
		return r;
	if (offset >= size || length == 0 || length > size - offset)
		return err_set(&request->err, -EINVAL, "that is not on drive %s: it has %llu bytes",
			       drive->name, (unsigned long long)size);
	*ret_offset = offset;
	*ret_length = length;
	return 0;
}

static uint64_t seed_of(const struct control_request *request, const struct drive *drive)
{
	const json_t *seed = json_object_get(request->request, "seed");

	return (uint64_t)json_integer_value(seed) ^ rng_stream_of(drive->name);
}

int control_run_drive_latent(struct control_request *request)
{
	bool planted = json_object_get(request->request, "offset");
	uint64_t offset = 0, length = 0;
	struct drive *drive;
	double rate = -1;
	int r = control_want_drive(request, &drive);

	if (!r && planted) {
		r = take_range(request, drive, &offset, &length);
		return r ? r
			 : say_why(request, drive, drive_add_media_error(drive, offset, length));
	}
	if (!r)
		r = take_real(request, "rate", CFG_PERCENT, -1, &rate);
	if (r)
		return r;
	if (rate < 0 || rate > 1)
		return err_set(&request->err, -EINVAL,
			       "either \"offset\" and \"length\", or \"rate\" from 0%% to 100%%");
	return say_why(request, drive,
		       drive_set_media_error_rate(drive, rate, seed_of(request, drive)));
}

int control_run_drive_corrupt(struct control_request *request)
{
	uint64_t offset = 0, length = 0, count = 1;
	struct drive *drive;
	int r = control_want_drive(request, &drive);

	if (!r)
		r = take_range(request, drive, &offset, &length);
	if (!r && json_object_get(request->request, "count"))
		r = control_want_uint(request, "count", FAULT_FLIPS_MAX, &count);
	return r ? r
		 : say_why(request, drive,
			   drive_corrupt(drive, offset, length, (unsigned)count,
					 seed_of(request, drive)));
}

int control_run_drive_heal(struct control_request *request)
{
	struct drive *drive;
	int r = control_want_drive(request, &drive);

	return r ? r : say_why(request, drive, drive_clear_faults(drive));
}
