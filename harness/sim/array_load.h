/* SPDX-License-Identifier: MIT
 *
 * Streams of requests to volumes of an array, on the array's own loop and without hosts or a
 * network: what published loads do to it, in virtual time.  Each stream is an open one: requests
 * come when they are due, however long the ones before take, and their latency counts from then.
 *
 * Ownership: the load owns its streams and their requests; volumes belong to their group, which
 * must outlive it.  Threading: the loop's thread.
 */
#ifndef SANLAB_HARNESS_SIM_ARRAY_LOAD_H
#define SANLAB_HARNESS_SIM_ARRAY_LOAD_H

#include "base/hist.h"
#include "base/loop.h"
#include "target/array/array.h"

enum array_stream_pattern { ARRAY_STREAM_RANDOM, ARRAY_STREAM_SEQUENTIAL };
enum array_stream_pace {
	ARRAY_STREAM_POISSON, /* independent arrivals */
	ARRAY_STREAM_REGULAR, /* one each period, as a throttled scan */
};

struct array_stream_config {
	struct volume *volume;
	enum io_op op;
	unsigned flags;
	enum array_stream_pattern pattern;
	enum array_stream_pace pace;
	double per_second;   /* requests, on average */
	unsigned burst;	     /* so many come at once; 0 counts as 1 */
	double mean_bytes;   /* every request is a whole number of units, the mean is this */
	uint64_t unit_bytes; /* and at offsets that are multiples of it */
	uint64_t from_bytes; /* the region of the volume */
	/* Reads each burst where this stream, a number plus one, has just been, from the last but
	 * one whole MiB on: as the copying of a log file that was closed.  0: none. */
	unsigned behind;
	uint64_t region_bytes; /* it may not be empty */
};

struct array_stream_result {
	uint64_t requests, bytes, errors; /* of those that were due in the window */
	struct hist latency;
};

struct array_load;

int array_load_new(struct loop *loop, uint64_t seed, struct array_load **ret_load);
/* Begins at once.  Returns the stream's number or -ENOMEM. */
int array_load_add(struct array_load *load, const struct array_stream_config *config);
/* From here on what is due counts; results so far are forgotten. */
void array_load_begin_window(struct array_load *load);
/* Nothing becomes due any more. */
void array_load_stop(struct array_load *load);
unsigned array_load_outstanding(const struct array_load *load);
const struct array_stream_result *array_load_result(const struct array_load *load, unsigned stream);
/* Nothing may be outstanding. */
struct array_load *array_load_free(struct array_load *load);

#endif
