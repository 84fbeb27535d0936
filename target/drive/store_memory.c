/* SPDX-License-Identifier: MIT
 *
 * The memory store: a sparse drive in memory.
 *
 * A flat table holds one pointer a 64 KiB chunk.  The table is mapped lazily (a 600 GB drive takes
 * 73 MB of address space and only as much memory as its written parts need), so the hot path is
 * one shift and one load.  A chunk is allocated by its first write; chunks never written read as
 * zeros; UNMAP of a whole chunk frees it for the drive's next first write and gives its memory
 * back to the system.  Requests complete before submit returns.
 *
 * Readers may borrow chunks instead of copying them (io_lend).  A chunk that is lent is left as it
 * is: a write to it goes to a copy that takes its place, UNMAP lets go of it; either way it waits
 * in `retired` until the last reader has given it back.
 *
 * Chunks come from slabs: small ones first, so that many lightly used drives stay small, then
 * 2 MiB for which the kernel is asked for huge pages: random reads of a large store are bound by
 * TLB misses otherwise.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "target/drive/drive.h"

enum {
	CHUNK_SHIFT = 16,
	CHUNK_BYTES = 1 << CHUNK_SHIFT,
	MEMORY_PAGE_BYTES = 4096,
	HUGE_BYTES = 2 << 20,
	SMALL_SLABS = 16, /* of one chunk each, before the first huge one */
};

struct slab {
	struct slab *next;
	void *memory;
};

/* In the first bytes of a chunk nobody uses. */
struct free_chunk {
	struct free_chunk *next;
};

/* A chunk that has lost its place while it was lent. */
struct retired_chunk {
	struct retired_chunk *next;
	uint8_t *memory;
	uint32_t lends;
};

struct memory_store {
	struct io_layer layer;
	uint8_t **chunks;
	size_t chunk_count;
	size_t top; /* chunks at and above it were never allocated */
	struct free_chunk *free;
	struct slab *slabs;
	unsigned slab_count;
	uint32_t *lends; /* how often each chunk is lent */
	uint64_t lent;	 /* sum of them: 0 keeps writers from looking */
	struct retired_chunk *retired;
};

static void memory_read(struct memory_store *store, const struct io *io)
{
	uint64_t offset = io->offset_bytes, left = io->length_bytes, skip = 0;
	while (left > 0) {
		uint64_t within = offset & (CHUNK_BYTES - 1);
		size_t size = MIN_OF(left, CHUNK_BYTES - within);
		const uint8_t *chunk = store->chunks[offset >> CHUNK_SHIFT];

		if (io->iov_count == 1 && chunk)
			memcpy((uint8_t *)io->iov->iov_base + skip, chunk + within, size);
		else if (chunk)
			iov_from_mem(io->iov, io->iov_count, skip, chunk + within, size);
		else
			iov_zero(io->iov, io->iov_count, skip, size);
		offset += size;
		skip += size;
		left -= size;
	}
}

static bool grow(struct memory_store *store)
{
	bool small = store->slab_count < SMALL_SLABS;
	size_t bytes = small ? CHUNK_BYTES : HUGE_BYTES;
	struct slab *slab = malloc(sizeof *slab);
	if (!slab)
		return false;
	slab->memory = aligned_alloc(small ? MEMORY_PAGE_BYTES : HUGE_BYTES, bytes);
	if (!slab->memory) {
		free(slab);
		return false;
	}
	if (!small)
		(void)madvise(slab->memory, bytes, MADV_HUGEPAGE); /* a wish, not a need */
	slab->next = store->slabs;
	store->slabs = slab;
	store->slab_count++;
	for (size_t at = bytes; at > 0; at -= CHUNK_BYTES) {
		struct free_chunk *chunk = (void *)((char *)slab->memory + at - CHUNK_BYTES);
		chunk->next = store->free;
		store->free = chunk;
	}
	return true;
}

