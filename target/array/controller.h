/* SPDX-License-Identifier: MIT
 *
 * Controllers, as pure state machines: (state, event, now) -> state and what follows from it.  The
 * shell (target/controllers.c) carries that out on portals, members and access states.
 *
 * struct controller_pair is the active/passive pair of one EqualLogic member (shared domain
 * arrays.md 1.4): the passive controller's cache mirrors the active one's and its ports are dark.
 * When the active one dies, the member's portals are silent until the other has taken over their
 * addresses; without another the member is offline.  A lost link moves a port to the partner port
 * of the other controller: the address survives.
 *
 * struct controller_duo are the two controllers of an ALUA array (2.1): each owns volumes and has
 * portals of its own.  The survivor takes over the volumes of a lost one and gives them back when
 * it returns (failback auto) or when it is told to.
 *
 * Threading: none.  Time is handed in.
 */
#ifndef SANLAB_TARGET_ARRAY_CONTROLLER_H
#define SANLAB_TARGET_ARRAY_CONTROLLER_H

#include <stdbool.h>
#include <stdint.h>

enum { CONTROLLER_COUNT = 2, CONTROLLER_PORTS_MAX = 32 };

enum controller_failback { CONTROLLER_FAILBACK_AUTO, CONTROLLER_FAILBACK_MANUAL };
extern const char *const controller_failback_names[];

enum controller_event_kind {
	CONTROLLER_FAIL,      /* dies, or is pulled */
	CONTROLLER_RETURN,    /* is there again */
	CONTROLLER_LINK_DOWN, /* the link of PORT of the controller */
	CONTROLLER_LINK_UP,
	CONTROLLER_FAIL_BACK, /* duo: volumes go back to the controllers they belong to */
	CONTROLLER_TIME,      /* the deadline has come; earlier ones change nothing */
};

struct controller_event {
	enum controller_event_kind kind;
	unsigned controller, port;
};

/* ---- the pair of a member ---- */

enum controller_phase {
	CONTROLLER_SERVING,
	CONTROLLER_TAKING_OVER, /* until the deadline */
	CONTROLLER_OFFLINE,	/* no controller is left */
};
extern const char *const controller_phase_names[];

struct controller_pair {
	uint64_t failover_ns; /* how long a takeover takes */
	unsigned count;	      /* controllers the member has: 1 or 2 */
	enum controller_phase phase;
	unsigned active;
	bool good[CONTROLLER_COUNT];
	uint32_t links_down[CONTROLLER_COUNT]; /* a bit a port */
	uint64_t deadline_ns;		       /* CONTROLLER_TIME is wanted then; 0: not */
	unsigned failovers;
};

void controller_pair_init(struct controller_pair *pair, unsigned count, uint64_t failover_ns);
/* -EINVAL: no such controller or port; -EALREADY: nothing changes; else 0. */
int controller_pair_event(struct controller_pair *pair, const struct controller_event *event,
			  uint64_t now_ns);
/* What follows from the state. */
bool controller_pair_serves(const struct controller_pair *pair, unsigned port);
bool controller_pair_mirrored(const struct controller_pair *pair); /* both hold the cache */
/* "active", "passive", "failed", "absent". */
const char *controller_pair_role(const struct controller_pair *pair, unsigned controller);

/* ---- the two controllers of an ALUA array ---- */

enum controller_action {
	CONTROLLER_SILENCE = 1 << 0, /* its portals fall silent, its group becomes unavailable */
	CONTROLLER_SPEAK = 1 << 1,   /* its portals serve again, its group is non-optimized */
	CONTROLLER_TAKE = 1 << 2,    /* it takes over every volume, which takes transition_ns */
	CONTROLLER_TAKE_OWN = 1 << 3 /* ... only those that belong to it */
};

struct controller_duo {
	uint64_t transition_ns;
	enum controller_failback failback;
	bool good[CONTROLLER_COUNT];
	uint64_t busy_until_ns; /* volumes are changing hands until then */
	bool wants_back;	/* a failback waits for that */
	uint64_t deadline_ns;	/* CONTROLLER_TIME is wanted then; 0: not */
	unsigned failovers;
};

struct controller_actions {
	unsigned of[CONTROLLER_COUNT]; /* enum controller_action, in the order of their bits */
};

void controller_duo_init(struct controller_duo *duo, uint64_t transition_ns,
			 enum controller_failback failback);
/* -EINVAL: no such controller, or an event that such an array does not have; -EALREADY: nothing
 * changes; else 0 and what is to be done. */
int controller_duo_event(struct controller_duo *duo, const struct controller_event *event,
			 uint64_t now_ns, struct controller_actions *ret_actions);

#endif
