/* SPDX-License-Identifier: MIT
 *
 * The command line of programs that run seeds.
 */
#include "tests/sim/seeds.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool parse_number(const char *text, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return *text && !*end && !errno;
}

static bool parse_mutant(struct seeds *seeds, const char *name)
{
	for (unsigned i = 0; seeds->mutant_names[i]; i++) {
		if (strcmp(seeds->mutant_names[i], name) == 0) {
			seeds->mutant = i;
			return true;
		}
	}
	return false;
}

static bool take(struct seeds *seeds, int option)
{
	switch (option) {
	case 's':
		return parse_number(optarg, &seeds->count);
	case 'f':
		return parse_number(optarg, &seeds->first);
	case 'm':
		return parse_mutant(seeds, optarg);
	case 'x':
		seeds->extra_value = optarg;
		return true;
	case 'd':
		seeds->dir = optarg;
		return true;
	case 't':
		return seeds->trace = true;
	case 'v':
		return seeds->verbose = true;
	default:
		return false;
	}
}

bool seeds_parse(struct seeds *seeds, int argc, char **argv)
{
	const struct option table[] = {
	    {"seeds", required_argument, NULL, 's'},	  {"first", required_argument, NULL, 'f'},
	    {"dir", required_argument, NULL, 'd'},	  {"mutant", required_argument, NULL, 'm'},
	    {"verbose", no_argument, NULL, 'v'},	  {"trace", no_argument, NULL, 't'},
	    {seeds->extra, required_argument, NULL, 'x'}, {NULL, 0, NULL, 0},
	};
	bool good = true;
	int option;

	seeds->count = 100;
	seeds->dir = "/dev/shm"; /* memory, where there is such a file system */
	if (access(seeds->dir, W_OK))
		seeds->dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	while (good && (option = getopt_long(argc, argv, "", table, NULL)) != -1)
		good = take(seeds, option);
	if (good && optind == argc)
		return true;
	fprintf(stderr,
		"usage: %s [--seeds N] [--first K] [--mutant NAME] [--dir DIR] [--verbose] "
		"[--trace]%s%s%s\n",
		seeds->program, seeds->extra ? " [--" : "", seeds->extra ? seeds->extra : "",
		seeds->extra ? " NAME]" : "");
	return false;
}
