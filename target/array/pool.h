/* SPDX-License-Identifier: MIT
 *
 * A pool: members, which of them gives a volume its next page, and the pool's own work on pages
 * (moves, cleaning, balancing); private to the room.
 */
#ifndef SANLAB_TARGET_ARRAY_POOL_H
#define SANLAB_TARGET_ARRAY_POOL_H

#include "target/array/member.h"
#include "target/array/pool_identity.h"
#include "target/array/pool_status.h"

enum {
	VOLUME_MEMBERS_MAX = 3, /* over which a volume is spread while they have room */
	POOL_VOLUMES_MAX = 256,
};

struct balancer;
struct cleaner;
struct mover;

struct pool {
	char name[64];
	struct loop *loop;
	struct member *members[POOL_MEMBERS_MAX];
	unsigned member_count;
	struct pool_identity *identity;
	struct volume *volumes[POOL_VOLUMES_MAX];
	unsigned volume_count;
	struct cleaner *cleaner;
	struct mover *mover;
	struct balancer *balancer;
	unsigned warned_percent;
	struct pool_event events[POOL_EVENTS_MAX]; /* a ring */
	uint64_t event_count;
};

int pool_open(struct loop *loop, const struct pool_config *config, const char *lab_name,
	      uint64_t seed, struct pool **ret_pool, struct err *err);
/* The last step of a start, when all volumes are open: checks the pages found against them, and
 * from then on the pool serves (pool_identity.h). */
struct volume;
int pool_commit(struct pool *pool, struct volume *const *volumes, size_t volume_count,
		struct err *err);
struct pool *pool_close(struct pool *pool);
/* Ends the pool's own work: it leaves requests under way alone and begins nothing more.  Volumes
 * go on to work. */
void pool_stop(struct pool *pool);

/* Volumes tell their pool that they are there. */
int pool_add_volume(struct pool *pool, struct volume *volume, struct err *err);
void pool_remove_volume(struct pool *pool, const struct volume *volume);

/* The member for a volume's next page, given the pages it has on each already; -ENOSPC.
 *
 * The least filled by the volume's own share of the capacity wins, between equals the least
 * filled by all volumes: each volume spreads over its members by their capacity, and so, up to a
 * page a volume, does the pool.  (By the pool's share alone, two volumes written in turn would
 * each end up on one member.)  A volume keeps to three members; when they are full, another takes
 * over. */
int pool_choose(const struct pool *pool, const uint32_t *volume_pages, unsigned *ret_member);

/* Pages were taken or given back: warns once when use passes 80, 90 and 95 per cent. */
void pool_check_space(struct pool *pool);
void pool_event(struct pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
unsigned pool_index_of(const struct pool *pool, const struct member *member);

#endif
