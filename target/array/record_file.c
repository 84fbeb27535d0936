/* SPDX-License-Identifier: MIT
 *
 * Append-only files of records.
 */
#include "target/array/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/drive/vfs.h"

enum { BLOCK_RECORDS = RECORD_FILE_BLOCK_BYTES / RECORD_FILE_BYTES };

static off_t record_at(uint64_t number)
{
	return (off_t)(RECORD_FILE_HEADER_BYTES + number * RECORD_FILE_BYTES);
}

static bool is_empty(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

static void seal(uint8_t *record, uint64_t number)
{
	put_be64(record + 8, number);
	put_be32(record, crc32c(0, record + 4, RECORD_FILE_BYTES - 4));
}

static bool is_good(const uint8_t *record, uint64_t number)
{
	return get_be32(record) == crc32c(0, record + 4, RECORD_FILE_BYTES - 4) &&
	       get_be64(record + 8) == number;
}

int record_file_open(struct record_file *file, const char *path,
		     uint8_t ret_header[RECORD_FILE_HEADER_BYTES], struct err *err)
{
	struct stat status;

	*file = (struct record_file){.fd = open(path, O_RDWR | O_CLOEXEC)};
	if (file->fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	snprintf(file->path, sizeof file->path, "%s", path);
	int rc = vfs_lock(file->fd, path, err);
	if (rc == 0 && fstat(file->fd, &status))
		rc = -errno;
	memset(ret_header, 0, RECORD_FILE_HEADER_BYTES);
	if (rc == 0)
		rc = vfs_read(file->fd, ret_header,
			      MIN_OF(RECORD_FILE_HEADER_BYTES, (size_t)status.st_size), 0);
	if (rc) {
		record_file_close(file);
		return err_set(err, rc, "cannot read %s: %s", path, strerror(-rc));
	}
	return 0;
}

void record_file_close(struct record_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	file->fd = -1;
}

/* ---- reading ---- */

static int refuse_short(const struct record_file *file, struct err *err)
{
	int rc = err_set(err, -EUCLEAN, "%s was cut short", file->path);
	err_hint(err, "restore the member's directory from one copy: what is missing in it says "
		      "where the data of volumes is");
	return rc;
}

static int refuse_damaged(const struct record_file *file, struct err *err)
{
	int rc = err_set(err, -EUCLEAN, "%s is damaged at record %llu", file->path,
			 (unsigned long long)file->records);
	err_hint(err, "restore the member's directory from one copy");
	return rc;
}

/* What follows the last good record: nothing, or one append that was torn. */
static int check_tail(struct record_file *file, uint64_t end, struct err *err)
{
	uint8_t block[RECORD_FILE_BLOCK_BYTES];
	bool torn = false;

	for (uint64_t number = file->records; number < end;) {
		uint64_t in_block = number % BLOCK_RECORDS;
		if (vfs_read(file->fd, block, sizeof block, record_at(number - in_block)))
			return err_set(err, -EIO, "cannot read %s", file->path);
		for (; in_block < BLOCK_RECORDS; in_block++, number++) {
			const uint8_t *record = block + in_block * RECORD_FILE_BYTES;
			if (is_empty(record, RECORD_FILE_BYTES))
				continue;
			if (is_good(record, number))
				return refuse_damaged(file, err);
			torn = true;
			if (number + 1 == end)
				return refuse_short(file, err);
		}
	}
	if (!torn)
		return 0;
	memset(block, 0, sizeof block);
	for (uint64_t number = file->records; number < end;) {
		uint64_t left = BLOCK_RECORDS - number % BLOCK_RECORDS;
		if (vfs_write(file->fd, block, left * RECORD_FILE_BYTES, record_at(number)))
			return err_set(err, -EIO, "cannot write %s", file->path);
		number += left;
	}
	return record_file_sync(file) ? err_set(err, -EIO, "cannot sync %s", file->path) : 0;
}

int record_file_replay(struct record_file *file, bool (*apply)(void *arg, const uint8_t *record),
		       void *arg, struct err *err)
{
	uint8_t block[RECORD_FILE_BLOCK_BYTES];
	struct stat status;

	if (fstat(file->fd, &status))
		return err_set(err, -errno, "cannot read %s: %s", file->path, strerror(errno));
	uint64_t size = (uint64_t)status.st_size;
	if (size < RECORD_FILE_HEADER_BYTES + RECORD_FILE_BLOCK_BYTES ||
	    size % RECORD_FILE_BLOCK_BYTES)
		return refuse_short(file, err);
	uint64_t end = (size - RECORD_FILE_HEADER_BYTES) / RECORD_FILE_BYTES;
	while (file->records < end) {
		if (vfs_read(file->fd, block, sizeof block, record_at(file->records)))
			return err_set(err, -EIO, "cannot read %s", file->path);
		for (unsigned i = 0; i < BLOCK_RECORDS; i++) {
			const uint8_t *record = block + i * RECORD_FILE_BYTES;
			if (!is_good(record, file->records))
				return check_tail(file, end, err);
			if (!apply(arg, record))
				return err_set(err, -EUCLEAN,
					       "%s contradicts itself at record %llu", file->path,
					       (unsigned long long)file->records);
			file->records++;
		}
	}
	return refuse_short(file, err);
}

/* ---- writing ---- */

/* The block after NUMBER's, in which NUMBER is the last: so that there is always an empty one. */
static int extend(struct record_file *file, uint64_t number)
{
	if (vfs->allocate(file->fd, record_at(number + 1), RECORD_FILE_BLOCK_BYTES))
		return -errno;
	return record_file_sync(file);
}

int record_file_append(struct record_file *file, uint8_t record[RECORD_FILE_BYTES])
{
	static const uint8_t empty[RECORD_FILE_BYTES];
	uint64_t number = file->records;

	if (file->broken)
		return -EIO;
	int rc = number % BLOCK_RECORDS == BLOCK_RECORDS - 1 ? extend(file, number) : 0;
	if (rc == 0 && number > 0 && number % BLOCK_RECORDS == 0)
		rc = record_file_sync(file);
	if (rc)
		return rc == -ENOSPC ? rc : -EIO;
	seal(record, number);
	rc = vfs_write(file->fd, record, RECORD_FILE_BYTES, record_at(number));
	if (rc) {
		/* The owner goes on as if it were not there, so it must not be. */
		file->broken = vfs_write(file->fd, empty, sizeof empty, record_at(number)) != 0;
		return rc == -ENOSPC ? rc : -EIO;
	}
	file->records++;
	return 0;
}

int record_file_sync(struct record_file *file)
{
	if (!file->broken && vfs->sync(file->fd))
		file->broken = true;
	return file->broken ? -EIO : 0;
}

/* A block is written when it is full, and the last one, which has an empty record, at the end. */
static int fill(struct record_file *file, uint64_t count,
		bool (*next)(void *arg, uint64_t index, uint8_t *record), void *arg)
{
	uint8_t block[RECORD_FILE_BLOCK_BYTES] = {0};

	for (uint64_t i = 0; i < count; i++) {
		unsigned in_block = (unsigned)(file->records % BLOCK_RECORDS);
		uint8_t *record = block + (size_t)in_block * RECORD_FILE_BYTES;
		if (!next(arg, i, record))
			continue;
		seal(record, file->records++);
		if (in_block < BLOCK_RECORDS - 1)
			continue;
		int rc = vfs_write(file->fd, block, sizeof block,
				   record_at(file->records - BLOCK_RECORDS));
		if (rc)
			return rc;
		memset(block, 0, sizeof block);
	}
	int rc = vfs_write(file->fd, block, sizeof block,
			   record_at(file->records - file->records % BLOCK_RECORDS));
	if (rc == 0 && vfs->sync(file->fd))
		rc = -errno;
	return rc;
}

int record_file_replace(struct record_file *file, const char *place, const char *path,
			const uint8_t header[RECORD_FILE_HEADER_BYTES], uint64_t count,
			bool (*next)(void *arg, uint64_t index, uint8_t *record), void *arg)
{
	char temporary[PATH_MAX + 8];
	struct record_file fresh = {.fd = -1};

	snprintf(temporary, sizeof temporary, "%s.new", path);
	snprintf(fresh.path, sizeof fresh.path, "%s", path);
	fresh.fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fresh.fd < 0)
		return -errno;
	int rc = vfs_lock(fresh.fd, path, NULL);
	if (rc == 0)
		rc = vfs_write(fresh.fd, header, RECORD_FILE_HEADER_BYTES, 0);
	if (rc == 0)
		rc = fill(&fresh, count, next, arg);
	if (rc == 0 && vfs->rename(temporary, path))
		rc = -errno;
	if (rc) {
		unlink(temporary);
		close(fresh.fd);
		return rc;
	}
	/* From here on the new file is the one, also when the directory cannot be synced. */
	record_file_close(file);
	*file = fresh;
	file->broken = vfs_sync_directory(place) != 0;
	return file->broken ? -EIO : 0;
}
