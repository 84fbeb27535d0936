/* SPDX-License-Identifier: MIT
 *
 * Battery-backed memory as a mapped file, or as anonymous memory.
 */
#include "target/drive/nvram.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/drive/vfs.h"

enum { NVRAM_PAGE_BYTES = 4096, HEADER_BYTES = 64, OWNER_BYTES = 16 };
static const char magic[8] = {'S', 'A', 'N', 'L', 'N', 'V', 'R', '1'};

static int open_file(const char *place, const char *name, struct nvram *nvram, struct err *err)
{
	char path[PATH_MAX];
	struct stat status;

	int length = snprintf(path, sizeof path, "%s/%s.nvram", place, name);
	if (length < 0 || (size_t)length >= sizeof path)
		return err_set(err, -ENAMETOOLONG, "the name %s in %s is too long", name, place);
	nvram->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (nvram->fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	int rc = vfs_lock(nvram->fd, path, err);
	if (rc)
		return rc;
	if (fstat(nvram->fd, &status))
		return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	nvram->found = status.st_size > 0;
	if (status.st_size > NVRAM_PAGE_BYTES)
		nvram->bytes = MAX_OF(nvram->bytes, (size_t)status.st_size - NVRAM_PAGE_BYTES);
	/* Its blocks are taken now: a store into a hole of a full file system would be SIGBUS. */
	rc = vfs->allocate(nvram->fd, 0, (off_t)(NVRAM_PAGE_BYTES + nvram->bytes)) ? -errno : 0;
	return rc ? err_set(err, rc, "cannot make %s of %zu bytes: %s", path, nvram->bytes,
			    strerror(-rc))
		  : 0;
}

int nvram_open(const char *place, const char *name, size_t bytes, struct nvram *ret_nvram,
	       struct err *err)
{
	struct nvram nvram = {.bytes = round_up_u64(bytes, NVRAM_PAGE_BYTES), .fd = -1};
	int rc = place ? open_file(place, name, &nvram, err) : 0;

	if (rc == 0) {
		int flags = place ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
		void *map = mmap(NULL, NVRAM_PAGE_BYTES + nvram.bytes, PROT_READ | PROT_WRITE,
				 flags, nvram.fd, 0);
		if (map == MAP_FAILED)
			rc = err_set(err, -errno, "cannot map %zu bytes for %s: %s", nvram.bytes,
				     name, strerror(errno));
		nvram.map = map;
		nvram.memory = nvram.map + NVRAM_PAGE_BYTES;
	}
	if (rc) {
		if (nvram.fd >= 0)
			close(nvram.fd);
		return rc;
	}
	*ret_nvram = nvram;
	return 0;
}

static uint32_t header_crc(const uint8_t *header)
{
	return crc32c(0, header + 16, HEADER_BYTES - 16);
}

static int check_claim(const uint8_t *header, const uint8_t *owner, uint64_t committed,
		       uint64_t start, struct err *err)
{
	uint64_t last = get_be64(header + 32);
	int rc = 0;

	if (memcmp(header, magic, sizeof magic) != 0 || get_be32(header + 8) != header_crc(header))
		rc = err_set(err, -EUCLEAN, "the head of battery-backed memory is damaged");
	else if (memcmp(header + 16, owner, OWNER_BYTES) != 0)
		rc = err_set(err, -EMEDIUMTYPE, "battery-backed memory of another member");
	else if (last < committed || last >= start)
		rc = err_set(err, -ESTALE,
			     "battery-backed memory of start %llu, its member is at %llu",
			     (unsigned long long)last, (unsigned long long)committed);
	return rc;
}

bool nvram_is_claimed(const struct nvram *nvram)
{
	static const uint8_t empty[HEADER_BYTES];
	return memcmp(nvram->map, empty, sizeof empty) != 0;
}

int nvram_claim(struct nvram *nvram, const uint8_t owner[16], uint64_t committed, uint64_t start,
		struct err *err)
{
	uint8_t header[HEADER_BYTES] = {0};

	if (nvram->fd < 0)
		return 0;
	/* A new file, or one whose maker died before it was claimed. */
	if (nvram_is_claimed(nvram)) {
		int rc = check_claim(nvram->map, owner, committed, start, err);
		if (rc)
			return rc;
	}
	memcpy(header, magic, sizeof magic);
	memcpy(header + 16, owner, OWNER_BYTES);
	put_be64(header + 32, start);
	put_be32(header + 8, header_crc(header));
	memcpy(nvram->map, header, sizeof header);
	if (vfs->sync_memory(nvram->map, NVRAM_PAGE_BYTES))
		return err_set(err, -errno, "cannot sync battery-backed memory: %s",
			       strerror(errno));
	return 0;
}

void nvram_clear(struct nvram *nvram)
{
	memset(nvram->map, 0, NVRAM_PAGE_BYTES + nvram->bytes);
}

void nvram_close(struct nvram *nvram)
{
	if (nvram->map)
		munmap(nvram->map, NVRAM_PAGE_BYTES + nvram->bytes);
	if (nvram->fd >= 0)
		close(nvram->fd);
	*nvram = (struct nvram){.fd = -1};
}

int nvram_sync(struct nvram *nvram, size_t offset, size_t length)
{
	if (nvram->fd < 0)
		return 0;
	size_t first = offset / NVRAM_PAGE_BYTES * NVRAM_PAGE_BYTES;
	return vfs->sync_memory(nvram->memory + first, offset + length - first) ? -errno : 0;
}
