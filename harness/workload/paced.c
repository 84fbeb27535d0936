/* SPDX-License-Identifier: MIT
 *
 * Even arrivals, verified blocks.
 */
#include "harness/workload/paced.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/page.h"
#include "harness/workload/page_set.h"

#define RETRY_NS NS_PER_MS

enum { READ_BACK_DEPTH = 8, PLACE_TRIES = 64 };

struct paced_io {
	struct io io;
	struct iovec iov;
	struct paced_device *device;
	struct stream *stream; /* NULL: read-back */
	uint64_t intended_ns, submitted_ns, page;
	struct paced_io *next; /* free list */
};

struct paced_device {
	struct paced *paced;
	const struct workload_device *device;
	struct page_area area;
	struct page_set set;
	struct stream *streams[2]; /* reads, writes; NULL: there are none */
	struct rng place, mix;
	uint64_t cursor;
	/* arrivals */
	struct loop_timer timer;
	uint64_t start_ns, arrivals;
	bool write, pumping; /* the kind of the next one */
	struct paced_io *free_ios;
	uint64_t in_flight;
	/* read-back */
	uint64_t next_page;
	bool reading_back, gone;
};

struct paced {
	struct workload base;
	struct workload_env env;
	struct raw_config config;
	double reads, gap_ns; /* share of all; between two arrivals */
	struct paced_device *devices;
	struct paced_io *ios;
	uint8_t *memory;
	uint64_t in_flight, read_back_active;
	bool running, stopping;
	char summary[160];
	workload_fn drained, verified;
	void *drained_arg, *verified_arg;
};

static const struct workload_ops paced_ops;

static void pump(struct paced_device *device);
static void read_back(struct paced_device *device);

/* ---- one I/O ---- */

static void check_block(struct paced_io *pio)
{
	struct paced_device *device = pio->device;
	struct paced *paced = device->paced;
	struct page_expect expect;
	struct mismatch mismatch;
	uint64_t found;
	int kind;

	page_set_expect(&device->set, pio->page, &expect);
	kind = page_verify(&device->area, pio->iov.iov_base, pio->page, &expect, &found);
	if (kind < 0)
		return;
	paced->base.check.mismatches[kind]++;
	mismatch = (struct mismatch){
	    .kind = (enum mismatch_kind)kind,
	    .host = device->device->host,
	    .volume = device->device->volume,
	    .offset_bytes = pio->io.offset_bytes,
	    .at_ns = loop_now_ns(paced->env.loop),
	    .expected_generation = expect.high,
	    .found_generation = found,
	};
	if (paced->env.mismatch)
		paced->env.mismatch(paced->env.arg, &mismatch);
}

static void settle(struct paced_io *pio)
{
	struct paced_device *device = pio->device;
	struct workload_check *check = &device->paced->base.check;
	uint64_t before = device->set.written;

	if (pio->io.op == IO_WRITE)
		page_set_write_end(&device->set, pio->page, pio->io.status >= 0);
	else if (pio->io.status >= 0)
		check_block(pio);
	check->pages_written += device->set.written - before;
	if (!pio->stream) {
		bool written = page_set_is_written(&device->set, pio->page);

		check->pages_read_back += written && pio->io.status >= 0;
		check->pages_not_readable += written && pio->io.status < 0;
	} else if (pio->io.op == IO_READ && pio->io.status >= 0) {
		check->pages_checked++;
	}
	page_set_unlock(&device->set, pio->page, 1);
}

static void tell_drained(struct paced *paced)
{
	workload_fn drained = paced->drained;

	if (!paced->stopping || paced->in_flight || !drained)
		return;
	paced->drained = NULL;
	drained(paced->drained_arg, 0);
}

static void io_ended(struct io *io)
{
	struct paced_io *pio = io->owner;
	struct paced_device *device = pio->device;
	struct stream *stream = pio->stream;
	struct paced *paced = device->paced;

	paced->in_flight--;
	device->in_flight--;
	if (stream)
		stream_account(stream, pio->intended_ns, pio->submitted_ns,
			       loop_now_ns(paced->env.loop), io->length_bytes, io->status);
	settle(pio);
	/* Nothing more can be read, and each would wait for a path before it failed. */
	if (!stream && io->status == -ENODEV)
		device->gone = true;
	pio->next = device->free_ios;
	device->free_ios = pio;
	if (!stream)
		read_back(device);
	else if (paced->running)
		pump(device);
	tell_drained(paced);
}

