/* SPDX-License-Identifier: MIT
 *
 * How fast RAID sets over memory drives are, beside the least that the same work must cost: the
 * copies to and from the drives' memory and ISA-L's own coding, measured in the same run, round by
 * round in turn.  Prints JSON.  Not a test: scripts/bench-array runs it.
 *
 * usage: set_speed [ROUNDS]
 */
#include <isa-l/raid.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/array/raid_levels.h"

enum { CHUNK = 64 << 10, REQUEST = 4 << 20, DRIVES_MAX = 10, ROUNDS_MAX = 31 };

static struct loop *loop;
static struct rng rng;

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *memory(size_t bytes)
{
	void *room = aligned_alloc(2 << 20, round_up_u64(bytes, 2 << 20));
	if (!room) {
		fprintf(stderr, "set_speed: no memory\n");
		exit(4);
	}
	memset(room, 0x5a, bytes);
	return room;
}

/* ---- a set ---- */

struct bench_set {
	const struct raid_ops *ops;
	struct io_layer *layer;
	struct drive *drives[DRIVES_MAX];
	unsigned drive_count;
	struct stripe_geometry geometry;
	uint8_t *mirror[DRIVES_MAX]; /* plain memory of the same size, for the bound */
};

static void note(struct io *io)
{
	*(bool *)io->owner = true;
}

static void must(struct io_layer *layer, enum io_op op, uint64_t offset, void *data,
		 uint64_t length)
{
	struct iovec iov = {data, length};
	bool ended = false;
	struct io io = {
	    .op = op,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = &iov,
	    .iov_count = 1,
	    .done = note,
	    .owner = &ended,
	};
	io_submit(layer, &io);
	if (!ended || io.status) {
		fprintf(stderr, "set_speed: a request failed\n");
		exit(4);
	}
}

static void set_open(struct bench_set *set, const char *level, raid_shape *shape,
		     unsigned drive_count, uint64_t drive_bytes)
{
	struct err err = {0};
	struct raid_config config = {.drives = set->drives, .chunk_bytes = CHUNK};

	*set = (struct bench_set){.ops = raid_find(level), .drive_count = drive_count};
	for (unsigned i = 0; i < drive_count; i++) {
		char name[32];
		snprintf(name, sizeof name, "drive%u", i);
		struct drive_config drive = {
		    .name = name,
		    .model = drive_model_find("sas-15k-600"),
		    .size_bytes = drive_bytes,
		    .store = &store_memory_ops,
		};
		if (drive_open(loop, &drive, &set->drives[i], &err))
			exit(4);
		set->mirror[i] = memory(drive_bytes);
	}
	config.drive_count = drive_count;
	if (set->ops->open(loop, &config, &set->layer, &err))
		exit(4);
	set->geometry = raid_geometry(shape, drive_count, drive_bytes, CHUNK);
	uint8_t *data = memory(REQUEST);
	rng_fill(&rng, data, REQUEST);
	for (uint64_t at = 0; at < set->layer->size_bytes; at += REQUEST)
		must(set->layer, IO_WRITE, at, data,
		     MIN_OF((uint64_t)REQUEST, set->layer->size_bytes - at));
	free(data);
}

static void set_close(struct bench_set *set)
{
	set->layer->ops->free(set->layer);
	for (unsigned i = 0; i < set->drive_count; i++) {
		drive_close(set->drives[i]);
		free(set->mirror[i]);
	}
}

/* ---- rows ---- */

struct row {
	const char *name, *work;
	double unit_bytes; /* 0: rates are in operations */
	unsigned rounds;
	double own[ROUNDS_MAX], bound[ROUNDS_MAX]; /* a second */
};

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;
	return left < right ? -1 : left > right;
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof *values, by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void row_print(struct row *row, bool last)
{
	double own = median(row->own, row->rounds), bound = median(row->bound, row->rounds);
	const char *unit = row->unit_bytes > 0 ? "mb_per_s" : "iops";
	double scale = row->unit_bytes > 0 ? row->unit_bytes / 1e6 : 1;

	printf("  {\"row\": \"%s\", \"work\": \"%s\", \"rounds\": %u, \"%s\": %.0f, "
	       "\"bound_%s\": %.0f, \"ratio\": %.3f}%s\n",
	       row->name, row->work, row->rounds, unit, own * scale, unit, bound * scale,
	       own / bound, last ? "" : ",");
}

