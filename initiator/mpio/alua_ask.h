/* SPDX-License-Identifier: MIT
 *
 * What a device knows of its paths' access states, and whom it asks.  Private to initiator/mpio.
 */
#ifndef SANLAB_INITIATOR_MPIO_ALUA_ASK_H
#define SANLAB_INITIATOR_MPIO_ALUA_ASK_H

#include "initiator/mpio/alua.h"

enum { MPIO_ALUA_BYTES = 4096 };

struct mpio_path;

struct mpio_alua {
	struct path_command command; /* REPORT or SET TARGET PORT GROUPS */
	bool asking, again;	     /* again: something has happened since it was sent */
	bool short_form;	     /* the unit refuses the extended header */
	bool unsupported;	     /* and the command altogether */
	unsigned via, asked_via;     /* paths: whom to ask next, whom it was asked of */
	unsigned tries;
	uint64_t poll_ns; /* the last delay during a transition */
	unsigned stpg_via;
	uint64_t stpg_after_ns;
	struct loop_timer timer;
	struct alua_report report; /* the last one */
	uint8_t data[MPIO_ALUA_BYTES];
};

/* P has logged in.  True: mpio_path_admit follows when its group's state is known. */
bool mpio_alua_login(struct mpio_path *p);
/* An answer over P says that its group is in that state.  False: it has none. */
bool mpio_alua_met(struct mpio_path *p, enum mpio_access access);
/* An answer over P says that states have changed. */
void mpio_alua_changed(struct mpio_path *p);
/* P's login has ended. */
void mpio_alua_lost(struct mpio_path *p);
void mpio_alua_due(void *arg);
/* How long a transition may take. */
uint64_t mpio_alua_transition_ns(const struct mpio *m);

#endif
