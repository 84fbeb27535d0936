/* SPDX-License-Identifier: MIT
 *
 * Where the columns of a redundant set's stripes lie: pure functions from a stripe and a column to
 * a drive and an offset on it.
 *
 * A stripe has `data` columns of one chunk each and, after them, `parities` columns that protect
 * them: P, P and Q, or copies of the only data column (mirrors).
 *
 *   FIXED     one or more sets of `width` drives side by side, column c on the set's drive c.
 *             Stripe S belongs to set S mod sets, row S / sets (RAID 1, RAID 10).
 *   ROTATED   the same sets, left-symmetric: P is on drive width - 1 - row mod width, then follow
 *             Q, if there is one, and the data in ring order, so that consecutive chunks lie on
 *             consecutive drives and every drive takes part in long reads (RAID 5, 50, 6, 60).
 *   PERMUTED  declustered: narrow stripes over many drives, with spare slots in every row (ADAPT;
 *             raid_adapt.c says how).
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_LAYOUT_H
#define SANLAB_TARGET_ARRAY_STRIPE_LAYOUT_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "target/array/array.h"

enum stripe_kind { STRIPE_FIXED, STRIPE_ROTATED, STRIPE_PERMUTED };

enum { ADAPT_ORDERS = 64 };

/* The orders of drives that ADAPT's slices use; each twice in a row, so that a rotation of it is a
 * pointer into it. */
struct adapt_map {
	uint8_t order[ADAPT_ORDERS][2 * RAID_DRIVES_MAX];
};

struct stripe_geometry {
	enum stripe_kind kind;
	unsigned drives;
	unsigned sets, width; /* width: columns of a stripe, drives of a set unless PERMUTED */
	unsigned data, parities;
	bool copies; /* data is 1, and the parities are copies of it */
	uint64_t chunk_bytes, stripe_count;
	/* PERMUTED */
	unsigned slots; /* a row's that hold data or parity; the rest is spare */
	unsigned slice_rows, slice_stripes;
	const struct adapt_map *map;
};

/* A stripe found. */
struct stripe_at {
	uint64_t stripe;
	uint64_t offset_bytes; /* on the drives; of the first column's if PERMUTED */
	unsigned base;	       /* the set's first drive */
	unsigned first;	       /* FIXED, ROTATED: P's drive within the set; PERMUTED: a slot */
	const uint8_t *order;  /* PERMUTED: the drive of each slot of the row */
};

struct stripe_place {
	unsigned drive;
	uint64_t offset_bytes;
};

static inline uint64_t stripe_data_bytes(const struct stripe_geometry *geometry)
{
	return geometry->data * geometry->chunk_bytes;
}

static inline struct stripe_at stripe_at_permuted(const struct stripe_geometry *geometry,
						  uint64_t stripe)
{
	uint64_t slice = stripe / geometry->slice_stripes;
	uint64_t first = (stripe - slice * geometry->slice_stripes) * geometry->width;
	uint64_t row = first / geometry->slots;
	uint64_t turn = slice / geometry->drives;
	return (struct stripe_at){
	    .stripe = stripe,
	    .offset_bytes = (slice * geometry->slice_rows + row) * geometry->chunk_bytes,
	    .first = (unsigned)(first - row * geometry->slots),
	    .order = &geometry->map->order[turn % ADAPT_ORDERS][slice - turn * geometry->drives],
	};
}

static inline struct stripe_at stripe_at(const struct stripe_geometry *geometry, uint64_t stripe)
{
	if (geometry->kind == STRIPE_PERMUTED)
		return stripe_at_permuted(geometry, stripe);
	assert(geometry->sets > 0);
	uint64_t row = stripe / geometry->sets;
	struct stripe_at at = {
	    .stripe = stripe,
	    .offset_bytes = row * geometry->chunk_bytes,
	    .base = (unsigned)(stripe - row * geometry->sets) * geometry->width,
	};
	if (geometry->kind == STRIPE_ROTATED)
		at.first = geometry->width - 1 - (unsigned)(row % geometry->width);
	return at;
}

static inline struct stripe_place stripe_place(const struct stripe_geometry *geometry,
					       const struct stripe_at *at, unsigned column)
{
	if (geometry->kind == STRIPE_PERMUTED) {
		unsigned slot = at->first + column;
		assert(at->order);
		bool next_row = slot >= geometry->slots;
		return (struct stripe_place){
		    .drive = at->order[next_row ? slot - geometry->slots : slot],
		    .offset_bytes = at->offset_bytes + (next_row ? geometry->chunk_bytes : 0),
		};
	}
	unsigned within = column;
	if (geometry->kind == STRIPE_ROTATED) {
		within =
		    column < geometry->data ? column + geometry->parities : column - geometry->data;
		within += at->first;
		if (within >= geometry->width)
			within -= geometry->width;
	}
	return (struct stripe_place){at->base + within, at->offset_bytes};
}

/* The drive of the row's spare slot INDEX (PERMUTED). */
static inline unsigned stripe_spare_drive(const struct stripe_geometry *geometry,
					  const struct stripe_at *at, unsigned index)
{
	assert(at->order);
	return at->order[geometry->slots + index];
}

/* Sets of equal size, of at least SET_MIN drives, that COUNT drives are divided into by RAID 50
 * (SET_MIN 3) and RAID 60 (4): the fewest, at least two; 0 when there is no division.
 * Capacity comes first, as EqualLogic's does.  Its guides state 22 active drives of 24 for RAID 50
 * but not the sets; 22 = 2 x 11 is the only division that is not all mirrors.  They know no
 * RAID 60: the same rule is used. */
unsigned stripe_sets(unsigned count, unsigned set_min);

#endif
