/* SPDX-License-Identifier: MIT
 *
 * The flush map's way to its region of the volume and back: runs of map pages, one at a time.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_flush_map.h"

enum { RUN_PAGES = 64 }; /* 256 KiB */

static void pump(struct ese_flush_map_io *io);

int ese_flush_map_io_init(struct ese_flush_map_io *io, struct ese_flush_map *map)
{
	*io = (struct ese_flush_map_io){.map = map, .content = true};
	io->buf = aligned_alloc(ESE_MAP_PAGE_BYTES, (size_t)RUN_PAGES * ESE_MAP_PAGE_BYTES);
	if (!io->buf)
		return -ENOMEM;
	memset(io->buf, 0, (size_t)RUN_PAGES * ESE_MAP_PAGE_BYTES);
	return 0;
}

void ese_flush_map_io_done(struct ese_flush_map_io *io)
{
	assert(!io->busy);
	free(io->buf);
	io->buf = NULL;
}

/* The next run to be written; clean pages between two dirty ones ride along. */
static bool next_dirty(struct ese_flush_map_io *io)
{
	const struct ese_flush_map *map = io->map;
	uint64_t end;

	while (io->next < map->map_pages && !ese_flush_map_dirty(map, io->next)) {
		/* A word of clean ones at a time. */
		if (io->next % 64 == 0 && map->dirty[io->next / 64] == 0)
			io->next += 64;
		else
			io->next++;
	}
	if (io->next >= map->map_pages)
		return false;
	io->first = io->next;
	end = io->first + 1;
	for (uint64_t i = end; i < map->map_pages && i < io->first + RUN_PAGES; i++)
		if (ese_flush_map_dirty(map, i))
			end = i + 1;
	io->count = end - io->first;
	io->next = end;
	return true;
}

static bool next_any(struct ese_flush_map_io *io)
{
	if (io->next >= io->map->map_pages)
		return false;
	io->first = io->next;
	io->count = MIN_OF(RUN_PAGES, io->map->map_pages - io->first);
	io->next += io->count;
	return true;
}

static void take_in(struct ese_flush_map_io *io)
{
	if (!io->content)
		return;
	for (uint64_t i = 0; i < io->count; i++)
		if (ese_flush_map_decode(io->map, io->first + i, io->buf + i * ESE_MAP_PAGE_BYTES) <
		    0)
			io->bad_pages++;
}

static void io_ended(struct io *ended)
{
	struct ese_flush_map_io *io = ended->owner;
	int status = ended->status;

	if (io->stream)
		stream_account(io->stream, io->submitted_ns, io->submitted_ns,
			       loop_now_ns(io->loop), ended->length_bytes, status);
	io->waiting = false;
	if (status < 0) {
		io->status = status;
		if (!io->loading)
			ese_flush_map_set_dirty(io->map, io->first, io->count);
	} else if (io->loading) {
		take_in(io);
	}
	pump(io);
}

static void submit(struct ese_flush_map_io *io)
{
	uint64_t bytes = io->count * ESE_MAP_PAGE_BYTES;

	if (io->loading) {
		io->reads++;
	} else {
		io->writes++;
		ese_flush_map_set_clean(io->map, io->first, io->count);
		for (uint64_t i = 0; i < io->count && io->content; i++)
			ese_flush_map_encode(io->map, io->first + i,
					     io->buf + i * ESE_MAP_PAGE_BYTES);
	}
	io->iov = (struct iovec){io->buf, bytes};
	io->io = (struct io){
	    .op = io->loading ? IO_READ : IO_WRITE,
	    .offset_bytes = io->offset_bytes + io->first * ESE_MAP_PAGE_BYTES,
	    .length_bytes = bytes,
	    .iov = &io->iov,
	    .iov_count = 1,
	    .done = io_ended,
	    .owner = io,
	};
	io->waiting = true;
	io->submitted_ns = loop_now_ns(io->loop);
	if (io->stream)
		stream_begin(io->stream, io->submitted_ns);
	io_submit(io->layer, &io->io);
}

static void pump(struct ese_flush_map_io *io)
{
	void (*done)(void *arg, int status);

	if (io->pumping)
		return;
	io->pumping = true;
	while (!io->waiting && io->status == 0 && (io->all ? next_any(io) : next_dirty(io)))
		submit(io);
	io->pumping = false;
	if (io->waiting)
		return;
	done = io->done;
	io->busy = false;
	done(io->arg, io->status);
}

static void begin(struct ese_flush_map_io *io, void (*done)(void *arg, int status), void *arg)
{
	assert(!io->busy);
	io->busy = true;
	io->next = 0;
	io->status = 0;
	io->done = done;
	io->arg = arg;
	pump(io);
}

void ese_flush_map_load(struct ese_flush_map_io *io, void (*done)(void *arg, int status), void *arg)
{
	io->loading = io->all = true;
	begin(io, done, arg);
}

void ese_flush_map_persist(struct ese_flush_map_io *io, bool all,
			   void (*done)(void *arg, int status), void *arg)
{
	io->loading = false;
	io->all = all;
	begin(io, done, arg);
}
