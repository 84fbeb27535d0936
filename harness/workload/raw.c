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

const char *const raw_op_names[] = {"read", "write", "rw", NULL};
const char *const raw_pattern_names[] = {"random", "sequential", NULL};

#define AT(member) offsetof(struct raw_config, member)

static const struct cfg_field fields[] = {
    {.key = "type", .type = CFG_STRING, .offset = AT(type), .help = "raw"},
    {.key = "op",
     .type = CFG_ENUM,
     .offset = AT(op),
     .preset = "read",
     .names = raw_op_names,
     .help = "read, write (destroys what is on the volumes), or both"},
    {.key = "pattern",
     .type = CFG_ENUM,
     .offset = AT(pattern),
     .preset = "random",
     .names = raw_pattern_names,
     .help = "where the next I/O goes"},
    {.key = "block-size",
     .type = CFG_SIZE,
     .offset = AT(block_bytes),
     .preset = "4KiB",
     .min = 512,
     .max = 1048576,
     .help = "bytes an I/O"},
    {.key = "queue-depth",
     .type = CFG_UINT,
     .offset = AT(queue_depth),
     .preset = "32",
     .min = 1,
     .max = 1024,
     .help = "I/Os in flight on each volume; with `rate` the most there may be"},
    {.key = "read-share",
     .type = CFG_PERCENT,
     .offset = AT(read_share),
     .preset = "70%",
     .max = 100,
     .help = "reads of all I/O with op: rw"},
    {.key = "span",
     .type = CFG_SIZE,
     .offset = AT(span_bytes),
     .help = "use only this much from the start of each volume; default: all"},
    {.key = "rate",
     .type = CFG_REAL,
     .offset = AT(rate),
     .max = 1e7,
     .help = "I/Os a second on each volume, due at even times (open loop) and verified; default: "
	     "a closed loop, not verified"},
};

const struct cfg_schema raw_schema = {
    .name = "workload",
    .size = sizeof(struct raw_config),
    .fields = fields,
    .field_count = ARRAY_SIZE(fields),
};

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
	uint64_t blocks, cursor;
	struct raw_io *ready; /* to be sent by the pump */
	bool pumping;
	bool gone; /* -ENODEV: nothing more is sent, a closed loop would spin */
};