/* Takes a lent chunk out of its place. */
static bool retire(struct memory_store *store, size_t index)
{
	struct retired_chunk *retired = malloc(sizeof *retired);
	if (!retired)
		return false;
	*retired =
	    (struct retired_chunk){store->retired, store->chunks[index], store->lends[index]};
	store->retired = retired;
	store->lent -= store->lends[index];
	store->lends[index] = 0;
	store->chunks[index] = NULL;
	return true;
}

static bool is_lent(const struct memory_store *store, size_t index)
{
	return store->lent > 0 && store->lends[index] > 0;
}

/* The chunk, of which the caller fills [WITHIN, WITHIN + SIZE); NULL: no memory. */
static uint8_t *memory_chunk(struct memory_store *store, size_t index, uint64_t within, size_t size)
{
	uint8_t *chunk = store->chunks[index], *old = NULL;
	if (chunk && !is_lent(store, index))
		return chunk;
	old = chunk;
	if (!store->free && !grow(store))
		return NULL;
	if (old && !retire(store, index))
		return NULL;
	chunk = (uint8_t *)store->free;
	store->free = store->free->next;
	if (old) {
		memcpy(chunk, old, within);
		memcpy(chunk + within + size, old + within + size, CHUNK_BYTES - within - size);
	} else {
		memset(chunk, 0, within);
		memset(chunk + within + size, 0, CHUNK_BYTES - within - size);
	}
	store->chunks[index] = chunk;
	store->top = MAX_OF(store->top, index + 1);
	return chunk;
}

static void chunk_free(struct memory_store *store, void *memory)
{
	struct free_chunk *chunk = memory;
	(void)madvise((char *)chunk + MEMORY_PAGE_BYTES, CHUNK_BYTES - MEMORY_PAGE_BYTES,
		      MADV_DONTNEED);
	chunk->next = store->free;
	store->free = chunk;
}

/* Makes [WITHIN, WITHIN + SIZE) of a chunk read as zeros. */
static bool chunk_unmap(struct memory_store *store, size_t index, uint64_t within, size_t size)
{
	uint8_t *chunk = store->chunks[index];
	if (!chunk)
		return true;
	if (size < CHUNK_BYTES) {
		chunk = memory_chunk(store, index, within, size);
		if (chunk)
			memset(chunk + within, 0, size);
		return chunk;
	}
	if (is_lent(store, index))
		return retire(store, index);
	chunk_free(store, chunk);
	store->chunks[index] = NULL;
	return true;
}

static int memory_write(struct memory_store *store, const struct io *io)
{
	uint64_t offset = io->offset_bytes, left = io->length_bytes, skip = 0;
	while (left > 0) {
		uint64_t within = offset & (CHUNK_BYTES - 1);
		size_t size = MIN_OF(left, CHUNK_BYTES - within);
		uint8_t *chunk = memory_chunk(store, offset >> CHUNK_SHIFT, within, size);

		if (!chunk)
			return -ENOMEM;
		if (io->iov_count == 1)
			memcpy(chunk + within, (uint8_t *)io->iov->iov_base + skip, size);
		else
			iov_to_mem(io->iov, io->iov_count, skip, chunk + within, size);
		offset += size;
		skip += size;
		left -= size;
	}
	return 0;
}

static int memory_unmap(struct memory_store *store, const struct io *io)
{
	uint64_t offset = io->offset_bytes, left = io->length_bytes;
	while (left > 0 && offset >> CHUNK_SHIFT < store->top) {
		uint64_t within = offset & (CHUNK_BYTES - 1);
		uint64_t size = MIN_OF(left, CHUNK_BYTES - within);

		if (!chunk_unmap(store, offset >> CHUNK_SHIFT, within, size))
			return -ENOMEM;
		offset += size;
		left -= size;
	}
	return 0;
}

static int memory_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
		       struct io_lent *lent)
{
	struct memory_store *store = container_of(layer, struct memory_store, layer);

