/* SPDX-License-Identifier: MIT
 *
 * Setting up the open loop.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/workload/paced_impl.h"

/* What carries an identity: a page of at most 32 KiB of which every size is a multiple. */
static uint64_t unit_of(const struct raw_config *config)
{
	const uint64_t most = PAGE_UNITS_MAX * (uint64_t)PAGE_UNIT_BYTES;
	struct raw_mix mix;

	raw_mix_init(&mix, config);
	if (config->content == RAW_NONE || mix.unit_bytes <= most)
		return mix.unit_bytes;
	for (uint64_t unit = most; unit > PAGE_UNIT_BYTES; unit -= PAGE_UNIT_BYTES)
		if (mix.unit_bytes % unit == 0)
			return unit;
	return PAGE_UNIT_BYTES;
}

int paced_check(const struct raw_config *config, struct err *err)
{
	uint64_t unit = unit_of(config);

	if (config->content == RAW_NONE || unit % PAGE_UNIT_BYTES == 0)
		return 0;
	err_set(err, -EINVAL, "with 'rate' blocks are verified: block size %llu does not do",
		(unsigned long long)unit);
	err_hint(err, "use multiples of 4KiB, or content: none");
	return -EINVAL;
}

static void add_stream(struct paced_device *device, bool write, double per_s)
{
	struct paced *paced = device->paced;

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
	    posix_memalign(&memory, 4096, count * depth * paced->mix.largest_bytes) != 0)
		return -ENOMEM;
	paced->memory = memory;
	if (!paced->verified) { /* random bytes: no array compresses or deduplicates them */
		struct rng rng;

		rng_init(&rng, paced->env.seed, rng_stream_of("raw-data"));
		rng_fill(&rng, memory, count * depth * paced->mix.largest_bytes);
	}
	return 0;
}

static void add_ios(struct paced_device *device, unsigned index)
{
	struct paced *paced = device->paced;
	uint64_t depth = paced->config.queue_depth, each = paced->mix.largest_bytes;

	for (uint64_t i = index * depth; i < (index + 1) * depth; i++) {
		struct paced_io *pio = &paced->ios[i];

		pio->device = device;
		pio->iov = (struct iovec){paced->memory + i * each, 0};
		pio->io = (struct io){
		    .iov = &pio->iov,
		    .iov_count = 1,
		    .done = paced_io_ended,
		    .owner = pio,
		};
		pio->next = device->free_ios;
		device->free_ios = pio;
	}
}

/* 0 for a sweep: it asks what can be achieved, step by step. */
static double plan_per_s(const struct paced *paced)
{
	return raw_sweep_is_on(&paced->sweep) ? 0 : paced->config.rate;
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
	    .units = (uint32_t)(paced->unit_bytes / PAGE_UNIT_BYTES),
	    .volume = rng_stream_of(from->volume),
	};
	page_run_uuid(paced->env.seed, loop_wall_ns(paced->env.loop), device->area.run);
	rng_init(&device->place, paced->env.seed, rng_stream_of(from->volume) + index);
	device->at.span_bytes = span / paced->unit_bytes * paced->unit_bytes;
	if (paced->verified)
		r = page_set_init(&device->set, span / paced->unit_bytes, from->known_zero);
	if (r < 0)
		return err_set(err, r, "no memory for the block map of volume %s", from->volume);
	rng_init(&device->mix, paced->env.seed, ~rng_stream_of(from->volume) - index);
	loop_timer_init(&device->timer, paced_arrival_due, device);
	paced_draw(device);
	if (paced->mix.read_share > 0)
		add_stream(device, false, plan_per_s(paced) * paced->mix.read_share);
	if (paced->mix.read_share < 1)
		add_stream(device, true, plan_per_s(paced) * (1 - paced->mix.read_share));
	add_ios(device, index);
	return 0;
}

static int open_sweep(struct paced *paced)
{
	int r = raw_sweep_open(&paced->sweep, paced->env.loop, &paced->config);
	double rate = paced->config.rate;

	if (r == 0 && raw_sweep_is_on(&paced->sweep)) {
		paced->sweep.stepped = paced_stepped;
		paced->sweep.late = paced_late;
		paced->sweep.ended = paced_sweep_ended;
		paced->sweep.arg = paced;
		paced->sweep.progress = &paced->base.progress;
		paced->base.ends_itself = true;
		rate = raw_sweep_first(&paced->sweep);
	}
	paced->gap_ns = (double)NS_PER_S / rate;
	return r;
}

static void summarize(struct paced *paced)
{
	char what[160], rate[64];

	raw_describe(&paced->config, what, sizeof what);
	if (raw_sweep_is_on(&paced->sweep))
		snprintf(rate, sizeof rate, "%u steps of up to %.0f a second", paced->sweep.count,
			 raw_sweep_most(&paced->sweep));
	else
		snprintf(rate, sizeof rate, "%.0f a second", paced->config.rate);
	snprintf(paced->summary, sizeof paced->summary, "raw: %s; %s on %u %s%s", what, rate,
		 paced->env.device_count, paced->env.device_count == 1 ? "volume" : "volumes",
		 paced->verified ? ", verified" : "");
}

int paced_open(const struct workload_env *env, const struct raw_config *config,
	       struct workload **ret_workload, struct err *err)
{
	struct paced *paced = calloc(1, sizeof *paced);
	int r;

	if (!paced)
		return err_set(err, -ENOMEM, "no memory for the workload");
	assert(raw_is_open_loop(config));
	paced->base.ops = &paced_ops;
	paced->env = *env;
	paced->config = *config;
	raw_mix_init(&paced->mix, config);
	paced->unit_bytes = unit_of(config);
	paced->verified = config->content == RAW_VERIFIED;
	r = open_sweep(paced);
	if (r == 0)
		r = allocate(paced);
	if (r < 0)
		err_set(err, r, "no memory for %u volumes with %llu I/Os each", env->device_count,
			(unsigned long long)config->queue_depth);
	for (unsigned i = 0; r == 0 && i < env->device_count; i++)
		r = open_device(paced, i, err);
	if (r < 0) {
		paced->base.ops->free(&paced->base);
		return r;
	}
	paced->base.plan.transactional_iops = plan_per_s(paced) * env->device_count;
	paced->base.plan.total_iops = paced->base.plan.transactional_iops;
	summarize(paced);
	paced->base.plan.summary = paced->summary;
	*ret_workload = &paced->base;
	return 0;
}
