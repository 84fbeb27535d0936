/* SPDX-License-Identifier: MIT
 *
 * Opening the cache with what its memory holds, draining and closing it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/cache_impl.h"

enum { FRAMES_MIN = 16 };

static void timer_due(void *arg)
{
	cache_pump(arg);
}

/* ---- the battery-backed memory ---- */

static uint32_t page_bytes_of(const struct cache_config *config)
{
	/* A page never crosses a stripe. */
	return (uint32_t)MIN_OF(config->chunk_bytes, (uint64_t)CACHE_PAGE_MAX_BYTES);
}

static void memory_name(const char *member, char *name, size_t size)
{
	(void)snprintf(name, size, "%s-cache", member);
}

static void note_dirty(void *arg, const struct recovered *found)
{
	*(bool *)arg = true;
}

static bool holds_dirty(struct nvram *nvram, uint32_t frames, uint32_t page_bytes)
{
	struct records records;
	struct record_losses losses;
	bool dirty = false;

	records_init(&records, nvram, frames, page_bytes);
	records_recover(&records, note_dirty, &dirty, &losses);
	return dirty;
}

static int refuse_lost(const char *path, const char *member, struct err *err)
{
	int rc = err_set(err, -ENOENT,
			 "the cache memory %s is lost: it may hold writes that the drives of "
			 "member %s have not",
			 path, member);
	err_hint(err,
		 "restore it; an empty file in its place (truncate -s 0) gives up what it held");
	return rc;
}

/* RET_PATH is for messages.  -ENOENT without ERR: there is none, and none is needed. */
static int find_memory(const struct cache_config *config, char *ret_path, size_t size,
		       struct err *err)
{
	int length = snprintf(ret_path, size, "%s/%s-cache.nvram", config->place, config->name);
	if (length < 0 || (size_t)length >= size)
		return err_set(err, -ENAMETOOLONG, "the name %s in %s is too long", config->name,
			       config->place);
	if (access(ret_path, F_OK) == 0)
		return 0;
	return config->needed ? refuse_lost(ret_path, config->name, err) : -ENOENT;
}

static int claim_memory(const struct cache_config *config, struct nvram *nvram, const char *path,
			struct err *err)
{
	uint32_t frames, page_bytes;

	/* An empty file was put there on purpose. */
	if (config->needed && !nvram->found)
		log_warn("member %s: %s is empty: what it held was given up", config->name, path);
	else if (config->needed && (!nvram_is_claimed(nvram) ||
				    records_probe(nvram, &frames, &page_bytes, NULL) == -ENODATA))
		return refuse_lost(path, config->name, err);
	int rc = nvram_claim(nvram, config->owner, config->committed, config->start, err);
	if (rc) {
		err_where(err, "%s", path);
		err_hint(err, "the files of a directory belong together: restore all of them from "
			      "one copy; an empty file in its place gives up what it held");
	}
	return rc;
}

int cache_left_dirty(const struct cache_config *config, bool *ret_dirty, struct err *err)
{
	uint32_t frames, page_bytes;
	char file[96], path[4096];
	struct nvram nvram;

	*ret_dirty = false;
	if (!config->place)
		return 0;
	int rc = find_memory(config, path, sizeof path, err);
	if (rc)
		return rc == -ENOENT && !config->needed ? 0 : rc;
	memory_name(config->name, file, sizeof file);
	rc = nvram_open(config->place, file, 1, &nvram, err);
	if (rc)
		return rc;
	rc = records_probe(&nvram, &frames, &page_bytes, NULL);
	/* Opening it then tells why it cannot be, or claims it. */
	*ret_dirty = rc == 0 ? holds_dirty(&nvram, frames, page_bytes) : rc == -EILSEQ;
	rc = *ret_dirty ? 0 : claim_memory(config, &nvram, path, err);
	nvram_close(&nvram);
	return rc;
}

static int open_own(struct cache *cache, const struct cache_config *config, size_t bytes,
		    struct err *err)
{
	char file[96], path[4096];
	int rc = config->place ? find_memory(config, path, sizeof path, err) : 0;

