/* SPDX-License-Identifier: MIT
 *
 * Flipping bits.
 */
#include "target/drive/corruption.h"

#include <errno.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "target/drive/inline_io.h"

enum { SECTOR_BYTES = 512 };

static int flip(struct io_layer *store, const struct flip *one)
{
	uint8_t sector[SECTOR_BYTES];
	uint64_t at = one->byte / SECTOR_BYTES * SECTOR_BYTES;
	struct iovec iov = {sector, sizeof sector};
	struct io io = {
	    .op = IO_READ,
	    .offset_bytes = at,
	    .length_bytes = sizeof sector,
	    .iov = &iov,
	    .iov_count = 1,
	};
	int rc = io_submit_now(store, &io);
	if (rc)
		return rc;
	sector[one->byte - at] ^= one->mask;
	io.op = IO_WRITE;
	return io_submit_now(store, &io);
}

static bool in_sector(const struct corruption *corruption, uint64_t sector)
{
	for (unsigned i = 0; i < corruption->count; i++)
		if (corruption->flips[i].byte / SECTOR_BYTES == sector)
			return true;
	return false;
}

int corruption_plant(struct corruption *corruption, struct io_layer *store, uint64_t lo,
		     uint64_t hi, unsigned count, struct rng *rng)
{
	uint64_t first = lo / SECTOR_BYTES;
	uint64_t sectors = (hi + SECTOR_BYTES - 1) / SECTOR_BYTES - first;
	bool all = count >= sectors;
	uint64_t wanted = all ? sectors : count;

	if (wanted > FAULT_FLIPS_MAX - corruption->count)
		return -ENOSPC;
	for (uint64_t i = 0; i < wanted; i++) {
		uint64_t sector = first + (all ? i : rng_below(rng, sectors));
		/* Another one: a second flip could undo the first. */
		for (uint64_t tries = 0; in_sector(corruption, sector) && tries < sectors; tries++)
			sector = first + (sector - first + 1) % sectors;
		if (in_sector(corruption, sector))
			return 0; /* each has one already */
		struct flip *one = &corruption->flips[corruption->count];
		*one = (struct flip){
		    .byte = sector * SECTOR_BYTES + rng_below(rng, SECTOR_BYTES),
		    .mask = (uint8_t)(1u << rng_below(rng, 8)),
		};
		int rc = flip(store, one);
		if (rc)
			return rc;
		corruption->count++;
	}
	return 0;
}

int corruption_undo(struct corruption *corruption, struct io_layer *store)
{
	while (corruption->count > 0) {
		int rc = flip(store, &corruption->flips[corruption->count - 1]);
		if (rc)
			return rc;
		corruption->count--;
	}
	return 0;
}

void corruption_written(struct corruption *corruption, uint64_t lo, uint64_t hi)
{
	for (unsigned i = 0; i < corruption->count;)
		if (corruption->flips[i].byte >= lo && corruption->flips[i].byte < hi)
			corruption->flips[i] = corruption->flips[--corruption->count];
		else
			i++;
}
