/* SPDX-License-Identifier: MIT
 *
 * Opening volumes: the pages they had, the space they are promised; what they are, for whoever
 * asks.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/page_clean.h"
#include "target/array/volume.h"

/* NAA 6 with a locally administered company id: nobody's, like the volumes. */
static void make_naa(uint8_t *naa, const char *lab, const char *volume)
{
	char text[256];
	snprintf(text, sizeof text, "%s/%s", lab, volume);
	uint64_t high = rng_stream_of(text);
	snprintf(text, sizeof text, "%s\\%s", volume, lab);
	uint64_t low = rng_stream_of(text);
	put_be64(naa, UINT64_C(6) << 60 | UINT64_C(0x02534c) << 36 | (high & 0xfffffffff));
	put_be64(naa + 8, low);
}

/* Two members claim the same page of the volume: it was moved and the old place has not been given
 * back yet.  The newer generation is right, the other is cleaned. */
static int resolve_claims(struct volume *volume, unsigned slot, uint32_t page,
			  const struct page_owner *owner, struct err *err)
{
	struct page_entry *entry = &volume->map.entries[owner->page];
	struct pool *pool = volume->pool;
	struct cleaner *cleaner = pool->cleaner;

	if (entry->generation == owner->generation)
		return err_set(err, -EUCLEAN, "volume %s: page %u is mapped twice, on %s and %s",
			       volume->name, owner->page,
			       volume->pool->members[entry->member]->name,
			       volume->pool->members[slot]->name);
	if (cleaner_reserve(cleaner, 1))
		return err_set(err, -ENOMEM, "no memory for volume %s", volume->name);
	if (!page_generation_newer(owner->generation, entry->generation)) {
		entry->pinned |= member_leave_page(pool->members[slot], page) != 0;
		cleaner_add(cleaner, slot, page);
		return 0;
	}
	entry->pinned |= member_leave_page(pool->members[entry->member], entry->page) != 0;
	cleaner_add(cleaner, entry->member, entry->page);
	volume->member_pages[entry->member]--;
	volume->map.mapped--;
	entry->page = PAGE_NONE;
	return 1;
}

static int adopt_page(struct volume *volume, unsigned slot, uint32_t page,
		      const struct page_owner *owner, struct err *err)
{
	/* A volume that was made smaller keeps its far pages, unseen. */
	if (owner->page >= volume->map.count)
		return 0;
	struct page_entry *entry = &volume->map.entries[owner->page];
	if (entry->page != PAGE_NONE) {
		int rc = resolve_claims(volume, slot, page, owner, err);
		if (rc <= 0)
			return rc;
	}
	entry->generation = owner->generation;
	entry->page = page;
	entry->member = (uint8_t)slot;
	volume->member_pages[slot]++;
	volume->map.mapped++;
	return 0;
}

/* The pages the volume had when the file stores were last open. */
static int adopt_pages(struct volume *volume, struct err *err)
{
	for (unsigned slot = 0; slot < volume->pool->member_count; slot++) {
		struct member *member = volume->pool->members[slot];
		for (uint32_t page = 0; member->journal && page < member->page_count; page++) {
			struct page_owner owner = page_journal_owner(member->journal, page);
			int rc = owner.used && !owner.homeless && owner.volume == volume->id
				     ? adopt_page(volume, slot, page, &owner, err)
				     : 0;
			if (rc)
				return rc;
		}
	}
	return 0;
}

static int build(struct volume *volume, const struct volume_config *config, struct err *err)
{
	int rc = page_map_init(&volume->map, config->size_bytes);
	if (rc)
		return err_set(err, rc, "volume %s: no page map for %llu bytes", volume->name,
			       (unsigned long long)config->size_bytes);
	rc = adopt_pages(volume, err);
	if (rc == 0)
		rc = pool_add_volume(volume->pool, volume, err);
	if (rc || volume->thin)
		return rc;
	rc = volume_take_pages(volume, 0, volume->map.count - 1);
	if (rc == -ENOSPC) {
		err_set(err, rc, "volume %s does not fit into pool %s", volume->name,
			volume->pool->name);
		err_hint(err, "make it thin or smaller, or add members or drives to the pool");
	} else if (rc) {
		err_set(err, rc, "volume %s: cannot write the page map", volume->name);
	}
	return rc;
}

