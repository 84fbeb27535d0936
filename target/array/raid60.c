/* SPDX-License-Identifier: MIT
 *
 * RAID 60: RAID 6 sets side by side, whole stripes in turn; two drives of each may fail.  How the
 * drives are divided: stripe_sets.
 */
#include <errno.h>
#include <stdio.h>

#include "target/array/raid_levels.h"

enum { RAID60_SET_MIN = 4 };

struct stripe_geometry raid60_shape(unsigned drives)
{
	unsigned sets = stripe_sets(drives, RAID60_SET_MIN), width = sets ? drives / sets : 0;
	return (struct stripe_geometry){
	    .kind = STRIPE_ROTATED,
	    .drives = drives,
	    .sets = sets,
	    .width = width,
	    .data = width - 2,
	    .parities = 2,
	};
}

static int raid60_check(unsigned drive_count, char *why, size_t why_size)
{
	if (drive_count <= RAID_DRIVES_MAX && stripe_sets(drive_count, RAID60_SET_MIN))
		return 0;
	snprintf(
	    why, why_size,
	    "raid60 needs active drives that divide into at least two equal sets of %d or more, "
	    "at most %d; %u do not",
	    RAID60_SET_MIN, RAID_DRIVES_MAX, drive_count);
	return -EINVAL;
}

RAID_LEVEL(raid60, "raid60");
