/* SPDX-License-Identifier: MIT
 *
 * RAID 5, and RAID 50 as several such sets side by side with whole stripes in turn.
 *
 * Reads of chunks whose drive is usable go straight to it; all else becomes an operation on one
 * stripe (raid5_stripe.c).  One drive of each set may fail.
 */
#include "target/array/raid5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

enum {
	SET_MIN = 3,
	OPS_MAX = 65536,
	WORKS_MIN = 4,
	WORKS_MAX = 64,
	WORKS_BYTES = 64 << 20, /* of row space, unless WORKS_MIN need more */
};

static int raid5_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= SET_MIN && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid5 needs %d to %d active drives, not %u", SET_MIN,
		 RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

static int raid50_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count <= RAID_DRIVES_MAX && raid50_sets(drive_count))
		return 0;
	snprintf(
	    why, why_size,
	    "raid50 needs active drives that divide into at least two equal sets of %d or more, "
	    "at most %d; %u do not",
	    SET_MIN, RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

static uint64_t usable(unsigned drive_count, unsigned sets, uint64_t drive_bytes,
		       uint64_t chunk_bytes)
{
	return drive_bytes / chunk_bytes * chunk_bytes * (drive_count - sets);
}

static uint64_t raid5_usable_bytes(unsigned drive_count, uint64_t drive_bytes, uint64_t chunk_bytes)
{
	return usable(drive_count, 1, drive_bytes, chunk_bytes);
}

static uint64_t raid50_usable_bytes(unsigned drive_count, uint64_t drive_bytes,
				    uint64_t chunk_bytes)
{
	return usable(drive_count, raid50_sets(drive_count), drive_bytes, chunk_bytes);
}

/* ---- reads ---- */

/* The drive could not give the chunk: PART becomes an operation on the stripe. */
static void read_through_parity(struct raid5 *raid, struct part *part)
{
	struct raid_set *set = &raid->set;
	struct raid5_op *op = freelist_take(&raid->ops);
	if (!op) {
		part_end(&set->parts, part, -EBUSY);
		return;
	}
	uint64_t skip = part->skip_bytes, size = part->io.length_bytes;
	op->parent = part->parent;
	op->fan = part->fan;
	op->kind = RAID5_READ;
	free(part->heap);
	freelist_give(&set->parts.parts, part);
	raid5_op_submit(raid, op, skip, size);
}

static void read_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct raid5 *raid = io->owner;

	if (io->status == 0 || io->status == -EBUSY)
		part_end(&raid->set.parts, part, io->status);
	else
		read_through_parity(raid, part);
}

static void raid5_read(struct raid5 *raid, struct io *io)
{
	struct raid_set *set = &raid->set;
	uint64_t chunk = set->chunk_bytes, offset = io->offset_bytes, length = io->length_bytes;
	uint64_t count = (offset + length - 1) / chunk - offset / chunk + 1, done = 0;
	struct part *part, *next;

	int rc = part_take(&set->parts, io, (unsigned)count, &part);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (; part; part = next) {
		struct raid5_stripe at = raid5_stripe_at(&raid->geometry, offset + done);
		unsigned data = (unsigned)(at.within / chunk);
		uint64_t column = at.within - data * chunk;
		uint64_t size = MIN_OF(chunk - column, length - done);
		unsigned drive = at.set * raid->geometry.width +
				 raid5_data_drive(raid->geometry.width, at.parity, data);

		next = (struct part *)part->io.link;
		part->io.done = read_done;
		part->io.owner = raid;
		rc = part_fill(part, done, at.row * chunk + column, size);
		done += size;
		if (rc)
			part_end(&set->parts, part, rc);
		else if (!raid_usable(set, drive))
			read_through_parity(raid, part);
		else
			io_submit(&set->drives[drive]->layer, &part->io);
	}
}

/* ---- writes ---- */

/* Bytes of the piece that begins at OFFSET: to the end of the stripe, but a write that ends one
 * chunk and begins the next without common columns is cut there: its hull would be the whole
 * chunk, most of it read for nothing. */
static uint64_t piece_bytes(const struct raid5_geometry *geometry, uint64_t offset, uint64_t left)
{
	struct raid5_stripe at = raid5_stripe_at(geometry, offset);
	uint64_t size = MIN_OF(left, at.data_bytes - at.within);
	uint64_t column = at.within % geometry->chunk_bytes;
	uint64_t first = geometry->chunk_bytes - column;

	if (size > first && size - first <= column)
		return first;
	return size;
}

static unsigned pieces_of(const struct raid5_geometry *geometry, const struct io *io)
{
	unsigned count = 0;
	for (uint64_t done = 0; done < io->length_bytes; count++)
		done += piece_bytes(geometry, io->offset_bytes + done, io->length_bytes - done);
	return count;
}

static int ops_take(struct raid5 *raid, struct io *io, unsigned count, struct raid5_op **ret_ops)
{
	struct raid5_op *first = NULL;
	struct fan *fan = NULL;

	if (!freelist_reserve(&raid->ops, count))
		return -EBUSY;
	if (count > 1) {
		fan = fan_take(&raid->set.parts, io, count);
		if (!fan)
			return -EBUSY;
	}
	for (unsigned i = 0; i < count; i++) {
		struct raid5_op *op = freelist_take(&raid->ops);
		op->parent = io;
		op->fan = fan;
		op->next = first;
		first = op;
	}
	*ret_ops = first;
	return 0;
}

