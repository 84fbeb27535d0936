/* SPDX-License-Identifier: MIT
 *
 * RAID 10: chunks in turn over mirrors of two drives.
 *
 * Reads go to the half with the shorter queue; between equals to one half for even rows and to the
 * other for odd ones, so that both work on a long read and a place is always read from the same
 * drive.  A read that fails is tried on the other half.  Writes and UNMAP go to both halves under
 * a lock on their range (stripe_lock.h); a half that cannot take what the other took is stale from
 * then on.  One drive of each mirror may fail.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/raid_geometry.h"
#include "target/array/raid_set.h"
#include "target/array/stripe_lock.h"

struct raid10 {
	struct raid_set set;
	unsigned mirrors;
	struct stripe_locks locks;
	struct freelist updates;
};

/* One piece of a write or UNMAP on its way to both halves. */
struct update {
	struct stripe_lock lock;
	struct raid10 *raid;
	struct io *parent;
	struct fan *fan;
	unsigned drive; /* the first half */
	unsigned pending;
	int status[2]; /* -ENOLINK: not sent, the drive was out */
	struct io leg[2];
	struct update *next;
	struct iovec *heap;
	struct iovec slice[PART_SLICES];
};

static int raid10_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= 2 && drive_count % 2 == 0 && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid10 needs an even number of active drives, 2 to %d, not %u",
		 RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

static uint64_t raid10_usable_bytes(unsigned drive_count, uint64_t drive_bytes,
				    uint64_t chunk_bytes)
{
	return drive_bytes / chunk_bytes * chunk_bytes * (drive_count / 2);
}

static unsigned pieces_of(const struct raid_set *set, const struct io *io)
{
	uint64_t first = io->offset_bytes / set->chunk_bytes;
	uint64_t last = (io->offset_bytes + io->length_bytes - 1) / set->chunk_bytes;
	return (unsigned)(last - first + 1);
}

/* ---- reads ---- */

static unsigned choose_half(const struct raid10 *raid, const struct raid_place *place)
{
	const struct raid_set *set = &raid->set;
	unsigned a = place->drive, b = place->drive + 1;

	if (!raid_usable(set, a))
		return b;
	if (!raid_usable(set, b))
		return a;
	if (set->drives[a]->in_flight != set->drives[b]->in_flight)
		return set->drives[a]->in_flight < set->drives[b]->in_flight ? a : b;
	return place->chunk / raid->mirrors % 2 ? b : a;
}

static void read_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct raid_set *set = io->owner;
	unsigned other = part->first ^ 1;

	if (io->status && io->status != -EBUSY && part->count == 0 && raid_usable(set, other)) {
		part->count = 1; /* the second and last attempt */
		part->first = other;
		io_submit(&set->drives[other]->layer, io);
		return;
	}
	part_end(&set->parts, part, raid_status(io->status));
}

static void raid10_read(struct raid10 *raid, struct io *io)
{
	struct raid_set *set = &raid->set;
	uint64_t offset = io->offset_bytes, length = io->length_bytes, done = 0;
	struct part *part, *next;

	int rc = part_take(&set->parts, io, pieces_of(set, io), &part);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (; part; part = next) {
		struct raid_place place =
		    raid_place_mirrored(raid->mirrors, set->chunk_bytes, offset + done);
		uint64_t size = MIN_OF(place.run_bytes, length - done);

		next = (struct part *)part->io.link;
		part->io.done = read_done;
		part->io.owner = set;
		part->first = choose_half(raid, &place);
		part->count = 0;
		rc = part_fill(part, done, place.offset_bytes, size);
		done += size;
		if (rc)
			part_end(&set->parts, part, rc);
		else if (!raid_usable(set, part->first))
			part_end(&set->parts, part, -EIO);
		else
			io_submit(&set->drives[part->first]->layer, &part->io);
	}
}

/* ---- writes ---- */

static void update_end(struct update *update, int status)
{
	struct raid10 *raid = update->raid;
	struct fan *fan = update->fan;
	struct io *parent = update->parent;

	free(update->heap);
	stripe_lock_release(&raid->locks, &update->lock);
	freelist_give(&raid->updates, update);
	fan_end(&raid->set.parts, fan, parent, status);
}

/* Both halves have answered: who has the data? */
static void update_judge(struct update *update)
{
	struct raid_set *set = &update->raid->set;
	int a = update->status[0], b = update->status[1];

	if (!a && b)
		raid_mark_stale(set, update->drive + 1, true);
	if (a && !b)
		raid_mark_stale(set, update->drive, true);
	/* Both may or may not have written: go on with one half, which is old or new throughout. */
	if (a && b && a != -ENOLINK && b != -ENOLINK && raid_usable(set, update->drive))
		raid_mark_stale(set, update->drive + 1, true);
	update_end(update, a && b ? -EIO : 0);
}

static void leg_done(struct io *io)
{
	struct update *update = io->owner;
	update->status[io == &update->leg[1]] = io->status;
	if (--update->pending == 0)
		update_judge(update);
}

