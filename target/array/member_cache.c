/* SPDX-License-Identifier: MIT
 *
 * Opening a member's caches over its RAID set, and what controllers and status need of them.
 */
#include "target/array/member_cache.h"

#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"
#include "target/array/cache.h"
#include "target/array/cache_ssd.h"

enum { STRIPE_MAX_BYTES = 64 << 20 }; /* a larger one is not worth waiting for */

/* Data of a whole stripe: what a parity level can write without reading. */
static uint64_t stripe_bytes(const struct member *member, const struct raid_ops *raid,
			     uint64_t chunk_bytes)
{
	uint64_t units = raid->unit_count ? raid->unit_count(member->raid) : 0;
	uint64_t bytes =
	    units ? member->raid->size_bytes / units : chunk_bytes * member->active_count;
	return bytes % chunk_bytes || bytes == 0 || bytes > STRIPE_MAX_BYTES ? chunk_bytes : bytes;
}

/* The drives keep nothing: nor need the caches in front of them. */
static bool forgets(const struct member_config *config)
{
	const struct store_ops *store = config->store_kind ? store_find(config->store_kind) : NULL;

	return store && store->forgets;
}

static int open_ssd(struct loop *loop, struct member *member, const struct member_config *config,
		    uint64_t seed, struct err *err)
{
	const struct member_ssd_config *ssd = &config->ssd;

	if (ssd->count > SSD_DRIVES_MAX)
		return err_set(err, -EINVAL, "member %s: at most %d SSDs can be its cache",
			       member->name, SSD_DRIVES_MAX);
	for (unsigned i = 0; i < ssd->count; i++) {
		char name[96];
		(void)snprintf(name, sizeof name, "%s-ssd%02u", member->name, i);
		struct drive_config drive = {
		    .name = name,
		    .model = drive_model_find(drive_model_names[ssd->model]),
		    .size_bytes = ssd->size_bytes,
		    .timing = config->timing,
		    /* A read cache starts empty: nothing of it is kept. */
		    .store = forgets(config) ? &store_discard_ops : &store_memory_ops,
		    .seed = seed ^ rng_stream_of(name),
		};
		int rc = drive_open(loop, &drive, &member->ssd_drives[i], err);
		if (rc)
			return rc;
		member->ssd_count++;
	}
	struct cache_ssd_config tier = {
	    .drives = member->ssd_drives,
	    .drive_count = member->ssd_count,
	    .page_bytes = ssd->page_bytes,
	    .max_io_bytes = ssd->max_io_bytes,
	    .hollow = forgets(config),
	};
	int rc = cache_ssd_open(&tier, member->top, &member->ssd, err);
	if (rc == 0)
		member->top = cache_ssd_layer(member->ssd);
	return rc;
}

int member_cache_open(struct loop *loop, struct member *member, const struct member_config *config,
		      const struct raid_ops *raid, const struct member_origin *origin, bool fresh,
		      uint64_t seed, struct err *err)
{
	enum cache_mode mode =
	    config->cache.size_bytes ? (enum cache_mode)config->cache.mode : CACHE_NONE;
	int rc = config->ssd.count ? open_ssd(loop, member, config, seed, err) : 0;

	if (rc)
		return rc;
	struct cache_config cache = {
	    .name = member->name,
	    .size_bytes = config->cache.size_bytes,
	    .mode = mode,
	    .read = mode != CACHE_NONE && config->cache.read,
	    .prefetch = mode != CACHE_NONE && config->cache.prefetch,
	    .chunk_bytes = config->chunk_bytes,
	    .stripe_bytes = stripe_bytes(member, raid, config->chunk_bytes),
	    .hollow = forgets(config),
	    .modelled = config->timing == DRIVE_TIMING_MODELLED,
	    .place = origin ? config->store_place : NULL,
	    .owner = origin ? origin->member_uuid : NULL,
	    .committed = origin ? origin->committed : 0,
	    .start = origin ? origin->start : 0,
	    .needed = origin && origin->cached,
	    .fresh = fresh,
	};
	if (mode == CACHE_NONE) {
		/* Without a cache now, but with what one left behind: that must reach the drives.
		 */
		bool dirty = false;
		rc = cache_left_dirty(&cache, &dirty, err);
		if (rc || !dirty)
			return rc;
	}
	rc = cache_open(loop, &cache, member->top, &member->cache, err);
	if (rc == 0)
		member->top = cache_layer(member->cache);
	return rc;
}

bool member_cache_may_hold(const struct member *member, bool serving)
{
	struct cache_status status;

	if (!member_cache_status(member, &status))
		return false;
	return status.dirty_bytes > 0 || (serving && status.configured == CACHE_WRITE_BACK);
}

int member_cache_end(struct member *member, uint64_t number, struct err *err)
{
	struct cache_config left = {
	    .name = member->name,
	    .place = page_journal_place(member->journal),
	    .owner = member->identity.member_uuid,
	    .committed = member->identity.generation,
	    .start = number,
	};
	bool dirty;

	if (member->cache)
		return cache_claim(member->cache, left.owner, left.committed, number, err);
	return cache_left_dirty(&left, &dirty, err);
}

void member_cache_drain(struct member *member)
{
	for (unsigned i = 0; i < member->ssd_count; i++)
		drive_drain(member->ssd_drives[i]);
	if (member->cache)
		cache_drain(member->cache);
}

void member_cache_close(struct member *member)
{
	member->cache = cache_close(member->cache);
	member->ssd = cache_ssd_close(member->ssd);
	for (unsigned i = 0; i < member->ssd_count; i++)
		member->ssd_drives[i] = drive_close(member->ssd_drives[i]);
}

void member_cache_set_mirrored(struct member *member, bool mirrored)
{
	if (member->cache)
		cache_set_mirrored(member->cache, mirrored);
}

void member_cache_set_battery(struct member *member, bool good)
{
	if (member->cache)
		cache_set_battery(member->cache, good);
}

bool member_cache_status(const struct member *member, struct cache_status *ret_status)
{
	if (!member->cache)
		return false;
	cache_status(member->cache, ret_status);
	return true;
}

const struct cache_ssd_counters *member_ssd_counters(const struct member *member)
{
	return member->ssd ? cache_ssd_counters(member->ssd) : NULL;
}
