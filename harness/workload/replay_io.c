/* SPDX-License-Identifier: MIT
 *
 * One I/O of a replay: memory, payload, what it meets on its way, its end.
 *
 * What a read must find is known when no write to its sectors was on its way while it was.  So
 * each I/O is compared with those that are in flight on its volume when it is sent: reads and
 * writes that meet are marked, reads are then not checked, and of writes that met nothing is known
 * after.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/workload/page.h"
#include "harness/workload/replay_impl.h"

#define POOL_BYTES (256 * MIB)

/* ---- what it meets ---- */

static bool changes(const struct replay_io *rio)
{
	return rio->io.op == IO_WRITE || rio->io.op == IO_UNMAP;
}

static void meet(struct replay_device *device, struct replay_io *rio)
{
	if (!device->replay->config.verify)
		return;
	for (unsigned i = 0; i < device->active_count; i++) {
		struct replay_io *other = device->active[i];

		if ((!changes(rio) && !changes(other)) ||
		    rio->first_sector >= other->first_sector + other->sectors ||
		    other->first_sector >= rio->first_sector + rio->sectors)
			continue;
		rio->mixed = true;
		other->mixed = true;
	}
}

static void enlist(struct replay_device *device, struct replay_io *rio)
{
	rio->slot = device->active_count;
	device->active[device->active_count++] = rio;
}

static void delist(struct replay_device *device, struct replay_io *rio)
{
	struct replay_io *last = device->active[--device->active_count];

	device->active[rio->slot] = last;
	last->slot = rio->slot;
}

/* ---- what is known after it ---- */

static void report(struct replay_device *device, const struct sector_finding *finding)
{
	struct replay *replay = device->replay;
	struct mismatch mismatch = {
	    .kind = (enum mismatch_kind)finding->kind,
	    .host = device->device->host,
	    .volume = device->device->volume,
	    .offset_bytes = finding->sector * SECTOR_BYTES,
	    .at_ns = loop_now_ns(replay->env.loop),
	    .expected_generation = finding->expected,
	    .found_generation = finding->found,
	};

	replay->base.check.mismatches[finding->kind]++;
	if (replay->env.mismatch)
		replay->env.mismatch(replay->env.arg, &mismatch);
}

static uint64_t check_read(struct replay_io *rio)
{
	struct replay_device *device = rio->device;
	struct sector_finding findings[SECTOR_FINDINGS_MAX];
	uint64_t checked;
	unsigned count = sector_check(&device->area, &device->map, rio->iov.iov_base,
				      rio->first_sector, rio->sectors, findings, &checked);

	for (unsigned i = 0; i < MIN_OF(count, (unsigned)SECTOR_FINDINGS_MAX); i++)
		report(device, &findings[i]);
	return checked;
}

static void settle_read(struct replay_io *rio)
{
	struct replay *replay = rio->device->replay;
	struct workload_check *check = &replay->base.check;
	uint64_t known, checked;

	if (!rio->stream) {
		known = sector_map_known(&rio->device->map, rio->first_sector, rio->sectors);
		check->pages_read_back += rio->io.status < 0 ? 0 : known;
		check->pages_not_readable += rio->io.status < 0 ? known : 0;
	}
	if (rio->io.status < 0)
		return;
	if (rio->mixed) {
		replay->reads_unchecked++;
		return;
	}
	checked = check_read(rio);
	if (!rio->stream)
		return;
	check->pages_checked += checked;
	replay->reads_checked += checked > 0;
	replay->reads_unchecked += checked == 0;
}

static void settle(struct replay_io *rio)
{
	struct replay_device *device = rio->device;
	struct replay *replay = device->replay;
	bool known = rio->io.op == IO_WRITE && rio->io.status >= 0 && !rio->mixed;
	uint64_t before = device->map.known;

	if (!replay->config.verify)
		return;
	if (rio->io.op == IO_READ)
		settle_read(rio);
	else if (changes(rio))
		sector_map_set(&device->map, rio->first_sector, rio->sectors,
			       known ? rio->generation : SECTOR_UNKNOWN);
	replay->base.check.pages_written += device->map.known - before;
}

