/* SPDX-License-Identifier: MIT
 *
 * System calls on files of stores.
 */
#include "target/drive/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static int system_allocate(int fd, off_t at, off_t size)
{
	errno = posix_fallocate(fd, at, size);
	return errno ? -1 : 0;
}

static int system_punch(int fd, off_t at, off_t size)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, size);
}

static int system_sync_memory(void *memory, size_t size)
{
	return msync(memory, size, MS_SYNC);
}

const struct vfs_ops vfs_system = {
    .preadv = preadv,
    .pwritev = pwritev,
    .sync = fdatasync,
    .resize = ftruncate,
    .allocate = system_allocate,
    .punch = system_punch,
    .rename = rename,
    .sync_memory = system_sync_memory,
};

const struct vfs_ops *vfs = &vfs_system;

static int transfer(ssize_t (*call)(int, const struct iovec *, int, off_t), int fd, char *buf,
		    size_t size, off_t at)
{
	while (size > 0) {
		ssize_t moved = call(fd, &(struct iovec){buf, size}, 1, at);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return -errno;
		if (moved == 0)
			return -EIO;
		buf += moved;
		at += moved;
		size -= (size_t)moved;
	}
	return 0;
}

int vfs_read(int fd, void *buf, size_t size, off_t at)
{
	return transfer(vfs->preadv, fd, buf, size, at);
}

int vfs_write(int fd, const void *buf, size_t size, off_t at)
{
	return transfer(vfs->pwritev, fd, (char *)(size_t)buf, size, at);
}

int vfs_sync_directory(const char *place)
{
	int fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = vfs->sync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

int vfs_replace(const char *place, const char *path, const void *buf, size_t size)
{
	char temporary[PATH_MAX];
	int length = snprintf(temporary, sizeof temporary, "%s.new", path);
	if (length < 0 || (size_t)length >= sizeof temporary)
		return -ENAMETOOLONG;
	int fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int rc = vfs_write(fd, buf, size, 0);
	if (rc == 0 && vfs->sync(fd))
		rc = -errno;
	if (rc == 0 && vfs->rename(temporary, path))
		rc = -errno;
	if (rc)
		unlink(temporary);
	close(fd);
	return rc ? rc : vfs_sync_directory(place);
}

int vfs_lock(int fd, const char *path, struct err *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	int rc = err_set(err, -EBUSY, "%s is in use by another target", path);
	err_hint(err, "stop the other target, or give this one its own directory");
	return rc;
}
