/* SPDX-License-Identifier: MIT
 *
 * Seek time over distance, through the three figures manuals give.
 *
 *   T(d) = track + (full - track) * ((d - 1) / (max - 1)) ^ p      1 <= d <= max cylinders
 *
 * with p such that the mean over all seek lengths, weighted as the manuals weight them (length n
 * occurs max + 1 - n times), is the average of the data sheet.  With density 2(1 - x) the mean of
 * x^p is 2 / ((p + 1)(p + 2)), which gives p in closed form.  Of the curves through three figures
 * this one rises everywhere, whatever they are; p is 1/2 for an arm that only accelerates and
 * brakes, and 1 for one that coasts, and the documented drives lie between (0.63, 0.71).
 *
 * Kept as a table of 32 points an octave with straight lines between: no pow() on the data path.
 */
#ifndef SANLAB_TARGET_DRIVE_SEEK_CURVE_H
#define SANLAB_TARGET_DRIVE_SEEK_CURVE_H

#include <stdint.h>

struct seek_figures;

enum {
	SEEK_OCTAVE_SHIFT = 5, /* 32 points an octave */
	SEEK_CYLINDERS_SHIFT = 24,
	SEEK_POINTS = ((SEEK_CYLINDERS_SHIFT - SEEK_OCTAVE_SHIFT + 1) << SEEK_OCTAVE_SHIFT) + 2,
};

struct seek_curve {
	uint32_t ns[SEEK_POINTS];
};

/* -EINVAL unless track < average < full; -ERANGE beyond 2^24 cylinders. */
int seek_curve_init(struct seek_curve *curve, const struct seek_figures *figures,
		    uint64_t cylinders);

/* 0 for distance 0. */
static inline uint64_t seek_curve_ns(const struct seek_curve *curve, uint64_t distance)
{
	if (distance < 1u << SEEK_OCTAVE_SHIFT)
		return curve->ns[distance];
	unsigned shift = 63 - (unsigned)__builtin_clzll(distance) - SEEK_OCTAVE_SHIFT;
	uint64_t point = (distance >> shift) + ((uint64_t)shift << SEEK_OCTAVE_SHIFT);
	uint64_t rest = distance & ((UINT64_C(1) << shift) - 1);
	uint64_t from = curve->ns[point], to = curve->ns[point + 1];
	return from + ((to - from) * rest >> shift);
}

#endif
