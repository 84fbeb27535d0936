/* SPDX-License-Identifier: MIT
 *
 * The SSD read-cache tier: a layer between the controller cache and the RAID set (QNAP's SSD cache,
 * XtremSW in a server; shared domain/arrays.md 2.2 and 4).
 *
 * It caches what is read with IO_SSD_CACHE set (the volume's choice) in requests of at most
 * `max-io` bytes; larger ones, such as Exchange's 256 KiB maintenance reads, pass by.  A page is
 * admitted at its second miss.  Writes go through to the set and renew what is cached of them.
 * Nothing survives a restart: the tier starts empty.
 *
 * Threading: the loop's thread.  Ownership: the opener's; drives and the layer below stay theirs.
 */
#ifndef SANLAB_TARGET_ARRAY_CACHE_SSD_H
#define SANLAB_TARGET_ARRAY_CACHE_SSD_H

#include "target/drive/drive.h"

enum { SSD_DRIVES_MAX = 8 };

struct cache_ssd_config {
	struct drive *const *drives; /* pages lie on them in turn */
	unsigned drive_count;
	uint64_t size_bytes; /* 0: all of the drives */
	uint64_t page_bytes;
	uint64_t max_io_bytes;
	bool hollow; /* the drives keep nothing: nothing is copied */
};

/* uint64_t only: status names them by a table. */
struct cache_ssd_counters {
	uint64_t read_hits, read_misses; /* requests it may serve */
	uint64_t read_hit_bytes, read_miss_bytes;
	uint64_t bypassed; /* reads of volumes it serves, larger than max-io */
	uint64_t admitted_pages, evicted_pages;
	uint64_t filled_bytes, renewed_bytes; /* written to the SSDs after reads, after writes */
	uint64_t errors;		      /* of the SSDs; the set serves such reads */
	uint64_t cached_bytes;		      /* at present */
};

struct cache_ssd;

int cache_ssd_open(const struct cache_ssd_config *config, struct io_layer *below,
		   struct cache_ssd **ret_ssd, struct err *err);
struct cache_ssd *cache_ssd_close(struct cache_ssd *ssd); /* NULL is fine */
struct io_layer *cache_ssd_layer(struct cache_ssd *ssd);
const struct cache_ssd_counters *cache_ssd_counters(const struct cache_ssd *ssd);

#endif
