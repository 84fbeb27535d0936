/* SPDX-License-Identifier: MIT
 *
 * Where an I/O of the trace goes.  A device of the trace has a region: a part of one volume, or of
 * several that it is striped over.  What reaches beyond it wraps around, as a rule.
 */
#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/replay_impl.h"

/* ---- the volumes a row names ---- */

/* NAME, "db1" or "mbx1/db1", is the volume FULL, "mbx1/db1". */
static bool is_name_of(const char *name, const char *full)
{
	const char *volume = strchr(full, '/');

	return strcmp(name, full) == 0 || (volume && strcmp(name, volume + 1) == 0);
}

static int check_name(const char *name, const char *const *names, size_t count, struct err *err)
{
	unsigned found = 0;

	for (size_t i = 0; i < count; i++)
		found += is_name_of(name, names[i]);
	if (found > 1)
		return err_set(err, -EINVAL,
			       "map: several hosts have a volume '%.100s', write HOST/VOLUME",
			       name);
	if (found == 1)
		return 0;
	err_set(err, -EINVAL, "map: no host has a volume '%.100s'", name);
	err_hint(err, "`to` names volumes of the hosts: VOLUME or HOST/VOLUME");
	return -EINVAL;
}

static int check_rows(const struct replay_config *config, const char *const *names, size_t count,
		      struct err *err)
{
	const struct replay_map_config *rows = config->map.items;
	int r = 0;

	for (size_t i = 0; i < config->map.count; i++)
		for (size_t k = 0; r == 0 && k < rows[i].to.count; k++)
			r = check_name(((const char *const *)rows[i].to.items)[k], names, count,
				       err);
	return r;
}

int replay_check_names(const void *config, const char *const *names, size_t count, struct err *err)
{
	return check_rows(config, names, count, err);
}

/* The name has been checked. */
static unsigned find_volume(const struct replay *replay, const char *name)
{
	for (unsigned d = 0; d < replay->env.device_count; d++) {
		const struct workload_device *device = &replay->env.devices[d];
		char full[300];

		snprintf(full, sizeof full, "%s/%s", device->host, device->volume);
		if (is_name_of(name, full))
			return d;
	}
	assert(false);
	return 0;
}

static int check_row(const struct replay *replay, const struct replay_map_config *row,
		     struct err *err)
{
	const char *const *to = row->to.items;

	for (size_t i = 0; i < row->to.count; i++) {
		unsigned found = find_volume(replay, to[i]);
		uint64_t size, want;

		size = replay->env.devices[found].layer->size_bytes;
		want = row->size_bytes ? row->size_bytes : row->stripe_bytes;
		if (row->to.count == 1 && !row->size_bytes)
			want = 4096;
		if (row->offset_bytes > size || want > size - row->offset_bytes)
			return err_set(
			    err, -EINVAL,
			    "map: the region of '%.60s' reaches beyond the end of volume "
			    "'%.100s' of %llu bytes",
			    row->from, to[i], (unsigned long long)size);
	}
	return 0;
}

static int check_names(const struct replay *replay, struct err *err)
{
	unsigned count = replay->env.device_count;
	char(*full)[300] = calloc(count, sizeof *full);
	const char *names[REPLAY_VOLUMES_MAX];
	int r;

	if (!full)
		return err_set(err, -ENOMEM, "no memory for the workload");
	for (unsigned d = 0; d < count; d++) {
		const struct workload_device *device = &replay->env.devices[d];

		snprintf(full[d], sizeof full[d], "%s/%s", device->host, device->volume);
		names[d] = full[d];
	}
	r = replay_check_names(&replay->config, names, count, err);
	free(full);
	return r;
}

int replay_map_check(const struct replay *replay, struct err *err)
{
	const struct replay_map_config *rows = replay->config.map.items;
	int r = check_names(replay, err);

	for (size_t i = 0; r == 0 && i < replay->config.map.count; i++)
		r = check_row(replay, &rows[i], err);
	return r;
}

/* ---- regions ---- */

static bool row_fits(const struct replay_map_config *row, const char *name, unsigned class)
{
	static const int of_class[TRACE_CLASSES] = {
	    [TRACE_PLAIN] = REPLAY_OTHERS,
	    [TRACE_DATABASE] = REPLAY_DATABASES,
	    [TRACE_LOG] = REPLAY_LOGS,
	    [TRACE_CHECKPOINT] = REPLAY_CHECKPOINTS,
	};

	return (row->files == REPLAY_ALL || row->files == of_class[class]) &&
	       fnmatch(row->from, name, 0) == 0;
}

