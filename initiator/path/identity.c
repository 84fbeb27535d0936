/* SPDX-License-Identifier: MIT
 *
 * Parsers of the pages that identify a logical unit and tell its limits.
 */
#include "initiator/path/identity.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"

enum {
	VPD_SERIAL = 0x80,
	VPD_DESIGNATORS = 0x83,
	VPD_EXTENDED = 0x86,
	VPD_LIMITS = 0xb0,

	ASSOCIATION_UNIT = 0,
	ASSOCIATION_PORT = 1,

	DESIGNATOR_T10 = 1,
	DESIGNATOR_EUI64 = 2,
	DESIGNATOR_NAA = 3,
	DESIGNATOR_RELATIVE_PORT = 4,
	DESIGNATOR_PORT_GROUP = 5,
	DESIGNATOR_SCSI_NAME = 8,

	RANK_SERIAL = 1,
	RANK_T10 = 2,
	RANK_EUI64 = 3,
	RANK_NAA = 4,

	MAX_BLOCK_BYTES = 65536,
};

struct identity_facts identity_unknown(void)
{
	return (struct identity_facts){.identity.portal_group = -1};
}

/* Fixed-width ASCII fields are padded with blanks. */
static void copy_text(char *out, size_t out_size, const uint8_t *from, size_t size)
{
	size_t n = MIN_OF(size, out_size - 1);

	while (n && (from[n - 1] == ' ' || from[n - 1] == 0))
		n--;
	for (size_t i = 0; i < n; i++)
		out[i] = from[i] >= 0x20 && from[i] < 0x7f ? (char)from[i] : '?';
	out[n] = 0;
}

int identity_inquiry(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	struct path_identity *id = &facts->identity;

	/* Peripheral qualifier and type: a connected direct-access unit is 00h, behind a port
	 * without access it may be 20h. */
	if (size < 36 || (data[0] != 0 && !(facts->without_access && data[0] == 0x20)))
		return -EPROTO;
	facts->version = data[2];
	id->tpgs = data[5] >> 4 & 3;
	copy_text(id->vendor, sizeof id->vendor, data + 8, 8);
	copy_text(id->product, sizeof id->product, data + 16, 16);
	copy_text(id->revision, sizeof id->revision, data + 32, 4);
	return 0;
}

/* The page's payload: what the header claims, cut to what came. */
static int vpd_body(const uint8_t *data, size_t size, uint8_t page, const uint8_t **ret_body,
		    size_t *ret_size)
{
	if (size < 4 || data[1] != page)
		return -EPROTO;
	*ret_body = data + 4;
	*ret_size = MIN_OF((size_t)get_be16(data + 2), size - 4);
	return 0;
}

static void keep_designator(struct identity_facts *facts, unsigned rank, const uint8_t *bytes,
			    size_t size)
{
	struct path_identity *id = &facts->identity;
	size_t n = MIN_OF(size, sizeof id->designator);

	/* Of two of a kind the longer is the more specific (NAA 6 over NAA 5). */
	if (n == 0 || rank < facts->rank || (rank == facts->rank && n <= id->designator_bytes))
		return;
	memset(id->designator, 0, sizeof id->designator);
	memcpy(id->designator, bytes, n);
	id->designator_bytes = (unsigned)n;
	facts->rank = rank;
}

/* The iSCSI name of a target port: "iqn...,t,0x" and the portal group's tag (SPC-4 7.8.6.11,
 * RFC 7143 13.9); padded with zeros. */
static void take_port_name(struct identity_facts *facts, const uint8_t *bytes, size_t size)
{
	static const char mark[] = ",t,0x";
	const size_t mark_size = sizeof mark - 1;
	const uint8_t *at = memmem(bytes, size, mark, mark_size);
	unsigned digits = 0;
	int tag = 0;

	if (!at)
		return;
	at += mark_size;
	for (; at < bytes + size && digits < 4 && isxdigit(*at); at++, digits++)
		tag = tag << 4 | (isdigit(*at) ? *at - '0' : (*at | 0x20) - 'a' + 10);
	if (digits)
		facts->identity.portal_group = tag;
}

