/* SPDX-License-Identifier: MIT
 *
 * The engine of all levels with redundancy: mirrors, P, P + Q, declustered.
 *
 * stripe_set.c opens a set, cuts requests into pieces of one stripe and reads what can be read
 * directly.  All else is an operation on one stripe under a lock on the bytes of its columns that
 * it touches:
 *
 *   lock -> work space -> plan -> read phase -> code -> journal -> write phase -> judge -> unlock
 *
 * stripe_op.c has what operations share (work space, phases, end), stripe_read.c reads through
 * redundancy and their cures, stripe_write.c writes, UNMAP and the journal's replay,
 * stripe_kept.c what failed half-way, stripe_unit.c rebuild and verification.
 *
 * Failures.  A read that fails is planned anew without that column; a medium or checksum error is
 * cured by writing what was worked out.  A write that fails, or a drive that was out, leaves the
 * drive stale when the rest of the set covers it; beyond that, and when the host merely has no
 * space, no drive leaves the set: the update stays in the journal (stripe_kept.c), or, where there
 * is no journal or no room, the stripe is dirty from then on (stripe_marks.h).
 *
 * Slots and drives.  A slot's content is on its own drive, or (ADAPT) on the spare slots of the
 * rows when it has no drive.  While a new drive is filled, for a slot whose content is on spare
 * slots, both places take updates.
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_SET_H
#define SANLAB_TARGET_ARRAY_STRIPE_SET_H

#include "target/array/raid_set.h"
#include "target/array/stripe_code.h"
#include "target/array/stripe_journal.h"
#include "target/array/stripe_layout.h"
#include "target/array/stripe_lock.h"
#include "target/array/stripe_marks.h"
#include "target/array/stripe_plan.h"

#define STRIPE_BIT(index) (UINT64_C(1) << (index))

enum stripe_op_kind {
	STRIPE_READ,  /* of one chunk that cannot be read directly */
	STRIPE_WRITE, /* also UNMAP of a part of a stripe: zeros are written */
	STRIPE_UNMAP, /* of a whole stripe, or of any part of a mirror */
	STRIPE_REBUILD,
	STRIPE_VERIFY,
	STRIPE_REPLAY, /* of an update that the journal has */
};

/* A request to one drive of the set. */
struct stripe_leg {
	struct io io;
	struct stripe_op *op;
	unsigned column, drive;
	bool twin; /* a further place of the column, on a drive that is being filled */
	struct iovec *heap;
	struct iovec slice[PART_SLICES];
};

/* What an operation needs while it runs. */
struct stripe_work {
	struct stripe_leg *legs; /* one a column, then the twins */
	uint8_t *rows;		 /* a chunk a column, and one to spare; NULL: not needed */
	struct stripe_work *next;
};

struct stripe_op {
	struct stripe_lock lock;
	struct stripe_set *set;
	struct io *parent; /* of a request; NULL once it has been answered */
	struct fan *fan;
	struct raid_unit *unit; /* of background work */
	struct journal_record *record;
	enum stripe_op_kind kind;
	struct stripe_at at;
	uint64_t lo, hi;     /* the piece within the stripe's data */
	uint64_t skip_bytes; /* its beginning within the parent */
	uint64_t avoid;	     /* columns that answered a read with an error */
	uint64_t cure;	     /* those of them that are good again once written */
	uint64_t sent;	     /* columns that take part in this phase */
	uint64_t failed;     /* those of them that answered with an error */
	uint64_t moved_bytes;
	int shortage; /* a write failed, but not for its drive: no space, no memory */
	unsigned pending;
	unsigned twins;	  /* legs of this phase */
	unsigned epoch;	  /* of the set, when the write was planned */
	uint64_t out;	  /* columns that could not be written then: there is nothing for them */
	unsigned target;  /* REBUILD: the drive to be written */
	unsigned column;  /* READ, REBUILD: the one wanted */
	bool cleans;	  /* the write leaves the stripe clean */
	bool retaken;	  /* REPLAY: of an update that was kept */
	bool crowd_tried; /* an update kept elsewhere was tried again for this one */
	uint64_t tried;	  /* the last one that was, at this place */
	struct stripe_op *then; /* REPLAY: it waits for this */
	uint64_t at_bytes;	/* READ of what a kept update has: how far it got */
	void (*phase_done)(struct stripe_op *op);
	struct stripe_plan plan;
	struct stripe_work *work;
	STAILQ_ENTRY(stripe_op) waiting_entry;
	struct stripe_op *next; /* while a request is cut up */
};

STAILQ_HEAD(stripe_waiting, stripe_op);

struct stripe_set {
	struct raid_set set;
	struct stripe_geometry geometry;
	struct stripe_shape shape;
	struct stripe_locks locks;
	struct stripe_marks marks;
	struct stripe_journal journal;
	struct freelist ops;
	struct stripe_work *works, *bare_works; /* idle ones: with rows, without */
	unsigned works_made, works_limit, bare_made;
	struct stripe_waiting starved;	   /* hold their lock and wait for work space */
	struct stripe_waiting unjournaled; /* are ready to write and wait for a journal slot */
	bool feeding;
	unsigned legs; /* of a work */
	uint64_t row_bytes;
	uint8_t *zeros; /* a chunk */
	/* Slots whose content is on spare slots: which (index + 1), and whether it is complete. */
	uint8_t spare_of[RAID_DRIVES_MAX];
	uint64_t spared_mask, spare_good_mask;
	unsigned epoch;	  /* changes with what slots are on which drives */
	unsigned replays; /* updates of the journal under way: no read may overtake them */
	struct adapt_map map;
};

