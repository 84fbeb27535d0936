/* SPDX-License-Identifier: MIT
 *
 * The modelled disk against its data sheet: the seek curve's mean by the manuals' definition, the
 * mean latency of random reads, the sustained rate of each zone, and what a queue gains, against an
 * estimate made without the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/drive/drive.h"
#include "target/drive/drive_core.h"
#include "target/drive/model.h"

enum { DEPTH_MAX = 64, READ_BYTES = 32 * 1024, STREAM_BYTES = 64 * 1024 };
#define SEED 20261130

/* A layer that answers at once: only times matter here. */
static void null_submit(struct io_layer *layer, struct io *io)
{
	io_complete(io, 0);
}
static const struct io_layer_ops null_ops = {.name = "null", .submit = null_submit};

struct world {
	struct loop *loop;
	struct io_layer null;
	struct io_layer *model;
	struct rng rng;
	uint64_t size_bytes, at_bytes;
	bool sequential;
	enum io_op op;
	uint64_t length_bytes;
	uint64_t left, done;
	double latency_ns; /* sum */
	uint64_t begun_ns[DEPTH_MAX];
	struct io ios[DEPTH_MAX];
};

static void next_request(struct world *world, struct io *io);

static void request_done(struct io *io)
{
	struct world *world = io->owner;
	world->latency_ns += (double)(loop_now_ns(world->loop) - world->begun_ns[io - world->ios]);
	world->done++;
	next_request(world, io);
}

static void next_request(struct world *world, struct io *io)
{
	if (world->left == 0)
		return;
	world->left--;
	uint64_t slots = world->size_bytes / world->length_bytes;
	uint64_t at = rng_below(&world->rng, slots) * world->length_bytes;
	if (world->sequential) {
		at = world->at_bytes;
		world->at_bytes += world->length_bytes;
	}
	*io = (struct io){
	    .op = world->op,
	    .offset_bytes = at,
	    .length_bytes = world->length_bytes,
	    .done = request_done,
	    .owner = world,
	};
	world->begun_ns[io - world->ios] = loop_now_ns(world->loop);
	io_submit(world->model, io);
}

static void world_open(struct world *world, const struct drive_model *model, const char *scheduler,
		       struct drive_counters *counters)
{
	*world = (struct world){
	    .null = {.ops = &null_ops, .size_bytes = model->size_bytes},
	    .size_bytes = model->size_bytes,
	    .op = IO_READ,
	    .length_bytes = READ_BYTES,
	};
	rng_init(&world->rng, SEED, rng_stream_of(model->name));
	assert_int_equal(loop_new_virtual(0, &world->loop), 0);
	assert_int_equal(drive_model_open(world->loop, model, drive_scheduler_find(scheduler),
					  &world->null, &world->model),
			 0);
	if (counters)
		drive_model_count(world->model, counters);
}

static void world_close(struct world *world)
{
	world->model->ops->free(world->model);
	loop_free(world->loop);
}

/* COUNT requests, DEPTH at a time; the seconds that took. */
static double run(struct world *world, unsigned depth, uint64_t count)
{
	uint64_t from_ns = loop_now_ns(world->loop);
	world->left = count;
	world->done = 0;
	world->latency_ns = 0;
	for (unsigned i = 0; i < depth; i++)
		next_request(world, &world->ios[i]);
	assert_int_equal(loop_run(world->loop), 0);
	assert_int_equal(world->done, count);
	return (double)(loop_now_ns(world->loop) - from_ns) / 1e9;
}

#define FOR_EACH_DISK(model)                                                                      \
	for (size_t each = 0; drive_model_names[each]; each++)                                    \
		for (const struct drive_model *model = drive_model_find(drive_model_names[each]); \
		     model && model->rpm; model = NULL)

static void assert_close(const char *name, const char *what, double value, double expected,
			 double share)
{
	if (fabs(value - expected) > share * expected)
		fail_msg("%s: %s is %.4g, expected %.4g (within %.2g %%)", name, what, value,
			 expected, share * 100);
}

/* ---- the seek curve ---- */

/* The definition of the manuals: sum of (max + 1 - n) T(n) over sum of (max + 1 - n). */
static void check_curve(const char *name, const struct seek_figures *figures, uint64_t cylinders)
{
	static struct seek_curve curve;
	uint64_t max = cylinders - 1, before = 0;
	double sum = 0, weight = 0;

	assert_int_equal(seek_curve_init(&curve, figures, cylinders), 0);
	assert_int_equal(seek_curve_ns(&curve, 0), 0);
	assert_int_equal(seek_curve_ns(&curve, 1), figures->track_ns);
	assert_close(name, "full stroke", (double)seek_curve_ns(&curve, max),
		     (double)figures->full_ns, 0.001);
	for (uint64_t n = 1; n <= max; n++) {
		uint64_t ns = seek_curve_ns(&curve, n);
		assert_true(ns >= before);
		before = ns;
		sum += (double)(max + 1 - n) * (double)ns;
		weight += (double)(max + 1 - n);
	}
	assert_close(name, "average seek", sum / weight, (double)figures->average_ns, 0.002);
}