static void submit(struct paced_device *device, struct stream *stream, enum io_op op, uint64_t page,
		   uint64_t intended_ns)
{
	struct paced *paced = device->paced;
	struct paced_io *pio = device->free_ios;

	device->free_ios = pio->next;
	pio->stream = stream;
	pio->page = page;
	pio->intended_ns = intended_ns;
	pio->io.op = op;
	pio->io.offset_bytes = page * paced->config.block_bytes;
	page_set_lock(&device->set, page, 1);
	if (op == IO_WRITE)
		page_fill(&device->area, pio->iov.iov_base, page,
			  page_set_write_begin(&device->set, page));
	paced->in_flight++;
	device->in_flight++;
	if (stream)
		stream_begin(stream, intended_ns);
	pio->submitted_ns = loop_now_ns(paced->env.loop);
	io_submit(device->device->layer, &pio->io);
}

/* ---- arrivals ---- */

/* One stream of arrivals, each of a kind by chance: two regular ones would fall into step with a
 * policy that goes round, and one path would carry nothing but reads. */
static uint64_t due_ns(const struct paced_device *device)
{
	return device->start_ns + (uint64_t)((double)device->arrivals * device->paced->gap_ns);
}

static void next_arrival(struct paced_device *device)
{
	device->arrivals++;
	device->write = rng_unit(&device->mix) >= device->paced->reads;
}

/* A block that nothing is in flight on. */
static bool pick(struct paced_device *device, uint64_t *ret_page)
{
	bool random = device->paced->config.pattern == RAW_RANDOM;

	for (unsigned i = 0; i < PLACE_TRIES; i++) {
		uint64_t page =
		    random ? rng_below(&device->place, device->set.pages) : device->cursor;

		if (!random)
			device->cursor = (device->cursor + 1) % device->set.pages;
		if (page_set_free_run(&device->set, page, 1) == 1) {
			*ret_page = page;
			return true;
		}
	}
	return false;
}

static void pump(struct paced_device *device)
{
	struct paced *paced = device->paced;
	struct loop *loop = paced->env.loop;
	bool refused = false;
	uint64_t page;

	if (device->pumping || !paced->running)
		return;
	device->pumping = true;
	while (paced->running && device->free_ios && due_ns(device) <= loop_now_ns(loop)) {
		uint64_t intended_ns = due_ns(device);
		bool write = device->write;

		if (!pick(device, &page)) {
			refused = true;
			break;
		}
		next_arrival(device);
		device->streams[write]->due++;
		submit(device, device->streams[write], write ? IO_WRITE : IO_READ, page,
		       intended_ns);
	}
	device->pumping = false;
	if (!paced->running)
		return;
	if (refused)
		loop_timer_set(loop, &device->timer, loop_now_ns(loop) + RETRY_NS);
	else if (device->free_ios)
		loop_timer_set(loop, &device->timer, due_ns(device));
	else /* the next completion comes back here */
		loop_timer_cancel(loop, &device->timer);
}

static void arrival_due(void *arg)
{
	pump(arg);
}

/* The arrivals that wait are the next ones of the device's own random numbers. */
static void count_due(struct workload *workload, uint64_t now_ns)
{
	struct paced *paced = container_of(workload, struct paced, base);

	for (unsigned d = 0; d < paced->env.device_count; d++) {
		struct paced_device device = paced->devices[d];

		for (; due_ns(&device) < now_ns; next_arrival(&device))
			device.streams[device.write]->due++;
	}
}

static void start(struct workload *workload)
{
	struct paced *paced = container_of(workload, struct paced, base);

	paced->running = true;
	for (unsigned d = 0; d < paced->env.device_count; d++) {
		paced->devices[d].start_ns = loop_now_ns(paced->env.loop);
		pump(&paced->devices[d]);
	}
}

