/* SPDX-License-Identifier: MIT
 *
 * content: none - what a volume would hold, for the pages that were written: of each how it differs
 * from the image it was born with, some dozens of bytes for a leaf that was changed once or twice.
 * So a day of a TB database in virtual time fits into memory.
 *
 * Memory grows with the number of distinct pages written.  Threading: one thread.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_ESE_SHADOW_H
#define SANLAB_HARNESS_WORKLOAD_ESE_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/workload/ese/ese_image.h"

struct ese_shadow;

int ese_shadow_new(const struct ese_image_rules *rules, struct ese_shadow **ret_shadow);
struct ese_shadow *ese_shadow_free(struct ese_shadow *shadow); /* NULL is fine; returns NULL */
/* IMAGE is what is on the volume from now on.  -ENOMEM. */
int ese_shadow_put(struct ese_shadow *shadow, const struct ese_image *image);
/* Fills IMAGE (initialised) with what is there; a page never written is as it was born. -ENOMEM. */
int ese_shadow_get(struct ese_shadow *shadow, uint32_t page, struct ese_image *image);
uint32_t ese_shadow_pages(const struct ese_shadow *shadow); /* written */
size_t ese_shadow_bytes(const struct ese_shadow *shadow);

#endif
