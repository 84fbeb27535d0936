/* SPDX-License-Identifier: MIT
 *
 * REPORT and SET TARGET PORT GROUPS (SPC-4 6.37, 6.45) as bytes.  Pure: lengths the target claims
 * are never trusted.
 */
#ifndef SANLAB_INITIATOR_MPIO_ALUA_H
#define SANLAB_INITIATOR_MPIO_ALUA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "initiator/mpio/mpio.h"

enum { ALUA_REPORT_GROUPS = 64, ALUA_STPG_BYTES = 8 };

struct alua_report {
	unsigned count;
	struct alua_report_group {
		uint16_t id;
		enum mpio_access access;
		bool preferred;
	} groups[ALUA_REPORT_GROUPS];
	uint64_t transition_ns; /* 0: not told */
};

/* EXTENDED: with the header that tells the transition time; some arrays refuse it. */
void alua_rtpg_cdb(uint8_t cdb[16], bool extended, uint32_t data_bytes);
/* 0 or -EPROTO; groups beyond the table, or cut short, are left out. */
int alua_parse(const uint8_t *data, size_t size, struct alua_report *ret_report);
const struct alua_report_group *alua_find(const struct alua_report *report, uint16_t id);

/* Asks for GROUP to become optimized. */
void alua_stpg(uint8_t cdb[16], uint8_t list[ALUA_STPG_BYTES], uint16_t group);

#endif
