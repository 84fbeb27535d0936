/* SPDX-License-Identifier: MIT
 *
 * Faults: what was planted, and what it does to requests.  Flipped bits: corruption.c.
 */
#include "target/drive/faults.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/drive/corruption.h"
#include "target/drive/faults_impl.h"
#include "target/drive/freelist.h"
#include "target/drive/model.h"
#include "target/drive/range_set.h"

enum { SECTOR_BYTES = 512, SLOW_FACTOR_MAX = 1000 };

/* A request that waits: to go on, or to end with STATUS. */
struct held {
	TAILQ_ENTRY(held) entry;
	struct io *io;
	uint64_t due_ns;
	int status;
};

TAILQ_HEAD(held_list, held);

struct drive_faults {
	struct drive *drive;
	struct drive_slow slow;
	struct range bad_memory[FAULT_RANGES_MAX];
	struct range_set bad;
	double media_error_rate, timeout_rate;
	struct rng media_rng, timeout_rng;
	uint64_t hang_ns;
	int error_status; /* 0: none */
	uint64_t good_commands;
	struct corruption corruption;
	struct held_list held; /* by due instant */
	struct freelist held_pool;
	struct loop_timer timer;
	bool drained;
};

/* ---- requests that wait ---- */

static void held_end(struct drive_faults *faults, struct held *held)
{
	struct io *io = held->io;
	int status = held->status;

	TAILQ_REMOVE(&faults->held, held, entry);
	freelist_give(&faults->held_pool, held);
	if (status)
		io_complete(io, status);
	else
		drive_go_on(faults->drive, io);
}

static void held_wake(struct drive_faults *faults)
{
	const struct held *first = TAILQ_FIRST(&faults->held);
	if (first)
		loop_timer_set(drive_loop(faults->drive), &faults->timer, first->due_ns);
}

static void held_run(void *arg)
{
	struct drive_faults *faults = arg;
	uint64_t now_ns = loop_now_ns(drive_loop(faults->drive));
	struct held *held;

	while ((held = TAILQ_FIRST(&faults->held)) && held->due_ns <= now_ns)
		held_end(faults, held);
	held_wake(faults);
}

/* False: no room, the request must go on. */
static bool hold(struct drive_faults *faults, struct io *io, uint64_t for_ns, int status)
{
	struct held *held = faults->drained ? NULL : freelist_take(&faults->held_pool);
	if (!held) {
		faults->drive->counters.fault_refusals++;
		return false;
	}
	*held = (struct held){
	    .io = io,
	    .due_ns = loop_now_ns(drive_loop(faults->drive)) + for_ns,
	    .status = status,
	};
	struct held *before = TAILQ_LAST(&faults->held, held_list);
	while (before && before->due_ns > held->due_ns)
		before = TAILQ_PREV(before, held_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&faults->held, before, held, entry);
	else
		TAILQ_INSERT_HEAD(&faults->held, held, entry);
	held_wake(faults);
	return true;
}

/* ---- the drive's side ---- */

bool drive_faults_take(struct drive *drive, struct io *io)
{
	struct drive_faults *faults = drive->faults;

	if (faults->error_status) {
		if (faults->good_commands == 0) {
			io_complete(io, faults->error_status);
			return true;
		}
		faults->good_commands--;
	}
	if (faults->timeout_rate > 0 && rng_unit(&faults->timeout_rng) < faults->timeout_rate &&
	    hold(faults, io, faults->hang_ns, -ETIMEDOUT))
		return true;
	/* A modelled drive has the extra time in its service times. */
	return faults->slow.extra_ns && !drive->model && hold(faults, io, faults->slow.extra_ns, 0);
}

