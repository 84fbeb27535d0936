/* SPDX-License-Identifier: MIT
 *
 * Members: opening drives and set, page space.
 */
#include "target/array/member.h"
#include "target/array/member_cache.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/drive/store_file.h"

/* ---- the layer ---- */

static void member_submit(struct io_layer *layer, struct io *io)
{
	struct member *member = container_of(layer, struct member, layer);
	if (member->gate.state != MEMBER_OPEN) {
		member_gate_take(&member->gate, io);
		return;
	}
	if (io->op == IO_READ) {
		member->counters.reads++;
		member->counters.read_bytes += io->length_bytes;
	} else if (io->op == IO_WRITE) {
		member->counters.writes++;
		member->counters.write_bytes += io->length_bytes;
	}
	if (member->unsafe && io->op != IO_READ)
		io_complete(io, -EIO);
	else
		io_submit(member->top, io);
}

static int member_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
		       struct io_lent *lent)
{
	struct member *member = container_of(layer, struct member, layer);
	if (member->gate.state != MEMBER_OPEN)
		return -EAGAIN;
	int rc = io_lend(member->top, offset, length, lent);
	if (rc == 0) {
		member->counters.reads++;
		member->counters.read_bytes += length;
	}
	return rc;
}

static const struct io_layer_ops member_layer_ops = {
    .name = "member",
    .submit = member_submit,
    .lend = member_lend,
};

/* ---- pages ---- */

static bool page_is_used(const struct member *member, uint32_t page)
{
	return member->used[page / 64] >> (page % 64) & 1;
}

static void page_set_used(struct member *member, uint32_t page)
{
	member->used[page / 64] |= UINT64_C(1) << (page % 64);
	member->used_pages++;
}

static uint32_t find_free(const struct member *member)
{
	uint32_t page = member->next_page;
	for (;;) {
		if (page >= member->page_count)
			page = 0;
		if (page % 64 == 0 && member->page_count - page >= 64 &&
		    member->used[page / 64] == UINT64_MAX)
			page += 64;
		else if (page_is_used(member, page))
			page++;
		else
			return page;
	}
}

static void page_taken(struct member *member, uint32_t page, uint32_t *ret_page)
{
	page_set_used(member, page);
	member->next_page = page + 1;
	*ret_page = page;
}

int member_take_page(struct member *member, uint64_t volume, uint32_t volume_page,
		     uint32_t *ret_page)
{
	if (member->used_pages == member->page_count)
		return -ENOSPC;
	uint32_t page = find_free(member);
	int rc =
	    member->journal ? page_journal_take(member->journal, page, volume, volume_page) : 0;
	if (rc)
		return rc;
	page_taken(member, page, ret_page);
	return 0;
}

int member_reserve_page(struct member *member, uint64_t volume, uint32_t volume_page,
			uint16_t generation, uint32_t *ret_page)
{
	if (member->used_pages == member->page_count)
		return -ENOSPC;
	uint32_t page = find_free(member);
	int rc = member->journal
		     ? page_journal_reserve(member->journal, page, volume, volume_page, generation)
		     : 0;
	if (rc)
		return rc;
	page_taken(member, page, ret_page);
	return 0;
}

int member_own_page(struct member *member, uint32_t page, uint16_t generation)
{
	return member->journal ? page_journal_own(member->journal, page, generation) : 0;
}

int member_leave_page(struct member *member, uint32_t page)
{
	int rc = member->journal ? page_journal_leave(member->journal, page) : 0;
	return rc ? rc : member_sync(member);
}

int member_give_page(struct member *member, uint32_t page)
{
	assert(page_is_used(member, page));
	int rc = member->journal ? page_journal_give(member->journal, page) : 0;
	if (rc)
		return rc;
	member->used[page / 64] &= ~(UINT64_C(1) << (page % 64));
	member->used_pages--;
	return 0;
}

int member_sync(struct member *member)
{
	return member->journal ? page_journal_sync(member->journal) : 0;
}

/* ---- opening ---- */

