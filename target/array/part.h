/* SPDX-License-Identifier: MIT
 *
 * Child requests: an io that a layer forwards whole or in pieces.
 *
 * part_take hands out the N parts of a parent in one go (so that a request never starts without
 * the means to finish) chained through io.link; the layer fills each with part_fill, submits it
 * and answers its completion with part_end, which completes the parent after the last one.  The
 * first error wins.  A parent of one part needs no shared state and no slicing of its iovec.
 *
 * Threading: one thread.  Bounds: PART_LIMIT parts a pool; beyond it -EBUSY.
 */
#ifndef SANLAB_TARGET_ARRAY_PART_H
#define SANLAB_TARGET_ARRAY_PART_H

#include "base/io.h"
#include "target/drive/freelist.h"

enum { PART_SLICES = 8, PART_LIMIT = 32768 };

/* What the parts of one parent share. */
struct fan {
	struct io *parent;
	unsigned pending;
	int status;
	uint64_t mask; /* the layer's; 0 at first */
};

struct part {
	struct io io; /* owner and done are the layer's */
	struct io *parent;
	struct fan *fan; /* NULL for an only part */
	/* the layer's, saying where the part went */
	void *target;
	uint32_t first, count;
	uint8_t round;	     /* of member_ages.h */
	uint64_t skip_bytes; /* the part's beginning within the parent */
	uint64_t began_ns;
	struct iovec *heap; /* slices beyond PART_SLICES */
	struct iovec slice[PART_SLICES];
};

struct part_pool {
	struct freelist parts, fans;
};

void part_pool_init(struct part_pool *pool);
void part_pool_done(struct part_pool *pool);

/* COUNT > 0 parts of PARENT, chained through io.link; -EBUSY. */
int part_take(struct part_pool *pool, struct io *parent, unsigned count, struct part **ret_parts);
/* Makes PART the piece of its parent that begins SKIP bytes in, at OFFSET of the layer below.
 * -ENOMEM when an iovec of very many pieces cannot be sliced. */
int part_fill(struct part *part, uint64_t skip_bytes, uint64_t offset_bytes, uint64_t length_bytes);
void part_end(struct part_pool *pool, struct part *part, int status);

/* For layers with children of their own kind: the shared state alone. */
struct fan *fan_take(struct part_pool *pool, struct io *parent, unsigned pending); /* or NULL */
void fan_end(struct part_pool *pool, struct fan *fan, struct io *parent, int status);

/* Slices [SKIP, SKIP + SIZE) of PARENT's iovec into SLICE, or into *RET_HEAP when it does not
 * fit; returns entries or -ENOMEM and points *RET_IOV to them. */
int iov_slice_any(const struct io *parent, uint64_t skip, uint64_t size, struct iovec *slice,
		  unsigned max, struct iovec **ret_heap, const struct iovec **ret_iov);

#endif
