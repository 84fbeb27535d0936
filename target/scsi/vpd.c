/* SPDX-License-Identifier: MIT
 *
 * Vital product data pages (SPC-4 7.8, SBC-3 6.6), one table row and one builder each.
 *
 * The identification page names the logical unit the same through every target and port: MPIO
 * decides by it that two paths lead to one disk.
 */
#include <assert.h>
#include <stdio.h>

#include "target/scsi/third_party_copy.h"

enum { VPD_MAX_BYTES = 1024, NAA_BYTES = 16, SERIAL_BYTES = 2 * NAA_BYTES };

struct vpd_page {
	uint8_t code;
	bool thin_only;
	/* Fills what follows the 4-byte header; returns its length. */
	unsigned (*build)(const struct scsi_task *task, uint8_t *body);
};

static unsigned build_supported(const struct scsi_task *task, uint8_t *body);
static unsigned build_serial(const struct scsi_task *task, uint8_t *body);
static unsigned build_identification(const struct scsi_task *task, uint8_t *body);
static unsigned build_extended(const struct scsi_task *task, uint8_t *body);
static unsigned build_block_limits(const struct scsi_task *task, uint8_t *body);
static unsigned build_characteristics(const struct scsi_task *task, uint8_t *body);
static unsigned build_provisioning(const struct scsi_task *task, uint8_t *body);
static unsigned build_third_party(const struct scsi_task *task, uint8_t *body);
static unsigned build_referrals(const struct scsi_task *task, uint8_t *body);

/* In ascending order, as page 00 must list them. */
static const struct vpd_page pages[] = {
    {0x00, false, build_supported},	  {0x80, false, build_serial},
    {0x83, false, build_identification},  {0x86, false, build_extended},
    {0x8f, false, build_third_party},	  {0xb0, false, build_block_limits},
    {0xb1, false, build_characteristics}, {0xb2, true, build_provisioning},
    {0xb3, false, build_referrals},
};

static bool page_present(const struct vpd_page *page, const struct scsi_lu *lu)
{
	if (!lu) /* a LUN without logical unit: only the list itself */
		return page->code == 0x00;
	return !page->thin_only || volume_is_thin(lu->volume);
}

static unsigned build_supported(const struct scsi_task *task, uint8_t *body)
{
	unsigned bytes = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		if (page_present(&pages[i], task->lu))
			body[bytes++] = pages[i].code;
	}
	return bytes;
}

static void put_serial(const struct scsi_lu *lu, char out[SERIAL_BYTES + 1])
{
	const uint8_t *naa = volume_naa(lu->volume);

	for (unsigned i = 0; i < NAA_BYTES; i++)
		snprintf(out + 2 * (size_t)i, 3, "%02x", naa[i]);
}

static unsigned build_serial(const struct scsi_task *task, uint8_t *body)
{
	char serial[SERIAL_BYTES + 1];

	put_serial(task->lu, serial);
	memcpy(body, serial, SERIAL_BYTES);
	return SERIAL_BYTES;
}

enum designator_association { OF_LOGICAL_UNIT = 0, OF_TARGET_PORT = 1, OF_TARGET_DEVICE = 2 };
enum designator_type { T10_VENDOR = 1, NAA = 3, RELATIVE_PORT = 4, PORT_GROUP = 5, SCSI_NAME = 8 };
enum code_set { BINARY = 1, ASCII = 2, UTF8 = 3 };

/* Adds the 4-byte designation descriptor header; returns where the designator goes. */
static uint8_t *designator_begin(uint8_t *at, enum code_set set,
				 enum designator_association association, enum designator_type type,
				 unsigned bytes)
{
	/* Ports and devices belong to a protocol, and say so: iSCSI, PIV. */
	at[0] = (uint8_t)((association == OF_LOGICAL_UNIT ? 0 : 0x50) | (unsigned)set);
	at[1] = (uint8_t)((association == OF_LOGICAL_UNIT ? 0 : 0x80) | (unsigned)association << 4 |
			  (unsigned)type);
	at[2] = 0;
	at[3] = (uint8_t)bytes;
	return at + 4;
}

static uint8_t *put_name(uint8_t *at, enum designator_association association, const char *name)
{
	/* NUL-terminated and padded to a multiple of four, SPC-4 7.8.6.11. */
	unsigned bytes = (unsigned)round_up_u64(strlen(name) + 1, 4);

	at = designator_begin(at, UTF8, association, SCSI_NAME, bytes);
	memset(at, 0, bytes);
	memcpy(at, name, strlen(name) + 1);
	return at + bytes;
}