static void stop(struct workload *workload, workload_fn drained, void *arg)
{
	struct paced *paced = container_of(workload, struct paced, base);

	paced->running = false;
	paced->stopping = true;
	paced->drained = drained;
	paced->drained_arg = arg;
	for (unsigned d = 0; d < paced->env.device_count; d++)
		loop_timer_cancel(paced->env.loop, &paced->devices[d].timer);
	tell_drained(paced);
}

/* ---- read-back ---- */

static void read_back_ended(struct paced_device *device)
{
	struct paced *paced = device->paced;
	workload_fn verified = paced->verified;

	device->reading_back = false;
	for (; device->gone && device->next_page < device->set.pages; device->next_page++)
		paced->base.check.pages_not_readable +=
		    page_set_is_written(&device->set, device->next_page);
	if (--paced->read_back_active || !verified)
		return;
	paced->verified = NULL;
	if (!paced->stopping)
		paced->base.progress = 1;
	verified(paced->verified_arg, paced->stopping ? -ECANCELED : 0);
}

static void read_back(struct paced_device *device)
{
	struct paced *paced = device->paced;
	const struct workload_check *check = &paced->base.check;

	while (!paced->stopping && !device->gone && device->in_flight < READ_BACK_DEPTH &&
	       device->free_ios) {
		while (device->next_page < device->set.pages &&
		       (!page_set_is_tried(&device->set, device->next_page) ||
			page_set_free_run(&device->set, device->next_page, 1) == 0))
			device->next_page++;
		if (device->next_page == device->set.pages)
			break;
		submit(device, NULL, IO_READ, device->next_page++, 0);
	}
	if (check->pages_written)
		paced->base.progress =
		    MIN_OF(1.0, (double)(check->pages_read_back + check->pages_not_readable) /
				    (double)check->pages_written);
	if (device->in_flight == 0 && device->reading_back)
		read_back_ended(device);
}

static void verify(struct workload *workload, workload_fn done, void *arg)
{
	struct paced *paced = container_of(workload, struct paced, base);

	paced->stopping = false;
	paced->verified = done;
	paced->verified_arg = arg;
	paced->read_back_active = paced->env.device_count;
	paced->base.progress = 0;
	for (unsigned d = 0; d < paced->env.device_count; d++)
		paced->devices[d].reading_back = true;
	for (unsigned d = 0; d < paced->env.device_count; d++)
		read_back(&paced->devices[d]);
}

static void prepare(struct workload *workload, workload_fn done, void *arg)
{
	workload->progress = 1;
	done(arg, 0);
}

/* ---- open ---- */

static void free_paced(struct workload *workload)
{
	struct paced *paced = container_of(workload, struct paced, base);

	for (unsigned d = 0; paced->devices && d < paced->env.device_count; d++) {
		loop_timer_cancel(paced->env.loop, &paced->devices[d].timer);
		page_set_done(&paced->devices[d].set);
	}
	free(paced->base.streams);
	free(paced->devices);
	free(paced->ios);
	free(paced->memory);
	free(paced);
}

int paced_check(const struct raw_config *config, struct err *err)
{
	uint64_t block = config->block_bytes;

	if (block % PAGE_UNIT_BYTES == 0 && block <= PAGE_UNITS_MAX * (uint64_t)PAGE_UNIT_BYTES)
		return 0;
	err_set(err, -EINVAL, "with 'rate' blocks are verified: block size %llu does not do",
		(unsigned long long)block);
	err_hint(err, "use a multiple of 4KiB, at most 32KiB");
	return -EINVAL;
}

static void add_stream(struct paced_device *device, bool write, double per_s)
{
	struct paced *paced = device->paced;

	if (per_s <= 0)
		return;
	device->streams[write] = &paced->base.streams[paced->base.stream_count++];
	*device->streams[write] = (struct stream){
	    .name = write ? "write" : "read",
	    .host = device->device->host,
	    .volume = device->device->volume,
	    .write = write,
	    .planned_per_s = per_s,
	};
}

static int allocate(struct paced *paced)
{
	uint64_t count = paced->env.device_count, depth = paced->config.queue_depth;
	void *memory;

	paced->base.streams = calloc(2 * count, sizeof *paced->base.streams);
	paced->devices = calloc(count, sizeof *paced->devices);
	paced->ios = calloc(count * depth, sizeof *paced->ios);
	if (!paced->base.streams || !paced->devices || !paced->ios ||
	    posix_memalign(&memory, 4096, count * depth * paced->config.block_bytes) != 0)
		return -ENOMEM;
	paced->memory = memory;
	return 0;
}