static void seek_curves(void **state)
{
	struct seek_curve curve;

	FOR_EACH_DISK(model)
	{
		struct disk_geometry geometry;
		disk_geometry_init(&geometry, model, model->size_bytes);
		check_curve(model->name, &model->seek_read, geometry.cylinders);
		check_curve(model->name, &model->seek_write, geometry.cylinders);
	}
	/* No curve rises through these. */
	assert_true(seek_curve_init(&curve, &(struct seek_figures){5, 5, 9}, 1000) < 0);
	assert_true(seek_curve_init(&curve, &(struct seek_figures){1, 9, 9}, 1000) < 0);
	assert_true(seek_curve_init(&curve, &(struct seek_figures){1, 5, 9}, 1 << 24) < 0);
	assert_int_equal(seek_curve_init(&curve, &(struct seek_figures){1, 5, 9}, 1), 0);
}

/* ---- geometry ---- */

static void check_places(const struct drive_model *model, uint64_t size)
{
	struct disk_geometry geometry;
	struct rng rng;

	disk_geometry_init(&geometry, model, size);
	rng_init(&rng, SEED, size);
	struct disk_place end = disk_place_behind(&geometry, size);
	assert_true(end.cylinder < geometry.cylinders);
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t byte = rng_below(&rng, size / 512) * 512;
		struct disk_place at = disk_place_of(&geometry, byte);
		struct disk_place behind = disk_place_behind(&geometry, byte + 512);
		assert_int_equal(at.track, behind.track);
		assert_true(behind.pass_ns > at.pass_ns && behind.pass_ns <= end.pass_ns);
		/* A pass is rounded down: it may stand for a byte or two less. */
		assert_in_range(disk_byte_at(&geometry, at.pass_ns), byte > 2 ? byte - 2 : 0, byte);
		if (byte + 512 < size) {
			struct disk_place next = disk_place_of(&geometry, byte + 512);
			uint64_t gap = next.pass_ns - behind.pass_ns;
			assert_true(gap == (next.track == at.track ? 0 : geometry.switch_ns));
		}
	}
}

static void places(void **state)
{
	FOR_EACH_DISK(model)
	{
		check_places(model, model->size_bytes);
		check_places(model, 64 * MIB);
		check_places(model, 16 * MIB + 512);
		check_places(model, 512);
	}
}

/* ---- random reads at depth 1 ---- */

static void random_latency(void **state)
{
	FOR_EACH_DISK(model)
	{
		struct world world;
		world_open(&world, model, "satf", NULL);
		run(&world, 1, 20000);
		/* The mean track is as long as the mean rate and its switch make it. */
		double revolution = 60e9 / model->rpm;
		double rate = (double)(model->outer_bytes_per_s + model->inner_bytes_per_s) / 2;
		double expected = (double)model->seek_read.average_ns + revolution / 2 +
				  READ_BYTES * 1e9 / rate + (double)model->overhead_ns;
		assert_close(model->name, "mean random read in ns",
			     world.latency_ns / (double)world.done, expected, 0.03);
		world_close(&world);
	}
}

/* ---- sequential transfer ---- */

static double zone_rate(const struct drive_model *model, unsigned zone)
{
	double outer = (double)model->outer_bytes_per_s, inner = (double)model->inner_bytes_per_s;
	return outer + (inner - outer) * zone / (DISK_ZONES - 1);
}

/* From the middle of the zone, so that the stretch does not leave it. */
static double stream_rate(const struct drive_model *model, unsigned zone, enum io_op op,
			  unsigned depth, uint64_t bytes)
{
	struct disk_geometry geometry;
	struct world world;

	disk_geometry_init(&geometry, model, model->size_bytes);
	assert_int_equal(geometry.zone_count, DISK_ZONES);
	uint64_t lo = geometry.zones[zone].first_byte;
	uint64_t hi =
	    zone + 1 < DISK_ZONES ? geometry.zones[zone + 1].first_byte : model->size_bytes;
	world_open(&world, model, "satf", NULL);
	world.sequential = true;
	world.op = op;
	world.length_bytes = bytes;
	world.at_bytes = (lo + hi) / 2 / bytes * bytes;
	uint64_t count = 256 * MIB / bytes;
	double seconds = run(&world, depth, count);
	world_close(&world);
	return (double)(count * bytes) / seconds;
}

static void sustained_rates(void **state)
{
	const unsigned zones[] = {0, DISK_ZONES / 2, DISK_ZONES - 1};

	FOR_EACH_DISK(model)
	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		double expected = zone_rate(model, zones[i]);
		/* One reader keeps the drive busy through its read-ahead; ... */
		assert_close(model->name, "read rate, depth 1, in B/s",
			     stream_rate(model, zones[i], IO_READ, 1, 4 * STREAM_BYTES), expected,
			     0.03);
		assert_close(model->name, "read rate, depth 4, in B/s",
			     stream_rate(model, zones[i], IO_READ, 4, STREAM_BYTES), expected,
			     0.03);
		/* ... a writer needs a queue, ... */
		assert_close(model->name, "write rate, depth 4, in B/s",
			     stream_rate(model, zones[i], IO_WRITE, 4, STREAM_BYTES), expected,
			     0.03);
	}
}

