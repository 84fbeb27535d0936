/* SPDX-License-Identifier: MIT
 *
 * The one request type and the one shape of everything that takes requests.
 *
 * A `struct io` travels asynchronously down a stack of layers: on the initiator side workload ->
 * stack -> MPIO; on the target side volume -> page map -> member -> RAID set -> drive -> store.
 * Caches, delays, faults and statistics are layers of the same shape.
 *
 * Rules
 *  - The submitter owns the io and its memory until `done` is called, exactly once, on the loop
 *    of the layer; `done` may be called from within io_submit (a memory store does), so a
 *    submitter must be ready for that, and may free or reuse the io from within `done`.
 *  - A layer that forwards parts of an io makes child ios of its own (struct io_pool) and
 *    completes the parent when all have ended; the first error wins.
 *  - offset_bytes is in the address space of the layer that receives the io.  Reads and writes
 *    are multiples of 512 bytes at such offsets; iov covers exactly length_bytes for READ and
 *    WRITE and is empty for FLUSH and UNMAP.
 *  - The iov array itself must stay valid until done.
 *
 * status: 0 or a negative errno with these meanings (one table in target/scsi maps them to sense):
 *   -EIO medium error   -ENODEV the device (drive, member, all paths) is gone   -ENOSPC pool full
 *   -ERANGE beyond the end   -EROFS write-protected   -EBUSY come again   -ETIMEDOUT deadline
 *   -ECANCELED aborted   -ENOMEM no buffer
 */
#ifndef SANLAB_BASE_IO_H
#define SANLAB_BASE_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

enum io_op { IO_READ, IO_WRITE, IO_FLUSH, IO_UNMAP };

enum io_flag {
	IO_FUA = 1 << 0,       /* WRITE: on stable storage before done */
	IO_SSD_CACHE = 1 << 1, /* READ: of a volume that the member's SSD tier is to cache */
	/* READ: nobody looks at what is read; a layer that would only put zeros there need not. */
	IO_BLIND = 1 << 2,
};

struct io {
	enum io_op op;
	unsigned flags;
	uint64_t offset_bytes;
	uint64_t length_bytes;
	const struct iovec *iov;
	unsigned iov_count;
	int status; /* valid in done */
	void (*done)(struct io *io);
	void *owner;	 /* the submitter's */
	struct io *link; /* free for the layer that holds the io: queues, free lists */
};

struct io_layer;

/* Memory of stores, lent to a reader instead of being copied for it: what is in it does not change
 * and does not go away until it is given back, whatever is written or unmapped meanwhile. */
enum { IO_LENT_MAX = 64 };
struct io_lent {
	unsigned count;
	struct iovec iov[IO_LENT_MAX];
	struct io_lender {
		struct io_layer *layer; /* NULL: nobody wants it back */
		uint64_t place;		/* the lender's own */
	} lender[IO_LENT_MAX];
};

struct io_layer_ops {
	const char *name;
	void (*submit)(struct io_layer *layer, struct io *io);
	/* Adds the memory of the range to LENT, or says why it cannot be had at once (any negative
	 * errno; a part may have been added).  It counts as a read when it succeeds.  NULL: never.
	 */
	int (*lend)(struct io_layer *layer, uint64_t offset_bytes, uint64_t length_bytes,
		    struct io_lent *lent);
	/* Of a layer that lends memory of its own: a piece comes back. */
	void (*take_back)(struct io_layer *layer, const void *memory, uint64_t place);
	void (*free)(struct io_layer *layer); /* frees the layer, not the ones below; may be NULL */
};

struct io_layer {
	const struct io_layer_ops *ops;
	uint64_t size_bytes;
};

static inline void io_submit(struct io_layer *layer, struct io *io)
{
	layer->ops->submit(layer, io);
}

static inline int io_lend(struct io_layer *layer, uint64_t offset_bytes, uint64_t length_bytes,
			  struct io_lent *lent)
{
	return layer->ops->lend ? layer->ops->lend(layer, offset_bytes, length_bytes, lent)
				: -EOPNOTSUPP;
}

/* -E2BIG: no room. */
int io_lent_add(struct io_lent *lent, const void *memory, size_t size_bytes,
		struct io_layer *lender, uint64_t place);
int io_lent_add_zeros(struct io_lent *lent, uint64_t size_bytes);
void io_lent_give_back(struct io_lent *lent);

static inline void io_complete(struct io *io, int status)
{
	io->status = status;
	io->done(io);
}

static inline bool io_in_range(const struct io_layer *layer, const struct io *io)
{
	return io->offset_bytes <= layer->size_bytes &&
	       io->length_bytes <= layer->size_bytes - io->offset_bytes;
}

/* Bytes of an iovec list; copies between a list (from SKIP bytes in) and flat memory. */
uint64_t iov_bytes(const struct iovec *iov, unsigned count);
void iov_to_mem(const struct iovec *iov, unsigned count, uint64_t skip, void *to, size_t size);
void iov_from_mem(const struct iovec *iov, unsigned count, uint64_t skip, const void *from,
		  size_t size);
void iov_zero(const struct iovec *iov, unsigned count, uint64_t skip, size_t size);
/* Writes into SLICE (room for MAX) the part [skip, skip+size); returns entries, or -E2BIG. */
int iov_slice(const struct iovec *iov, unsigned count, uint64_t skip, uint64_t size,
	      struct iovec *slice, unsigned max);

#endif