static unsigned build_identification(const struct scsi_task *task, uint8_t *body)
{
	const struct scsi_nexus *nexus = task->nexus;
	char serial[SERIAL_BYTES + 1];
	char port_name[SCSI_NAME_BYTES + 16];
	uint8_t *at;

	at = designator_begin(body, BINARY, OF_LOGICAL_UNIT, NAA, NAA_BYTES);
	memcpy(at, volume_naa(task->lu->volume), NAA_BYTES);
	at = designator_begin(at + NAA_BYTES, ASCII, OF_LOGICAL_UNIT, T10_VENDOR, 8 + SERIAL_BYTES);
	put_serial(task->lu, serial);
	memcpy(at, "SANLAB  ", 8);
	memcpy(at + 8, serial, SERIAL_BYTES);
	at = designator_begin(at + 8 + SERIAL_BYTES, BINARY, OF_TARGET_PORT, RELATIVE_PORT, 4);
	put_be32(at, nexus->relative_port);
	at = designator_begin(at + 4, BINARY, OF_TARGET_PORT, PORT_GROUP, 4);
	put_be32(at, nexus->target_port_group);
	/* An iSCSI portal group is one port and its tag the port's number (iscsi.h). */
	snprintf(port_name, sizeof port_name, "%s,t,0x%04x", nexus->target->name,
		 (unsigned)nexus->relative_port);
	at = put_name(at + 4, OF_TARGET_PORT, port_name);
	at = put_name(at, OF_TARGET_DEVICE, nexus->target->name);
	return (unsigned)(at - body);
}

static unsigned build_extended(const struct scsi_task *task, uint8_t *body)
{
	body[1] = 0x07; /* HEADSUP, ORDSUP, SIMPSUP: task attributes */
	body[2] = 0x01; /* V_SUP: a cache that SYNCHRONIZE CACHE empties */
	body[4] = 0x10; /* R_SUP: referrals */
	body[9] = SCSI_SENSE_MAX_BYTES;
	return 60;
}

static unsigned build_block_limits(const struct scsi_task *task, uint8_t *body)
{
	uint32_t block_bytes = task->lu->block_bytes;
	uint32_t granule = (uint32_t)(SCSI_UNMAP_GRANULE_BYTES / block_bytes);

	body[1] = SCSI_COMPARE_WRITE_MAX_BLOCKS;
	put_be16(body + 2, (uint16_t)scsi_lu_physical_blocks(task->lu));
	put_be32(body + 4, (uint32_t)(SCSI_MAX_TRANSFER_BYTES / block_bytes));
	put_be32(body + 8, (uint32_t)(SCSI_OPTIMAL_TRANSFER_BYTES / block_bytes));
	if (volume_is_thin(task->lu->volume)) {
		put_be32(body + 16, granule * SCSI_UNMAP_MAX_GRANULES);
		put_be32(body + 20, SCSI_UNMAP_MAX_DESCRIPTORS);
		put_be32(body + 24, granule);
		put_be32(body + 28, UINT32_C(1) << 31); /* UGAVALID, alignment 0 */
	}
	put_be64(body + 32, SCSI_WRITE_SAME_MAX_BYTES / block_bytes);
	/* Atomic writes of whole physical blocks, without boundaries. */
	put_be32(body + 40, (uint32_t)(SCSI_ATOMIC_MAX_BYTES / block_bytes));
	put_be32(body + 44, scsi_lu_physical_blocks(task->lu));
	put_be32(body + 48, scsi_lu_physical_blocks(task->lu));
	return 60;
}

static unsigned build_characteristics(const struct scsi_task *task, uint8_t *body)
{
	/* Rotation rate and form factor of an array: not reported.  After erasing (WABEREQ,
	 * WACEREQ) blocks can be read without having been written. */
	body[3] = (uint8_t)((volume_is_thin(task->lu->volume) ? 0x40 : 0x00) | 0x10);
	return 60;
}

static unsigned build_provisioning(const struct scsi_task *task, uint8_t *body)
{
	/* THRESHOLD EXPONENT: a threshold set is 2^n blocks. */
	while ((uint64_t)task->lu->block_bytes << body[0] < SCSI_THRESHOLD_SET_BYTES)
		body[0]++;
	body[1] = 0x80 | 0x40 | 0x20 | 0x04; /* LBPU, LBPWS, LBPWS10, LBPRZ */
	body[2] = 0x02;			     /* thin provisioned */
	return 4;
}

static unsigned build_third_party(const struct scsi_task *task, uint8_t *body)
{
	return scsi_third_party_page(body);
}

static unsigned build_referrals(const struct scsi_task *task, uint8_t *body)
{
	return 12; /* segments have no fixed size (0): REPORT REFERRALS tells them */
}

void scsi_vpd_execute(struct scsi_task *task, uint8_t page, uint32_t allocation_bytes)
{
	uint8_t data[VPD_MAX_BYTES] = {0};

	for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
		unsigned bytes;

		if (pages[i].code != page || !page_present(&pages[i], task->lu))
			continue;
		data[0] = task->lu ? 0x00 : 0x7f;
		data[1] = page;
		bytes = pages[i].build(task, data + 4);
		assert(bytes <= sizeof data - 4);
		put_be16(data + 2, (uint16_t)bytes);
		scsi_task_reply(task, data, 4 + bytes, allocation_bytes);
		return;
	}
	scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
}
