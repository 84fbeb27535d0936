/* SPDX-License-Identifier: MIT
 *
 * Where the bytes of a RAID set lie: pure functions from a logical offset to a drive and an
 * offset on it.
 *
 * RAID 0    chunk L lies on drive L mod n, row L / n.
 * RAID 10   chunk L lies on mirror L mod m (drives 2g and 2g + 1), row L / m.
 * RAID 5    one or more sets of `width` drives side by side (RAID 50).  Stripe S belongs to set
 *           S mod sets, row S / sets; within the row, parity is left-symmetric: on drive
 *           width - 1 - row mod width, data following it in ring order, so that consecutive
 *           chunks lie on consecutive drives and every drive takes part in long reads.
 */
#ifndef SANLAB_TARGET_ARRAY_RAID_GEOMETRY_H
#define SANLAB_TARGET_ARRAY_RAID_GEOMETRY_H

#include <stdint.h>

struct raid_place {
	unsigned drive;	       /* RAID 10: the first of the pair */
	uint64_t chunk;	       /* number of the logical chunk */
	uint64_t offset_bytes; /* on the drive */
	uint64_t run_bytes;    /* to the end of the chunk */
};

static inline struct raid_place raid_place_striped(unsigned columns, uint64_t chunk_bytes,
						   uint64_t offset)
{
	uint64_t chunk = offset / chunk_bytes;
	uint64_t within = offset - chunk * chunk_bytes;
	uint64_t row = chunk / columns;
	return (struct raid_place){
	    .drive = (unsigned)(chunk - row * columns),
	    .chunk = chunk,
	    .offset_bytes = row * chunk_bytes + within,
	    .run_bytes = chunk_bytes - within,
	};
}

static inline struct raid_place raid_place_mirrored(unsigned mirrors, uint64_t chunk_bytes,
						    uint64_t offset)
{
	struct raid_place place = raid_place_striped(mirrors, chunk_bytes, offset);
	place.drive *= 2;
	return place;
}

struct raid5_geometry {
	unsigned sets;
	unsigned width; /* drives a set, parity included */
	uint64_t chunk_bytes;
};

struct raid5_stripe {
	uint64_t stripe; /* number over all sets */
	unsigned set;
	uint64_t row;
	unsigned parity;     /* drive within the set */
	uint64_t data_bytes; /* of a whole stripe */
	uint64_t within;     /* the offset within the stripe's data */
};

static inline struct raid5_stripe raid5_stripe_at(const struct raid5_geometry *geometry,
						  uint64_t offset)
{
	uint64_t data_bytes = (geometry->width - 1) * geometry->chunk_bytes;
	uint64_t stripe = offset / data_bytes;
	uint64_t row = stripe / geometry->sets;
	return (struct raid5_stripe){
	    .stripe = stripe,
	    .set = (unsigned)(stripe - row * geometry->sets),
	    .row = row,
	    .parity = geometry->width - 1 - (unsigned)(row % geometry->width),
	    .data_bytes = data_bytes,
	    .within = offset - stripe * data_bytes,
	};
}

/* The drive (within the set) of the DATA-th chunk of a stripe whose parity is on drive PARITY,
 * and the reverse. */
static inline unsigned raid5_data_drive(unsigned width, unsigned parity, unsigned data)
{
	return (parity + 1 + data) % width;
}
static inline unsigned raid5_data_index(unsigned width, unsigned parity, unsigned drive)
{
	return (drive + width - parity - 1) % width;
}

/* Sets of equal size that RAID 50 makes of COUNT drives; 0 when there is no division.
 * The fewest sets: capacity comes first, as EqualLogic's does.  Its guides state 22 active drives
 * of 24 for RAID 50 but not the sets; 22 = 2 x 11 is the only division that is not all mirrors. */
unsigned raid50_sets(unsigned count);

#endif
