/* SPDX-License-Identifier: MIT
 *
 * Schemas and checks of the caches' keys.
 */
#include "target/array/cache_config.h"

#include "base/bytes.h"
#include "target/array/cache.h"
#include "target/array/cache_ssd.h"

static const struct cfg_field cache_fields[] = {
    {"size", CFG_SIZE, offsetof(struct member_cache_config, size_bytes), .required = true,
     .min = 1 * MIB, .max = 64 * GIB, .help = "battery-backed memory of the controller"},
    {"mode", CFG_ENUM, offsetof(struct member_cache_config, mode), .preset = "write-back",
     .names = cache_mode_names,
     .help = "write-back: a write is done when the controller has it; write-through: when the "
	     "drives have it; none: no cache"},
    {"read", CFG_BOOL, offsetof(struct member_cache_config, read), .preset = "true",
     .help = "keep what was read as well"},
    {"prefetch", CFG_BOOL, offsetof(struct member_cache_config, prefetch), .preset = "true",
     .help = "read ahead of sequential streams, where what was read is kept"},
};
const struct cfg_schema member_cache_schema = {"cache", sizeof(struct member_cache_config),
					       cache_fields, ARRAY_SIZE(cache_fields)};

static const struct cfg_field ssd_fields[] = {
    {"count", CFG_UINT, offsetof(struct member_ssd_config, count), .required = true, .min = 1,
     .max = SSD_DRIVES_MAX, .help = "SSDs that hold the read cache, beside the member's drives"},
    {"model", CFG_ENUM, offsetof(struct member_ssd_config, model), .preset = "ssd-sas-200",
     .names = drive_model_names, .help = "drive model of the catalogue"},
    {"size", CFG_SIZE, offsetof(struct member_ssd_config, size_bytes), .min = 16 * MIB,
     .max = 64 * TIB, .help = "size of each SSD, in place of the model's"},
    {"page", CFG_SIZE, offsetof(struct member_ssd_config, page_bytes), .preset = "64KiB",
     .min = 4 * KIB, .max = 1 * MIB, .help = "what is cached at a time, a power of two"},
    {"max-io", CFG_SIZE, offsetof(struct member_ssd_config, max_io_bytes), .preset = "64KiB",
     .min = 4 * KIB, .max = 1 * MIB, .help = "larger reads pass the SSDs by"},
};
const struct cfg_schema member_ssd_schema = {"ssd-cache", sizeof(struct member_ssd_config),
					     ssd_fields, ARRAY_SIZE(ssd_fields)};

void member_ssd_check(struct cfg *cfg, const struct member_ssd_config *ssd)
{
	if (cfg_valid(cfg, &ssd->page_bytes) && (ssd->page_bytes & (ssd->page_bytes - 1)))
		cfg_error_at(cfg, &ssd->page_bytes, "'page' must be a power of two");
}
