/* SPDX-License-Identifier: MIT
 *
 * Random faults of a system: they begin, last, and are mended; several at a time.
 */
#ifndef SANLAB_TESTS_SIM_SYSTEM_FAULTS_H
#define SANLAB_TESTS_SIM_SYSTEM_FAULTS_H

#include "tests/sim/system/world.h"

enum { FAULTS_MAX = 4 };

struct fault_type;

struct fault {
	const struct fault_type *kind; /* NULL: none */
	uint64_t until_ns;
	struct net_link *link;
	unsigned member, drive, host;
};

/* Another initiator, which resets logical units. */
struct other_nexus {
	struct path *path;
	struct path_fence reset;
	bool resetting;
};

struct faults {
	struct world *world;
	struct fault active[FAULTS_MAX];
	bool drive_gone[WORLD_MEMBERS]; /* has been: one a member is what all levels bear */
	struct other_nexus other;
	uint64_t count;
};

bool faults_init(struct faults *faults, struct world *world);
void faults_done(struct faults *faults);
/* Begins one, if there is room for it and it is possible. */
void faults_begin(struct faults *faults);
/* Ends what is over. */
void faults_mend_due(struct faults *faults);
void faults_mend_all(struct faults *faults);

#endif
