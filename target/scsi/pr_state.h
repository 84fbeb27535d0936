/* SPDX-License-Identifier: MIT
 *
 * The persistent reservation state of one logical unit (SPC-4 5.13): registrations and the
 * reservation, as a value.
 *
 * A PERSISTENT RESERVE OUT works on a copy: pr_apply changes it and marks what happens to whom,
 * the caller makes it durable, tells those concerned and puts it in the place of the old one.  So
 * a command that fails leaves nothing behind, and pr_apply needs neither sockets nor files.
 *
 * A registration belongs to an I_T nexus: initiator name and ISID on the one side, the relative
 * target port identifier on the other.  It outlives the session, and is found again when the
 * nexus returns.
 */
#ifndef SANLAB_TARGET_SCSI_PR_STATE_H
#define SANLAB_TARGET_SCSI_PR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PR_MAX_REGISTRATIONS = 1024,
	PR_NAME_BYTES = 224, /* iSCSI name with its NUL */
	PR_ISID_BYTES = 6,
};

enum pr_action {
	PR_REGISTER,
	PR_RESERVE,
	PR_RELEASE,
	PR_CLEAR,
	PR_PREEMPT,
	PR_PREEMPT_AND_ABORT,
	PR_REGISTER_AND_IGNORE,
	PR_REGISTER_AND_MOVE,
};

enum pr_type {
	PR_NONE = 0,
	PR_WRITE_EXCLUSIVE = 1,
	PR_EXCLUSIVE_ACCESS = 3,
	PR_WRITE_EXCLUSIVE_REGISTRANTS = 5,
	PR_EXCLUSIVE_ACCESS_REGISTRANTS = 6,
	PR_WRITE_EXCLUSIVE_ALL = 7,
	PR_EXCLUSIVE_ACCESS_ALL = 8,
};

/* What pr_apply gives beside SENSE_NONE and sense codes. */
#define PR_CONFLICT UINT32_MAX

struct pr_initiator {
	char name[PR_NAME_BYTES];
	uint8_t isid[PR_ISID_BYTES];
};

struct pr_registration {
	struct pr_initiator initiator;
	uint16_t port; /* relative target port identifier */
	uint32_t hash; /* of the I_T nexus, to be compared first */
	uint64_t key;
	/* What a change does to it; clear outside of one. */
	bool gone;
	bool preempted; /* gone by PREEMPT: its commands can be aborted */
	uint32_t attention;
};

struct pr_state {
	uint32_t generation;
	bool persists;	 /* APTPL */
	uint8_t type;	 /* enum pr_type */
	unsigned holder; /* index; meaningless for the types that all registrants hold */
	unsigned count, capacity;
	struct pr_registration *registrations;
};

/* An I_T nexus to look for. */
struct pr_nexus {
	const char *name;
	const uint8_t *isid;
	uint16_t port;
	uint32_t hash; /* pr_hash of the rest */
};

struct pr_request {
	enum pr_action action;
	uint8_t type;
	uint64_t key, service_key;
	bool persists;	/* APTPL */
	bool all_ports; /* ALL_TG_PT */
	bool specifies; /* SPEC_I_PT */
	bool leaves;	/* UNREG */
	struct pr_nexus from;
	const uint16_t *ports; /* the target ports, for all_ports */
	unsigned port_count;
	/* SPEC_I_PT: more initiator ports; REGISTER AND MOVE: the one. */
	const struct pr_initiator *initiators;
	unsigned initiator_count;
	uint16_t move_to_port;
};

uint32_t pr_hash(const char *name, const uint8_t isid[PR_ISID_BYTES], uint16_t port);

struct pr_state *pr_state_new(void);
struct pr_state *pr_state_copy(const struct pr_state *state);
struct pr_state *pr_state_free(struct pr_state *state);
/* Drops what is gone, and the marks. */
void pr_state_settle(struct pr_state *state);

/* Index of the registration, -1: not registered. */
int pr_find(const struct pr_state *state, const struct pr_nexus *nexus);
bool pr_is_same_initiator(const struct pr_initiator *initiator, const struct pr_nexus *nexus);
bool pr_is_of(const struct pr_registration *registration, const struct pr_nexus *nexus);
/* SENSE_NONE; SENSE_INSUFFICIENT_REGISTRATION: the table is full, or no memory. */
uint32_t pr_add(struct pr_state *state, const struct pr_initiator *initiator, uint16_t port,
		uint64_t key);

static inline bool pr_type_is_valid(uint8_t type)
{
	return type < 9 && (0x1ea >> type & 1);
}

static inline bool pr_type_is_all_registrants(uint8_t type)
{
	return type == PR_WRITE_EXCLUSIVE_ALL || type == PR_EXCLUSIVE_ACCESS_ALL;
}

/* Every registered nexus has access: the two registrants-only and the two all-registrants types. */
static inline bool pr_type_is_for_registrants(uint8_t type)
{
	return type >= PR_WRITE_EXCLUSIVE_REGISTRANTS;
}

static inline bool pr_type_is_write_exclusive(uint8_t type)
{
	return type == PR_WRITE_EXCLUSIVE || type == PR_WRITE_EXCLUSIVE_REGISTRANTS ||
	       type == PR_WRITE_EXCLUSIVE_ALL;
}

static inline bool pr_is_holder(const struct pr_state *state, unsigned index)
{
	return state->type != PR_NONE &&
	       (pr_type_is_all_registrants(state->type) || state->holder == index);
}

/* pr_apply.c: SENSE_NONE, a sense code, or PR_CONFLICT; STATE is spoiled when not SENSE_NONE. */
uint32_t pr_apply(struct pr_state *state, const struct pr_request *request);

#endif
