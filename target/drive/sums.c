/* SPDX-License-Identifier: MIT
 *
 * The table of checksums.
 *
 * File: a header page (big-endian: 0 magic, 8 CRC32C of what follows, 16 sectors, 24 drive's UUID),
 * then the sums in the order of the host's bytes: the magic tells a foreign one.  It is made under
 * a temporary name and renamed when it is complete.
 */
#include "target/drive/sums.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/drive/vfs.h"

enum {
	HEADER_BYTES = 4096,
	HEADER_CRC_AT = 8,
	HEADER_SECTORS_AT = 16,
	HEADER_UUID_AT = 24,
	ZERO_BYTES = 4096,
};

static const uint64_t magic = UINT64_C(0x53414e53554d5331); /* "SANSUMS1", in the host's order */

static int sums_path(char *out, size_t size, const char *place, const char *name,
		     const char *suffix)
{
	int length = snprintf(out, size, "%s/%s.sums%s", place, name, suffix);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static uint32_t header_crc(const uint8_t *header)
{
	return crc32c(0, header + HEADER_SECTORS_AT, HEADER_BYTES - HEADER_SECTORS_AT);
}

static void header_fill(uint8_t *header, const uint8_t *uuid, uint64_t sectors)
{
	memset(header, 0, HEADER_BYTES);
	memcpy(header, &magic, sizeof magic);
	put_be64(header + HEADER_SECTORS_AT, sectors);
	memcpy(header + HEADER_UUID_AT, uuid, SUMS_UUID_BYTES);
	put_be32(header + HEADER_CRC_AT, header_crc(header));
}

static uint64_t file_bytes(uint64_t sectors)
{
	return HEADER_BYTES + sectors * sizeof(uint32_t);
}

/* 0, or -ESTALE when the sums are of another drive. */
static int file_open(struct sums *sums, const char *path, const uint8_t *uuid, uint64_t sectors,
		     struct err *err)
{
	uint8_t header[HEADER_BYTES];

	sums->fd = open(path, O_RDWR | O_CLOEXEC);
	if (sums->fd < 0)
		return errno == ENOENT
			   ? -ESTALE
			   : err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	int rc = vfs_read(sums->fd, header, sizeof header, 0);
	off_t end = lseek(sums->fd, 0, SEEK_END);
	if (rc == 0 && !memcmp(header, &magic, sizeof magic) &&
	    get_be32(header + HEADER_CRC_AT) == header_crc(header)) {
		if (memcmp(header + HEADER_UUID_AT, uuid, SUMS_UUID_BYTES) != 0)
			return -ESTALE;
		if (get_be64(header + HEADER_SECTORS_AT) == sectors &&
		    (uint64_t)end == file_bytes(sectors))
			return 0;
	}
	rc = err_set(err, -EUCLEAN, "%s is damaged: it held the checksums of a drive", path);
	err_hint(err, "restore it, or remove it: it is then made anew from what the drive holds");
	return rc;
}

static int file_make(struct sums *sums, const char *path, const uint8_t *uuid, uint64_t sectors,
		     struct err *err)
{
	uint8_t header[HEADER_BYTES];

	header_fill(header, uuid, sectors);
	sums->is_new = true;
	sums->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int rc = sums->fd < 0 || vfs->resize(sums->fd, (off_t)file_bytes(sectors)) ? -errno : 0;
	if (rc == 0)
		rc = vfs_write(sums->fd, header, sizeof header, 0);
	return rc ? err_set(err, rc, "cannot make %s: %s", path, strerror(-rc)) : 0;
}

static int memory_make(struct sums *sums, const char *name, uint64_t sectors, struct err *err)
{
	sums->memory_bytes = MAX_OF(sectors, 1) * sizeof(uint32_t);
	void *memory = mmap(NULL, sums->memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return err_set(err, -ENOMEM, "no address space for drive %s", name);
	sums->memory = memory;
	return 0;
}

int sums_open(struct sums *sums, const char *place, const char *name, const uint8_t *uuid,
	      uint64_t sectors, struct err *err)
{
	char path[PATH_MAX], made[PATH_MAX];

	*sums = (struct sums){.fd = -1};
	if (!place)
		return memory_make(sums, name, sectors, err);
	if (sums_path(path, sizeof path, place, name, "") ||
	    sums_path(made, sizeof made, place, name, ".new"))
		return err_set(err, -ENAMETOOLONG, "the name of drive %s in %s is too long", name,
			       place);
	int rc = file_open(sums, path, uuid, sectors, err);
	if (rc == -ESTALE) {
		sums_close(sums);
		rc = file_make(sums, made, uuid, sectors, err);
	}
	if (rc)
		sums_close(sums);
	return rc;
}

int sums_keep(struct sums *sums, const char *place, const char *name, struct err *err)
{
	char path[PATH_MAX], made[PATH_MAX];

	if (!sums->is_new)
		return 0;
	if (sums_path(path, sizeof path, place, name, "") ||
	    sums_path(made, sizeof made, place, name, ".new"))
		return -ENAMETOOLONG;
	if (vfs->sync(sums->fd) || vfs->rename(made, path))
		return err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
	sums->is_new = false;
	return 0;
}

void sums_close(struct sums *sums)
{
	if (sums->memory)
		munmap(sums->memory, sums->memory_bytes);
	if (sums->fd >= 0)
		close(sums->fd);
	sums->memory = NULL;
	sums->fd = -1;
}

int sums_remove(const char *place, const char *name, struct err *err)
{
	char path[PATH_MAX];

	if (!place || sums_path(path, sizeof path, place, name, ""))
		return 0;
	if (unlink(path) && errno != ENOENT && errno != ENOTDIR)
		return err_set(err, -errno, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

static off_t place_of(uint64_t first)
{
	return (off_t)(HEADER_BYTES + first * sizeof(uint32_t));
}

const uint32_t *sums_get(const struct sums *sums, uint64_t first, unsigned count, uint32_t *scratch)
{
	if (sums->memory)
		return sums->memory + first;
	return vfs_read(sums->fd, scratch, count * sizeof *scratch, place_of(first)) ? NULL
										     : scratch;
}

/* What the drive's own file would answer. */
static int file_write(const struct sums *sums, uint64_t first, const void *from, size_t size)
{
	return vfs_write(sums->fd, from, size, place_of(first)) ? -EIO : 0;
}

int sums_put(struct sums *sums, uint64_t first, unsigned count, const uint32_t *values)
{
	if (!sums->memory)
		return file_write(sums, first, values, count * sizeof *values);
	/* Zeros over zeros must not make memory of a hole. */
	for (unsigned i = 0; i < count; i++)
		if (sums->memory[first + i] != values[i])
			sums->memory[first + i] = values[i];
	return 0;
}

static int file_clear(struct sums *sums, uint64_t first, uint64_t count)
{
	static const uint32_t zeros[ZERO_BYTES / sizeof(uint32_t)];

	if (vfs->punch(sums->fd, place_of(first), (off_t)(count * sizeof(uint32_t))) == 0)
		return 0;
	for (uint64_t done = 0; done < count;) {
		uint64_t part = MIN_OF(count - done, ARRAY_SIZE(zeros));
		int rc = file_write(sums, first + done, zeros, part * sizeof(uint32_t));
		if (rc)
			return rc;
		done += part;
	}
	return 0;
}

int sums_clear(struct sums *sums, uint64_t first, uint64_t count)
{
	if (count == 0)
		return 0;
	if (!sums->memory)
		return file_clear(sums, first, count);
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t lo = (uintptr_t)(sums->memory + first);
	uintptr_t hi = (uintptr_t)(sums->memory + first + count);
	uintptr_t inner_lo = (lo + page - 1) / page * page, inner_hi = hi / page * page;
	if (inner_lo >= inner_hi || madvise((void *)inner_lo, inner_hi - inner_lo, MADV_DONTNEED)) {
		memset((void *)lo, 0, hi - lo);
		return 0;
	}
	memset((void *)lo, 0, inner_lo - lo);
	memset((void *)inner_hi, 0, hi - inner_hi);
	return 0;
}

int sums_sync(struct sums *sums)
{
	return sums->fd < 0 || vfs->sync(sums->fd) == 0 ? 0 : -EIO;
}
