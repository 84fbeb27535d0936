/* SPDX-License-Identifier: MIT
 *
 * Fitting the seek curve and tabulating it.
 */
#include "target/drive/seek_curve.h"

#include <errno.h>
#include <math.h>

#include "base/bytes.h"
#include "target/drive/drive.h"

/* The distance point I of the table stands for; the inverse of seek_curve_ns's indexing. */
static uint64_t distance_of(unsigned i)
{
	const unsigned points = 1u << SEEK_OCTAVE_SHIFT;
	if (i < 2 * points)
		return i;
	unsigned shift = (i >> SEEK_OCTAVE_SHIFT) - 1;
	return (uint64_t)(i - (shift << SEEK_OCTAVE_SHIFT)) << shift;
}

int seek_curve_init(struct seek_curve *curve, const struct seek_figures *figures,
		    uint64_t cylinders)
{
	double track = (double)figures->track_ns, average = (double)figures->average_ns;
	double full = (double)figures->full_ns;

	if (!(track < average && average < full) || full >= UINT32_MAX / 2)
		return -EINVAL;
	if (cylinders >> SEEK_CYLINDERS_SHIFT)
		return -ERANGE;
	/* (p + 1)(p + 2) = 2 / mean of x^p */
	double mean = (average - track) / (full - track);
	double power = (sqrt(1 + 8 / mean) - 3) / 2;
	double longest = cylinders > 2 ? (double)(cylinders - 1) : 2;
	curve->ns[0] = 0;
	for (unsigned i = 1; i < SEEK_POINTS; i++) {
		double share = ((double)distance_of(i) - 1) / (longest - 1);
		/* A point behind the last distance too: it ends the last stretch. */
		curve->ns[i] = (uint32_t)(track + (full - track) * pow(MIN_OF(share, 2.0), power));
	}
	return 0;
}
