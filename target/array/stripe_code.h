/* SPDX-License-Identifier: MIT
 *
 * Coding of stripes by ISA-L: P is the XOR of the data columns, Q is the sum of g^i D_i over
 * GF(2^8) with the polynomial 0x11d and g = 2, as in H. P. Anvin's "The mathematics of RAID-6";
 * the further columns of a mirror are copies of the only data column.
 *
 * Memory of columns is aligned to STRIPE_CODE_ALIGN, sizes are multiples of 512 bytes.
 */
#ifndef SANLAB_TARGET_ARRAY_STRIPE_CODE_H
#define SANLAB_TARGET_ARRAY_STRIPE_CODE_H

#include "target/array/stripe_plan.h"

enum { STRIPE_CODE_ALIGN = 64 };

/* Works the parities out from the data; COLUMN points to the memory of each column. */
void stripe_encode(const struct stripe_shape *shape, uint8_t *const *column, uint64_t size);
/* Do all columns fit together? */
bool stripe_fits(const struct stripe_shape *shape, uint8_t *const *column, uint64_t size);
/* Works the data columns LOST out from the columns HAVE, as stripe_plan_read chose them. */
void stripe_recover(const struct stripe_shape *shape, uint64_t lost, uint64_t have,
		    uint8_t *const *column, uint64_t size);
/* Applies CHANGE (old XOR new content) of data column DATA to P, and to Q; either may be NULL. */
void stripe_apply(unsigned data, uint8_t *change, uint8_t *p, uint8_t *q, uint64_t size);
/* TO = A XOR B; TO may be either. */
void stripe_difference(uint8_t *a, uint8_t *b, uint8_t *to, uint64_t size);

#endif
