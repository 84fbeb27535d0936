/* SPDX-License-Identifier: MIT
 *
 * The file store: one sparse file a drive, PLACE/NAME.drive.
 *
 * Layout: a 4 KiB superblock (big-endian fields, CRC32C over the rest of it), then the drive's
 * bytes.  A new file is made under a temporary name and renamed when its superblock is on stable
 * storage, so a superblock is never torn by a crash; one that is torn, missing or of another drive
 * is refused.  An exclusive flock keeps a second target out.
 *
 * Reads and writes are synchronous (preadv, pwritev) and complete before submit returns: on a
 * loop that serves many drives a slow file system delays them all.  WRITE leaves data in the page
 * cache, which survives the end of the process; FUA and FLUSH mean fdatasync.  UNMAP punches holes.
 *
 *   0 magic "SANLDRV1"   8 version   12 CRC32C   16 size_bytes   24 UUID   40 name
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/drive/drive.h"

enum {
	SUPER_BYTES = 4096,
	SUPER_VERSION = 1,
	SUPER_VERSION_AT = 8,
	SUPER_CRC_AT = 12,
	SUPER_SIZE_AT = 16,
	SUPER_UUID_AT = 24,
	SUPER_NAME_AT = 40,
	SUPER_NAME_BYTES = 64,
	ZERO_BYTES = 64 * 1024,
	IOV_BATCH = 64, /* entries a system call gets */
};
static const char super_magic[8] = {'S', 'A', 'N', 'L', 'D', 'R', 'V', '1'};

struct file_store {
	struct io_layer layer;
	int fd;
};

static int file_path(char *out, size_t size, const char *place, const char *name)
{
	int length = snprintf(out, size, "%s/%s.drive", place, name);
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

bool store_file_exists(const char *place, const char *name)
{
	char path[PATH_MAX];
	return file_path(path, sizeof path, place, name) == 0 && access(path, F_OK) == 0;
}

/* Moves all of IO's bytes; short transfers go on where they ended. */
static int file_transfer(struct file_store *store, const struct io *io)
{
	uint64_t done = 0;
	while (done < io->length_bytes) {
		struct iovec batch[IOV_BATCH];
		uint64_t offset = SUPER_BYTES + io->offset_bytes + done;
		uint64_t size = io->length_bytes - done;
		int count;
		while ((count = iov_slice(io->iov, io->iov_count, done, size, batch, IOV_BATCH)) <
		       0)
			size = (size + 1) / 2;
		ssize_t moved = io->op == IO_READ ? preadv(store->fd, batch, count, (off_t)offset)
						  : pwritev(store->fd, batch, count, (off_t)offset);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return -EIO;
		if (moved == 0)
			return -EIO; /* the file was cut short under us */
		done += (uint64_t)moved;
	}
	return 0;
}

static int file_sync(struct file_store *store)
{
	return fdatasync(store->fd) == 0 ? 0 : -EIO;
}

static int file_write_zeros(struct file_store *store, uint64_t offset, uint64_t length)
{
	static const uint8_t zeros[ZERO_BYTES];
	while (length > 0) {
		ssize_t written = pwrite(store->fd, zeros, MIN_OF(length, sizeof zeros),
					 (off_t)(SUPER_BYTES + offset));
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -EIO;
		offset += (uint64_t)written;
		length -= (uint64_t)written;
	}
	return 0;
}

static int file_unmap(struct file_store *store, const struct io *io)
{
	if (io->length_bytes == 0)
		return 0;
	if (fallocate(store->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(SUPER_BYTES + io->offset_bytes), (off_t)io->length_bytes) == 0)
		return 0;
	/* A file system without holes: later reads must be zeros all the same. */
	return file_write_zeros(store, io->offset_bytes, io->length_bytes);
}

static void file_submit(struct io_layer *layer, struct io *io)
{
	struct file_store *store = container_of(layer, struct file_store, layer);
	int status = 0;

	if (!io_in_range(layer, io)) {
		io_complete(io, -ERANGE);
		return;
	}
	switch (io->op) {
	case IO_READ:
		status = file_transfer(store, io);
		break;
	case IO_WRITE:
		status = file_transfer(store, io);
		if (status == 0 && (io->flags & IO_FUA))
			status = file_sync(store);
		break;
	case IO_UNMAP:
		status = file_unmap(store, io);
		break;
	case IO_FLUSH:
		status = file_sync(store);
		break;
	}
	io_complete(io, status);
}

static void file_free(struct io_layer *layer)
{
	struct file_store *store = container_of(layer, struct file_store, layer);
	close(store->fd);
	free(store);
}

static const struct io_layer_ops file_layer_ops = {
    .name = "file store",
    .submit = file_submit,
    .free = file_free,
};

static uint32_t super_crc(const uint8_t *super)
{
	static const uint8_t zero[4];
	uint32_t crc = crc32c(0, super, SUPER_CRC_AT);
	crc = crc32c(crc, zero, sizeof zero);
	return crc32c(crc, super + SUPER_CRC_AT + 4, SUPER_BYTES - SUPER_CRC_AT - 4);
}

static void super_fill(uint8_t *super, struct loop *loop, const char *path, const char *name,
		       uint64_t size_bytes)
{
	struct rng rng;
	memset(super, 0, SUPER_BYTES);
	memcpy(super, super_magic, sizeof super_magic);
	put_be32(super + SUPER_VERSION_AT, SUPER_VERSION);
	put_be64(super + SUPER_SIZE_AT, size_bytes);
	rng_init(&rng, rng_stream_of(path) ^ loop_wall_ns(loop), rng_stream_of(name));
	rng_fill(&rng, super + SUPER_UUID_AT, 16);
	super[SUPER_UUID_AT + 6] = (uint8_t)(0x40 | (super[SUPER_UUID_AT + 6] & 0x0f));
	super[SUPER_UUID_AT + 8] = (uint8_t)(0x80 | (super[SUPER_UUID_AT + 8] & 0x3f));
	snprintf((char *)super + SUPER_NAME_AT, SUPER_NAME_BYTES, "%s", name);
	put_be32(super + SUPER_CRC_AT, super_crc(super));
}

/* Makes the sparse file under a temporary name; *ret_fd is open, locked and renamed into place. */
static int file_make(struct loop *loop, const char *path, const char *place, const char *name,
		     uint64_t size_bytes, int *ret_fd, struct err *err)
{
	char temporary[PATH_MAX + 8];
	uint8_t super[SUPER_BYTES];

	snprintf(temporary, sizeof temporary, "%s.new", path);
	int fd = open(temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "cannot make %s: %s", temporary, strerror(errno));
	super_fill(super, loop, path, name, size_bytes);
	int rc = 0;
	if (flock(fd, LOCK_EX | LOCK_NB) || ftruncate(fd, 0) ||
	    ftruncate(fd, (off_t)(SUPER_BYTES + size_bytes)) ||
	    pwrite(fd, super, sizeof super, 0) != (ssize_t)sizeof super || fsync(fd) ||
	    rename(temporary, path))
		rc = -errno;
	if (rc == 0) {
		int dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 || fsync(dir))
			rc = -errno;
		if (dir >= 0)
			close(dir);
	}
	if (rc) {
		close(fd);
		return err_set(err, rc, "cannot make %s of %llu bytes: %s", path,
			       (unsigned long long)size_bytes, strerror(-rc));
	}
	*ret_fd = fd;
	return 0;
}