static void raid5_update(struct raid5 *raid, struct io *io)
{
	const struct raid5_geometry *geometry = &raid->geometry;
	uint64_t offset = io->offset_bytes, length = io->length_bytes, done = 0;
	uint64_t stripe_bytes = (geometry->width - 1) * geometry->chunk_bytes;
	bool unmap = io->op == IO_UNMAP;
	struct raid5_op *op, *next;

	int rc = ops_take(raid, io, pieces_of(geometry, io), &op);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (; op; op = next) {
		uint64_t size = piece_bytes(geometry, offset + done, length - done);

		next = op->next;
		op->kind = unmap && size == stripe_bytes ? RAID5_UNMAP : RAID5_WRITE;
		raid5_op_submit(raid, op, done, size);
		done += size;
	}
}

/* ---- the layer ---- */

static void raid5_submit(struct io_layer *layer, struct io *io)
{
	struct raid5 *raid = container_of(layer, struct raid5, set.layer);

	if (!io_in_range(layer, io))
		io_complete(io, -ERANGE);
	else if (io->op == IO_FLUSH)
		raid_flush(&raid->set, io);
	else if (io->length_bytes == 0)
		io_complete(io, 0);
	else if (io->op == IO_READ)
		raid5_read(raid, io);
	else
		raid5_update(raid, io);
}

static void raid5_free(struct io_layer *layer)
{
	struct raid5 *raid = container_of(layer, struct raid5, set.layer);
	raid5_works_free(raid);
	freelist_done(&raid->ops);
	raid_set_done(&raid->set);
	free(raid->zeros);
	free(raid);
}

static const struct io_layer_ops raid5_layer_ops = {
    .name = "raid5",
    .submit = raid5_submit,
    .free = raid5_free,
};

static bool raid5_covered(const struct raid_set *set, unsigned drive)
{
	const struct raid5 *raid = container_of(set, struct raid5, set);
	unsigned base = drive / raid->geometry.width * raid->geometry.width;
	for (unsigned i = base; i < base + raid->geometry.width; i++)
		if (i != drive && !raid_usable(set, i))
			return false;
	return true;
}

static int open_sets(const struct raid_ops *level, unsigned sets, const struct raid_config *config,
		     struct io_layer **ret_layer, struct err *err)
{
	struct raid5 *raid = calloc(1, sizeof *raid);
	if (!raid)
		return err_set(err, -ENOMEM, "no memory for a RAID set");
	int rc = raid_set_init(&raid->set, level, &raid5_layer_ops, config, err);
	if (rc) {
		free(raid);
		return rc;
	}
	raid->set.covered = raid5_covered;
	raid->geometry = (struct raid5_geometry){
	    .sets = sets,
	    .width = config->drive_count / sets,
	    .chunk_bytes = config->chunk_bytes,
	};
	stripe_locks_init(&raid->locks);
	freelist_init(&raid->ops, sizeof(struct raid5_op), OPS_MAX);
	STAILQ_INIT(&raid->starved);
	raid->row_bytes = round_up_u64(config->chunk_bytes, 4096);
	uint64_t work_bytes = (raid->geometry.width + 1) * raid->row_bytes;
	raid->works_limit =
	    (unsigned)MIN_OF(WORKS_MAX, MAX_OF(WORKS_MIN, WORKS_BYTES / work_bytes));
	raid->zeros = aligned_alloc(4096, raid->row_bytes);
	if (!raid->zeros) {
		raid5_free(&raid->set.layer);
		return err_set(err, -ENOMEM, "no memory for a RAID set");
	}
	iov_zero(&(struct iovec){raid->zeros, raid->row_bytes}, 1, 0, raid->row_bytes);
	*ret_layer = &raid->set.layer;
	return 0;
}

static int raid5_open(struct loop *loop, const struct raid_config *config,
		      struct io_layer **ret_layer, struct err *err)
{
	return open_sets(&raid5_ops, 1, config, ret_layer, err);
}

static int raid50_open(struct loop *loop, const struct raid_config *config,
		       struct io_layer **ret_layer, struct err *err)
{
	unsigned sets = raid50_sets(config->drive_count);
	return open_sets(&raid50_ops, sets ? sets : 1, config, ret_layer, err);
}

static struct raid_protection raid5_protection(unsigned drive_count)
{
	return (struct raid_protection){.group_drives = drive_count, .tolerance = 1};
}

static struct raid_protection raid50_protection(unsigned drive_count)
{
	unsigned sets = raid50_sets(drive_count);
	return (struct raid_protection){.group_drives = drive_count / (sets ? sets : 1),
					.tolerance = 1};
}

const struct raid_ops raid5_ops = {
    .name = "raid5",
    .check = raid5_check,
    .open = raid5_open,
    .usable_bytes = raid5_usable_bytes,
    .protection = raid5_protection,
};

const struct raid_ops raid50_ops = {
    .name = "raid50",
    .check = raid50_check,
    .open = raid50_open,
    .usable_bytes = raid50_usable_bytes,
    .protection = raid50_protection,
};