static int judge_read(struct drive_faults *faults, const struct io *io)
{
	uint64_t lo = io->offset_bytes, hi = lo + io->length_bytes;

	if (faults->media_error_rate > 0 && io->length_bytes &&
	    rng_unit(&faults->media_rng) < faults->media_error_rate) {
		uint64_t sectors = (io->length_bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
		uint64_t sector = lo / SECTOR_BYTES + rng_below(&faults->media_rng, sectors);
		if (range_set_add(&faults->bad, sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES))
			faults->drive->counters.fault_refusals++;
	}
	return range_set_overlaps(&faults->bad, lo, hi) ? -EIO : 0;
}

int drive_faults_judge(struct drive *drive, const struct io *io, int status)
{
	struct drive_faults *faults = drive->faults;
	uint64_t lo = io->offset_bytes, hi = lo + io->length_bytes;

	if (io->op == IO_READ)
		return status ? status : judge_read(faults, io);
	if (status || io->op == IO_FLUSH)
		return status;
	if (range_set_remove(&faults->bad, lo, hi))
		drive->counters.fault_refusals++;
	corruption_written(&faults->corruption, lo, hi);
	return 0;
}

void drive_faults_drain(struct drive *drive)
{
	struct drive_faults *faults = drive->faults;
	struct held *held;

	if (!faults)
		return;
	faults->drained = true;
	loop_timer_cancel(drive_loop(drive), &faults->timer);
	while ((held = TAILQ_FIRST(&faults->held)))
		held_end(faults, held);
}

void drive_faults_free(struct drive *drive)
{
	if (!drive->faults)
		return;
	freelist_done(&drive->faults->held_pool);
	free(drive->faults);
	drive->faults = NULL;
}

/* The drive's faults, made when there are none; NULL: no memory. */
static struct drive_faults *want_faults(struct drive *drive)
{
	if (drive->faults)
		return drive->faults;
	struct drive_faults *faults = calloc(1, sizeof *faults);
	if (!faults)
		return NULL;
	faults->drive = drive;
	faults->slow.factor = 1;
	faults->bad = (struct range_set){.ranges = faults->bad_memory, .limit = FAULT_RANGES_MAX};
	TAILQ_INIT(&faults->held);
	freelist_init(&faults->held_pool, sizeof(struct held), FAULT_HELD_MAX);
	loop_timer_init(&faults->timer, held_run, faults);
	drive->faults = faults;
	return faults;
}

/* ---- planting and undoing ---- */

static bool in_drive(const struct drive *drive, uint64_t offset, uint64_t length)
{
	return length > 0 && offset <= drive->layer.size_bytes &&
	       length <= drive->layer.size_bytes - offset;
}

static bool is_share(double share)
{
	return share >= 0 && share <= 1;
}

int drive_set_slow(struct drive *drive, double factor, uint64_t extra_ns)
{
	if (!(factor >= 1 && factor <= SLOW_FACTOR_MAX))
		return -EINVAL;
	struct drive_faults *faults = want_faults(drive);
	if (!faults)
		return -ENOMEM;
	faults->slow = (struct drive_slow){.factor = factor, .extra_ns = extra_ns};
	if (drive->model)
		drive_model_set_slow(drive->model, &faults->slow);
	return 0;
}

int drive_add_media_error(struct drive *drive, uint64_t offset_bytes, uint64_t length_bytes)
{
	if (!in_drive(drive, offset_bytes, length_bytes))
		return -ERANGE;
	struct drive_faults *faults = want_faults(drive);
	if (!faults)
		return -ENOMEM;
	return range_set_add(&faults->bad, offset_bytes / SECTOR_BYTES * SECTOR_BYTES,
			     round_up_u64(offset_bytes + length_bytes, SECTOR_BYTES));
}

int drive_clear_media_errors(struct drive *drive, uint64_t offset_bytes, uint64_t length_bytes)
{
	if (!in_drive(drive, offset_bytes, length_bytes))
		return -ERANGE;
	if (drive->faults)
		(void)range_set_remove(&drive->faults->bad,
				       offset_bytes / SECTOR_BYTES * SECTOR_BYTES,
				       round_up_u64(offset_bytes + length_bytes, SECTOR_BYTES));
	return 0;
}

int drive_set_media_error_rate(struct drive *drive, double share, uint64_t seed)
{
	if (!is_share(share))
		return -EINVAL;
	struct drive_faults *faults = want_faults(drive);
	if (!faults)
		return -ENOMEM;
	faults->media_error_rate = share;
	rng_init(&faults->media_rng, seed, rng_stream_of(drive->name));
	return 0;
}

int drive_corrupt(struct drive *drive, uint64_t offset_bytes, uint64_t length_bytes, unsigned count,
		  uint64_t seed)
{
	struct rng rng;
	if (!in_drive(drive, offset_bytes, length_bytes))
		return -ERANGE;
	struct drive_faults *faults = want_faults(drive);
	if (!faults)
		return -ENOMEM;
	rng_init(&rng, seed, rng_stream_of(drive->name));
	return corruption_plant(&faults->corruption, drive->bare_store, offset_bytes,
				offset_bytes + length_bytes, count, &rng);
}

int drive_undo_corruption(struct drive *drive)
{
	return drive->faults ? corruption_undo(&drive->faults->corruption, drive->bare_store) : 0;
}

int drive_set_error_after(struct drive *drive, uint64_t commands, int status)
{
	if (status > 0)
		return -EINVAL;
	struct drive_faults *faults = want_faults(drive);
	if (!faults)
		return -ENOMEM;
	faults->error_status = status;
	faults->good_commands = commands;
	return 0;
}

int drive_set_timeouts(struct drive *drive, double share, uint64_t hang_ns, uint64_t seed)
{
	if (!is_share(share))
		return -EINVAL;
	struct drive_faults *faults = want_faults(drive);
	if (!faults)
		return -ENOMEM;
	faults->timeout_rate = share;
	faults->hang_ns = hang_ns;
	rng_init(&faults->timeout_rng, seed, rng_stream_of(drive->name));
	return 0;
}

int drive_clear_faults(struct drive *drive)
{
	struct drive_faults *faults = drive->faults;
	if (!faults)
		return 0;
	faults->bad.count = 0;
	faults->media_error_rate = faults->timeout_rate = 0;
	faults->error_status = 0;
	int rc = drive_set_slow(drive, 1, 0);
	return rc ? rc : drive_undo_corruption(drive);
}

/* ---- looking ---- */

struct drive_fault_state drive_fault_state(const struct drive *drive)
{
	const struct drive_faults *faults = drive->faults;
	struct drive_fault_state state = {.slow_factor = 1};
	if (!faults)
		return state;
	state = (struct drive_fault_state){
	    .slow_factor = faults->slow.factor,
	    .slow_extra_ns = faults->slow.extra_ns,
	    .bad_ranges = faults->bad.count,
	    .media_error_rate = faults->media_error_rate,
	    .flipped_bits = faults->corruption.count,
	    .erring = faults->error_status != 0,
	    .good_commands_left = faults->error_status ? faults->good_commands : 0,
	    .timeout_rate = faults->timeout_rate,
	    .held = faults->held_pool.out,
	};
	for (unsigned i = 0; i < faults->bad.count; i++)
		state.bad_bytes += faults->bad.ranges[i].hi - faults->bad.ranges[i].lo;
	return state;
}

bool drive_bad_range(const struct drive *drive, unsigned index, uint64_t *ret_offset_bytes,
		     uint64_t *ret_length_bytes)
{
	if (!drive->faults || index >= drive->faults->bad.count)
		return false;
	const struct range *range = &drive->faults->bad.ranges[index];
	*ret_offset_bytes = range->lo;
	*ret_length_bytes = range->hi - range->lo;
	return true;
}
