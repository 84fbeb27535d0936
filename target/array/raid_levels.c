/* SPDX-License-Identifier: MIT
 *
 * From a level's shape to capacity, protection and an open set.
 */
#include "target/array/raid_levels.h"

#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"

struct stripe_geometry raid_rotated(unsigned drives, unsigned sets, unsigned parities)
{
	unsigned width = sets ? drives / sets : 0;
	return (struct stripe_geometry){
	    .kind = STRIPE_ROTATED,
	    .drives = drives,
	    .sets = sets,
	    .width = width,
	    .data = width - parities,
	    .parities = parities,
	};
}

int raid_divided_check(const char *level, unsigned set_min, unsigned drives, char *why,
		       size_t why_size)
{
	if (drives <= RAID_DRIVES_MAX && stripe_sets(drives, set_min))
		return 0;
	snprintf(why, why_size,
		 "%s needs active drives that divide into at least two equal sets of %u or more, "
		 "at most %d; %u do not",
		 level, set_min, RAID_DRIVES_MAX, drives);
	return -EINVAL;
}

struct stripe_geometry raid_geometry(raid_shape *shape, unsigned drives, uint64_t drive_bytes,
				     uint64_t chunk_bytes)
{
	struct stripe_geometry geometry = shape(drives);
	uint64_t rows = chunk_bytes ? drive_bytes / chunk_bytes : 0;

	geometry.chunk_bytes = chunk_bytes;
	if (geometry.kind == STRIPE_PERMUTED)
		geometry.stripe_count = rows / geometry.slice_rows * geometry.slice_stripes;
	else
		geometry.stripe_count = rows * geometry.sets;
	return geometry;
}

uint64_t raid_usable_bytes(raid_shape *shape, unsigned drives, uint64_t drive_bytes,
			   uint64_t chunk_bytes)
{
	struct stripe_geometry geometry = raid_geometry(shape, drives, drive_bytes, chunk_bytes);
	return geometry.stripe_count * stripe_data_bytes(&geometry);
}

struct raid_protection raid_protection(raid_shape *shape, unsigned drives)
{
	struct stripe_geometry geometry = shape(drives);
	bool permuted = geometry.kind == STRIPE_PERMUTED;
	return (struct raid_protection){
	    .group_drives = permuted ? drives : geometry.width,
	    .tolerance = geometry.parities,
	    .distributed_spares = permuted ? RAID_DISTRIBUTED_SPARES : 0,
	};
}

size_t raid_journal_bytes(raid_shape *shape, unsigned drives, uint64_t chunk_bytes)
{
	struct stripe_geometry geometry = shape(drives);
	geometry.chunk_bytes = chunk_bytes;
	return stripe_journal_bytes(&geometry);
}

int raid_open(const struct raid_ops *level, raid_shape *shape, const struct raid_config *config,
	      struct io_layer **ret_layer, struct err *err)
{
	char why[200];
	int rc = level->check(config->drive_count, why, sizeof why);
	if (rc)
		return err_set(err, rc, "%s", why);
	struct stripe_geometry geometry = raid_geometry(
	    shape, config->drive_count, raid_drive_bytes(config), config->chunk_bytes);
	return stripe_set_open(level, &geometry, config, ret_layer, err);
}