static int member_stale(void *arg, unsigned slot)
{
	struct member *member = arg;
	bool known = member->stale_mask >> slot & 1;
	int rc = !known && member->journal ? page_journal_stale(member->journal, slot) : 0;

	member->stale_mask |= UINT64_C(1) << slot;
	if (rc && !member->unsafe) {
		member->unsafe = true;
		log_error("member %s: cannot record that slot %u is out of date: no writes any "
			  "more",
			  member->name, slot);
	}
	if (member->sweep)
		sweep_slot_stale(member->sweep, slot);
	return rc;
}

static void member_dirty(void *arg)
{
	struct member *member = arg;
	if (member->sweep)
		sweep_dirty(member->sweep);
}

/* ---- background work ---- */

static int member_assign(void *arg, unsigned slot, unsigned drive)
{
	struct member *member = arg;
	int rc = member->journal ? page_journal_assign(member->journal, slot, drive) : 0;
	if (rc)
		return rc;
	member->slot_drive[slot] = (uint8_t)drive;
	member->stale_mask |= UINT64_C(1) << slot;
	return 0;
}

static int member_fresh(void *arg, unsigned slot)
{
	struct member *member = arg;
	int rc = member->journal ? page_journal_fresh(member->journal, slot) : 0;
	if (rc)
		return rc;
	member->stale_mask &= ~(UINT64_C(1) << slot);
	return 0;
}

static uint64_t member_next_used(void *arg, uint64_t offset)
{
	const struct member *member = arg;
	uint64_t page = offset / POOL_PAGE_BYTES;

	while (page < member->page_count && !page_is_used(member, (uint32_t)page))
		page++;
	if (page >= member->page_count)
		return UINT64_MAX;
	return MAX_OF(offset, page * POOL_PAGE_BYTES);
}

static uint64_t member_used_bytes(void *arg)
{
	const struct member *member = arg;
	return member->used_pages * POOL_PAGE_BYTES;
}

static void member_drive_changed(void *arg, struct drive *drive)
{
	struct member *member = arg;
	for (unsigned i = 0; i < member->drive_count; i++)
		if (member->drives[i] == drive)
			sweep_drive_changed(member->sweep, i);
}

static int open_sweep(struct loop *loop, struct member *member, const struct member_config *config,
		      const struct raid_ops *raid, struct err *err)
{
	struct sweep_config sweep = {
	    .loop = loop,
	    .name = member->name,
	    .ops = raid,
	    .set = member->raid,
	    .drives = member->drives,
	    .drive_count = member->drive_count,
	    .slot_count = member->active_count,
	    .slot_drive = member->slot_drive,
	    .stale_mask = member->stale_mask,
	    .spares_used = member->journal != NULL,
	    .spare_delay_ns = config->spare_delay_ns,
	    .rate_bytes_per_s = config->rebuild_rate_bytes,
	    .scrub_every_ns = config->scrub.every_ns,
	    .arg = member,
	    .assign = member_assign,
	    .fresh = member_fresh,
	    .next_used = member_next_used,
	    .used_bytes = member_used_bytes,
	};
	int rc = sweep_open(&sweep, &member->sweep);
	if (rc)
		return err_set(err, rc, "no memory for member %s", member->name);
	for (unsigned i = 0; i < member->drive_count; i++) {
		member->drives[i]->changed_arg = member;
		member->drives[i]->changed = member_drive_changed;
	}
	return 0;
}

