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
    {.name = "TEST UNIT READY", .cdb = {0x00}, .cdb_size = 6},
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
     .parse = identity_capacity16},
    {.name = "READ CAPACITY(10)",
     .cdb = {0x25},
     .cdb_size = 10,
     .data_bytes = 8,
     .parse = identity_capacity10,
     .needed = no_capacity},
    {.name = "MODE SENSE(6)",
     .cdb = {0x1a, 0x08, 0x3f, 0, 192},
     .cdb_size = 6,
     .data_bytes = 192,
     .optional = true,
     .parse = identity_mode6},
};

unsigned identity_next_step(unsigned step, const struct identity_facts *facts)
{
	do
		step++;
	while (step < IDENTITY_STEPS && identity_steps[step].needed &&
	       !identity_steps[step].needed(facts));
	return step;
}
