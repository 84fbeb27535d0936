/* SPDX-License-Identifier: MIT
 *
 * The record of a pool that each member with a file store keeps.
 */
#include "target/array/pool_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/drive/vfs.h"

enum {
	VERSION = 1,
	HEADER_BYTES = 512,
	MEMBER_BYTES = 96,
	VOLUME_BYTES = 80,
	RECORD_BYTES =
	    HEADER_BYTES + POOL_RECORD_MEMBERS * MEMBER_BYTES + POOL_RECORD_VOLUMES * VOLUME_BYTES,
};
static const char magic[8] = {'S', 'A', 'N', 'L', 'P', 'O', 'O', 'L'};

static int record_path(char *out, size_t size, const char *place, const char *member)
{
	int length = snprintf(out, size, "%s/%s.pool", place, member);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static size_t record_bytes(unsigned members, unsigned volumes)
{
	return HEADER_BYTES + (size_t)members * MEMBER_BYTES + (size_t)volumes * VOLUME_BYTES;
}

static void name_get(char *to, const uint8_t *from)
{
	memcpy(to, from, STORE_NAME_BYTES - 1);
	to[STORE_NAME_BYTES - 1] = 0;
}

static void name_put(uint8_t *to, const char *from)
{
	memcpy(to, from, strnlen(from, STORE_NAME_BYTES - 1));
}

static void encode(uint8_t *out, const struct pool_record *record)
{
	size_t size = record_bytes(record->member_count, record->volume_count);

	memset(out, 0, size);
	memcpy(out, magic, sizeof magic);
	put_be32(out + 8, VERSION);
	memcpy(out + 16, record->pool_uuid, STORE_UUID_BYTES);
	memcpy(out + 32, record->member_uuid, STORE_UUID_BYTES);
	put_be64(out + 48, record->committed);
	put_be64(out + 56, record->intent);
	put_be32(out + 64, record->clean);
	put_be32(out + 68, record->member_count);
	put_be32(out + 72, record->volume_count);
	put_be32(out + 76, record->cached);
	name_put(out + 80, record->member);
	name_put(out + 144, record->pool);
	name_put(out + 208, record->lab);
	uint8_t *at = out + HEADER_BYTES;
	for (unsigned i = 0; i < record->member_count; i++, at += MEMBER_BYTES) {
		name_put(at, record->members[i].name);
		memcpy(at + 64, record->members[i].uuid, STORE_UUID_BYTES);
		put_be64(at + 80, record->members[i].since);
		put_be64(at + 88, record->members[i].used_pages);
	}
	for (unsigned i = 0; i < record->volume_count; i++, at += VOLUME_BYTES) {
		put_be64(at, record->volumes[i].id);
		put_be64(at + 8, record->volumes[i].size_bytes);
		name_put(at + 16, record->volumes[i].name);
	}
	put_be32(out + 12, crc32c_of_block(out, size, 12));
}

/* False: damaged. */
static bool decode(const uint8_t *in, size_t size, struct pool_record *record)
{
	if (size < HEADER_BYTES || memcmp(in, magic, sizeof magic) != 0 ||
	    get_be32(in + 12) != crc32c_of_block(in, size, 12))
		return false;
	unsigned members = get_be32(in + 68), volumes = get_be32(in + 72);
	if (members > POOL_RECORD_MEMBERS || volumes > POOL_RECORD_VOLUMES ||
	    size != record_bytes(members, volumes))
		return false;
	memcpy(record->pool_uuid, in + 16, STORE_UUID_BYTES);
	memcpy(record->member_uuid, in + 32, STORE_UUID_BYTES);
	record->committed = get_be64(in + 48);
	record->intent = get_be64(in + 56);
	record->clean = get_be32(in + 64) != 0;
	record->cached = get_be32(in + 76) != 0;
	record->member_count = members;
	record->volume_count = volumes;
	name_get(record->member, in + 80);
	name_get(record->pool, in + 144);
	name_get(record->lab, in + 208);
	const uint8_t *at = in + HEADER_BYTES;
	for (unsigned i = 0; i < members; i++, at += MEMBER_BYTES) {
		name_get(record->members[i].name, at);
		memcpy(record->members[i].uuid, at + 64, STORE_UUID_BYTES);
		record->members[i].since = get_be64(at + 80);
		record->members[i].used_pages = get_be64(at + 88);
	}
	for (unsigned i = 0; i < volumes; i++, at += VOLUME_BYTES) {
		record->volumes[i].id = get_be64(at);
		record->volumes[i].size_bytes = get_be64(at + 8);
		name_get(record->volumes[i].name, at + 16);
	}
	return true;
}

static int read_file(const char *path, uint8_t *buf, size_t *ret_size, struct err *err)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	int rc = fstat(fd, &status) ? -errno : 0;
	*ret_size = rc ? 0 : (size_t)MIN_OF(status.st_size, RECORD_BYTES);
	if (rc == 0)
		rc = vfs_read(fd, buf, *ret_size, 0);
	close(fd);
	return rc ? err_set(err, -EIO, "cannot read %s: %s", path, strerror(-rc)) : 0;
}