static void add_ios(struct paced_device *device, unsigned index)
{
	struct paced *paced = device->paced;
	uint64_t depth = paced->config.queue_depth, block = paced->config.block_bytes;

	for (uint64_t i = index * depth; i < (index + 1) * depth; i++) {
		struct paced_io *pio = &paced->ios[i];

		pio->device = device;
		pio->iov = (struct iovec){paced->memory + i * block, block};
		pio->io = (struct io){
		    .length_bytes = block,
		    .iov = &pio->iov,
		    .iov_count = 1,
		    .done = io_ended,
		    .owner = pio,
		};
		pio->next = device->free_ios;
		device->free_ios = pio;
	}
}

static int open_device(struct paced *paced, unsigned index, struct err *err)
{
	const struct raw_config *config = &paced->config;
	struct paced_device *device = &paced->devices[index];
	const struct workload_device *from = &paced->env.devices[index];
	uint64_t span = from->layer->size_bytes;
	int r = raw_workload_ops.check(config, from->volume, span, from->block_bytes, err);

	if (r < 0)
		return r;
	if (config->span_bytes)
		span = MIN_OF(span, config->span_bytes);
	device->paced = paced;
	device->device = from;
	device->area = (struct page_area){
	    .magic = PAGE_MAGIC_DATABASE,
	    .units = (uint32_t)(config->block_bytes / PAGE_UNIT_BYTES),
	    .volume = rng_stream_of(from->volume),
	};
	page_run_uuid(paced->env.seed, loop_wall_ns(paced->env.loop), device->area.run);
	rng_init(&device->place, paced->env.seed, rng_stream_of(from->volume) + index);
	r = page_set_init(&device->set, span / config->block_bytes, from->known_zero);
	if (r < 0)
		return err_set(err, r, "no memory for the block map of volume %s", from->volume);
	rng_init(&device->mix, paced->env.seed, ~rng_stream_of(from->volume) - index);
	loop_timer_init(&device->timer, arrival_due, device);
	device->write = rng_unit(&device->mix) >= paced->reads;
	add_stream(device, false, config->rate * paced->reads);
	add_stream(device, true, config->rate * (1 - paced->reads));
	add_ios(device, index);
	return 0;
}

int paced_open(const struct workload_env *env, const struct raw_config *config,
	       struct workload **ret_workload, struct err *err)
{
	struct paced *paced = calloc(1, sizeof *paced);
	int r;

	if (!paced)
		return err_set(err, -ENOMEM, "no memory for the workload");
	assert(config->rate > 0);
	paced->base.ops = &paced_ops;
	paced->env = *env;
	paced->config = *config;
	paced->gap_ns = (double)NS_PER_S / config->rate;
	paced->reads = config->op == RAW_RW ? config->read_share : config->op == RAW_READ;
	r = allocate(paced);
	if (r < 0)
		err_set(err, r, "no memory for %u volumes with %llu I/Os each", env->device_count,
			(unsigned long long)config->queue_depth);
	for (unsigned i = 0; r == 0 && i < env->device_count; i++)
		r = open_device(paced, i, err);
	if (r < 0) {
		free_paced(&paced->base);
		return r;
	}
	paced->base.plan.transactional_iops = config->rate * env->device_count;
	paced->base.plan.total_iops = paced->base.plan.transactional_iops;
	snprintf(paced->summary, sizeof paced->summary,
		 "raw: %s %s of %llu bytes, %.0f a second on %u %s, verified",
		 raw_pattern_names[config->pattern], raw_op_names[config->op],
		 (unsigned long long)config->block_bytes, config->rate, env->device_count,
		 env->device_count == 1 ? "volume" : "volumes");
	paced->base.plan.summary = paced->summary;
	*ret_workload = &paced->base;
	return 0;
}

static const struct workload_ops paced_ops = {
    .name = "raw",
    .open = NULL, /* raw_workload_ops leads here */
    .prepare = prepare,
    .start = start,
    .stop = stop,
    .verify = verify,
    .free = free_paced,
    .count_due = count_due,
};
