/* SPDX-License-Identifier: MIT
 *
 * RAID 50: RAID 5 sets side by side, whole stripes in turn; one drive of each may fail.  How the
 * drives are divided: stripe_sets.
 */
#include "target/array/raid_levels.h"

enum { RAID50_SET_MIN = 3 };

struct stripe_geometry raid50_shape(unsigned drives)
{
	return raid_rotated(drives, stripe_sets(drives, RAID50_SET_MIN), 1);
}

static int raid50_check(unsigned drive_count, char *why, size_t why_size)
{
	return raid_divided_check("raid50", RAID50_SET_MIN, drive_count, why, why_size);
}

RAID_LEVEL(raid50, "raid50");
