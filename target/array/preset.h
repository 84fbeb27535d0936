/* SPDX-License-Identifier: MIT
 *
 * Presets: arrays one can buy, as `model:` of a member.  A preset gives what the lab file leaves
 * out: drives, RAID level, spares, cache, controllers; what the file says itself counts.
 */
#ifndef SANLAB_TARGET_ARRAY_PRESET_H
#define SANLAB_TARGET_ARRAY_PRESET_H

#include "target/array/array.h"

extern const char *const preset_names[]; /* NULL-terminated; member_config.model indexes it */

/* What a preset is by itself. */
struct preset_facts {
	const char *name, *drive, *raid; /* drive: of the catalogue */
	unsigned drives, spares, ports;
	enum group_style style;
};
void preset_facts(int model, struct preset_facts *ret_facts);

/* For the member schema: fills in what a member with a `model` leaves out, before it is decoded. */
void preset_expand(struct cfg *cfg, const struct cfg_raw *member);
/* What the array cannot be: more ports than it has, the other style. */
void preset_check(struct cfg *cfg, const struct group_config *config,
		  const struct member_config *member);

#endif
