/* SPDX-License-Identifier: MIT
 *
 * The table of RAID levels: a new level is one file and one row here.
 */
#include <string.h>

#include "base/bytes.h"
#include "target/array/raid_set.h"

/* In the order of `levels`: the lab file's `raid:` is an index into it. */
const char *const raid_level_names[] = {
    "raid0", "raid1", "raid10", "raid5", "raid50", "raid6", "raid60", "adapt", NULL,
};

static const struct raid_ops *const levels[] = {
    &raid0_ops,	 &raid1_ops, &raid10_ops, &raid5_ops,
    &raid50_ops, &raid6_ops, &raid60_ops, &adapt_ops,
};

_Static_assert(ARRAY_SIZE(levels) + 1 == ARRAY_SIZE(raid_level_names), "one name a level");

const struct raid_ops *raid_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (strcmp(levels[i]->name, name) == 0)
			return levels[i];
	return NULL;
}
