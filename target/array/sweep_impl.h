/* SPDX-License-Identifier: MIT
 *
 * Background work of a member, inside: sweep.c decides what becomes of each slot, sweep_run.c hands
 * units to the set, sweep_scrub.c keeps the book of a scrub, sweep_meter.h measures.
 *
 * Nothing is started from within a completion or a call of the set: those leave a note and ask for
 * a turn of the loop (sweep_wake), where sweep_turn looks at everything anew.
 */
#ifndef SANLAB_TARGET_ARRAY_SWEEP_IMPL_H
#define SANLAB_TARGET_ARRAY_SWEEP_IMPL_H

#include "target/array/sweep.h"

enum { SWEEP_WINDOW = 4, SWEEP_WINDOW_MAX = 32 };

/* How much is done, and how fast: a mean that forgets what was minutes ago. */
struct sweep_meter {
	uint64_t start_ns, done_bytes;
	uint64_t mark_ns, mark_bytes;
	uint64_t bytes_per_s; /* 0: no mark yet */
};

enum slot_step {
	SLOT_GOOD,    /* nothing to do */
	SLOT_WAIT,    /* out: until due_ns, and then for a drive */
	SLOT_DRAIN,   /* requests on its drive are coming to an end */
	SLOT_CLEAR,   /* its drive is being cleared */
	SLOT_REBUILD, /* units are under way, or wait for their turn */
	SLOT_FLUSH,   /* all is rebuilt and on its way to stable storage */
};

struct sweep_slot {
	struct sweep *sweep;
	unsigned drive; /* SWEEP_NO_DRIVE: distributed spare space */
	unsigned spare; /* the share of distributed spare space it takes, from 1 on; 0: none */
	enum slot_step step;
	bool stale;	  /* missed an update, or was never rebuilt */
	bool erred;	  /* went stale although its drive was there */
	bool anew;	  /* what is under way is for nothing */
	bool all_units;	  /* what its spare space holds elsewhere is not known */
	bool moving_back; /* from distributed spare space: the set has all it needs */
	uint64_t due_ns;
	unsigned attempts; /* rebuilds on this drive that came to nothing */
	unsigned in_flight;
	uint64_t cursor; /* the next unit */
	uint64_t lost_units;
	struct sweep_meter meter;
	struct io io; /* clearing, flushing */
};

struct sweep_run {
	struct raid_unit unit;
	struct sweep *sweep;
	uint64_t generation; /* of the scrub it belongs to, 0: none */
	struct sweep_run *next;
};

struct sweep {
	struct sweep_config config;
	struct raid_protection protection;
	uint64_t unit_count, unit_bytes;
	struct sweep_slot slots[RAID_DRIVES_MAX];
	struct loop_timer timer;
	bool paused, warned;
	struct sweep_run runs[SWEEP_WINDOW_MAX];
	struct sweep_run *idle;
	unsigned in_flight;
	uint64_t pay_ns;   /* the rate limit allows nothing before */
	uint64_t retry_ns; /* the set had no memory: nothing before */
	uint64_t turn_bytes;
	uint64_t rebuilds;
	uint64_t dirty_from; /* units from here on are asked for dirty ones, UINT64_MAX: none */
	uint64_t dirty_due_ns,
	    dirty_wait_ns; /* when they are looked at again, 0: not; after that */
	uint64_t spares_used;
	/* scrub */
	struct scrub_progress scrub;
	uint64_t scrub_cursor, scrub_generation, scrub_due_ns;
	unsigned scrub_in_flight;
	struct sweep_meter scrub_meter;
};

static inline uint64_t sweep_now(const struct sweep *sweep)
{
	return loop_now_ns(sweep->config.loop);
}

static inline struct drive *slot_drive(const struct sweep_slot *slot)
{
	return slot->drive == SWEEP_NO_DRIVE ? NULL : slot->sweep->config.drives[slot->drive];
}

static inline bool slot_failed(const struct sweep_slot *slot)
{
	const struct drive *drive = slot_drive(slot);
	return drive && drive->failed;
}

/* The set lacks this slot's content. */
static inline bool slot_out(const struct sweep_slot *slot)
{
	return !slot->moving_back && (slot->stale || slot_failed(slot));
}

/* Drives that the slot's group can still lose, less than 0: data is out of reach now. */
int sweep_slack(const struct sweep *sweep, unsigned slot);
bool sweep_is_whole(const struct sweep *sweep);

/* Looks at everything at the time NOW at the latest. */
void sweep_wake(struct sweep *sweep, uint64_t at_ns);
/* Starts units for as long as window and rate allow. */
void sweep_pump(struct sweep *sweep);
void sweep_dirty_turn(struct sweep *sweep); /* looks at dirty units again when it is time */
/* The slot that is served first, or NULL. */
struct sweep_slot *sweep_first_rebuild(const struct sweep *sweep);
/* From UNIT on, the first one that holds anything in use; unit_count: none. */
uint64_t sweep_next_unit(const struct sweep *sweep, uint64_t unit);
static inline uint64_t slot_next_unit(const struct sweep_slot *slot)
{
	return slot->all_units ? slot->cursor : sweep_next_unit(slot->sweep, slot->cursor);
}
uint64_t sweep_used_bytes(const struct sweep *sweep);

void sweep_scrub_unit_done(struct sweep *sweep, const struct sweep_run *run);
void sweep_scrub_turn(struct sweep *sweep); /* begins what is due, ends what is done */
int sweep_scrub_start(struct sweep *sweep);
void sweep_scrub_stop(struct sweep *sweep);

void sweep_meter_start(struct sweep_meter *meter, uint64_t now_ns);
void sweep_meter_add(struct sweep_meter *meter, uint64_t now_ns, uint64_t bytes);
/* Percent of TOTAL, and what is left by the present rate (UINT64_MAX: not known). */
void sweep_meter_tell(const struct sweep_meter *meter, uint64_t now_ns, uint64_t total_bytes,
		      double *ret_percent, uint64_t *ret_bytes_per_s, uint64_t *ret_remaining_ns);

#endif
