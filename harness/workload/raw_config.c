/* SPDX-License-Identifier: MIT
 *
 * The keys of the raw workload, and what the schema alone cannot check.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/workload/paced.h"
#include "harness/workload/raw_mix.h"

const char *const raw_op_names[] = {"read", "write", "rw", NULL};
const char *const raw_pattern_names[] = {"random", "sequential", "mixed", NULL};
static const char *const content_names[] = {"verified", "none", NULL};

#define AT(member) offsetof(struct raw_sweep_config, member)
static const struct cfg_field sweep_fields[] = {
    {.key = "depths",
     .type = CFG_UINTS,
     .offset = AT(depths),
     .min = 1,
     .max = RAW_DEPTH_MAX,
     .help = "one step each: I/Os in flight on each volume, such as [1, 2, 4, 8, 16, 32]"},
    {.key = "rates",
     .type = CFG_UINTS,
     .offset = AT(rates),
     .min = 1,
     .max = 1e7,
     .help = "one step each: I/Os a second on each volume, due at even times"},
    {.key = "settle",
     .type = CFG_DURATION,
     .offset = AT(settle_ns),
     .preset = "2s",
     .max = 3600e9,
     .help = "how long a step lasts before it is measured"},
    {.key = "time",
     .type = CFG_DURATION,
     .offset = AT(time_ns),
     .preset = "10s",
     .min = 1e8,
     .max = 86400e9,
     .help = "how long a step is measured"},
};
#undef AT
static const struct cfg_schema sweep_schema = {
    .name = "sweep",
    .size = sizeof(struct raw_sweep_config),
    .fields = sweep_fields,
    .field_count = ARRAY_SIZE(sweep_fields),
};

#define AT(member) offsetof(struct raw_config, member)
static const struct cfg_field fields[] = {
    {.key = "type", .type = CFG_STRING, .offset = AT(type), .help = "raw"},
    {.key = "op",
     .type = CFG_ENUM,
     .offset = AT(op),
     .preset = "read",
     .names = raw_op_names,
     .help = "read, write (destroys what is on the volumes), or both"},
    {.key = "pattern",
     .type = CFG_ENUM,
     .offset = AT(pattern),
     .preset = "random",
     .names = raw_pattern_names,
     .help = "where the next I/O goes; mixed: random for a share of them"},
    {.key = "random-share",
     .type = CFG_PERCENT,
     .offset = AT(random_share),
     .preset = "50%",
     .max = 100,
     .help = "random ones of all I/O with pattern: mixed; the others go on where the last ended"},
    {.key = "block-size",
     .type = CFG_SIZE,
     .offset = AT(block_bytes),
     .preset = "4KiB",
     .min = 512,
     .max = 1048576,
     .help = "bytes an I/O"},
    {.key = "block-sizes",
     .type = CFG_UNION,
     .offset = AT(block_sizes),
     .help = "several sizes and the share of all I/O that each has, in place of block-size: "
	     "{4KiB: 60%, 32KiB: 40%}"},
    {.key = "queue-depth",
     .type = CFG_UINT,
     .offset = AT(queue_depth),
     .preset = "32",
     .min = 1,
     .max = RAW_DEPTH_MAX,
     .help = "I/Os in flight on each volume; with rates the most there may be"},
    {.key = "read-share",
     .type = CFG_PERCENT,
     .offset = AT(read_share),
     .preset = "70%",
     .max = 100,
     .help = "reads of all I/O with op: rw"},
    {.key = "span",
     .type = CFG_SIZE,
     .offset = AT(span_bytes),
     .help = "use only this much from the start of each volume; default: all"},
    {.key = "rate",
     .type = CFG_REAL,
     .offset = AT(rate),
     .max = 1e7,
     .help = "I/Os a second on each volume, due at even times (open loop) and verified; default: "
	     "a closed loop, not verified"},
    {.key = "content",
     .type = CFG_ENUM,
     .offset = AT(content),
     .preset = "verified",
     .names = content_names,
     .help = "of an open loop: none does not verify, for volumes too large to remember and stores "
	     "that keep nothing"},
    {.key = "sweep",
     .type = CFG_STRUCT,
     .offset = AT(sweep),
     .sub = &sweep_schema,
     .help =
	 "a curve of latency over throughput in one run, which then lasts as long as its steps"},
};
#undef AT

const struct cfg_schema raw_schema = {
    .name = "workload",
    .size = sizeof(struct raw_config),
    .fields = fields,
    .field_count = ARRAY_SIZE(fields),
};

bool raw_is_open_loop(const struct raw_config *config)
{
	return config->rate > 0 || config->sweep.rates.count > 0;
}

/* ---- what follows from several keys ---- */