static void take_port(struct identity_facts *facts, unsigned type, const uint8_t *bytes,
		      size_t size)
{
	if (type == DESIGNATOR_SCSI_NAME)
		take_port_name(facts, bytes, size);
	else if (type == DESIGNATOR_RELATIVE_PORT && size >= 4)
		facts->identity.relative_port = get_be16(bytes + 2);
	else if (type == DESIGNATOR_PORT_GROUP && size >= 4)
		facts->identity.target_port_group = get_be16(bytes + 2);
}

static void take_designator(struct identity_facts *facts, unsigned association, unsigned type,
			    const uint8_t *bytes, size_t size)
{
	static const unsigned ranks[] = {
	    [DESIGNATOR_T10] = RANK_T10,
	    [DESIGNATOR_EUI64] = RANK_EUI64,
	    [DESIGNATOR_NAA] = RANK_NAA,
	};

	if (association == ASSOCIATION_PORT)
		take_port(facts, type, bytes, size);
	else if (association == ASSOCIATION_UNIT && type < ARRAY_SIZE(ranks) && ranks[type])
		keep_designator(facts, ranks[type], bytes, size);
}

int identity_vpd_designators(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	const uint8_t *body;
	size_t left;
	int r = vpd_body(data, size, VPD_DESIGNATORS, &body, &left);

	if (r < 0)
		return r;
	while (left >= 4) {
		size_t length = body[3];

		if (length > left - 4)
			break; /* cut short: what came so far counts */
		take_designator(facts, body[1] >> 4 & 3, body[1] & 0xf, body + 4, length);
		body += 4 + length;
		left -= 4 + length;
	}
	return 0;
}

int identity_vpd_serial(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	const uint8_t *body;
	size_t left;
	int r = vpd_body(data, size, VPD_SERIAL, &body, &left);

	if (r < 0)
		return r;
	while (left && (body[left - 1] == ' ' || body[left - 1] == 0))
		left--;
	while (left && *body == ' ') {
		body++;
		left--;
	}
	copy_text(facts->identity.serial, sizeof facts->identity.serial, body, left);
	keep_designator(facts, RANK_SERIAL, body, left);
	return 0;
}

int identity_vpd_extended(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	const uint8_t *body;
	size_t left;
	int r = vpd_body(data, size, VPD_EXTENDED, &body, &left);

	if (r < 0)
		return r;
	facts->identity.referrals = left >= 5 && body[4] & 0x10; /* R_SUP */
	return 0;
}

int identity_vpd_limits(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	const uint8_t *body;
	size_t left;
	int r = vpd_body(data, size, VPD_LIMITS, &body, &left);

	if (r < 0)
		return r;
	if (left < 8)
		return -EPROTO;
	facts->identity.max_transfer_blocks = get_be32(body + 4);
	if (left >= 24) { /* SBC-2 devices end before the UNMAP fields */
		facts->identity.max_unmap_blocks = get_be32(body + 16);
		facts->told_unmap = facts->identity.max_unmap_blocks && get_be32(body + 20);
	}
	return 0;
}

static int take_capacity(struct identity_facts *facts, uint64_t last_lba, uint32_t block_bytes)
{
	if (block_bytes < 512 || block_bytes > MAX_BLOCK_BYTES || block_bytes % 512)
		return -EPROTO;
	if (last_lba >= (uint64_t)INT64_MAX / block_bytes)
		return -EPROTO;
	facts->identity.block_bytes = block_bytes;
	facts->identity.blocks = last_lba + 1;
	facts->have_capacity = true;
	return 0;
}

int identity_capacity16(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	if (size < 12)
		return -EPROTO;
	facts->lbpme = size >= 15 && data[14] & 0x80;
	return take_capacity(facts, get_be64(data), get_be32(data + 8));
}

int identity_capacity10(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	/* ffffffff: larger than this command can tell. */
	if (size < 8 || get_be32(data) == UINT32_MAX)
		return -EPROTO;
	return take_capacity(facts, get_be32(data), get_be32(data + 4));
}

int identity_mode6(const uint8_t *data, size_t size, struct identity_facts *facts)
{
	if (size < 4)
		return -EPROTO;
	facts->identity.write_protected = data[2] & 0x80;
	facts->dpofua = data[2] & 0x10;
	return 0;
}
