/* SPDX-License-Identifier: MIT
 *
 * What the drive models do, as tables; reports, never gates.
 *
 *   drive_bench curves     random 32 KiB reads of every disk over the queue's depth, by scheduler,
 * in virtual time: IOPS, mean response, mean access; sequential rates drive_bench late       how
 * late completions leave, on the real loop (SECONDS of load) drive_bench checksums  what a 4 KiB
 * read and write cost with and without, on memory drives drive_bench path       the same without a
 * model, faults or checksums: the plain path
 *
 * usage: drive_bench curves|late|checksums|path [--json] [--seconds N]
 */
#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hist.h"
#include "base/rng.h"
#include "target/drive/drive.h"
#include "target/drive/model.h"

enum { DEPTH_MAX = 64, RANDOM_BYTES = 32 * 1024, STREAM_BYTES = 256 * 1024, SEED = 20261130 };

struct load {
	struct loop *loop;
	struct io_layer *target;
	struct rng rng;
	uint64_t span_bytes, length_bytes, at_bytes;
	enum io_op op;
	bool sequential;
	uint64_t left, done, until_ns;
	struct io ios[DEPTH_MAX];
	struct iovec iovs[DEPTH_MAX];
	uint8_t *memory;
};

static void load_next(struct load *load, struct io *io);

static void load_done(struct io *io)
{
	struct load *load = io->owner;
	assert(io->status == 0);
	load->done++;
	load_next(load, io);
}

static void load_next(struct load *load, struct io *io)
{
	if (load->left == 0 || (load->until_ns && loop_now_ns(load->loop) >= load->until_ns))
		return;
	load->left--;
	struct iovec *iov = &load->iovs[io - load->ios];
	uint64_t at =
	    rng_below(&load->rng, load->span_bytes / load->length_bytes) * load->length_bytes;
	if (load->sequential) {
		at = load->at_bytes;
		load->at_bytes += load->length_bytes;
	}
	*iov = (struct iovec){load->memory, load->length_bytes};
	*io = (struct io){
	    .op = load->op,
	    .offset_bytes = at,
	    .length_bytes = load->length_bytes,
	    .iov = iov,
	    .iov_count = 1,
	    .done = load_done,
	    .owner = load,
	};
	io_submit(load->target, io);
}

/* Seconds by the loop's clock. */
static double load_run(struct load *load, unsigned depth, uint64_t count)
{
	uint64_t from_ns = loop_now_ns(load->loop);

	rng_init(&load->rng, SEED, depth);
	load->left = count;
	load->done = 0;
	for (unsigned i = 0; i < depth; i++)
		load_next(load, &load->ios[i]);
	while (load->done < count && (!load->until_ns || loop_now_ns(load->loop) < load->until_ns))
		(void)loop_turn(load->loop, true);
	return (double)(loop_now_ns(load->loop) - from_ns) / 1e9;
}

static struct drive *open_drive(struct loop *loop, const struct drive_model *model,
				const char *scheduler, const struct store_ops *store,
				uint64_t size_bytes, bool checksums)
{
	struct drive *drive = NULL;
	struct drive_config config = {
	    .name = "bench",
	    .model = model,
	    .size_bytes = size_bytes,
	    .timing = scheduler ? DRIVE_TIMING_MODELLED : DRIVE_TIMING_NONE,
	    .store = store,
	    .scheduler = scheduler ? drive_scheduler_find(scheduler) : NULL,
	    .checksums = checksums,
	};
	struct err err = {0};
	if (drive_open(loop, &config, &drive, &err)) {
		fprintf(stderr, "drive_bench: %s\n", err.what);
		exit(4);
	}
	return drive;
}

/* ---- curves ---- */

static json_t *curve_point(const struct drive_model *model, const char *scheduler, unsigned depth,
			   uint8_t *memory)
{
	struct load load = {
	    .span_bytes = model->size_bytes,
	    .length_bytes = RANDOM_BYTES,
	    .op = IO_READ,
	    .memory = memory,
	};
	if (loop_new_virtual(0, &load.loop))
		exit(4);
	struct drive *drive = open_drive(load.loop, model, scheduler, &store_discard_ops, 0, false);
	load.target = &drive->layer;
	double seconds = load_run(&load, depth, 10000);
	const struct drive_counters *counters = &drive->counters;
	double response_ms = (double)counters->response_ns / (double)counters->completed / 1e6;
	double service_ms = (double)counters->busy_ns / (double)counters->served / 1e6;
	double iops = (double)load.done / seconds;
	drive_close(drive);
	loop_free(load.loop);
	return json_pack("{s:s, s:s, s:i, s:f, s:f, s:f}", "model", model->name, "scheduler",
			 scheduler, "depth", (int)depth, "iops", iops, "response_ms", response_ms,
			 "service_ms", service_ms);
}

