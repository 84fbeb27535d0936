/* SPDX-License-Identifier: MIT
 *
 * Which members are a pool: reading, judging, the two steps of a start.
 */
#include "target/array/pool_identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"

static const struct member_config *member_at(const struct pool_identity *identity, unsigned i)
{
	return &((const struct member_config *)identity->config->members.items)[i];
}

static bool has_file_store(const struct member_config *member)
{
	return member->store_kind && strcmp(member->store_kind, "file") == 0;
}

static bool same_uuid(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, STORE_UUID_BYTES) == 0;
}

/* ---- what the members know ---- */

struct knowledge {
	struct pool_record *found[POOL_RECORD_MEMBERS]; /* NULL: no record */
	const struct pool_record *latest; /* of the last committed start; NULL: a new pool */
	uint64_t intent;		  /* the largest */
};

static void knowledge_done(struct knowledge *known)
{
	for (unsigned i = 0; i < POOL_RECORD_MEMBERS; i++)
		free(known->found[i]);
}

struct leftover {
	const struct pool_identity *identity;
	const char *place;
};

/* Of this pool, by a member that the lab does not put into that directory. */
static bool is_leftover(void *arg, const struct pool_record *record)
{
	const struct leftover *leftover = arg;
	const struct pool_identity *identity = leftover->identity;

	for (unsigned i = 0; i < identity->config->members.count; i++) {
		const struct member_config *member = member_at(identity, i);
		if (has_file_store(member) && strcmp(member->name, record->member) == 0 &&
		    strcmp(member->store_place, leftover->place) == 0)
			return false;
	}
	return record->committed > 0 && strcmp(record->pool, identity->pool) == 0 &&
	       strcmp(record->lab, identity->lab) == 0;
}

/* A member that was renamed, or got another one's directory, does not begin anew beside what is
 * there. */
static int check_leftovers(const struct pool_identity *identity, const struct member_config *member,
			   struct err *err)
{
	struct leftover leftover = {identity, member->store_place};
	struct pool_record *record = calloc(1, sizeof *record);

	if (!record)
		return err_set(err, -ENOMEM, "no memory for pool %s", identity->pool);
	int rc = 0;
	if (pool_record_search(member->store_place, is_leftover, &leftover, record) == 0) {
		rc = err_set(err, -EMEDIUMTYPE,
			     "%s has nothing of member %s but the store of member %s of this pool",
			     member->store_place, member->name, record->member);
		err_hint(err,
			 "a member keeps its name and its directory; to let %s begin anew, "
			 "give it an empty one",
			 member->name);
	}
	free(record);
	return rc;
}

static int knowledge_read(const struct pool_identity *identity, struct knowledge *known,
			  struct err *err)
{
	for (unsigned i = 0; i < identity->config->members.count; i++) {
		const struct member_config *member = member_at(identity, i);
		if (!has_file_store(member))
			continue;
		struct pool_record *record = calloc(1, sizeof *record);
		if (!record)
			return err_set(err, -ENOMEM, "no memory for pool %s", identity->pool);
		int rc = pool_record_read(member->store_place, member->name, record, err);
		if (rc) {
			free(record);
			rc = rc == -ENOENT ? check_leftovers(identity, member, err) : rc;
			if (rc)
				return rc;
			continue;
		}
		known->found[i] = record;
		known->intent = MAX_OF(known->intent, MAX_OF(record->intent, record->committed));
		if (!known->latest || record->committed > known->latest->committed)
			known->latest = record;
	}
	return 0;
}

/* ---- judging ---- */

static int refuse_foreign(const struct pool_identity *identity, const struct pool_record *record,
			  const struct pool_record *other, const char *place, struct err *err)
{
	int rc = err_set(err, -EMEDIUMTYPE,
			 "the store of member %s in %s is of pool %s of lab %s, not of the pool "
			 "that member %s belongs to",
			 record->member, place, record->pool, record->lab, other->member);
	err_hint(err,
		 "give each member the directory it had; to let %s begin anew, give it an "
		 "empty one",
		 record->member);
	return rc;
}

static int refuse_old(const struct pool_record *record, const struct pool_record *latest,
		      const char *place, struct err *err)
{
	int rc = err_set(err, -ESTALE,
			 "the store of member %s in %s is older than its pool: it knows start "
			 "%llu, member %s served start %llu",
			 record->member, place,
			 (unsigned long long)MAX_OF(record->committed, record->intent),
			 latest->member, (unsigned long long)latest->committed);
	err_hint(err,
		 "bring back the directory that took part in the last start, or the old copies "
		 "of all members together");
	return rc;
}

static int refuse_lost(const struct pool_record *latest, const char *member, const char *place,
		       struct err *err)
{
	int rc = err_set(err, -ENOENT,
			 "the store of member %s in %s is empty, but member %s knows it as a part "
			 "of pool %s",
			 member, place, latest->member, latest->pool);
	err_hint(err, "bring back its directory (is its file system mounted?); to begin anew "
		      "without its data, remove the directories of all members of the pool");
	return rc;
}

