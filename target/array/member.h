/* SPDX-License-Identifier: MIT
 *
 * A member: drives under one RAID set, its space in pages, its counters; private to the room.
 *
 * A page that is free reads as zeros: pages are given back only after they were unmapped, so the
 * next volume that takes one never sees the last one's data.
 */
#ifndef SANLAB_TARGET_ARRAY_MEMBER_H
#define SANLAB_TARGET_ARRAY_MEMBER_H

#include "target/array/array.h"
#include "target/array/cache_ssd.h"
#include "target/array/member_ages.h"
#include "target/array/member_gate.h"
#include "target/array/page_journal.h"
#include "target/array/pool_identity.h"
#include "target/array/pool_status.h"
#include "target/array/sweep.h"
#include "target/drive/nvram.h"

struct member {
	struct io_layer layer; /* submit here; passes to the RAID set and counts */
	char name[64];
	struct drive *drives[RAID_DRIVES_MAX];
	unsigned drive_count; /* spares included; they come last in a new member */
	unsigned active_count;
	const char *raid_name; /* the level */
	struct io_layer *raid;
	struct io_layer *top;  /* where requests go: the cache, the SSD tier or the set */
	struct cache *cache;   /* NULL: none */
	struct cache_ssd *ssd; /* NULL: none */
	struct drive *ssd_drives[SSD_DRIVES_MAX];
	unsigned ssd_count;
	struct member_counters counters;
	struct member_gate gate;
	struct page_journal *journal;		    /* NULL: nothing persists */
	struct nvram raid_journal;		    /* of the set's updates, with a file store */
	uint64_t stale_mask;			    /* of slots */
	uint8_t slot_drive[RAID_DRIVES_MAX];	    /* of each slot of the set, see sweep.h */
	struct drive *slot_drives[RAID_DRIVES_MAX]; /* the same, as the set was opened */
	struct sweep *sweep;
	/* The journal could not note that a drive is stale: the set takes no write any more, and a
	 * cache would only fill. */
	bool unsafe;
	/* of a member with a file store */
	struct store_super identity; /* of its drives, but for what is each one's own */
	uint64_t committed;	     /* drives with a smaller generation are out of date */
	uint64_t absent_mask;	     /* drives (not slots) without a file that could be used */
	uint32_t page_count, used_pages;
	uint32_t next_page; /* where the search for a free one begins */
	uint64_t *used;	    /* a bit a page */
	bool draining;	    /* takes no pages: all it has are to go; outlives a restart */
	uint64_t move_ops;  /* of the counters' reads and writes: page moves */
	/* Every SAMPLE_EVERYth request of volumes is timed: one clock call for many requests. */
	struct loop *loop;
	uint32_t sample_every, sample_left; /* UINT32_MAX: nobody wants to know */
	uint64_t latency_sum_ns, latency_count;
	struct member_ages ages; /* of every request of volumes */
};

/* ORIGIN: NULL without a file store. */
int member_open(struct loop *loop, const struct member_config *config,
		const struct member_origin *origin, uint64_t seed, struct member **ret_member,
		struct err *err);
struct member *member_close(struct member *member);
void member_drain(struct member *member); /* see drive_drain */

/* A free page for page VOLUME_PAGE of VOLUME; -ENOSPC, -EIO.  Durable after member_sync. */
int member_take_page(struct member *member, uint64_t volume, uint32_t volume_page,
		     uint32_t *ret_page);
int member_give_page(struct member *member, uint32_t page);
/* A free page for the copy of a page that moves here, and the end of the copy; page_journal.h. */
int member_reserve_page(struct member *member, uint64_t volume, uint32_t volume_page,
			uint16_t generation, uint32_t *ret_page);
int member_own_page(struct member *member, uint32_t page, uint16_t generation);
/* Its content has moved elsewhere; durable at once. */
int member_leave_page(struct member *member, uint32_t page);
int member_sync(struct member *member);

/* May a page be taken there? */
static inline bool member_takes_pages(const struct member *member)
{
	return !member_is_offline(member) && !member->draining &&
	       member->used_pages < member->page_count;
}

/* When a request of a volume begins: the time, or 0 when it is not one that is timed. */
static inline uint64_t member_sample_begin(struct member *member)
{
	if (--member->sample_left > 0)
		return 0;
	member->sample_left = member->sample_every;
	return member->sample_every == UINT32_MAX ? 0 : loop_now_ns(member->loop);
}

static inline void member_sample_end(struct member *member, uint64_t began_ns)
{
	member->latency_sum_ns += loop_now_ns(member->loop) - began_ns;
	member->latency_count++;
}

/* ---- file stores (member_drives.c) ---- */

/* Opens the page map of a member that comes from ORIGIN (member_store.c). */
int member_open_journal(struct member *member, const char *place, struct member_shape *shape,
			const struct member_origin *origin, struct err *err);
/* Opens the memory of the RAID set's journal, where the level has one. */
int member_open_nvram(struct member *member, const char *place, const struct raid_ops *raid,
		      const struct member_origin *origin, struct err *err);
void member_drive_name(const struct member *member, unsigned drive, char *out, size_t size);
/* Finds the drive files, makes those of a new member, and says which may be used (stale_mask,
 * absent_mask).  Refuses what the level does not cover. */
int member_assemble(struct member *member, const char *place, const struct raid_ops *raid,
		    struct err *err);
/* An orderly end, after which nothing is written any more: drives, page map and memories take the
 * number NUMBER, and so on stable storage.  A drive that cannot is out of date from then on. */
int member_end(struct member *member, uint64_t number, struct err *err);

#endif
