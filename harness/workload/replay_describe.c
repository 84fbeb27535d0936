/* SPDX-License-Identifier: MIT
 *
 * What a replay says beside its streams; replay.h has the shape.
 */
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/replay_impl.h"

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)MIN_OF(value, (uint64_t)INT64_MAX));
}

/* A line of a trace may hold bytes that are no UTF-8. */
static json_t *text(const char *from)
{
	json_t *string = json_string(from);
	char copy[REPLAY_PATH_MAX];
	size_t i;

	if (string)
		return string;
	for (i = 0; i < sizeof copy - 1 && from[i]; i++)
		copy[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
	copy[i] = '\0';
	return json_string(copy);
}

static json_t *files_json(const struct replay *replay)
{
	json_t *files = json_array();

	for (size_t i = 0; i < replay->config.traces.count; i++)
		json_array_append_new(files, text(replay->files[i]));
	return files;
}

static json_t *trace_json(const struct replay *replay)
{
	const struct trace_counts *counts = trace_set_counts(replay->trace);
	json_t *bad = json_array();

	for (unsigned i = 0; i < counts->bad_kept; i++)
		json_array_append_new(bad, text(counts->bad_line[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "lines", number(counts->lines),
			 "records", number(counts->records), "ignored_lines",
			 number(counts->ignored), "malformed_lines", number(counts->bad),
			 "out_of_order", number(counts->out_of_order), "malformed", bad);
}

static void add_volumes(const struct replay *replay, const struct replay_region *region,
			json_t *volumes)
{
	for (unsigned i = 0; i < region->device_count; i++) {
		const struct workload_device *device = &replay->env.devices[region->device[i]];
		json_t *name = json_sprintf("%s/%s", device->host, device->volume);
		const json_t *other;
		bool known = false;
		size_t k;

		json_array_foreach(volumes, k, other) known |= json_equal(name, other);
		if (!known)
			json_array_append(volumes, name);
		json_decref(name);
	}
}

static json_t *devices_json(const struct replay *replay)
{
	const struct trace_names *names = trace_set_names(replay->trace);
	json_t *devices = json_array();

	for (unsigned d = 0; d < names->count; d++) {
		json_t *volumes = json_array();
		uint64_t ios = 0, bytes = 0;

		for (unsigned class = 0; class < TRACE_CLASSES; class ++) {
			const struct replay_region *region =
			    &replay->regions[d * TRACE_CLASSES + class];

			ios += region->ios;
			bytes += region->bytes;
			add_volumes(replay, region, volumes);
		}
		json_array_append_new(devices,
				      json_pack("{s:o, s:o, s:o, s:o}", "trace",
						text(names->name[d]), "volumes", volumes, "ios",
						number(ios), "bytes", number(bytes)));
	}
	return devices;
}

static json_t *buckets_json(const struct hist *hist)
{
	static const uint64_t edges[] = {
	    10 * NS_PER_US,  100 * NS_PER_US, NS_PER_MS,     10 * NS_PER_MS,
	    100 * NS_PER_MS, NS_PER_S,	      10 * NS_PER_S, UINT64_MAX,
	};
	json_t *buckets = json_array();
	unsigned at = 0;

	for (size_t e = 0; e < ARRAY_SIZE(edges); e++) {
		bool last = edges[e] == UINT64_MAX;
		uint64_t ios = 0;

		for (; at < HIST_BUCKETS && (last || hist_bucket_high_ns(at) <= edges[e]); at++)
			ios += hist->bucket[at];
		json_array_append_new(buckets, json_pack("{s:o, s:o}", "up_to_ns",
							 last ? json_null() : number(edges[e]),
							 "ios", number(ios)));
	}
	return buckets;
}

static json_t *lateness_json(const struct replay *replay)
{
	const struct hist *hist = &replay->lateness;

	if (replay->config.mode == REPLAY_AFAP)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "ios",
			 number(hist->count), "mean_ns", number((uint64_t)hist_mean_ns(hist)),
			 "p50_ns", number(hist_quantile_ns(hist, 0.5)), "p90_ns",
			 number(hist_quantile_ns(hist, 0.9)), "p99_ns",
			 number(hist_quantile_ns(hist, 0.99)), "p999_ns",
			 number(hist_quantile_ns(hist, 0.999)), "max_ns", number(hist->max_ns),
			 "late", number(replay->late), "limit_ns",
			 number(replay->config.late_limit_ns), "buckets", buckets_json(hist));
}

json_t *replay_describe(struct workload *workload)
{
	const struct replay *replay = container_of(workload, struct replay, base);
	const struct replay_config *config = &replay->config;
	json_t *verified = json_null();

	if (config->verify)
		verified = json_pack("{s:i, s:o, s:o}", "unit_bytes", SECTOR_BYTES, "reads_checked",
				     number(replay->reads_checked), "reads_unchecked",
				     number(replay->reads_unchecked));
	return json_pack(
	    "{s:s, s:s, s:o, s:f, s:f, s:o, s:b, s:o, s:o, s:o, s:{s:o, s:o, s:o}, "
	    "s:{s:o, s:o, s:o}, s:o, s:o, s:o}",
	    "mode", replay_mode_names[config->mode], "format",
	    trace_set_format(replay->trace)->name, "files", files_json(replay), "scale_time",
	    config->scale_time, "scale_space", config->scale_space, "passes",
	    number(replay->passes), "finished", replay->ended, "trace", trace_json(replay), "sent",
	    number(replay->sent), "trace_ns", number(replay->pace.last_ns), "left_out", "unmapped",
	    number(replay->unmapped), "beyond_the_end", number(replay->beyond), "trims_unsupported",
	    number(replay->no_trims), "changed", "wrapped", number(replay->wrapped), "rounded",
	    number(replay->rounded), "parts", number(replay->part_ios), "devices",
	    devices_json(replay), "verified", verified, "lateness", lateness_json(replay));
}
