/* SPDX-License-Identifier: MIT
 *
 * The tests' slow disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/array/slow_disk.h"

enum { SECTOR = 512 };

static bool fails(struct slow_disk *disk, const struct io *io)
{
	bool beyond = io->op == IO_FLUSH || io->offset_bytes + io->length_bytes > disk->dead_from;

	return disk->dead || (disk->dead_from && beyond) ||
	       (disk->errors > 0 && rng_unit(&disk->rng) < disk->errors);
}

static void sectors_changed(struct slow_disk *disk, const struct io *io)
{
	for (uint64_t at = io->offset_bytes; at < io->offset_bytes + io->length_bytes; at += SECTOR)
		disk->written_at[at / SECTOR] = disk->clock;
}

static void make_stable(struct slow_disk *disk, uint64_t offset, uint64_t length, uint64_t upto)
{
	for (uint64_t at = offset; at < offset + length; at += SECTOR) {
		uint64_t *when = &disk->written_at[at / SECTOR];
		if (!*when || *when > upto)
			continue;
		memcpy(disk->stable + at, disk->now + at, SECTOR);
		*when = 0;
	}
}

/* A flush under way covers what is about to be replaced: that becomes stable first. */
static void keep_for_flush(struct slow_disk *disk, const struct io *io)
{
	bool flushing = false;
	for (unsigned i = 0; i < SLOW_DISK_MAX; i++)
		flushing |= disk->ios[i].used && disk->ios[i].io->op == IO_FLUSH;
	if (flushing)
		make_stable(disk, io->offset_bytes, io->length_bytes, disk->clock);
}

/* The memory of a write must not change while it is under way: a parity level reads it twice. */
static void check_unchanged(struct slow_io *slow)
{
	const struct io *io = slow->io;
	uint8_t *again = malloc(io->length_bytes);
	iov_to_mem(io->iov, io->iov_count, 0, again, io->length_bytes);
	slow->disk->changed_under_way |= memcmp(again, slow->data, io->length_bytes) != 0;
	free(again);
}

static void take_effect(void *arg)
{
	struct slow_io *slow = arg;
	struct slow_disk *disk = slow->disk;
	const struct io *io = slow->io;

	disk->clock++;
	/* A write that fails may have been done in part. */
	uint64_t bytes = io->length_bytes;
	if (slow->status && bytes)
		bytes = rng_below(&disk->rng, bytes / SECTOR + 1) * SECTOR;
	switch (io->op) {
	case IO_READ:
		iov_from_mem(io->iov, io->iov_count, 0, disk->now + io->offset_bytes, bytes);
		break;
	case IO_WRITE:
		check_unchanged(slow);
		keep_for_flush(disk, io);
		memcpy(disk->now + io->offset_bytes, slow->data, bytes);
		sectors_changed(disk, io);
		if ((io->flags & IO_FUA) && !slow->status)
			make_stable(disk, io->offset_bytes, bytes, disk->clock);
		break;
	case IO_UNMAP:
		keep_for_flush(disk, io);
		memset(disk->now + io->offset_bytes, 0, bytes);
		sectors_changed(disk, io);
		break;
	case IO_FLUSH:
		break;
	}
}

static void end(void *arg)
{
	struct slow_io *slow = arg;
	struct slow_disk *disk = slow->disk;
	struct io *io = slow->io;

	if (io->op == IO_WRITE)
		check_unchanged(slow);
	if (io->op == IO_FLUSH && !slow->status)
		make_stable(disk, 0, disk->layer.size_bytes, slow->began);
	free(slow->data);
	slow->data = NULL;
	slow->used = false;
	disk->in_flight--;
	io_complete(io, slow->status);
}

static void check_overlap(struct slow_disk *disk, const struct io *io)
{
	for (unsigned i = 0; i < SLOW_DISK_MAX; i++) {
		const struct io *other = disk->ios[i].io;
		if (disk->ios[i].used && other->op != IO_READ && other->op != IO_FLUSH &&
		    other->offset_bytes < io->offset_bytes + io->length_bytes &&
		    io->offset_bytes < other->offset_bytes + other->length_bytes)
			disk->overlap = true;
	}
}

