/* SPDX-License-Identifier: MIT
 *
 * Battery-backed memory of a member: what it holds outlives the target (kill -9) when the member
 * has a file store, and a simulated crash when its owner keeps it over the reopening.
 *
 * With a PLACE it is a file there, PLACE/NAME.nvram, mapped shared: what was stored is in the
 * host's page cache and so survives the process, not the host's power.  nvram_sync makes it
 * durable against that too.  Without a PLACE it is anonymous memory.
 *
 * Order: stores of one thread reach the page cache in program order as far as a killed process
 * can tell; nvram_order keeps the compiler from moving them.  After a power failure any mixture of
 * pages is possible, so records carry checksums.
 *
 * A file begins with a page that says whose content it is and of which start of its pool: content
 * of another member, or older than the drives it belongs to, must not be written to them.
 *
 *   0 magic "SANLNVR1"   8 CRC32C of what follows to 64   16 owner (16)   32 start
 *
 * Ownership: the opener's.  Threading: one thread.  Units: bytes.
 */
#ifndef SANLAB_TARGET_DRIVE_NVRAM_H
#define SANLAB_TARGET_DRIVE_NVRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct nvram {
	uint8_t *memory; /* page aligned; zeros where nothing was ever stored */
	size_t bytes;
	bool found;   /* it existed before: there may be something to recover */
	int fd;	      /* private; -1: anonymous */
	uint8_t *map; /* private: where the file's own page is */
};

/* Opens or makes it.  A file of another size is kept when it is larger (the content counts) and
 * grown when it is smaller.  -EBUSY: another target has it. */
int nvram_open(const char *place, const char *name, size_t bytes, struct nvram *ret_nvram,
	       struct err *err);
/* The content is OWNER's (a UUID) and takes part in the start START.  Content that is there must be
 * OWNER's and have taken part in start COMMITTED or a later one: -EMEDIUMTYPE, -ESTALE, -EUCLEAN.
 * Nothing to do for anonymous memory. */
int nvram_claim(struct nvram *nvram, const uint8_t owner[16], uint64_t committed, uint64_t start,
		struct err *err);
bool nvram_is_claimed(const struct nvram *nvram); /* somebody's: it may hold something */
void nvram_clear(struct nvram *nvram);		  /* zeros, and nobody's */
void nvram_close(struct nvram *nvram);		  /* keeps the file */

/* On stable storage; 0 at once for anonymous memory. */
int nvram_sync(struct nvram *nvram, size_t offset, size_t length);

static inline void nvram_order(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
