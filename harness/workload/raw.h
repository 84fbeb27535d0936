/* SPDX-License-Identifier: MIT
 *
 * The raw workload: reads and writes of given sizes.
 *
 * Without `rate` a closed loop, a fixed number in flight on each volume: for `sanlab bench` and for
 * labs that ask how fast a path is.  It overwrites the volumes and verifies nothing: it exists to
 * cost as little as possible.  With `rate` an open loop that verifies (paced.h): for labs that ask
 * what a failure does.  With `sweep` either goes through several depths or rates, and each step has
 * a measured window of its own (raw_sweep.h).
 */
#ifndef SANLAB_HARNESS_WORKLOAD_RAW_H
#define SANLAB_HARNESS_WORKLOAD_RAW_H

#include "harness/workload/workload.h"

enum { RAW_SIZES_MAX = 16, RAW_STEPS_MAX = 64, RAW_DEPTH_MAX = 1024 };

enum raw_op { RAW_READ, RAW_WRITE, RAW_RW };
extern const char *const raw_op_names[]; /* "read", "write", "rw", NULL */
enum raw_pattern { RAW_RANDOM, RAW_SEQUENTIAL, RAW_MIXED };
extern const char *const raw_pattern_names[]; /* "random", "sequential", "mixed", NULL */
enum raw_content { RAW_VERIFIED, RAW_NONE };

struct raw_size {
	uint64_t bytes;
	double share; /* of all I/O */
};

struct raw_sweep_config {
	struct cfg_list depths, rates; /* uint64_t; one of them, or neither: no sweep */
	uint64_t settle_ns, time_ns;   /* of each step: before it is measured, and measured */
};

struct raw_config {
	const char *type;
	int op;	     /* enum raw_op */
	int pattern; /* enum raw_pattern */
	uint64_t block_bytes;
	struct cfg_raw block_sizes;
	uint64_t queue_depth; /* per volume */
	double read_share;    /* rw */
	double random_share;  /* mixed */
	uint64_t span_bytes;  /* from the start of each volume; 0: all of it */
	double rate;	      /* I/Os a second on each volume; 0: closed loop */
	int content;	      /* enum raw_content, of an open loop */
	struct raw_sweep_config sweep;
	/* filled by configure; none: block_bytes alone */
	struct raw_size sizes[RAW_SIZES_MAX];
	unsigned size_count;
};

extern const struct cfg_schema raw_schema;
extern const struct workload_ops raw_workload_ops;

/* raw_config.c */
void raw_configure(struct cfg *cfg, void *of); /* OF: a struct raw_config */
int raw_check(const void *of, const char *volume, uint64_t size_bytes, uint32_t block_bytes,
	      struct err *err);
/* I/Os are due at rates, rather than as others end. */
bool raw_is_open_loop(const struct raw_config *config);
/* "70 % reads, random, 4.0 KiB 60 %, ...". */
void raw_describe(const struct raw_config *config, char *out, size_t size);

#endif
