/* SPDX-License-Identifier: MIT
 *
 * The file store: one sparse file a drive, PLACE/NAME.drive.
 *
 * Layout: a superblock (store_super.h), then the drive's bytes.  A new file is made under a
 * temporary name and renamed when its superblock is on stable storage; one that is torn, missing
 * or of another drive is refused.  An exclusive flock keeps a second target out.
 *
 * Reads and writes are synchronous (preadv, pwritev) and complete before submit returns: on a
 * loop that serves many drives a slow file system delays them all.  WRITE leaves data in the page
 * cache, which survives the end of the process; FUA and FLUSH mean fdatasync.  UNMAP punches holes.
 *
 * After a failed fdatasync nobody knows which pages the system has dropped, and a second attempt
 * would succeed without them: the store is dead from then on.
 */
#include "target/drive/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/drive/vfs.h"

enum {
	ZERO_BYTES = 64 * 1024,
	IOV_BATCH = 64, /* entries a system call gets */
};

struct file_store {
	struct io_layer layer;
	int fd; /* -1: dead */
	bool told;
	char name[STORE_NAME_BYTES];
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

/* ---- requests ---- */

/* The first error of a drive is told; what follows is for the counters. */
static int file_error(struct file_store *store, const char *what)
{
	int error = errno;
	if (!store->told)
		log_error("drive %s: %s: %s", store->name, what, strerror(error));
	store->told = true;
	return -EIO;
}

/* Moves all of IO's bytes; short transfers go on where they ended. */
static int file_transfer(struct file_store *store, const struct io *io)
{
	bool reading = io->op == IO_READ;
	uint64_t done = 0;
	while (done < io->length_bytes) {
		struct iovec batch[IOV_BATCH];
		uint64_t offset = STORE_DATA_AT + io->offset_bytes + done;
		uint64_t size = io->length_bytes - done;
		int count;
		while ((count = iov_slice(io->iov, io->iov_count, done, size, batch, IOV_BATCH)) <
		       0)
			size = (size + 1) / 2;
		ssize_t moved = reading ? vfs->preadv(store->fd, batch, count, (off_t)offset)
					: vfs->pwritev(store->fd, batch, count, (off_t)offset);
		if (moved < 0 && errno == EINTR)
			continue;
		if (moved == 0)
			errno = ESTALE; /* the file was cut short under us */
		if (moved <= 0)
			return file_error(store, reading ? "cannot read" : "cannot write");
		done += (uint64_t)moved;
	}
	return 0;
}

static int file_sync(struct file_store *store)
{
	if (vfs->sync(store->fd) == 0)
		return 0;
	store->told = false;
	(void)file_error(store, "cannot sync, out of use from now on");
	close(store->fd);
	store->fd = -1;
	return -ENODEV;
}

static int file_write_zeros(struct file_store *store, uint64_t offset, uint64_t length)
{
	static const uint8_t zeros[ZERO_BYTES];
	while (length > 0) {
		size_t size = MIN_OF(length, sizeof zeros);
		int rc = vfs_write(store->fd, zeros, size, (off_t)(STORE_DATA_AT + offset));
		if (rc) {
			errno = -rc;
			return file_error(store, "cannot clear");
		}
		offset += size;
		length -= size;
	}
	return 0;
}

static int file_unmap(struct file_store *store, const struct io *io)
{
	if (io->length_bytes == 0)
		return 0;
	if (vfs->punch(store->fd, (off_t)(STORE_DATA_AT + io->offset_bytes),
		       (off_t)io->length_bytes) == 0)
		return 0;
	/* A file system without holes: later reads must be zeros all the same. */
	return file_write_zeros(store, io->offset_bytes, io->length_bytes);
}

static int file_run(struct file_store *store, const struct io *io)
{
	int status = 0;

	switch (io->op) {
	case IO_READ:
		return file_transfer(store, io);
	case IO_WRITE:
		status = file_transfer(store, io);
		if (status == 0 && (io->flags & IO_FUA))
			status = file_sync(store);
		break;
	case IO_UNMAP:
		return file_unmap(store, io);
	case IO_FLUSH:
		return file_sync(store);
	}
	return status;
}

static void file_submit(struct io_layer *layer, struct io *io)
{
	struct file_store *store = container_of(layer, struct file_store, layer);

	if (!io_in_range(layer, io))
		io_complete(io, -ERANGE);
	else if (store->fd < 0)
		io_complete(io, -ENODEV);
	else
		io_complete(io, file_run(store, io));
}

static void file_free(struct io_layer *layer)
{
	struct file_store *store = container_of(layer, struct file_store, layer);
	if (store->fd >= 0)
		close(store->fd);
	free(store);
}

static const struct io_layer_ops file_layer_ops = {
    .name = "file store",
    .submit = file_submit,
    .free = file_free,
};

/* ---- files ---- */

int store_file_make(const char *place, struct store_super *super, struct err *err)
{
	char path[PATH_MAX], temporary[PATH_MAX + 8];

	if (file_path(path, sizeof path, place, super->name))
		return err_set(err, -ENAMETOOLONG, "the name of drive %s in %s is too long",
			       super->name, place);
	snprintf(temporary, sizeof temporary, "%s.new", path);
	int fd = open(temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "cannot make %s: %s", temporary, strerror(errno));
	int rc = vfs_lock(fd, temporary, err);
	if (rc == 0)
		rc = store_uuid_make(super->drive_uuid);
	super->sequence = 0;
	if (rc == 0 &&
	    (vfs->resize(fd, 0) || vfs->resize(fd, (off_t)(STORE_DATA_AT + super->size_bytes))))
		rc = -errno;
	if (rc == 0)
		rc = store_super_write(fd, super);
	if (rc == 0 && vfs->rename(temporary, path))
		rc = -errno;
	if (rc && rc != -EBUSY)
		unlink(temporary);
	close(fd);
	if (rc == 0)
		rc = vfs_sync_directory(place);
	return rc ? err_set(err, rc, "cannot make %s of %llu bytes: %s", path,
			    (unsigned long long)super->size_bytes, strerror(-rc))
		  : 0;
}

/* 0 when the file at FD is the whole drive NAME. */
static int check(int fd, const char *path, const char *name, struct store_super *ret_super,
		 struct err *err)
{
	struct store_super super = {0};
	struct stat status;

