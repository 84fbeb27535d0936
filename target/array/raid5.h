/* SPDX-License-Identifier: MIT
 *
 * RAID 5 and RAID 50, inside: raid5.c cuts requests into pieces of one stripe and reads what can be
 * read directly; raid5_stripe.c carries out everything that needs parity.
 */
#ifndef SANLAB_TARGET_ARRAY_RAID5_H
#define SANLAB_TARGET_ARRAY_RAID5_H

#include "target/array/raid5_plan.h"
#include "target/array/raid_geometry.h"
#include "target/array/raid_set.h"
#include "target/array/stripe_lock.h"

enum raid5_kind {
	RAID5_READ,  /* of one chunk whose drive cannot be read */
	RAID5_WRITE, /* also UNMAP of a part of a stripe: zeros are written */
	RAID5_UNMAP, /* of a whole stripe */
};

/* A request to one drive of the set. */
struct raid5_leg {
	struct io io;
	struct raid5_op *op;
	struct iovec *heap;
	struct iovec slice[PART_SLICES];
};

/* What an operation needs while it runs; few, because the rows are large. */
struct raid5_work {
	struct raid5_leg *legs; /* one a drive of the set */
	uint8_t *rows;		/* a chunk a drive, and one to spare */
	void **vector;		/* for raid_xor */
	struct raid5_work *next;
};

struct raid5_op {
	struct stripe_lock lock;
	struct raid5 *raid;
	struct io *parent;
	struct fan *fan;
	enum raid5_kind kind;
	unsigned base; /* the set's first drive */
	struct raid5_write write;
	uint64_t row;
	uint64_t skip_bytes; /* the piece's beginning within the parent */
	uint64_t avoid;	     /* drives that answered a read with an error */
	uint64_t sent;	     /* drives that take part in this phase */
	uint64_t failed;     /* those of them that answered with an error */
	unsigned pending;
	void (*phase_done)(struct raid5_op *op);
	struct raid5_plan plan;
	struct raid5_work *work;
	STAILQ_ENTRY(raid5_op) starved_entry;
	struct raid5_op *next; /* while a request is cut up */
};

STAILQ_HEAD(raid5_starved, raid5_op);

struct raid5 {
	struct raid_set set;
	struct raid5_geometry geometry;
	struct stripe_locks locks;
	struct freelist ops;
	struct raid5_work *works; /* idle ones */
	unsigned works_made, works_limit;
	struct raid5_starved starved; /* hold their lock and wait for work space */
	bool feeding;
	uint64_t row_bytes;
	uint8_t *zeros; /* a chunk */
};

/* Fills and queues OP for the piece [SKIP, SKIP + SIZE) of its parent; parent, fan and kind are
 * set by the caller. */
void raid5_op_submit(struct raid5 *raid, struct raid5_op *op, uint64_t skip, uint64_t size);
void raid5_works_free(struct raid5 *raid);

#endif
