/* SPDX-License-Identifier: MIT
 *
 * Bits flipped in a store behind everybody's back, and remembered so that they can be flipped back.
 *
 * Works on the store below the checksums, whose requests complete within submit.
 */
#ifndef SANLAB_TARGET_DRIVE_CORRUPTION_H
#define SANLAB_TARGET_DRIVE_CORRUPTION_H

#include <stdint.h>

#include "base/io.h"
#include "base/rng.h"
#include "target/drive/faults.h"

struct flip {
	uint64_t byte;
	uint8_t mask;
};

struct corruption {
	struct flip flips[FAULT_FLIPS_MAX];
	unsigned count;
};

/* One bit in each of COUNT sectors of [lo, hi), or in every one when it has no more.  -ENOSPC: the
 * table cannot take them all, nothing is flipped; or the store's error, flipped as far as it got.
 */
int corruption_plant(struct corruption *corruption, struct io_layer *store, uint64_t lo,
		     uint64_t hi, unsigned count, struct rng *rng);
/* Flips back what is left. */
int corruption_undo(struct corruption *corruption, struct io_layer *store);
/* [lo, hi) was overwritten: there is nothing left to flip back. */
void corruption_written(struct corruption *corruption, uint64_t lo, uint64_t hi);

#endif
