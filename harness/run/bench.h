/* SPDX-License-Identifier: MIT
 *
 * `sanlab bench`: one MPIO device over all given paths, a closed loop of equal I/Os for a time; as
 * many of them side by side as threads are asked for, each with sessions of its own.
 */
#ifndef SANLAB_HARNESS_RUN_BENCH_H
#define SANLAB_HARNESS_RUN_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bench_options {
	const char *const *urls; /* one path each, of one logical unit */
	size_t url_count;
	int op;	     /* enum raw_op */
	int pattern; /* enum raw_pattern */
	int policy;  /* index into mpio_policy_names */
	uint64_t block_bytes;
	uint64_t queue_depth; /* of each thread */
	uint64_t threads;
	double read_share; /* rw: fraction of reads */
	uint64_t time_ns, warmup_ns;
	uint64_t seed;
	bool json;
};

/* The defaults of the command: 4 KiB random reads, 32 in flight, 5 s after 0.5 s of warm-up. */
void bench_defaults(struct bench_options *ret_options);
/* Runs, writes the result to OUT and diagnostics to stderr; returns the exit code: 0, 1 when I/Os
 * failed, 2 for impossible options, 3 when the unit cannot be reached. */
int bench_run(const struct bench_options *options, FILE *out);

#endif
