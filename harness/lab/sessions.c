/* SPDX-License-Identifier: MIT
 *
 * How many sessions a host opens to a volume, by EqualLogic's rule: at most so many to each member
 * that has a slice of it, at most so many in all, whichever comes first.
 */
#include <assert.h>

#include "base/bytes.h"
#include "harness/lab/lab_impl.h"

struct slice {
	int first, portals; /* its paths stand together */
};

static int find_slices(const struct lab_path *paths, int count, struct slice *slices)
{
	int found = 0;

	for (int i = 0; i < count; i++) {
		if (!i || paths[i].member != paths[i - 1].member)
			slices[found++] = (struct slice){.first = i};
		slices[found - 1].portals++;
	}
	return found;
}

/* One to each member, then a second to each, and so on.  With every volume the first member and
 * the first portal are the next ones, so that all ports carry about as many sessions. */
int lab_limit_sessions(const struct mpio_config *mpio, size_t volume, struct lab_path *paths,
		       int count)
{
	struct slice slices[LAB_MAX_PATHS];
	bool keeps[LAB_MAX_PATHS] = {false};
	int members, kept = 0;
	uint64_t sessions = 0;

	assert(count <= LAB_MAX_PATHS);
	if (!mpio->volume_sessions || !mpio->slice_sessions || count <= 0)
		return count;
	members = find_slices(paths, count, slices);
	for (uint64_t round = 0; round < mpio->slice_sessions; round++) {
		for (size_t m = 0; m < (size_t)members; m++) {
			const struct slice *slice = &slices[(volume + m) % (size_t)members];
			size_t portals = (size_t)slice->portals;
			size_t at = (volume * mpio->slice_sessions + round) % portals;

			if (round >= portals || sessions == mpio->volume_sessions)
				continue;
			keeps[(size_t)slice->first + at] = true;
			sessions++;
		}
	}
	for (int i = 0; i < count; i++)
		if (keeps[i])
			paths[kept++] = paths[i];
	return kept;
}
