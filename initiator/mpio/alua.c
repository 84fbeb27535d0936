/* SPDX-License-Identifier: MIT
 *
 * Parameter data of target port groups.
 */
#include "initiator/mpio/alua.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"

enum {
	MAINTENANCE_IN = 0xa3,
	MAINTENANCE_OUT = 0xa4,
	TARGET_PORT_GROUPS = 0x0a, /* service action of both */
	EXTENDED_HEADER = 1,	   /* format, of CDB and data */
	GROUP_BYTES = 8,
	PORT_BYTES = 4,
};

void alua_rtpg_cdb(uint8_t cdb[16], bool extended, uint32_t data_bytes)
{
	memset(cdb, 0, 16);
	cdb[0] = MAINTENANCE_IN;
	cdb[1] = TARGET_PORT_GROUPS | (extended ? EXTENDED_HEADER << 5 : 0);
	put_be32(cdb + 6, data_bytes);
}

static enum mpio_access access_of(uint8_t state)
{
	switch (state) {
	case MPIO_OPTIMIZED:
	case MPIO_NON_OPTIMIZED:
	case MPIO_STANDBY:
	case MPIO_UNAVAILABLE:
	case MPIO_LBA_DEPENDENT:
	case MPIO_OFFLINE:
	case MPIO_TRANSITIONING:
		return (enum mpio_access)state;
	default:
		return MPIO_UNAVAILABLE; /* reserved: nothing to rely on */
	}
}

int alua_parse(const uint8_t *data, size_t size, struct alua_report *ret_report)
{
	struct alua_report report = {.count = 0};
	size_t at = 4, end;

	if (size < 4)
		return -EPROTO;
	end = MIN_OF((size_t)get_be32(data), size - 4) + 4;
	if (end >= 8 && (data[4] >> 4 & 7) == EXTENDED_HEADER) {
		report.transition_ns = data[5] * NS_PER_S;
		at = 8;
	}
	while (at + GROUP_BYTES <= end && report.count < ALUA_REPORT_GROUPS) {
		struct alua_report_group *group = &report.groups[report.count++];

		group->preferred = data[at] & 0x80;
		group->access = access_of(data[at] & 0x0f);
		group->id = get_be16(data + at + 2);
		at += GROUP_BYTES + (size_t)data[at + 7] * PORT_BYTES;
	}
	if (report.count == 0)
		return -EPROTO;
	*ret_report = report;
	return 0;
}

const struct alua_report_group *alua_find(const struct alua_report *report, uint16_t id)
{
	for (unsigned i = 0; i < report->count; i++)
		if (report->groups[i].id == id)
			return &report->groups[i];
	return NULL;
}

void alua_stpg(uint8_t cdb[16], uint8_t list[ALUA_STPG_BYTES], uint16_t group)
{
	memset(cdb, 0, 16);
	memset(list, 0, ALUA_STPG_BYTES);
	cdb[0] = MAINTENANCE_OUT;
	cdb[1] = TARGET_PORT_GROUPS;
	put_be32(cdb + 6, ALUA_STPG_BYTES);
	list[4] = MPIO_OPTIMIZED;
	put_be16(list + 6, group);
}
