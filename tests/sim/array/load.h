/* SPDX-License-Identifier: MIT
 *
 * Random requests to a simulated array, and the judgement of what comes back.
 *
 * Requests under way never overlap where one of them changes something, as those of a file system
 * do not: what a read may find stays decidable.
 */
#ifndef SANLAB_TESTS_SIM_LOAD_H
#define SANLAB_TESTS_SIM_LOAD_H

#include "tests/sim/array/world.h"

enum { LOAD_FLIGHTS = 12, LOAD_SECTORS_MAX = 512, LOAD_BLOCK_SECTORS = 128 };

struct load;

struct flight {
	struct io io;
	struct iovec iov;
	struct load *load;
	unsigned volume;
	uint64_t sector, count;
	uint32_t id;
	uint64_t stamp;	   /* the shadow's, when a flush began */
	uint64_t absences; /* the world's, when it began */
	unsigned members;  /* a bit each: where its range lay then */
	bool busy;
	uint8_t *data;
};

struct load {
	struct world *world;
	struct flight flights[LOAD_FLIGHTS];
	unsigned busy;
	uint32_t next_id;
	bool lost;	     /* the array has crashed: nothing that ends now was acknowledged */
	bool errors_allowed; /* more drives are out than the level tolerates */
	uint8_t *touched[WORLD_VOLUMES]; /* a byte a block of LOAD_BLOCK_SECTORS */
	uint64_t requests, errors;
};

bool load_init(struct load *load, struct world *world);
void load_done(struct load *load);
/* Starts one, if there is room for it. */
void load_issue(struct load *load);
/* Runs the loop until nothing is under way; false: not within ten minutes of virtual time. */
bool load_wait(struct load *load);
/* Reads everything that was ever touched. */
bool load_verify(struct load *load);
/* Drives the set has lost beyond its tolerance make no more unreadable than lay on them. */
bool load_beyond_tolerance(struct load *load);

#endif