/* Full stripes of RAID 6, 8 + 2, in requests of eight stripes.  Bound: P + Q of each stripe by
 * ISA-L, and a copy of its ten columns to as much memory as the drives have. */
static void full_stripes(struct row *row)
{
	enum { DRIVE_BYTES = 32 << 20, STRIPE = 8 * CHUNK };
	struct bench_set set;
	uint8_t *data = memory(REQUEST), *p = memory(CHUNK), *q = memory(CHUNK);

	set_open(&set, "raid6", raid6_shape, 10, DRIVE_BYTES);
	uint64_t stripes = set.geometry.stripe_count;
	for (unsigned round = 0; round < row->rounds; round++) {
		double began = seconds_now();
		for (uint64_t at = 0; at < set.layer->size_bytes; at += REQUEST)
			must(set.layer, IO_WRITE, at, data, REQUEST);
		row->own[round] = (double)stripes / (seconds_now() - began);
		began = seconds_now();
		for (uint64_t stripe = 0; stripe < stripes; stripe++) {
			uint8_t *from = data + stripe * STRIPE % REQUEST;
			void *vector[DRIVES_MAX];
			for (unsigned i = 0; i < 8; i++)
				vector[i] = from + i * CHUNK;
			vector[8] = p;
			vector[9] = q;
			pq_gen(DRIVES_MAX, CHUNK, vector);
			for (unsigned i = 0; i < DRIVES_MAX; i++)
				memcpy(set.mirror[i] + stripe * CHUNK, vector[i], CHUNK);
		}
		row->bound[round] = (double)stripes / (seconds_now() - began);
	}
	row->unit_bytes = STRIPE;
	set_close(&set);
	free(data);
	free(p);
	free(q);
}

/* 4 KiB random writes to RAID 5, 4 + 1.  Bound: two copies out, one XOR of three, two copies in. */
static void small_writes(struct row *row)
{
	enum { DRIVE_BYTES = 64 << 20, COUNT = 60000, SIZE = 4096 };
	struct bench_set set;
	uint8_t *data = memory(SIZE), *old = memory(SIZE), *parity = memory(SIZE);

	set_open(&set, "raid5", raid5_shape, 5, DRIVE_BYTES);
	for (unsigned round = 0; round < row->rounds; round++) {
		double began = seconds_now();
		for (unsigned i = 0; i < COUNT; i++)
			must(set.layer, IO_WRITE,
			     rng_below(&rng, set.layer->size_bytes / SIZE) * SIZE, data, SIZE);
		row->own[round] = COUNT / (seconds_now() - began);
		began = seconds_now();
		for (unsigned i = 0; i < COUNT; i++) {
			uint64_t at = rng_below(&rng, DRIVE_BYTES / SIZE) * SIZE;
			unsigned drive = (unsigned)rng_below(&rng, 5);
			uint8_t *place = set.mirror[drive] + at;
			uint8_t *other = set.mirror[(drive + 1) % 5] + at;
			void *vector[] = {old, parity, data, parity};
			memcpy(old, place, SIZE);
			memcpy(parity, other, SIZE);
			xor_gen(4, SIZE, vector);
			memcpy(place, data, SIZE);
			memcpy(other, parity, SIZE);
		}
		row->bound[round] = COUNT / (seconds_now() - began);
	}
	set_close(&set);
	free(data);
	free(old);
	free(parity);
}

/* 64 KiB random reads of chunks whose drive is gone, RAID 5, 4 + 1.  Bound: four copies out, their
 * XOR straight to the reader. */