/* ... for without one it misses a revolution each time: the write cache is off. */
static void lone_writer(void **state)
{
	const struct drive_model *model = drive_model_find("sas-15k-600");
	double rate = stream_rate(model, 0, IO_WRITE, 1, STREAM_BYTES);
	double each = 60.0 / model->rpm + STREAM_BYTES / zone_rate(model, 0);
	assert_close(model->name, "write rate, depth 1, in B/s", rate, STREAM_BYTES / each, 0.1);
}

/* ---- what a queue gains ---- */

/* Made without the model: an arm on [0, 1] whose places are as dense as tracks are long, an own
 * curve through the data sheet's figures, angles at random.  N candidates; the nearest in time is
 * served and another takes its place.  Mean of the access times. */
static double estimated_access_ns(const struct drive_model *model, unsigned n, bool fresh)
{
	double inner = (double)model->inner_bytes_per_s / (double)model->outer_bytes_per_s;
	double track = (double)model->seek_read.track_ns, full = (double)model->seek_read.full_ns;
	double mean = ((double)model->seek_read.average_ns - track) / (full - track);
	double power = 0, revolution = 60e9 / model->rpm, at = 0.5, now = 0, sum = 0;
	double place[DEPTH_MAX] = {0}, angle[DEPTH_MAX] = {0};
	struct rng rng;
	enum { ROUNDS = 20000 };

	while (2 / ((power + 1) * (power + 2)) > mean)
		power += 1e-5;
	rng_init(&rng, SEED, n);
	for (unsigned i = 0; i < n; i++)
		place[i] = -1;
	for (unsigned round = 0; round < ROUNDS; round++) {
		double best = INFINITY;
		unsigned picked = 0;
		for (unsigned i = 0; i < n; i++) {
			while (fresh || place[i] < 0) {
				place[i] = rng_unit(&rng);
				angle[i] = rng_unit(&rng) * revolution;
				if (rng_unit(&rng) < 1 - (1 - inner) * place[i])
					break;
				place[i] = -1;
			}
			double seek = track + (full - track) * pow(fabs(place[i] - at), power);
			double turn = fmod(angle[i] - now - seek, revolution);
			double access = seek + (turn < 0 ? turn + revolution : turn);
			if (access < best) {
				best = access;
				picked = i;
			}
		}
		sum += best;
		now = fmod(now + best + READ_BYTES * 1e9 / (double)model->outer_bytes_per_s,
			   revolution);
		at = place[picked];
		place[picked] = -1;
	}
	return sum / ROUNDS;
}

static double measured_access_ns(const struct drive_model *model, const char *scheduler,
				 unsigned depth, struct drive_counters *counters)
{
	struct world world;
	enum { COUNT = 20000 };

	*counters = (struct drive_counters){0};
	world_open(&world, model, scheduler, counters);
	run(&world, depth, COUNT);
	world_close(&world);
	double rate = (double)(model->outer_bytes_per_s + model->inner_bytes_per_s) / 2;
	return (double)counters->busy_ns / (double)counters->served - READ_BYTES * 1e9 / rate;
}

static void queue_gains(void **state)
{
	const char *const names[] = {"sas-15k-600", "sas-7k2-1000"};

	for (size_t m = 0; m < ARRAY_SIZE(names); m++) {
		const struct drive_model *model = drive_model_find(names[m]);
		struct drive_counters counters;
		double before = INFINITY;
		for (unsigned depth = 1; depth <= DEPTH_MAX; depth *= 2) {
			char what[64];
			snprintf(what, sizeof what, "access at depth %u in ns", depth);
			double access = measured_access_ns(model, "satf", depth, &counters);
			/* The request that follows the one just ended is not there yet when the
			 * drive chooses.  Those passed over are worse than new ones: so many fresh
			 * candidates are a lower bound, the survivors' simulation is the
			 * expectation. */
			unsigned choices = MAX_OF(depth - 1, 1u);
			assert_close(model->name, what, access,
				     estimated_access_ns(model, choices, false), 0.06);
			assert_true(access > 0.94 * estimated_access_ns(model, choices, true));
			assert_true(depth == 2 || access < before);
			before = access;
		}
		double elevator = measured_access_ns(model, "elevator", 32, &counters);
		double satf = measured_access_ns(model, "satf", 32, &counters);
		double fifo = measured_access_ns(model, "fifo", 32, &counters);
		assert_true(satf < 0.8 * elevator && elevator < 0.85 * fifo);
		assert_close(model->name, "access in order of arrival in ns", fifo,
			     (double)model->seek_read.average_ns + 30e9 / model->rpm, 0.03);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(seek_curves),    cmocka_unit_test(places),
	    cmocka_unit_test(random_latency), cmocka_unit_test(sustained_rates),
	    cmocka_unit_test(lone_writer),    cmocka_unit_test(queue_gains),
	};
	return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