	if (rc && (rc != -ENOENT || config->needed))
		return rc;
	memory_name(config->name, file, sizeof file);
	rc = nvram_open(config->place, file, bytes, &cache->own_nvram, err);
	cache->nvram = &cache->own_nvram;
	return rc || !config->place ? rc : claim_memory(config, cache->nvram, path, err);
}

static int open_memory(struct cache *cache, const struct cache_config *config, struct err *err)
{
	uint32_t page_bytes = page_bytes_of(config), held_page_bytes, held_frames;
	uint64_t frames = MAX_OF(config->size_bytes / page_bytes, (uint64_t)FRAMES_MIN);
	int rc = 0;

	if (frames > UINT32_MAX / 2)
		return err_set(err, -EINVAL, "a cache of %llu bytes is too large",
			       (unsigned long long)config->size_bytes);
	cache->nvram = config->nvram;
	if (!cache->nvram)
		rc = open_own(cache, config, records_bytes((uint32_t)frames, page_bytes), err);
	if (rc)
		return rc;
	if (cache->nvram->bytes < records_bytes((uint32_t)frames, page_bytes))
		return err_set(err, -EINVAL, "the memory for cache %s is too small", config->name);
	rc = config->fresh ? -ENODATA
			   : records_probe(cache->nvram, &held_frames, &held_page_bytes, err);
	if (rc == -EILSEQ)
		err_hint(err,
			 "restore it; an empty file in place of %s-cache.nvram gives up what it "
			 "held",
			 config->name);
	if (rc && rc != -ENODATA)
		return rc;
	bool same = rc == 0 && held_frames == frames && held_page_bytes == page_bytes;
	if (rc == 0 && !same && holds_dirty(cache->nvram, held_frames, held_page_bytes)) {
		if (held_page_bytes != page_bytes)
			return err_set(
			    err, -EINVAL,
			    "the cache memory of %s holds dirty pages of %u bytes, not %u",
			    config->name, held_page_bytes, page_bytes);
		/* It was opened with another size: that size stays until all is destaged. */
		frames = held_frames;
		same = true;
	}
	if (!same)
		rc = records_format(cache->nvram, (uint32_t)frames, page_bytes);
	if (rc)
		return err_set(err, rc, "cannot prepare the cache memory of %s", config->name);
	cache->frame_count = (uint32_t)frames;
	cache->page_bytes = page_bytes;
	return 0;
}

/* ---- recovery ---- */

static void forget(struct cache *cache, uint32_t index, uint64_t page)
{
	records_commit(&cache->records, index, page, 0);
}

static void adopt(void *arg, const struct recovered *found)
{
	struct cache *cache = arg;
	struct cache_frame *frame = cache_find(cache, found->page);
	cache_bits beyond = ~bits_range(0, cache->page_sectors);

	if (found->dirty & beyond || found->page >= cache->layer.size_bytes / cache->page_bytes) {
		cache->counters.lost_records++;
		forget(cache, found->frame, found->page);
		return;
	}
	if (frame && frame->epoch > found->sequence) {
		forget(cache, found->frame, found->page);
		return;
	}
	if (frame) { /* only damage leaves two; the older one goes */
		cache_clear_dirty(cache, frame, frame->dirty);
		cache_frame_commit(cache, frame);
		cache_clear_valid(cache, frame, frame->valid);
		cache_frame_settle(cache, frame);
	}
	frame = cache_frame_adopt(cache, found->frame, found->page);
	frame->epoch = found->sequence;
	cache_set_valid(cache, frame, found->dirty);
	cache_set_dirty(cache, frame, found->dirty);
	cache_frame_commit(cache, frame); /* without the sectors that were lost */
	cache->counters.recovered_bytes += (uint64_t)bits_count(found->dirty) * CACHE_SECTOR_BYTES;
}

