/* SPDX-License-Identifier: MIT
 *
 * Superblocks of the file store.
 */
#include "target/drive/store_super.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "target/drive/vfs.h"

enum { VERSION = 2, VERSION_AT = 8, CRC_AT = 12 };
static const char magic[8] = {'S', 'A', 'N', 'L', 'D', 'R', 'V', '1'};

int store_uuid_make(uint8_t uuid[STORE_UUID_BYTES])
{
	int rc = rng_system_bytes(uuid, STORE_UUID_BYTES);
	uuid[6] = (uint8_t)(0x40 | (uuid[6] & 0x0f));
	uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f));
	return rc;
}

static void text_get(char *to, const uint8_t *from, size_t size)
{
	memcpy(to, from, size - 1);
	to[size - 1] = 0;
}

static void text_put(uint8_t *to, const char *from, size_t size)
{
	memcpy(to, from, strnlen(from, size - 1));
}

static void copy_decode(const uint8_t *copy, struct store_super *super)
{
	super->size_bytes = get_be64(copy + 16);
	memcpy(super->drive_uuid, copy + 24, STORE_UUID_BYTES);
	text_get(super->name, copy + 40, STORE_NAME_BYTES);
	super->generation = get_be64(copy + 104);
	memcpy(super->pool_uuid, copy + 112, STORE_UUID_BYTES);
	memcpy(super->member_uuid, copy + 128, STORE_UUID_BYTES);
	super->number = get_be32(copy + 144);
	super->drives = get_be32(copy + 148);
	super->spares = get_be32(copy + 152);
	super->sequence = get_be64(copy + 156);
	super->chunk_bytes = get_be64(copy + 164);
	text_get(super->raid, copy + 172, STORE_RAID_BYTES);
	text_get(super->member, copy + 188, STORE_NAME_BYTES);
	text_get(super->pool, copy + 252, STORE_NAME_BYTES);
	text_get(super->lab, copy + 316, STORE_NAME_BYTES);
}

static void copy_encode(uint8_t *copy, const struct store_super *super)
{
	memset(copy, 0, STORE_SUPER_BYTES);
	memcpy(copy, magic, sizeof magic);
	put_be32(copy + VERSION_AT, VERSION);
	put_be64(copy + 16, super->size_bytes);
	memcpy(copy + 24, super->drive_uuid, STORE_UUID_BYTES);
	text_put(copy + 40, super->name, STORE_NAME_BYTES);
	put_be64(copy + 104, super->generation);
	memcpy(copy + 112, super->pool_uuid, STORE_UUID_BYTES);
	memcpy(copy + 128, super->member_uuid, STORE_UUID_BYTES);
	put_be32(copy + 144, super->number);
	put_be32(copy + 148, super->drives);
	put_be32(copy + 152, super->spares);
	put_be64(copy + 156, super->sequence);
	put_be64(copy + 164, super->chunk_bytes);
	text_put(copy + 172, super->raid, STORE_RAID_BYTES);
	text_put(copy + 188, super->member, STORE_NAME_BYTES);
	text_put(copy + 252, super->pool, STORE_NAME_BYTES);
	text_put(copy + 316, super->lab, STORE_NAME_BYTES);
	put_be32(copy + CRC_AT, crc32c_of_block(copy, STORE_SUPER_BYTES, CRC_AT));
}

static bool copy_is_good(const uint8_t *copy)
{
	return memcmp(copy, magic, sizeof magic) == 0 &&
	       get_be32(copy + CRC_AT) == crc32c_of_block(copy, STORE_SUPER_BYTES, CRC_AT);
}

/* Why neither copy is good. */
static int refuse(const uint8_t *copy, const char *path, struct err *err)
{
	if (memcmp(copy, magic, sizeof magic) != 0)
		return err_set(err, -EMEDIUMTYPE, "%s is not a drive of sanlab: no superblock",
			       path);
	return err_set(err, -EUCLEAN, "the superblock of %s is damaged", path);
}

int store_super_read(int fd, const char *path, struct store_super *ret_super, struct err *err)
{
	uint8_t copies[STORE_DATA_AT] = {0};
	const uint8_t *best = NULL;

	struct stat status;

	int rc = fstat(fd, &status) ? -errno : 0;
	if (rc == 0)
		rc = vfs_read(fd, copies, MIN_OF(sizeof copies, (size_t)status.st_size), 0);
	if (rc)
		return err_set(err, rc, "cannot read %s: %s", path, strerror(-rc));
	for (unsigned i = 0; i < 2; i++) {
		const uint8_t *copy = copies + i * STORE_SUPER_BYTES;
		if (!copy_is_good(copy))
			continue;
		if (get_be32(copy + VERSION_AT) != VERSION)
			return err_set(err, -ENOTSUP,
				       "%s has superblock version %u, this program knows %d", path,
				       get_be32(copy + VERSION_AT), VERSION);
		if (!best || get_be64(copy + 156) > get_be64(best + 156))
			best = copy;
	}
	if (!best)
		return refuse(copies, path, err);
	copy_decode(best, ret_super);
	return 0;
}

int store_super_write(int fd, const struct store_super *super)
{
	uint8_t copy[STORE_SUPER_BYTES];

	copy_encode(copy, super);
	int rc = vfs_write(fd, copy, sizeof copy, (off_t)(super->sequence % 2 * STORE_SUPER_BYTES));
	if (rc == 0 && vfs->sync(fd))
		rc = -errno;
	return rc;
}
