/* SPDX-License-Identifier: MIT
 *
 * The journal of updates: before the legs of an update go to the drives they are stored in
 * battery-backed memory, and stay there until all of them have ended.  What is found when a set is
 * opened was under way when the target ended: its legs are written again, so that a stripe is never
 * left half old and half new (no write hole).
 *
 * An update that failed half-way is kept there as well (stripe_kept.c); but not the last slots, so
 * that there are always some for other updates.
 *
 * Layout: a header with the set's shape, what is on distributed spare space, the marks of stripes
 * (stripe_marks.h), then slots of one size, each with room for all columns of a stripe: record,
 * legs, data.  A record counts when its magic number is there and the CRC32C over record, legs and
 * data fits; it is made void by clearing the magic number.  Legs store drive, offset and length;
 * UNMAP has no data.
 *
 * A journal of another shape belongs to a set that is no more, and is begun anew.
 * Threading: one thread.  Bounds: the slots; an update that finds none waits.
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_JOURNAL_H
#define SANLAB_TARGET_ARRAY_STRIPE_JOURNAL_H

#include "base/io.h"
#include "target/array/stripe_layout.h"
#include "target/array/stripe_marks.h"
#include "target/drive/nvram.h"

enum { JOURNAL_SLOTS_MAX = 64, JOURNAL_TWINS = 2 };

struct journal_leg {
	uint32_t column;
	uint32_t drive;
	uint32_t twin; /* a further place of the column */
	uint32_t reserved;
	uint64_t offset_bytes, length_bytes;
	uint64_t data_at; /* within the slot's data */
};

struct journal_record {
	uint64_t magic;
	uint32_t crc; /* of all that follows */
	uint32_t leg_count;
	uint64_t sequence;
	uint64_t stripe;
	uint64_t data_bytes;
	uint32_t unmap;
	uint32_t clean;	 /* it leaves the stripe clean */
	uint64_t missed; /* columns whose drive was out: it is stale from this update on */
	struct journal_leg legs[];
};

struct stripe_journal {
	struct nvram *nvram; /* NULL: there is none */
	uint64_t chunk_bytes;
	uint8_t *spare_of; /* of each slot of the set, see stripe_set.h */
	uint8_t *slots;
	uint64_t slot_bytes, head_bytes; /* head: record and legs */
	unsigned slot_count;
	uint64_t free; /* slots, as a mask */
	uint64_t kept; /* others, whose update failed; with what status */
	int kept_status[JOURNAL_SLOTS_MAX];
	uint64_t due;	  /* of the kept ones, those for which that waits for its lock */
	unsigned retaken; /* those that are tried again just now: they have their place */
	uint64_t sequence;
};

size_t stripe_journal_bytes(const struct stripe_geometry *geometry);
/* Where the marks are, which are zeros unless an earlier set left some. */
void *stripe_journal_open(struct stripe_journal *journal, const struct stripe_geometry *geometry,
			  struct nvram *nvram);

/* An empty record, or NULL: all slots are taken. */
struct journal_record *stripe_journal_take(struct stripe_journal *journal);
/* Adds a leg; data is copied from IOV, COPY_OF is a leg with the same data, or -1. */
void stripe_journal_add(struct stripe_journal *journal, struct journal_record *record,
			const struct journal_leg *leg, const struct iovec *iov, unsigned iov_count,
			int copy_of);
void stripe_journal_commit(struct stripe_journal *journal, struct journal_record *record);
void stripe_journal_release(struct stripe_journal *journal, struct journal_record *record);
/* The data of a leg. */
uint8_t *stripe_journal_data(const struct stripe_journal *journal,
			     const struct journal_record *record, unsigned leg);
/* The bytes of columns that the update writes. */
void stripe_journal_span(const struct stripe_journal *journal, const struct journal_record *record,
			 uint64_t *ret_lo, uint64_t *ret_hi);

/* Keeps an update that failed with STATUS, AGAIN when it was retaken; false: too many are. */
bool stripe_journal_keep(struct stripe_journal *journal, struct journal_record *record, int status,
			 bool again);
/* A kept update is to be tried again; false: it is due already. */
bool stripe_journal_make_due(struct stripe_journal *journal, const struct journal_record *record);
void stripe_journal_not_due(struct stripe_journal *journal, const struct journal_record *record);
/* That is done now, it is kept no more; when it has ended in whatever way, `retaken` goes down. */
void stripe_journal_retake(struct stripe_journal *journal, const struct journal_record *record);
int stripe_journal_kept_status(const struct stripe_journal *journal,
			       const struct journal_record *record);
/* The oldest kept update with a sequence number above AFTER that WANTED is true of, or NULL. */
struct journal_record *stripe_journal_kept(const struct stripe_journal *journal, uint64_t after,
					   bool (*wanted)(const void *arg,
							  const struct journal_record *record),
					   const void *arg);

/* The oldest unfinished update with a sequence number above AFTER, or NULL. */
struct journal_record *stripe_journal_next(const struct stripe_journal *journal, uint64_t after);

#endif