/* One member of the lab file against the pool as it was. */
static int judge_member(const struct pool_identity *identity, const struct knowledge *known,
			unsigned i, struct err *err)
{
	const struct pool_record *latest = known->latest, *record = known->found[i];
	const struct member_config *member = member_at(identity, i);
	const char *place = member->store_place;
	const struct pool_record_member *entry = pool_record_find(latest, member->name);
	bool belongs = entry && entry->since <= latest->committed;

	if (!record)
		return belongs ? refuse_lost(latest, member->name, place, err) : 0;
	if (!same_uuid(record->pool_uuid, latest->pool_uuid) ||
	    strcmp(record->member, member->name) != 0)
		return refuse_foreign(identity, record, latest, place, err);
	if (MAX_OF(record->committed, record->intent) < latest->committed)
		return refuse_old(record, latest, place, err);
	if (entry && !same_uuid(entry->uuid, record->member_uuid))
		return refuse_foreign(identity, record, latest, place, err);
	return 0;
}

static const struct member_config *find_file_member(const struct pool_identity *identity,
						    const char *name)
{
	for (unsigned i = 0; i < identity->config->members.count; i++)
		if (strcmp(member_at(identity, i)->name, name) == 0 &&
		    has_file_store(member_at(identity, i)))
			return member_at(identity, i);
	return NULL;
}

/* A member that the lab no longer names: gone for good when it was empty at an orderly end. */
static int judge_missing(const struct pool_identity *identity, const struct knowledge *known,
			 struct err *err)
{
	const struct pool_record *latest = known->latest;

	for (unsigned i = 0; i < latest->member_count; i++) {
		const struct pool_record_member *entry = &latest->members[i];
		if (entry->since > latest->committed || find_file_member(identity, entry->name))
			continue;
		if (latest->clean && entry->used_pages == 0) {
			log_info("pool %s: member %s was empty and has left", identity->pool,
				 entry->name);
			continue;
		}
		int rc = err_set(err, -ENOENT,
				 "pool %s has a member %s with a file store, the lab has not: "
				 "volumes may have pages there",
				 identity->pool, entry->name);
		err_hint(err, "name it again; a member may leave after it was drained and the "
			      "target was stopped in order");
		return rc;
	}
	return 0;
}

static int judge(const struct pool_identity *identity, const struct knowledge *known,
		 struct err *err)
{
	if (!known->latest)
		return 0;
	for (unsigned i = 0; i < identity->config->members.count; i++) {
		int rc = has_file_store(member_at(identity, i))
			     ? judge_member(identity, known, i, err)
			     : 0;
		if (rc)
			return rc;
	}
	return judge_missing(identity, known, err);
}

/* ---- the start ---- */

static int fill_origin(struct pool_identity *identity, const struct knowledge *known, unsigned i)
{
	const struct pool_record *record = known->found[i], *latest = known->latest;
	const char *name = member_at(identity, i)->name;
	const struct pool_record_member *entry = latest ? pool_record_find(latest, name) : NULL;
	struct member_origin *origin = &identity->origins[i];

	*origin = (struct member_origin){
	    .lab = identity->lab,
	    .pool = identity->pool,
	    .committed = identity->committed,
	    .start = identity->start,
	    .known = entry && entry->since <= identity->committed,
	    .cached = record && record->cached,
	};
	memcpy(origin->pool_uuid, identity->records[i]->pool_uuid, STORE_UUID_BYTES);
	if (record)
		memcpy(origin->member_uuid, record->member_uuid, STORE_UUID_BYTES);
	else if (entry)
		memcpy(origin->member_uuid, entry->uuid, STORE_UUID_BYTES);
	else
		return store_uuid_make(origin->member_uuid);
	return 0;
}

/* What each member is to know from now on; `committed` stays its own. */
static int fill_records(struct pool_identity *identity, const struct knowledge *known)
{
	struct pool_record_member list[POOL_RECORD_MEMBERS];
	uint8_t uuid[STORE_UUID_BYTES];
	unsigned count = 0;

	int rc = store_uuid_make(uuid);
	if (known->latest)
		memcpy(uuid, known->latest->pool_uuid, sizeof uuid);
	for (unsigned i = 0; rc == 0 && i < identity->config->members.count; i++) {
		const char *name = member_at(identity, i)->name;
		if (!has_file_store(member_at(identity, i)))
			continue;
		struct pool_record *record = calloc(1, sizeof *record);
		if (!record)
			return -ENOMEM;
		identity->records[i] = record;
		memcpy(record->pool_uuid, uuid, sizeof uuid);
		rc = fill_origin(identity, known, i);
		memcpy(record->member_uuid, identity->origins[i].member_uuid, STORE_UUID_BYTES);
		snprintf(record->member, sizeof record->member, "%s", name);
		snprintf(record->pool, sizeof record->pool, "%s", identity->pool);
		snprintf(record->lab, sizeof record->lab, "%s", identity->lab);
		record->committed = known->found[i] ? known->found[i]->committed : 0;
		record->intent = identity->start;
		record->cached = identity->origins[i].cached;
		const struct pool_record_member *entry =
		    known->latest ? pool_record_find(known->latest, name) : NULL;
		list[count] = (struct pool_record_member){
		    .since = entry && identity->origins[i].known ? entry->since : identity->start};
		snprintf(list[count].name, sizeof list[count].name, "%s", name);
		memcpy(list[count].uuid, record->member_uuid, STORE_UUID_BYTES);
		count++;
	}
	for (unsigned i = 0; i < identity->config->members.count; i++) {
		struct pool_record *record = identity->records[i];
		if (!record)
			continue;
		record->member_count = count;
		memcpy(record->members, list, count * sizeof *list);
		record->volume_count = identity->volume_count;
		memcpy(record->volumes, identity->volumes, sizeof record->volumes);
	}
	return rc;
}

