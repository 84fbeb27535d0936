/* SPDX-License-Identifier: MIT
 *
 * The common part of RAID sets.
 */
#include "target/array/raid_set.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

enum { CHUNK_MIN_BYTES = 4096, CHUNK_MAX_BYTES = 16 << 20, CHUNK_STEP_BYTES = 512 };

uint64_t raid_drive_bytes(const struct raid_config *config)
{
	uint64_t least = UINT64_MAX;
	for (unsigned i = 0; i < config->drive_count; i++)
		least = MIN_OF(least, config->drives[i]->layer.size_bytes);
	return least;
}

int raid_set_init(struct raid_set *set, const struct raid_ops *level,
		  const struct io_layer_ops *ops, const struct raid_config *config, struct err *err)
{
	char why[200];
	int rc = level->check(config->drive_count, why, sizeof why);
	if (rc)
		return err_set(err, rc, "%s", why);
	if (config->chunk_bytes < CHUNK_MIN_BYTES || config->chunk_bytes > CHUNK_MAX_BYTES ||
	    config->chunk_bytes % CHUNK_STEP_BYTES)
		return err_set(
		    err, -EINVAL,
		    "a chunk of %llu bytes is not a multiple of 512 from 4 KiB to 16 MiB",
		    (unsigned long long)config->chunk_bytes);
	uint64_t bytes =
	    level->usable_bytes(config->drive_count, raid_drive_bytes(config), config->chunk_bytes);
	set->layer = (struct io_layer){.ops = ops, .size_bytes = bytes};
	memcpy(set->drives, config->drives, config->drive_count * sizeof(struct drive *));
	set->drive_count = config->drive_count;
	set->chunk_bytes = config->chunk_bytes;
	set->stale_mask = config->stale_mask;
	set->stale = config->stale;
	set->dirty = config->dirty;
	set->stale_arg = config->stale_arg;
	set->hollow = config->hollow;
	part_pool_init(&set->parts);
	return 0;
}

void raid_set_done(struct raid_set *set)
{
	part_pool_done(&set->parts);
}

void raid_mark_stale(struct raid_set *set, unsigned drive)
{
	uint64_t bit = UINT64_C(1) << drive;
	if (set->stale_mask & ~set->filling_mask & bit)
		return;
	set->stale_mask |= bit;
	set->filling_mask &= ~bit;
	if (set->stale && set->stale(set->stale_arg, drive))
		set->unrecorded = true;
}

int raid_status(int status)
{
	return status == -ENODEV ? -EIO : status;
}

/* All drives have answered: those that did not flush may have lost writes. */
static int flush_judge(struct raid_set *set, uint64_t failed)
{
	uint64_t out = 0;

	for (unsigned i = 0; i < set->drive_count; i++)
		if (!raid_takes(set, i))
			out |= UINT64_C(1) << i;
	if (!set->covers(set, failed | out))
		return -EIO;
	for (; failed; failed &= failed - 1)
		raid_mark_stale(set, (unsigned)__builtin_ctzll(failed));
	return set->unrecorded ? -EIO : 0;
}

static void flush_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct raid_set *set = io->owner;
	struct fan *fan = part->fan; /* NULL: the only drive */
	int status = 0;

	if (raid_is_shortage(io->status))
		status = io->status;
	else if (io->status && fan)
		fan->mask |= UINT64_C(1) << part->first;
	else if (io->status)
		status = -EIO;
	if (fan && fan->pending == 1 && !fan->status && !status)
		status = flush_judge(set, fan->mask);
	part_end(&set->parts, part, status);
}

void raid_flush(struct raid_set *set, struct io *io)
{
	struct part *part, *next;
	int rc = part_take(&set->parts, io, set->drive_count, &part);
	if (rc) {
		io_complete(io, rc);
		return;
	}
	for (unsigned i = 0; part; i++, part = next) {
		next = (struct part *)part->io.link;
		(void)part_fill(part, 0, 0, 0);
		part->first = i;
		part->io.done = flush_done;
		part->io.owner = set;
		if (raid_takes(set, i))
			io_submit(&set->drives[i]->layer, &part->io);
		else
			io_complete(&part->io, part->fan ? 0 : -EIO); /* flush_judge knows */
	}
}