/* One `SIZE: SHARE`; false: an error was added. */
static bool take_size(struct cfg *cfg, struct raw_config *config, const char *key,
		      const struct cfg_raw *value)
{
	struct raw_size *size = &config->sizes[config->size_count];
	const char *share = cfg_raw_scalar(value);
	char why[200];

	if (!key || !share || cfg_parse_scalar(CFG_SIZE, key, &size->bytes, why, sizeof why) < 0 ||
	    size->bytes < 512 || size->bytes > MIB || size->bytes % 512) {
		cfg_error_raw(cfg, value,
			      "'block-sizes' has '%.40s', which is no size from 512 to 1MiB in "
			      "steps of 512",
			      key ? key : "");
		return false;
	}
	if (cfg_parse_scalar(CFG_PERCENT, share, &size->share, why, sizeof why) < 0 ||
	    size->share <= 0) {
		cfg_error_raw(cfg, value, "'%.40s' is no share of block size %.40s", share, key);
		return false;
	}
	config->size_count++;
	return true;
}

static void take_sizes(struct cfg *cfg, struct raw_config *config)
{
	struct cfg_raw value;
	const char *key;
	double sum = 0;

	config->size_count = 0;
	for (size_t i = 0; cfg_raw_entry(&config->block_sizes, i, &key, &value); i++) {
		if (i == RAW_SIZES_MAX) {
			cfg_error_raw(cfg, &value, "more than %d block sizes", RAW_SIZES_MAX);
			return;
		}
		if (!take_size(cfg, config, key, &value))
			return;
		sum += config->sizes[i].share;
	}
	if (sum < 0.999 || sum > 1.001) {
		cfg_error_raw(cfg, &config->block_sizes,
			      "the shares of 'block-sizes' make %.4g %%, not 100 %%", sum * 100);
		cfg_hint(cfg, "write block-sizes: {4KiB: 60%%, 32KiB: 40%%}");
	}
}

static void check_sweep(struct cfg *cfg, struct raw_config *config)
{
	const struct raw_sweep_config *sweep = &config->sweep;

	if (sweep->depths.count && sweep->rates.count)
		cfg_error_at(cfg, &sweep->rates, "a sweep has depths or rates, not both");
	else if (sweep->depths.count && config->rate > 0)
		cfg_error_at(cfg, &config->rate, "with 'rate' a sweep has 'rates', no depths");
	else if (sweep->depths.count > RAW_STEPS_MAX || sweep->rates.count > RAW_STEPS_MAX)
		cfg_error_at(cfg, &sweep->depths, "more than %d steps in a sweep", RAW_STEPS_MAX);
}

void raw_configure(struct cfg *cfg, void *of)
{
	struct raw_config *config = of;

	if (config->block_sizes.node)
		take_sizes(cfg, config);
	if (config->block_sizes.node && cfg_given(cfg, &config->block_bytes))
		cfg_error_at(cfg, &config->block_bytes,
			     "'block-size' and 'block-sizes' say the same: leave out one");
	check_sweep(cfg, config);
}

int raw_check(const void *of, const char *volume, uint64_t size_bytes, uint32_t block_bytes,
	      struct err *err)
{
	const struct raw_config *config = of;
	uint64_t span = size_bytes;
	struct raw_mix mix;

	raw_mix_init(&mix, config);
	if (config->span_bytes)
		span = MIN_OF(span, config->span_bytes);
	if (span < mix.largest_bytes)
		return err_set(err, -EINVAL, "volume %s is smaller than one block of %llu bytes",
			       volume, (unsigned long long)mix.largest_bytes);
	for (unsigned i = 0; block_bytes && i < mix.count; i++)
		if (mix.sizes[i].bytes % block_bytes != 0)
			return err_set(err, -EINVAL,
				       "block size %llu is not a multiple of volume %s's %u bytes",
				       (unsigned long long)mix.sizes[i].bytes, volume, block_bytes);
	return raw_is_open_loop(config) ? paced_check(config, err) : 0;
}

void raw_describe(const struct raw_config *config, char *out, size_t size)
{
	struct raw_mix mix;
	char bytes[32];
	size_t used;

	raw_mix_init(&mix, config);
	used = (size_t)snprintf(out, size, "%s %s", raw_pattern_names[config->pattern],
				raw_op_names[config->op]);
	if (config->pattern == RAW_MIXED)
		used += (size_t)snprintf(out + used, size - used, ", %.0f %% random",
					 config->random_share * 100);
	if (config->op == RAW_RW)
		used += (size_t)snprintf(out + used, size - used, ", %.0f %% reads",
					 config->read_share * 100);
	for (unsigned i = 0; i < mix.count && used < size; i++) {
		text_bytes(bytes, sizeof bytes, (double)mix.sizes[i].bytes);
		if (mix.count == 1)
			snprintf(out + used, size - used, ", %s", bytes);
		else
			snprintf(out + used, size - used, ", %s %.0f %%", bytes,
				 mix.sizes[i].share * 100);
		used = strlen(out);
	}
}
