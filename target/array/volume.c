/* SPDX-License-Identifier: MIT
 *
 * Volumes: range, thin space, the way of a request to the members.
 */
#include "target/array/volume.h"

#include <errno.h>

#include "base/bytes.h"
#include "target/array/page_move.h"

_Static_assert(PART_LIMIT + UNMAPS_MAX <= UINT16_MAX, "in_flight counts them in 16 bits");

/* ---- completions ---- */

static void pages_release(struct volume *volume, uint32_t first, uint32_t count)
{
	bool idle = false;
	for (struct page_entry *entry = &volume->map.entries[first]; count > 0; count--, entry++) {
		entry->in_flight--;
		idle |= entry->leaving && entry->in_flight == 0;
	}
	if (idle)
		volume_wake(volume);
}

/* Moves of the pages that a write changed must know: their copies are out of date. */
static void pages_written(struct volume *volume, const struct part *part)
{
	uint64_t within = part->io.offset_bytes % POOL_PAGE_BYTES, done = 0;

	for (uint32_t i = 0; i < part->count; i++) {
		const struct page_entry *entry = &volume->map.entries[part->first + i];
		uint64_t size = MIN_OF(POOL_PAGE_BYTES - within, part->io.length_bytes - done);
		if (entry->moving)
			mover_written(volume->pool->mover, entry, within, size);
		done += size;
		within = 0;
	}
}

static void part_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct volume *volume = io->owner;
	struct member *member = part->target;
	int status = io->status;

	if (status) {
		member->counters.errors++;
		if (!part->fan || part->fan->status == 0)
			volume->counters.errors++;
	}
	ages_end(&member->ages, part->round);
	if (part->began_ns)
		member_sample_end(member, part->began_ns);
	if (io->op == IO_WRITE)
		pages_written(volume, part);
	pages_release(volume, part->first, part->count);
	part_end(&volume->parts, part, status);
}

static void end(struct volume *volume, struct io *io, int status)
{
	if (status)
		volume->counters.errors++;
	io_complete(io, status);
}

/* ---- space ---- */

static int take_page(struct volume *volume, uint32_t index)
{
	struct page_entry *entry = &volume->map.entries[index];
	unsigned slot;
	uint32_t page;

	int rc = pool_choose(volume->pool, volume->member_pages, &slot);
	if (rc == 0)
		rc = member_take_page(volume->pool->members[slot], volume->id, index, &page);
	if (rc)
		return rc;
	entry->page = page;
	entry->member = (uint8_t)slot;
	entry->generation = 0;
	volume->member_pages[slot]++;
	volume->map.mapped++;
	return 0;
}

static int sync_members(struct volume *volume)
{
	int rc = 0;
	for (unsigned i = 0; i < volume->pool->member_count; i++) {
		int one = volume->member_pages[i] ? member_sync(volume->pool->members[i]) : 0;
		rc = rc ? rc : one;
	}
	return rc;
}

int volume_take_pages(struct volume *volume, uint32_t first, uint32_t last)
{
	bool taken = false;
	int rc = 0;
	for (uint32_t i = first; rc == 0 && i <= last; i++) {
		if (volume->map.entries[i].page != PAGE_NONE)
			continue;
		rc = take_page(volume, i);
		taken = true;
	}
	int synced = taken ? sync_members(volume) : 0;
	if (taken)
		pool_check_space(volume->pool);
	return rc ? rc : synced;
}

/* ---- reads and writes ---- */

static void part_submit(struct volume *volume, struct part *part)
{
	struct member *member = part->target;
	part->began_ns = member_sample_begin(member);
	part->round = ages_begin(&member->ages);
	io_submit(&member->layer, &part->io);
}

/* The usual case: one page, mapped. */
static bool start_one(struct volume *volume, struct io *io, uint32_t index)
{
	struct page_entry *entry = &volume->map.entries[index];
	struct part *part;

	if (entry->page == PAGE_NONE || entry->leaving)
		return false;
	int rc = part_take(&volume->parts, io, 1, &part);
	if (rc) {
		end(volume, io, rc);
		return true;
	}
	(void)part_fill(
	    part, 0, entry->page * POOL_PAGE_BYTES + (io->offset_bytes - index * POOL_PAGE_BYTES),
	    io->length_bytes);
	part->io.flags |= volume->io_flags;
	part->io.done = part_done;
	part->io.owner = volume;
	part->target = volume->pool->members[entry->member];
	part->first = index;
	part->count = 1;
	entry->in_flight++;
	page_map_warm(&volume->map, index, 1);
	part_submit(volume, part);
	return true;
}

