/* SPDX-License-Identifier: MIT
 *
 * Which members are a pool, so that one that was lost, left out or restored from an old copy is
 * never served as if nothing had happened.  For members with a file store; others have no past.
 *
 * Each start and each orderly end of a pool has a number, larger than all before, and two steps.
 * Intent: every member notes the number and who belongs to the pool; only then files are made or
 * changed.  Commit: when all is open, every member notes that the start serves; only then anything
 * is served.  At an end what is noted in between is that all files are as they will be found: a
 * copy of one that was made while the pool served is older than that.  So a member that knows the
 * last committed start, as intent or as commit, has missed nothing, and a crash at any place leaves
 * a pool that starts again.
 *
 * Threading: the loop's thread.  Ownership: the pool's.
 */
#ifndef SANLAB_TARGET_ARRAY_POOL_IDENTITY_H
#define SANLAB_TARGET_ARRAY_POOL_IDENTITY_H

#include "target/array/array.h"
#include "target/array/pool_record.h"

/* Where a member with a file store comes from, for its page map and drives. */
struct member_origin {
	const char *lab, *pool;
	uint8_t pool_uuid[STORE_UUID_BYTES], member_uuid[STORE_UUID_BYTES];
	uint64_t committed; /* what took part in the pool's last start has this number or more */
	uint64_t start;	    /* of this one */
	bool known;	    /* the pool has served with this member: its files must be there */
	bool cached;	    /* so must its cache memory: it may hold what the drives have not */
};

struct pool_identity {
	char lab[STORE_NAME_BYTES], pool[STORE_NAME_BYTES];
	const struct pool_config *config;
	bool persists; /* a member has a file store; nothing below counts otherwise */
	bool serving;  /* committed */
	uint64_t committed, start;
	struct member_origin origins[POOL_RECORD_MEMBERS]; /* as in the configuration */
	struct pool_record *records[POOL_RECORD_MEMBERS];  /* NULL: not a file store */
	/* The volumes whose names are known from before, whether or not the lab names them. */
	unsigned volume_count;
	struct pool_record_volume volumes[POOL_RECORD_VOLUMES];
};

/* Reads what the members know, refuses what does not fit, and notes the intent. */
int pool_identity_begin(const struct pool_config *config, const char *lab_name,
			struct pool_identity **ret_identity, struct err *err);
/* NULL: the member has no file store. */
const struct member_origin *pool_identity_origin(const struct pool_identity *identity,
						 unsigned member);
/* The name of a volume of which pages were found, or NULL. */
const char *pool_identity_volume(const struct pool_identity *identity, uint64_t id);
/* For the next commit or end: may the member's cache memory hold what its drives have not? */
void pool_identity_cached(struct pool_identity *identity, unsigned member, bool cached);
/* All is open: from now on the pool serves.  VOLUMES: all that have pages or may get some. */
int pool_identity_commit(struct pool_identity *identity, const struct pool_record_volume *volumes,
			 unsigned volume_count, struct err *err);
/* The number of the orderly end that begins; 0: it has none, for the pool did not serve or it could
 * not be noted. */
uint64_t pool_identity_ending(struct pool_identity *identity);
/* The end; USED_PAGES of each member.  ENDED: all files have its number. */
void pool_identity_end(struct pool_identity *identity, const uint32_t *used_pages, bool ended);
struct pool_identity *pool_identity_free(struct pool_identity *identity);

#endif
