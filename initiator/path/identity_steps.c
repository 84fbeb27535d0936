/* SPDX-License-Identifier: MIT
 *
 * The commands that tell which logical unit a path has reached, in their order.
 */
#include "initiator/path/identity.h"

/* Older units have no such page, and some take offence. */
static bool is_spc4(const struct identity_facts *facts)
{
	return facts->version >= 6;
}

static bool no_capacity(const struct identity_facts *facts)
{
	return !facts->have_capacity;
}

const struct identity_step identity_steps[IDENTITY_STEPS] = {
    {.name = "TEST UNIT READY", .cdb = {0x00}, .cdb_size = 6, .needs_access = true},
    {.name = "INQUIRY",
     .cdb = {0x12, 0, 0, 0, 96},
     .cdb_size = 6,
     .data_bytes = 96,
     .parse = identity_inquiry},
    {.name = "INQUIRY of page 83h",
     .cdb = {0x12, 1, 0x83, IDENTITY_DATA_BYTES >> 8, IDENTITY_DATA_BYTES & 0xff},
     .cdb_size = 6,
     .data_bytes = IDENTITY_DATA_BYTES,
     .optional = true,
     .parse = identity_vpd_designators},
    {.name = "INQUIRY of page 80h",
     .cdb = {0x12, 1, 0x80, 0, 252},
     .cdb_size = 6,
     .data_bytes = 252,
     .optional = true,
     .parse = identity_vpd_serial},
    {.name = "INQUIRY of page 86h",
     .cdb = {0x12, 1, 0x86, 0, 64},
     .cdb_size = 6,
     .data_bytes = 64,
     .optional = true,
     .parse = identity_vpd_extended,
     .needed = is_spc4},
    {.name = "INQUIRY of page b0h",
     .cdb = {0x12, 1, 0xb0, 0, 64},
     .cdb_size = 6,
     .data_bytes = 64,
     .optional = true,
     .parse = identity_vpd_limits},
    {.name = "READ CAPACITY(16)",
     .cdb = {0x9e, 0x10, [13] = 32},
     .cdb_size = 16,
     .data_bytes = 32,
     .optional = true,
     .needs_access = true,
     .parse = identity_capacity16},
    {.name = "READ CAPACITY(10)",
     .cdb = {0x25},
     .cdb_size = 10,
     .data_bytes = 8,
     .needs_access = true,
     .parse = identity_capacity10,
     .needed = no_capacity},
    {.name = "MODE SENSE(6)",
     .cdb = {0x1a, 0x08, 0x3f, 0, 192},
     .cdb_size = 6,
     .data_bytes = 192,
     .optional = true,
     .needs_access = true,
     .parse = identity_mode6},
};

static bool is_needed(const struct identity_step *step, const struct identity_facts *facts)
{
	if (step->needs_access && facts->without_access)
		return false;
	return !step->needed || step->needed(facts);
}

unsigned identity_next_step(unsigned step, const struct identity_facts *facts)
{
	do
		step++;
	while (step < IDENTITY_STEPS && !is_needed(&identity_steps[step], facts));
	return step;
}

bool identity_without_access(unsigned step, uint8_t key, uint8_t asc, uint8_t ascq,
			     struct identity_facts *facts)
{
	enum { NOT_READY = 0x02, STANDBY = 0x0b, UNAVAILABLE = 0x0c, OFFLINE = 0x12 };

	if (!identity_steps[step].needs_access || key != NOT_READY || asc != 0x04 ||
	    (ascq != STANDBY && ascq != UNAVAILABLE && ascq != OFFLINE))
		return false;
	facts->without_access = true;
	return true;
}

void identity_conclude(struct identity_facts *facts)
{
	struct path_identity *id = &facts->identity;

	id->can_unmap = facts->lbpme && facts->told_unmap;
	/* Access was lost half-way: what was learned so far is not the whole. */
	id->no_capacity = facts->without_access;
	if (id->no_capacity) {
		id->blocks = 0;
		id->block_bytes = 0;
	}
}