/* Fills the parts of IO, a mapped run each, and holds their pages; holes read as zeros. */
static int fill_parts(struct volume *volume, struct io *io, struct part *part)
{
	int rc = 0;
	for (uint64_t done = 0; done < io->length_bytes;) {
		struct page_extent run =
		    page_map_extent(&volume->map, io->offset_bytes + done, io->length_bytes - done);
		if (run.mapped) {
			int one = part_fill(part, done, run.offset_bytes, run.length_bytes);
			rc = rc ? rc : one;
			part->io.flags |= volume->io_flags;
			part->io.done = part_done;
			part->io.owner = volume;
			part->target = volume->pool->members[run.member];
			part->first = run.first;
			part->count = run.count;
			for (uint32_t i = 0; i < run.count; i++)
				volume->map.entries[run.first + i].in_flight++;
			page_map_warm(&volume->map, run.first, run.count);
			part = (struct part *)part->io.link;
		} else if (!(io->flags & IO_BLIND)) {
			iov_zero(io->iov, io->iov_count, done, run.length_bytes);
		}
		done += run.length_bytes;
	}
	return rc;
}

static unsigned count_runs(struct volume *volume, const struct io *io)
{
	unsigned count = 0;
	for (uint64_t done = 0; done < io->length_bytes;) {
		struct page_extent run =
		    page_map_extent(&volume->map, io->offset_bytes + done, io->length_bytes - done);
		count += run.mapped;
		done += run.length_bytes;
	}
	return count;
}

/* Has IO been dealt with, because a page of its range is closed or frozen? */
static bool shut_out(struct volume *volume, struct io *io, uint32_t first, uint32_t last)
{
	for (uint32_t i = first; i <= last; i++) {
		unsigned access = volume->map.entries[i].leaving;
		if (access == PAGE_CLOSED) {
			volume_hold(volume, io);
			return true;
		}
		if (access == PAGE_FROZEN && io->op == IO_WRITE) {
			end(volume, io, -EIO);
			return true;
		}
	}
	return false;
}

static void start_transfer(struct volume *volume, struct io *io)
{
	uint32_t first = (uint32_t)(io->offset_bytes / POOL_PAGE_BYTES);
	uint32_t last = (uint32_t)((io->offset_bytes + io->length_bytes - 1) / POOL_PAGE_BYTES);
	struct part *part = NULL, *next;

	if (first == last && start_one(volume, io, first))
		return;
	if (shut_out(volume, io, first, last))
		return;
	int rc = io->op == IO_WRITE ? volume_take_pages(volume, first, last) : 0;
	/* A move's copy must not take the space of what is written: it is given up for that. */
	if (rc == -ENOSPC && mover_reclaim(volume->pool->mover)) {
		volume_hold(volume, io);
		return;
	}
	unsigned count = rc ? 0 : count_runs(volume, io);
	if (count > 0)
		rc = part_take(&volume->parts, io, count, &part);
	if (rc) {
		end(volume, io, rc);
		return;
	}
	rc = fill_parts(volume, io, part);
	if (count == 0)
		end(volume, io, rc);
	/* All is filled before anything is submitted: completions may change the map. */
	for (; part; part = next) {
		next = (struct part *)part->io.link;
		if (rc == 0)
			part_submit(volume, part);
		else
			io_complete(&part->io, rc);
	}
}

/* ---- flush ---- */

static void flush_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct volume *volume = io->owner;
	if (io->status && (!part->fan || part->fan->status == 0))
		volume->counters.errors++;
	part_end(&volume->parts, part, io->status);
}

