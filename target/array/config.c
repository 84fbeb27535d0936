/* SPDX-License-Identifier: MIT
 *
 * The group's part of the lab file: schemas, and the checks that need more than one key: pools
 * that exist, names and portals that are unique, drive counts the RAID level can use, volumes that
 * fit.
 *
 * Limits are those of an EqualLogic group: 4 pools, 8 members a pool, 16 members in all.
 */
#include <string.h>

#include "base/bytes.h"
#include "target/array/array.h"
#include "target/array/controller.h"
#include "target/array/preset.h"

enum {
	MAX_POOLS = 4,
	MAX_POOL_MEMBERS = 8,
	MAX_MEMBERS = 16,
	MAX_MEMBER_PORTALS = 16,
	MAX_VOLUMES = 256, /* LUNs of one target in peripheral addressing */
};

#define PORTAL_SLOTS (1 + MAX_MEMBERS * MAX_MEMBER_PORTALS)

const char *const group_style_names[] = {
    [GROUP_STYLE_EQUALLOGIC] = "equallogic", [GROUP_STYLE_LUN] = "lun", NULL};

const char *const member_checksums_names[] = {[MEMBER_CHECKSUMS_AUTO] = "auto",
					      [MEMBER_CHECKSUMS_ON] = "true",
					      [MEMBER_CHECKSUMS_OFF] = "false",
					      NULL};

static const struct cfg_field drives_fields[] = {
    {"model", CFG_ENUM, offsetof(struct member_drives_config, model), .preset = "sas-15k-600",
     .names = drive_model_names, .help = "drive model of the catalogue"},
    {"count", CFG_UINT, offsetof(struct member_drives_config, count), .required = true, .min = 1,
     .max = 48, .help = "drives in the member, spares included"},
    {"spares", CFG_UINT, offsetof(struct member_drives_config, spares), .preset = "0", .max = 47,
     .help = "how many of them are hot spares"},
    {"size", CFG_SIZE, offsetof(struct member_drives_config, size_bytes), .min = 16 * MIB,
     .max = 64 * TIB, .help = "size of each drive, in place of the model's"},
    {"scheduler", CFG_ENUM, offsetof(struct member_drives_config, scheduler), .preset = "satf",
     .names = drive_scheduler_names,
     .help = "order in which a modelled disk serves its queue: shortest access time first, "
	     "elevator, or as it came"},
};
static const struct cfg_schema drives_schema = {"drives", sizeof(struct member_drives_config),
						drives_fields, ARRAY_SIZE(drives_fields)};

static const struct cfg_field member_controllers_fields[] = {
    {"count", CFG_UINT, offsetof(struct controllers_config, count), .min = 1,
     .max = CONTROLLER_COUNT, .help = "controllers the member has, 2 unless given"},
    {"failover", CFG_DURATION, offsetof(struct controllers_config, failover_ns), .max = 600e9,
     .help = "how long its portals are silent in a failover; the group's unless given"},
};
static const struct cfg_schema member_controllers_schema = {
    "controllers", sizeof(struct controllers_config), member_controllers_fields,
    ARRAY_SIZE(member_controllers_fields)};

static const struct cfg_field group_controllers_fields[] = {
    {"failover", CFG_DURATION, offsetof(struct controllers_config, failover_ns), .preset = "2s",
     .max = 600e9,
     .help = "style equallogic: how long the passive controller takes to take over, while the "
	     "member's portals are silent"},
    {"transition", CFG_DURATION, offsetof(struct controllers_config, transition_ns),
     .preset = "500ms", .max = 60e9,
     .help = "style lun: how long a volume is `transitioning` when its controller changes"},
    {"failback", CFG_ENUM, offsetof(struct controllers_config, failback), .preset = "auto",
     .names = controller_failback_names,
     .help = "style lun: whether volumes go back by themselves when their controller returns"},
};
static const struct cfg_schema group_controllers_schema = {
    "controllers", sizeof(struct controllers_config), group_controllers_fields,
    ARRAY_SIZE(group_controllers_fields)};

static const struct cfg_field scrub_fields[] = {
    {"every", CFG_DURATION, offsetof(struct member_scrub_config, every_ns),
     .help = "how often one begins by itself; none given: only by hand"},
};
static const struct cfg_schema scrub_schema = {"scrub", sizeof(struct member_scrub_config),
					       scrub_fields, ARRAY_SIZE(scrub_fields)};

