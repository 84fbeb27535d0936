/* SPDX-License-Identifier: MIT
 *
 * The two checkpoint slots.  Layout of one, big-endian: 0 CRC32C of the rest, 4 magic "SLCP",
 * 8 sequence, 16 signature, 24 epoch, 28 clean, 32 redo lgpos, 40 flushed lgpos, 48 dbtime,
 * 56 used pages, 64 root page, 72 levels, 128 what the tree keeps here.
 */
#include "harness/workload/ese/ese_checkpoint.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"

#define CHECKPOINT_MAGIC UINT32_C(0x534c4350) /* "SLCP" */

enum { AT_TREE = 128 };

static uint32_t sum(const uint8_t *p)
{
	return crc32c(0, p + 4, ESE_CHECKPOINT_BYTES - 4);
}

void ese_checkpoint_encode(const struct ese_checkpoint *checkpoint, void *slot)
{
	uint8_t *p = slot;

	memset(p, 0, ESE_CHECKPOINT_BYTES);
	put_be32(p + 4, CHECKPOINT_MAGIC);
	put_be64(p + 8, checkpoint->sequence);
	put_be64(p + 16, checkpoint->signature);
	put_be32(p + 24, checkpoint->epoch);
	p[28] = checkpoint->clean;
	put_be64(p + 32, checkpoint->redo_lgpos);
	put_be64(p + 40, checkpoint->flushed_lgpos);
	put_be64(p + 48, checkpoint->dbtime);
	put_be64(p + 56, checkpoint->used_pages);
	put_be64(p + 64, checkpoint->root_page);
	put_be32(p + 72, checkpoint->levels);
	memcpy(p + AT_TREE, checkpoint->tree, ESE_CHECKPOINT_TREE_BYTES);
	put_be32(p, sum(p));
}

int ese_checkpoint_decode(const void *slot, uint64_t signature, struct ese_checkpoint *ret)
{
	const uint8_t *p = slot;
	struct ese_checkpoint checkpoint = {
	    .sequence = get_be64(p + 8),
	    .signature = get_be64(p + 16),
	    .epoch = get_be32(p + 24),
	    .clean = p[28] != 0,
	    .redo_lgpos = get_be64(p + 32),
	    .flushed_lgpos = get_be64(p + 40),
	    .dbtime = get_be64(p + 48),
	    .used_pages = get_be64(p + 56),
	    .root_page = get_be64(p + 64),
	    .levels = get_be32(p + 72),
	};

	if (get_be32(p + 4) != CHECKPOINT_MAGIC || get_be32(p) != sum(p) ||
	    (signature && checkpoint.signature != signature))
		return -EBADMSG;
	memcpy(checkpoint.tree, p + AT_TREE, ESE_CHECKPOINT_TREE_BYTES);
	*ret = checkpoint;
	return 0;
}

int ese_checkpointer_init(struct ese_checkpointer *pointer, const struct ese_log_area *area)
{
	void *buf = aligned_alloc(ESE_CHECKPOINT_BYTES, 2 * (size_t)ESE_CHECKPOINT_BYTES);

	if (!buf)
		return -ENOMEM;
	*pointer = (struct ese_checkpointer){.area = *area, .buf = buf};
	return 0;
}

void ese_checkpointer_fini(struct ese_checkpointer *pointer)
{
	assert(!pointer->busy);
	free(pointer->buf);
	pointer->buf = NULL;
}

static void submit(struct ese_checkpointer *pointer, enum io_op op, uint64_t offset_bytes,
		   uint64_t length_bytes, void (*done)(struct io *io))
{
	assert(!pointer->busy);
	pointer->busy = true;
	pointer->iov = (struct iovec){pointer->buf, length_bytes};
	pointer->io = (struct io){
	    .op = op,
	    .flags = op == IO_WRITE && pointer->fua ? IO_FUA : 0,
	    .offset_bytes = pointer->area.checkpoint_offset_bytes + offset_bytes,
	    .length_bytes = length_bytes,
	    .iov = &pointer->iov,
	    .iov_count = 1,
	    .done = done,
	    .owner = pointer,
	};
	io_submit(pointer->area.layer, &pointer->io);
}

static void read_ended(struct io *io)
{
	struct ese_checkpointer *pointer = io->owner;
	struct ese_checkpoint slots[2];
	int best = -1, status = io->status;

	for (int i = 0; i < 2 && status == 0; i++)
		if (ese_checkpoint_decode((uint8_t *)pointer->buf + i * ESE_CHECKPOINT_BYTES,
					  pointer->area.signature, &slots[i]) == 0 &&
		    (best < 0 || slots[i].sequence > slots[best].sequence))
			best = i;
	if (best >= 0) {
		*pointer->ret = slots[best];
		pointer->sequence = slots[best].sequence;
	} else if (status == 0) {
		status = -ENOENT;
	}
	pointer->busy = false;
	pointer->done(pointer->arg, status);
}

void ese_checkpoint_read(struct ese_checkpointer *pointer, struct ese_checkpoint *ret,
			 ese_checkpoint_fn done, void *arg)
{
	pointer->ret = ret;
	pointer->done = done;
	pointer->arg = arg;
	submit(pointer, IO_READ, 0, 2 * (uint64_t)ESE_CHECKPOINT_BYTES, read_ended);
}

static void write_ended(struct io *io)
{
	struct ese_checkpointer *pointer = io->owner;

	/* A write that failed may have torn its slot: the next one goes to the same. */
	if (io->status == 0)
		pointer->sequence++;
	pointer->busy = false;
	pointer->done(pointer->arg, io->status);
}

void ese_checkpoint_write(struct ese_checkpointer *pointer, const struct ese_checkpoint *checkpoint,
			  ese_checkpoint_fn done, void *arg)
{
	struct ese_checkpoint next = *checkpoint;

	next.sequence = pointer->sequence + 1;
	next.signature = pointer->area.signature;
	ese_checkpoint_encode(&next, pointer->buf);
	pointer->done = done;
	pointer->arg = arg;
	submit(pointer, IO_WRITE, next.sequence % 2 * ESE_CHECKPOINT_BYTES, ESE_CHECKPOINT_BYTES,
	       write_ended);
}