static int write_records(struct pool_identity *identity, struct err *err)
{
	for (unsigned i = 0; i < identity->config->members.count; i++) {
		if (!identity->records[i])
			continue;
		int rc = pool_record_write(member_at(identity, i)->store_place,
					   identity->records[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

static int begin(struct pool_identity *identity, struct knowledge *known, struct err *err)
{
	int rc = knowledge_read(identity, known, err);
	if (rc == 0)
		rc = judge(identity, known, err);
	if (rc)
		return rc;
	identity->committed = known->latest ? known->latest->committed : 0;
	identity->start = known->intent + 1;
	if (known->latest) {
		identity->volume_count = known->latest->volume_count;
		memcpy(identity->volumes, known->latest->volumes, sizeof identity->volumes);
	}
	rc = fill_records(identity, known);
	if (rc)
		return err_set(err, rc, "cannot start pool %s: %s", identity->pool, strerror(-rc));
	return write_records(identity, err);
}

int pool_identity_begin(const struct pool_config *config, const char *lab_name,
			struct pool_identity **ret_identity, struct err *err)
{
	const struct member_config *members = config->members.items;
	struct knowledge known = {.latest = NULL};

	struct pool_identity *identity = calloc(1, sizeof *identity);
	if (!identity)
		return err_set(err, -ENOMEM, "no memory for pool %s", config->name);
	snprintf(identity->lab, sizeof identity->lab, "%s", lab_name);
	snprintf(identity->pool, sizeof identity->pool, "%s", config->name);
	identity->config = config;
	for (unsigned i = 0; i < config->members.count; i++)
		identity->persists |= has_file_store(&members[i]);
	int rc = identity->persists ? begin(identity, &known, err) : 0;
	knowledge_done(&known);
	if (rc) {
		pool_identity_free(identity);
		return rc;
	}
	*ret_identity = identity;
	return 0;
}

const struct member_origin *pool_identity_origin(const struct pool_identity *identity,
						 unsigned member)
{
	return identity->records[member] ? &identity->origins[member] : NULL;
}

const char *pool_identity_volume(const struct pool_identity *identity, uint64_t id)
{
	for (unsigned i = 0; i < identity->volume_count; i++)
		if (identity->volumes[i].id == id)
			return identity->volumes[i].name;
	return NULL;
}

void pool_identity_cached(struct pool_identity *identity, unsigned member, bool cached)
{
	if (identity->records[member])
		identity->records[member]->cached = cached;
}

int pool_identity_commit(struct pool_identity *identity, const struct pool_record_volume *volumes,
			 unsigned volume_count, struct err *err)
{
	if (!identity->persists)
		return 0;
	for (unsigned i = 0; i < identity->config->members.count; i++) {
		struct pool_record *record = identity->records[i];
		if (!record)
			continue;
		record->committed = identity->start;
		record->volume_count = MIN_OF(volume_count, (unsigned)POOL_RECORD_VOLUMES);
		memcpy(record->volumes, volumes, record->volume_count * sizeof *volumes);
	}
	int rc = write_records(identity, err);
	identity->serving = rc == 0;
	return rc;
}

uint64_t pool_identity_ending(struct pool_identity *identity)
{
	struct err err = {0};

	if (!identity->serving)
		return 0;
	for (unsigned i = 0; i < identity->config->members.count; i++)
		if (identity->records[i])
			identity->records[i]->intent = identity->start + 1;
	if (write_records(identity, &err)) {
		log_warn("%s", err.what);
		return 0;
	}
	return identity->start + 1;
}

void pool_identity_end(struct pool_identity *identity, const uint32_t *used_pages, bool ended)
{
	struct err err = {0};

	if (!identity->serving)
		return;
	for (unsigned i = 0; i < identity->config->members.count; i++) {
		struct pool_record *record = identity->records[i];
		if (!record)
			continue;
		record->clean = true;
		record->committed += ended;
		for (unsigned m = 0, listed = 0; m < identity->config->members.count; m++)
			if (identity->records[m])
				record->members[listed++].used_pages = used_pages[m];
	}
	/* Without it the next start only knows less. */
	if (write_records(identity, &err))
		log_warn("%s", err.what);
}

struct pool_identity *pool_identity_free(struct pool_identity *identity)
{
	if (!identity)
		return NULL;
	for (unsigned i = 0; i < POOL_RECORD_MEMBERS; i++)
		free(identity->records[i]);
	free(identity);
	return NULL;
}
