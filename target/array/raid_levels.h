/* SPDX-License-Identifier: MIT
 *
 * What the files of the redundant levels share: a level is its limits and its geometry, all the
 * rest is the engine's (stripe_set.h).
 */
#ifndef SANLAB_TARGET_ARRAY_RAID_LEVELS_H
#define SANLAB_TARGET_ARRAY_RAID_LEVELS_H

#include "target/array/stripe_set.h"

/* The geometry of a level over DRIVES drives, as far as it follows from their number; `sets` is 0
 * when the level is impossible with that many. */
typedef struct stripe_geometry raid_shape(unsigned drives);

raid_shape raid1_shape, raid10_shape, raid5_shape, raid50_shape, raid6_shape, raid60_shape,
    adapt_shape;

/* SETS of equal width side by side, each with PARITIES rotating chunks in a stripe. */
struct stripe_geometry raid_rotated(unsigned drives, unsigned sets, unsigned parities);
/* A level of sets of at least SET_MIN drives, divided as stripe_sets does. */
int raid_divided_check(const char *level, unsigned set_min, unsigned drives, char *why,
		       size_t why_size);

/* Completes a shape: stripes of CHUNK_BYTES on drives of DRIVE_BYTES. */
struct stripe_geometry raid_geometry(raid_shape *shape, unsigned drives, uint64_t drive_bytes,
				     uint64_t chunk_bytes);
uint64_t raid_usable_bytes(raid_shape *shape, unsigned drives, uint64_t drive_bytes,
			   uint64_t chunk_bytes);
struct raid_protection raid_protection(raid_shape *shape, unsigned drives);
size_t raid_journal_bytes(raid_shape *shape, unsigned drives, uint64_t chunk_bytes);
int raid_open(const struct raid_ops *level, raid_shape *shape, const struct raid_config *config,
	      struct io_layer **ret_layer, struct err *err);

/* The functions of a level's row in the table: NAME_shape and NAME_check are its own. */
#define RAID_LEVEL(level, level_name)                                                           \
	static uint64_t level##_usable_bytes(unsigned drive_count, uint64_t drive_bytes,        \
					     uint64_t chunk_bytes)                              \
	{                                                                                       \
		return raid_usable_bytes(level##_shape, drive_count, drive_bytes, chunk_bytes); \
	}                                                                                       \
	static struct raid_protection level##_protection(unsigned drive_count)                  \
	{                                                                                       \
		return raid_protection(level##_shape, drive_count);                             \
	}                                                                                       \
	static size_t level##_journal_bytes(unsigned drive_count, uint64_t chunk_bytes)         \
	{                                                                                       \
		return raid_journal_bytes(level##_shape, drive_count, chunk_bytes);             \
	}                                                                                       \
	static int level##_open(struct loop *loop, const struct raid_config *config,            \
				struct io_layer **ret_layer, struct err *err)                   \
	{                                                                                       \
		return raid_open(&level##_ops, level##_shape, config, ret_layer, err);          \
	}                                                                                       \
	const struct raid_ops level##_ops = {                                                   \
	    .name = level_name,                                                                 \
	    .check = level##_check,                                                             \
	    .open = level##_open,                                                               \
	    .usable_bytes = level##_usable_bytes,                                               \
	    .protection = level##_protection,                                                   \
	    .journal_bytes = level##_journal_bytes,                                             \
	    .unit_count = stripe_unit_count,                                                    \
	    .unit_run = stripe_unit_run,                                                        \
	    .slot_replace = stripe_slot_replace,                                                \
	    .slot_good = stripe_slot_good,                                                      \
	    .dirty_unit = stripe_dirty_unit,                                                    \
	}

#endif
