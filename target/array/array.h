/* SPDX-License-Identifier: MIT
 *
 * The array: a group holds pools, a pool holds members, a member holds drives under one RAID set;
 * volumes are spread over up to three members of their pool in 15 MiB pages (EqualLogic's
 * allocation unit, shared domain/arrays.md 1.1).
 *
 * The path of one request: volume (range, thin) -> page map (which member, which page) ->
 * member (counters) -> RAID set (stripe plan) -> drives.
 *
 * Threading: the loop's thread.  Ownership: the group owns all below it.
 */
#ifndef SANLAB_TARGET_ARRAY_ARRAY_H
#define SANLAB_TARGET_ARRAY_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/io.h"
#include "base/loop.h"
#include "target/array/access_config.h"
#include "target/array/cache_config.h"
#include "target/drive/drive.h"

#define POOL_PAGE_BYTES (15 * MIB)

struct cache_ssd_counters;
struct cache_status;
struct group;
struct nvram;
struct pool;
struct member;
struct volume;

/* ---- the lab file's part (schemas in array/config.c, found through group_schema) ---- */

struct member_drives_config {
	int model; /* index into drive_model_names */
	uint64_t count;
	uint64_t spares;
	uint64_t size_bytes; /* per drive; 0: the model's */
	int scheduler;	     /* index into drive_scheduler_names */
};

/* Of a member (style equallogic), and of the group as the default of its members and for the two
 * controllers of style lun. */
struct controllers_config {
	uint64_t count;	      /* member: 1 or 2; 0: 2 */
	uint64_t failover_ns; /* member: 0: as the group says */
	uint64_t transition_ns;
	int failback; /* enum controller_failback */
};

struct member_scrub_config {
	uint64_t every_ns; /* 0: only by hand */
};

enum member_checksums {
	MEMBER_CHECKSUMS_AUTO, /* where the level could repair what they find */
	MEMBER_CHECKSUMS_ON,
	MEMBER_CHECKSUMS_OFF,
};
extern const char *const member_checksums_names[];

struct member_config {
	const char *name;
	int model; /* index into preset_names, where given */
	struct controllers_config controllers;
	struct member_drives_config drives;
	int raid;				     /* index into raid_level_names */
	uint64_t chunk_bytes;			     /* stripe element, default 64 KiB */
	struct cfg_list portals;		     /* struct cfg_portal */
	struct cfg_raw store;			     /* `memory`, or `file: DIR` */
	int timing;				     /* enum drive_timing */
	int checksums;				     /* enum member_checksums */
	uint64_t spare_delay_ns, rebuild_rate_bytes; /* a second; 0: no limit */
	struct member_scrub_config scrub;
	const char *store_kind; /* filled by group_config_check */
	const char *store_place;
	struct member_cache_config cache;
	struct member_ssd_config ssd;
};

/* What a pool does on its own. */
struct balance_config {
	bool capacity;		   /* volumes spread over members by their capacity */
	bool performance;	   /* hot pages leave members that are slow */
	uint64_t every_ns;	   /* a round; 0: none */
	uint64_t rate_bytes_per_s; /* page moves copy no more; 0: no limit */
};

struct pool_config {
	const char *name;
	struct cfg_list members; /* struct member_config */
	struct balance_config balance;
};

struct volume_config {
	const char *name;
	const char *pool;
	uint64_t size_bytes;
	bool thin;
	uint64_t block_bytes;	       /* logical block: 512 or 4096 */
	uint64_t physical_block_bytes; /* 512 or 4096, at least block_bytes */
	bool read_only;		       /* initiators find it write-protected */
	bool removable;		       /* initiators can eject and load it */
	double thin_threshold;	       /* of the pool's space; 0: none */
	bool ssd_cache;		       /* its reads go through the members' SSD tiers */
};

enum group_style { GROUP_STYLE_EQUALLOGIC, GROUP_STYLE_LUN };
extern const char *const group_style_names[];

struct group_config {
	int style;
	struct cfg_portal portal;
	struct controllers_config controllers;
	struct cfg_list pools;	 /* struct pool_config */
	struct cfg_list volumes; /* struct volume_config */
	struct cfg_list access;	 /* struct access_config; none: everybody reaches everything */
	struct chap_config chap;
};
extern const struct cfg_schema group_schema;

/* Cross-checks of a decoded group: unknown pools, duplicate names, two owners of one portal,
 * impossible drive counts, sizes beyond the pool.  Errors are added to CFG. */
void group_config_check(struct cfg *cfg, struct group_config *config);

/* ---- RAID ---- */

extern const char *const raid_level_names[]; /* NULL-terminated */

enum { RAID_DRIVES_MAX = 64, RAID_DISTRIBUTED_SPARES = 2 };