static void recover(struct cache *cache, bool hollow)
{
	struct record_losses losses;

	records_init(&cache->records, cache->nvram, cache->frame_count, cache->page_bytes);
	cache->records.hollow = hollow;
	records_recover(&cache->records, adopt, cache, &losses);
	cache->counters.torn_records = losses.torn;
	cache->counters.lost_records += losses.lost_records;
	cache->counters.lost_bytes = losses.lost_bytes;
	if (losses.lost_bytes || cache->counters.lost_records)
		log_debug("member %s: damaged cache memory: %llu bytes and %llu records lost",
			  cache->name, (unsigned long long)losses.lost_bytes,
			  (unsigned long long)cache->counters.lost_records);
	cache->free_frame = ARC_NONE;
	for (uint32_t i = cache->frame_count; i-- > 0;) {
		struct cache_frame *frame = &cache->frames[i];
		if (frame->used)
			continue;
		frame->hash_next = cache->free_frame;
		cache->free_frame = i;
	}
}

/* ---- opening ---- */

static int make_tables(struct cache *cache)
{
	uint32_t buckets = 16;

	while (buckets < cache->frame_count)
		buckets *= 2;
	cache->bucket_mask = buckets - 1;
	cache->buckets = malloc(buckets * sizeof *cache->buckets);
	cache->frames = calloc(cache->frame_count, sizeof *cache->frames);
	cache->destages = calloc(CACHE_DESTAGES_MAX, sizeof *cache->destages);
	cache->destage_iov =
	    calloc((size_t)CACHE_DESTAGES_MAX * cache->stripe_pages, sizeof *cache->destage_iov);
	cache->aheads = calloc(CACHE_AHEAD_MAX, sizeof *cache->aheads);
	if (!cache->buckets || !cache->frames || !cache->destages || !cache->destage_iov ||
	    !cache->aheads || arc_init(&cache->arc, cache->frame_count))
		return -ENOMEM;
	for (uint32_t i = 0; i < buckets; i++)
		cache->buckets[i] = ARC_NONE;
	for (unsigned i = 0; i < CACHE_DESTAGES_MAX; i++) {
		struct cache_destage *destage = &cache->destages[i];
		destage->cache = cache;
		destage->iov = cache->destage_iov + (size_t)i * cache->stripe_pages;
		destage->next = cache->idle_destages;
		cache->idle_destages = destage;
	}
	for (unsigned i = 0; i < CACHE_AHEAD_MAX; i++) {
		cache->aheads[i].cache = cache;
		cache->aheads[i].next = cache->idle_aheads;
		cache->idle_aheads = &cache->aheads[i];
	}
	return 0;
}

static void init_lists(struct cache *cache)
{
	TAILQ_INIT(&cache->written);
	TAILQ_INIT(&cache->ready);
	TAILQ_INIT(&cache->room);
	TAILQ_INIT(&cache->flushes);
	TAILQ_INIT(&cache->unmaps);
	TAILQ_INIT(&cache->passing);
	TAILQ_INIT(&cache->barred);
	TAILQ_INIT(&cache->delayed);
	TAILQ_INIT(&cache->failed);
	cache->overflow_last = &cache->overflow;
	freelist_init(&cache->requests, sizeof(struct cache_request), CACHE_REQUESTS_MAX);
	loop_timer_init(&cache->timer, timer_due, cache);
}

static int build(struct cache *cache, const struct cache_config *config, struct err *err)
{
	int rc = open_memory(cache, config, err);
	if (rc)
		return rc;
	if (config->stripe_bytes < cache->page_bytes || config->stripe_bytes % cache->page_bytes ||
	    cache->below->size_bytes % cache->page_bytes)
		return err_set(err, -EINVAL, "a stripe of %llu bytes is not of whole cache pages",
			       (unsigned long long)config->stripe_bytes);
	cache->stripe_pages = (uint32_t)(config->stripe_bytes / cache->page_bytes);
	cache->page_sectors = cache->page_bytes / CACHE_SECTOR_BYTES;
	/* Some are left for reads, and for writes through when the set refuses the dirty ones. */
	cache->dirty_limit = cache->frame_count - cache->frame_count / 8;
	/* Several streams must not push out what the others are about to read. */
	cache->streams.window_max_bytes =
	    MIN_OF((uint64_t)STREAM_WINDOW_BYTES,
		   (uint64_t)cache->frame_count * page_bytes_of(config) / 8);
	rc = make_tables(cache);
	if (rc)
		return err_set(err, rc, "no memory for the cache of %s", config->name);
	plan_init(&cache->plan, cache->stripe_pages * cache->page_sectors, CACHE_AGE_NS,
		  cache->frame_count + CACHE_DESTAGES_MAX);
	recover(cache, config->hollow);
	return 0;
}