int pool_record_read(const char *place, const char *member, struct pool_record *ret_record,
		     struct err *err)
{
	char path[PATH_MAX];
	size_t size = 0;

	if (record_path(path, sizeof path, place, member))
		return err_set(err, -ENAMETOOLONG, "the name of member %s in %s is too long",
			       member, place);
	uint8_t *buf = malloc(RECORD_BYTES);
	if (!buf)
		return err_set(err, -ENOMEM, "no memory for member %s", member);
	int rc = read_file(path, buf, &size, err);
	if (rc == 0 && size >= HEADER_BYTES && memcmp(buf, magic, sizeof magic) == 0 &&
	    get_be32(buf + 8) != VERSION) {
		rc = err_set(err, -ENOTSUP, "%s has version %u, this program knows %d", path,
			     get_be32(buf + 8), VERSION);
	} else if (rc == 0 && !decode(buf, size, ret_record)) {
		rc = err_set(err, -EUCLEAN, "%s, which tells the member's pool, is damaged", path);
		err_hint(err, "restore the member's directory from one copy, or remove it and the "
			      "directories of all members of the pool to begin anew");
	}
	free(buf);
	return rc;
}

int pool_record_write(const char *place, const struct pool_record *record, struct err *err)
{
	char path[PATH_MAX];

	if (record_path(path, sizeof path, place, record->member))
		return err_set(err, -ENAMETOOLONG, "the name of member %s in %s is too long",
			       record->member, place);
	if (mkdir(place, 0700) && errno != EEXIST)
		return err_set(err, -errno, "cannot make directory %s: %s", place, strerror(errno));
	uint8_t *buf = malloc(RECORD_BYTES);
	if (!buf)
		return err_set(err, -ENOMEM, "no memory for member %s", record->member);
	encode(buf, record);
	int rc =
	    vfs_replace(place, path, buf, record_bytes(record->member_count, record->volume_count));
	free(buf);
	return rc ? err_set(err, rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

int pool_record_search(const char *place,
		       bool (*wanted)(void *arg, const struct pool_record *record), void *arg,
		       struct pool_record *ret_record)
{
	char member[STORE_NAME_BYTES];
	struct err unread = {0};
	int rc = -ENOENT;

	DIR *dir = opendir(place);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; rc && entry;
	     entry = readdir(dir)) {
		size_t length = strlen(entry->d_name), suffix = sizeof ".pool" - 1;
		if (length <= suffix || length - suffix >= sizeof member ||
		    strcmp(entry->d_name + length - suffix, ".pool") != 0)
			continue;
		snprintf(member, sizeof member, "%.*s", (int)(length - suffix), entry->d_name);
		if (pool_record_read(place, member, ret_record, &unread) == 0 &&
		    wanted(arg, ret_record))
			rc = 0;
	}
	if (dir)
		closedir(dir);
	return rc;
}

const struct pool_record_member *pool_record_find(const struct pool_record *record,
						  const char *member)
{
	for (unsigned i = 0; i < record->member_count; i++)
		if (strcmp(record->members[i].name, member) == 0)
			return &record->members[i];
	return NULL;
}
