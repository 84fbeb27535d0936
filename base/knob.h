/* SPDX-License-Identifier: MIT
 *
 * Knobs that force a program through its rare paths, in the manner of git's GIT_TEST_*: environment
 * variables that tests set.
 *
 *   SANLAB_TEST_DIGESTS=1         the target takes CRC32C digests wherever they are offered
 *   SANLAB_TEST_SPLIT_READS=N     it reads at most N bytes from a socket with one call
 *   SANLAB_TEST_SMALL_WRITES=N    it writes at most N bytes to a socket with one call
 *   SANLAB_TEST_SMALL_MRDSL=N     it declares MaxRecvDataSegmentLength=N (512..262144)
 *
 * Read once, when the target starts; a value that is no number in range is an error, so that a
 * test that misspells one does not pass by accident.
 *
 * Threading: knobs_load runs before there are threads; the values never change afterwards.
 */
#ifndef SANLAB_BASE_KNOB_H
#define SANLAB_BASE_KNOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct knobs {
	uint32_t digests;
	uint32_t split_reads_bytes;  /* 0: no limit */
	uint32_t small_writes_bytes; /* 0: no limit */
	uint32_t small_mrdsl_bytes;  /* 0: the usual one */
};

/* What an environment without any gives: no knob is turned. */
extern struct knobs knobs;

/* Takes the knobs from the environment.  -EINVAL with ERR for one that cannot be. */
int knobs_load(struct err *err);

#endif
