/* SPDX-License-Identifier: MIT
 *
 * What every member with a file store knows of its pool, PLACE/MEMBER.pool: who belongs to it, the
 * numbers of its starts, and the names of its volumes.  Replaced as a whole (vfs_replace), so it is
 * never torn.
 *
 *   header   0 magic "SANLPOOL"   8 version    12 CRC32C    16 pool UUID   32 member UUID
 *           48 committed         56 intent     64 clean     68 members     72 volumes
 *           76 cached        80 member (64) 144 pool (64) 208 lab (64)  272 reserved to 512
 *   member   0 name (64)         64 UUID       80 since     88 used pages
 *   volume   0 id                 8 size       16 name (64)
 */
#ifndef SANLAB_TARGET_ARRAY_POOL_RECORD_H
#define SANLAB_TARGET_ARRAY_POOL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "target/drive/store_super.h"

enum { POOL_RECORD_MEMBERS = 8, POOL_RECORD_VOLUMES = 512 };

struct pool_record_member {
	char name[STORE_NAME_BYTES];
	uint8_t uuid[STORE_UUID_BYTES];
	uint64_t since;	     /* the start it joined with */
	uint64_t used_pages; /* at the last orderly end */
};

struct pool_record_volume {
	uint64_t id, size_bytes;
	char name[STORE_NAME_BYTES];
};

struct pool_record {
	uint8_t pool_uuid[STORE_UUID_BYTES], member_uuid[STORE_UUID_BYTES];
	char member[STORE_NAME_BYTES], pool[STORE_NAME_BYTES], lab[STORE_NAME_BYTES];
	uint64_t committed; /* the last start that served; 0: none yet */
	uint64_t intent;    /* the last start that was begun */
	bool clean;	    /* the last start ended in order */
	bool cached;	    /* its cache memory may hold what the drives have not */
	unsigned member_count, volume_count;
	struct pool_record_member members[POOL_RECORD_MEMBERS];
	struct pool_record_volume volumes[POOL_RECORD_VOLUMES];
};

/* -ENOENT: there is none, ERR untouched. */
int pool_record_read(const char *place, const char *member, struct pool_record *ret_record,
		     struct err *err);
/* Makes PLACE if only its last component is missing. */
int pool_record_write(const char *place, const struct pool_record *record, struct err *err);
/* The first record in PLACE that WANTED is true of; -ENOENT, also when there is no such place. */
int pool_record_search(const char *place,
		       bool (*wanted)(void *arg, const struct pool_record *record), void *arg,
		       struct pool_record *ret_record);
const struct pool_record_member *pool_record_find(const struct pool_record *record,
						  const char *member);

#endif