	int rc = store_super_read(fd, path, &super, err);
	unsigned long long wanted = STORE_DATA_AT + super.size_bytes;
	if (rc == 0 && strcmp(super.name, name) != 0)
		rc = err_set(err, -EMEDIUMTYPE, "%s belongs to drive %s, not to %s", path,
			     super.name, name);
	else if (rc == 0 && fstat(fd, &status))
		rc = err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	else if (rc == 0 && (unsigned long long)status.st_size != wanted)
		rc = err_set(err, -EUCLEAN, "%s was cut short: %llu bytes instead of %llu", path,
			     (unsigned long long)status.st_size, wanted);
	if (rc) {
		err_hint(err, "use another directory, or move the file away to begin anew");
		return rc;
	}
	*ret_super = super;
	return 0;
}

/* Opens, locks and checks; *ret_fd is the caller's. */
static int file_adopt(const char *place, const char *name, struct store_super *ret_super,
		      int *ret_fd, struct err *err)
{
	char path[PATH_MAX];

	if (file_path(path, sizeof path, place, name))
		return err_set(err, -ENAMETOOLONG, "the name of drive %s in %s is too long", name,
			       place);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	int rc = vfs_lock(fd, path, err);
	if (rc == 0)
		rc = check(fd, path, name, ret_super, err);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int store_file_probe(const char *place, const char *name, struct store_super *ret_super,
		     struct err *err)
{
	int fd = -1;
	int rc = file_adopt(place, name, ret_super, &fd, err);
	if (rc == 0)
		close(fd);
	return rc;
}

int store_file_stamp(const char *place, struct store_super *super, uint64_t generation,
		     struct err *err)
{
	struct store_super next = *super, found = {0};
	int fd = -1;

	int rc = file_adopt(place, super->name, &found, &fd, err);
	if (rc)
		return rc;
	next.generation = generation;
	next.sequence = found.sequence + 1;
	rc = store_super_write(fd, &next);
	close(fd);
	if (rc)
		return err_set(err, rc, "cannot write the superblock of drive %s: %s", super->name,
			       strerror(-rc));
	*super = next;
	return 0;
}

int store_file_restamp(struct io_layer *layer, uint64_t generation)
{
	struct file_store *store = container_of(layer, struct file_store, layer);
	struct store_super super;

	if (store->fd < 0)
		return -ENODEV;
	int rc = store_super_read(store->fd, store->name, &super, NULL);
	super.generation = generation;
	super.sequence++;
	if (rc == 0)
		rc = store_super_write(store->fd, &super);
	if (rc) {
		close(store->fd);
		store->fd = -1;
	}
	return rc;
}

/* ---- opening ---- */

static int store_new(const char *name, uint64_t size_bytes, int fd, struct io_layer **ret_layer,
		     struct err *err)
{
	struct file_store *store = calloc(1, sizeof *store);
	if (!store)
		return err_set(err, -ENOMEM, "no memory for drive %s", name);
	store->layer = (struct io_layer){.ops = &file_layer_ops, .size_bytes = size_bytes};
	store->fd = fd;
	snprintf(store->name, sizeof store->name, "%s", name);
	*ret_layer = &store->layer;
	return 0;
}

/* The size is the lab's: a drive of another size has content at other places. */
static int adopt_sized(const char *place, const char *name, uint64_t size_bytes, int *ret_fd,
		       struct err *err)
{
	struct store_super super = {0};
	int fd = -1;

	int rc = file_adopt(place, name, &super, &fd, err);
	if (rc)
		return rc;
	if (super.size_bytes != size_bytes) {
		close(fd);
		rc = err_set(err, -EMEDIUMTYPE, "%s/%s.drive has %llu bytes, the lab asks for %llu",
			     place, name, (unsigned long long)super.size_bytes,
			     (unsigned long long)size_bytes);
		err_hint(err, "use another directory, or move the file away to begin anew");
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

static int file_open(struct loop *loop, const char *place, const char *name, uint64_t size_bytes,
		     struct io_layer **ret_layer, struct err *err)
{
	int fd = -1, rc = 0;

	if (!place || !*place)
		return err_set(err, -EINVAL, "drive %s: a file store needs a directory", name);
	if (strlen(name) >= STORE_NAME_BYTES)
		return err_set(err, -ENAMETOOLONG, "the name of drive %s in %s is too long", name,
			       place);
	if (!store_file_exists(place, name)) {
		struct store_super super = {.size_bytes = size_bytes};
		snprintf(super.name, sizeof super.name, "%s", name);
		rc = store_file_make(place, &super, err);
	}
	if (rc == 0)
		rc = adopt_sized(place, name, size_bytes, &fd, err);
	if (rc)
		return rc;
	rc = store_new(name, size_bytes, fd, ret_layer, err);
	if (rc)
		close(fd);
	return rc;
}

static int absent_open(struct loop *loop, const char *place, const char *name, uint64_t size_bytes,
		       struct io_layer **ret_layer, struct err *err)
{
	return store_new(name, size_bytes, -1, ret_layer, err);
}

int store_file_insert(struct io_layer *layer, const char *place, const char *name, struct err *err)
{
	struct file_store *store = container_of(layer, struct file_store, layer);
	int fd = -1;

	if (store->fd >= 0) { /* its own lock would be in the way */
		close(store->fd);
		store->fd = -1;
	}
	int rc = adopt_sized(place, name, layer->size_bytes, &fd, err);
	if (rc)
		return rc;
	store->fd = fd;
	store->told = false;
	return 0;
}

static bool file_next_written(struct io_layer *layer, uint64_t from, uint64_t *ret_lo,
			      uint64_t *ret_hi)
{
	const struct file_store *store = container_of(layer, struct file_store, layer);
	uint64_t end = STORE_DATA_AT + layer->size_bytes;
	off_t lo = lseek(store->fd, (off_t)(STORE_DATA_AT + from), SEEK_DATA);
	if (lo < 0 && errno != EINVAL)
		return false;
	off_t hi = lo < 0 ? lo : lseek(store->fd, lo, SEEK_HOLE);
	/* A file system that cannot tell: all of it. */
	*ret_lo = lo < 0 ? from : (uint64_t)lo - STORE_DATA_AT;
	*ret_hi = (hi < 0 ? end : MIN_OF((uint64_t)hi, end)) - STORE_DATA_AT;
	return *ret_lo < *ret_hi;
}

static int file_identity(struct io_layer *layer, uint8_t ret_uuid[STORE_UUID_BYTES])
{
	const struct file_store *store = container_of(layer, struct file_store, layer);
	struct store_super super;
	int rc = store_super_read(store->fd, store->name, &super, NULL);
	if (rc == 0)
		memcpy(ret_uuid, super.drive_uuid, STORE_UUID_BYTES);
	return rc;
}

const struct store_ops store_file_ops = {
    .name = "file",
    .open = file_open,
    .next_written = file_next_written,
    .identity = file_identity,
};
const struct store_ops store_absent_ops = {.name = "absent", .open = absent_open};
