/* SPDX-License-Identifier: MIT
 *
 * The tests' RAID rig.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/array/rig.h"

static const struct drive_model jumpy = {
    .name = "jumpy",
    .size_bytes = GIB,
    .overhead_ns = 1000,
    .transfer_bytes_per_s = 50000000,
    .channels = 4,
};

/* The halves of a mirror must not run in step. */
static const struct drive_model lame = {
    .name = "lame",
    .size_bytes = GIB,
    .overhead_ns = 5000,
    .transfer_bytes_per_s = 170000000,
    .channels = 3,
};

enum { JOURNAL_SEEN_BYTES = 1 << 20 }; /* more than small sets use of it */

/* Half of the write is there, and that is all that ever will be. */
static void crash(struct fault *fault, struct io *io)
{
	struct rig *rig = fault->rig;
	size_t half = io->length_bytes / 1024 * 512;
	uint8_t *data = malloc(half + 1);

	rig->crashed = true;
	rig->stale_then = rig->stale_told;
	free(rig->journal_then);
	rig->journal_then = malloc(JOURNAL_SEEN_BYTES);
	memcpy(rig->journal_then, rig->journal.memory, JOURNAL_SEEN_BYTES);
	if (io->op == IO_WRITE && half) {
		iov_to_mem(io->iov, io->iov_count, 0, data, half);
		io_wait(NULL, fault->below, IO_WRITE, io->offset_bytes, data, half);
	}
	free(data);
}

/* The status that trouble of the whole rig gives a request, 0: none. */
static int rig_trouble(struct fault *fault, struct io *io)
{
	struct rig *rig = fault->rig;
	bool update = io->op == IO_WRITE || io->op == IO_UNMAP;

	rig->ios++;
	if (rig->crash_armed && !rig->crashed && update && rig->writes_left-- == 0)
		crash(fault, io);
	if (rig->crashed)
		return -EIO;
	if (rig->fail_at && (rig->ios == rig->fail_at || (rig->lasting && rig->ios > rig->fail_at)))
		return -EIO;
	return update && fault->full ? -ENOSPC : 0;
}

static bool is_bad(struct fault *fault, const struct io *io)
{
	uint64_t end = fault->bad_offset + fault->bad_bytes;
	if (!fault->bad_bytes || io->offset_bytes >= end ||
	    fault->bad_offset >= io->offset_bytes + io->length_bytes)
		return false;
	if (io->op != IO_READ && io->offset_bytes <= fault->bad_offset &&
	    io->offset_bytes + io->length_bytes >= end)
		fault->bad_bytes = 0;
	return io->op == IO_READ;
}

static void tear(struct fault *fault, struct io *io)
{
	uint64_t half = io->length_bytes / 1024 * 512;
	uint8_t *data = malloc(half + 1);

	if (io->op == IO_WRITE && half) {
		iov_to_mem(io->iov, io->iov_count, 0, data, half);
		io_wait(NULL, fault->below, IO_WRITE, io->offset_bytes, data, half);
	}
	free(data);
	fault->bad_offset = io->offset_bytes + half;
	fault->bad_bytes = 512;
	fault->bad_status = -EILSEQ;
	io_complete(io, -EIO);
}

static void fault_submit(struct io_layer *layer, struct io *io)
{
	struct fault *fault = container_of(layer, struct fault, layer);
	int trouble = rig_trouble(fault, io);
	fault->reads += io->op == IO_READ;
	fault->writes += io->op == IO_WRITE;
	fault->flushes += io->op == IO_FLUSH;
	fault->unmaps += io->op == IO_UNMAP;
	fault->fua_writes += io->op == IO_WRITE && (io->flags & IO_FUA);
	if (trouble || is_bad(fault, io)) {
		io_complete(io, trouble ? trouble : fault->bad_status);
		return;
	}
	if (io->op == IO_READ && rng_unit(&fault->rng) < fault->read_errors) {
		io_complete(io, -EIO);
		return;
	}
	if (fault->tears && (io->op == IO_WRITE || io->op == IO_UNMAP)) {
		tear(fault, io);
		return;
	}
	if (io->op == IO_WRITE && fault->write_errors > 0) {
		fault->write_errors--;
		io_complete(io, -EIO);
		return;
	}
	io_submit(fault->below, io);
}