static int open_drives(struct loop *loop, struct member *member, const struct member_config *config,
		       const struct drive_model *model, uint64_t seed, struct err *err)
{
	const char *kind = config->store_kind ? config->store_kind : "memory";
	const struct store_ops *store = store_find(kind);
	if (!store)
		return err_set(err, -EINVAL, "member %s: no store of the kind '%s'", member->name,
			       kind);
	const struct raid_ops *raid = raid_find(raid_level_names[config->raid]);
	bool checksums = config->checksums == MEMBER_CHECKSUMS_AUTO
			     ? raid->protection(member->active_count).tolerance > 0
			     : config->checksums == MEMBER_CHECKSUMS_ON;
	for (unsigned i = 0; i < member->drive_count; i++) {
		char name[96];
		bool absent = member->absent_mask >> i & 1;
		member_drive_name(member, i, name, sizeof name);
		struct drive_config drive = {
		    .name = name,
		    .model = model,
		    .size_bytes = config->drives.size_bytes,
		    .timing = config->timing,
		    .store = absent ? &store_absent_ops : store,
		    .store_place = config->store_place,
		    .seed = seed ^ rng_stream_of(name),
		    .checksums = checksums,
		    .scheduler =
			drive_scheduler_find(drive_scheduler_names[config->drives.scheduler]),
		};
		int rc = drive_open(loop, &drive, &member->drives[i], err);
		if (rc)
			return rc;
		if (absent)
			drive_set_failed(member->drives[i], true);
	}
	return 0;
}

static int open_set(struct loop *loop, struct member *member, const struct member_config *config,
		    const struct raid_ops *raid, const struct member_origin *origin, uint64_t seed,
		    struct err *err)
{
	bool fresh = member->journal && !page_journal_is_ready(member->journal);
	uint64_t spared_mask = 0;

	for (unsigned i = 0; i < member->active_count; i++) {
		unsigned drive = member->slot_drive[i];
		if (drive == SWEEP_NO_DRIVE)
			spared_mask |= UINT64_C(1) << i;
		member->slot_drives[i] = member->drives[drive < member->drive_count ? drive : i];
	}
	struct raid_config set = {
	    .drives = member->slot_drives,
	    .drive_count = member->active_count,
	    .chunk_bytes = config->chunk_bytes,
	    .stale_mask = member->stale_mask,
	    .stale = member_stale,
	    .dirty = member_dirty,
	    .stale_arg = member,
	    .journal = member->raid_journal.memory ? &member->raid_journal : NULL,
	    .spared_mask = spared_mask,
	    .hollow = store_find(config->store_kind ? config->store_kind : "memory")->forgets,
	};
	int rc = raid->open(loop, &set, &member->raid, err);
	if (rc)
		return rc;
	member->top = member->raid;
	rc = member_cache_open(loop, member, config, raid, origin, fresh, seed, err);
	if (rc)
		return rc;
	if (member->journal && !page_journal_is_ready(member->journal)) {
		rc = page_journal_set_ready(member->journal);
		if (rc)
			return err_set(err, rc, "cannot write the page map of member %s",
				       member->name);
	}
	return 0;
}

/* Counts and page space, from the configuration alone. */
static int shape_member(struct member *member, const struct member_config *config,
			const struct raid_ops *raid, const struct drive_model *model,
			struct err *err)
{
	char why[200];
	uint64_t count = config->drives.count, spares = config->drives.spares;

	if (count > RAID_DRIVES_MAX || spares >= count)
		return err_set(err, -EINVAL, "member %s: impossible number of drives",
			       member->name);
	member->drive_count = (unsigned)count;
	member->active_count = (unsigned)(count - spares);
	for (unsigned i = 0; i < member->active_count; i++)
		member->slot_drive[i] = (uint8_t)i;
	int rc = raid->check(member->active_count, why, sizeof why);
	if (rc)
		return err_set(err, rc, "member %s: %s", member->name, why);
	uint64_t drive_bytes =
	    config->drives.size_bytes ? config->drives.size_bytes : model->size_bytes;
	uint64_t bytes = raid->usable_bytes(member->active_count, drive_bytes, config->chunk_bytes);
	member->page_count = (uint32_t)MIN_OF(bytes / POOL_PAGE_BYTES, UINT32_MAX - 64);
	if (member->page_count == 0)
		return err_set(err, -EINVAL, "member %s: its drives hold less than one page",
			       member->name);
	member->layer = (struct io_layer){.ops = &member_layer_ops,
					  .size_bytes = member->page_count * POOL_PAGE_BYTES};
	member->used = calloc(member->page_count / 64 + 1, sizeof *member->used);
	return member->used ? 0 : err_set(err, -ENOMEM, "no memory for member %s", member->name);
}

