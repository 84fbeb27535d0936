/* SPDX-License-Identifier: MIT
 *
 * What a member with a file store remembers, opened and checked: its page map must be there if it
 * ever was, belong to this member, and be of the pool's last start.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "target/array/member.h"

static void fill_identity(struct member *member, const struct member_shape *shape,
			  const struct member_origin *origin)
{
	struct store_super *identity = &member->identity;

	*identity = (struct store_super){
	    .size_bytes = shape->drive_bytes,
	    .generation = origin->start,
	    .drives = shape->drives,
	    .spares = shape->spares,
	    .chunk_bytes = shape->chunk_bytes,
	};
	memcpy(identity->pool_uuid, origin->pool_uuid, STORE_UUID_BYTES);
	memcpy(identity->member_uuid, origin->member_uuid, STORE_UUID_BYTES);
	snprintf(identity->raid, sizeof identity->raid, "%s", shape->raid);
	snprintf(identity->member, sizeof identity->member, "%s", member->name);
	snprintf(identity->pool, sizeof identity->pool, "%s", origin->pool);
	snprintf(identity->lab, sizeof identity->lab, "%s", origin->lab);
	member->committed = origin->committed;
}

/* A file store keeps a page map beside the drives: it must be there if and only if they are. */
static int check_journal_exists(const struct member *member, const char *place,
				const struct member_origin *origin, struct err *err)
{
	char name[96];
	bool found = origin->known;

	if (page_journal_exists(place, member->name))
		return 0;
	for (unsigned i = 0; !found && i < member->drive_count; i++) {
		member_drive_name(member, i, name, sizeof name);
		found = store_file_exists(place, name);
	}
	if (!found)
		return 0;
	err_set(err, -ENOENT,
		"the page map %s/%s.pagemap is missing: it says where the data of "
		"volumes is",
		place, member->name);
	err_hint(err, "restore it; to begin anew without the data, remove the directories of all "
		      "members of the pool");
	return -ENOENT;
}

static int check_journal_age(const struct member *member, const struct member_origin *origin,
			     struct err *err)
{
	uint64_t last = page_journal_last_start(member->journal);

	if (last >= origin->committed && last < origin->start &&
	    (!origin->known || page_journal_is_ready(member->journal)))
		return 0;
	int rc = err_set(err, -ESTALE,
			 "the page map of member %s in %s is of start %llu, its pool is at %llu",
			 member->name, page_journal_place(member->journal),
			 (unsigned long long)last, (unsigned long long)origin->committed);
	err_hint(err, "the files of a directory belong together: restore all of them from one "
		      "copy");
	return rc;
}

int member_open_journal(struct member *member, const char *place, struct member_shape *shape,
			const struct member_origin *origin, struct err *err)
{
	fill_identity(member, shape, origin);
	memcpy(shape->pool_uuid, origin->pool_uuid, STORE_UUID_BYTES);
	memcpy(shape->member_uuid, origin->member_uuid, STORE_UUID_BYTES);
	int rc = check_journal_exists(member, place, origin, err);
	if (rc == 0)
		rc = page_journal_open(place, shape, member->page_count, &member->journal, err);
	if (rc == 0 && origin->known)
		rc = check_journal_age(member, origin, err);
	if (rc)
		return rc;
	rc = page_journal_start(member->journal, origin->start);
	if (rc)
		return err_set(err, rc, "cannot write the page map of member %s", member->name);
	member->draining = page_journal_drains(member->journal);
	member->stale_mask = page_journal_stale_mask(member->journal);
	for (unsigned i = 0; i < member->active_count; i++)
		member->slot_drive[i] = (uint8_t)page_journal_slot_drive(member->journal, i);
	return 0;
}

int member_open_nvram(struct member *member, const char *place, const struct raid_ops *raid,
		      const struct member_origin *origin, struct err *err)
{
	char name[STORE_NAME_BYTES + 8];

	if (!raid->journal_bytes)
		return 0;
	snprintf(name, sizeof name, "%s-raid", member->name);
	int rc = nvram_open(place, name,
			    raid->journal_bytes(member->active_count, member->identity.chunk_bytes),
			    &member->raid_journal, err);
	if (rc)
		return rc;
	rc = nvram_claim(&member->raid_journal, origin->member_uuid, origin->committed,
			 origin->start, err);
	if (rc) {
		err_where(err, "%s/%s.nvram", place, name);
		err_hint(err, "the files of a directory belong together: restore all of them from "
			      "one copy");
		return rc;
	}
	if (!member->raid_journal.found && origin->known)
		log_warn("member %s: %s/%s.nvram was lost: updates that were under way at the last "
			 "end may be half-way; a scrub finds them",
			 member->name, place, name);
	return 0;
}
