/* SPDX-License-Identifier: MIT
 *
 * The SSD tier: directory, admission, hits, fills.
 *
 * A fill writes what a read or a write of the set just moved, from a copy.  What is cached must
 * never be older than the set: each write bumps the generation of its pages when it begins and
 * when it ends, and a fill whose pages' generation has moved since its data was current counts for
 * nothing.  Pages share 4096 generations by hash, which costs a fill now and then.
 *
 * The directory takes memory as it fills: large tables come untouched from calloc.
 */
#include "target/array/cache_ssd.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "target/array/cache_bits.h"
#include "target/array/part.h"
#include "target/drive/freelist.h"

enum {
	GENERATIONS = 4096,
	GHOSTS = 1 << 20, /* pages missed once lately */
	FILLS_MAX = 256,
	REQUESTS_MAX = 65536,
	EVICT_TRIES = 16,
};

struct slot {
	uint64_t page;
	cache_bits valid;		  /* units */
	uint32_t hash_next, newer, older; /* slot + 1; 0: none */
	uint16_t reads, writes;		  /* of the SSD, under way */
	bool used;
};

struct ssd_request {
	struct io io;
	struct cache_ssd *ssd;
	struct io *parent;
	uint64_t generation; /* sum over its pages when it began */
};

struct ssd_fill {
	struct io io;
	struct iovec iov;
	struct cache_ssd *ssd;
	uint32_t slot;
	cache_bits bits;
	uint64_t generation; /* of the page */
	bool renews;
	uint8_t *buffer; /* a page; NULL until first used */
	struct ssd_fill *next;
};

struct cache_ssd {
	struct io_layer layer, *below;
	struct drive *drives[SSD_DRIVES_MAX];
	unsigned drive_count;
	uint64_t page_bytes, unit_bytes, max_io_bytes;
	bool hollow;
	uint32_t slot_count, slots_made, free_slot; /* free: slot + 1 */
	uint32_t newest, oldest;		    /* slot + 1 */
	struct slot *slots;
	uint32_t *buckets, bucket_mask; /* slot + 1 */
	uint64_t *ghosts;		/* page + 1 */
	uint64_t generations[GENERATIONS];
	uint32_t writing[GENERATIONS]; /* writes to the set under way */
	struct ssd_fill fills[FILLS_MAX], *idle_fills;
	struct freelist requests;
	struct part_pool parts;
	struct cache_ssd_counters counters;
};