static const struct cfg_field member_fields[] = {
    {"name", CFG_STRING, offsetof(struct member_config, name), .required = true,
     .help = "a-z, 0-9 and '-'"},
    {"model", CFG_ENUM, offsetof(struct member_config, model), .names = preset_names,
     .help = "an array one can buy: gives every key below that is left out"},
    {"drives", CFG_STRUCT, offsetof(struct member_config, drives), .required = true,
     .sub = &drives_schema, .help = "the drives, {model: NAME, count: N, spares: N}"},
    {"raid", CFG_ENUM, offsetof(struct member_config, raid), .required = true,
     .names = raid_level_names, .help = "RAID level over the active drives"},
    {"chunk", CFG_SIZE, offsetof(struct member_config, chunk_bytes), .preset = "64KiB",
     .min = 4 * KIB, .max = 1 * MIB, .help = "stripe element on one drive, a power of two"},
    {"controllers", CFG_STRUCT, offsetof(struct member_config, controllers),
     .sub = &member_controllers_schema,
     .help = "the member's active/passive pair (style equallogic)"},
    {"cache", CFG_STRUCT, offsetof(struct member_config, cache), .sub = &member_cache_schema,
     .help = "the controller's cache, {size: 64MiB, mode: write-back}"},
    {"ssd-cache", CFG_STRUCT, offsetof(struct member_config, ssd), .sub = &member_ssd_schema,
     .help = "a read cache on SSDs for the volumes that say so, {count: 4}"},
    {"portals", CFG_PORTALS, offsetof(struct member_config, portals),
     .help = "addresses at which the member serves I/O; each is a path"},
    {"store", CFG_UNION, offsetof(struct member_config, store), .preset = "memory",
     .help = "where the drives' content lives: memory, {file: DIR}, or discard: nowhere, reads are "
	     "zeros"},
    {"timing", CFG_ENUM, offsetof(struct member_config, timing), .preset = "none",
     .names = drive_timing_names,
     .help = "none: as fast as the machine; modelled: the drive model's service times"},
    {"spare-delay", CFG_DURATION, offsetof(struct member_config, spare_delay_ns), .preset = "2s",
     .help = "how long a drive may be away before a hot spare takes its place"},
    {"rebuild-rate", CFG_SIZE, offsetof(struct member_config, rebuild_rate_bytes),
     .help = "most that rebuild and scrub read and write in a second; none given: no limit"},
    {"scrub", CFG_STRUCT, offsetof(struct member_config, scrub), .sub = &scrub_schema,
     .help = "verification of the whole set in the background"},
    {"checksums", CFG_ENUM, offsetof(struct member_config, checksums), .preset = "auto",
     .names = member_checksums_names,
     .help = "a checksum for each sector, verified on every read; auto: on but for raid0"},
};
static const struct cfg_schema member_schema = {"member", sizeof(struct member_config),
						member_fields, ARRAY_SIZE(member_fields),
						.expand = preset_expand};

static const struct cfg_field balance_fields[] = {
    {"capacity", CFG_BOOL, offsetof(struct balance_config, capacity), .preset = "true",
     .help = "move pages so that volumes spread over up to three members by their capacity"},
    {"performance", CFG_BOOL, offsetof(struct balance_config, performance), .preset = "true",
     .help = "swap hot pages of a member that is 20 ms slower than the fastest for cold ones"},
    {"every", CFG_DURATION, offsetof(struct balance_config, every_ns), .preset = "5min",
     .min = NS_PER_S, .max = 24 * 3600 * NS_PER_S, .help = "how often the pool is looked at"},
    {"rate", CFG_SIZE, offsetof(struct balance_config, rate_bytes_per_s), .preset = "64MiB",
     .min = MIB, .max = 64 * GIB, .help = "page moves copy at most so much a second"},
};
static const struct cfg_schema balance_schema = {"balance", sizeof(struct balance_config),
						 balance_fields, ARRAY_SIZE(balance_fields)};

