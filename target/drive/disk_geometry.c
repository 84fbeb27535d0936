/* SPDX-License-Identifier: MIT
 *
 * Zones, tracks and angles of a disk.
 */
#include "target/drive/disk_geometry.h"

#include <assert.h>

#include "base/bytes.h"
#include "target/drive/drive.h"

/* Bytes of a track in zone INDEX of COUNT. */
static uint64_t track_bytes_of(const struct disk_geometry *geometry,
			       const struct drive_model *model, unsigned index, unsigned count)
{
	double outer = (double)model->outer_bytes_per_s, inner = (double)model->inner_bytes_per_s;
	double share = count > 1 ? (double)index / (double)(count - 1) : 0.5;
	double rate = outer + (inner - outer) * share;
	double bytes =
	    rate * (double)(geometry->revolution_ns + geometry->switch_ns) / (double)NS_PER_S;
	uint64_t sectors = (uint64_t)(bytes / DISK_SECTOR_BYTES + 0.5);

	return MAX_OF(sectors, 1) * DISK_SECTOR_BYTES;
}

void disk_geometry_init(struct disk_geometry *geometry, const struct drive_model *model,
			uint64_t size_bytes)
{
	assert(model->rpm > 0 && model->heads > 0 && size_bytes >= DISK_SECTOR_BYTES);
	*geometry = (struct disk_geometry){
	    .heads = model->heads,
	    .revolution_ns = 60 * NS_PER_S / model->rpm,
	    /* Writes settle longer: a layout that suits them suits reads. */
	    .switch_ns = MAX_OF(model->seek_read.track_ns, model->seek_write.track_ns),
	};
	/* The length falls linearly, so the middle one is the mean. */
	uint64_t mean_bytes = track_bytes_of(geometry, model, 0, 1) * geometry->heads;
	geometry->cylinders = (size_bytes + mean_bytes - 1) / mean_bytes;
	geometry->zone_count = (unsigned)MIN_OF((uint64_t)DISK_ZONES, geometry->cylinders);
	struct disk_zone next = {0};
	for (unsigned i = 0; i < geometry->zone_count; i++) {
		uint64_t cylinders = geometry->cylinders / geometry->zone_count +
				     (i < geometry->cylinders % geometry->zone_count);
		uint64_t tracks = cylinders * geometry->heads;
		next.track_bytes = track_bytes_of(geometry, model, i, geometry->zone_count);
		geometry->zones[i] = next;
		next.first_byte += tracks * next.track_bytes;
		next.first_track += tracks;
		next.first_pass_ns += tracks * (geometry->revolution_ns + geometry->switch_ns);
	}
	/* What rounding left over goes to more tracks of the innermost zone. */
	if (next.first_byte < size_bytes) {
		uint64_t cylinder_bytes = next.track_bytes * geometry->heads;
		geometry->cylinders +=
		    (size_bytes - next.first_byte + cylinder_bytes - 1) / cylinder_bytes;
	}
}

static const struct disk_zone *zone_of_byte(const struct disk_geometry *geometry, uint64_t byte)
{
	unsigned i = geometry->zone_count - 1;
	while (i > 0 && geometry->zones[i].first_byte > byte)
		i--;
	return &geometry->zones[i];
}

/* The place EXTRA bytes behind the one of BYTE, on the same track. */
static struct disk_place place_at(const struct disk_geometry *geometry, uint64_t byte,
				  uint64_t extra)
{
	const struct disk_zone *zone = zone_of_byte(geometry, byte);
	uint64_t track = (byte - zone->first_byte) / zone->track_bytes;
	uint64_t within = (byte - zone->first_byte) - track * zone->track_bytes + extra;
	return (struct disk_place){
	    .track = zone->first_track + track,
	    .cylinder = (zone->first_track + track) / geometry->heads,
	    .pass_ns = zone->first_pass_ns +
		       track * (geometry->revolution_ns + geometry->switch_ns) +
		       within * geometry->revolution_ns / zone->track_bytes,
	};
}

struct disk_place disk_place_of(const struct disk_geometry *geometry, uint64_t byte)
{
	return place_at(geometry, byte, 0);
}

struct disk_place disk_place_behind(const struct disk_geometry *geometry, uint64_t byte)
{
	assert(byte >= DISK_SECTOR_BYTES);
	return place_at(geometry, byte - DISK_SECTOR_BYTES, DISK_SECTOR_BYTES);
}

uint64_t disk_byte_at(const struct disk_geometry *geometry, uint64_t pass_ns)
{
	unsigned i = geometry->zone_count - 1;
	while (i > 0 && geometry->zones[i].first_pass_ns > pass_ns)
		i--;
	const struct disk_zone *zone = &geometry->zones[i];
	uint64_t round_ns = geometry->revolution_ns + geometry->switch_ns;
	uint64_t track = (pass_ns - zone->first_pass_ns) / round_ns;
	uint64_t within_ns = (pass_ns - zone->first_pass_ns) - track * round_ns;
	/* Upwards: a place whose pass was rounded down is found again. */
	uint64_t bytes = (MIN_OF(within_ns, geometry->revolution_ns) * zone->track_bytes +
			  geometry->revolution_ns - 1) /
			 geometry->revolution_ns;
	return zone->first_byte + track * zone->track_bytes + bytes;
}
