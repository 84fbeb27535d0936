/* SPDX-License-Identifier: MIT
 *
 * Where the bytes of RAID 0 lie: chunk L on drive L mod n, row L / n.
 */
#ifndef SANLAB_TARGET_ARRAY_RAID_GEOMETRY_H
#define SANLAB_TARGET_ARRAY_RAID_GEOMETRY_H

#include <stdint.h>

struct raid_place {
	unsigned drive;
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

#endif
