/* SPDX-License-Identifier: MIT
 *
 * Where the bytes of a disk lie: pure arithmetic.
 *
 * Bytes run from the outermost track inwards, over all heads of a cylinder before the next one.
 * Zones of equally many cylinders have tracks of equal length, which falls linearly from the
 * outermost zone to the innermost.  From one track to the next, whether of the same cylinder or
 * not, the beginning is skewed by the switch time, so a long transfer loses exactly that and no
 * revolution: sustained rate = track bytes / (revolution + switch).  Track lengths are worked out
 * from the sustained rates of the data sheet that way.
 *
 * A pass is the time the head needs from the disk's first byte to a place without ever leaving the
 * tracks (revolutions and switches).  Differences of passes are transfer times; a pass modulo the
 * revolution is the angle at which the place goes by.  Both are exact in integers, so consecutive
 * requests fit without a gap.
 *
 * A drive whose size the lab sets is the model with fewer, equally long tracks; the seek curve is
 * stretched over them.
 *
 * Units: bytes, ns.
 */
#ifndef SANLAB_TARGET_DRIVE_DISK_GEOMETRY_H
#define SANLAB_TARGET_DRIVE_DISK_GEOMETRY_H

#include <stdint.h>

struct drive_model;

enum {
	DISK_ZONES = 21, /* assumed; odd, so that one is in the middle */
	DISK_SECTOR_BYTES = 512,
};

struct disk_zone {
	uint64_t first_byte;
	uint64_t first_track;
	uint64_t first_pass_ns;
	uint64_t track_bytes;
};

struct disk_geometry {
	unsigned heads;
	unsigned zone_count;
	uint64_t cylinders;
	uint64_t revolution_ns;
	uint64_t switch_ns; /* of head or cylinder, within a transfer */
	struct disk_zone zones[DISK_ZONES];
};

struct disk_place {
	uint64_t track; /* over all cylinders and heads */
	uint64_t cylinder;
	uint64_t pass_ns;
};

/* SIZE at least one sector; the model must have rpm, heads and rates. */
void disk_geometry_init(struct disk_geometry *geometry, const struct drive_model *model,
			uint64_t size_bytes);
/* Of the sector that begins at BYTE. */
struct disk_place disk_place_of(const struct disk_geometry *geometry, uint64_t byte);
/* Just behind the sector that ends at BYTE > 0: still on its track. */
struct disk_place disk_place_behind(const struct disk_geometry *geometry, uint64_t byte);
/* The byte under the head at a pass; during a switch the first of the next track. */
uint64_t disk_byte_at(const struct disk_geometry *geometry, uint64_t pass_ns);
/* From NOW until the place of PASS comes by. */
static inline uint64_t disk_rotation_ns(const struct disk_geometry *geometry, uint64_t pass_ns,
					uint64_t now_ns)
{
	uint64_t revolution_ns = geometry->revolution_ns;
	return (pass_ns % revolution_ns + revolution_ns - now_ns % revolution_ns) % revolution_ns;
}

#endif
