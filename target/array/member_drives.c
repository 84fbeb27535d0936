/* SPDX-License-Identifier: MIT
 *
 * The drives of a member with a file store: which files there are, which of them may be used, new
 * ones in place of those that may not, and what they bear witness to in the end.
 *
 * A file that is missing, damaged or somebody else's leaves its drive out, failed; one that did
 * not take part in the pool's last start is opened, but out of date.  Both only as far as the RAID
 * level covers it.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/member.h"
#include "target/array/member_cache.h"
#include "target/drive/integrity.h"
#include "target/drive/store_file.h"

enum { REASON_BYTES = 200 };

enum drive_find { FOUND_GOOD, FOUND_OLD, FOUND_NONE, FOUND_FOREIGN, FOUND_BAD };

struct assembly {
	struct member *member;
	const char *place;
	const struct raid_ops *raid;
	struct store_super drives[RAID_DRIVES_MAX];
	enum drive_find found[RAID_DRIVES_MAX];
	char reason[RAID_DRIVES_MAX][REASON_BYTES];
};

/* The slot of the set that a drive has; -1: a spare. */
static int slot_of(const struct member *member, unsigned drive)
{
	for (unsigned slot = 0; slot < member->active_count; slot++)
		if (member->slot_drive[slot] == drive)
			return (int)slot;
	return -1;
}

void member_drive_name(const struct member *member, unsigned drive, char *out, size_t size)
{
	snprintf(out, size, "%s-drive%02u", member->name, drive);
}

/* ---- judging ---- */

static bool same_shape(const struct store_super *a, const struct store_super *b)
{
	return a->size_bytes == b->size_bytes && a->drives == b->drives && a->spares == b->spares &&
	       a->chunk_bytes == b->chunk_bytes && strcmp(a->raid, b->raid) == 0;
}

static enum drive_find foreign(char *reason, const struct store_super *super, const char *what)
{
	snprintf(reason, REASON_BYTES, "%s: drive %u of member %s in pool %s of lab %s", what,
		 super->number, super->member[0] ? super->member : "nobody", super->pool,
		 super->lab);
	return FOUND_FOREIGN;
}

static enum drive_find judge_super(const struct member *member, unsigned drive,
				   const struct store_super *super, char *reason)
{
	const struct store_super *own = &member->identity;

	if (memcmp(super->pool_uuid, own->pool_uuid, STORE_UUID_BYTES) != 0 ||
	    memcmp(super->member_uuid, own->member_uuid, STORE_UUID_BYTES) != 0)
		return foreign(reason, super, "belongs elsewhere");
	if (super->number != drive || !same_shape(super, own))
		return foreign(reason, super, "has another place or shape");
	if (super->generation >= member->committed || slot_of(member, drive) < 0)
		return FOUND_GOOD;
	snprintf(reason, REASON_BYTES, "an older copy: start %llu, the member is at %llu",
		 (unsigned long long)super->generation, (unsigned long long)member->committed);
	return FOUND_OLD;
}

/* 0, or an error that no redundancy helps against. */
static int find_drive(struct assembly *assembly, unsigned i, struct err *err)
{
	struct member *member = assembly->member;
	struct store_super *super = &assembly->drives[i];
	struct err why = {0};
	char name[STORE_NAME_BYTES];

	member_drive_name(member, i, name, sizeof name);
	int rc = store_file_probe(assembly->place, name, super, &why);
	if (rc == -EBUSY || rc == -ENOTSUP || rc == -ENAMETOOLONG || rc == -ENOMEM) {
		err_set(err, rc, "%s", why.what);
		err_hint(err, "%s", why.hint);
		return rc;
	}
	snprintf(assembly->reason[i], REASON_BYTES, "%s", rc == -ENOENT ? "missing" : why.what);
	assembly->found[i] = rc == 0	     ? judge_super(member, i, super, assembly->reason[i])
			     : rc == -ENOENT ? FOUND_NONE
			     : rc == -EMEDIUMTYPE ? FOUND_FOREIGN
						  : FOUND_BAD;
	if (rc == 0 && super->generation > member->identity.generation) {
		rc = err_set(err, -ESTALE,
			     "drive %s in %s took part in start %llu, its member knows %llu only",
			     name, assembly->place, (unsigned long long)super->generation,
			     (unsigned long long)member->identity.generation - 1);
		err_hint(err, "the files of a directory belong together: restore all of them from "
			      "one copy");
	}
	return rc == -ESTALE ? rc : 0;
}

