/* SPDX-License-Identifier: MIT
 *
 * What a set knows of single stripes: which are dirty (a write failed half-way, redundancy and data
 * may not fit together) and which columns are lost (nothing was left to rebuild them from).
 *
 * A hash table of bounded size.  It lies in battery-backed memory where there is a journal, so the
 * marks outlive a restart as they are; an entry is written before the one it replaces is removed.
 * Before anything is written to a stripe there must be room for a mark (stripe_marks_room): so a
 * mark never fails for a write; a set whose table is full refuses writes to further stripes.
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_MARKS_H
#define SANLAB_TARGET_ARRAY_STRIPE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	STRIPE_MARKS_BITS = 14,
	STRIPE_MARKS_SLOTS = 1 << STRIPE_MARKS_BITS,
	STRIPE_MARKS_MAX = STRIPE_MARKS_SLOTS / 4 * 3,
	STRIPE_MARKS_RESERVE = 4096, /* for the writes under way */
};

struct stripe_mark {
	uint64_t key;  /* 0: free; stripe + 1, with the top bit set: dirty */
	uint64_t lost; /* columns */
};
enum { STRIPE_MARKS_BYTES = STRIPE_MARKS_SLOTS * sizeof(struct stripe_mark) };

struct stripe_marks {
	struct stripe_mark *slots;
	unsigned count;
	struct stripe_mark *own; /* to be freed */
};

/* MEMORY: STRIPE_MARKS_BYTES of a journal whose content counts, or NULL.  -ENOMEM. */
int stripe_marks_open(struct stripe_marks *marks, void *memory, uint64_t stripe_count);
void stripe_marks_close(struct stripe_marks *marks);

struct stripe_mark *stripe_marks_slot(const struct stripe_marks *marks, uint64_t stripe);

static inline bool stripe_is_dirty(const struct stripe_marks *marks, uint64_t stripe)
{
	return marks->count && stripe_marks_slot(marks, stripe)->key >> 63;
}
static inline uint64_t stripe_lost(const struct stripe_marks *marks, uint64_t stripe)
{
	return marks->count ? stripe_marks_slot(marks, stripe)->lost : 0;
}
static inline bool stripe_marks_room(const struct stripe_marks *marks)
{
	return marks->count < STRIPE_MARKS_MAX - STRIPE_MARKS_RESERVE;
}

/* Replaces what is known of a stripe.  False: no room. */
bool stripe_marks_set(struct stripe_marks *marks, uint64_t stripe, bool dirty, uint64_t lost);
/* The first marked stripe from FROM on; UINT64_MAX: none. */
uint64_t stripe_marks_next(const struct stripe_marks *marks, uint64_t from);

#endif
