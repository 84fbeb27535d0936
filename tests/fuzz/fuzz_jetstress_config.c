/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the import of a JetstressConfig.xml: the input is the document.
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/lab/jetstress_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jetstress_design *design = calloc(1, sizeof *design);
	struct err err = {0};
	FILE *to = fopen("/dev/null", "we");

	if (!design || !to)
		abort();
	if (jetstress_read("fuzz.xml", (const char *)data, size, design, &err) == 0)
		jetstress_put_lab(design, "fuzz.xml", to);
	fclose(to);
	free(design);
	return 0;
}
