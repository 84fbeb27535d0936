/* SPDX-License-Identifier: MIT
 *
 * A pool: members, and which of them gives a volume its next page; private to the room.
 */
#ifndef SANLAB_TARGET_ARRAY_POOL_H
#define SANLAB_TARGET_ARRAY_POOL_H

#include "target/array/member.h"
#include "target/array/pool_identity.h"
#include "target/array/pool_status.h"

enum { VOLUME_MEMBERS_MAX = 3 }; /* over which a volume is spread while they have room */

struct pool {
	char name[64];
	struct member *members[POOL_MEMBERS_MAX];
	unsigned member_count;
	struct pool_identity *identity;
};

int pool_open(struct loop *loop, const struct pool_config *config, const char *lab_name,
	      uint64_t seed, struct pool **ret_pool, struct err *err);
/* The last step of a start, when all volumes are open: checks the pages found against them, and
 * from then on the pool serves (pool_identity.h). */
struct volume;
int pool_commit(struct pool *pool, struct volume *const *volumes, size_t volume_count,
		struct err *err);
struct pool *pool_close(struct pool *pool);

/* The member for a volume's next page, given the pages it has on each already; -ENOSPC.
 *
 * The least filled by the volume's own share of the capacity wins, between equals the least
 * filled by all volumes: each volume spreads over its members by their capacity, and so, up to a
 * page a volume, does the pool.  (By the pool's share alone, two volumes written in turn would
 * each end up on one member.)  A volume keeps to three members; when they are full, another takes
 * over. */
int pool_choose(const struct pool *pool, const uint32_t *volume_pages, unsigned *ret_member);

#endif
