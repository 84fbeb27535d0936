/* SPDX-License-Identifier: MIT
 *
 * RAID 5: one rotating parity; one drive may fail.
 */
#include <errno.h>
#include <stdio.h>

#include "target/array/raid_levels.h"

struct stripe_geometry raid5_shape(unsigned drives)
{
	return raid_rotated(drives, 1, 1);
}

static int raid5_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= 3 && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid5 needs 3 to %d active drives, not %u", RAID_DRIVES_MAX,
		 drive_count);
	return -EINVAL;
}

RAID_LEVEL(raid5, "raid5");
