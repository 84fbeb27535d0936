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
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/drive/vfs.h"

enum { NVRAM_PAGE_BYTES = 4096 };

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
	if (flock(nvram->fd, LOCK_EX | LOCK_NB)) {
		err_set(err, -EBUSY, "%s is in use by another target", path);
		err_hint(err, "stop the other target, or give this one its own directory");
		return -EBUSY;
	}
	if (fstat(nvram->fd, &status))
		return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	nvram->found = status.st_size > 0;
	nvram->bytes = MAX_OF(nvram->bytes, (size_t)status.st_size);
	/* Its blocks are taken now: a store into a hole of a full file system would be SIGBUS. */
	int rc = vfs->allocate(nvram->fd, 0, (off_t)nvram->bytes) ? -errno : 0;
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
		void *memory = mmap(NULL, nvram.bytes, PROT_READ | PROT_WRITE, flags, nvram.fd, 0);
		if (memory == MAP_FAILED)
			rc = err_set(err, -errno, "cannot map %zu bytes for %s: %s", nvram.bytes,
				     name, strerror(errno));
		nvram.memory = memory;
	}
	if (rc) {
		if (nvram.fd >= 0)
			close(nvram.fd);
		return rc;
	}
	*ret_nvram = nvram;
	return 0;
}

void nvram_close(struct nvram *nvram)
{
	if (nvram->memory)
		munmap(nvram->memory, nvram->bytes);
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