static void fault_free(struct io_layer *layer)
{
	struct fault *fault = container_of(layer, struct fault, layer);
	fault->below->ops->free(fault->below);
}

static const struct io_layer_ops fault_ops = {
    .name = "fault",
    .submit = fault_submit,
    .free = fault_free,
};

static int told_stale(void *arg, unsigned drive)
{
	struct rig *rig = arg;
	if (rig->stale_fails)
		return -EIO;
	assert_false((rig->stale_told & ~rig->filling) >> drive & 1);
	rig->stale_told |= UINT64_C(1) << drive;
	rig->filling &= ~(UINT64_C(1) << drive);
	return 0;
}

/* Above the store, below the drive: the model, where there is one, is above it as well. */
static void insert_fault(struct rig *rig, unsigned index, uint64_t seed,
			 const struct drive_config *config)
{
	struct fault *fault = &rig->faults[index];
	struct drive *drive = rig->drives[index];
	*fault = (struct fault){
	    .layer = {.ops = &fault_ops, .size_bytes = drive->layer.size_bytes},
	    .rig = rig,
	    .below = drive->store,
	};
	rng_init(&fault->rng, seed, index);
	drive->store = drive->bare_store = &fault->layer;
	if (config->timing == DRIVE_TIMING_MODELLED)
		assert_int_equal(drive_model_open(rig->loop, index % 2 ? &lame : &jumpy, NULL,
						  &fault->layer, &drive->model),
				 0);
}

static raid_shape *shape_of(const char *level)
{
	static const struct {
		const char *level;
		raid_shape *shape;
	} shapes[] = {
	    {"raid1", raid1_shape},   {"raid10", raid10_shape}, {"raid5", raid5_shape},
	    {"raid50", raid50_shape}, {"raid6", raid6_shape},	{"raid60", raid60_shape},
	    {"adapt", adapt_shape},
	};
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (strcmp(shapes[i].level, level) == 0)
			return shapes[i].shape;
	return NULL;
}

static void open_set(struct rig *rig)
{
	struct err err = {0};
	struct raid_config config = {
	    .drives = rig->drives,
	    .drive_count = rig->drive_count,
	    .chunk_bytes = rig->chunk_bytes,
	    .stale_mask = rig->stale_told,
	    .stale = told_stale,
	    .stale_arg = rig,
	    .journal = rig->journal.memory ? &rig->journal : NULL,
	    .spared_mask = rig->spared_mask,
	};
	int rc = rig->ops->open(rig->loop, &config, &rig->set, &err);
	if (rc)
		fail_msg("%s over %u drives: %s", rig->ops->name, rig->drive_count, err.what);
}

static void open_all(struct rig *rig, const char *level, unsigned drive_count, uint64_t drive_bytes,
		     uint64_t chunk_bytes, enum drive_timing timing, uint64_t seed, bool journaled)
{
	struct err err = {0};
	*rig = (struct rig){.drive_count = drive_count};
	assert_int_equal(loop_new_virtual(0, &rig->loop), 0);
	for (unsigned i = 0; i < drive_count; i++) {
		char name[32];
		snprintf(name, sizeof name, "drive%02u", i);
		struct drive_config config = {
		    .name = name,
		    .model = &jumpy,
		    .size_bytes = drive_bytes,
		    .timing = timing,
		    .store = &store_memory_ops,
		};
		struct drive_config plain = config;
		plain.timing = DRIVE_TIMING_NONE;
		assert_int_equal(drive_open(rig->loop, &plain, &rig->drives[i], &err), 0);
		insert_fault(rig, i, seed, &config);
	}
	rig->ops = raid_find(level);
	assert_non_null(rig->ops);
	rig->chunk_bytes = chunk_bytes;
	if (shape_of(level))
		rig->geometry =
		    raid_geometry(shape_of(level), drive_count, drive_bytes, chunk_bytes);
	if (journaled) {
		size_t bytes = rig->ops->journal_bytes(drive_count, chunk_bytes);
		assert_int_equal(nvram_open(NULL, "journal", bytes, &rig->journal, &err), 0);
	}
	open_set(rig);
	assert_int_equal(rig->set->size_bytes,
			 rig->ops->usable_bytes(drive_count, drive_bytes, chunk_bytes));
}

