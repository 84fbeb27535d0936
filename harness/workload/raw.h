/* SPDX-License-Identifier: MIT
 *
 * The raw workload: reads and writes of one size.
 *
 * Without `rate` a closed loop, a fixed number in flight on each volume: for `sanlab bench` and for
 * labs that ask how fast a path is.  It overwrites the volumes and verifies nothing: it exists to
 * cost as little as possible.  With `rate` an open loop that verifies (paced.h): for labs that ask
 * what a failure does.
 */
#ifndef SANLAB_HARNESS_WORKLOAD_RAW_H
#define SANLAB_HARNESS_WORKLOAD_RAW_H

#include "harness/workload/workload.h"

enum raw_op { RAW_READ, RAW_WRITE, RAW_RW };
extern const char *const raw_op_names[]; /* "read", "write", "rw", NULL */
enum raw_pattern { RAW_RANDOM, RAW_SEQUENTIAL };
extern const char *const raw_pattern_names[]; /* "random", "sequential", NULL */

struct raw_config {
	const char *type;
	int op;	     /* enum raw_op */
	int pattern; /* enum raw_pattern */
	uint64_t block_bytes;
	uint64_t queue_depth; /* per volume */
	double read_share;    /* rw */
	uint64_t span_bytes;  /* from the start of each volume; 0: all of it */
	double rate;	      /* I/Os a second on each volume; 0: closed loop */
};

extern const struct cfg_schema raw_schema;
extern const struct workload_ops raw_workload_ops;

#endif
