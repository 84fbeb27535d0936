/* SPDX-License-Identifier: MIT
 *
 * How a write to one stripe is done, and what must be read to work a column out: pure planning, no
 * I/O.  Columns are bits of masks: data first, then P, then Q (or the copies of a mirror).
 *
 * A write covers bytes [lo, hi) of the stripe's data.  The hull is the range of bytes within a
 * chunk that it touches in any column; parity changes there only.  By cost in reads:
 *   reconstruct-write  read the data that is not overwritten, code all (none for a full stripe,
 *                      none for a mirror)
 *   read-modify-write  read the old data and the old parity, apply the difference
 *   rebuild-write      when columns cannot be read of which the write covers only a part: read
 *                      everything else, work out their old content first, then code all
 *   data only          no parity can be kept: its drives are out, or it is worth nothing because
 *                      too much of the stripe cannot be read
 * What cannot be read again after the write, not even through parity, is not written.
 *
 * A dirty stripe's parity is not trusted (a write failed half-way): it is never read.
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_PLAN_H
#define SANLAB_TARGET_ARRAY_STRIPE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum stripe_method {
	STRIPE_DATA_ONLY,
	STRIPE_RECONSTRUCT_WRITE,
	STRIPE_READ_MODIFY_WRITE,
	STRIPE_REBUILD_WRITE,
};

struct stripe_span {
	uint64_t lo, hi; /* bytes within a chunk; empty when equal */
};

struct stripe_shape {
	unsigned data, parities;
	bool copies;
	uint64_t chunk_bytes;
};

struct stripe_state {
	uint64_t unreadable; /* columns that cannot be read */
	uint64_t absent;     /* a part of them: not even after they were written */
	uint64_t out;	     /* a part of those: they cannot be written either */
	bool dirty;
};

struct stripe_plan {
	enum stripe_method method;
	struct stripe_span hull;
	uint64_t read_mask;
	uint64_t write_mask; /* columns that get new content, OUT ones included */
	uint64_t lost;	     /* data columns to be worked out from those that are read */
	bool spoils;	     /* parity is left behind: the stripe becomes dirty */
};

static inline uint64_t stripe_mask(unsigned columns)
{
	return columns >= 64 ? UINT64_MAX : (UINT64_C(1) << columns) - 1;
}
static inline uint64_t stripe_data_mask(const struct stripe_shape *shape)
{
	return stripe_mask(shape->data);
}
static inline uint64_t stripe_all_mask(const struct stripe_shape *shape)
{
	return stripe_mask(shape->data + shape->parities);
}

/* Bytes of the COLUMN-th chunk that a write of [LO, HI) covers. */
struct stripe_span stripe_written(uint64_t chunk_bytes, uint64_t lo, uint64_t hi, unsigned column);
struct stripe_span stripe_hull(uint64_t chunk_bytes, uint64_t lo, uint64_t hi);

/* HULL: that of [LO, HI), or more.  -EIO: more is lost than parity makes up for. */
int stripe_plan_write(const struct stripe_shape *shape, uint64_t lo, uint64_t hi,
		      struct stripe_span hull, const struct stripe_state *state,
		      struct stripe_plan *ret_plan);
/* To have the content of the columns WANTED: read_mask and lost are set, hull is left to the
 * caller.  After `lost` is worked out all data is known, unless only what can be read was wanted.
 * -EIO likewise. */
int stripe_plan_read(const struct stripe_shape *shape, uint64_t wanted,
		     const struct stripe_state *state, struct stripe_plan *ret_plan);

#endif
