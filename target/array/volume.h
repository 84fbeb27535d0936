/* SPDX-License-Identifier: MIT
 *
 * A volume, inside; private to the room.  volume.c carries reads, writes and flushes,
 * volume_unmap.c gives space back, volume_open.c opens volumes.
 *
 * Every request on a page is counted in the page's entry, so that a page is given back only when
 * nothing is under way on it: a late write must not land in the next owner's data.  While a page is
 * closed (it is given back, or switched to another member), requests to it wait in `held`.
 *
 * Recursion: stores complete within submit, and a submitter may submit its next request from
 * within a completion.  Beyond SUBMIT_DEPTH_MAX such levels requests wait in `held` until the
 * outermost submit has returned to its loop.
 */
#ifndef SANLAB_TARGET_ARRAY_VOLUME_H
#define SANLAB_TARGET_ARRAY_VOLUME_H

#include <sys/queue.h>

#include "target/array/page_map.h"
#include "target/array/part.h"
#include "target/array/pool.h"

enum {
	SUBMIT_DEPTH_MAX = 8,
	UNMAPS_MAX = 1024, /* UNMAP requests under way on a volume */
	NAA_BYTES = 16,
};

struct io_list {
	struct io *first, **last; /* through io.link */
};

/* One UNMAP on its way through the pages of its range, one page at a time. */
struct unmap {
	struct volume *volume;
	struct io *parent;
	uint64_t at_bytes, end_bytes;
	enum unmap_step { UNMAP_NEXT, UNMAP_LEAVE, UNMAP_ZERO, UNMAP_FLUSH } step;
	bool whole;    /* the page at hand is given back */
	bool running;  /* unmap_run is on the stack: completions only leave a note */
	bool io_ended; /* that note */
	struct io io;
	STAILQ_ENTRY(unmap) entry;
};

STAILQ_HEAD(unmap_list, unmap);

struct volume {
	struct io_layer layer;
	char name[64];
	uint64_t id; /* what the page journals know it by */
	struct pool *pool;
	struct page_map map;
	uint32_t member_pages[POOL_MEMBERS_MAX];
	bool thin, read_only, removable;
	unsigned io_flags; /* that its requests carry to the members */
	uint32_t block_bytes, physical_block_bytes;
	unsigned thin_threshold_percent;
	bool moved;		/* since the slice map was last said to have changed */
	uint64_t slice_changes; /* that was said so often */
	uint64_t heat;		/* of all pages, as of the balancer's last round */
	uint8_t naa[NAA_BYTES];
	struct volume_counters counters;
	struct part_pool parts;
	unsigned depth; /* of submit within submit */
	bool wake;	/* held and waiting ones are to be tried again */
	struct io_list held;
	struct freelist unmaps;
	struct unmap_list waiting; /* for a page: to become idle, or to be gone */
};

int volume_open(const struct volume_config *config, const char *lab_name, struct pool *pool,
		struct volume **ret_volume, struct err *err);
struct volume *volume_close(struct volume *volume);

/* Maps the unmapped pages FIRST to LAST.  The map is on stable storage before data goes there. */
int volume_take_pages(struct volume *volume, uint32_t first, uint32_t last);
extern const struct io_layer_ops volume_layer_ops;

/* Starts UNMAP; the range is checked. */
void volume_unmap(struct volume *volume, struct io *io);
/* Tries one of `waiting` again. */
void volume_unmap_go_on(struct unmap *unmap);
/* A page became idle or has gone: those that waited for it try again. */
void volume_wake(struct volume *volume);
/* Lets a request wait; the volume tries it again after the next wake. */
void volume_hold(struct volume *volume, struct io *io);

#endif
