/* SPDX-License-Identifier: MIT
 *
 * The shape of a simulated array: drawn from its seed.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/array/cache.h"
#include "tests/sim/array/world.h"

struct shape {
	const char *raid;
	unsigned least, most; /* active drives */
};

static const struct shape shapes[] = {
    {"raid1", 2, 3}, {"raid10", 2, 8},	{"raid5", 3, 7},   {"raid50", 6, 8},
    {"raid6", 4, 8}, {"raid60", 8, 12}, {"adapt", 12, 16},
};

static int level_index(const char *raid)
{
	for (int i = 0; raid_level_names[i]; i++)
		if (strcmp(raid_level_names[i], raid) == 0)
			return i;
	return -1;
}

static const struct shape *choose_shape(const char *level, uint64_t seed)
{
	const struct shape *usable[ARRAY_SIZE(shapes)] = {NULL};
	unsigned count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (level_index(shapes[i].raid) >= 0 &&
		    (!level || strcmp(level, shapes[i].raid) == 0))
			usable[count++] = &shapes[i];
	return count ? usable[seed % count] : NULL;
}

/* The smallest drives with which a member has PAGES pages. */
static uint64_t drive_bytes_for(const struct raid_ops *level, unsigned drives, uint64_t chunk,
				unsigned pages)
{
	uint64_t bytes = MIB;
	while (level->usable_bytes(drives, bytes, chunk) < pages * POOL_PAGE_BYTES)
		bytes += 256 * KIB;
	return bytes;
}

/* So small that it fills. */
static void make_caches(struct world *world, struct member_config *member)
{
	if (world_pick(world, 0, 1) == 0)
		return;
	member->cache = (struct member_cache_config){
	    .size_bytes = world_pick(world, 2, 24) * 64 * KIB,
	    .mode = world_pick(world, 0, 5) ? CACHE_WRITE_BACK : CACHE_WRITE_THROUGH,
	    .read = world_pick(world, 0, 2) > 0,
	    .prefetch = world_pick(world, 0, 1),
	};
	if (world_pick(world, 0, 5) == 0)
		member->ssd = (struct member_ssd_config){
		    .count = world_pick(world, 1, 2),
		    .size_bytes = MIB,
		    .page_bytes = world_pick(world, 0, 1) ? 4 * KIB : 64 * KIB,
		    .max_io_bytes = 64 * KIB,
		};
}

static void make_member(struct world *world, const struct shape *shape, unsigned index,
			unsigned pages)
{
	static const uint64_t chunks[] = {32 * KIB, 64 * KIB, 128 * KIB, 128 * KIB};
	char why[200];
	uint64_t chunk = chunks[world_pick(world, 0, ARRAY_SIZE(chunks) - 1)];
	unsigned spares = (unsigned)world_pick(world, 0, 2);

	world->level = raid_find(shape->raid);
	if (world->actives == 0)
		do
			world->actives = (unsigned)world_pick(world, shape->least, shape->most);
		while (world->level->check(world->actives, why, sizeof why));
	world->protection = world->level->protection(world->actives);
	if (world->protection.distributed_spares)
		spares = 0;
	snprintf(world->names[index], sizeof world->names[index], "m%u", index + 1);
	world->members[index] = (struct member_config){
	    .name = world->names[index],
	    .drives = {.count = world->actives + spares,
		       .spares = spares,
		       .size_bytes = drive_bytes_for(world->level, world->actives, chunk, pages)},
	    .raid = level_index(shape->raid),
	    .chunk_bytes = chunk,
	    .checksums = world_pick(world, 0, 1) ? MEMBER_CHECKSUMS_ON : MEMBER_CHECKSUMS_OFF,
	    .timing = world_pick(world, 0, 3) ? DRIVE_TIMING_MODELLED : DRIVE_TIMING_NONE,
	    .store_kind = "file",
	    .store_place = world->dir,
	    .spare_delay_ns = world_pick(world, 0, 1) ? 50 * NS_PER_MS : 0,
	    .controllers = {.failover_ns = world_pick(world, 1, 500) * NS_PER_MS},
	};
	make_caches(world, &world->members[index]);
}

/* Pages move in a quarter of the worlds: there a member joins, another leaves, and the balancers
 * are at work. */
static unsigned make_members(struct world *world, const struct shape *shape)
{
	world->roams = world_pick(world, 0, 3) == 0;
	unsigned count = world->roams || world_pick(world, 0, 5) == 0 ? 2 : 1;
	unsigned pages = world->roams ? 2 : 1;

	for (unsigned i = 0; i < count; i++)
		make_member(world, shape, i, pages + (unsigned)world_pick(world, 0, 1));
	world->pool = (struct pool_config){.name = "default"};
	world->pool.members = (struct cfg_list){world->members, count};
	if (!world->roams)
		return count;
	world->joins = world_pick(world, 0, 1);
	if (world->joins)
		make_member(world, shape, count, pages + (unsigned)world_pick(world, 0, 1));
	world->pool.balance = (struct balance_config){
	    .capacity = world_pick(world, 0, 1),
	    .performance = true,
	    .every_ns = world_pick(world, 1, 4) * 500 * NS_PER_MS,
	    .rate_bytes_per_s = world_pick(world, 0, 1) * world_pick(world, 10, 100) * MIB,
	};
	return count;
}

static bool make_volumes(struct world *world, unsigned members)
{
	static const char *const names[WORLD_VOLUMES] = {"v0", "v1"};
	unsigned volumes = world_pick(world, 0, 3) ? 1 : 2;

	for (unsigned i = 0; i < volumes; i++) {
		uint64_t pages = i ? 1 : members;
		if (i == 0 && world->roams)
			pages += world_pick(world, 0, 1);
		world->volumes[i] = (struct volume_config){
		    .name = names[i],
		    .pool = "default",
		    .size_bytes = pages * POOL_PAGE_BYTES - world_pick(world, 0, 3) * 4096,
		    .thin = i || world_pick(world, 0, 2),
		    .block_bytes = 512,
		    .ssd_cache = world_pick(world, 0, 1),
		};
		if (!shadow_init(&world->shadows[i], world->volumes[i].size_bytes))
			return false;
	}
	world->config = (struct group_config){
	    .style = world_pick(world, 0, 2) ? GROUP_STYLE_EQUALLOGIC : GROUP_STYLE_LUN,
	    .controllers = {.transition_ns = world_pick(world, 0, 200) * NS_PER_MS,
			    .failback = (int)world_pick(world, 0, 1)},
	    .pools = {&world->pool, 1},
	    .volumes = {world->volumes, volumes},
	};
	return true;
}

bool world_make(struct world *world, uint64_t seed, const char *level, const char *parent)
{
	*world = (struct world){.seed = seed};
	rng_init(&world->rng, seed, rng_stream_of("array"));
	const struct shape *shape = choose_shape(level, seed);
	if (!shape)
		return false;
	snprintf(world->dir, sizeof world->dir, "%s/array-%llx-%d", parent,
		 (unsigned long long)seed, (int)getpid());
	if (mkdir(world->dir, 0700))
		return false;
	return make_volumes(world, make_members(world, shape)) &&
	       loop_new_virtual(0, &world->loop) == 0;
}
