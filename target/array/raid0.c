/* SPDX-License-Identifier: MIT
 *
 * RAID 0: chunks in turn over all drives, no redundancy.  A failed drive takes its chunks with it;
 * the others go on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/raid_geometry.h"
#include "target/array/raid_set.h"

static int raid0_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= 1 && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid0 needs 1 to %d active drives, not %u", RAID_DRIVES_MAX,
		 drive_count);
	return -EINVAL;
}

static uint64_t raid0_usable_bytes(unsigned drive_count, uint64_t drive_bytes, uint64_t chunk_bytes)
{
	return drive_bytes / chunk_bytes * chunk_bytes * drive_count;
}

static void raid0_done(struct io *io)
{
	struct raid_set *set = io->owner;
	part_end(&set->parts, container_of(io, struct part, io), raid_status(io->status));
}

static void raid0_pieces(struct raid_set *set, struct io *io)
{
	uint64_t chunk = set->chunk_bytes, done = 0;
	uint64_t first = io->offset_bytes / chunk;
	uint64_t last = (io->offset_bytes + io->length_bytes - 1) / chunk;
	struct part *part, *next;

	int rc = part_take(&set->parts, io, (unsigned)(last - first + 1), &part);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	uint64_t offset = io->offset_bytes, length = io->length_bytes;
	for (; part; part = next) {
		struct raid_place place =
		    raid_place_striped(set->drive_count, chunk, offset + done);
		uint64_t size = MIN_OF(place.run_bytes, length - done);

		next = (struct part *)part->io.link;
		part->io.done = raid0_done;
		part->io.owner = set;
		rc = part_fill(part, done, place.offset_bytes, size);
		done += size;
		if (rc)
			part_end(&set->parts, part, rc);
		else
			io_submit(&set->drives[place.drive]->layer, &part->io);
	}
}

static void raid0_submit(struct io_layer *layer, struct io *io)
{
	struct raid_set *set = container_of(layer, struct raid_set, layer);

	if (!io_in_range(layer, io))
		io_complete(io, -ERANGE);
	else if (io->op == IO_FLUSH)
		raid_flush(set, io);
	else if (io->length_bytes == 0)
		io_complete(io, 0);
	else
		raid0_pieces(set, io);
}

static int raid0_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
		      struct io_lent *lent)
{
	struct raid_set *set = container_of(layer, struct raid_set, layer);
	int rc = 0;

	for (uint64_t done = 0, size; rc == 0 && done < length; done += size) {
		struct raid_place place =
		    raid_place_striped(set->drive_count, set->chunk_bytes, offset + done);

		size = MIN_OF(place.run_bytes, length - done);
		rc = io_lend(&set->drives[place.drive]->layer, place.offset_bytes, size, lent);
	}
	return rc;
}

static void raid0_free(struct io_layer *layer)
{
	struct raid_set *set = container_of(layer, struct raid_set, layer);
	raid_set_done(set);
	free(set);
}

static const struct io_layer_ops raid0_layer_ops = {
    .name = "raid0",
    .submit = raid0_submit,
    .lend = raid0_lend,
    .free = raid0_free,
};

static bool raid0_covers(const struct raid_set *set, uint64_t drives)
{
	return drives == 0;
}

static int raid0_open(struct loop *loop, const struct raid_config *config,
		      struct io_layer **ret_layer, struct err *err)
{
	struct raid_set *set = calloc(1, sizeof *set);
	if (!set)
		return err_set(err, -ENOMEM, "no memory for a RAID set");
	int rc = raid_set_init(set, &raid0_ops, &raid0_layer_ops, config, err);
	if (rc) {
		free(set);
		return rc;
	}
	set->covers = raid0_covers;
	*ret_layer = &set->layer;
	return 0;
}

static struct raid_protection raid0_protection(unsigned drive_count)
{
	return (struct raid_protection){.group_drives = drive_count};
}

const struct raid_ops raid0_ops = {
    .name = "raid0",
    .check = raid0_check,
    .open = raid0_open,
    .usable_bytes = raid0_usable_bytes,
    .protection = raid0_protection,
};