static void degraded_reads(struct row *row)
{
	enum { DRIVE_BYTES = 64 << 20, COUNT = 8000, LOST = 2 };
	struct bench_set set;
	uint8_t *data = memory(CHUNK), *rows[4];

	for (unsigned i = 0; i < 4; i++)
		rows[i] = memory(CHUNK);
	set_open(&set, "raid5", raid5_shape, 5, DRIVE_BYTES);
	drive_set_failed(set.drives[LOST], true);
	for (unsigned round = 0; round < row->rounds; round++) {
		double began = seconds_now();
		for (unsigned done = 0; done < COUNT;) {
			uint64_t chunk = rng_below(&rng, set.layer->size_bytes / CHUNK);
			struct stripe_at at = stripe_at(&set.geometry, chunk / 4);
			if (stripe_place(&set.geometry, &at, chunk % 4).drive != LOST)
				continue;
			must(set.layer, IO_READ, chunk * CHUNK, data, CHUNK);
			done++;
		}
		row->own[round] = COUNT / (seconds_now() - began);
		began = seconds_now();
		for (unsigned i = 0; i < COUNT; i++) {
			uint64_t at = rng_below(&rng, DRIVE_BYTES / CHUNK) * CHUNK;
			void *vector[] = {rows[0], rows[1], rows[2], rows[3], data};
			for (unsigned j = 0; j < 4; j++)
				memcpy(rows[j], set.mirror[j] + at, CHUNK);
			xor_gen(5, CHUNK, vector);
		}
		row->bound[round] = COUNT / (seconds_now() - began);
	}
	row->unit_bytes = CHUNK;
	set_close(&set);
	free(data);
	for (unsigned i = 0; i < 4; i++)
		free(rows[i]);
}

static void unit_done(struct raid_unit *unit)
{
	if (unit->status)
		exit(4);
}

/* 1 GiB: RAID 5, 4 + 1, drives of 256 MiB; each of the four others is read, the fifth written four
 * times over.  Bound: four copies out, their XOR, one copy in. */
static void rebuild(struct row *row)
{
	enum { DRIVE_BYTES = 256 << 20, TIMES = 4 };
	struct bench_set set;
	uint8_t *rows[5];

	for (unsigned i = 0; i < 5; i++)
		rows[i] = memory(CHUNK);
	set_open(&set, "raid5", raid5_shape, 5, DRIVE_BYTES);
	uint64_t units = set.ops->unit_count(set.layer);
	for (unsigned round = 0; round < row->rounds; round++) {
		double began = seconds_now();
		for (unsigned slot = 0; slot < TIMES; slot++) {
			set.ops->slot_replace(set.layer, slot, set.drives[slot]);
			for (uint64_t i = 0; i < units; i++) {
				struct raid_unit unit = {.kind = RAID_UNIT_REBUILD,
							 .slot = slot,
							 .unit = i,
							 .done = unit_done};
				set.ops->unit_run(set.layer, &unit);
			}
			set.ops->slot_good(set.layer, slot);
		}
		row->own[round] = (double)units * TIMES / (seconds_now() - began);
		began = seconds_now();
		for (uint64_t i = 0; i < units * TIMES; i++) {
			uint64_t at = i % units * CHUNK;
			void *vector[] = {rows[0], rows[1], rows[2], rows[3], rows[4]};
			for (unsigned j = 0; j < 4; j++)
				memcpy(rows[j], set.mirror[j] + at, CHUNK);
			xor_gen(5, CHUNK, vector);
			memcpy(set.mirror[4] + at, rows[4], CHUNK);
		}
		row->bound[round] = (double)units * TIMES / (seconds_now() - began);
	}
	row->unit_bytes = CHUNK;
	set_close(&set);
	for (unsigned i = 0; i < 5; i++)
		free(rows[i]);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 7;
	struct row rows[] = {
	    {.name = "raid6-full-stripe", .work = "RAID 6 8+2, full-stripe writes of 4 MiB"},
	    {.name = "raid5-small-write", .work = "RAID 5 4+1, 4 KiB random writes"},
	    {.name = "raid5-degraded-read", .work = "RAID 5 4+1, 64 KiB reads of a lost drive"},
	    {.name = "raid5-rebuild", .work = "RAID 5 4+1, rebuild of 1 GiB"},
	};
	void (*const run[])(struct row * row) = {full_stripes, small_writes, degraded_reads,
						 rebuild};

	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: set_speed [ROUNDS], 1 to %d\n", ROUNDS_MAX);
		return 2;
	}
	if (loop_new_virtual(0, &loop))
		return 4;
	rng_init(&rng, 1, 0);
	printf("[\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rows[i].rounds = (unsigned)rounds;
		run[i](&rows[i]);
		row_print(&rows[i], i + 1 == ARRAY_SIZE(rows));
	}
	printf("]\n");
	loop_free(loop);
	return 0;
}
