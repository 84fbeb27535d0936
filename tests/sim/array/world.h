/* SPDX-License-Identifier: MIT
 *
 * One simulated array: a group of one pool with its members on file stores in a directory of its
 * own, on a virtual loop, with the drives that are out or damaged.
 *
 * The simulation keeps within what the level tolerates: of each group of drives that share
 * redundancy at most `tolerance` are touched (failed, stale, damaged) at a time.
 */
#ifndef SANLAB_TESTS_SIM_WORLD_H
#define SANLAB_TESTS_SIM_WORLD_H

#include "base/rng.h"
#include "target/array/array.h"
#include "target/array/controller.h"
#include "target/array/sweep.h"
#include "tests/sim/array/shadow.h"

enum { WORLD_MEMBERS = 3, WORLD_VOLUMES = 2, WORLD_DIR_BYTES = 128 };

/* What befalls a member beside its drives (trouble.h). */
struct plight {
	struct world *world;
	struct controller_pair pair; /* style equallogic */
	struct loop_timer timer;     /* for its deadline */
	bool switched_off, battery_lost, slow;
	uint64_t absence; /* the number of its last change between here and away */
};

struct world {
	uint64_t seed;
	struct rng rng;
	char dir[WORLD_DIR_BYTES];
	struct loop *loop;
	struct group *group; /* NULL while down */
	struct member_config members[WORLD_MEMBERS];
	char names[WORLD_MEMBERS][8];
	struct volume_config volumes[WORLD_VOLUMES];
	struct shadow shadows[WORLD_VOLUMES];
	struct pool_config pool;
	struct group_config config;
	const struct raid_ops *level;
	struct raid_protection protection;
	unsigned actives;
	uint64_t damaged[WORLD_MEMBERS]; /* drives with planted faults, not known to be cured */
	uint64_t flipped[WORLD_MEMBERS]; /* some of them: by flipped bits */
	uint64_t scrubs[WORLD_MEMBERS];	 /* completed when the last fault was planted */
	/* beside the drives */
	struct plight plights[WORLD_MEMBERS];
	struct controller_duo duo; /* style lun */
	struct loop_timer duo_timer;
	unsigned owner[WORLD_VOLUMES]; /* controllers of the duo */
	uint64_t absences;
	/* page moves (roam.h) */
	bool roams, joins; /* pages move; one more member may join */
	enum world_drain { WORLD_STAYS, WORLD_DRAINS, WORLD_UNSURE } drains[WORLD_MEMBERS];
	bool focused; /* requests go to one page of volume 0 */
	uint64_t focus;
	bool shaken;	 /* a drive was away: requests of that time may yet miss it */
	bool trace;	 /* print what happens */
	char fault[400]; /* what went wrong, "": nothing so far */
};

static inline uint64_t world_pick(struct world *world, uint64_t least, uint64_t most)
{
	return least + rng_below(&world->rng, most - least + 1);
}

/* LEVEL: NULL chooses one by the seed. */
bool world_make(struct world *world, uint64_t seed, const char *level, const char *parent);
void world_remove(struct world *world);
bool world_open(struct world *world);
void world_close(struct world *world);
void world_fault(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void world_trace(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void world_forget_faults(struct world *world); /* at opening */
struct member *world_member(struct world *world, unsigned member);
/* Drives of that slot's group of member INDEX that may still be touched. */
int world_slack(struct world *world, unsigned index, unsigned slot);
/* Each does something, or nothing when nothing is possible. */
void world_fail_drive(struct world *world);
void world_return_drive(struct world *world);
void world_damage(struct world *world);
void world_scrub(struct world *world);
void world_return_all(struct world *world);
/* Runs the loop for a random time. */
void world_pass(struct world *world, uint64_t most_ns);
/* Runs until all members are healthy and idle; false: not within an hour of virtual time. */
bool world_heal(struct world *world);
/* A scrub of every member; false: one does not end. */
bool world_scrub_any(struct world *world);
/* The same, and false: it found anything although nothing was damaged. */
bool world_scrub_clean(struct world *world);

#endif
