/* SPDX-License-Identifier: MIT
 *
 * RAID 50: RAID 5 sets side by side, whole stripes in turn; one drive of each may fail.  How the
 * drives are divided: stripe_sets.
 */
#include <errno.h>
#include <stdio.h>

#include "target/array/raid_levels.h"

enum { RAID50_SET_MIN = 3 };

struct stripe_geometry raid50_shape(unsigned drives)
{
	unsigned sets = stripe_sets(drives, RAID50_SET_MIN), width = sets ? drives / sets : 0;
	return (struct stripe_geometry){
	    .kind = STRIPE_ROTATED,
	    .drives = drives,
	    .sets = sets,
	    .width = width,
	    .data = width - 1,
	    .parities = 1,
	};
}

static int raid50_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count <= RAID_DRIVES_MAX && stripe_sets(drive_count, RAID50_SET_MIN))
		return 0;
	snprintf(
	    why, why_size,
	    "raid50 needs active drives that divide into at least two equal sets of %d or more, "
	    "at most %d; %u do not",
	    RAID50_SET_MIN, RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

RAID_LEVEL(raid50, "raid50");
