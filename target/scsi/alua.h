/* SPDX-License-Identifier: MIT
 *
 * Asymmetric logical unit access (SPC-4 5.15): the target ports of the device in groups, and for
 * each logical unit the state of each group.
 *
 * States change by SET TARGET PORT GROUPS (explicit) or by whoever runs the target (implicit, the
 * calls here).  A change gives every other nexus that sees the logical unit ASYMMETRIC ACCESS STATE
 * CHANGED.  A transition that takes time passes through `transitioning` on the loop's clock.
 *
 * Threading: the loop's thread.  Bounds: ALUA_GROUPS_MAX groups, ALUA_PORTS_MAX ports.
 */
#ifndef SANLAB_TARGET_SCSI_ALUA_H
#define SANLAB_TARGET_SCSI_ALUA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/loop.h"

struct scsi_device;
struct scsi_lu;
struct member;

enum {
	ALUA_GROUPS_MAX = 16,
	ALUA_PORTS_MAX = 512,
	ALUA_TRANSITION_S = 60, /* told as IMPLICIT TRANSITION TIME; no transition takes longer */
};

enum alua_state { /* as in REPORT TARGET PORT GROUPS */
		  ALUA_OPTIMIZED = 0x0,
		  ALUA_NON_OPTIMIZED = 0x1,
		  ALUA_STANDBY = 0x2,
		  ALUA_UNAVAILABLE = 0x3,
		  ALUA_OFFLINE = 0xe,
		  ALUA_TRANSITIONING = 0xf,
};

struct alua_port {
	uint16_t group, relative;
};

struct alua_device {
	uint16_t group[ALUA_GROUPS_MAX];
	const struct member *member[ALUA_GROUPS_MAX]; /* whose ports a group has, or NULL */
	unsigned group_count;
	struct alua_port port[ALUA_PORTS_MAX];
	unsigned port_count;
};

/* One group as one logical unit has it. */
struct alua_group {
	uint8_t state;	/* enum alua_state */
	uint8_t before; /* of a transition: where it began */
	uint8_t next;	/* of a timed transition: where it ends */
	uint8_t status; /* why the state is what it is, SPC-4 table 296 */
	struct scsi_lu *lu;
	struct loop_timer timer;
};

struct alua_lu {
	struct alua_group group[ALUA_GROUPS_MAX]; /* as alua_device.group */
	uint16_t owner;				  /* the preferred group; 0: all groups are equal */
};

/* Makes the port known; a new group begins optimized, or non-optimized for logical units that
 * another group owns.  Returns the index of the group, or -ENOSPC.  Known ports are fine. */
int scsi_port_add(struct scsi_device *device, uint16_t group, uint16_t relative_port);
bool scsi_group_exists(const struct scsi_device *device, uint16_t group);
/* All ports of GROUP, which is known, are MEMBER's: for REPORT REFERRALS. */
void scsi_alua_set_member(struct scsi_device *device, uint16_t group, const struct member *member);
/* GROUP's controller owns the logical unit: optimized there, non-optimized elsewhere. */
void scsi_alua_set_owner(struct scsi_lu *lu, uint16_t group);
uint16_t scsi_alua_owner(const struct scsi_lu *lu); /* 0: nobody */

/* "optimized", "non-optimized", "standby", "unavailable", "offline", "transitioning". */
int scsi_alua_state_parse(const char *name, enum alua_state *ret_state);
const char *scsi_alua_state_name(enum alua_state state);

/* An implicit change; with TRANSITION_NS the group is `transitioning` for that long first.
 * -ENOENT: no such group; -ERANGE: longer than ALUA_TRANSITION_S. */
int scsi_alua_set(struct scsi_lu *lu, uint16_t group, enum alua_state state,
		  uint64_t transition_ns);
/* The transition under way fails: back to the state before, IMPLICIT ASYMMETRIC ACCESS STATE
 * TRANSITION FAILED for everybody.  -ENOENT: no such group; -EALREADY: none is under way. */
int scsi_alua_fail(struct scsi_lu *lu, uint16_t group);
int scsi_alua_state(const struct scsi_lu *lu, uint16_t group, enum alua_state *ret_state);
/* The state that a timed transition under way will end in; else as scsi_alua_state. */
int scsi_alua_next_state(const struct scsi_lu *lu, uint16_t group, enum alua_state *ret_state);

#endif
