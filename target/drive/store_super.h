/* SPDX-License-Identifier: MIT
 *
 * The superblock of a drive of the file store: what the file is, whose drive it is, and how recent.
 *
 * Two copies of 4 KiB (big-endian fields, CRC32C over the rest), written in turn: an update that a
 * crash tears leaves the other one.  The newer good one counts.
 *
 *     0 magic "SANLDRV1"    8 version     12 CRC32C      16 size_bytes   24 drive UUID
 *    40 name (64)         104 generation 112 pool UUID  128 member UUID 144 drive's number
 *   148 drives            152 spares     156 sequence   164 chunk_bytes 172 RAID level (16)
 *   188 member (64)       252 pool (64)  316 lab (64)
 */
#ifndef SANLAB_TARGET_DRIVE_STORE_SUPER_H
#define SANLAB_TARGET_DRIVE_STORE_SUPER_H

#include <stdint.h>

#include "base/err.h"

enum {
	STORE_SUPER_BYTES = 4096, /* of one copy */
	STORE_DATA_AT = 2 * STORE_SUPER_BYTES,
	STORE_NAME_BYTES = 64,
	STORE_RAID_BYTES = 16,
	STORE_UUID_BYTES = 16,
};

struct store_super {
	uint64_t size_bytes;
	uint8_t drive_uuid[STORE_UUID_BYTES];
	char name[STORE_NAME_BYTES]; /* "m1-drive03" */
	/* The number of the last start of its pool that it took part in: a drive whose number is
	 * older than its member's missed what was written since. */
	uint64_t generation;
	uint8_t pool_uuid[STORE_UUID_BYTES], member_uuid[STORE_UUID_BYTES]; /* zeros: nobody's */
	uint32_t number; /* of the drive in its member */
	uint32_t drives, spares;
	uint64_t chunk_bytes;
	char raid[STORE_RAID_BYTES];
	char member[STORE_NAME_BYTES], pool[STORE_NAME_BYTES], lab[STORE_NAME_BYTES];
	uint64_t sequence; /* of writes of the superblock; its parity chooses the copy */
};

/* Random, version 4. */
int store_uuid_make(uint8_t uuid[STORE_UUID_BYTES]);
/* -EMEDIUMTYPE: not a drive of sanlab; -EUCLEAN: damaged; -ENOTSUP: of another version. */
int store_super_read(int fd, const char *path, struct store_super *ret_super, struct err *err);
/* Writes the copy of SUPER's sequence; durable when it returns 0. */
int store_super_write(int fd, const struct store_super *super);

#endif
