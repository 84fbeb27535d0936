/* SPDX-License-Identifier: MIT
 *
 * EqualLogic's division of drives by RAID policy.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "target/array/array.h"

/* Configuration Guide v15.2 (RAID 10) and v11.3 (RAID 5); not verified: RAID 50 and RAID 6. */
static const struct {
	const char *policy;
	unsigned drives;
	struct raid_equallogic layout;
} layouts[] = {
    {"raid10", 6, {4, 2, 2}},	 {"raid10", 7, {6, 1, 3}},    {"raid10", 8, {6, 2, 3}},
    {"raid10", 12, {10, 2, 5}},	 {"raid10", 14, {12, 2, 6}},  {"raid10", 16, {14, 2, 7}},
    {"raid10", 24, {22, 2, 11}}, {"raid10", 48, {46, 2, 23}}, {"raid5", 7, {6, 1, 1}},
    {"raid5", 8, {7, 1, 1}},	 {"raid5", 14, {13, 1, 1}},   {"raid5", 16, {15, 1, 1}},
    {"raid5", 48, {46, 2, 2}},	 {"raid50", 24, {22, 2, 2}},  {"raid6", 24, {23, 1, 1}},
};

int raid_equallogic_layout(const char *policy, unsigned drives, struct raid_equallogic *ret_layout)
{
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
		if (layouts[i].drives != drives || strcmp(layouts[i].policy, policy) != 0)
			continue;
		*ret_layout = layouts[i].layout;
		return 0;
	}
	return -ENOENT;
}