/* Its size, from those of its volumes. */
static void size_region(const struct replay *replay, struct replay_region *region)
{
	uint64_t each = UINT64_MAX;

	region->block_bytes = SECTOR_BYTES;
	for (unsigned i = 0; i < region->device_count; i++) {
		const struct workload_device *device = &replay->env.devices[region->device[i]];

		each = MIN_OF(each, device->layer->size_bytes - region->offset_bytes);
		region->block_bytes = MAX_OF(region->block_bytes, device->block_bytes);
	}
	if (region->each_bytes)
		each = MIN_OF(each, region->each_bytes);
	region->each_bytes = each / region->stripe_bytes * region->stripe_bytes;
	region->size_bytes = region->each_bytes * region->device_count;
}

static void region_from_row(const struct replay *replay, struct replay_region *region,
			    const struct replay_map_config *row)
{
	const char *const *to = row->to.items;

	region->offset_bytes = row->offset_bytes;
	region->each_bytes = row->size_bytes;
	for (size_t i = 0; i < row->to.count; i++)
		region->device[region->device_count++] = (uint16_t)find_volume(replay, to[i]);
	/* One volume is one long stripe. */
	region->stripe_bytes = row->to.count > 1 ? row->stripe_bytes : 4096;
}

static void look_up(struct replay *replay, struct replay_region *region, unsigned device,
		    unsigned class)
{
	const struct replay_map_config *rows = replay->config.map.items;
	const char *name = trace_set_names(replay->trace)->name[device];

	region->known = true;
	if (replay->config.map.count == 0) {
		unsigned *spread = &replay->spread[device];

		if (!*spread)
			*spread = ++replay->spread_count;
		region->device[region->device_count++] =
		    (uint16_t)((*spread - 1) % replay->env.device_count);
		region->stripe_bytes = 4096;
	}
	for (size_t i = 0; i < replay->config.map.count && !region->device_count; i++)
		if (row_fits(&rows[i], name, class))
			region_from_row(replay, region, &rows[i]);
	if (region->device_count)
		size_region(replay, region);
}

struct replay_region *replay_region_of(struct replay *replay, unsigned device, unsigned class)
{
	struct replay_region *region = &replay->regions[device * TRACE_CLASSES + class];

	if (!region->known)
		look_up(replay, region, device, class);
	return region->size_bytes ? region : NULL;
}

/* ---- one record ---- */

int replay_parts_begin(struct replay *replay, struct replay_region *region,
		       const struct trace_record *record)
{
	uint64_t offset = record->offset_bytes, block = region->block_bytes, end;
	struct replay_parts *parts = &replay->parts;

	*parts = (struct replay_parts){.region = region, .record = *record, .first = true};
	if (record->op == TRACE_FLUSH) {
		parts->active = true;
		return 1;
	}
	if (replay->config.scale_space != 1) {
		double scaled = (double)offset * replay->config.scale_space;

		/* Alignment to pages is part of what a load is. */
		offset = (uint64_t)MIN_OF(scaled, 0x1p62) / 4096 * 4096 + offset % 4096;
	}
	end = round_up_u64(offset + record->length_bytes, block);
	parts->at = offset / block * block;
	parts->left = end - parts->at;
	replay->rounded += parts->left != record->length_bytes;
	if (end > region->size_bytes) {
		if (replay->config.beyond == REPLAY_FAIL)
			return -ERANGE;
		replay->beyond += replay->config.beyond == REPLAY_SKIP;
		if (replay->config.beyond == REPLAY_SKIP)
			return 0;
		replay->wrapped++;
		parts->at %= region->size_bytes;
		parts->left = MIN_OF(parts->left, region->size_bytes);
	}
	parts->active = true;
	return 1;
}

void replay_parts_next(const struct replay *replay, struct replay_part *ret_part)
{
	const struct replay_parts *parts = &replay->parts;
	const struct replay_region *region = parts->region;
	uint64_t stripe = region->stripe_bytes, count = region->device_count, most;

	if (parts->record.op == TRACE_FLUSH) {
		*ret_part = (struct replay_part){.device = region->device[parts->flush]};
		return;
	}
	most = MIN_OF(parts->left, region->size_bytes - parts->at);
	if (count > 1)
		most = MIN_OF(most, stripe - parts->at % stripe);
	if (parts->record.op != TRACE_TRIM)
		most = MIN_OF(most, replay->config.max_io_bytes);
	*ret_part = (struct replay_part){
	    .device = region->device[count > 1 ? parts->at / stripe % count : 0],
	    .offset_bytes =
		region->offset_bytes +
		(count > 1 ? parts->at / stripe / count * stripe + parts->at % stripe : parts->at),
	    .length_bytes = most,
	};
}

void replay_parts_sent(struct replay *replay, const struct replay_part *part)
{
	struct replay_parts *parts = &replay->parts;
	const struct replay_region *region = parts->region;

	parts->first = false;
	if (parts->record.op == TRACE_FLUSH) {
		parts->active = ++parts->flush < region->device_count;
		return;
	}
	parts->left -= part->length_bytes;
	parts->at += part->length_bytes;
	if (parts->at == region->size_bytes)
		parts->at = 0;
	parts->active = parts->left > 0;
}