static const struct cfg_field pool_fields[] = {
    {"name", CFG_STRING, offsetof(struct pool_config, name), .required = true,
     .help = "a-z, 0-9 and '-'"},
    {"members", CFG_LIST, offsetof(struct pool_config, members), .required = true,
     .sub = &member_schema, .help = "the arrays of the pool, at most 8"},
    {"balance", CFG_STRUCT, offsetof(struct pool_config, balance), .sub = &balance_schema,
     .help = "how the pool moves pages between its members"},
};
static const struct cfg_schema pool_schema = {"pool", sizeof(struct pool_config), pool_fields,
					      ARRAY_SIZE(pool_fields)};

static const struct cfg_field volume_fields[] = {
    {"name", CFG_STRING, offsetof(struct volume_config, name), .required = true,
     .help = "a-z, 0-9 and '-'; ends the volume's iSCSI name"},
    {"pool", CFG_STRING, offsetof(struct volume_config, pool), .preset = "default",
     .help = "name of the pool it lives in"},
    {"size", CFG_SIZE, offsetof(struct volume_config, size_bytes), .required = true, .min = MIB,
     .max = 64 * TIB, .help = "size as initiators see it"},
    {"thin", CFG_BOOL, offsetof(struct volume_config, thin), .preset = "true",
     .help = "take pool space page by page as it is written, not at once"},
    {"block", CFG_SIZE, offsetof(struct volume_config, block_bytes), .preset = "512B",
     .help = "logical block: 512B or 4KiB"},
    {"physical-block", CFG_SIZE, offsetof(struct volume_config, physical_block_bytes),
     .preset = "4KiB", .help = "what initiators are to align to: 512B (with block 512B) or 4KiB"},
    {"read-only", CFG_BOOL, offsetof(struct volume_config, read_only), .preset = "false",
     .help = "initiators find the volume write-protected"},
    {"removable", CFG_BOOL, offsetof(struct volume_config, removable), .preset = "false",
     .help = "a removable medium: initiators can eject it and load it again"},
    {"thin-threshold", CFG_PERCENT, offsetof(struct volume_config, thin_threshold), .min = 1,
     .max = 100, .help = "use of the pool at which initiators are warned once (unit attention)"},
    {"ssd-cache", CFG_BOOL, offsetof(struct volume_config, ssd_cache), .preset = "false",
     .help = "reads go through the SSD caches of the pool's members"},
};
static const struct cfg_schema volume_schema = {"volume", sizeof(struct volume_config),
						volume_fields, ARRAY_SIZE(volume_fields)};

static const struct cfg_field group_fields[] = {
    {"style", CFG_ENUM, offsetof(struct group_config, style), .preset = "equallogic",
     .names = group_style_names,
     .help = "equallogic: one target a volume, logins at the group portal are redirected to "
	     "members; lun: one target, volumes are its LUNs"},
    {"portal", CFG_PORTAL, offsetof(struct group_config, portal), .required = true,
     .help = "group address: discovery and redirection"},
    {"controllers", CFG_STRUCT, offsetof(struct group_config, controllers),
     .sub = &group_controllers_schema, .help = "how controllers fail over"},
    {"pools", CFG_LIST, offsetof(struct group_config, pools), .required = true, .sub = &pool_schema,
     .help = "pools of members, at most 4"},
    {"volumes", CFG_LIST, offsetof(struct group_config, volumes), .required = true,
     .sub = &volume_schema, .help = "what is exported, at most 256"},
    {"access", CFG_LIST, offsetof(struct group_config, access), .sub = &access_schema,
     .help = "who may reach which volume; none: everybody every one, else what no rule opens is "
	     "closed"},
    {"chap", CFG_STRUCT, offsetof(struct group_config, chap), .sub = &chap_schema,
     .help = "authentication of initiators, and of the target where they ask for it"},
};
const struct cfg_schema group_schema = {"group", sizeof(struct group_config), group_fields,
					ARRAY_SIZE(group_fields)};

/* ---- checks ---- */

/* Portals seen so far and who has them. */
struct owners {
	const struct cfg_portal *portal[PORTAL_SLOTS];
	const char *owner[PORTAL_SLOTS];
	size_t count;
};

