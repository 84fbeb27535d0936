/* SPDX-License-Identifier: MIT
 *
 * Faults of the array in a simulated lab.
 */
#include "harness/sim/sim_array.h"

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "target/controllers.h"
#include "target/drive/faults.h"

static struct member *find(struct target *target, const char *name)
{
	struct group *group = target_group(target);

	for (size_t i = 0; name && i < group_member_count(group); i++)
		if (strcmp(member_name(group_member_at(group, i)), name) == 0)
			return group_member_at(group, i);
	return NULL;
}

static int drive_fault(struct drive *drive, const struct fault_config *fault, bool begin)
{
	switch (fault->kind) {
	case FAULT_DRIVE_FAIL:
		drive_set_failed(drive, begin);
		return 0;
	case FAULT_DRIVE_SLOW:
		return drive_set_slow(drive, begin ? fault->factor : 1,
				      begin ? fault->extra_ns : 0);
	default:
		return drive_set_media_error_rate(drive, begin ? fault->rate : 0,
						  rng_stream_of(drive->name));
	}
}

/* The controller that a failover means when it names none: the one at work, and later the one that
 * has failed. */
static unsigned controller_of(const struct controllers *controllers, const struct member *member,
			      bool begin)
{
	const struct controller_pair *pair = controllers_pair(controllers, member);

	if (!pair)
		return 0;
	return begin ? pair->active : pair->good[0] ? 1 : 0;
}

static int fail_over(struct target *target, struct member *member, const struct fault_config *fault,
		     bool begin, struct err *err)
{
	struct controllers *controllers = target_controllers(target);
	struct controller_event event = {
	    .kind = begin ? CONTROLLER_FAIL : CONTROLLER_RETURN,
	    .controller = fault->controller >= 0 ? (unsigned)fault->controller
						 : controller_of(controllers, member, begin),
	};

	if (controllers_duo(controllers))
		member = NULL; /* the controllers of all */
	return controllers_event(controllers, member, &event, err);
}

int sim_array_apply(struct target *target, const struct fault_config *fault, bool begin,
		    struct err *err)
{
	struct member *member = find(target, fault->member);

	if (fault->kind == FAULT_CONTROLLER_FAILOVER)
		return fail_over(target, member, fault, begin, err);
	if (!member)
		return err_set(err, -ENOTSUP, "the simulation has faults of members only");
	if (fault_has_drive(fault->kind))
		return drive_fault(member_drive(member, (unsigned)fault->drive), fault, begin);
	if (fault->kind == FAULT_MEMBER_OFFLINE)
		return controllers_set_offline(target_controllers(target), member, begin, err);
	return err_set(err, -ENOTSUP, "the simulation has no fault of that kind");
}
