/* SPDX-License-Identifier: MIT
 *
 * A scripted kind of path for MPIO's tests: commands take a set time on the virtual loop, answers
 * can be prescribed, and the path can be killed with I/O in flight.
 *
 * A login while the path's port group has no access sees no capacity, and no I/O may follow.
 *
 * The unit behind the paths keeps its content, and what was on its way over a path that is lost may
 * be executed later (a ghost): it arrives some time after the loss and is executed some time after
 * that, unless its nexus has ended before: by a new login of the path, by a login with its name
 * through another path of the same portal group, or by a reset of the unit, which ends what
 * has arrived.  A reset also ends the commands of all other paths, without an answer.
 */
#ifndef SANLAB_TESTS_FAKE_PATH_H
#define SANLAB_TESTS_FAKE_PATH_H

#include <sys/queue.h>

#include "base/rng.h"
#include "initiator/path/path.h"

enum { FAKE_BLOCK_BYTES = 512, FAKE_SCRIPT_MAX = 256, FAKE_GROUPS_MAX = 4 };

struct fake_path;

/* A write that nobody waits for any more. */
struct fake_ghost {
	struct fake_disk *disk;
	const struct fake_path *fake;
	int group; /* the portal group it went through */
	enum io_op op;
	uint64_t lba;
	uint32_t blocks;
	uint8_t *data;
	uint64_t arrives_ns;
	struct loop_timer timer; /* when it is executed */
	TAILQ_ENTRY(fake_ghost) link;
};
TAILQ_HEAD(fake_ghost_list, fake_ghost);

/* Asymmetric access as REPORT TARGET PORT GROUPS tells it. */
struct fake_group {
	uint16_t id;
	uint8_t state;
	bool preferred;
};

struct fake_disk {
	uint8_t *data;
	uint64_t blocks;
	struct loop *loop;
	struct fake_ghost_list ghosts;
	unsigned ghosts_made, ghosts_executed, ghosts_ended;
	unsigned resets, reset_victims; /* commands that a reset has ended without an answer */
	unsigned abort_sets;
	TAILQ_HEAD(fake_path_list, fake_path) paths;

	/* REPORT and SET TARGET PORT GROUPS */
	struct fake_group groups[FAKE_GROUPS_MAX];
	unsigned group_count;
	bool no_extended;     /* refuses the extended header */
	uint8_t transition_s; /* told in the extended header */
	unsigned rtpgs, stpgs;
	unsigned refuse_stpgs;		  /* the next ones fail */
	uint16_t stpg_group;		  /* the last one asked for */
	struct fake_answer *next_command; /* answer of the next path_command, then NULL */
};

struct fake_answer {
	enum path_result result;
	uint8_t scsi_status, key, asc, ascq;
};

struct fake_cmd {
	struct fake_path *fake;
	struct path_io *pio;
	bool refused; /* the path was down already */
	bool aborted; /* by a function: no answer will come by itself */
	struct loop_timer timer;
	TAILQ_ENTRY(fake_cmd) link;
};

TAILQ_HEAD(fake_cmd_list, fake_cmd);

/* A path_command, a fence or a reset under way. */
struct fake_errand {
	struct fake_path *fake;
	struct path_command *command;
	struct path_fence *fence, *reset, *abort;
	const struct fake_path *victim;
	struct loop_timer timer;
	TAILQ_ENTRY(fake_errand) link;
};
TAILQ_HEAD(fake_errand_list, fake_errand);

struct fake_path {
	struct path path; /* first */
	struct fake_disk *disk;
	struct rng rng;
	uint64_t service_ns, service_spread_ns, connect_ns;
	bool refuse_login;			    /* the login fails, by an event */
	bool no_access;				    /* the login cannot see the capacity */
	int connect_error;			    /* path_connect itself fails */
	struct path_identity identity;		    /* what the next login finds */
	struct fake_answer script[FAKE_SCRIPT_MAX]; /* answers of the next commands, in order */
	unsigned script_at, script_count;
	double trouble; /* chance of a random UA, BUSY or abort as answer */
	unsigned logins, submitted, lost;
	bool hold; /* commands are never answered */

	/* Lost writes: executed at once or never (chance 1/2), or as ghosts. */
	bool ghosts;
	uint64_t travel_ns, linger_ns; /* upper bounds: until it arrives, then until executed */

	uint64_t errand_ns; /* a command, a fence, a reset takes that long */
	int fence_status;   /* what fences through this path end with */
	int reset_status;
	unsigned fences; /* begun through this path */

	void (*on_submit)(void *arg, struct fake_path *fake, const struct path_io *pio);
	void (*on_lost)(void *arg, struct fake_path *fake, const struct path_io *pio);
	void *arg;

	struct loop_timer connect_timer;
	struct fake_cmd_list cmds;
	struct fake_errand_list errands;
	TAILQ_ENTRY(fake_path) link;
};

void fake_disk_init(struct fake_disk *disk, struct loop *loop, uint64_t blocks);
void fake_disk_done(struct fake_disk *disk);

struct fake_path *fake_path_new(struct loop *loop, struct fake_disk *disk, const char *portal,
				uint64_t seed);
void fake_path_script(struct fake_path *fake, struct fake_answer answer);
/* The connection breaks. */
void fake_path_kill(struct fake_path *fake, const char *why);

/* fake_ghost.c */
void fake_execute(struct fake_disk *disk, const struct path_io *pio);
void fake_ghost_new(struct fake_path *fake, const struct path_io *pio);
/* The nexus of FAKE in GROUP has ended. */
void fake_ghosts_end(struct fake_disk *disk, const struct fake_path *fake, int group);
void fake_ghosts_reset(struct fake_disk *disk);

/* fake_errand.c */
void fake_command(struct path *path, struct path_command *command);
int fake_fence(struct path *path, const struct path *victim, struct path_fence *fence);
int fake_reset_unit(struct path *path, struct path_fence *fence);
int fake_abort_tasks(struct path *path, struct path_fence *fence);
/* Those of the path that have been aborted end with TASK ABORTED. */
void fake_end_aborted(struct fake_path *fake);
void fake_errands_end(struct fake_path *fake, bool ended_by_owner);

#endif
