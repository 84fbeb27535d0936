/* SPDX-License-Identifier: MIT
 *
 * RAID 10: chunks in turn over mirrors of two drives, 2g and 2g + 1; one of each may fail.
 */
#include <errno.h>
#include <stdio.h>

#include "target/array/raid_levels.h"

struct stripe_geometry raid10_shape(unsigned drives)
{
	return (struct stripe_geometry){
	    .kind = STRIPE_FIXED,
	    .drives = drives,
	    .sets = drives / 2,
	    .width = 2,
	    .data = 1,
	    .parities = 1,
	    .copies = true,
	};
}

static int raid10_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count >= 2 && drive_count % 2 == 0 && drive_count <= RAID_DRIVES_MAX)
		return 0;
	snprintf(why, why_size, "raid10 needs an even number of active drives, 2 to %d, not %u",
		 RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

RAID_LEVEL(raid10, "raid10");