struct raw {
	struct workload base;
	struct workload_env env;
	struct raw_config config;
	struct raw_device *devices;
	struct raw_io *ios;
	uint8_t *memory;
	uint64_t in_flight;
	char summary[120];
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

static bool next_is_read(struct raw_device *device)
{
	const struct raw_config *config = &device->raw->config;

	if (config->op != RAW_RW)
		return config->op == RAW_READ;
	return rng_unit(&device->rng) < config->read_share;
}

static uint64_t next_block(struct raw_device *device)
{
	if (device->raw->config.pattern == RAW_RANDOM)
		return rng_below(&device->rng, device->blocks);
	if (device->cursor == device->blocks)
		device->cursor = 0;
	return device->cursor++;
}

static void send(struct raw_device *device, struct raw_io *rio, uint64_t now_ns)
{
	struct raw *raw = device->raw;
	bool read = next_is_read(device);

	rio->io.op = read ? IO_READ : IO_WRITE;
	rio->io.offset_bytes = next_block(device) * raw->config.block_bytes;
	rio->stream = read ? device->read : device->write;
	rio->submitted_ns = now_ns;
	stream_begin(rio->stream, rio->submitted_ns);
	raw->in_flight++;
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
	while (device->ready && !device->raw->stopping && !device->gone) {
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

	free(raw->base.streams);
	free(raw->devices);
	free(raw->ios);
	free(raw->memory);
	free(raw);
}

static int allocate(struct raw *raw)
{
	uint64_t depth = raw->config.queue_depth, count = raw->env.device_count;
	uint64_t each = round_up_u64(raw->config.block_bytes, 4096);
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

static int check_raw(const void *of, const char *volume, uint64_t size_bytes, uint32_t block_bytes,
		     struct err *err)
{
	const struct raw_config *config = of;
	uint64_t block = config->block_bytes, span = size_bytes;

	if (config->span_bytes)
		span = MIN_OF(span, config->span_bytes);
	if (span < block)
		return err_set(err, -EINVAL, "volume %s is smaller than one block of %llu bytes",
			       volume, (unsigned long long)block);
	if (block_bytes && block % block_bytes != 0)
		return err_set(err, -EINVAL,
			       "block size %llu is not a multiple of volume %s's %u bytes",
			       (unsigned long long)block, volume, block_bytes);
	return config->rate > 0 ? paced_check(config, err) : 0;
}

static int open_device(struct raw *raw, unsigned index, struct err *err)
{
	const struct workload_device *from = &raw->env.devices[index];
	struct raw_device *device = &raw->devices[index];
	uint64_t block = raw->config.block_bytes, span = from->layer->size_bytes;
	uint64_t depth = raw->config.queue_depth, each = round_up_u64(block, 4096);
	int r = check_raw(&raw->config, from->volume, span, from->block_bytes, err);

	if (r < 0)
		return r;
	if (raw->config.span_bytes)
		span = MIN_OF(span, raw->config.span_bytes);
	device->raw = raw;
	device->layer = from->layer;
	device->blocks = span / block;
	rng_init(&device->rng, raw->env.seed, rng_stream_of(from->volume) + index);
	if (raw->config.op != RAW_WRITE)
		device->read = add_stream(raw, from, false);
	if (raw->config.op != RAW_READ)
		device->write = add_stream(raw, from, true);
	for (uint64_t i = 0; i < depth; i++) {
		struct raw_io *rio = &raw->ios[index * depth + i];

		rio->device = device;
		rio->iov = (struct iovec){raw->memory + (index * depth + i) * each, block};
		rio->io = (struct io){
		    .length_bytes = block,
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

static int open_raw(const struct workload_env *env, const void *config,
		    struct workload **ret_workload, struct err *err)
{
	struct raw *raw;
	int r;

	if (env->device_count == 0)
		return err_set(err, -EINVAL, "the raw workload has no volume to work on");
	if (((const struct raw_config *)config)->rate > 0)
		return paced_open(env, config, ret_workload, err);
	raw = calloc(1, sizeof *raw);
	if (!raw)
		return err_set(err, -ENOMEM, "no memory for the workload");
	raw->base.ops = &raw_workload_ops;
	raw->env = *env;
	raw->config = *(const struct raw_config *)config;
	r = allocate(raw);
	if (r < 0)
		err_set(err, r, "no memory for %u volumes with %llu I/Os each", env->device_count,
			(unsigned long long)raw->config.queue_depth);
	for (unsigned i = 0; r == 0 && i < env->device_count; i++)
		r = open_device(raw, i, err);
	if (r < 0) {
		free_raw(&raw->base);
		return r;
	}
	snprintf(raw->summary, sizeof raw->summary,
		 "raw: %s %s of %llu bytes, %llu in flight a volume",
		 raw_pattern_names[raw->config.pattern], raw_op_names[raw->config.op],
		 (unsigned long long)raw->config.block_bytes,
		 (unsigned long long)raw->config.queue_depth);
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
	if (raw->in_flight == 0) {
		drained(arg, 0);
		return;
	}
	raw->drained = drained;
	raw->drained_arg = arg;
}

const struct workload_ops raw_workload_ops = {
    .name = "raw",
    .help = "equal reads and writes: a closed loop, or with `rate` an open loop that verifies",
    .schema = &raw_schema,
    .open = open_raw,
    .prepare = nothing_to_do,
    .start = start_raw,
    .stop = stop_raw,
    .verify = nothing_to_do,
    .free = free_raw,
    .check = check_raw,
};
