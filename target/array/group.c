/* SPDX-License-Identifier: MIT
 *
 * The group: everything between the SCSI units and the drives, built from the lab file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/volume.h"

enum { GROUP_POOLS_MAX = 4, GROUP_MEMBERS_MAX = GROUP_POOLS_MAX * POOL_MEMBERS_MAX };

struct group {
	struct pool *pools[GROUP_POOLS_MAX];
	size_t pool_count;
	struct member *members[GROUP_MEMBERS_MAX]; /* of all pools, in the lab file's order */
	size_t member_count;
	struct volume **volumes;
	size_t volume_count;
};

static int open_pools(struct loop *loop, struct group *group, const struct group_config *config,
		      const char *lab_name, uint64_t seed, struct err *err)
{
	const struct pool_config *pools = config->pools.items;
	if (config->pools.count > GROUP_POOLS_MAX)
		return err_set(err, -EINVAL, "a group has at most %d pools", GROUP_POOLS_MAX);
	for (size_t i = 0; i < config->pools.count; i++) {
		int rc = pool_open(loop, &pools[i], lab_name, seed, &group->pools[i], err);
		if (rc)
			return rc;
		group->pool_count++;
		for (unsigned m = 0; m < group->pools[i]->member_count; m++)
			group->members[group->member_count++] = group->pools[i]->members[m];
	}
	return 0;
}

static struct pool *find_pool(struct group *group, const char *name)
{
	for (size_t i = 0; i < group->pool_count; i++)
		if (strcmp(group->pools[i]->name, name) == 0)
			return group->pools[i];
	return NULL;
}

static int open_volumes(struct group *group, const struct group_config *config,
			const char *lab_name, struct err *err)
{
	const struct volume_config *volumes = config->volumes.items;
	group->volumes = calloc(MAX_OF(config->volumes.count, 1), sizeof(struct volume *));
	if (!group->volumes)
		return err_set(err, -ENOMEM, "no memory for the volumes");
	for (size_t i = 0; i < config->volumes.count; i++) {
		struct pool *pool = find_pool(group, volumes[i].pool);
		if (!pool)
			return err_set(err, -EINVAL, "volume %s is in the unknown pool %s",
				       volumes[i].name, volumes[i].pool);
		int rc = volume_open(&volumes[i], lab_name, pool, &group->volumes[i], err);
		if (rc)
			return rc;
		group->volume_count++;
	}
	return 0;
}

int group_open(struct loop *loop, const struct group_config *config, const char *lab_name,
	       uint64_t seed, struct group **ret_group, struct err *err)
{
	struct group *group = calloc(1, sizeof *group);
	if (!group)
		return err_set(err, -ENOMEM, "no memory for the group");
	int rc = open_pools(loop, group, config, lab_name, seed, err);
	if (rc == 0)
		rc = open_volumes(group, config, lab_name, err);
	for (size_t i = 0; rc == 0 && i < group->pool_count; i++)
		rc = pool_commit(group->pools[i], group->volumes, group->volume_count, err);
	if (rc) {
		group_close(group);
		return rc;
	}
	*ret_group = group;
	return 0;
}

struct group *group_close(struct group *group)
{
	if (!group)
		return NULL;
	for (size_t i = 0; i < group->pool_count; i++)
		pool_stop(group->pools[i]);
	/* Requests under way end first, at once and in order: none is left half-way. */
	for (size_t i = 0; i < group->member_count; i++)
		member_drain(group->members[i]);
	for (size_t i = 0; i < group->volume_count; i++)
		volume_close(group->volumes[i]);
	for (size_t i = 0; i < group->pool_count; i++)
		pool_close(group->pools[i]);
	free(group->volumes);
	free(group);
	return NULL;
}

size_t group_volume_count(const struct group *group)
{
	return group->volume_count;
}

struct volume *group_volume(struct group *group, size_t index)
{
	return index < group->volume_count ? group->volumes[index] : NULL;
}

struct volume *group_find_volume(struct group *group, const char *name)
{
	for (size_t i = 0; i < group->volume_count; i++)
		if (strcmp(group->volumes[i]->name, name) == 0)
			return group->volumes[i];
	return NULL;
}

size_t group_member_count(const struct group *group)
{
	return group->member_count;
}

size_t group_pool_count(const struct group *group)
{
	return group->pool_count;
}

struct pool *group_pool(struct group *group, size_t index)
{
	return index < group->pool_count ? group->pools[index] : NULL;
}

struct pool *group_find_pool(struct group *group, const char *name)
{
	return find_pool(group, name);
}

struct pool *group_pool_of(struct group *group, const struct member *member)
{
	for (size_t i = 0; i < group->pool_count; i++)
		if (pool_index_of(group->pools[i], member) < group->pools[i]->member_count)
			return group->pools[i];
	return NULL;
}

struct member *group_find_member(struct group *group, const char *name)
{
	for (size_t i = 0; i < group->member_count; i++)
		if (strcmp(member_name(group->members[i]), name) == 0)
			return group->members[i];
	return NULL;
}

struct member *group_member_at(struct group *group, size_t index)
{
	return index < group->member_count ? group->members[index] : NULL;
}