struct raid_config {
	struct drive *const *drives; /* active drives, without spares */
	unsigned drive_count;	     /* at most RAID_DRIVES_MAX */
	uint64_t chunk_bytes;
	/* Drives (bit = index) whose content is out of date because they missed a write; the set
	 * leaves them alone until they are rebuilt.  STALE is told, before the write that was
	 * missed is acknowledged, of each drive that joins them; NULL where nothing persists.  When
	 * it fails, the drive would be believed after a restart: the set then acknowledges no
	 * update any more, so that nothing counts that such a drive has not. */
	uint64_t stale_mask;
	int (*stale)(void *arg, unsigned drive);
	/* Told when an update failed half-way: dirty_unit finds its place, until it is mended. */
	void (*dirty)(void *arg);
	void *stale_arg; /* of both */
	/* Where updates are noted before they go to the drives, so that none is left half-way by a
	 * crash (no write hole); NULL where nothing outlives the process.  The set recovers from it
	 * when it is opened. */
	struct nvram *journal;
	/* Slots whose content is on distributed spare space (see raid_protection).  Where each of
	 * them is there the journal knows: one that it does not know of becomes stale. */
	uint64_t spared_mask;
	bool hollow; /* the drives keep nothing: redundancy need not be worked out, only written */
};

/* Background work on a set goes unit by unit: a row of stripes over all sets side by side, or one
 * stripe where they are declustered.  A unit excludes updates of the same place while it runs, so
 * it always sees, and leaves, consistent content. */
enum raid_unit_kind {
	RAID_UNIT_REBUILD, /* work out what SLOT should hold there and write it */
	RAID_UNIT_VERIFY,  /* read everything; rewrite what is wrong or cannot be read */
};

struct raid_unit {
	enum raid_unit_kind kind;
	unsigned slot; /* of the drive to be rebuilt */
	uint64_t unit;
	void (*done)(struct raid_unit *unit);
	void *owner;
	/* valid in done */
	/* 0; -EIO: too little is left to work it out (a column that could not be rebuilt is noted,
	 * reads of it end with -EIO until it is written or can be worked out again); -ENODEV:
	 * SLOT's drive failed or missed an update; -EBUSY: no memory or space just now, to be
	 * tried again */
	int status;
	uint64_t moved_bytes; /* read and written: what a rate limit counts */
	unsigned repaired;    /* VERIFY: drives that got something rewritten */
	bool inconsistent;    /* VERIFY: redundancy did not fit although all could be read */
};

/* What a level's redundancy covers: consecutive slots in groups, and how many of a group may be out
 * at a time without loss of data. */
struct raid_protection {
	unsigned group_drives;
	unsigned tolerance;
	/* Drives whose content fits into spare space spread over the others, at most
	 * RAID_DISTRIBUTED_SPARES: slot_replace with no drive has a slot rebuilt there, on the
	 * lowest such spare that is free, and later with a drive moved back.  What spare space
	 * held before is not cleared, so every unit has to be rebuilt. */
	unsigned distributed_spares;
};

/* One level: one file, behind one table (raid.c).
 * Drives fail and answer errors at any time: a set of a redundant level goes on as long as the
 * level's tolerance allows, and beyond it ends requests to the affected ranges with -EIO. */
struct raid_ops {
	const char *name;
	/* 0, or -EINVAL with the reason ("raid10 needs an even number of drives, at least 2"). */
	int (*check)(unsigned drive_count, char *why, size_t why_size);
	int (*open)(struct loop *loop, const struct raid_config *config,
		    struct io_layer **ret_layer, struct err *err);
	/* Usable bytes of a set whose drives have DRIVE_BYTES each. */
	uint64_t (*usable_bytes)(unsigned drive_count, uint64_t drive_bytes, uint64_t chunk_bytes);
	struct raid_protection (*protection)(unsigned drive_count);
	/* What raid_config.journal needs at least. NULL: the level has no use for one. */
	size_t (*journal_bytes)(unsigned drive_count, uint64_t chunk_bytes);
	/* ---- of an open set; NULL for a level without redundancy ---- */
	/* Unit U holds the set's bytes from U * size_bytes / unit_count on, and all that protects
	 * them. */
	uint64_t (*unit_count)(const struct io_layer *layer);
	/* Units of one rebuild are handed out in ascending order, several may be under way. */
	void (*unit_run)(struct io_layer *layer, struct raid_unit *unit);
	/* Puts DRIVE, the one that was there or another, into SLOT: nothing on it is trusted, but
	 * it takes every update, until slot_good says that all its units have been rebuilt.  A
	 * drive that misses an update meanwhile is told to `stale` anew: its rebuild was for
	 * nothing. */
	void (*slot_replace)(struct io_layer *layer, unsigned slot, struct drive *drive);
	void (*slot_good)(struct io_layer *layer, unsigned slot);
	/* The first unit at or after FROM in which a write failed half-way, or of which something
	 * could not be rebuilt: to be verified, which cures what can be cured.  UINT64_MAX: none.
	 */
	uint64_t (*dirty_unit)(const struct io_layer *layer, uint64_t from);
};
const struct raid_ops *raid_find(const char *name);

