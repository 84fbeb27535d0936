/* SPDX-License-Identifier: MIT
 *
 * What all RAID levels share: the drives, which of them can be trusted, child requests, FLUSH.
 *
 * A drive is out of the set while it has failed; it is stale, and out for good until rebuilt,
 * once it missed a write that the rest of the set took.  A failed drive that missed nothing
 * may return as it was.  Errors leave a set as -EIO (medium error): the array is still there, so
 * another path to it would not help.
 */
#ifndef SANLAB_TARGET_ARRAY_RAID_SET_H
#define SANLAB_TARGET_ARRAY_RAID_SET_H

#include <errno.h>

#include "target/array/array.h"
#include "target/array/part.h"

extern const struct raid_ops raid0_ops, raid1_ops, raid10_ops, raid5_ops, raid50_ops, raid6_ops,
    raid60_ops, adapt_ops;

struct raid_set {
	struct io_layer layer;
	struct drive *drives[RAID_DRIVES_MAX];
	unsigned drive_count;
	uint64_t chunk_bytes;
	/* Has the set all of its data without these drives, as things stand? */
	bool (*covers)(const struct raid_set *set, uint64_t drives);
	uint64_t stale_mask;
	uint64_t filling_mask; /* stale ones that are being rebuilt: they take every update */
	int (*stale)(void *arg, unsigned drive);
	void (*dirty)(void *arg);
	void *stale_arg;
	bool hollow;
	bool unrecorded; /* a drive is stale and that was not recorded: see raid_config.stale */
	struct part_pool parts;
};

/* Fills SET but for `covers`; -EINVAL with ERR when chunk or drives are impossible. */
int raid_set_init(struct raid_set *set, const struct raid_ops *level,
		  const struct io_layer_ops *ops, const struct raid_config *config,
		  struct err *err);
void raid_set_done(struct raid_set *set);
/* Bytes of the smallest drive. */
uint64_t raid_drive_bytes(const struct raid_config *config);

static inline bool raid_usable(const struct raid_set *set, unsigned drive)
{
	return !(set->stale_mask >> drive & 1) && !set->drives[drive]->failed;
}

/* Can it be written? */
static inline bool raid_takes(const struct raid_set *set, unsigned drive)
{
	return !((set->stale_mask & ~set->filling_mask) >> drive & 1) &&
	       !set->drives[drive]->failed;
}

/* The drive missed a write that the rest of the set took. */
void raid_mark_stale(struct raid_set *set, unsigned drive);
/* Sends FLUSH to every drive that takes writes; the set goes on without those that answer an error.
 */
void raid_flush(struct raid_set *set, struct io *io);
/* No drive is to blame for these: no space, no memory. */
static inline bool raid_is_shortage(int status)
{
	return status == -ENOSPC || status == -ENOMEM || status == -EBUSY;
}
/* The status a set reports for a drive's. */
int raid_status(int status);

#endif