/* The map needs none: it was made durable before the data it maps. */
static void start_flush(struct volume *volume, struct io *io)
{
	struct part *part, *next;
	unsigned count = 0, slot = 0;

	for (unsigned i = 0; i < volume->pool->member_count; i++)
		count += volume->member_pages[i] > 0;
	if (count == 0) {
		end(volume, io, 0);
		return;
	}
	int rc = part_take(&volume->parts, io, count, &part);
	if (rc) {
		end(volume, io, rc);
		return;
	}
	for (struct part *one = part; one; one = (struct part *)one->io.link, slot++) {
		while (volume->member_pages[slot] == 0)
			slot++;
		(void)part_fill(one, 0, 0, 0);
		one->io.done = flush_done;
		one->io.owner = volume;
		one->target = volume->pool->members[slot];
	}
	for (; part; part = next) {
		next = (struct part *)part->io.link;
		part_submit(volume, part);
	}
}

/* ---- the layer ---- */

static void start(struct volume *volume, struct io *io)
{
	if (io->op == IO_FLUSH)
		start_flush(volume, io);
	else if (io->length_bytes == 0)
		end(volume, io, 0);
	else if (io->op == IO_UNMAP)
		volume_unmap(volume, io);
	else
		start_transfer(volume, io);
}

static void count_request(struct volume_counters *counters, const struct io *io)
{
	switch (io->op) {
	case IO_READ:
		counters->reads++;
		counters->read_bytes += io->length_bytes;
		break;
	case IO_WRITE:
		counters->writes++;
		counters->write_bytes += io->length_bytes;
		break;
	case IO_FLUSH:
		counters->flushes++;
		break;
	case IO_UNMAP:
		counters->unmaps++;
		break;
	}
}

void volume_hold(struct volume *volume, struct io *io)
{
	io->link = NULL;
	*volume->held.last = io;
	volume->held.last = &io->link;
}

/* Tries each held request once more; those that must wait again are not tried twice. */
static void run_held(struct volume *volume)
{
	struct io *io = volume->held.first, *next;
	volume->held = (struct io_list){NULL, &volume->held.first};
	for (; io; io = next) {
		next = io->link;
		start(volume, io);
	}
}

static void volume_submit(struct io_layer *layer, struct io *io)
{
	struct volume *volume = container_of(layer, struct volume, layer);

	count_request(&volume->counters, io);
	if (!io_in_range(layer, io)) {
		end(volume, io, -ERANGE);
		return;
	}
	if (volume->depth >= SUBMIT_DEPTH_MAX) {
		volume_hold(volume, io);
		volume->wake = true;
		return;
	}
	volume->depth++;
	start(volume, io);
	volume->depth--;
	if (volume->wake && volume->depth == 0)
		volume_wake(volume);
}

void volume_wake(struct volume *volume)
{
	volume->wake = true;
	if (volume->depth > 0)
		return; /* the outermost submit or wake sees to it */
	volume->depth++;
	while (volume->wake) {
		struct unmap_list waiting = STAILQ_HEAD_INITIALIZER(waiting);
		volume->wake = false;
		mover_page_idle(volume->pool->mover, volume);
		STAILQ_CONCAT(&waiting, &volume->waiting);
		while (!STAILQ_EMPTY(&waiting)) {
			struct unmap *unmap = STAILQ_FIRST(&waiting);
			STAILQ_REMOVE_HEAD(&waiting, entry);
			volume_unmap_go_on(unmap);
		}
		run_held(volume);
	}
	volume->depth--;
}

/* What is lent keeps its content while pages are moved or given back: nothing is held here. */
static int volume_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
		       struct io_lent *lent)
{
	struct volume *volume = container_of(layer, struct volume, layer);
	int rc = 0;

	if (offset > layer->size_bytes || length > layer->size_bytes - offset)
		return -ERANGE;
	for (uint64_t done = 0; rc == 0 && done < length;) {
		struct page_extent run =
		    page_map_extent(&volume->map, offset + done, length - done);

		if (volume->map.entries[run.first].leaving)
			return -EAGAIN;
		page_map_warm(&volume->map, run.first, run.count);
		rc = run.mapped ? io_lend(&volume->pool->members[run.member]->layer,
					  run.offset_bytes, run.length_bytes, lent)
				: io_lent_add_zeros(lent, run.length_bytes);
		done += run.length_bytes;
	}
	if (rc == 0) {
		volume->counters.reads++;
		volume->counters.read_bytes += length;
	}
	return rc;
}

const struct io_layer_ops volume_layer_ops = {
    .name = "volume",
    .submit = volume_submit,
    .lend = volume_lend,
};
