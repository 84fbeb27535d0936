/* SPDX-License-Identifier: MIT
 *
 * Random requests, many at a time, on the first volumes of a lab against shadows.
 */
#ifndef SANLAB_TESTS_ARRAY_LOAD_H
#define SANLAB_TESTS_ARRAY_LOAD_H

#include "base/rng.h"
#include "tests/unit/array/lab.h"

enum { LOAD_VOLUMES = 2, LOAD_PAGES = 3, LOAD_QUEUE = 8, LOAD_BYTES_MAX = 96 * 1024 };

struct load_request {
	struct load *load;
	struct io io;
	struct iovec iov;
	unsigned volume;
	bool active;
	bool again; /* failed while its member was offline: to be repeated */
	uint8_t buffer[LOAD_BYTES_MAX];
};

struct load {
	struct lab *lab;
	struct rng rng;
	const char *volumes[LOAD_VOLUMES]; /* of LOAD_PAGES pages each */
	uint8_t *shadows[LOAD_VOLUMES];
	struct load_request requests[LOAD_QUEUE];
	unsigned busy;
	bool may_fail; /* with -ENODEV; such requests are repeated until they succeed */
	uint64_t failed;
};

void load_init(struct load *load, struct lab *lab, uint64_t seed);
void load_done(struct load *load);
/* Tries to begin one more request. */
void load_step(struct load *load);
/* Waits for all; compares all that the volumes hold. */
void load_settle(struct load *load);
void load_compare(struct load *load);

#endif