static void update_start(struct stripe_lock *lock)
{
	struct update *update = container_of(lock, struct update, lock);
	struct raid_set *set = &update->raid->set;
	bool send[2];

	update->pending = 1; /* held until both are sent */
	for (unsigned half = 0; half < 2; half++) {
		send[half] = raid_usable(set, update->drive + half);
		update->status[half] = -ENOLINK;
		update->pending += send[half];
	}
	for (unsigned half = 0; half < 2; half++)
		if (send[half])
			io_submit(&set->drives[update->drive + half]->layer, &update->leg[half]);
	if (--update->pending == 0)
		update_judge(update);
}

static int update_fill(struct update *update, const struct raid_place *place, uint64_t skip,
		       uint64_t size)
{
	const struct io *parent = update->parent;
	const struct iovec *iov = parent->iov;
	int count = (int)parent->iov_count;

	update->heap = NULL;
	if (count > 0 && size != parent->length_bytes) {
		count = iov_slice_any(parent, skip, size, update->slice, PART_SLICES, &update->heap,
				      &iov);
		if (count < 0)
			return count;
	}
	for (unsigned half = 0; half < 2; half++)
		update->leg[half] = (struct io){
		    .op = parent->op,
		    .flags = parent->flags,
		    .offset_bytes = place->offset_bytes,
		    .length_bytes = size,
		    .iov = iov,
		    .iov_count = (unsigned)count,
		    .done = leg_done,
		    .owner = update,
		};
	return 0;
}

static int updates_take(struct raid10 *raid, struct io *io, unsigned count,
			struct update **ret_updates)
{
	struct update *first = NULL;
	struct fan *fan = NULL;

	if (!freelist_reserve(&raid->updates, count))
		return -EBUSY;
	if (count > 1) {
		fan = fan_take(&raid->set.parts, io, count);
		if (!fan)
			return -EBUSY;
	}
	for (unsigned i = 0; i < count; i++) {
		struct update *update = freelist_take(&raid->updates);
		update->raid = raid;
		update->parent = io;
		update->fan = fan;
		update->next = first;
		first = update;
	}
	*ret_updates = first;
	return 0;
}

static void raid10_update(struct raid10 *raid, struct io *io)
{
	struct raid_set *set = &raid->set;
	uint64_t offset = io->offset_bytes, length = io->length_bytes, done = 0;
	struct update *update, *next;

	int rc = updates_take(raid, io, pieces_of(set, io), &update);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (; update; update = next) {
		struct raid_place place =
		    raid_place_mirrored(raid->mirrors, set->chunk_bytes, offset + done);
		uint64_t size = MIN_OF(place.run_bytes, length - done);

		next = update->next;
		update->drive = place.drive;
		rc = update_fill(update, &place, done, size);
		done += size;
		if (rc) {
			struct fan *fan = update->fan;
			freelist_give(&raid->updates, update);
			fan_end(&set->parts, fan, io, rc);
			continue;
		}
		uint64_t lo = set->chunk_bytes - place.run_bytes;
		update->lock = (struct stripe_lock){
		    .stripe = place.chunk,
		    .lo = lo,
		    .hi = lo + size,
		    .granted = update_start,
		};
		if (stripe_lock_acquire(&raid->locks, &update->lock))
			update_start(&update->lock);
	}
}

/* ---- the layer ---- */

static void raid10_submit(struct io_layer *layer, struct io *io)
{
	struct raid10 *raid = container_of(layer, struct raid10, set.layer);

	if (!io_in_range(layer, io))
		io_complete(io, -ERANGE);
	else if (io->op == IO_FLUSH)
		raid_flush(&raid->set, io);
	else if (io->length_bytes == 0)
		io_complete(io, 0);
	else if (io->op == IO_READ)
		raid10_read(raid, io);
	else
		raid10_update(raid, io);
}

static void raid10_free(struct io_layer *layer)
{
	struct raid10 *raid = container_of(layer, struct raid10, set.layer);
	freelist_done(&raid->updates);
	raid_set_done(&raid->set);
	free(raid);
}

static const struct io_layer_ops raid10_layer_ops = {
    .name = "raid10",
    .submit = raid10_submit,
    .free = raid10_free,
};

static bool raid10_covered(const struct raid_set *set, unsigned drive)
{
	return raid_usable(set, drive ^ 1);
}

static int raid10_open(struct loop *loop, const struct raid_config *config,
		       struct io_layer **ret_layer, struct err *err)
{
	struct raid10 *raid = calloc(1, sizeof *raid);
	if (!raid)
		return err_set(err, -ENOMEM, "no memory for a RAID set");
	int rc = raid_set_init(&raid->set, &raid10_ops, &raid10_layer_ops, config, err);
	if (rc) {
		free(raid);
		return rc;
	}
	raid->set.covered = raid10_covered;
	raid->mirrors = config->drive_count / 2;
	stripe_locks_init(&raid->locks);
	freelist_init(&raid->updates, sizeof(struct update), PART_LIMIT);
	*ret_layer = &raid->set.layer;
	return 0;
}

static struct raid_protection raid10_protection(unsigned drive_count)
{
	return (struct raid_protection){.group_drives = 2, .tolerance = 1};
}

const struct raid_ops raid10_ops = {
    .name = "raid10",
    .check = raid10_check,
    .open = raid10_open,
    .usable_bytes = raid10_usable_bytes,
    .protection = raid10_protection,
};