/* 0 when SUPER belongs to drive NAME of SIZE bytes. */
static int super_check(const uint8_t *super, const char *path, const char *name,
		       uint64_t size_bytes, struct err *err)
{
	int rc = 0;
	const char *found = (const char *)super + SUPER_NAME_AT;

	if (memcmp(super, super_magic, sizeof super_magic) != 0)
		rc = err_set(err, -EMEDIUMTYPE, "%s is not a drive of sanlab: no superblock", path);
	else if (get_be32(super + SUPER_CRC_AT) != super_crc(super))
		rc = err_set(err, -EUCLEAN, "the superblock of %s is damaged", path);
	else if (get_be32(super + SUPER_VERSION_AT) != SUPER_VERSION)
		rc = err_set(err, -ENOTSUP, "%s has superblock version %u, this program knows %u",
			     path, get_be32(super + SUPER_VERSION_AT), SUPER_VERSION);
	else if (strnlen(found, SUPER_NAME_BYTES) == SUPER_NAME_BYTES || strcmp(found, name) != 0)
		rc = err_set(err, -EMEDIUMTYPE, "%s belongs to drive %.63s, not to %s", path, found,
			     name);
	else if (get_be64(super + SUPER_SIZE_AT) != size_bytes)
		rc = err_set(err, -EMEDIUMTYPE, "%s has %llu bytes, the lab asks for %llu", path,
			     (unsigned long long)get_be64(super + SUPER_SIZE_AT),
			     (unsigned long long)size_bytes);
	if (rc)
		err_hint(err, "use another directory, or move the file away to begin anew");
	return rc;
}

static int file_adopt(const char *path, const char *name, uint64_t size_bytes, int *ret_fd,
		      struct err *err)
{
	uint8_t super[SUPER_BYTES] = {0};
	struct stat status;
	int rc = 0;

	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		rc = err_set(err, -EBUSY, "%s is in use by another target", path);
		err_hint(err, "stop the other target, or give this one its own directory");
	} else if (pread(fd, super, sizeof super, 0) < 0 || fstat(fd, &status)) {
		rc = err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	} else {
		rc = super_check(super, path, name, size_bytes, err);
		unsigned long long found = (unsigned long long)status.st_size;
		unsigned long long wanted = SUPER_BYTES + size_bytes;
		if (rc == 0 && found != wanted)
			rc = err_set(err, -EUCLEAN, "%s was cut short: %llu bytes instead of %llu",
				     path, found, wanted);
	}
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static int file_open(struct loop *loop, const char *place, const char *name, uint64_t size_bytes,
		     struct io_layer **ret_layer, struct err *err)
{
	char path[PATH_MAX];
	int fd = -1;

	if (!place || !*place)
		return err_set(err, -EINVAL, "drive %s: a file store needs a directory", name);
	if (strlen(name) >= SUPER_NAME_BYTES || file_path(path, sizeof path, place, name))
		return err_set(err, -ENAMETOOLONG, "the name of drive %s in %s is too long", name,
			       place);
	int rc = access(path, F_OK) == 0 ? file_adopt(path, name, size_bytes, &fd, err)
					 : file_make(loop, path, place, name, size_bytes, &fd, err);
	if (rc)
		return rc;
	struct file_store *store = calloc(1, sizeof *store);
	if (!store) {
		close(fd);
		return err_set(err, -ENOMEM, "no memory for drive %s", name);
	}
	store->layer = (struct io_layer){.ops = &file_layer_ops, .size_bytes = size_bytes};
	store->fd = fd;
	*ret_layer = &store->layer;
	return 0;
}

const struct store_ops store_file_ops = {.name = "file", .open = file_open};