/* EqualLogic's division of an array's drives by RAID policy ("raid10", ...): the documented ones
 * only.  -ENOENT: nothing is known of that policy with so many drives. */
struct raid_equallogic {
	unsigned active, spares;
	unsigned sets; /* the active drives are divided into */
};
int raid_equallogic_layout(const char *policy, unsigned drives, struct raid_equallogic *ret_layout);

/* ---- the running array ---- */

struct member_counters {
	uint64_t reads, writes, read_bytes, write_bytes, errors;
};

struct volume_counters {
	uint64_t reads, writes, read_bytes, write_bytes, flushes, unmaps, errors;
};

/* Builds everything below the group and opens the stores; nothing listens yet. */
int group_open(struct loop *loop, const struct group_config *config, const char *lab_name,
	       uint64_t seed, struct group **ret_group, struct err *err);
struct group *group_close(struct group *group);

size_t group_volume_count(const struct group *group);
struct volume *group_volume(struct group *group, size_t index);
struct volume *group_find_volume(struct group *group, const char *name);
size_t group_member_count(const struct group *group);
struct member *group_member_at(struct group *group, size_t index);

const char *volume_name(const struct volume *volume);
struct io_layer *volume_layer(struct volume *volume); /* submit here */
uint32_t volume_block_bytes(const struct volume *volume);
uint32_t volume_physical_block_bytes(const struct volume *volume);
bool volume_is_thin(const struct volume *volume);
bool volume_is_read_only(const struct volume *volume);
bool volume_is_removable(const struct volume *volume);
uint64_t volume_allocated_bytes(const struct volume *volume);
const struct volume_counters *volume_counters(const struct volume *volume);
const uint8_t *volume_naa(const struct volume *volume); /* 16-byte NAA-6 id, stable for the name */
/* The directory for what is to persist beside the volume; NULL: its pool has no file store. */
const char *volume_state_dir(const struct volume *volume);
/* Is any part of the range mapped?  For GET LBA STATUS: *ret_mapped for the run that begins at
 * OFFSET, *ret_run_bytes its length. */
void volume_map_status(struct volume *volume, uint64_t offset_bytes, bool *ret_mapped,
		       uint64_t *ret_run_bytes);

/* The pool the volume takes its space from, all members together. */
void volume_pool_space(const struct volume *volume, uint64_t *ret_used_bytes,
		       uint64_t *ret_total_bytes);
/* From how much use of the pool on initiators are warned; 0: never. */
unsigned volume_thin_threshold_percent(const struct volume *volume);
/* The slice map: the member that holds the byte at OFFSET (NULL: not mapped yet), and for how many
 * bytes from there on that stays so.  OFFSET is within the volume. */
void volume_slice(const struct volume *volume, uint64_t offset_bytes,
		  const struct member **ret_member, uint64_t *ret_run_bytes);

const char *member_name(const struct member *member);
const struct member_counters *member_counters(const struct member *member);
const char *member_raid_name(const struct member *member); /* the level, as in the lab file */
/* The space that its pages make up, and how much of it volumes have taken. */
void member_pages(const struct member *member, uint64_t *ret_total_bytes, uint64_t *ret_used_bytes);
unsigned member_drive_count(const struct member *member);
struct drive *member_drive(struct member *member, unsigned index);
/* The member's write cache loses or regains its copy in the other controller, or its battery; it
 * writes through while either is missing.  Without a cache they do nothing. */
void member_cache_set_mirrored(struct member *member, bool mirrored);
void member_cache_set_battery(struct member *member, bool good);
/* False without a cache; status in array/cache.h. */
bool member_cache_status(const struct member *member, struct cache_status *ret_status);
/* NULL without an SSD tier; counters in array/cache_ssd.h. */
const struct cache_ssd_counters *member_ssd_counters(const struct member *member);
/* An empty file in place of the one of a drive that failed and whose content does not count: it is
 * missing, or out of date.  The drive returns, to be rebuilt. */
int member_renew_drive(struct member *member, unsigned index, struct err *err);
/* True when the drive takes part in the RAID set with content that is up to date: neither failed
 * nor stale nor a spare. */
bool member_drive_is_good(const struct member *member, unsigned index);

#endif
