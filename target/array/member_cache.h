/* SPDX-License-Identifier: MIT
 *
 * The caches of a member, between it and its RAID set: controller cache over SSD tier; private to
 * the room.
 */
#ifndef SANLAB_TARGET_ARRAY_MEMBER_CACHE_H
#define SANLAB_TARGET_ARRAY_MEMBER_CACHE_H

#include "target/array/member.h"

/* Opens what is configured over the set and lets member->top point to the uppermost.  ORIGIN: whose
 * the cache memory must be; NULL without a file store.  FRESH: the set is new, and what a cache
 * memory of that name holds is not its own. */
int member_cache_open(struct loop *loop, struct member *member, const struct member_config *config,
		      const struct raid_ops *raid, const struct member_origin *origin, bool fresh,
		      uint64_t seed, struct err *err);
/* May its memory hold what the drives have not, now or (SERVING) from now on? */
bool member_cache_may_hold(const struct member *member, bool serving);
/* The cache's memory, or one that an earlier cache has left, takes the number NUMBER. */
int member_cache_end(struct member *member, uint64_t number, struct err *err);
void member_cache_drain(struct member *member);
void member_cache_close(struct member *member);

#endif