/* What the member was when it was last open. */
static int open_store(struct member *member, const struct member_config *config,
		      const struct raid_ops *raid, struct member_shape *shape,
		      const struct member_origin *origin, struct err *err)
{
	int rc = member_open_journal(member, config->store_place, shape, origin, err);
	if (rc)
		return rc;
	for (uint32_t page = 0; page < member->page_count; page++)
		if (page_journal_owner(member->journal, page).used)
			page_set_used(member, page);
	rc = member_assemble(member, config->store_place, raid, err);
	return rc ? rc : member_open_nvram(member, config->store_place, raid, origin, err);
}

static int member_build(struct loop *loop, struct member *member,
			const struct member_config *config, const struct member_origin *origin,
			uint64_t seed, struct err *err)
{
	const struct raid_ops *raid = raid_find(raid_level_names[config->raid]);
	const struct drive_model *model = drive_model_find(drive_model_names[config->drives.model]);

	member->raid_name = raid->name;
	snprintf(member->name, sizeof member->name, "%s", config->name);
	member->loop = loop;
	member->sample_every = member->sample_left = UINT32_MAX;
	int rc = shape_member(member, config, raid, model, err);
	if (rc == 0 && origin) {
		struct member_shape shape = {
		    .member = member->name,
		    .raid = raid->name,
		    .drives = member->drive_count,
		    .spares = member->drive_count - member->active_count,
		    .chunk_bytes = config->chunk_bytes,
		    .drive_bytes =
			config->drives.size_bytes ? config->drives.size_bytes : model->size_bytes,
		};
		rc = open_store(member, config, raid, &shape, origin, err);
	}
	if (rc == 0)
		rc = open_drives(loop, member, config, model, seed, err);
	if (rc == 0)
		rc = open_set(loop, member, config, raid, origin, seed, err);
	return rc ? rc : open_sweep(loop, member, config, raid, err);
}

int member_open(struct loop *loop, const struct member_config *config,
		const struct member_origin *origin, uint64_t seed, struct member **ret_member,
		struct err *err)
{
	struct member *member = calloc(1, sizeof *member);
	if (!member)
		return err_set(err, -ENOMEM, "no memory for member %s", config->name);
	member->raid_journal.fd = -1;
	int rc = member_build(loop, member, config, origin, seed, err);
	if (rc) {
		member_close(member);
		return rc;
	}
	*ret_member = member;
	return 0;
}

void member_drain(struct member *member)
{
	for (unsigned i = 0; i < member->drive_count; i++)
		if (member->drives[i])
			drive_drain(member->drives[i]);
	member_cache_drain(member);
}

struct member *member_close(struct member *member)
{
	if (!member)
		return NULL;
	member_drain(member);
	member->sweep = sweep_close(member->sweep);
	member_cache_close(member);
	if (member->raid)
		member->raid->ops->free(member->raid);
	for (unsigned i = 0; i < member->drive_count; i++)
		drive_close(member->drives[i]);
	nvram_close(&member->raid_journal);
	page_journal_close(member->journal);
	free(member->used);
	free(member);
	return NULL;
}

const char *member_name(const struct member *member)
{
	return member->name;
}

const struct member_counters *member_counters(const struct member *member)
{
	return &member->counters;
}

const char *member_raid_name(const struct member *member)
{
	return member->raid_name;
}

void member_pages(const struct member *member, uint64_t *ret_total_bytes, uint64_t *ret_used_bytes)
{
	*ret_total_bytes = member->page_count * POOL_PAGE_BYTES;
	*ret_used_bytes = member->used_pages * POOL_PAGE_BYTES;
}

unsigned member_drive_count(const struct member *member)
{
	return member->drive_count;
}

struct drive *member_drive(struct member *member, unsigned index)
{
	return index < member->drive_count ? member->drives[index] : NULL;
}
