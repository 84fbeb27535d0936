/* SPDX-License-Identifier: MIT
 *
 * Closed loop: every I/O that ends is sent again to another place.  All memory is laid out at
 * open; the data written is the same random block over and over.
 */
#include "harness/workload/raw.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/paced.h"
#include "harness/workload/raw_mix.h"
#include "harness/workload/raw_sweep.h"

struct raw_io {
	struct io io;
	struct iovec iov;
	struct raw_device *device;
	struct stream *stream;
	uint64_t submitted_ns;
	struct raw_io *next; /* waiting to be sent */
};

struct raw_device {
	struct raw *raw;
	struct io_layer *layer;
	struct stream *read, *write;
	struct rng rng;
	struct raw_place place;
	uint64_t in_flight;
	struct raw_io *ready; /* to be sent by the pump */
	bool pumping;
	bool gone; /* -ENODEV: nothing more is sent, a closed loop would spin */
};

struct raw {
	struct workload base;
	struct workload_env env;
	struct raw_config config;
	struct raw_mix mix;
	struct raw_sweep sweep;
	uint64_t depth, depth_max; /* of each volume: as it is now, and at most */
	struct raw_device *devices;
	struct raw_io *ios;
	uint8_t *memory;
	uint64_t in_flight;
	char summary[240];
	bool stopping;
	workload_fn drained;
	void *drained_arg;
};

static void pump(struct raw_device *device, uint64_t now_ns);

static void io_ended(struct io *io)
{
	struct raw_io *rio = io->owner;
	struct raw_device *device = rio->device;
	struct raw *raw = device->raw;
	uint64_t now_ns = loop_now_ns(raw->env.loop);

	raw->in_flight--;
	device->in_flight--;
	raw_sweep_count(&raw->sweep, io->op == IO_WRITE, now_ns - rio->submitted_ns,
			io->length_bytes, io->status);
	stream_account(rio->stream, rio->submitted_ns, rio->submitted_ns, now_ns, io->length_bytes,
		       io->status);
	if (io->status == -ENODEV)
		device->gone = true;
	rio->next = device->ready;
	device->ready = rio;
	if (!raw->stopping && !device->gone)
		pump(device, now_ns);
	if (raw->stopping && raw->in_flight == 0 && raw->drained) {
		workload_fn drained = raw->drained;

		raw->drained = NULL;
		drained(raw->drained_arg, 0);
	}
}

static void send(struct raw_device *device, struct raw_io *rio, uint64_t now_ns)
{
	struct raw *raw = device->raw;
	bool read = raw_mix_reads(&raw->mix, &device->rng);
	uint64_t bytes = raw_mix_bytes(&raw->mix, &device->rng);

	rio->io.op = read ? IO_READ : IO_WRITE;
	rio->io.flags = read ? IO_BLIND : 0;
	rio->io.offset_bytes = raw_mix_offset(&raw->mix, &device->rng, &device->place, bytes);
	rio->io.length_bytes = bytes;
	rio->iov.iov_len = bytes;
	rio->stream = read ? device->read : device->write;
	rio->submitted_ns = now_ns;
	stream_begin(rio->stream, rio->submitted_ns);
	raw->in_flight++;
	device->in_flight++;
	io_submit(device->layer, &rio->io);
}

/* One that has ended is sent again at once: the clock need not be read in between.  Ends from
 * within io_submit, of layers that do that, leave the work to the outer call, with time of its own.
 */
static void pump(struct raw_device *device, uint64_t now_ns)
{
	if (device->pumping)
		return;
	device->pumping = true;
	while (device->ready && device->in_flight < device->raw->depth && !device->raw->stopping &&
	       !device->gone) {
		struct raw_io *rio = device->ready;

		device->ready = rio->next;
		send(device, rio, now_ns);
		if (device->ready)
			now_ns = loop_now_ns(device->raw->env.loop);
	}
	device->pumping = false;
}

static struct stream *add_stream(struct raw *raw, const struct workload_device *device, bool write)
{
	struct stream *stream = &raw->base.streams[raw->base.stream_count++];

	*stream = (struct stream){
	    .name = write ? "write" : "read",
	    .host = device->host,
	    .volume = device->volume,
	    .write = write,
	};
	return stream;
}

static void free_raw(struct workload *workload)
{
	struct raw *raw = container_of(workload, struct raw, base);

	raw_sweep_close(&raw->sweep);
	free(raw->base.streams);
	free(raw->devices);
	free(raw->ios);
	free(raw->memory);
	free(raw);
}

static int allocate(struct raw *raw)
{
	uint64_t depth = raw->depth_max, count = raw->env.device_count;
	uint64_t each = round_up_u64(raw->mix.largest_bytes, 4096);
	void *memory;
	struct rng rng;

	raw->base.streams = calloc(2 * count, sizeof *raw->base.streams);
	raw->devices = calloc(count, sizeof *raw->devices);
	raw->ios = calloc(count * depth, sizeof *raw->ios);
	if (!raw->base.streams || !raw->devices || !raw->ios)
		return -ENOMEM;
	if (posix_memalign(&memory, 4096, count * depth * each) != 0)
		return -ENOMEM;
	raw->memory = memory;
	/* Random bytes, so that no array compresses or deduplicates within a block. */
	rng_init(&rng, raw->env.seed, rng_stream_of("raw-data"));
	rng_fill(&rng, memory, count * depth * each);
	return 0;
}

