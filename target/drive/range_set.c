/* SPDX-License-Identifier: MIT
 *
 * The bounded set of ranges.
 */
#include "target/drive/range_set.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

/* The first range that ends at or behind LO. */
static unsigned first_from(const struct range_set *set, uint64_t lo)
{
	unsigned from = 0, to = set->count;
	while (from < to) {
		unsigned middle = from + (to - from) / 2;
		if (set->ranges[middle].hi < lo)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Puts COUNT ranges of WITH in place of those of [first, end); there must be room. */
static void replace(struct range_set *set, unsigned first, unsigned end, const struct range *with,
		    unsigned count)
{
	memmove(&set->ranges[first + count], &set->ranges[end],
		(set->count - end) * sizeof *set->ranges);
	memcpy(&set->ranges[first], with, count * sizeof *with);
	set->count += count - (end - first);
}

int range_set_add(struct range_set *set, uint64_t lo, uint64_t hi)
{
	if (lo >= hi)
		return 0;
	unsigned first = first_from(set, lo), end = first;
	struct range joined = {lo, hi};
	while (end < set->count && set->ranges[end].lo <= hi) {
		joined.lo = MIN_OF(joined.lo, set->ranges[end].lo);
		joined.hi = MAX_OF(joined.hi, set->ranges[end].hi);
		end++;
	}
	if (first == end && set->count == set->limit)
		return -ENOSPC;
	replace(set, first, end, &joined, 1);
	return 0;
}

bool range_set_remove(struct range_set *set, uint64_t lo, uint64_t hi)
{
	struct range left[2];
	unsigned count = 0;
	bool short_of_room = false;

	if (lo >= hi)
		return false;
	unsigned first = first_from(set, lo);
	if (first < set->count && set->ranges[first].hi == lo)
		first++;
	unsigned end = first;
	while (end < set->count && set->ranges[end].lo < hi)
		end++;
	if (first == end)
		return false;
	struct range before = {set->ranges[first].lo, lo}, behind = {hi, set->ranges[end - 1].hi};
	if (before.lo < before.hi)
		left[count++] = before;
	if (behind.lo < behind.hi)
		left[count++] = behind;
	if (set->count - (end - first) + count > set->limit) {
		short_of_room = true;
		left[0] = before.hi - before.lo > behind.hi - behind.lo ? before : behind;
		count = 1;
	}
	replace(set, first, end, left, count);
	return short_of_room;
}

bool range_set_overlaps(const struct range_set *set, uint64_t lo, uint64_t hi)
{
	unsigned first = first_from(set, lo);
	if (first < set->count && set->ranges[first].hi == lo)
		first++;
	return lo < hi && first < set->count && set->ranges[first].lo < hi;
}
