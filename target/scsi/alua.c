/* SPDX-License-Identifier: MIT
 *
 * Asymmetric access states: keeping and changing them, and which commands each state lets through.
 * The commands that report and set them are in target_port_groups.c.
 */
#include "target/scsi/alua.h"

#include <errno.h>

#include "target/scsi/internal.h"

static const struct {
	const char *name;
	enum alua_state state;
} state_names[] = {
    {"optimized", ALUA_OPTIMIZED}, {"non-optimized", ALUA_NON_OPTIMIZED},
    {"standby", ALUA_STANDBY},	   {"unavailable", ALUA_UNAVAILABLE},
    {"offline", ALUA_OFFLINE},	   {"transitioning", ALUA_TRANSITIONING},
};

int scsi_alua_state_parse(const char *name, enum alua_state *ret_state)
{
	for (size_t i = 0; i < ARRAY_SIZE(state_names); i++) {
		if (strcmp(state_names[i].name, name) == 0) {
			*ret_state = state_names[i].state;
			return 0;
		}
	}
	return -EINVAL;
}

const char *scsi_alua_state_name(enum alua_state state)
{
	for (size_t i = 0; i < ARRAY_SIZE(state_names); i++) {
		if (state_names[i].state == state)
			return state_names[i].name;
	}
	return "unknown";
}

int scsi_alua_index(const struct scsi_device *device, uint16_t group)
{
	for (unsigned i = 0; i < device->alua.group_count; i++) {
		if (device->alua.group[i] == group)
			return (int)i;
	}
	return -ENOENT;
}

bool scsi_group_exists(const struct scsi_device *device, uint16_t group)
{
	return scsi_alua_index(device, group) >= 0;
}

/* ---- ports and groups ---- */

static void transition_over(void *arg);

static void group_begin(struct scsi_lu *lu, unsigned index)
{
	struct alua_group *group = &lu->alua.group[index];
	uint16_t id = lu->device->alua.group[index];

	group->lu = lu;
	loop_timer_init(&group->timer, transition_over, group);
	group->state =
	    lu->alua.owner == 0 || lu->alua.owner == id ? ALUA_OPTIMIZED : ALUA_NON_OPTIMIZED;
	group->status = ALUA_STATUS_NONE;
}

int scsi_port_add(struct scsi_device *device, uint16_t group, uint16_t relative_port)
{
	struct alua_device *alua = &device->alua;
	int index = scsi_alua_index(device, group);
	struct scsi_lu *lu;

	for (unsigned i = 0; i < alua->port_count; i++) {
		if (alua->port[i].relative == relative_port && alua->port[i].group == group)
			return index;
	}
	if (alua->port_count == ALUA_PORTS_MAX ||
	    (index < 0 && alua->group_count == ALUA_GROUPS_MAX))
		return -ENOSPC;
	if (index < 0) {
		index = (int)alua->group_count++;
		alua->group[index] = group;
		TAILQ_FOREACH (lu, &device->lus, entry)
			group_begin(lu, (unsigned)index);
	}
	alua->port[alua->port_count++] = (struct alua_port){group, relative_port};
	return index;
}

void scsi_alua_set_member(struct scsi_device *device, uint16_t group, const struct member *member)
{
	int index = scsi_alua_index(device, group);

	if (index >= 0)
		device->alua.member[index] = member;
}

void scsi_alua_begin(struct scsi_lu *lu)
{
	for (unsigned i = 0; i < lu->device->alua.group_count; i++)
		group_begin(lu, i);
}

void scsi_alua_end(struct scsi_lu *lu)
{
	for (unsigned i = 0; i < lu->device->alua.group_count; i++)
		loop_timer_cancel(lu->device->loop, &lu->alua.group[i].timer);
}

void scsi_alua_set_owner(struct scsi_lu *lu, uint16_t group)
{
	scsi_alua_end(lu);
	lu->alua.owner = group;
	scsi_alua_begin(lu);
}

uint16_t scsi_alua_owner(const struct scsi_lu *lu)
{
	return lu->alua.owner;
}

/* ---- changes ---- */

void scsi_alua_put(struct scsi_lu *lu, unsigned index, enum alua_state state, uint8_t status,
		   const struct scsi_nexus *except)
{
	struct alua_group *group = &lu->alua.group[index];

	loop_timer_cancel(lu->device->loop, &group->timer);
	group->status = status;
	if (group->state == state)
		return;
	if (state == ALUA_TRANSITIONING)
		group->before = group->state;
	group->state = (uint8_t)state;
	scsi_ua_broadcast(lu, except, SENSE_UA_ALUA_CHANGED);
}

static void transition_over(void *arg)
{
	struct alua_group *group = arg;
	struct scsi_lu *lu = group->lu;

	scsi_alua_put(lu, (unsigned)(group - lu->alua.group), group->next, ALUA_STATUS_IMPLICIT,
		      NULL);
}

