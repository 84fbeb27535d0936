/* SPDX-License-Identifier: MIT
 *
 * A member's caches in the status document.
 */
#include "target/array/cache.h"
#include "target/array/cache_ssd.h"
#include "target/control/command.h"

#define CACHE_COUNTER(field) CONTROL_COUNTER(cache_counters, field)

static const struct control_counter cache_counter_names[] = {
    CACHE_COUNTER(read_hits),	     CACHE_COUNTER(read_partial_hits),
    CACHE_COUNTER(read_misses),	     CACHE_COUNTER(read_hit_bytes),
    CACHE_COUNTER(read_miss_bytes),  CACHE_COUNTER(write_back),
    CACHE_COUNTER(write_through),    CACHE_COUNTER(overwritten_bytes),
    CACHE_COUNTER(write_waits),	     CACHE_COUNTER(page_waits),
    CACHE_COUNTER(prefetched_bytes), CACHE_COUNTER(prefetch_used_bytes),
    CACHE_COUNTER(destages),	     CACHE_COUNTER(destaged_bytes),
    CACHE_COUNTER(full_stripes),     CACHE_COUNTER(full_stripe_bytes),
    CACHE_COUNTER(destage_errors),   CACHE_COUNTER(flushes_below),
    CACHE_COUNTER(evictions),	     CACHE_COUNTER(recovered_bytes),
    CACHE_COUNTER(torn_records),     CACHE_COUNTER(lost_bytes),
    CACHE_COUNTER(lost_records),
};

#define SSD_COUNTER(field) CONTROL_COUNTER(cache_ssd_counters, field)

static const struct control_counter ssd_counter_names[] = {
    SSD_COUNTER(read_hits),	  SSD_COUNTER(read_misses),  SSD_COUNTER(read_hit_bytes),
    SSD_COUNTER(read_miss_bytes), SSD_COUNTER(bypassed),     SSD_COUNTER(admitted_pages),
    SSD_COUNTER(evicted_pages),	  SSD_COUNTER(filled_bytes), SSD_COUNTER(renewed_bytes),
    SSD_COUNTER(errors),	  SSD_COUNTER(cached_bytes),
};

json_t *control_cache_status(const struct member *member)
{
	struct cache_status at;
	json_t *status;

	if (!member_cache_status(member, &at))
		return NULL;
	status = json_pack(
	    "{s:s, s:s, s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "mode",
	    cache_mode_names[at.in_force], "configured_mode", cache_mode_names[at.configured],
	    "why", at.why ? at.why : "", "mirrored", at.mirrored, "battery", at.battery,
	    "size_bytes", (json_int_t)at.size_bytes, "page_bytes", (json_int_t)at.page_bytes,
	    "dirty_bytes", (json_int_t)at.dirty_bytes, "failed_bytes", (json_int_t)at.failed_bytes,
	    "valid_bytes", (json_int_t)at.valid_bytes, "waiting", (json_int_t)at.waiting);
	control_add_counters(status, cache_counter_names, ARRAY_SIZE(cache_counter_names),
			     &at.counters);
	return status;
}

json_t *control_ssd_status(const struct member *member)
{
	const struct cache_ssd_counters *counters = member_ssd_counters(member);
	json_t *status;

	if (!counters)
		return NULL;
	status = json_object();
	control_add_counters(status, ssd_counter_names, ARRAY_SIZE(ssd_counter_names), counters);
	return status;
}
