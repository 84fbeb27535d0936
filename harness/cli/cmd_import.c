/* SPDX-License-Identifier: MIT
 *
 * sanlab import FILE.xml: a JetstressConfig.xml as a lab file on standard output; on standard
 * error, with its line, every element that has no meaning here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/lab/jetstress_import.h"

static int by_line(const void *a, const void *b)
{
	const struct jetstress_note *left = a, *right = b;

	return left->line < right->line ? -1 : left->line > right->line;
}

static void put_notes(const char *file, struct jetstress_design *design)
{
	qsort(design->notes, design->note_count, sizeof design->notes[0], by_line);
	for (unsigned i = 0; i < design->note_count; i++) {
		const struct jetstress_note *note = &design->notes[i];

		if (note->line)
			fprintf(stderr, "%s:%u: %s: %s\n", file, note->line, note->element,
				note->why);
		else
			fprintf(stderr, "%s: %s: %s\n", file, note->element, note->why);
	}
	if (design->notes_lost)
		fprintf(stderr, "%s: and %u more\n", file, design->notes_lost);
}

int cmd_import(const struct cli_args *args)
{
	const char *file = args->words[0];
	struct jetstress_design *design = calloc(1, sizeof *design);
	struct err err = {0};
	int r;

	if (!design)
		return EXIT_INTERNAL;
	r = jetstress_load(file, design, &err);
	if (r < 0) {
		err_print(&err);
		free(design);
		return EXIT_USAGE;
	}
	r = jetstress_put_lab(design, file, stdout);
	if (!args->quiet)
		put_notes(file, design);
	free(design);
	return r < 0 ? EXIT_ENVIRONMENT : EXIT_PASS;
}