void rig_open(struct rig *rig, const char *level, unsigned drive_count, uint64_t drive_bytes,
	      uint64_t chunk_bytes, enum drive_timing timing, uint64_t seed)
{
	open_all(rig, level, drive_count, drive_bytes, chunk_bytes, timing, seed, false);
}

void rig_open_journaled(struct rig *rig, const char *level, unsigned drive_count,
			uint64_t drive_bytes, uint64_t chunk_bytes)
{
	open_all(rig, level, drive_count, drive_bytes, chunk_bytes, DRIVE_TIMING_NONE, 1, true);
}

void rig_reopen(struct rig *rig)
{
	rig->set->ops->free(rig->set);
	if (rig->crashed) {
		memcpy(rig->journal.memory, rig->journal_then, JOURNAL_SEEN_BYTES);
		rig->stale_told = rig->stale_then;
	}
	rig->crashed = false;
	rig->crash_armed = false;
	rig->filling = 0;
	open_set(rig);
}

void rig_close(struct rig *rig)
{
	for (unsigned i = 0; i < rig->drive_count; i++)
		drive_drain(rig->drives[i]);
	rig->set->ops->free(rig->set);
	for (unsigned i = 0; i < rig->drive_count; i++)
		drive_close(rig->drives[i]);
	if (rig->journal.memory)
		nvram_close(&rig->journal);
	free(rig->journal_then);
	loop_free(rig->loop);
}

static void unit_done(struct raid_unit *unit)
{
	*(bool *)unit->owner = true;
}

void rig_unit(struct rig *rig, struct raid_unit *unit)
{
	bool ended = false;
	unit->owner = &ended;
	unit->done = unit_done;
	rig->ops->unit_run(rig->set, unit);
	while (!ended)
		assert_int_equal(loop_turn(rig->loop, true), 0);
}

void rig_replace(struct rig *rig, unsigned slot, struct drive *drive)
{
	uint64_t bit = UINT64_C(1) << slot;

	rig->stale_told |= bit;
	rig->filling |= bit;
	rig->spared_mask = drive ? rig->spared_mask & ~bit : rig->spared_mask | bit;
	rig->ops->slot_replace(rig->set, slot, drive);
}

void rig_good(struct rig *rig, unsigned slot)
{
	uint64_t bit = UINT64_C(1) << slot;

	rig->ops->slot_good(rig->set, slot);
	rig->stale_told &= ~bit;
	rig->filling &= ~bit;
}

void rig_rebuild(struct rig *rig, unsigned slot, struct drive *drive)
{
	rig_replace(rig, slot, drive);
	for (uint64_t i = 0; i < rig->ops->unit_count(rig->set); i++) {
		struct raid_unit unit = {.kind = RAID_UNIT_REBUILD, .slot = slot, .unit = i};
		rig_unit(rig, &unit);
		assert_int_equal(unit.status, 0);
	}
	rig_good(rig, slot);
}

static void note(struct io *io)
{
	*(bool *)io->owner = true;
}

int io_wait(struct loop *loop, struct io_layer *layer, enum io_op op, uint64_t offset, void *data,
	    uint64_t length)
{
	struct iovec iov = {data, length};
	bool ended = false;
	struct io io = {
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = data ? &iov : NULL,
	    .iov_count = data ? 1 : 0,
	    .done = note,
	    .owner = &ended,
	};
	io_submit(layer, &io);
	while (!ended && loop)
		assert_int_equal(loop_turn(loop, true), 0);
	assert_true(ended);
	return io.status;
}

void rig_poke(struct rig *rig, unsigned drive, uint64_t offset, const void *data, size_t size)
{
	assert_int_equal(
	    io_wait(NULL, rig->faults[drive].below, IO_WRITE, offset, (void *)data, size), 0);
}

void rig_peek(struct rig *rig, unsigned drive, uint64_t offset, void *out, size_t size)
{
	assert_int_equal(io_wait(NULL, rig->faults[drive].below, IO_READ, offset, out, size), 0);
}
