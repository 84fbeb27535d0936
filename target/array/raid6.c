/* SPDX-License-Identifier: MIT
 *
 * RAID 6: rotating P and Q; two drives may fail.
 */
#include <errno.h>
#include <stdio.h>

#include "target/array/raid_levels.h"

struct stripe_geometry raid6_shape(unsigned drives)
{
	return raid_rotated(drives, 1, 2);
}

static int raid6_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= 4 && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid6 needs 4 to %d active drives, not %u", RAID_DRIVES_MAX,
		 drive_count);
	return -EINVAL;
}

RAID_LEVEL(raid6, "raid6");