static uint32_t hash_of(uint64_t page)
{
	return (uint32_t)(page * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* ---- the directory ---- */

static struct slot *find(const struct cache_ssd *ssd, uint64_t page)
{
	uint32_t at = ssd->buckets[hash_of(page) & ssd->bucket_mask];
	while (at && ssd->slots[at - 1].page != page)
		at = ssd->slots[at - 1].hash_next;
	return at ? &ssd->slots[at - 1] : NULL;
}

static void lru_remove(struct cache_ssd *ssd, struct slot *slot)
{
	*(slot->newer ? &ssd->slots[slot->newer - 1].older : &ssd->newest) = slot->older;
	*(slot->older ? &ssd->slots[slot->older - 1].newer : &ssd->oldest) = slot->newer;
}

static void lru_add(struct cache_ssd *ssd, struct slot *slot)
{
	uint32_t number = (uint32_t)(slot - ssd->slots) + 1;
	slot->newer = 0;
	slot->older = ssd->newest;
	*(slot->older ? &ssd->slots[slot->older - 1].newer : &ssd->oldest) = number;
	ssd->newest = number;
}

static void lru_use(struct cache_ssd *ssd, struct slot *slot)
{
	lru_remove(ssd, slot);
	lru_add(ssd, slot);
}

static void set_valid(struct cache_ssd *ssd, struct slot *slot, cache_bits bits)
{
	unsigned before = bits_count(slot->valid);
	slot->valid = bits;
	ssd->counters.cached_bytes -= before * ssd->unit_bytes;
	ssd->counters.cached_bytes += bits_count(bits) * ssd->unit_bytes;
}

static void unhash(struct cache_ssd *ssd, struct slot *slot)
{
	uint32_t number = (uint32_t)(slot - ssd->slots) + 1;
	uint32_t *link = &ssd->buckets[hash_of(slot->page) & ssd->bucket_mask];
	while (*link != number)
		link = &ssd->slots[*link - 1].hash_next;
	*link = slot->hash_next;
}

/* The least recently used of those that nothing is under way on; NULL: none of the oldest. */
static struct slot *evict(struct cache_ssd *ssd)
{
	uint32_t at = ssd->oldest;
	for (unsigned i = 0; at && i < EVICT_TRIES; i++, at = ssd->slots[at - 1].newer) {
		struct slot *slot = &ssd->slots[at - 1];
		if (slot->reads || slot->writes)
			continue;
		set_valid(ssd, slot, 0);
		unhash(ssd, slot);
		lru_remove(ssd, slot);
		ssd->counters.evicted_pages++;
		return slot;
	}
	return NULL;
}

static struct slot *admit(struct cache_ssd *ssd, uint64_t page)
{
	struct slot *slot =
	    ssd->slots_made < ssd->slot_count ? &ssd->slots[ssd->slots_made++] : evict(ssd);
	if (!slot)
		return NULL;
	uint32_t *bucket = &ssd->buckets[hash_of(page) & ssd->bucket_mask];
	*slot = (struct slot){.page = page, .hash_next = *bucket, .used = true};
	*bucket = (uint32_t)(slot - ssd->slots) + 1;
	lru_add(ssd, slot);
	ssd->counters.admitted_pages++;
	return slot;
}

/* A page missed for the second time, as far as is remembered. */
static bool missed_before(struct cache_ssd *ssd, uint64_t page)
{
	uint64_t *ghost = &ssd->ghosts[hash_of(page) % GHOSTS];
	bool again = *ghost == page + 1;
	*ghost = page + 1;
	return again;
}

/* ---- pieces and generations ---- */

struct piece {
	uint64_t page, within, bytes;
};

static struct piece piece_at(const struct cache_ssd *ssd, uint64_t at, uint64_t end)
{
	uint64_t page = at / ssd->page_bytes, within = at - page * ssd->page_bytes;
	return (struct piece){page, within, MIN_OF(end - at, ssd->page_bytes - within)};
}

/* Units that the piece touches, or (WHOLE) covers. */
static cache_bits units_of(const struct cache_ssd *ssd, const struct piece *piece, bool whole)
{
	uint64_t unit = ssd->unit_bytes, end = piece->within + piece->bytes;
	uint64_t first = whole ? (piece->within + unit - 1) / unit : piece->within / unit;
	uint64_t last = whole ? end / unit : (end + unit - 1) / unit;
	return first < last ? bits_range((unsigned)first, (unsigned)(last - first)) : 0;
}

static uint64_t *generation_of(struct cache_ssd *ssd, uint64_t page)
{
	return &ssd->generations[hash_of(page) % GENERATIONS];
}

/* The sum over the pages of IO; UINT64_MAX while writes other than OWN are under way on one. */
static uint64_t generation_sum(struct cache_ssd *ssd, const struct io *io, uint32_t own)
{
	uint64_t first = io->offset_bytes / ssd->page_bytes, sum = 0;
	uint64_t last = (io->offset_bytes + io->length_bytes - 1) / ssd->page_bytes;
	for (uint64_t page = first; page <= last; page++) {
		if (ssd->writing[hash_of(page) % GENERATIONS] != own)
			return UINT64_MAX;
		sum += *generation_of(ssd, page);
	}
	return sum;
}

/* ---- fills ---- */

static struct io_layer *place_of(struct cache_ssd *ssd, const struct slot *slot,
				 uint64_t *ret_offset)
{
	uint32_t index = (uint32_t)(slot - ssd->slots);
	*ret_offset = index / ssd->drive_count * ssd->page_bytes;
	return &ssd->drives[index % ssd->drive_count]->layer;
}

static void fill_done(struct io *io)
{
	struct ssd_fill *fill = container_of(io, struct ssd_fill, io);
	struct cache_ssd *ssd = fill->ssd;
	struct slot *slot = &ssd->slots[fill->slot];

	slot->writes--;
	if (io->status) {
		ssd->counters.errors++;
	} else if (*generation_of(ssd, slot->page) == fill->generation) {
		set_valid(ssd, slot, slot->valid | fill->bits);
		*(fill->renews ? &ssd->counters.renewed_bytes : &ssd->counters.filled_bytes) +=
		    io->length_bytes;
	}
	fill->next = ssd->idle_fills;
	ssd->idle_fills = fill;
}

/* Begins to write what SOURCE just moved of a page to SLOT, if that can be now. */
static void fill_start(struct cache_ssd *ssd, struct slot *slot, const struct io *source,
		       const struct piece *piece)
{
	struct ssd_fill *fill = ssd->idle_fills;
	cache_bits bits = units_of(ssd, piece, true), run = bits;
	unsigned first, count;

	if (!fill || slot->writes || !bits_take_run(&run, &first, &count))
		return;
	if (!fill->buffer)
		fill->buffer = aligned_alloc(4096, ssd->page_bytes);
	if (!fill->buffer)
		return;
	uint64_t begin = first * ssd->unit_bytes, bytes = count * ssd->unit_bytes, offset;
	struct io_layer *drive = place_of(ssd, slot, &offset);

	ssd->idle_fills = fill->next;
	if (!ssd->hollow)
		iov_to_mem(source->iov, source->iov_count,
			   piece->page * ssd->page_bytes + begin - source->offset_bytes,
			   fill->buffer, bytes);
	fill->iov = (struct iovec){fill->buffer, bytes};
	fill->slot = (uint32_t)(slot - ssd->slots);
	fill->bits = bits;
	fill->generation = *generation_of(ssd, slot->page);
	fill->renews = source->op == IO_WRITE;
	fill->io = (struct io){
	    .op = IO_WRITE,
	    .offset_bytes = offset + begin,
	    .length_bytes = bytes,
	    .iov = &fill->iov,
	    .iov_count = 1,
	    .done = fill_done,
	};
	/* What is there is being overwritten, with the same or with something newer. */
	set_valid(ssd, slot, slot->valid & ~bits);
	slot->writes++;
	io_submit(drive, &fill->io);
}

static void fill_from(struct cache_ssd *ssd, const struct io *io)
{
	uint64_t end = io->offset_bytes + io->length_bytes;
	for (uint64_t at = io->offset_bytes; at < end;) {
		struct piece piece = piece_at(ssd, at, end);
		struct slot *slot = find(ssd, piece.page);
		/* A write renews only what is cached. */
		if (!slot && io->op == IO_READ && missed_before(ssd, piece.page))
			slot = admit(ssd, piece.page);
		if (slot && !slot->reads)
			fill_start(ssd, slot, io, &piece);
		at += piece.bytes;
	}
}

/* ---- reads ---- */

static void request_end(struct ssd_request *request, int status)
{
	struct io *parent = request->parent;
	freelist_give(&request->ssd->requests, request);
	io_complete(parent, status);
}

static void miss_done(struct io *io)
{
	struct ssd_request *request = container_of(io, struct ssd_request, io);
	struct cache_ssd *ssd = request->ssd;
	struct io *parent = request->parent;

	if (io->status == 0 && request->generation != UINT64_MAX &&
	    generation_sum(ssd, parent, 0) == request->generation)
		fill_from(ssd, parent);
	request_end(request, io->status);
}

static void send_below(struct ssd_request *request, void (*done)(struct io *io))
{
	request->io = *request->parent;
	request->io.done = done;
	request->io.owner = request;
	io_submit(request->ssd->below, &request->io);
}

static void read_below(struct ssd_request *request)
{
	request->generation = generation_sum(request->ssd, request->parent, 0);
	send_below(request, miss_done);
}

/* All parts of a hit have ended; the set serves what the SSDs could not. */
static void hit_done(struct io *io)
{
	struct ssd_request *request = container_of(io, struct ssd_request, io);
	if (io->status)
		read_below(request);
	else
		request_end(request, 0);
}

static void part_done(struct io *io)
{
	struct part *part = container_of(io, struct part, io);
	struct cache_ssd *ssd = io->owner;
	struct slot *slot = part->target;
	int status = io->status;

	slot->reads--;
	if (status) {
		ssd->counters.errors++;
		set_valid(ssd, slot, 0);
	}
	part_end(&ssd->parts, part, status);
}

static bool is_hit(const struct cache_ssd *ssd, const struct io *io)
{
	uint64_t end = io->offset_bytes + io->length_bytes;
	for (uint64_t at = io->offset_bytes; at < end;) {
		struct piece piece = piece_at(ssd, at, end);
		const struct slot *slot = find(ssd, piece.page);
		if (!slot || (units_of(ssd, &piece, false) & ~slot->valid))
			return false;
		at += piece.bytes;
	}
	return true;
}

static void read_hit(struct ssd_request *request)
{
	struct cache_ssd *ssd = request->ssd;
	const struct io *parent = request->parent;
	uint64_t end = parent->offset_bytes + parent->length_bytes, at = parent->offset_bytes;
	uint64_t count = (end - 1) / ssd->page_bytes - at / ssd->page_bytes + 1;
	struct part *part, *next;
	int rc;

	request->io = *parent;
	request->io.done = hit_done;
	rc = part_take(&ssd->parts, &request->io, (unsigned)count, &part);
	if (rc) {
		read_below(request);
		return;
	}
	/* All are pinned before the first is sent: its end may change the directory. */
	for (struct part *one = part; one; one = (struct part *)one->io.link) {
		struct piece piece = piece_at(ssd, at, end);
		struct slot *slot = find(ssd, piece.page);
		uint64_t offset;
		(void)place_of(ssd, slot, &offset);
		slot->reads++;
		lru_use(ssd, slot);
		int one_rc =
		    part_fill(one, at - parent->offset_bytes, offset + piece.within, piece.bytes);
		rc = rc ? rc : one_rc;
		one->io.done = part_done;
		one->io.owner = ssd;
		one->target = slot;
		at += piece.bytes;
	}
	for (; part; part = next) {
		uint64_t offset;
		next = (struct part *)part->io.link;
		if (rc)
			io_complete(&part->io, rc);
		else
			io_submit(place_of(ssd, part->target, &offset), &part->io);
	}
}

static void ssd_read(struct ssd_request *request)
{
	struct cache_ssd *ssd = request->ssd;
	bool hit = is_hit(ssd, request->parent);

	*(hit ? &ssd->counters.read_hits : &ssd->counters.read_misses) += 1;
	*(hit ? &ssd->counters.read_hit_bytes : &ssd->counters.read_miss_bytes) +=
	    request->parent->length_bytes;
	if (hit)
		read_hit(request);
	else
		read_below(request);
}

/* ---- writes ---- */

/* From now on what is cached of the range is not what the set has, and fills under way are not. */
static void invalidate(struct cache_ssd *ssd, const struct io *io, int writing)
{
	uint64_t end = io->offset_bytes + io->length_bytes;
	for (uint64_t at = io->offset_bytes; at < end;) {
		struct piece piece = piece_at(ssd, at, end);
		struct slot *slot = find(ssd, piece.page);
		*generation_of(ssd, piece.page) += 1;
		ssd->writing[hash_of(piece.page) % GENERATIONS] += (uint32_t)writing;
		if (slot)
			set_valid(ssd, slot, slot->valid & ~units_of(ssd, &piece, false));
		at += piece.bytes;
	}
}

static void write_done(struct io *io)
{
	struct ssd_request *request = container_of(io, struct ssd_request, io);
	struct cache_ssd *ssd = request->ssd;
	struct io *parent = request->parent;

	/* Of two that were under way at once, nobody knows which was the later one. */
	bool alone = request->generation != UINT64_MAX &&
		     generation_sum(ssd, parent, 1) == request->generation;

	invalidate(ssd, parent, -1);
	if (io->status == 0 && parent->op == IO_WRITE && alone)
		fill_from(ssd, parent);
	request_end(request, io->status);
}

/* ---- the layer ---- */

static void ssd_submit(struct io_layer *layer, struct io *io)
{
	struct cache_ssd *ssd = container_of(layer, struct cache_ssd, layer);
	bool cached = io->op == IO_READ && io->flags & IO_SSD_CACHE;
	bool changes = io->op == IO_WRITE || io->op == IO_UNMAP;

	if (cached && io->length_bytes > ssd->max_io_bytes) {
		ssd->counters.bypassed++;
		cached = false;
	}
	if ((!cached && !changes) || io->length_bytes == 0 || !io_in_range(layer, io)) {
		io_submit(ssd->below, io);
		return;
	}
	struct ssd_request *request = freelist_take(&ssd->requests);
	if (!request) {
		io_complete(io, -EBUSY);
		return;
	}
	request->ssd = ssd;
	request->parent = io;
	if (cached) {
		ssd_read(request);
		return;
	}
	invalidate(ssd, io, 1);
	request->generation = generation_sum(ssd, io, 1);
	send_below(request, write_done);
}

static const struct io_layer_ops ssd_layer_ops = {.name = "ssd cache", .submit = ssd_submit};

struct io_layer *cache_ssd_layer(struct cache_ssd *ssd)
{
	return &ssd->layer;
}

const struct cache_ssd_counters *cache_ssd_counters(const struct cache_ssd *ssd)
{
	return &ssd->counters;
}

int cache_ssd_open(const struct cache_ssd_config *config, struct io_layer *below,
		   struct cache_ssd **ret_ssd, struct err *err)
{
	uint64_t page_bytes = config->page_bytes, size_bytes = UINT64_MAX;
	uint32_t buckets = 1024;

	assert(config->drive_count > 0);
	if (page_bytes < 4096 || page_bytes > MIB || (page_bytes & (page_bytes - 1)))
		return err_set(err, -EINVAL, "an SSD cache page of %llu bytes is not possible",
			       (unsigned long long)page_bytes);
	for (unsigned i = 0; i < config->drive_count; i++)
		size_bytes = MIN_OF(size_bytes, config->drives[i]->layer.size_bytes);
	if (config->size_bytes)
		size_bytes = MIN_OF(size_bytes, config->size_bytes / config->drive_count);
	uint64_t slots = size_bytes / page_bytes * config->drive_count;
	if (slots < 1 || slots > UINT32_MAX / 2)
		return err_set(err, -EINVAL, "an SSD cache of %llu pages is not possible",
			       (unsigned long long)slots);
	while (buckets < slots)
		buckets *= 2;
	struct cache_ssd *ssd = calloc(1, sizeof *ssd);
	if (!ssd)
		return err_set(err, -ENOMEM, "no memory for an SSD cache");
	ssd->layer = (struct io_layer){.ops = &ssd_layer_ops, .size_bytes = below->size_bytes};
	ssd->below = below;
	memcpy(ssd->drives, config->drives, config->drive_count * sizeof(struct drive *));
	ssd->drive_count = config->drive_count;
	ssd->page_bytes = page_bytes;
	ssd->unit_bytes = MAX_OF(page_bytes / CACHE_BITS, (uint64_t)CACHE_SECTOR_BYTES);
	ssd->max_io_bytes = config->max_io_bytes;
	ssd->hollow = config->hollow;
	ssd->slot_count = (uint32_t)slots;
	ssd->bucket_mask = buckets - 1;
	ssd->slots = calloc(slots, sizeof *ssd->slots);
	ssd->buckets = calloc(buckets, sizeof *ssd->buckets);
	ssd->ghosts = calloc(GHOSTS, sizeof *ssd->ghosts);
	freelist_init(&ssd->requests, sizeof(struct ssd_request), REQUESTS_MAX);
	part_pool_init(&ssd->parts);
	for (unsigned i = 0; i < FILLS_MAX; i++) {
		ssd->fills[i].ssd = ssd;
		ssd->fills[i].next = ssd->idle_fills;
		ssd->idle_fills = &ssd->fills[i];
	}
	if (!ssd->slots || !ssd->buckets || !ssd->ghosts) {
		cache_ssd_close(ssd);
		return err_set(err, -ENOMEM, "no memory for an SSD cache of %llu pages",
			       (unsigned long long)slots);
	}
	*ret_ssd = ssd;
	return 0;
}

struct cache_ssd *cache_ssd_close(struct cache_ssd *ssd)
{
	if (!ssd)
		return NULL;
	freelist_done(&ssd->requests);
	part_pool_done(&ssd->parts);
	for (unsigned i = 0; i < FILLS_MAX; i++)
		free(ssd->fills[i].buffer);
	free(ssd->ghosts);
	free(ssd->buckets);
	free(ssd->slots);
	free(ssd);
	return NULL;
}
