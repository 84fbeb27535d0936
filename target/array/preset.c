/* SPDX-License-Identifier: MIT
 *
 * The table of presets.  Sources are those of shared domain/arrays.md; "assumed" marks values that
 * no document at hand gives.
 */
#include "target/array/preset.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

struct preset {
	const char *name;
	enum group_style style;
	const char *drive; /* of the catalogue */
	unsigned drives;
	const char *raid;
	unsigned ports; /* member portals it can have, both controllers together where both serve */
	unsigned controllers;
	const char *cache; /* the write-back cache, which the other controller mirrors */
	unsigned ssds;	   /* of its read cache */
};

/* In the order of `presets`. */
const char *const preset_names[] = {"ps6100xv-3.5", "ps6100x", "ps6100e",	"ps4100e",
				    "es1640dc",	    "me4024",  "vnx5700-nlsas", NULL};

static const struct preset presets[] = {
    /* 4U, 24 x 3.5" 15K 600 GB, 4 x 1GbE, 4 GB cache: arrays.md 1.4, unverified; RAID 50 is the
     * layout of BP1026's reference run (5.2), spares as the default policy has them (1.5). */
    {"ps6100xv-3.5", GROUP_STYLE_EQUALLOGIC, "sas-15k-600", 24, "raid50", 4, 2, "4GiB", 0},
    /* 2U, 24 x 2.5" 10K of 300, 600 or 900 GB: 1.4, unverified; 600 GB and RAID 50 assumed. */
    {"ps6100x", GROUP_STYLE_EQUALLOGIC, "sas-10k-600", 24, "raid50", 4, 2, "4GiB", 0},
    /* 4U, 24 x 3.5" 7.2K of 0.5 to 3 TB: 1.4, unverified; 2 TB assumed; RAID 6 assumed, as large
     * slow drives take long to rebuild. */
    {"ps6100e", GROUP_STYLE_EQUALLOGIC, "nlsas-7k2-2000", 24, "raid6", 4, 2, "4GiB", 0},
    /* 2U, 12 x 3.5", 2 x 1GbE: 1.4, unverified; drive and RAID 6 assumed as for the PS6100E. */
    {"ps4100e", GROUP_STYLE_EQUALLOGIC, "nlsas-7k2-2000", 12, "raid6", 2, 2, "4GiB", 0},
    /* 12 x 1 TB SAS in one RAID 1+0, two controllers with 2 x 10GBase-T each: the QNAP report
     * (2.2); its drives' speed is not stated, 7.2K is the catalogue's candidate.  4 x 200 GB SAS
     * SSD are its read cache; the size of the controllers' write cache is not stated, 4 GiB
     * assumed. */
    {"es1640dc", GROUP_STYLE_LUN, "sas-7k2-1000", 12, "raid10", 4, 2, "4GiB", 4},
    /* 2U, 24 x 1.2 TB 10K, ADAPT: the ME4024 ESRP paper (2.1); four ports a controller assumed;
     * 8 GB cache a controller, unverified. */
    {"me4024", GROUP_STYLE_LUN, "sas-10k-1200", 24, "adapt", 8, 2, "8GiB", 0},
    /* One database pool of a VNX5700: 48 x 2 TB NL-SAS, RAID 1/0: the XtremSW slides (3); two ports
     * a storage processor and 4 GiB of write cache assumed. */
    {"vnx5700-nlsas", GROUP_STYLE_LUN, "nlsas-7k2-2000", 48, "raid10", 4, 2, "4GiB", 0},
};

_Static_assert(ARRAY_SIZE(presets) + 1 == ARRAY_SIZE(preset_names), "one name a preset");

static const struct preset *preset_find(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_SIZE(presets); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	return NULL;
}

/* Spares of the default policy, which always has some.  For numbers of drives that no document
 * names: a RAID 10 needs an even number of active drives, RAID 50 two equal sets; else one. */
static unsigned equallogic_spares(const char *raid, unsigned drives)
{
	struct raid_equallogic layout;

	if (raid_equallogic_layout(raid, drives, &layout) == 0)
		return layout.spares;
	if (strcmp(raid, "raid10") == 0 || strcmp(raid, "raid50") == 0)
		return drives % 2 ? 1 : 2;
	return strcmp(raid, "raid0") == 0 ? 0 : 1;
}

void preset_facts(int model, struct preset_facts *ret_facts)
{
	const struct preset *preset = &presets[model];

	*ret_facts = (struct preset_facts){
	    .name = preset->name,
	    .drive = preset->drive,
	    .raid = preset->raid,
	    .drives = preset->drives,
	    .spares = preset->style == GROUP_STYLE_EQUALLOGIC
			  ? equallogic_spares(preset->raid, preset->drives)
			  : 0,
	    .ports = preset->ports,
	    .style = preset->style,
	};
}

static void supply_number(struct cfg *cfg, const struct cfg_raw *member, const char *path,
			  unsigned number, const struct cfg_raw *because)
{
	char text[16];

	snprintf(text, sizeof text, "%u", number);
	cfg_supply(cfg, member, path, text, because);
}

void preset_expand(struct cfg *cfg, const struct cfg_raw *member)
{
	struct cfg_raw model, value;
	const struct preset *preset = NULL;
	const char *raid;
	uint64_t drives;
	char why[8];

	if (cfg_raw_find(member, "model", &model))
		preset = preset_find(cfg_raw_scalar(&model));
	if (!preset)
		return;
	cfg_supply(cfg, member, "drives.model", preset->drive, &model);
	supply_number(cfg, member, "drives.count", preset->drives, &model);
	cfg_supply(cfg, member, "raid", preset->raid, &model);
	supply_number(cfg, member, "controllers.count", preset->controllers, &model);
	cfg_supply(cfg, member, "cache.size", preset->cache, &model);
	cfg_supply(cfg, member, "cache.mode", "write-back", &model);
	if (preset->ssds)
		supply_number(cfg, member, "ssd-cache.count", preset->ssds, &model);
	/* Spares follow from the level and the number of drives, whoever gave them. */
	raid = cfg_raw_find(member, "raid", &value) ? cfg_raw_scalar(&value) : NULL;
	if (!raid || !cfg_raw_find(member, "drives.count", &value) || !cfg_raw_scalar(&value) ||
	    cfg_parse_scalar(CFG_UINT, cfg_raw_scalar(&value), &drives, why, sizeof why) ||
	    drives > RAID_DRIVES_MAX)
		return;
	supply_number(
	    cfg, member, "drives.spares",
	    preset->style == GROUP_STYLE_EQUALLOGIC ? equallogic_spares(raid, (unsigned)drives) : 0,
	    &model);
}

void preset_check(struct cfg *cfg, const struct group_config *config,
		  const struct member_config *member)
{
	const struct preset *preset;

	if (!cfg_given(cfg, &member->model) || !cfg_valid(cfg, &member->model))
		return;
	preset = &presets[member->model];
	if (cfg_valid(cfg, &config->style) && (int)preset->style != config->style) {
		cfg_error_at(cfg, &member->model,
			     "'%s' is an array of style %s, the group is of "
			     "style %s",
			     preset->name, group_style_names[preset->style],
			     group_style_names[config->style]);
		cfg_hint(cfg, "set the group's style, or describe the member by its drives");
	}
	if (member->portals.count > preset->ports)
		cfg_error_at(cfg, &member->portals, "%zu portals: a %s has %u ports",
			     member->portals.count, preset->name, preset->ports);
}
