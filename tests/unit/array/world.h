/* SPDX-License-Identifier: MIT
 *
 * A RAID set of any level under random requests, many at a time, against a shadow: what the tests
 * of sets share.  The run at hand is in `shape` and `seed`, for messages.
 */
#ifndef SANLAB_TESTS_ARRAY_WORLD_H
#define SANLAB_TESTS_ARRAY_WORLD_H

#include "base/bytes.h"
#include "tests/unit/array/rig.h"

enum {
	SECTOR = 512,
	CHUNK = 8192,
	ROWS = 12,
	QUEUE = 12,
	BYTES_MAX = 200 * 1024,
	SEEDS = 4,
	ROUNDS = 400,
};

struct shape {
	const char *level;
	unsigned drives;
	unsigned group, tolerance; /* of so many drives so many may fail */
};
extern const struct shape *shape;
extern uint64_t seed;

#define ensure(condition, ...)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			print_error("%s over %u drives, seed %llu: ", shape->level, shape->drives, \
				    (unsigned long long)seed);                                     \
			fail_msg(__VA_ARGS__);                                                     \
		}                                                                                  \
	} while (0)

struct world {
	struct rig rig;
	struct rng rng;
	uint8_t *shadow;
	uint8_t *unsure; /* a byte a sector: a failed write may or may not be there */
	bool errors_allowed;
	unsigned busy;
	uint64_t completed, failed;
};

struct request {
	struct world *world;
	struct io io;
	struct iovec iov[3];
	uint8_t *buffer;
	bool active;
};

void world_open(struct world *world, enum drive_timing timing);
void world_close(struct world *world);
/* Requests at random, ROUNDS attempts; some stay under way. */
void world_load(struct world *world, int rounds);
void world_turn(struct world *world);
void world_quiesce(struct world *world);
/* Fills a request for the world's checks; the caller submits it. */
void world_request(struct world *world, struct request *request, enum io_op op, uint64_t offset,
		   uint64_t length);
void world_read_all(struct world *world);
/* From below: all columns of all stripes fit together. */
void world_check_redundancy(struct world *world);
/* By the set itself: a verification finds nothing. */
void world_verify_clean(struct world *world);
/* COUNT different drives of the group that begins at BASE. */
uint64_t world_victims(struct world *world, unsigned base, unsigned count);

/* Calls BODY for every shape, with and without timing, for some seeds. */
void world_everywhere(void (*body)(struct world *world), bool redundant_only);

#endif
