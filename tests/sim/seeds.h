/* SPDX-License-Identifier: MIT
 *
 * What programs that run seeds have in common: their command line.
 *
 *   PROGRAM [--seeds N] [--first K] [--mutant NAME] [--dir DIR] [--verbose] [--trace] [--EXTRA
 * NAME]
 */
#ifndef SANLAB_TESTS_SIM_SEEDS_H
#define SANLAB_TESTS_SIM_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

struct seeds {
	const char *program;
	const char *const *mutant_names; /* NULL-terminated; the first one is none */
	const char *extra;		 /* one more option of this program; NULL: none */
	/* filled by seeds_parse */
	uint64_t count, first;
	unsigned mutant;
	const char *dir; /* for files that need not last */
	const char *extra_value;
	bool verbose, trace;
};

/* False: the usage has been told. */
bool seeds_parse(struct seeds *seeds, int argc, char **argv);

#endif