/* ---- what follows ---- */

/* Does the level still have all data when the slots of OUT are gone? */
static bool covers(const struct member *member, const struct raid_ops *raid, uint64_t out)
{
	struct raid_protection protection = raid->protection(member->active_count);

	for (unsigned first = 0; first < member->active_count; first += protection.group_drives) {
		unsigned count = 0;
		for (unsigned i = first; i < first + protection.group_drives; i++)
			count += out >> i & 1;
		if (count > protection.tolerance)
			return false;
	}
	return true;
}

static int refuse(const struct assembly *assembly, struct err *err)
{
	const struct member *member = assembly->member;
	char list[300] = "";
	unsigned count = 0;

	for (unsigned i = 0; i < member->drive_count; i++) {
		if (assembly->found[i] == FOUND_GOOD)
			continue;
		size_t used = strlen(list);
		log_error("member %s: drive %u: %s", member->name, i, assembly->reason[i]);
		snprintf(list + used, sizeof list - used, "%sdrive %u (%.80s)", count ? ", " : "",
			 i, assembly->reason[i]);
		count++;
	}
	int rc = err_set(err, -ENODEV,
			 "member %s: %u of %u drives in %s cannot be used, more than %s covers: %s",
			 member->name, count, member->drive_count, assembly->place,
			 assembly->raid->name, list);
	err_hint(err, "bring back the files that took part in the last start; to begin anew "
		      "without the data, remove the directories of all members of the pool");
	return rc;
}

/* Slots whose drive cannot be trusted are noted as stale before anything else happens. */
static int settle(struct assembly *assembly, struct err *err)
{
	struct member *member = assembly->member;
	uint64_t out = member->stale_mask, news = 0;

	for (unsigned i = 0; i < member->drive_count; i++) {
		int slot = slot_of(member, i);
		if (assembly->found[i] != FOUND_GOOD && slot >= 0)
			out |= UINT64_C(1) << slot;
	}
	news = out & ~member->stale_mask;
	if (news && !covers(member, assembly->raid, out))
		return refuse(assembly, err);
	for (unsigned slot = 0; slot < member->active_count; slot++) {
		int rc = news >> slot & 1 ? page_journal_stale(member->journal, slot) : 0;
		if (rc)
			return err_set(err, rc, "cannot write the page map of member %s",
				       member->name);
	}
	member->stale_mask = out;
	return 0;
}

static void tell(const struct assembly *assembly)
{
	const struct member *member = assembly->member;

	for (unsigned i = 0; i < member->drive_count; i++) {
		enum drive_find found = assembly->found[i];
		if (found == FOUND_OLD)
			log_warn("member %s: drive %u is out of date and is rebuilt: %s",
				 member->name, i, assembly->reason[i]);
		else if (found != FOUND_GOOD)
			log_warn("member %s: drive %u is out, taken as failed: %s", member->name, i,
				 assembly->reason[i]);
	}
}

static int make_drive(struct assembly *assembly, unsigned i, struct err *err)
{
	struct member *member = assembly->member;
	struct store_super *super = &assembly->drives[i];

	*super = member->identity;
	super->number = i;
	member_drive_name(member, i, super->name, sizeof super->name);
	assembly->found[i] = FOUND_GOOD;
	int rc = integrity_forget(assembly->place, super->name, err);
	return rc ? rc : store_file_make(assembly->place, super, err);
}

/* The drives that are used take part in this start. */
static int stamp_drives(struct assembly *assembly, struct err *err)
{
	struct member *member = assembly->member;
	bool failed = false;

	for (unsigned i = 0; i < member->drive_count; i++) {
		struct store_super *super = &assembly->drives[i];
		struct err why = {0};
		if (assembly->found[i] > FOUND_OLD ||
		    super->generation == member->identity.generation ||
		    store_file_stamp(assembly->place, super, member->identity.generation, &why) ==
			0)
			continue;
		assembly->found[i] = FOUND_BAD;
		snprintf(assembly->reason[i], REASON_BYTES, "%s", why.what);
		failed = true;
	}
	return failed ? settle(assembly, err) : 0;
}