static int open_device(struct raw *raw, unsigned index, struct err *err)
{
	const struct workload_device *from = &raw->env.devices[index];
	struct raw_device *device = &raw->devices[index];
	uint64_t span = from->layer->size_bytes;
	uint64_t depth = raw->depth_max, each = round_up_u64(raw->mix.largest_bytes, 4096);
	int r = raw_check(&raw->config, from->volume, span, from->block_bytes, err);

	if (r < 0)
		return r;
	if (raw->config.span_bytes)
		span = MIN_OF(span, raw->config.span_bytes);
	device->raw = raw;
	device->layer = from->layer;
	device->place.span_bytes = span / raw->mix.unit_bytes * raw->mix.unit_bytes;
	rng_init(&device->rng, raw->env.seed, rng_stream_of(from->volume) + index);
	if (raw->config.op != RAW_WRITE)
		device->read = add_stream(raw, from, false);
	if (raw->config.op != RAW_READ)
		device->write = add_stream(raw, from, true);
	for (uint64_t i = 0; i < depth; i++) {
		struct raw_io *rio = &raw->ios[index * depth + i];

		rio->device = device;
		rio->iov = (struct iovec){raw->memory + (index * depth + i) * each, 0};
		rio->io = (struct io){
		    .iov = &rio->iov,
		    .iov_count = 1,
		    .done = io_ended,
		    .owner = rio,
		};
		rio->next = device->ready;
		device->ready = rio;
	}
	return 0;
}

static void stepped(void *arg, double level)
{
	struct raw *raw = arg;

	raw->depth = (uint64_t)level;
	for (unsigned i = 0; i < raw->env.device_count; i++)
		pump(&raw->devices[i], loop_now_ns(raw->env.loop));
}

static void sweep_ended(void *arg)
{
	struct raw *raw = arg;

	raw->env.ended(raw->env.arg);
}

static int open_sweep(struct raw *raw)
{
	int r = raw_sweep_open(&raw->sweep, raw->env.loop, &raw->config);

	raw->depth = raw->depth_max = raw->config.queue_depth;
	if (r < 0 || !raw_sweep_is_on(&raw->sweep))
		return r;
	raw->sweep.stepped = stepped;
	raw->sweep.ended = sweep_ended;
	raw->sweep.arg = raw;
	raw->sweep.progress = &raw->base.progress;
	raw->base.ends_itself = true;
	raw->depth = (uint64_t)raw_sweep_first(&raw->sweep);
	raw->depth_max = (uint64_t)raw_sweep_most(&raw->sweep);
	return 0;
}

static void summarize(struct raw *raw)
{
	char what[160];

	raw_describe(&raw->config, what, sizeof what);
	if (raw_sweep_is_on(&raw->sweep))
		snprintf(raw->summary, sizeof raw->summary,
			 "raw: %s; %u steps of up to %llu in flight a volume", what,
			 raw->sweep.count, (unsigned long long)raw->depth_max);
	else
		snprintf(raw->summary, sizeof raw->summary, "raw: %s; %llu in flight a volume",
			 what, (unsigned long long)raw->depth);
}

static int open_raw(const struct workload_env *env, const void *config,
		    struct workload **ret_workload, struct err *err)
{
	struct raw *raw;
	int r;

	if (env->device_count == 0)
		return err_set(err, -EINVAL, "the raw workload has no volume to work on");
	if (raw_is_open_loop(config))
		return paced_open(env, config, ret_workload, err);
	raw = calloc(1, sizeof *raw);
	if (!raw)
		return err_set(err, -ENOMEM, "no memory for the workload");
	raw->base.ops = &raw_workload_ops;
	raw->env = *env;
	raw->config = *(const struct raw_config *)config;
	raw_mix_init(&raw->mix, &raw->config);
	r = open_sweep(raw);
	if (r == 0)
		r = allocate(raw);
	if (r < 0)
		err_set(err, r, "no memory for %u volumes with %llu I/Os each", env->device_count,
			(unsigned long long)raw->depth_max);
	for (unsigned i = 0; r == 0 && i < env->device_count; i++)
		r = open_device(raw, i, err);
	if (r < 0) {
		free_raw(&raw->base);
		return r;
	}
	summarize(raw);
	raw->base.plan.summary = raw->summary;
	*ret_workload = &raw->base;
	return 0;
}

static void nothing_to_do(struct workload *workload, workload_fn done, void *arg)
{
	workload->progress = 1;
	done(arg, 0);
}

static void start_raw(struct workload *workload)
{
	struct raw *raw = container_of(workload, struct raw, base);

	for (unsigned i = 0; i < raw->env.device_count; i++)
		pump(&raw->devices[i], loop_now_ns(raw->env.loop));
}

static void stop_raw(struct workload *workload, workload_fn drained, void *arg)
{
	struct raw *raw = container_of(workload, struct raw, base);

	raw->stopping = true;
	raw_sweep_stop(&raw->sweep);
	if (raw->in_flight == 0) {
		drained(arg, 0);
		return;
	}
	raw->drained = drained;
	raw->drained_arg = arg;
}

static void window_raw(struct workload *workload, bool begins)
{
	struct raw *raw = container_of(workload, struct raw, base);

	if (!raw_sweep_is_on(&raw->sweep))
		return;
	if (begins)
		raw_sweep_begin(&raw->sweep);
	else
		raw_sweep_stop(&raw->sweep);
}

static json_t *describe_raw(struct workload *workload)
{
	return raw_sweep_json(&container_of(workload, struct raw, base)->sweep);
}

const struct workload_ops raw_workload_ops = {
    .name = "raw",
    .help =
	"reads and writes of given sizes: a closed loop, or with rates an open loop that verifies",
    .schema = &raw_schema,
    .configure = raw_configure,
    .open = open_raw,
    .prepare = nothing_to_do,
    .start = start_raw,
    .stop = stop_raw,
    .verify = nothing_to_do,
    .free = free_raw,
    .check = raw_check,
    .window = window_raw,
    .describe = describe_raw,
};