static void check_portal(struct cfg *cfg, struct owners *owners, const struct cfg_portal *portal,
			 const char *owner)
{
	if (!portal->set || owners->count == PORTAL_SLOTS)
		return;
	for (size_t i = 0; i < owners->count; i++) {
		if (strcmp(owners->portal[i]->text, portal->text))
			continue;
		cfg_error_at(cfg, portal, "portal %s of %s is already the portal of %s",
			     portal->text, owner, owners->owner[i]);
		return;
	}
	owners->portal[owners->count] = portal;
	owners->owner[owners->count++] = owner;
}

/* `memory`, or a mapping of one kind to its place. */
static void check_store(struct cfg *cfg, struct member_config *member)
{
	const char *kind = cfg_raw_scalar(&member->store), *place = NULL;
	struct cfg_raw value, more;

	if (!kind) {
		const char *key;
		if (!cfg_raw_entry(&member->store, 0, &kind, &value) || !kind ||
		    cfg_raw_entry(&member->store, 1, &key, &more)) {
			cfg_error_raw(cfg, &member->store,
				      "'store' must be memory, {file: DIR} or discard");
			return;
		}
		place = cfg_raw_scalar(&value);
	}
	if (!store_find(kind)) {
		const char *const kinds[] = {"memory", "file", "discard", NULL};
		cfg_error_raw(cfg, &member->store, "'store' is of the unknown kind '%.60s'", kind);
		const char *near = cfg_nearest(kind, kinds);
		if (near)
			cfg_hint(cfg, "did you mean '%s'? allowed: memory, {file: DIR}, discard",
				 near);
		else
			cfg_hint(cfg, "allowed: memory, {file: DIR}, discard");
	} else if (!strcmp(kind, "file") && (!place || !*place)) {
		cfg_error_raw(cfg, &member->store,
			      "a file store needs its directory: store: {file: DIR}");
	}
	member->store_kind = kind;
	member->store_place = place;
}

static void check_drives(struct cfg *cfg, const struct member_config *member)
{
	const struct member_drives_config *drives = &member->drives;
	const struct raid_ops *raid = raid_find(raid_level_names[member->raid]);
	char why[200];

	if (member->chunk_bytes & (member->chunk_bytes - 1))
		cfg_error_at(cfg, &member->chunk_bytes, "'chunk' must be a power of two");
	if (!cfg_valid(cfg, &drives->count) || !cfg_valid(cfg, &drives->spares) ||
	    !cfg_valid(cfg, &member->raid))
		return;
	if (drives->spares >= drives->count)
		cfg_error_at(cfg, &drives->spares, "%llu spares of %llu drives leave none for data",
			     (unsigned long long)drives->spares, (unsigned long long)drives->count);
	else if (raid && raid->check((unsigned)(drives->count - drives->spares), why, sizeof why))
		cfg_error_at(cfg, &drives->count, "%s (member '%.60s': %llu drives, %llu spares)",
			     why, member->name ? member->name : "",
			     (unsigned long long)drives->count, (unsigned long long)drives->spares);
}

static void check_member(struct cfg *cfg, const struct group_config *config,
			 struct member_config *member, struct owners *owners)
{
	const char *name = member->name ? member->name : "a member";

	cfg_check_name(cfg, &member->name);
	preset_check(cfg, config, member);
	check_drives(cfg, member);
	check_store(cfg, member);
	member_ssd_check(cfg, &member->ssd);
	if (member->portals.count > MAX_MEMBER_PORTALS)
		cfg_error_at(cfg, &member->portals, "a member has at most %d portals",
			     MAX_MEMBER_PORTALS);
	else if (!member->portals.count && config->style == GROUP_STYLE_EQUALLOGIC &&
		 cfg_valid(cfg, &member->portals))
		cfg_error_at(cfg, &member->portals,
			     "member '%.60s' has no portals; the group portal only redirects to "
			     "members (style equallogic)",
			     name);
	const struct cfg_portal *portals = member->portals.items;
	for (size_t i = 0; i < member->portals.count; i++)
		check_portal(cfg, owners, &portals[i], name);
}

