/* SPDX-License-Identifier: MIT
 *
 * What a pool has to tell an administrator: a ring of its last events, and the warnings of space
 * that runs out.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/page_clean.h"
#include "target/array/page_move.h"

enum { CLEARLY_PERCENT = 3 }; /* below a threshold, before it is warned of again */

static const unsigned thresholds_percent[] = {80, 90, 95};

void pool_event(struct pool *pool, const char *format, ...)
{
	struct pool_event *event = &pool->events[pool->event_count++ % POOL_EVENTS_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(event->text, sizeof event->text, format, args);
	va_end(args);
	event->at_ns = loop_now_ns(pool->loop);
	log_debug("pool %s: %s", pool->name, event->text);
}

unsigned pool_events(const struct pool *pool, struct pool_event *ret_events, unsigned max)
{
	uint64_t kept = MIN_OF(pool->event_count, POOL_EVENTS_MAX);
	unsigned count = (unsigned)MIN_OF(kept, max);

	for (unsigned i = 0; i < count; i++)
		ret_events[i] = pool->events[(pool->event_count - count + i) % POOL_EVENTS_MAX];
	return count;
}

void pool_check_space(struct pool *pool)
{
	struct pool_space space;

	pool_space(pool, &space);
	/* What moves use twice for a while is not the volumes' doing. */
	uint64_t copies = cleaner_count(pool->cleaner);
	for (unsigned i = 0; i < pool->member_count; i++)
		copies += mover_pages_taken(pool->mover, i);
	space.used_bytes -= copies * POOL_PAGE_BYTES;
	uint64_t percent = space.total_bytes ? space.used_bytes * 100 / space.total_bytes : 100;
	unsigned passed = 0;
	for (size_t i = 0; i < ARRAY_SIZE(thresholds_percent); i++)
		if (percent >= thresholds_percent[i] ||
		    (pool->warned_percent >= thresholds_percent[i] &&
		     percent + CLEARLY_PERCENT >= thresholds_percent[i]))
			passed = thresholds_percent[i];
	if (passed > pool->warned_percent) {
		pool_event(pool, "%u %% of the pool's space are used", (unsigned)percent);
		log_warn("pool %s: %u %% of its space are used; volumes that are promised more "
			 "than it has will fail to write",
			 pool->name, (unsigned)percent);
	}
	pool->warned_percent = passed;
}
