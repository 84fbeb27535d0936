/* SPDX-License-Identifier: MIT
 *
 * RAID 60: RAID 6 sets side by side, whole stripes in turn; two drives of each may fail.  How the
 * drives are divided: stripe_sets.
 */
#include "target/array/raid_levels.h"

enum { RAID60_SET_MIN = 4 };

struct stripe_geometry raid60_shape(unsigned drives)
{
	return raid_rotated(drives, stripe_sets(drives, RAID60_SET_MIN), 2);
}

static int raid60_check(unsigned drive_count, char *why, size_t why_size)
{
	return raid_divided_check("raid60", RAID60_SET_MIN, drive_count, why, why_size);
}

RAID_LEVEL(raid60, "raid60");
