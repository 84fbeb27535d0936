/* SPDX-License-Identifier: MIT
 *
 * Marks: open addressing, linear probing, removal by moving later entries back.
 */
#include "target/array/stripe_marks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/drive/nvram.h"

#define DIRTY (UINT64_C(1) << 63)

static unsigned home_of(uint64_t stripe)
{
	return (unsigned)(stripe * UINT64_C(0x9e3779b97f4a7c15) >> (64 - STRIPE_MARKS_BITS));
}

static unsigned next_slot(unsigned slot)
{
	return (slot + 1) % STRIPE_MARKS_SLOTS;
}

static uint64_t stripe_of(const struct stripe_mark *mark)
{
	return (mark->key & ~DIRTY) - 1;
}

/* The stripe's slot, or the free one where it would go. */
struct stripe_mark *stripe_marks_slot(const struct stripe_marks *marks, uint64_t stripe)
{
	unsigned slot = home_of(stripe);
	while (marks->slots[slot].key && stripe_of(&marks->slots[slot]) != stripe)
		slot = next_slot(slot);
	return &marks->slots[slot];
}

static void remove_slot(struct stripe_marks *marks, unsigned hole)
{
	for (unsigned slot = next_slot(hole); marks->slots[slot].key; slot = next_slot(slot)) {
		unsigned home = home_of(stripe_of(&marks->slots[slot]));
		/* Entries between their home and the hole would not be found any more. */
		unsigned distance = (slot - home) % STRIPE_MARKS_SLOTS;
		if (distance < (slot - hole) % STRIPE_MARKS_SLOTS)
			continue;
		marks->slots[hole].lost = marks->slots[slot].lost;
		nvram_order();
		marks->slots[hole].key = marks->slots[slot].key;
		nvram_order();
		hole = slot;
	}
	marks->slots[hole].key = 0;
	marks->slots[hole].lost = 0;
}

bool stripe_marks_set(struct stripe_marks *marks, uint64_t stripe, bool dirty, uint64_t lost)
{
	struct stripe_mark *mark = stripe_marks_slot(marks, stripe);

	if (!dirty && !lost) {
		if (mark->key) {
			remove_slot(marks, (unsigned)(mark - marks->slots));
			marks->count--;
		}
		return true;
	}
	if (!mark->key) {
		if (marks->count == STRIPE_MARKS_MAX)
			return false;
		marks->count++;
	}
	mark->lost = lost;
	nvram_order();
	mark->key = (stripe + 1) | (dirty ? DIRTY : 0);
	return true;
}

uint64_t stripe_marks_next(const struct stripe_marks *marks, uint64_t from)
{
	uint64_t least = UINT64_MAX;
	for (unsigned slot = 0; marks->count && slot < STRIPE_MARKS_SLOTS; slot++)
		if (marks->slots[slot].key && stripe_of(&marks->slots[slot]) >= from)
			least = MIN_OF(least, stripe_of(&marks->slots[slot]));
	return least;
}

/* A crash in the middle of a removal leaves an entry twice, or one behind a hole: all are entered
 * anew.  Garbage after a loss of power is left out where it can be told. */
static int recover(struct stripe_marks *marks, uint64_t stripe_count)
{
	struct stripe_mark *old = marks->slots, *fresh = calloc(STRIPE_MARKS_SLOTS, sizeof *fresh);
	if (!fresh)
		return -ENOMEM;
	marks->slots = fresh;
	for (unsigned slot = 0; slot < STRIPE_MARKS_SLOTS; slot++) {
		if (!old[slot].key || stripe_of(&old[slot]) >= stripe_count)
			continue;
		uint64_t stripe = stripe_of(&old[slot]);
		bool dirty = old[slot].key & DIRTY || stripe_is_dirty(marks, stripe);
		stripe_marks_set(marks, stripe, dirty, old[slot].lost | stripe_lost(marks, stripe));
	}
	if (memcmp(old, fresh, STRIPE_MARKS_BYTES) != 0)
		memcpy(old, fresh, STRIPE_MARKS_BYTES);
	marks->slots = old;
	free(fresh);
	return 0;
}

int stripe_marks_open(struct stripe_marks *marks, void *memory, uint64_t stripe_count)
{
	*marks = (struct stripe_marks){.slots = memory};
	if (memory)
		return recover(marks, stripe_count);
	marks->own = calloc(STRIPE_MARKS_SLOTS, sizeof *marks->own);
	marks->slots = marks->own;
	return marks->own ? 0 : -ENOMEM;
}

void stripe_marks_close(struct stripe_marks *marks)
{
	free(marks->own);
	*marks = (struct stripe_marks){0};
}