int member_assemble(struct member *member, const char *place, const struct raid_ops *raid,
		    struct err *err)
{
	struct assembly assembly = {.member = member, .place = place, .raid = raid};
	bool ready = page_journal_is_ready(member->journal);
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < member->drive_count; i++) {
		rc = find_drive(&assembly, i, err);
		if (rc == 0 && !ready && assembly.found[i] == FOUND_NONE)
			rc = make_drive(&assembly, i, err);
		else if (rc == 0 && !ready && assembly.found[i] != FOUND_GOOD)
			rc = refuse(&assembly, err); /* a new member on top of old files */
	}
	if (rc == 0)
		rc = settle(&assembly, err);
	if (rc == 0)
		rc = stamp_drives(&assembly, err);
	if (rc)
		return rc;
	tell(&assembly);
	for (unsigned i = 0; i < member->drive_count; i++)
		if (assembly.found[i] > FOUND_OLD)
			member->absent_mask |= UINT64_C(1) << i;
	return 0;
}

/* ---- a new drive ---- */

int member_renew_drive(struct member *member, unsigned index, struct err *err)
{
	struct store_super super = member->identity, found;
	struct err why = {0};

	if (index >= member->drive_count || !member->journal)
		return err_set(err, -EINVAL, "member %s has no drive file %u to be made anew",
			       member->name, index);
	struct drive *drive = member->drives[index];
	const char *place = page_journal_place(member->journal);
	int slot = slot_of(member, index);
	if (!drive->failed || (slot >= 0 && !(member->stale_mask >> slot & 1)))
		return err_set(err, -EBUSY, "drive %s is in use with content that counts",
			       drive->name);
	super.number = index;
	snprintf(super.name, sizeof super.name, "%s", drive->name);
	char reason[REASON_BYTES];
	int rc = store_file_probe(place, drive->name, &found, &why);
	if (rc == -EMEDIUMTYPE ||
	    (rc == 0 && judge_super(member, index, &found, reason) == FOUND_FOREIGN)) {
		rc = err_set(err, -EEXIST, "there is a file of another drive: %s",
			     rc == 0 ? reason : why.what);
		err_hint(err, "move it away first");
		return rc;
	}
	/* The checksums of what was there before are not the new one's. */
	rc = integrity_forget(place, drive->name, err);
	if (rc == 0)
		rc = store_file_make(place, &super, err);
	if (rc == 0)
		rc = store_file_insert(drive->bare_store, place, drive->name, err);
	if (rc == 0)
		rc = drive_store_replaced(drive, place, err);
	if (rc)
		return rc;
	member->absent_mask &= ~(UINT64_C(1) << index);
	log_info("member %s: a new drive %u", member->name, index);
	drive_set_failed(drive, false);
	return 0;
}

/* ---- the end ---- */

static int give_up_drive(struct member *member, unsigned drive, const struct raid_ops *raid)
{
	int slot = slot_of(member, drive);

	if (slot < 0 || member->stale_mask >> slot & 1)
		return 0;
	if (!covers(member, raid, member->stale_mask | UINT64_C(1) << slot))
		return -EIO;
	int rc = page_journal_stale(member->journal, (unsigned)slot);
	if (rc == 0)
		member->stale_mask |= UINT64_C(1) << slot;
	return rc;
}

int member_end(struct member *member, uint64_t number, struct err *err)
{
	const struct raid_ops *raid = raid_find(member->raid_name);
	int rc = member->unsafe ? -EIO : 0;

	if (!member->journal)
		return 0;
	for (unsigned i = 0; rc == 0 && i < member->drive_count; i++)
		if (store_file_restamp(member->drives[i]->bare_store, number))
			rc = give_up_drive(member, i, raid);
	if (rc == 0)
		rc = page_journal_start(member->journal, number);
	if (rc)
		return err_set(err, rc, "member %s cannot note its end: %s", member->name,
			       strerror(-rc));
	rc = nvram_claim(&member->raid_journal, member->identity.member_uuid,
			 member->identity.generation, number, err);
	return rc ? rc : member_cache_end(member, number, err);
}
