/* SPDX-License-Identifier: MIT
 *
 * The system calls by which stores, page maps and battery-backed memory reach their files, as a
 * table: a test puts its own in place that fails the Nth of them.
 *
 * Threading: `vfs` is set before anything is opened.  All calls answer as the system's do (-1 and
 * errno); the functions below answer 0 or a negative errno.
 */
#ifndef SANLAB_TARGET_DRIVE_VFS_H
#define SANLAB_TARGET_DRIVE_VFS_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/err.h"

struct vfs_ops {
	ssize_t (*preadv)(int fd, const struct iovec *iov, int count, off_t at);
	ssize_t (*pwritev)(int fd, const struct iovec *iov, int count, off_t at);
	int (*sync)(int fd);			       /* data, and the size where it changed */
	int (*resize)(int fd, off_t size);	       /* ftruncate */
	int (*allocate)(int fd, off_t at, off_t size); /* blocks, zeros where there were none */
	int (*punch)(int fd, off_t at, off_t size);
	int (*rename)(const char *from, const char *to);
	int (*sync_memory)(void *memory, size_t size); /* msync */
};

extern const struct vfs_ops vfs_system;
extern const struct vfs_ops *vfs;

/* All of it, going on after short transfers; -EIO at the end of the file. */
int vfs_read(int fd, void *buf, size_t size, off_t at);
int vfs_write(int fd, const void *buf, size_t size, off_t at);
int vfs_sync_directory(const char *place);
/* Keeps other targets out for as long as FD is open; -EBUSY names PATH.  ERR may be NULL. */
int vfs_lock(int fd, const char *path, struct err *err);
/* Puts SIZE bytes into the file PATH in PLACE, whole or not at all: a new file beside it is
 * written, synced and renamed over it. */
int vfs_replace(const char *place, const char *path, const void *buf, size_t size);

#endif