static void check_pools(struct cfg *cfg, struct group_config *config)
{
	struct owners owners = {.count = 0};
	struct pool_config *pools = config->pools.items;
	const struct member_config *seen[MAX_MEMBERS];
	size_t seen_count = 0;

	if (cfg_valid(cfg, &config->portal))
		check_portal(cfg, &owners, &config->portal, "the group");
	for (size_t p = 0; p < config->pools.count; p++) {
		struct member_config *members = pools[p].members.items;
		cfg_check_name(cfg, &pools[p].name);
		for (size_t q = 0; pools[p].name && q < p; q++)
			if (pools[q].name && !strcmp(pools[p].name, pools[q].name))
				cfg_error_at(cfg, &pools[p].name, "there is a pool '%s' already",
					     pools[p].name);
		if (!pools[p].members.count && cfg_valid(cfg, &pools[p].members))
			cfg_error_at(cfg, &pools[p].members, "pool '%s' has no members",
				     pools[p].name ? pools[p].name : "");
		if (pools[p].members.count > MAX_POOL_MEMBERS)
			cfg_error_at(cfg, &pools[p].members, "a pool has at most %d members",
				     MAX_POOL_MEMBERS);
		for (size_t m = 0; m < pools[p].members.count; m++) {
			check_member(cfg, config, &members[m], &owners);
			for (size_t s = 0; members[m].name && s < seen_count; s++)
				if (seen[s]->name && !strcmp(seen[s]->name, members[m].name))
					cfg_error_at(cfg, &members[m].name,
						     "there is a member '%s' already",
						     members[m].name);
			if (seen_count < MAX_MEMBERS)
				seen[seen_count++] = &members[m];
			else
				cfg_error_at(cfg, &members[m].name,
					     "a group has at most %d members", MAX_MEMBERS);
		}
	}
}

/* Whole pages that volumes can use; 0 when the pool's own description is wrong. */
static uint64_t pool_usable_bytes(struct cfg *cfg, const struct pool_config *pool)
{
	const struct member_config *members = pool->members.items;
	uint64_t total = 0;

	for (size_t m = 0; m < pool->members.count; m++) {
		const struct member_drives_config *drives = &members[m].drives;
		const struct raid_ops *raid = raid_find(raid_level_names[members[m].raid]);
		const struct drive_model *model =
		    drive_model_find(drive_model_names[drives->model]);
		uint64_t drive_bytes = drives->size_bytes ? drives->size_bytes
				       : model		  ? model->size_bytes
							  : 0;
		char why[200];
		uint64_t chunk_bytes = members[m].chunk_bytes;
		if (!raid || !drive_bytes || !chunk_bytes || (chunk_bytes & (chunk_bytes - 1)) ||
		    !cfg_valid(cfg, &members[m].chunk_bytes) || !cfg_valid(cfg, &members[m].raid) ||
		    !cfg_valid(cfg, &drives->count) || !cfg_valid(cfg, &drives->size_bytes) ||
		    !cfg_valid(cfg, &drives->model) || drives->spares >= drives->count ||
		    raid->check((unsigned)(drives->count - drives->spares), why, sizeof why))
			return 0;
		uint64_t usable = raid->usable_bytes((unsigned)(drives->count - drives->spares),
						     drive_bytes, chunk_bytes);
		total += usable / POOL_PAGE_BYTES * POOL_PAGE_BYTES;
	}
	return total;
}

static const struct pool_config *find_pool(const struct group_config *config, const char *name)
{
	const struct pool_config *pools = config->pools.items;
	for (size_t p = 0; p < config->pools.count; p++)
		if (pools[p].name && !strcmp(pools[p].name, name))
			return &pools[p];
	return NULL;
}

static void unknown_pool(struct cfg *cfg, const struct group_config *config,
			 const struct volume_config *volume)
{
	const struct pool_config *pools = config->pools.items;
	const char *names[MAX_POOLS + 1];
	char listed[200] = "";
	size_t count = 0;

	for (size_t p = 0; p < config->pools.count && count < MAX_POOLS; p++) {
		if (!pools[p].name)
			continue;
		size_t used = strlen(listed);
		(void)snprintf(listed + used, sizeof listed - used, "%s%.40s", used ? ", " : "",
			       pools[p].name);
		names[count++] = pools[p].name;
	}
	names[count] = NULL;
	cfg_error_at(cfg, &volume->pool, "volume '%.60s' is in the unknown pool '%.60s'",
		     volume->name ? volume->name : "", volume->pool);
	const char *near = cfg_nearest(volume->pool, names);
	if (near)
		cfg_hint(cfg, "did you mean '%s'? pools: %s", near, listed);
	else if (count)
		cfg_hint(cfg, "pools: %s", listed);
}