/* ---- its end ---- */

static void give_back(struct replay *replay, struct replay_io *rio)
{
	rio->buf = buf_unref(rio->buf);
	rio->next = replay->free_ios;
	replay->free_ios = rio;
}

static void account(struct replay_io *rio)
{
	struct replay *replay = rio->device->replay;

	/* A unit that does not know UNMAP is none that failed. */
	if (rio->io.op == IO_UNMAP && rio->io.status == -EOPNOTSUPP) {
		replay->no_trims++;
		rio->stream->in_flight--;
		if (!rio->stream->in_flight)
			rio->stream->due_since_ns = 0;
		return;
	}
	stream_account(rio->stream, rio->intended_ns, rio->submitted_ns,
		       loop_now_ns(replay->env.loop), rio->io.length_bytes, rio->io.status);
}

static void io_ended(struct io *io)
{
	struct replay_io *rio = io->owner;
	struct replay_device *device = rio->device;
	struct replay *replay = device->replay;
	bool of_trace = rio->stream != NULL;

	assert(replay->in_flight > 0);
	replay->in_flight--;
	replay->steps++;
	delist(device, rio);
	if (of_trace)
		account(rio);
	settle(rio);
	if (of_trace)
		replay_pace_ended(replay, rio);
	else if (io->status == -ENODEV)
		device->gone = true;
	give_back(replay, rio);
	if (of_trace)
		replay_pump(replay);
	else
		replay_verify_go_on(replay);
	replay_tell_drained(replay);
}

/* ---- its begin ---- */

/* False: no memory now. */
static bool give_memory(struct replay *replay, struct replay_io *rio)
{
	bool data = rio->io.op == IO_READ || rio->io.op == IO_WRITE;
	size_t half = replay->config.max_io_bytes;

	rio->iov = (struct iovec){0};
	rio->io.iov = &rio->iov;
	rio->io.iov_count = data;
	if (!data)
		return true;
	rio->iov.iov_len = rio->io.length_bytes;
	if (!replay->config.verify) {
		rio->iov.iov_base = replay->shared + (rio->io.op == IO_READ ? half : 0);
		return true;
	}
	rio->buf = buf_new(replay->pool, rio->io.length_bytes);
	if (rio->buf)
		rio->iov.iov_base = rio->buf->data;
	return rio->buf;
}

static struct replay_io *take(struct replay_device *device, enum io_op op, uint64_t offset_bytes,
			      uint64_t length_bytes)
{
	struct replay *replay = device->replay;
	struct replay_io *rio = replay->free_ios;

	if (!rio)
		return NULL;
	rio->io = (struct io){
	    .op = op,
	    .offset_bytes = offset_bytes,
	    .length_bytes = length_bytes,
	    .done = io_ended,
	    .owner = rio,
	};
	if (!give_memory(replay, rio))
		return NULL;
	replay->free_ios = rio->next;
	rio->device = device;
	rio->stream = NULL;
	rio->open = UINT_MAX;
	rio->mixed = false;
	rio->first_sector = offset_bytes / SECTOR_BYTES;
	rio->sectors = length_bytes / SECTOR_BYTES;
	return rio;
}

static void submit(struct replay_device *device, struct replay_io *rio)
{
	struct replay *replay = device->replay;

	meet(device, rio);
	enlist(device, rio);
	replay->in_flight++;
	rio->submitted_ns = loop_now_ns(replay->env.loop);
	io_submit(device->device->layer, &rio->io);
}

static void fill(struct replay_device *device, struct replay_io *rio)
{
	/* 0 and UINT32_MAX mean something else; after them it begins anew. */
	if (++device->writes == SECTOR_UNKNOWN)
		device->writes = 1;
	rio->generation = device->writes;
	sector_fill(&device->area, rio->iov.iov_base, rio->first_sector, rio->sectors,
		    rio->generation);
}

static void note_lateness(struct replay *replay, uint64_t intended_ns)
{
	uint64_t now_ns = loop_now_ns(replay->env.loop);
	uint64_t late_ns = now_ns > intended_ns ? now_ns - intended_ns : 0;

	hist_record(&replay->lateness, late_ns);
	replay->late += late_ns > replay->config.late_limit_ns;
}