int cache_open(struct loop *loop, const struct cache_config *config, struct io_layer *below,
	       struct cache **ret_cache, struct err *err)
{
	struct cache *cache = calloc(1, sizeof *cache);
	if (!cache)
		return err_set(err, -ENOMEM, "no memory for the cache of %s", config->name);
	(void)snprintf(cache->name, sizeof cache->name, "%s", config->name);
	cache->loop = loop;
	cache->below = below;
	cache->layer.size_bytes = below->size_bytes;
	cache->own_nvram.fd = -1;
	cache->configured = config->mode;
	cache->read = config->read;
	cache->prefetch = config->prefetch && config->read;
	cache->modelled = config->modelled;
	cache->mirrored = cache->battery = cache->records_good = true;
	/* What the last start wrote through, and what the set replayed of it, may not be stable:
	 * the first FLUSH goes down. */
	cache->through_count = (config->place || config->nvram) && !config->fresh;
	cache->through = config->mode != CACHE_WRITE_BACK;
	cache->epoch = 1;
	init_lists(cache);
	int rc = build(cache, config, err);
	if (rc) {
		cache_close(cache);
		return rc;
	}
	(void)cache_layer(cache);
	cache_pump(cache);
	*ret_cache = cache;
	return 0;
}

/* ---- closing ---- */

static void end_all(struct cache_request_list *list, int status)
{
	struct cache_request *request;
	while ((request = TAILQ_FIRST(list))) {
		cache_request_leave(request);
		cache_request_end(request, status);
	}
}

/* What is modelled as under way in the controller is done. */
static void end_delayed(struct cache *cache)
{
	struct cache_request *request;
	TAILQ_FOREACH (request, &cache->delayed, entry)
		loop_timer_cancel(cache->loop, &request->timer);
	end_all(&cache->delayed, 0);
}

void cache_drain(struct cache *cache)
{
	cache->draining = true;
	end_delayed(cache);
	cache_retry_failed(cache, true);
	cache->flush_retry_ns = 0;
	cache_pump(cache);
	cache->halted = true;
	for (uint32_t i = 0; i < cache->frame_count; i++)
		if (cache->frames[i].used)
			end_all(&cache->frames[i].waiters, -ENODEV);
	end_all(&cache->ready, -ENODEV);
	end_all(&cache->room, -ENODEV);
	end_all(&cache->flushes, -ENODEV);
	end_all(&cache->barred, -ENODEV);
	while (cache->overflow) {
		struct io *io = cache->overflow;
		cache->overflow = io->link;
		io_complete(io, -ENODEV);
	}
	cache->overflow_last = &cache->overflow;
	loop_timer_cancel(cache->loop, &cache->timer);
}

void cache_halt(struct cache *cache)
{
	cache->halted = true;
	loop_timer_cancel(cache->loop, &cache->timer);
	end_delayed(cache);
}

int cache_claim(struct cache *cache, const uint8_t *owner, uint64_t committed, uint64_t start,
		struct err *err)
{
	return nvram_claim(&cache->own_nvram, owner, committed, start, err);
}

struct cache *cache_close(struct cache *cache)
{
	if (!cache)
		return NULL;
	if (cache->frames)
		cache_drain(cache);
	assert(cache->destages_out == 0 && !cache->flush_out);
	plan_done(&cache->plan);
	arc_done(&cache->arc);
	freelist_done(&cache->requests);
	for (unsigned i = 0; cache->aheads && i < CACHE_AHEAD_MAX; i++)
		free(cache->aheads[i].buffer);
	free(cache->aheads);
	free(cache->destage_iov);
	free(cache->destages);
	free(cache->frames);
	free(cache->buckets);
	nvram_close(&cache->own_nvram);
	free(cache);
	return NULL;
}
