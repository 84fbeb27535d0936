/* SPDX-License-Identifier: MIT
 *
 * Choice of the parity method, by the number of chunk reads.
 */
#include "target/array/raid5_plan.h"

#include <errno.h>

#include "base/bytes.h"
#include "target/array/raid_geometry.h"

#define BIT(drive) (UINT64_C(1) << (drive))

struct raid5_span raid5_hull(uint64_t chunk_bytes, uint64_t lo, uint64_t hi)
{
	uint64_t first = lo / chunk_bytes, last = (hi - 1) / chunk_bytes;
	if (first != last)
		return (struct raid5_span){0, chunk_bytes};
	return (struct raid5_span){lo - first * chunk_bytes, hi - first * chunk_bytes};
}

struct raid5_span raid5_written(const struct raid5_write *write, unsigned data)
{
	uint64_t begin = data * write->chunk_bytes, end = begin + write->chunk_bytes;
	uint64_t lo = MAX_OF(begin, write->lo), hi = MIN_OF(end, write->hi);
	if (lo >= hi)
		return (struct raid5_span){0, 0};
	return (struct raid5_span){lo - begin, hi - begin};
}

/* What the write does to the data drives, as masks. */
struct cover {
	uint64_t all, touched, whole; /* whole: the hull is overwritten altogether */
};

static struct cover cover_of(const struct raid5_write *write, struct raid5_span hull)
{
	struct cover cover = {0};
	for (unsigned data = 0; data < write->width - 1; data++) {
		uint64_t bit = BIT(raid5_data_drive(write->width, write->parity, data));
		struct raid5_span span = raid5_written(write, data);
		cover.all |= bit;
		if (span.lo < span.hi)
			cover.touched |= bit;
		if (span.lo == hull.lo && span.hi == hull.hi)
			cover.whole |= bit;
	}
	return cover;
}

int raid5_plan_write(const struct raid5_write *write, uint64_t unreadable, uint64_t out,
		     struct raid5_plan *ret_plan)
{
	struct raid5_plan plan = {.hull = raid5_hull(write->chunk_bytes, write->lo, write->hi)};
	struct cover cover = cover_of(write, plan.hull);
	uint64_t parity = BIT(write->parity);
	uint64_t reconstruct = cover.all & ~cover.whole;
	uint64_t modify = cover.touched | parity;

	if (__builtin_popcountll(unreadable) > 1)
		return -EIO;
	plan.write_mask = modify;
	plan.method = RAID5_RECONSTRUCT_WRITE;
	plan.read_mask = reconstruct;
	if (unreadable == 0) {
		if (__builtin_popcountll(modify) < __builtin_popcountll(reconstruct)) {
			plan.method = RAID5_READ_MODIFY_WRITE;
			plan.read_mask = modify;
		}
	} else if (unreadable == parity) {
		if (out == parity) {
			plan.method = RAID5_DATA_ONLY;
			plan.read_mask = 0;
		}
	} else if (!(unreadable & cover.touched)) {
		plan.method = RAID5_READ_MODIFY_WRITE;
		plan.read_mask = modify;
	} else if (!(unreadable & cover.whole)) {
		plan.method = RAID5_REBUILD_WRITE;
		plan.read_mask = (cover.all | parity) & ~unreadable;
		plan.lost = (unsigned)__builtin_ctzll(unreadable);
	}
	*ret_plan = plan;
	return 0;
}
