/* SPDX-License-Identifier: MIT
 *
 * The layer that keeps and verifies checksums.
 */
#include "target/drive/integrity.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/drive/inline_io.h"
#include "target/drive/sums.h"

enum { SECTOR_BYTES = 512, SCAN_BYTES = 256 * 1024 };

struct integrity_layer {
	struct io_layer layer;
	struct io_layer *store;
	uint32_t zero_sum; /* of a sector of zeros */
	struct sums sums;
};

/* Walks an iovec list sector by sector. */
struct walk {
	const struct iovec *iov;
	size_t skip;
};

static uint32_t next_sum(struct walk *walk, uint32_t zero_sum)
{
	uint32_t crc = 0;
	for (size_t left = SECTOR_BYTES; left > 0;) {
		size_t here = MIN_OF(left, walk->iov->iov_len - walk->skip);
		crc = crc32c(crc, (const char *)walk->iov->iov_base + walk->skip, here);
		walk->skip += here;
		left -= here;
		if (walk->skip == walk->iov->iov_len) {
			walk->iov++;
			walk->skip = 0;
		}
	}
	return crc ^ zero_sum;
}

/* The sums of what IO carries are those that are kept? */
static int verify(const struct integrity_layer *self, const struct io *io)
{
	uint32_t scratch[SUMS_BATCH];
	struct walk walk = {io->iov, 0};
	uint64_t first = io->offset_bytes / SECTOR_BYTES, count = io->length_bytes / SECTOR_BYTES;

	while (count > 0) {
		unsigned batch = (unsigned)MIN_OF(count, (uint64_t)SUMS_BATCH);
		const uint32_t *kept = sums_get(&self->sums, first, batch, scratch);
		if (!kept)
			return -EIO;
		for (unsigned i = 0; i < batch; i++)
			if (next_sum(&walk, self->zero_sum) != kept[i])
				return -EILSEQ;
		first += batch;
		count -= batch;
	}
	return 0;
}

static int keep(struct integrity_layer *self, const struct io *io)
{
	uint32_t made[SUMS_BATCH];
	struct walk walk = {io->iov, 0};
	uint64_t first = io->offset_bytes / SECTOR_BYTES, count = io->length_bytes / SECTOR_BYTES;

	while (count > 0) {
		unsigned batch = (unsigned)MIN_OF(count, (uint64_t)SUMS_BATCH);
		for (unsigned i = 0; i < batch; i++)
			made[i] = next_sum(&walk, self->zero_sum);
		int rc = sums_put(&self->sums, first, batch, made);
		if (rc)
			return rc;
		first += batch;
		count -= batch;
	}
	return io->flags & IO_FUA ? sums_sync(&self->sums) : 0;
}

/* A write that failed may have been taken in part: that is no corruption, so the sums follow what
 * is there now.  Where the store cannot be read or the sums cannot be written either, the sectors
 * stay unreadable until they are written. */
static void settle_failed_write(struct integrity_layer *self, const struct io *io)
{
	uint8_t data[16 * SECTOR_BYTES] = {0};
	for (uint64_t done = 0; done < io->length_bytes;) {
		struct iovec iov = {data, MIN_OF(io->length_bytes - done, sizeof data)};
		struct io part = {
		    .op = IO_READ,
		    .offset_bytes = io->offset_bytes + done,
		    .length_bytes = iov.iov_len,
		    .iov = &iov,
		    .iov_count = 1,
		};
		if (io_submit_now(self->store, &part) == 0)
			(void)keep(self, &part);
		done += iov.iov_len;
	}
}

static void integrity_submit(struct io_layer *layer, struct io *io)
{
	struct integrity_layer *self = container_of(layer, struct integrity_layer, layer);

	if (!io_in_range(layer, io) || (io->offset_bytes | io->length_bytes) % SECTOR_BYTES) {
		io_complete(io, -ERANGE);
		return;
	}
	struct io below = *io;
	int status = io_submit_now(self->store, &below);
	if (status == 0 && io->op == IO_READ)
		status = verify(self, io);
	else if (status == 0 && io->op == IO_WRITE)
		status = keep(self, io);
	else if (io->op == IO_WRITE)
		settle_failed_write(self, io);
	else if (status == 0 && io->op == IO_UNMAP)
		status = sums_clear(&self->sums, io->offset_bytes / SECTOR_BYTES,
				    io->length_bytes / SECTOR_BYTES);
	else if (status == 0)
		status = sums_sync(&self->sums);
	io_complete(io, status);
}

