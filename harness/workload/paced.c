/* SPDX-License-Identifier: MIT
 *
 * Even arrivals, verified blocks.
 */
#include "harness/workload/paced_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define RETRY_NS NS_PER_MS

enum { READ_BACK_DEPTH = 8, PLACE_TRIES = 64 };

static void pump(struct paced_device *device);
static void read_back(struct paced_device *device);

/* ---- one I/O ---- */

static void check_unit(struct paced_io *pio, uint64_t index)
{
	struct paced_device *device = pio->device;
	struct paced *paced = device->paced;
	uint64_t page = pio->page + index;
	struct page_expect expect;
	struct mismatch mismatch;
	uint64_t found;
	int kind;

	page_set_expect(&device->set, page, &expect);
	kind = page_verify(&device->area,
			   (const uint8_t *)pio->iov.iov_base + index * paced->unit_bytes, page,
			   &expect, &found);
	if (kind < 0)
		return;
	paced->base.check.mismatches[kind]++;
	mismatch = (struct mismatch){
	    .kind = (enum mismatch_kind)kind,
	    .host = device->device->host,
	    .volume = device->device->volume,
	    .offset_bytes = page * paced->unit_bytes,
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
	bool good = pio->io.status >= 0;

	if (!device->paced->verified)
		return;
	for (uint64_t i = 0; i < pio->count; i++) {
		if (pio->io.op == IO_WRITE)
			page_set_write_end(&device->set, pio->page + i, good);
		else if (good)
			check_unit(pio, i);
	}
	check->pages_written += device->set.written - before;
	if (!pio->stream) {
		bool written = page_set_is_written(&device->set, pio->page);

		check->pages_read_back += written && good;
		check->pages_not_readable += written && !good;
	} else if (pio->io.op == IO_READ && good) {
		check->pages_checked += pio->count;
	}
	page_set_unlock(&device->set, pio->page, pio->count);
}

static void tell_drained(struct paced *paced)
{
	workload_fn drained = paced->drained;

	if (!paced->stopping || paced->in_flight || !drained)
		return;
	paced->drained = NULL;
	drained(paced->drained_arg, 0);
}

void paced_io_ended(struct io *io)
{
	struct paced_io *pio = io->owner;
	struct paced_device *device = pio->device;
	struct stream *stream = pio->stream;
	struct paced *paced = device->paced;

	paced->in_flight--;
	device->in_flight--;
	if (stream) {
		uint64_t now_ns = loop_now_ns(paced->env.loop);

		stream_account(stream, pio->intended_ns, pio->submitted_ns, now_ns,
			       io->length_bytes, io->status);
		raw_sweep_count(&paced->sweep, io->op == IO_WRITE, now_ns - pio->intended_ns,
				io->length_bytes, io->status);
	}
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

/* The content of a write. */
static void fill(struct paced_io *pio)
{
	struct paced_device *device = pio->device;
	uint64_t unit_bytes = device->paced->unit_bytes;

	for (uint64_t i = 0; i < pio->count; i++)
		page_fill(&device->area, (uint8_t *)pio->iov.iov_base + i * unit_bytes,
			  pio->page + i, page_set_write_begin(&device->set, pio->page + i));
}

static void submit(struct paced_device *device, struct stream *stream, enum io_op op, uint64_t page,
		   uint64_t bytes, uint64_t intended_ns)
{
	struct paced *paced = device->paced;
	struct paced_io *pio = device->free_ios;

	device->free_ios = pio->next;
	pio->stream = stream;
	pio->page = page;
	pio->count = bytes / paced->unit_bytes;
	pio->intended_ns = intended_ns;
	pio->iov.iov_len = bytes;
	pio->io.op = op;
	pio->io.flags = op == IO_READ && !paced->verified ? IO_BLIND : 0;
	pio->io.offset_bytes = page * paced->unit_bytes;
	pio->io.length_bytes = bytes;
	if (paced->verified)
		page_set_lock(&device->set, page, pio->count);
	if (paced->verified && op == IO_WRITE)
		fill(pio);
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

/* What the next one is. */
void paced_draw(struct paced_device *device)
{
	const struct raw_mix *mix = &device->paced->mix;

	device->write = !raw_mix_reads(mix, &device->mix);
	device->next_bytes = raw_mix_bytes(mix, &device->mix);
}

static void next_arrival(struct paced_device *device)
{
	device->arrivals++;
	paced_draw(device);
}

/* Units that nothing is in flight on. */
static bool pick(struct paced_device *device, uint64_t *ret_page)
{
	const struct paced *paced = device->paced;

	for (unsigned i = 0; i < PLACE_TRIES; i++) {
		uint64_t page =
		    raw_mix_offset(&paced->mix, &device->place, &device->at, device->next_bytes) /
		    paced->unit_bytes;
		uint64_t count = device->next_bytes / paced->unit_bytes;

		if (!paced->verified || page_set_free_run(&device->set, page, count) == count) {
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
		uint64_t intended_ns = due_ns(device), bytes = device->next_bytes;
		bool write = device->write;

		if (!pick(device, &page)) {
			refused = true;
			break;
		}
		next_arrival(device);
		device->streams[write]->due++;
		submit(device, device->streams[write], write ? IO_WRITE : IO_READ, page, bytes,
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

void paced_arrival_due(void *arg)
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
	raw_sweep_stop(&paced->sweep);
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
	workload_fn done = paced->read_back_done;

	device->reading_back = false;
	for (; device->gone && device->next_page < device->set.pages; device->next_page++)
		paced->base.check.pages_not_readable +=
		    page_set_is_written(&device->set, device->next_page);
	if (--paced->read_back_active || !done)
		return;
	paced->read_back_done = NULL;
	if (!paced->stopping)
		paced->base.progress = 1;
	done(paced->read_back_arg, paced->stopping ? -ECANCELED : 0);
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
		submit(device, NULL, IO_READ, device->next_page++, device->paced->unit_bytes, 0);
	}
	if (check->pages_written)
		paced->base.progress =
		    MIN_OF(1.0, (double)(check->pages_read_back + check->pages_not_readable) /
				    (double)check->pages_written);
	if (device->in_flight == 0 && device->reading_back)
		read_back_ended(device);
}

/* Nothing is to be done before the load, nor, where nothing is verified, after it. */
static void prepare(struct workload *workload, workload_fn done, void *arg)
{
	workload->progress = 1;
	done(arg, 0);
}

static void verify(struct workload *workload, workload_fn done, void *arg)
{
	struct paced *paced = container_of(workload, struct paced, base);

	if (!paced->verified) {
		prepare(workload, done, arg);
		return;
	}
	paced->stopping = false;
	paced->read_back_done = done;
	paced->read_back_arg = arg;
	paced->read_back_active = paced->env.device_count;
	paced->base.progress = 0;
	for (unsigned d = 0; d < paced->env.device_count; d++)
		paced->devices[d].reading_back = true;
	for (unsigned d = 0; d < paced->env.device_count; d++)
		read_back(&paced->devices[d]);
}

/* ---- a sweep of rates ---- */

/* Nothing of the last rate is left to be sent. */
void paced_stepped(void *arg, double level)
{
	struct paced *paced = arg;

	paced->gap_ns = (double)NS_PER_S / level;
	for (unsigned d = 0; paced->running && d < paced->env.device_count; d++) {
		paced->devices[d].start_ns = loop_now_ns(paced->env.loop);
		paced->devices[d].arrivals = 0;
		pump(&paced->devices[d]);
	}
}

uint64_t paced_late(void *arg)
{
	const struct paced *paced = arg;
	uint64_t now_ns = loop_now_ns(paced->env.loop), sum = 0;

	for (unsigned d = 0; d < paced->env.device_count; d++) {
		const struct paced_device *device = &paced->devices[d];

		if (due_ns(device) < now_ns)
			sum += (uint64_t)((double)(now_ns - due_ns(device)) / paced->gap_ns);
	}
	return sum;
}

void paced_sweep_ended(void *arg)
{
	struct paced *paced = arg;

	paced->env.ended(paced->env.arg);
}

static void window(struct workload *workload, bool begins)
{
	struct paced *paced = container_of(workload, struct paced, base);

	if (!raw_sweep_is_on(&paced->sweep))
		return;
	if (begins)
		raw_sweep_begin(&paced->sweep);
	else
		raw_sweep_stop(&paced->sweep);
}

static void free_paced(struct workload *workload)
{
	struct paced *paced = container_of(workload, struct paced, base);

	raw_sweep_close(&paced->sweep);
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

static json_t *describe(struct workload *workload)
{
	return raw_sweep_json(&container_of(workload, struct paced, base)->sweep);
}

const struct workload_ops paced_ops = {
    .name = "raw",
    .open = NULL, /* raw_workload_ops leads here */
    .prepare = prepare,
    .start = start,
    .stop = stop,
    .verify = verify,
    .free = free_paced,
    .count_due = count_due,
    .window = window,
    .describe = describe,
};