static void count(struct slow_disk *disk, const struct io *io)
{
	disk->reads += io->op == IO_READ;
	disk->read_bytes += io->op == IO_READ ? io->length_bytes : 0;
	disk->flushes += io->op == IO_FLUSH;
	disk->unmaps += io->op == IO_UNMAP;
	if (io->op != IO_WRITE)
		return;
	disk->writes++;
	disk->write_bytes += io->length_bytes;
	disk->fua_writes += (io->flags & IO_FUA) != 0;
	disk->last_offset = io->offset_bytes;
	disk->last_length = io->length_bytes;
}

static void slow_submit(struct io_layer *layer, struct io *io)
{
	struct slow_disk *disk = container_of(layer, struct slow_disk, layer);
	struct slow_io *slow = disk->ios;

	assert_true(io_in_range(layer, io));
	count(disk, io);
	if (io->op == IO_WRITE || io->op == IO_UNMAP)
		check_overlap(disk, io);
	while (slow->used)
		slow++;
	assert_true(slow < disk->ios + SLOW_DISK_MAX);
	*slow = (struct slow_io){.disk = disk, .io = io, .used = true, .began = disk->clock};
	slow->status = fails(disk, io) ? -EIO : 0;
	loop_timer_init(&slow->effect, take_effect, slow);
	loop_timer_init(&slow->end, end, slow);
	if (io->op == IO_WRITE) {
		slow->data = malloc(io->length_bytes);
		iov_to_mem(io->iov, io->iov_count, 0, slow->data, io->length_bytes);
	}
	disk->in_flight++;
	if (!disk->latency_ns) {
		take_effect(slow);
		end(slow);
		return;
	}
	uint64_t now_ns = loop_now_ns(disk->loop);
	uint64_t effect_ns = now_ns + rng_below(&disk->rng, disk->latency_ns);
	loop_timer_set(disk->loop, &slow->effect, effect_ns);
	loop_timer_set(disk->loop, &slow->end,
		       effect_ns + 1 + rng_below(&disk->rng, disk->latency_ns));
}

static const struct io_layer_ops slow_ops = {.name = "slow disk", .submit = slow_submit};

void slow_disk_open(struct slow_disk *disk, struct loop *loop, uint64_t size_bytes, uint64_t seed)
{
	memset(disk, 0, sizeof *disk);
	disk->layer = (struct io_layer){.ops = &slow_ops, .size_bytes = size_bytes};
	disk->loop = loop;
	rng_init(&disk->rng, seed, 99);
	disk->now = calloc(1, size_bytes);
	disk->stable = calloc(1, size_bytes);
	disk->written_at = calloc(size_bytes / SECTOR, sizeof *disk->written_at);
}

void slow_disk_close(struct slow_disk *disk)
{
	assert_int_equal(disk->in_flight, 0);
	free(disk->now);
	free(disk->stable);
	free(disk->written_at);
}

static void settle(struct slow_disk *disk, bool crash)
{
	for (unsigned i = 0; i < SLOW_DISK_MAX; i++) {
		struct slow_io *slow = &disk->ios[i];
		if (!slow->used)
			continue;
		bool pending = loop_timer_pending(&slow->effect);
		loop_timer_cancel(disk->loop, &slow->effect);
		loop_timer_cancel(disk->loop, &slow->end);
		if (pending && (!crash || rng_below(&disk->rng, 2)))
			take_effect(slow);
		if (crash)
			slow->status = -ENODEV;
		end(slow);
	}
}

void slow_disk_crash(struct slow_disk *disk, bool loses_unflushed)
{
	settle(disk, true);
	for (uint64_t at = 0; at < disk->layer.size_bytes; at += SECTOR) {
		if (loses_unflushed && disk->written_at[at / SECTOR] && rng_below(&disk->rng, 2))
			memcpy(disk->now + at, disk->stable + at, SECTOR);
		disk->written_at[at / SECTOR] = 0;
	}
	memcpy(disk->stable, disk->now, disk->layer.size_bytes);
}

void slow_disk_drain(struct slow_disk *disk)
{
	disk->latency_ns = 0;
	while (disk->in_flight)
		settle(disk, false);
}
