/* SPDX-License-Identifier: MIT
 *
 * The flush map: for each page the number of its last acknowledged flush, which the page carries as
 * well.  A page that comes back with another number was lost or is an old one.
 *
 * In memory one byte a page (what was never touched costs nothing).  On the volume
 * map pages of 4 KiB: 0 CRC32C, 4 magic "ESEF", 8 creation UUID (16), 24 database (4), 28 zero (4),
 * 32 map page number, 40 zero (24), 64 entries (4,032).  A map page that was never written reads as
 * zeros: all its pages were never flushed.
 *
 * Writing it back: before a checkpoint is written, the map must hold every flush that the
 * checkpoint builds on; ese_flush_map_persist does that, in sequential runs of up to 256 KiB that
 * bridge clean map pages, so that the map of a database of any size costs one I/O for each GiB of
 * pages or so that has changed.  After a crash a page with a dbtime beyond the checkpoint's is
 * accepted with any number (redo sees every such page and makes the map right); others must agree.
 *
 * A page in flight or with a failed write is `unsure`: old and new are both possible on the
 * volume, while the cache still has it.  Its entry stays at the last acknowledged number.
 *
 * Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_FLUSH_MAP_H
#define SANLAB_HARNESS_WORKLOAD_ESE_FLUSH_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/loop.h"
#include "harness/workload/ese/ese_page.h"
#include "harness/workload/workload.h"

enum {
	ESE_MAP_PAGE_BYTES = 4096,
	ESE_MAP_HEADER_BYTES = 64,
	ESE_MAP_ENTRIES = ESE_MAP_PAGE_BYTES - ESE_MAP_HEADER_BYTES,
};

struct ese_flush_map {
	struct ese_identity identity;
	uint64_t pages;
	uint64_t map_pages;
	uint8_t *flush;	  /* last acknowledged, a byte a page */
	uint64_t *unsure; /* bitmap */
	uint64_t *dirty;  /* bitmap of map pages that differ from the volume */
	uint64_t dirty_count;
	uint64_t failures; /* writes that failed: their numbers are not used again soon */
	unsigned stride;   /* from one flush number to the next: 1, but during redo, which may write
			    * pages whose number on the volume it does not know, a longer one */
};

enum { ESE_FLUSH_STRIDE = 1, ESE_FLUSH_STRIDE_REDO = 101 };

int ese_flush_map_init(struct ese_flush_map *map, const struct ese_identity *identity,
		       uint64_t pages);
void ese_flush_map_done(struct ese_flush_map *map);

static inline uint64_t ese_flush_map_bytes(uint64_t pages)
{
	return (pages + ESE_MAP_ENTRIES - 1) / ESE_MAP_ENTRIES * ESE_MAP_PAGE_BYTES;
}

static inline uint8_t ese_flush_map_get(const struct ese_flush_map *map, uint64_t page)
{
	return map->flush[page];
}
static inline bool ese_flush_map_unsure(const struct ese_flush_map *map, uint64_t page)
{
	return map->unsure[page / 64] >> page % 64 & 1;
}
static inline bool ese_flush_map_dirty(const struct ese_flush_map *map, uint64_t map_page)
{
	return map->dirty[map_page / 64] >> map_page % 64 & 1;
}
void ese_flush_map_set_dirty(struct ese_flush_map *map, uint64_t first, uint64_t count);
void ese_flush_map_set_clean(struct ese_flush_map *map, uint64_t first, uint64_t count);

/* True when what the volume has of PAGE is what the rules say. */
static inline bool ese_flush_map_as_born(const struct ese_flush_map *map, uint64_t page)
{
	return !ese_flush_map_unsure(map, page) &&
	       (map->flush[page] == ESE_FLUSH_NEVER || map->flush[page] == ESE_FLUSH_BORN);
}
/* The number to write PAGE with now; it is unsure until the write ends well. */
uint8_t ese_flush_map_begin(struct ese_flush_map *map, uint64_t page);
void ese_flush_map_end(struct ese_flush_map *map, uint64_t page, uint8_t flush, bool acknowledged);
/* What was found on the volume and is believed. */
void ese_flush_map_adopt(struct ese_flush_map *map, uint64_t page, uint8_t flush);

/* The bytes of one map page, and back: 0, or -EBADMSG: its entries are then all UNKNOWN. */
void ese_flush_map_encode(const struct ese_flush_map *map, uint64_t map_page, void *buf);
int ese_flush_map_decode(struct ese_flush_map *map, uint64_t map_page, const void *buf);

/* Reads or writes the map's region of a volume; embedded in the owner's object, one request at a
 * time. */
struct ese_flush_map_io {
	struct ese_flush_map *map;
	struct io_layer *layer;
	uint64_t offset_bytes;
	struct stream *stream; /* accounts the I/Os; may be NULL */
	struct loop *loop;     /* for its clock */
	bool content;	       /* false: timing only, nothing is in the bytes */
	uint64_t bad_pages;    /* found by load */
	uint64_t writes, reads;
	bool busy;
	/* private */
	struct io io;
	struct iovec iov;
	uint8_t *buf;
	uint64_t next, first, count, submitted_ns;
	bool loading, all, pumping, waiting;
	int status;
	void (*done)(void *arg, int status);
	void *arg;
};

int ese_flush_map_io_init(struct ese_flush_map_io *io, struct ese_flush_map *map); /* -ENOMEM */
void ese_flush_map_io_done(struct ese_flush_map_io *io);
/* Reads the whole map. */
void ese_flush_map_load(struct ese_flush_map_io *io, void (*done)(void *arg, int status),
			void *arg);
/* Writes what has changed (or ALL); what changes meanwhile stays dirty.  After an error what was
 * not written is dirty still. */
void ese_flush_map_persist(struct ese_flush_map_io *io, bool all,
			   void (*done)(void *arg, int status), void *arg);

#endif