/* What the store lends is verified where it lies. */
static int integrity_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
			  struct io_lent *lent)
{
	struct integrity_layer *self = container_of(layer, struct integrity_layer, layer);
	unsigned before = lent->count;

	if ((offset | length) % SECTOR_BYTES)
		return -ERANGE;
	int rc = io_lend(self->store, offset, length, lent);
	if (rc)
		return rc;
	struct io io = {
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = lent->iov + before,
	    .iov_count = lent->count - before,
	};
	return verify(self, &io);
}

static void integrity_free(struct io_layer *layer)
{
	struct integrity_layer *self = container_of(layer, struct integrity_layer, layer);
	sums_close(&self->sums);
	if (self->store->ops->free)
		self->store->ops->free(self->store);
	free(self);
}

static const struct io_layer_ops integrity_ops = {
    .name = "checksums",
    .submit = integrity_submit,
    .lend = integrity_lend,
    .free = integrity_free,
};

/* Sums of what the store holds already. */
static int make_sums(struct integrity_layer *self, const struct store_ops *ops, struct err *err)
{
	uint64_t at = 0, lo, hi;
	int rc = 0;
	struct iovec iov = {.iov_base = malloc(SCAN_BYTES)};
	if (!iov.iov_base)
		return err_set(err, -ENOMEM, "no memory for checksums");
	while (rc == 0 && ops->next_written(self->store, at, &lo, &hi)) {
		lo = lo / SECTOR_BYTES * SECTOR_BYTES;
		iov.iov_len = MIN_OF(round_up_u64(hi, SECTOR_BYTES) - lo, (uint64_t)SCAN_BYTES);
		at = lo + iov.iov_len;
		struct io io = {
		    .op = IO_READ,
		    .offset_bytes = lo,
		    .length_bytes = iov.iov_len,
		    .iov = &iov,
		    .iov_count = 1,
		};
		rc = io_submit_now(self->store, &io);
		if (rc == 0)
			rc = keep(self, &io);
		if (rc)
			err_set(err, rc, "cannot make checksums of what the drive holds");
	}
	free(iov.iov_base);
	return rc;
}

/* Opens the sums of the layer's store, and makes them where there are none. */
static int open_sums(struct integrity_layer *self, const struct store_ops *ops, const char *place,
		     const char *name, struct err *err)
{
	uint8_t uuid[SUMS_UUID_BYTES];
	uint64_t sectors = self->layer.size_bytes / SECTOR_BYTES + 1;

	if (!ops->identity || !place)
		return sums_open(&self->sums, NULL, name, NULL, sectors, err);
	int rc = ops->identity(self->store, uuid);
	if (rc)
		return err_set(err, rc, "cannot read the superblock of drive %s", name);
	rc = sums_open(&self->sums, place, name, uuid, sectors, err);
	if (rc || !self->sums.is_new)
		return rc;
	rc = make_sums(self, ops, err);
	if (rc == 0)
		rc = sums_keep(&self->sums, place, name, err);
	if (rc)
		sums_close(&self->sums);
	return rc;
}

int integrity_open(const struct store_ops *ops, const char *place, const char *name,
		   struct io_layer *store, struct io_layer **ret_layer, struct err *err)
{
	static const uint8_t zeros[SECTOR_BYTES];
	struct integrity_layer *self = calloc(1, sizeof *self);
	if (!self)
		return err_set(err, -ENOMEM, "no memory for drive %s", name);
	self->layer = (struct io_layer){.ops = &integrity_ops, .size_bytes = store->size_bytes};
	self->store = store;
	self->zero_sum = crc32c(0, zeros, sizeof zeros);
	int rc = open_sums(self, ops, place, name, err);
	if (rc) {
		free(self);
		return rc;
	}
	*ret_layer = &self->layer;
	return 0;
}

int integrity_reopen(struct io_layer *layer, const struct store_ops *ops, const char *place,
		     const char *name, struct err *err)
{
	struct integrity_layer *self = container_of(layer, struct integrity_layer, layer);
	struct sums before = self->sums;
	int rc = open_sums(self, ops, place, name, err);
	if (rc)
		self->sums = before;
	else
		sums_close(&before);
	return rc;
}

int integrity_forget(const char *place, const char *name, struct err *err)
{
	return sums_remove(place, name, err);
}