bool replay_send(struct replay *replay, const struct replay_part *part,
		 const struct trace_record *record, uint64_t intended_ns)
{
	static const enum io_op ops[TRACE_OPS] = {
	    [TRACE_READ] = IO_READ,
	    [TRACE_WRITE] = IO_WRITE,
	    [TRACE_FLUSH] = IO_FLUSH,
	    [TRACE_TRIM] = IO_UNMAP,
	};
	struct replay_device *device = &replay->devices[part->device];
	struct replay_io *rio =
	    take(device, ops[record->op], part->offset_bytes, part->length_bytes);

	if (!rio)
		return false;
	if (record->fua)
		rio->io.flags = IO_FUA;
	rio->stream = device->streams[record->class][record->op];
	if (rio->io.op == IO_WRITE && replay->config.verify)
		fill(device, rio);
	if (replay->config.mode == REPLAY_AFAP)
		intended_ns = loop_now_ns(replay->env.loop);
	else if (replay->parts.first)
		note_lateness(replay, intended_ns);
	rio->intended_ns = intended_ns;
	replay->sent++;
	replay_pace_sent(replay, rio, record);
	stream_begin(rio->stream, intended_ns);
	submit(device, rio);
	return true;
}

bool replay_read_back(struct replay_device *device, uint64_t first_sector, uint64_t sectors)
{
	struct replay_io *rio =
	    take(device, IO_READ, first_sector * SECTOR_BYTES, sectors * SECTOR_BYTES);

	if (rio)
		submit(device, rio);
	return rio;
}

/* ---- open ---- */

static int init_device(struct replay *replay, unsigned index, struct err *err)
{
	struct replay_device *device = &replay->devices[index];
	const struct workload_device *from = &replay->env.devices[index];
	int r;

	device->replay = replay;
	device->device = from;
	device->area.volume = rng_stream_of(from->volume);
	page_run_uuid(replay->env.seed, loop_wall_ns(replay->env.loop), device->area.run);
	device->active = calloc(replay->depth, sizeof(struct replay_io *));
	if (!device->active)
		return err_set(err, -ENOMEM, "no memory for volume %s", from->volume);
	if (!replay->config.verify)
		return 0;
	r = sector_map_init(&device->map, from->layer->size_bytes / SECTOR_BYTES, from->known_zero);
	return r < 0 ? err_set(err, r, "no memory for the sector map of volume %s", from->volume)
		     : 0;
}

static int init_memory(struct replay *replay)
{
	size_t half = replay->config.max_io_bytes;
	struct rng rng;

	replay->ios = calloc(replay->depth, sizeof *replay->ios);
	replay->devices = calloc(replay->env.device_count, sizeof *replay->devices);
	if (!replay->ios || !replay->devices)
		return -ENOMEM;
	for (unsigned i = replay->depth; i-- > 0;) {
		replay->ios[i].next = replay->free_ios;
		replay->free_ios = &replay->ios[i];
	}
	if (replay->config.verify) {
		replay->pool = buf_pool_new(POOL_BYTES);
		return replay->pool ? 0 : -ENOMEM;
	}
	replay->shared = aligned_alloc(4096, 2 * half);
	if (!replay->shared)
		return -ENOMEM;
	rng_init(&rng, replay->env.seed, rng_stream_of("replay-data"));
	rng_fill(&rng, replay->shared, 2 * half);
	return 0;
}

int replay_io_init(struct replay *replay, struct err *err)
{
	int r = init_memory(replay);

	if (r < 0)
		return err_set(err, r, "no memory for %u I/Os in flight", replay->depth);
	for (unsigned i = 0; r == 0 && i < replay->env.device_count; i++)
		r = init_device(replay, i, err);
	return r;
}

void replay_io_done(struct replay *replay)
{
	for (unsigned i = 0; replay->devices && i < replay->env.device_count; i++) {
		sector_map_done(&replay->devices[i].map);
		free(replay->devices[i].active);
	}
	buf_pool_free(replay->pool);
	free(replay->devices);
	free(replay->ios);
	free(replay->shared);
}
