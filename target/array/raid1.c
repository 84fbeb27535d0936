/* SPDX-License-Identifier: MIT
 *
 * RAID 1: every drive a copy of all; all but one may fail.
 */
#include <errno.h>
#include <stdio.h>

#include "target/array/raid_levels.h"

struct stripe_geometry raid1_shape(unsigned drives)
{
	return (struct stripe_geometry){
	    .kind = STRIPE_FIXED,
	    .drives = drives,
	    .sets = 1,
	    .width = drives,
	    .data = 1,
	    .parities = drives - 1,
	    .copies = true,
	};
}

static int raid1_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= 2 && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid1 needs 2 to %d active drives, not %u", RAID_DRIVES_MAX,
		 drive_count);
	return -EINVAL;
}

RAID_LEVEL(raid1, "raid1");
