/* SPDX-License-Identifier: MIT
 *
 * Background work of a member over its RAID set: hot spares, rebuild, scrub.
 *
 * A drive that fails, or misses an update, leaves its slot of the set exposed.  After a delay (a
 * drive pulled by mistake may come back) a spare takes the slot, is cleared and rebuilt; what
 * returns later becomes a spare itself.  A drive that returns before that having missed updates is
 * rebuilt in place.  Without a spare the slot waits for whichever drive comes first.  The most
 * exposed slot is served first, and a scrub only while nothing is to be rebuilt.
 *
 * Only places in use are rebuilt and checked: elsewhere all drives of the set hold zeros, to which
 * a target is cleared before.
 *
 * Persistence: a slot's new drive is recorded before the set uses it, and that it is up to date
 * after its content is on stable storage.  A rebuild that is cut off begins anew after a restart.
 *
 * Few units are under way at a time and the loop gets its turn between them, so that requests of
 * initiators come first.  Threading: the loop's thread.  Ownership: the member's.  Units: bytes,
 * ns.
 */
#ifndef SANLAB_TARGET_ARRAY_SWEEP_H
#define SANLAB_TARGET_ARRAY_SWEEP_H

#include "target/array/array.h"

/* ---- what an administrator sees and does ---- */

enum member_state {
	MEMBER_HEALTHY,
	MEMBER_DEGRADED,   /* a drive is out, nothing is being rebuilt */
	MEMBER_REBUILDING, /* content is complete, redundancy is being restored */
	MEMBER_FAILED,	   /* more drives are out than the level tolerates */
};
extern const char *const member_state_names[]; /* "healthy", ..., NULL */

enum member_drive_state {
	MEMBER_DRIVE_ONLINE,
	MEMBER_DRIVE_SPARE,
	MEMBER_DRIVE_REBUILDING,
	MEMBER_DRIVE_STALE, /* out of date, not being rebuilt yet */
	MEMBER_DRIVE_FAILED,
};
extern const char *const member_drive_state_names[]; /* "online", ..., NULL */

struct rebuild_progress {
	bool running;	  /* there is a rebuild; the fields below are of the one served first */
	bool paused;	  /* by hand */
	unsigned slot;	  /* of the RAID set */
	unsigned drive;	  /* of the member, or SWEEP_NO_DRIVE: distributed spare space */
	unsigned waiting; /* further slots that are out: for their turn, or for a drive */
	double percent;
	uint64_t bytes_per_s;  /* of the target drive */
	uint64_t remaining_ns; /* UINT64_MAX: not known */
	uint64_t lost_bytes;   /* could not be worked out so far */
	uint64_t completed;    /* rebuilds since the member was opened */
};

struct scrub_place {
	uint64_t offset_bytes, length_bytes; /* on the member */
	unsigned repaired;		     /* drives that got something rewritten there */
	bool inconsistent;		     /* parity or mirror did not fit */
	bool lost;			     /* too little could be read: not repaired */
};
enum { SCRUB_PLACES_MAX = 64, SWEEP_NO_DRIVE = RAID_DRIVES_MAX };

struct scrub_progress {
	bool running;
	bool waiting; /* for the set to be whole */
	bool paused;  /* by hand */
	double percent;
	uint64_t bytes_per_s; /* of the member's space */
	uint64_t remaining_ns;
	uint64_t completed; /* scrubs since the member was opened */
	/* of the running scrub, else of the last one */
	uint64_t started_ns, ended_ns; /* on the loop's clock; 0: not yet */
	uint64_t checked_bytes;
	uint64_t units_checked, units_repaired, units_inconsistent, units_lost;
	unsigned place_count; /* the first SCRUB_PLACES_MAX of them are told */
	struct scrub_place places[SCRUB_PLACES_MAX];
};

enum member_state member_state(const struct member *member);
enum member_drive_state member_drive_state(const struct member *member, unsigned drive);
/* The slot of the set that DRIVE has, or -1: a spare. */
int member_drive_slot(const struct member *member, unsigned drive);
void member_rebuild_progress(const struct member *member, struct rebuild_progress *ret_progress);
void member_scrub_progress(const struct member *member, struct scrub_progress *ret_progress);
/* -ENOTSUP: the level has no redundancy.  -EALREADY: one is running. */
int member_scrub_start(struct member *member);
void member_scrub_stop(struct member *member); /* what it found so far stays to be read */
/* Pauses or resumes rebuild and scrub. */
void member_background_pause(struct member *member, bool paused);
void member_set_rebuild_rate(struct member *member, uint64_t bytes_per_s); /* 0: no limit */

/* ---- what the member gives and gets ---- */

struct sweep;

struct sweep_config {
	struct loop *loop;
	const char *name; /* the member's, for the log */
	const struct raid_ops *ops;
	struct io_layer *set;
	struct drive *const *drives; /* all of the member; outlives the sweep */
	unsigned drive_count, slot_count;
	const uint8_t *slot_drive; /* of each slot, SWEEP_NO_DRIVE: distributed spare space */
	uint64_t stale_mask;	   /* of slots */
	uint64_t spare_delay_ns;
	uint64_t rate_bytes_per_s; /* of rebuild and scrub together, read and written; 0: none */
	unsigned window;	   /* units under way; 0: the usual number */
	uint64_t scrub_every_ns;   /* 0: only by hand */
	void *arg;
	bool spares_used; /* distributed spare space may hold something already */
	/* SLOT gets DRIVE (or SWEEP_NO_DRIVE), all of it out of date: durable when it returns 0.
	 * NULL: nothing persists. */
	int (*assign)(void *arg, unsigned slot, unsigned drive);
	/* SLOT is up to date: durable when it returns 0. */
	int (*fresh)(void *arg, unsigned slot);
	/* The first byte at or after OFFSET that is in use, UINT64_MAX: none; how many are.
	 * NULL: all. */
	uint64_t (*next_used)(void *arg, uint64_t offset_bytes);
	uint64_t (*used_bytes)(void *arg);
};

int sweep_open(const struct sweep_config *config, struct sweep **ret_sweep);
/* All that is under way on the set must have ended. */
struct sweep *sweep_close(struct sweep *sweep);
/* The drive at INDEX failed or returned. */
void sweep_drive_changed(struct sweep *sweep, unsigned index);
/* The set tells that SLOT missed an update.  May be called from within the set. */
void sweep_slot_stale(struct sweep *sweep, unsigned slot);
/* An update of the set failed half-way: its place is looked at after a while, and again, ever more
 * seldom, until it is mended.  May be called from within the set. */
void sweep_dirty(struct sweep *sweep);

#endif