int scsi_alua_set(struct scsi_lu *lu, uint16_t group, enum alua_state state, uint64_t transition_ns)
{
	struct loop *loop = lu->device->loop;
	int index = scsi_alua_index(lu->device, group);
	struct alua_group *at;

	if (index < 0)
		return -ENOENT;
	if (transition_ns > ALUA_TRANSITION_S * NS_PER_S)
		return -ERANGE;
	at = &lu->alua.group[index];
	if (transition_ns == 0) {
		scsi_alua_put(lu, (unsigned)index, state, ALUA_STATUS_IMPLICIT, NULL);
		return 0;
	}
	scsi_alua_put(lu, (unsigned)index, ALUA_TRANSITIONING, ALUA_STATUS_IMPLICIT, NULL);
	at->next = (uint8_t)state;
	loop_timer_set(loop, &at->timer, loop_now_ns(loop) + transition_ns);
	return 0;
}

int scsi_alua_fail(struct scsi_lu *lu, uint16_t group)
{
	int index = scsi_alua_index(lu->device, group);
	struct alua_group *at;

	if (index < 0)
		return -ENOENT;
	at = &lu->alua.group[index];
	if (at->state != ALUA_TRANSITIONING)
		return -EALREADY;
	loop_timer_cancel(lu->device->loop, &at->timer);
	at->state = at->before;
	scsi_ua_broadcast(lu, NULL, SENSE_UA_ALUA_FAILED);
	return 0;
}

int scsi_alua_state(const struct scsi_lu *lu, uint16_t group, enum alua_state *ret_state)
{
	int index = scsi_alua_index(lu->device, group);

	if (index < 0)
		return -ENOENT;
	*ret_state = lu->alua.group[index].state;
	return 0;
}

int scsi_alua_next_state(const struct scsi_lu *lu, uint16_t group, enum alua_state *ret_state)
{
	int index = scsi_alua_index(lu->device, group);
	const struct alua_group *at;

	if (index < 0)
		return -ENOENT;
	at = &lu->alua.group[index];
	*ret_state = loop_timer_pending(&at->timer) ? at->next : at->state;
	return 0;
}

/* ---- commands ---- */

uint32_t scsi_alua_sense_of(const struct scsi_lu *lu, const struct scsi_nexus *nexus)
{
	switch (lu->alua.group[nexus->alua_index].state) {
	case ALUA_STANDBY:
		return SENSE_ALUA_STANDBY;
	case ALUA_UNAVAILABLE:
		return SENSE_ALUA_UNAVAILABLE;
	case ALUA_OFFLINE:
		return SENSE_ALUA_OFFLINE;
	case ALUA_TRANSITIONING:
		return SENSE_ALUA_TRANSITION;
	default:
		return SENSE_NONE;
	}
}

uint32_t scsi_alua_sense(const struct scsi_task *task)
{
	return scsi_alua_sense_of(task->lu, task->nexus);
}

/* What every state lets through (SPC-4 5.15.2.4): that which tells the initiator where it is. */
static bool always_allowed(const uint8_t *cdb)
{
	switch (cdb[0]) {
	case 0x12: /* INQUIRY */
	case 0xa0: /* REPORT LUNS */
	case 0x03: /* REQUEST SENSE */
	case 0xa3: /* MAINTENANCE IN: target port groups, supported commands */
		return true;
	case 0xa4: /* MAINTENANCE OUT */
		return (cdb[1] & 0x1f) == 0x0a;
	default:
		return false;
	}
}

static bool standby_allowed(uint8_t opcode)
{
	switch (opcode) {
	case 0x15: /* MODE SELECT (6) */
	case 0x1a: /* MODE SENSE (6) */
	case 0x1c: /* RECEIVE DIAGNOSTIC RESULTS */
	case 0x1d: /* SEND DIAGNOSTIC */
	case 0x3b: /* WRITE BUFFER */
	case 0x3c: /* READ BUFFER */
	case 0x4c: /* LOG SELECT */
	case 0x4d: /* LOG SENSE */
	case 0x55: /* MODE SELECT (10) */
	case 0x5a: /* MODE SENSE (10) */
	case 0x5e: /* PERSISTENT RESERVE IN */
	case 0x5f: /* PERSISTENT RESERVE OUT */
		return true;
	default:
		return false;
	}
}

uint32_t scsi_alua_check(const struct scsi_task *task)
{
	uint32_t code = scsi_alua_sense(task);

	if (code == SENSE_NONE || always_allowed(task->cdb))
		return SENSE_NONE;
	if (code == SENSE_ALUA_STANDBY && standby_allowed(task->cdb[0]))
		return SENSE_NONE;
	return code;
}