static json_t *stream_point(const struct drive_model *model, uint64_t at_bytes, const char *where,
			    uint8_t *memory)
{
	struct load load = {
	    .span_bytes = model->size_bytes,
	    .length_bytes = STREAM_BYTES,
	    .op = IO_READ,
	    .sequential = true,
	    .at_bytes = at_bytes / STREAM_BYTES * STREAM_BYTES,
	    .memory = memory,
	};
	if (loop_new_virtual(0, &load.loop))
		exit(4);
	struct drive *drive = open_drive(load.loop, model, "satf", &store_discard_ops, 0, false);
	load.target = &drive->layer;
	double seconds = load_run(&load, 1, 1000);
	double rate = (double)load.done * STREAM_BYTES / seconds / 1e6;
	drive_close(drive);
	loop_free(load.loop);
	return json_pack("{s:s, s:s, s:f}", "model", model->name, "where", where, "read_mb_s",
			 rate);
}

static json_t *curves(uint8_t *memory)
{
	static const char *const schedulers[] = {"satf", "elevator", "fifo"};
	json_t *random = json_array(), *streams = json_array();

	for (size_t m = 0; drive_model_names[m]; m++) {
		const struct drive_model *model = drive_model_find(drive_model_names[m]);
		for (size_t s = 0; s < (model->rpm ? ARRAY_SIZE(schedulers) : 1); s++)
			for (unsigned depth = 1; depth <= DEPTH_MAX; depth *= 2)
				json_array_append_new(
				    random, curve_point(model, schedulers[s], depth, memory));
		uint64_t size = model->size_bytes;
		json_array_append_new(streams, stream_point(model, 0, "outer", memory));
		json_array_append_new(streams, stream_point(model, size / 2, "half", memory));
		json_array_append_new(
		    streams, stream_point(model, size - 1024 * STREAM_BYTES, "inner", memory));
	}
	return json_pack("{s:o, s:o}", "random_read_32k", random, "sequential_read_256k", streams);
}

static void print_curves(const json_t *result)
{
	const char *line = "";

	printf("random 32 KiB reads, IOPS (mean response in ms)\n%-16s %-9s", "drive", "order");
	for (unsigned depth = 1; depth <= DEPTH_MAX; depth *= 2)
		printf("      depth %-3u", depth);
	const json_t *points = json_object_get(result, "random_read_32k");
	for (size_t i = 0; i < json_array_size(points); i++) {
		const json_t *point = json_array_get(points, i);
		const char *scheduler = json_string_value(json_object_get(point, "scheduler"));
		if (json_integer_value(json_object_get(point, "depth")) == 1)
			printf("\n%-16s %-9s", json_string_value(json_object_get(point, "model")),
			       scheduler);
		printf(" %6.0f (%5.1f)", json_real_value(json_object_get(point, "iops")),
		       json_real_value(json_object_get(point, "response_ms")));
	}
	printf("\n\nsequential 256 KiB reads, one at a time, MB/s: outer, half the bytes, inner");
	const json_t *streams = json_object_get(result, "sequential_read_256k");
	for (size_t i = 0; i < json_array_size(streams); i++) {
		const json_t *point = json_array_get(streams, i);
		const char *model = json_string_value(json_object_get(point, "model"));
		if (strcmp(model, line) != 0)
			printf("\n%-16s", model);
		line = model;
		printf(" %6.0f", json_real_value(json_object_get(point, "read_mb_s")));
	}
	printf("\n");
}

/* ---- lateness on the real loop ---- */

struct lateness {
	struct loop *loop;
	struct hist *hist;
};

static void note_late(void *arg, const struct drive_command *command)
{
	struct lateness *lateness = arg;
	hist_record(lateness->hist, loop_now_ns(lateness->loop) - command->due_ns);
}

static json_t *late_of(const char *name, unsigned depth, double seconds, uint8_t *memory)
{
	const struct drive_model *model = drive_model_find(name);
	struct load load = {
	    .span_bytes = model->size_bytes,
	    .length_bytes = 4096,
	    .op = IO_READ,
	    .memory = memory,
	};
	struct hist *hist = malloc(sizeof *hist);
	if (!hist || loop_new_real(&load.loop))
		exit(4);
	hist_reset(hist);
	struct drive *drive = open_drive(load.loop, model, "satf", &store_discard_ops, 0, false);
	struct lateness lateness = {.loop = load.loop, .hist = hist};
	drive_model_watch(drive->model, note_late, &lateness);
	load.target = &drive->layer;
	load.until_ns = loop_now_ns(load.loop) + (uint64_t)(seconds * 1e9);
	(void)load_run(&load, depth, UINT64_MAX);
	drive_model_watch(drive->model, NULL, NULL);
	json_t *result = json_pack("{s:s, s:i, s:I, s:f, s:f, s:f, s:f}", "model", name, "depth",
				   (int)depth, "completions", (json_int_t)hist->count, "p50_us",
				   (double)hist_quantile_ns(hist, 0.5) / 1e3, "p99_us",
				   (double)hist_quantile_ns(hist, 0.99) / 1e3, "p999_us",
				   (double)hist_quantile_ns(hist, 0.999) / 1e3, "max_us",
				   (double)hist->max_ns / 1e3);
	drive_close(drive);
	loop_free(load.loop);
	free(hist);
	return result;
}

