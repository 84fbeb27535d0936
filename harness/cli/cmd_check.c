/* SPDX-License-Identifier: MIT
 *
 * sanlab check: validates a lab file; prints what it comes to with every default filled in.
 */
#include <stdio.h>

#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/lab/lab.h"

int cmd_check(const struct cli_args *args)
{
	struct lab *lab;

	if (args->reference) {
		lab_print_reference(stdout);
		return EXIT_PASS;
	}
	if (lab_load(args->words[0], args->sets, args->set_count, &lab) < 0)
		return EXIT_USAGE;
	if (!args->quiet)
		lab_emit(lab, stdout);
	lab_free(lab);
	return EXIT_PASS;
}
