/* SPDX-License-Identifier: MIT
 *
 * The controller cache under random load on a slow disk, against a shadow: many overlapping
 * requests, mode changes, errors of the disk, crashes with the memory kept.
 *
 * The shadow knows of each sector which writes may be read from it: the last that was answered
 * and all that were under way with it or since.  Every sector carries the number of its write.
 *
 * SANLAB_CACHE_SEED=N runs that seed alone, SANLAB_CACHE_SEEDS=N so many.
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
#include "target/array/cache.h"
#include "target/array/cache_record.h"
#include "tests/unit/array/slow_disk.h"

enum {
	SECTOR = 512,
	CHUNK = 4096,
	STRIPE = 4 * CHUNK,
	DISK_BYTES = 384 * 1024,
	SECTORS = DISK_BYTES / SECTOR,
	CANDIDATES = 256,
	JOBS = 24,
	STEPS = 1200,
	IO_MAX = 40 * 1024,
};

/* A write that may be in a sector. */
struct candidate {
	uint64_t id;
	uint64_t content; /* the same, or 0 for an UNMAP */
	uint64_t ended;	  /* when it was answered; UINT64_MAX: under way */
	uint64_t removed; /* when a later one took its place; UINT64_MAX: it has not */
};

struct shadow {
	struct candidate list[CANDIDATES];
	unsigned count;
};

struct job {
	struct io io;
	struct iovec iov[3];
	struct world *world;
	uint8_t data[IO_MAX];
	uint64_t id, began;
	bool used;
	bool flushes; /* an UNMAP that is being made stable */
	enum io_op op;
	uint64_t offset, length;
};

struct world {
	uint64_t seed, time, next_id;
	struct loop *loop;
	struct rng rng;
	struct slow_disk disk;
	struct nvram nvram;
	struct cache *cache;
	struct shadow shadows[SECTORS];
	struct job jobs[JOBS];
	unsigned under_way, ended, crashes;
	bool lossy; /* the disk loses what was not flushed */
	bool through;
	bool crashing;
	struct cache_counters sum;
};

static void bad(struct world *world, const char *what, uint64_t sector, uint64_t id)
{
	fail_msg("SANLAB_CACHE_SEED=%llu: %s at sector %llu: write %llu",
		 (unsigned long long)world->seed, what, (unsigned long long)sector,
		 (unsigned long long)id);
}

/* ---- the shadow ---- */

static void shadow_add(struct world *world, uint64_t sector, uint64_t id, uint64_t content)
{
	struct shadow *shadow = &world->shadows[sector];
	if (shadow->count == CANDIDATES) {
		/* Make room: what was replaced long ago. */
		unsigned kept = 0;
		for (unsigned i = 0; i < shadow->count; i++)
			if (shadow->list[i].removed == UINT64_MAX || i >= CANDIDATES / 2)
				shadow->list[kept++] = shadow->list[i];
		shadow->count = kept;
	}
	assert_true(shadow->count < CANDIDATES);
	shadow->list[shadow->count++] = (struct candidate){id, content, UINT64_MAX, UINT64_MAX};
}

/* The write ID, begun at BEGAN, was answered; GOOD: it took the place of all before it. */
static void shadow_end(struct world *world, uint64_t sector, uint64_t id, uint64_t began, bool good)
{
	struct shadow *shadow = &world->shadows[sector];
	for (unsigned i = 0; i < shadow->count; i++) {
		struct candidate *one = &shadow->list[i];
		if (one->id == id && one->ended == UINT64_MAX)
			one->ended = world->time;
		else if (good && one->ended < began && one->removed == UINT64_MAX)
			one->removed = world->time;
	}
}

static void check_sector(struct world *world, uint64_t sector, const uint8_t *data, uint64_t began)
{
	const struct shadow *shadow = &world->shadows[sector];
	uint64_t id, again;
	memcpy(&id, data, sizeof id);
	for (unsigned at = 8; at < SECTOR; at += 8) {
		memcpy(&again, data + at, sizeof again);
		if (again != id)
			bad(world, "a torn sector", sector, id);
	}
	for (unsigned i = 0; i < shadow->count; i++)
		if (shadow->list[i].content == id && shadow->list[i].removed >= began)
			return;
	bad(world, "wrong data", sector, id);
}

/* ---- jobs ---- */

static void job_done(struct io *io);

static void send(struct job *job, enum io_op op, unsigned flags)
{
	struct world *world = job->world;
	uint64_t cut = job->length > SECTOR ? rng_below(&world->rng, job->length / 8) * 8 : 0;

	job->iov[0] = (struct iovec){job->data, cut};
	job->iov[1] = (struct iovec){job->data + cut, job->length - cut};
	bool carries = op == IO_READ || op == IO_WRITE;
	job->io = (struct io){
	    .op = op,
	    .flags = flags,
	    .offset_bytes = op == IO_FLUSH ? 0 : job->offset,
	    .length_bytes = op == IO_FLUSH ? 0 : job->length,
	    .iov = carries ? job->iov : NULL,
	    .iov_count = carries ? 2 : 0,
	    .done = job_done,
	    .owner = job,
	};
	io_submit(cache_layer(world->cache), &job->io);
}

