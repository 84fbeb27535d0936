/* SPDX-License-Identifier: MIT
 *
 * The lab file's keys of a member's caches: `cache: {...}` and `ssd-cache: {...}`.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_CONFIG_H
#define SANLAB_TARGET_ARRAY_CACHE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"

struct member_cache_config {
	uint64_t size_bytes; /* 0: no cache */
	int mode;	     /* enum cache_mode */
	bool read, prefetch;
};

struct member_ssd_config {
	uint64_t count;	     /* 0: no tier */
	int model;	     /* index into drive_model_names */
	uint64_t size_bytes; /* per drive; 0: the model's */
	uint64_t page_bytes, max_io_bytes;
};

extern const struct cfg_schema member_cache_schema, member_ssd_schema;

/* What needs more than one key. */
void member_ssd_check(struct cfg *cfg, const struct member_ssd_config *ssd);

#endif