static json_t *late(double seconds, uint8_t *memory)
{
	json_t *rows = json_array();
	json_array_append_new(rows, late_of("sas-15k-600", 1, seconds, memory));
	json_array_append_new(rows, late_of("sas-15k-600", 32, seconds, memory));
	json_array_append_new(rows, late_of("ssd-sas-200", 1, seconds, memory));
	json_array_append_new(rows, late_of("ssd-sas-200", 8, seconds, memory));
	return json_pack("{s:o}", "late", rows);
}

static void print_late(const json_t *result)
{
	printf("completions after their modelled instant, us\n"
	       "%-16s %5s %12s %8s %8s %8s %8s\n",
	       "drive", "depth", "completions", "p50", "p99", "p99.9", "max");
	const json_t *rows = json_object_get(result, "late");
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		printf("%-16s %5d %12lld %8.1f %8.1f %8.1f %8.1f\n",
		       json_string_value(json_object_get(row, "model")),
		       (int)json_integer_value(json_object_get(row, "depth")),
		       (long long)json_integer_value(json_object_get(row, "completions")),
		       json_real_value(json_object_get(row, "p50_us")),
		       json_real_value(json_object_get(row, "p99_us")),
		       json_real_value(json_object_get(row, "p999_us")),
		       json_real_value(json_object_get(row, "max_us")));
	}
}

/* ---- cost of a request ---- */

/* Random 4 KiB requests over 64 MiB that were written: beyond the second-level cache. */
static double cost_ns(enum io_op op, bool checksums, uint8_t *memory)
{
	const uint64_t span = 64 * MIB;
	struct load load = {
	    .span_bytes = span,
	    .length_bytes = 64 * KIB,
	    .op = IO_WRITE,
	    .sequential = true,
	    .memory = memory,
	};
	if (loop_new_real(&load.loop))
		exit(4);
	struct drive *drive = open_drive(load.loop, drive_model_find("sas-15k-600"), NULL,
					 &store_memory_ops, span, checksums);
	load.target = &drive->layer;
	(void)load_run(&load, 1, span / load.length_bytes);
	load.sequential = false;
	load.op = op;
	load.length_bytes = 4096;
	double best = 1e18;
	/* The queue is a chain: each completion submits the next from within. */
	for (unsigned round = 0; round < 7; round++) {
		double sum = 0;
		for (unsigned part = 0; part < 2000; part++)
			sum += load_run(&load, 1, 100);
		best = MIN_OF(best, sum * 1e9 / (2000 * 100));
	}
	drive_close(drive);
	loop_free(load.loop);
	return best;
}

static json_t *cost(bool with_checksums, uint8_t *memory)
{
	json_t *result = json_pack("{s:f, s:f}", "read_4k_ns", cost_ns(IO_READ, false, memory),
				   "write_4k_ns", cost_ns(IO_WRITE, false, memory));
	if (with_checksums) {
		json_object_set_new(result, "read_4k_checksums_ns",
				    json_real(cost_ns(IO_READ, true, memory)));
		json_object_set_new(result, "write_4k_checksums_ns",
				    json_real(cost_ns(IO_WRITE, true, memory)));
	}
	return result;
}

static void print_cost(const json_t *result)
{
	static const char *const keys[] = {"read_4k_ns", "write_4k_ns", "read_4k_checksums_ns",
					   "write_4k_checksums_ns"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const json_t *value = json_object_get(result, keys[i]);
		if (value)
			printf("%-24s %8.1f\n", keys[i], json_real_value(value));
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool json = false;
	double seconds = 5;
	json_t *result = NULL;
	void (*print)(const json_t *result) = NULL;
	uint8_t *memory = calloc(1, STREAM_BYTES);

	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--json"))
			json = true;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = strtod(argv[++i], NULL);
	}
	if (!memory)
		return 4;
	if (!strcmp(what, "curves")) {
		result = curves(memory);
		print = print_curves;
	} else if (!strcmp(what, "late")) {
		result = late(seconds, memory);
		print = print_late;
	} else if (!strcmp(what, "checksums") || !strcmp(what, "path")) {
		result = cost(!strcmp(what, "checksums"), memory);
		print = print_cost;
	} else {
		fprintf(stderr,
			"usage: drive_bench curves|late|checksums|path [--json] [--seconds N]\n");
		free(memory);
		return 2;
	}
	if (json)
		json_dumpf(result, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	else
		print(result);
	if (json)
		printf("\n");
	json_decref(result);
	free(memory);
	return 0;
}
