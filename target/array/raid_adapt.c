/* SPDX-License-Identifier: MIT
 *
 * ADAPT: declustered parity.  Stripes of 8 + 2 columns lie over all drives, and two drives' worth
 * of spare space lies spread over all drives too, so that a rebuild reads from and writes to all of
 * them.  Two drives may fail, and two more once the first have been rebuilt onto spare space.
 *
 * A slice is the least number of rows that holds whole stripes: its slots, but for the last two of
 * each row, which are spare, are filled continuously with the columns of stripes.  All rows of a
 * slice have their drives in one order, so that a stripe that goes on in the next row meets no
 * drive twice.  Orders are shuffled with a fixed seed; each is used for as many slices as there are
 * drives, every time turned by one, so that every drive has every slot equally often.  (OpenZFS'
 * dRAID has the same idea.)
 */
#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/array/raid_levels.h"

enum { ADAPT_DATA = 8, ADAPT_PARITIES = 2, ADAPT_WIDTH = ADAPT_DATA + ADAPT_PARITIES };
enum { ADAPT_DRIVES_MIN = ADAPT_WIDTH + RAID_DISTRIBUTED_SPARES };
enum { ADAPT_SEED = 0x41444150 }; /* part of the layout on the drives */

static void fill_order(struct rng *rng, unsigned drives, uint8_t *order)
{
	for (unsigned i = 0; i < drives; i++)
		order[i] = (uint8_t)i;
	for (unsigned i = drives - 1; i > 0; i--) {
		unsigned other = (unsigned)rng_below(rng, i + 1);
		uint8_t drive = order[i];
		order[i] = order[other];
		order[other] = drive;
	}
	for (unsigned i = 0; i < drives; i++)
		order[drives + i] = order[i];
}

/* The orders follow from the number of drives alone. */
static const struct adapt_map *map_of(unsigned drives)
{
	static _Thread_local struct adapt_map map;
	static _Thread_local unsigned map_drives;
	struct rng rng;

	if (map_drives == drives)
		return &map;
	rng_init(&rng, ADAPT_SEED, drives);
	for (unsigned i = 0; i < ADAPT_ORDERS; i++)
		fill_order(&rng, drives, map.order[i]);
	map_drives = drives;
	return &map;
}

struct stripe_geometry adapt_shape(unsigned drives)
{
	if (drives < ADAPT_DRIVES_MIN || drives > RAID_DRIVES_MAX)
		return (struct stripe_geometry){0};
	unsigned slots = drives - RAID_DISTRIBUTED_SPARES;
	unsigned common = (unsigned)common_divisor(ADAPT_WIDTH, slots);
	return (struct stripe_geometry){
	    .kind = STRIPE_PERMUTED,
	    .drives = drives,
	    .sets = 1,
	    .width = ADAPT_WIDTH,
	    .data = ADAPT_DATA,
	    .parities = ADAPT_PARITIES,
	    .slots = slots,
	    .slice_rows = ADAPT_WIDTH / common,
	    .slice_stripes = slots / common,
	    .map = map_of(drives),
	};
}

static int adapt_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= ADAPT_DRIVES_MIN && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "adapt needs %d to %d active drives, not %u", ADAPT_DRIVES_MIN,
		 RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

RAID_LEVEL(adapt, "adapt");