int volume_open(const struct volume_config *config, const char *lab_name, struct pool *pool,
		struct volume **ret_volume, struct err *err)
{
	struct volume *volume = calloc(1, sizeof *volume);
	if (!volume)
		return err_set(err, -ENOMEM, "no memory for volume %s", config->name);
	volume->layer = (struct io_layer){
	    .ops = &volume_layer_ops,
	    .size_bytes = config->size_bytes,
	};
	snprintf(volume->name, sizeof volume->name, "%s", config->name);
	volume->id = rng_stream_of(config->name);
	volume->pool = pool;
	volume->thin = config->thin;
	volume->read_only = config->read_only;
	volume->io_flags = config->ssd_cache ? IO_SSD_CACHE : 0;
	volume->thin_threshold_percent = (unsigned)(config->thin_threshold * 100 + 0.5);
	volume->removable = config->removable;
	volume->block_bytes = config->block_bytes ? (uint32_t)config->block_bytes : 512;
	volume->physical_block_bytes =
	    config->physical_block_bytes ? (uint32_t)config->physical_block_bytes : 4096;
	volume->held.last = &volume->held.first;
	STAILQ_INIT(&volume->waiting);
	part_pool_init(&volume->parts);
	freelist_init(&volume->unmaps, sizeof(struct unmap), UNMAPS_MAX);
	make_naa(volume->naa, lab_name, config->name);
	int rc = build(volume, config, err);
	if (rc) {
		volume_close(volume);
		return rc;
	}
	*ret_volume = volume;
	return 0;
}

struct volume *volume_close(struct volume *volume)
{
	if (!volume)
		return NULL;
	assert(!volume->held.first);
	assert(STAILQ_EMPTY(&volume->waiting));
	pool_remove_volume(volume->pool, volume);
	part_pool_done(&volume->parts);
	freelist_done(&volume->unmaps);
	page_map_done(&volume->map);
	free(volume);
	return NULL;
}

const char *volume_name(const struct volume *volume)
{
	return volume->name;
}

struct io_layer *volume_layer(struct volume *volume)
{
	return &volume->layer;
}

uint32_t volume_block_bytes(const struct volume *volume)
{
	return volume->block_bytes;
}

uint32_t volume_physical_block_bytes(const struct volume *volume)
{
	return volume->physical_block_bytes;
}

bool volume_is_thin(const struct volume *volume)
{
	return volume->thin;
}

bool volume_is_read_only(const struct volume *volume)
{
	return volume->read_only;
}

bool volume_is_removable(const struct volume *volume)
{
	return volume->removable;
}

const char *volume_state_dir(const struct volume *volume)
{
	for (unsigned i = 0; i < volume->pool->member_count; i++) {
		const struct page_journal *journal = volume->pool->members[i]->journal;

		if (journal)
			return page_journal_place(journal);
	}
	return NULL;
}

uint64_t volume_allocated_bytes(const struct volume *volume)
{
	return volume->map.mapped * POOL_PAGE_BYTES;
}

const struct volume_counters *volume_counters(const struct volume *volume)
{
	return &volume->counters;
}

const uint8_t *volume_naa(const struct volume *volume)
{
	return volume->naa;
}

void volume_map_status(struct volume *volume, uint64_t offset_bytes, bool *ret_mapped,
		       uint64_t *ret_run_bytes)
{
	uint64_t end_bytes = volume->layer.size_bytes;
	if (offset_bytes >= end_bytes) {
		*ret_mapped = false;
		*ret_run_bytes = 0;
		return;
	}
	uint32_t first = (uint32_t)(offset_bytes / POOL_PAGE_BYTES), last = first + 1;
	bool mapped = volume->map.entries[first].page != PAGE_NONE;
	while (last < volume->map.count && (volume->map.entries[last].page != PAGE_NONE) == mapped)
		last++;
	*ret_mapped = mapped;
	*ret_run_bytes = MIN_OF(last * POOL_PAGE_BYTES, end_bytes) - offset_bytes;
}
