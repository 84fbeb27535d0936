/* SPDX-License-Identifier: MIT
 *
 * The end of a pool's start: the pages found on its members against the volumes of the lab.
 *
 * Pages of a volume that the lab does not name (it was renamed, removed or put into another pool)
 * are kept, and told.  A volume that became smaller than the pages it has is refused: they would
 * be out of reach.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/balancer.h"
#include "target/array/member_cache.h"
#include "target/array/volume.h"

struct orphan {
	uint64_t id;
	uint64_t pages;
};

struct census {
	struct pool *pool;
	struct volume *volumes[POOL_RECORD_VOLUMES];
	unsigned volume_count;
	struct orphan orphans[POOL_RECORD_VOLUMES];
	unsigned orphan_count;
	uint64_t untold_pages; /* of more orphans than there is room for */
};

static struct volume *find_volume(const struct census *census, uint64_t id)
{
	for (unsigned i = 0; i < census->volume_count; i++)
		if (census->volumes[i]->id == id)
			return census->volumes[i];
	return NULL;
}

static struct orphan *find_orphan(struct census *census, uint64_t id)
{
	for (unsigned i = 0; i < census->orphan_count; i++)
		if (census->orphans[i].id == id)
			return &census->orphans[i];
	if (census->volume_count + census->orphan_count == POOL_RECORD_VOLUMES)
		return NULL;
	census->orphans[census->orphan_count] = (struct orphan){.id = id};
	return &census->orphans[census->orphan_count++];
}

static int refuse_smaller(const struct volume *volume, uint64_t page, struct err *err)
{
	uint64_t needed = (page + 1) * POOL_PAGE_BYTES;
	int rc = err_set(err, -EFBIG,
			 "volume %s has data up to %llu MiB, the lab makes it %llu MiB large",
			 volume->name, (unsigned long long)(needed / MIB),
			 (unsigned long long)(volume->layer.size_bytes / MIB));
	err_hint(err,
		 "give it a size of at least %lluMiB; to make it smaller, let initiators "
		 "UNMAP its end first",
		 (unsigned long long)(needed / MIB));
	return rc;
}

/* The largest page decides, so that the remedy is right the first time. */
static int count_member(struct census *census, const struct member *member, struct err *err)
{
	struct volume *volume = NULL, *smaller = NULL;
	struct orphan *orphan = NULL;
	uint64_t id = 0, beyond = 0;
	bool seen = false;

	for (uint32_t page = 0; member->journal && page < member->page_count; page++) {
		struct page_owner owner = page_journal_owner(member->journal, page);
		if (!owner.used || owner.homeless)
			continue;
		if (!seen || owner.volume != id) {
			id = owner.volume;
			seen = true;
			volume = find_volume(census, id);
			orphan = volume ? NULL : find_orphan(census, id);
		}
		if (orphan)
			orphan->pages++;
		else if (!volume)
			census->untold_pages++;
		else if (owner.page >= volume->map.count && owner.page >= beyond) {
			beyond = owner.page;
			smaller = volume;
		}
	}
	return smaller ? refuse_smaller(smaller, beyond, err) : 0;
}

static void tell_orphans(const struct census *census)
{
	const struct pool *pool = census->pool;

	for (unsigned i = 0; i < census->orphan_count; i++) {
		const struct orphan *orphan = &census->orphans[i];
		const char *name = pool_identity_volume(pool->identity, orphan->id);
		log_warn("pool %s holds %llu MiB of volume %s, which the lab does not name; they "
			 "are kept",
			 pool->name, (unsigned long long)(orphan->pages * (POOL_PAGE_BYTES / MIB)),
			 name ? name : "(of unknown name)");
	}
	if (census->untold_pages)
		log_warn("pool %s holds %llu MiB of further volumes that the lab does not name",
			 pool->name,
			 (unsigned long long)(census->untold_pages * (POOL_PAGE_BYTES / MIB)));
}

static int commit(struct census *census, struct err *err)
{
	struct pool_identity *identity = census->pool->identity;
	struct pool_record_volume *list = calloc(POOL_RECORD_VOLUMES, sizeof *list);
	unsigned count = 0;

	if (!list)
		return err_set(err, -ENOMEM, "no memory for pool %s", census->pool->name);
	for (unsigned i = 0; i < census->volume_count; i++, count++) {
		const struct volume *volume = census->volumes[i];
		list[count].id = volume->id;
		list[count].size_bytes = volume->layer.size_bytes;
		snprintf(list[count].name, sizeof list[count].name, "%s", volume->name);
	}
	for (unsigned i = 0; i < census->orphan_count; i++) {
		const char *name = pool_identity_volume(identity, census->orphans[i].id);
		if (!name)
			continue;
		list[count].id = census->orphans[i].id;
		snprintf(list[count++].name, sizeof list->name, "%s", name);
	}
	for (unsigned i = 0; i < census->pool->member_count; i++)
		pool_identity_cached(identity, i,
				     member_cache_may_hold(census->pool->members[i], true));
	int rc = pool_identity_commit(identity, list, count, err);
	free(list);
	return rc;
}

int pool_commit(struct pool *pool, struct volume *const *volumes, size_t volume_count,
		struct err *err)
{
	int rc = 0;

	struct census *census = calloc(1, sizeof *census);
	if (!census)
		return err_set(err, -ENOMEM, "no memory for pool %s", pool->name);
	census->pool = pool;
	for (size_t i = 0; i < volume_count && census->volume_count < POOL_RECORD_VOLUMES; i++)
		if (volumes[i]->pool == pool)
			census->volumes[census->volume_count++] = volumes[i];
	for (unsigned i = 0; rc == 0 && i < pool->member_count; i++)
		rc = count_member(census, pool->members[i], err);
	if (rc == 0) {
		tell_orphans(census);
		rc = commit(census, err);
	}
	free(census);
	if (rc == 0)
		balancer_start(pool->balancer);
	return rc;
}