/* Where a column is, as things stand. */
struct stripe_target {
	unsigned drive;
	uint64_t offset_bytes;
	bool readable, takes;
	bool collecting; /* on spare slots that are not rebuilt yet */
	unsigned twin_count;
	unsigned twin[JOURNAL_TWINS];
};

/* ---- stripe_set.c ---- */

/* Opens a set of LEVEL whose layout is GEOMETRY. */
int stripe_set_open(const struct raid_ops *level, const struct stripe_geometry *geometry,
		    const struct raid_config *config, struct io_layer **ret_layer, struct err *err);
struct stripe_target stripe_find(const struct stripe_set *stripes, const struct stripe_at *at,
				 unsigned column);
/* Is all content of the set still there when that of SLOTS is not? */
bool stripe_covers(const struct stripe_set *set, uint64_t slots);

/* Of raid_ops, for all levels. */
uint64_t stripe_unit_count(const struct io_layer *layer);
void stripe_unit_run(struct io_layer *layer, struct raid_unit *unit);
void stripe_slot_replace(struct io_layer *layer, unsigned slot, struct drive *drive);
void stripe_slot_good(struct io_layer *layer, unsigned slot);
uint64_t stripe_dirty_unit(const struct io_layer *layer, uint64_t from);

/* ---- stripe_op.c ---- */

/* Begins OP, whose kind, lo, hi and lock range are set; parent, fan or unit too. */
void stripe_op_submit(struct stripe_set *set, struct stripe_op *op, uint64_t stripe,
		      struct stripe_span lock);
void stripe_op_end(struct stripe_op *op, int status);
/* Answers the parent early; the operation goes on. */
void stripe_op_answer(struct stripe_op *op, int status);
void stripe_op_state(const struct stripe_op *op, struct stripe_state *ret_state);
void stripe_works_free(struct stripe_set *set);

static inline uint8_t *stripe_row(const struct stripe_op *op, unsigned column)
{
	return op->work->rows + column * op->set->row_bytes;
}
/* Points COLUMN[i] to SPAN of each row. */
void stripe_rows(const struct stripe_op *op, struct stripe_span span, uint8_t **column);
/* Makes COLUMN's leg a request for SPAN, to or from its row, where the column is now. */
struct stripe_leg *stripe_leg_fill(struct stripe_op *op, unsigned column, enum io_op kind,
				   struct stripe_span span);
/* Submits the legs of MASK, filled before, and those of the twins; PHASE_DONE follows the last. */
void stripe_phase(struct stripe_op *op, uint64_t mask, void (*phase_done)(struct stripe_op *op));
/* Reads SPAN of the columns MASK into their rows. */
void stripe_read_rows(struct stripe_op *op, uint64_t mask, struct stripe_span span,
		      void (*phase_done)(struct stripe_op *op));
/* Takes the failures of a read phase into account; true if there were any. */
bool stripe_reads_failed(struct stripe_op *op);
/* Adds legs for the further places of the columns of MASK, whose legs are filled. */
void stripe_twins_fill(struct stripe_op *op, uint64_t mask);

/* ---- the kinds ---- */

void stripe_read_run(struct stripe_op *op);
void stripe_write_run(struct stripe_op *op);
void stripe_write_journaled(struct stripe_op *op); /* goes on when a slot may be free */
void stripe_unmap_run(struct stripe_op *op);
void stripe_replay_run(struct stripe_op *op);
void stripe_replay_begin(struct stripe_set *set);
/* Writes RECORD's legs again; OP is its own then.  THEN, without its lock, goes on afterwards. */
void stripe_replay_start(struct stripe_op *op, struct stripe_set *set,
			 struct journal_record *record, struct stripe_op *then);

/* ---- stripe_kept.c ---- */

/* Keeps the update of OP that failed half-way with STATUS; false: it cannot. */
bool stripe_keep(struct stripe_op *op, int status);
/* Is an update kept that writes to SPAN of the stripe's columns? */
bool stripe_is_kept(const struct stripe_set *set, uint64_t stripe, struct stripe_span span);
/* The first stripe at or after FROM with one; UINT64_MAX: none. */
uint64_t stripe_kept_next(const struct stripe_set *set, uint64_t from);
/* OP, which has its lock, must wait for one to be tried again; it will be granted anew. */
bool stripe_kept_first(struct stripe_op *op);
/* 0, or why OP, a write or UNMAP, cannot be done: one is still in its way. */
int stripe_kept_refuses(const struct stripe_op *op);
/* A read as if those that are kept had been done. */
void stripe_kept_read(struct stripe_op *op);

void stripe_rebuild_run(struct stripe_op *op);
void stripe_verify_run(struct stripe_op *op);
/* After a read phase and stripe_recover: makes the rows of the columns MASK, as far as that can be;
 * returns those that are there. */
uint64_t stripe_make_rows(struct stripe_op *op, uint64_t mask, struct stripe_span span);

#endif