static void check_physical_block(struct cfg *cfg, const struct volume_config *volume)
{
	uint64_t bytes = volume->physical_block_bytes;

	if (!cfg_valid(cfg, &volume->physical_block_bytes))
		return;
	if (bytes != 512 && bytes != 4096)
		cfg_error_at(cfg, &volume->physical_block_bytes,
			     "'physical-block' must be 512B or 4KiB");
	else if (cfg_valid(cfg, &volume->block_bytes) && bytes < volume->block_bytes)
		cfg_error_at(cfg, &volume->physical_block_bytes,
			     "'physical-block' is smaller than the block");
}

static bool has_ssd_cache(const struct pool_config *pool)
{
	const struct member_config *members = pool->members.items;
	for (size_t m = 0; m < pool->members.count; m++)
		if (members[m].ssd.count)
			return true;
	return false;
}

static void check_volume(struct cfg *cfg, const struct group_config *config, size_t index)
{
	const struct volume_config *volumes = config->volumes.items, *volume = &volumes[index];

	cfg_check_name(cfg, &volume->name);
	for (size_t v = 0; volume->name && v < index; v++)
		if (volumes[v].name && !strcmp(volumes[v].name, volume->name)) {
			cfg_error_at(cfg, &volume->name, "there is a volume '%s' already",
				     volume->name);
			break;
		}
	bool block_ok = volume->block_bytes == 512 || volume->block_bytes == 4096;
	if (cfg_valid(cfg, &volume->block_bytes) && !block_ok)
		cfg_error_at(cfg, &volume->block_bytes, "'block' must be 512B or 4KiB");
	else if (block_ok && cfg_valid(cfg, &volume->size_bytes) &&
		 volume->size_bytes % volume->block_bytes)
		cfg_error_at(cfg, &volume->size_bytes, "'size' is not a multiple of the block");
	check_physical_block(cfg, volume);
	const struct pool_config *pool = find_pool(config, volume->pool);
	if (cfg_valid(cfg, &volume->pool) && !pool)
		unknown_pool(cfg, config, volume);
	if (volume->ssd_cache && pool && !has_ssd_cache(pool)) {
		cfg_error_at(cfg, &volume->ssd_cache, "no member of pool '%.60s' has an SSD cache",
			     pool->name);
		cfg_hint(cfg, "as in the member's ssd-cache: {count: 4}");
	}
}

/* Thick volumes take their space at once; thin ones may promise more than the pool has. */
static void check_space(struct cfg *cfg, const struct group_config *config)
{
	const struct pool_config *pools = config->pools.items;
	const struct volume_config *volumes = config->volumes.items;

	for (size_t p = 0; p < config->pools.count; p++) {
		uint64_t usable = pool_usable_bytes(cfg, &pools[p]), taken = 0;
		for (size_t v = 0; usable && v < config->volumes.count; v++) {
			if (volumes[v].thin || !volumes[v].pool ||
			    !cfg_valid(cfg, &volumes[v].size_bytes) ||
			    find_pool(config, volumes[v].pool) != &pools[p])
				continue;
			taken += round_up_u64(volumes[v].size_bytes, POOL_PAGE_BYTES);
			if (taken <= usable)
				continue;
			cfg_error_at(cfg, &volumes[v].size_bytes,
				     "volume '%.60s' does not fit: pool '%s' has %.1f GiB, thick "
				     "volumes up to this one take %.1f GiB",
				     volumes[v].name ? volumes[v].name : "", pools[p].name,
				     (double)usable / (double)GIB, (double)taken / (double)GIB);
			cfg_hint(cfg, "make it thin or smaller, or add drives");
			break;
		}
	}
}

void group_config_check(struct cfg *cfg, struct group_config *config)
{
	if (config->pools.count > MAX_POOLS) {
		cfg_error_at(cfg, &config->pools, "a group has at most %d pools", MAX_POOLS);
		return;
	}
	if (config->volumes.count > MAX_VOLUMES) {
		cfg_error_at(cfg, &config->volumes, "a group has at most %d volumes", MAX_VOLUMES);
		return;
	}
	check_pools(cfg, config);
	for (size_t v = 0; v < config->volumes.count; v++)
		check_volume(cfg, config, v);
	check_space(cfg, config);
	access_config_check(cfg, config);
}
