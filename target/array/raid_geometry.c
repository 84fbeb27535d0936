/* SPDX-License-Identifier: MIT
 *
 * Division of drives into RAID 50 sets.
 */
#include "target/array/raid_geometry.h"

unsigned raid50_sets(unsigned count)
{
	for (unsigned sets = 2; sets * 3 <= count; sets++)
		if (count % sets == 0)
			return sets;
	return 0;
}