static void job_done(struct io *io)
{
	struct job *job = io->owner;
	struct world *world = job->world;
	uint64_t first = job->offset / SECTOR, count = job->length / SECTOR;

	world->time++;
	if (job->op == IO_UNMAP && !job->flushes && io->status == 0 && world->lossy) {
		job->flushes = true;
		send(job, IO_FLUSH, 0);
		return;
	}
	if (!world->crashing && io->status && io->status != -EIO)
		bad(world, "an odd error", first, (uint64_t)-io->status);
	for (uint64_t i = 0; i < count; i++)
		if (job->op == IO_READ) {
			if (io->status == 0)
				check_sector(world, first + i, job->data + i * SECTOR, job->began);
		} else if (job->op != IO_FLUSH) {
			shadow_end(world, first + i, job->id, job->began, io->status == 0);
		}
	job->used = false;
	world->under_way--;
	world->ended++;
}

static void choose_range(struct world *world, struct job *job)
{
	uint64_t most = rng_below(&world->rng, 8) == 0 ? IO_MAX : 3 * CHUNK;
	job->length = (1 + rng_below(&world->rng, most / SECTOR)) * SECTOR;
	/* A hot corner, so that requests meet. */
	uint64_t room = rng_below(&world->rng, 2) ? DISK_BYTES / 8 : DISK_BYTES;
	room = MAX_OF(room, job->length);
	job->offset = rng_below(&world->rng, (room - job->length) / SECTOR + 1) * SECTOR;
	if (rng_below(&world->rng, 4) == 0) {
		job->offset = job->offset / CHUNK * CHUNK;
		job->length = MIN_OF(round_up_u64(job->length, CHUNK), IO_MAX / CHUNK * CHUNK);
		job->length = MIN_OF(job->length, DISK_BYTES - job->offset);
	}
}

static void start_job(struct world *world)
{
	struct job *job = world->jobs;
	while (job < world->jobs + JOBS && job->used)
		job++;
	if (job == world->jobs + JOBS)
		return;
	uint64_t dice = rng_below(&world->rng, 100);
	job->op = dice < 45 ? IO_WRITE : dice < 88 ? IO_READ : dice < 95 ? IO_UNMAP : IO_FLUSH;
	job->used = true;
	job->flushes = false;
	job->world = world;
	job->began = ++world->time;
	choose_range(world, job);
	world->under_way++;
	job->id = ++world->next_id;
	for (uint64_t i = 0; i < job->length / SECTOR; i++) {
		if (job->op == IO_WRITE)
			for (unsigned k = 0; k < SECTOR; k += 8)
				memcpy(job->data + i * SECTOR + k, &job->id, sizeof job->id);
		if (job->op == IO_WRITE || job->op == IO_UNMAP)
			shadow_add(world, job->offset / SECTOR + i, job->id,
				   job->op == IO_UNMAP ? 0 : job->id);
	}
	send(job, job->op, rng_below(&world->rng, 8) == 0 ? IO_FUA : 0);
}

/* ---- the world ---- */

static void open_cache(struct world *world)
{
	struct err err = {0};
	struct cache_config config = {
	    .name = "m1",
	    .size_bytes = 24 * CHUNK,
	    .mode = world->through ? CACHE_WRITE_THROUGH : CACHE_WRITE_BACK,
	    .read = true,
	    .prefetch = world->seed % 3 != 0,
	    .chunk_bytes = CHUNK,
	    .stripe_bytes = STRIPE,
	    .modelled = world->seed % 5 == 0,
	    .nvram = &world->nvram,
	};
	int rc = cache_open(world->loop, &config, &world->disk.layer, &world->cache, &err);
	if (rc)
		fail_msg("cache_open: %s", err.what);
}

static void close_cache(struct world *world)
{
	struct cache_status status;
	cache_status(world->cache, &status);
	world->sum.recovered_bytes += status.counters.recovered_bytes;
	world->sum.read_hits += status.counters.read_hits;
	world->sum.full_stripes += status.counters.full_stripes;
	world->sum.write_waits += status.counters.write_waits;
	world->sum.page_waits += status.counters.page_waits;
	world->sum.destages += status.counters.destages;
	assert_int_equal(status.counters.lost_bytes, 0);
	assert_int_equal(status.counters.lost_records, 0);
	world->cache = cache_close(world->cache);
}

static void crash(struct world *world)
{
	world->crashing = true;
	cache_halt(world->cache);
	slow_disk_crash(&world->disk, world->lossy);
	close_cache(world);
	world->crashing = false;
	assert_int_equal(world->under_way, 0);
	world->nvram.found = true;
	world->crashes++;
	open_cache(world);
}

