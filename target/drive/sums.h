/* SPDX-License-Identifier: MIT
 *
 * A sparse table of checksums, one a sector: in memory, or in a file beside the drive's.
 */
#ifndef SANLAB_TARGET_DRIVE_SUMS_H
#define SANLAB_TARGET_DRIVE_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	SUMS_BATCH = 1024, /* sums at a time */
	SUMS_UUID_BYTES = 16,
};

struct sums {
	uint32_t *memory; /* NULL: in the file */
	size_t memory_bytes;
	int fd; /* -1: in memory */
	bool is_new;
};

/* PLACE NULL: in memory.  is_new: there were none of the drive UUID, sums_keep must follow when
 * they have been filled. */
int sums_open(struct sums *sums, const char *place, const char *name, const uint8_t *uuid,
	      uint64_t sectors, struct err *err);
/* The file now belongs to its drive: what it holds is complete. */
int sums_keep(struct sums *sums, const char *place, const char *name, struct err *err);
void sums_close(struct sums *sums);
int sums_remove(const char *place, const char *name, struct err *err);

/* COUNT (at most SUMS_BATCH) sums from FIRST on: where they are; SCRATCH has room for them.  NULL:
 * cannot be read. */
const uint32_t *sums_get(const struct sums *sums, uint64_t first, unsigned count,
			 uint32_t *scratch);
int sums_put(struct sums *sums, uint64_t first, unsigned count, const uint32_t *values);
int sums_clear(struct sums *sums, uint64_t first, uint64_t count);
int sums_sync(struct sums *sums);

#endif