	if (offset > layer->size_bytes || length > layer->size_bytes - offset)
		return -ERANGE;
	while (length > 0) {
		uint64_t within = offset & (CHUNK_BYTES - 1);
		size_t index = offset >> CHUNK_SHIFT, size = MIN_OF(length, CHUNK_BYTES - within);
		const uint8_t *chunk = store->chunks[index];
		int rc = chunk ? io_lent_add(lent, chunk + within, size, layer, index)
			       : io_lent_add_zeros(lent, size);

		if (rc)
			return rc;
		store->lends[index] += chunk != NULL;
		store->lent += chunk != NULL;
		offset += size;
		length -= size;
	}
	return 0;
}

static void memory_take_back(struct io_layer *layer, const void *memory, uint64_t place)
{
	struct memory_store *store = container_of(layer, struct memory_store, layer);
	const uint8_t *at = memory, *chunk = store->chunks[place];
	struct retired_chunk **link = &store->retired, *retired;

	if (chunk && at >= chunk && at < chunk + CHUNK_BYTES) {
		store->lends[place]--;
		store->lent--;
		return;
	}
	while (at < (*link)->memory || at >= (*link)->memory + CHUNK_BYTES)
		link = &(*link)->next;
	retired = *link;
	if (--retired->lends > 0)
		return;
	*link = retired->next;
	chunk_free(store, retired->memory);
	free(retired);
}

static void memory_submit(struct io_layer *layer, struct io *io)
{
	struct memory_store *store = container_of(layer, struct memory_store, layer);
	int status = 0;

	if (!io_in_range(layer, io)) {
		io_complete(io, -ERANGE);
		return;
	}
	switch (io->op) {
	case IO_READ:
		memory_read(store, io);
		break;
	case IO_WRITE:
		status = memory_write(store, io);
		break;
	case IO_UNMAP:
		status = memory_unmap(store, io);
		break;
	case IO_FLUSH:
		break;
	}
	io_complete(io, status);
}

static void memory_free(struct io_layer *layer)
{
	struct memory_store *store = container_of(layer, struct memory_store, layer);
	while (store->slabs) {
		struct slab *slab = store->slabs;
		store->slabs = slab->next;
		free(slab->memory);
		free(slab);
	}
	assert(!store->retired && store->lent == 0);
	munmap(store->chunks, store->chunk_count * sizeof *store->chunks);
	munmap(store->lends, store->chunk_count * sizeof *store->lends);
	free(store);
}

static const struct io_layer_ops memory_layer_ops = {
    .name = "memory store",
    .submit = memory_submit,
    .lend = memory_lend,
    .take_back = memory_take_back,
    .free = memory_free,
};

/* Zeros that take memory where they are touched. */
static void *lazy_table(size_t bytes)
{
	void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return table == MAP_FAILED ? NULL : table;
}

static int memory_open(struct loop *loop, const char *place, const char *name, uint64_t size_bytes,
		       struct io_layer **ret_layer, struct err *err)
{
	struct memory_store *store = calloc(1, sizeof *store);
	if (!store)
		return err_set(err, -ENOMEM, "no memory for drive %s", name);
	store->layer = (struct io_layer){.ops = &memory_layer_ops, .size_bytes = size_bytes};
	store->chunk_count = MAX_OF(1, (size_bytes + CHUNK_BYTES - 1) >> CHUNK_SHIFT);
	store->chunks = lazy_table(store->chunk_count * sizeof *store->chunks);
	store->lends = lazy_table(store->chunk_count * sizeof *store->lends);
	if (!store->chunks || !store->lends) {
		if (store->chunks)
			munmap(store->chunks, store->chunk_count * sizeof *store->chunks);
		free(store);
		return err_set(err, -ENOMEM, "no address space for drive %s", name);
	}
	*ret_layer = &store->layer;
	return 0;
}

const struct store_ops store_memory_ops = {.name = "memory", .open = memory_open};
