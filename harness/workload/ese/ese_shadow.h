/* SPDX-License-Identifier: MIT
 *
 * content: none - the images that a volume would hold, for the pages that were written.
 *
 * Ownership: copies, in lists of the pool of the images handed in.  Memory grows with the number of
 * distinct pages written, some 300 bytes each.  Threading: one thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_SHADOW_H
#define SANLAB_HARNESS_WORKLOAD_ESE_SHADOW_H

#include <stdint.h>

#include "harness/workload/ese/ese_image.h"

struct ese_shadow {
	struct ese_image *slots; /* open addressing; page 0: free */
	uint32_t size;		 /* a power of two, or 0 */
	uint32_t used;
};

void ese_shadow_done(struct ese_shadow *shadow);
/* Keeps a copy of IMAGE as what is on the volume.  -ENOMEM. */
int ese_shadow_put(struct ese_shadow *shadow, const struct ese_image *image);
/* NULL: never written. */
const struct ese_image *ese_shadow_get(const struct ese_shadow *shadow, uint32_t page);

#endif