static void change_something(struct world *world)
{
	switch (rng_below(&world->rng, 6)) {
	case 0:
	case 1:
		if (!world->lossy)
			cache_set_mirrored(world->cache, rng_below(&world->rng, 2));
		break;
	case 2:
		if (!world->lossy)
			cache_set_battery(world->cache, rng_below(&world->rng, 3) > 0);
		break;
	case 3:
		world->disk.dead = rng_below(&world->rng, 3) == 0;
		break;
	case 4:
		if (world->seed % 2)
			world->disk.errors = rng_below(&world->rng, 2) * 0.1;
		break;
	default:
		crash(world);
		break;
	}
}

static void run_ns(struct world *world, uint64_t ns)
{
	assert_int_equal(loop_run_until(world->loop, loop_now_ns(world->loop) + ns), 0);
}

static void check_all(struct world *world)
{
	for (uint64_t at = 0; at < DISK_BYTES; at += SECTOR)
		check_sector(world, at / SECTOR, world->disk.now + at, world->time);
}

/* All is well again: everything ends, and what the cache says is what the disk gets. */
static void finish(struct world *world)
{
	static uint8_t seen[DISK_BYTES];
	struct job *job = &world->jobs[0];

	world->disk.dead = false;
	world->disk.errors = 0;
	cache_set_mirrored(world->cache, true);
	cache_set_battery(world->cache, true);
	run_ns(world, 60 * NS_PER_S);
	if (world->under_way)
		bad(world, "requests that never ended", 0, world->under_way);
	for (uint64_t at = 0; at < DISK_BYTES; at += 32 * KIB) {
		*job = (struct job){.world = world,
				    .used = true,
				    .op = IO_READ,
				    .offset = at,
				    .length = 32 * KIB,
				    .began = ++world->time};
		world->under_way++;
		send(job, IO_READ, 0);
		run_ns(world, NS_PER_S);
		assert_int_equal(world->under_way, 0);
		memcpy(seen + at, job->data, 32 * KIB);
	}
	struct cache_status status;
	cache_status(world->cache, &status);
	assert_int_equal(status.waiting, 0);
	assert_int_equal(status.dirty_bytes, 0); /* older than the age bound by now */
	slow_disk_drain(&world->disk);
	close_cache(world);
	check_all(world);
	if (memcmp(seen, world->disk.now, DISK_BYTES))
		bad(world, "cache and disk differ", 0, 0);
	if (world->disk.changed_under_way)
		bad(world, "memory changed under a write", 0, 0);
	if (world->disk.overlap)
		bad(world, "overlapping writes were under way", 0, 0);
}

static void run_seed(uint64_t seed, struct cache_counters *sum)
{
	struct world *world = calloc(1, sizeof *world);
	world->seed = seed;
	rng_init(&world->rng, seed, 1);
	world->lossy = seed % 4 == 1;
	world->through = !world->lossy && seed % 7 == 0;
	assert_int_equal(loop_new_virtual(0, &world->loop), 0);
	slow_disk_open(&world->disk, world->loop, DISK_BYTES, seed);
	world->disk.latency_ns = seed % 9 ? 5 * NS_PER_MS : 0;
	size_t bytes = records_bytes(24, CHUNK);
	assert_int_equal(nvram_open(NULL, "m1", bytes, &world->nvram, NULL), 0);
	for (unsigned i = 0; i < SECTORS; i++)
		world->shadows[i] = (struct shadow){.list = {{0, 0, 0, UINT64_MAX}}, .count = 1};
	open_cache(world);
	for (unsigned i = 0; i < STEPS; i++) {
		start_job(world);
		if (rng_below(&world->rng, 60) == 0)
			change_something(world);
		run_ns(world,
		       rng_below(&world->rng, rng_below(&world->rng, 40) ? NS_PER_MS : NS_PER_S));
	}
	finish(world);
	sum->recovered_bytes += world->sum.recovered_bytes;
	sum->read_hits += world->sum.read_hits;
	sum->full_stripes += world->sum.full_stripes;
	sum->write_waits += world->sum.write_waits;
	sum->page_waits += world->sum.page_waits;
	slow_disk_close(&world->disk);
	nvram_close(&world->nvram);
	loop_free(world->loop);
	free(world);
}

static void random_load(void **state)
{
	const char *one = getenv("SANLAB_CACHE_SEED"), *many = getenv("SANLAB_CACHE_SEEDS");
	uint64_t first = one ? strtoull(one, NULL, 10) : 1;
	uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : 40;
	struct cache_counters sum = {0};

	for (uint64_t seed = first; seed < first + count; seed++)
		run_seed(seed, &sum);
	if (one)
		return;
	/* All of it happened. */
	assert_true(sum.recovered_bytes > 0 && sum.read_hits > 0 && sum.full_stripes > 0);
	assert_true(sum.write_waits > 0 && sum.page_waits > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_load)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
