/* SPDX-License-Identifier: MIT
 *
 * Faults of the array in a simulated lab.
 */
#include "harness/sim/sim_array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/array/controller.h"
#include "target/array/member_gate.h"
#include "target/drive/faults.h"

enum { MEMBERS_MAX = 16 };

struct sim_member {
	struct sim_array *array;
	const struct member_config *config;
	struct member *member;
	struct controller_pair pair;
	struct loop_timer timer;
	bool switched_off, silent;
};

struct sim_array {
	struct loop *loop;
	struct sim_member members[MEMBERS_MAX];
	size_t member_count;
	void (*silence)(void *arg, const struct member_config *member, bool silent);
	void *arg;
};

static void apply_state(struct sim_member *at)
{
	bool off = at->switched_off || at->pair.phase == CONTROLLER_OFFLINE;
	bool silent = off || at->pair.phase != CONTROLLER_SERVING;

	member_set_gate(at->member, off ? MEMBER_OFFLINE : silent ? MEMBER_HOLDS : MEMBER_OPEN);
	member_cache_set_mirrored(at->member, controller_pair_mirrored(&at->pair));
	if (silent != at->silent) {
		at->silent = silent;
		at->array->silence(at->array->arg, at->config, silent);
	}
	if (at->pair.deadline_ns)
		loop_timer_set(at->array->loop, &at->timer, at->pair.deadline_ns);
	else
		loop_timer_cancel(at->array->loop, &at->timer);
}

static int tell_pair(struct sim_member *at, enum controller_event_kind kind, unsigned controller)
{
	struct controller_event event = {.kind = kind, .controller = controller};
	int r = controller_pair_event(&at->pair, &event, loop_now_ns(at->array->loop));

	if (r == 0)
		apply_state(at);
	return r;
}

static void pair_time(void *arg)
{
	tell_pair(arg, CONTROLLER_TIME, 0);
}

int sim_array_new(struct loop *loop, const struct lab *lab, struct group *group,
		  void (*silence)(void *arg, const struct member_config *member, bool silent),
		  void *arg, struct sim_array **ret_array)
{
	const struct pool_config *pools = lab->group.pools.items;
	struct sim_array *array = calloc(1, sizeof *array);

	if (!array)
		return -ENOMEM;
	array->loop = loop;
	array->silence = silence;
	array->arg = arg;
	for (size_t p = 0; p < lab->group.pools.count; p++) {
		const struct member_config *members = pools[p].members.items;

		for (size_t m = 0; m < pools[p].members.count; m++) {
			struct sim_member *at = &array->members[array->member_count];
			uint64_t count = members[m].controllers.count;

			at->array = array;
			at->config = &members[m];
			at->member = group_member_at(group, array->member_count++);
			controller_pair_init(&at->pair, count ? (unsigned)count : CONTROLLER_COUNT,
					     members[m].controllers.failover_ns
						 ? members[m].controllers.failover_ns
						 : lab->group.controllers.failover_ns);
			loop_timer_init(&at->timer, pair_time, at);
		}
	}
	*ret_array = array;
	return 0;
}

struct sim_array *sim_array_free(struct sim_array *array)
{
	if (!array)
		return NULL;
	for (size_t i = 0; i < array->member_count; i++) {
		loop_timer_cancel(array->loop, &array->members[i].timer);
		member_set_gate(array->members[i].member, MEMBER_OPEN);
	}
	free(array);
	return NULL;
}

static struct sim_member *find(struct sim_array *array, const char *name)
{
	for (size_t i = 0; name && i < array->member_count; i++)
		if (strcmp(array->members[i].config->name, name) == 0)
			return &array->members[i];
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

int sim_array_apply(struct sim_array *array, const struct fault_config *fault, bool begin,
		    struct err *err)
{
	struct sim_member *at = find(array, fault->member);

	if (!at)
		return err_set(err, -ENOTSUP, "the simulation has faults of members only");
	if (fault_has_drive(fault->kind))
		return drive_fault(member_drive(at->member, (unsigned)fault->drive), fault, begin);
	switch (fault->kind) {
	case FAULT_MEMBER_OFFLINE:
		at->switched_off = begin;
		apply_state(at);
		return 0;
	case FAULT_CONTROLLER_FAILOVER: {
		unsigned dead = at->pair.good[0] ? 1 : 0;
		unsigned controller = fault->controller >= 0 ? (unsigned)fault->controller
				      : begin		     ? at->pair.active
							     : dead;

		return tell_pair(at, begin ? CONTROLLER_FAIL : CONTROLLER_RETURN, controller);
	}
	default:
		return err_set(err, -ENOTSUP, "the simulation has no fault of that kind");
	}
}
