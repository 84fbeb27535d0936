/* SPDX-License-Identifier: MIT
 *
 * Documents against the files of tests/golden.
 */
#include "tests/unit/report/golden.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/report/files.h"

void golden_compare(const char *name, char *text)
{
	const char *update = getenv("UPDATE_GOLDEN");
	char *want;

	if (update && *update)
		file_write(GOLDEN_DIR, name, text);
	want = file_read(GOLDEN_DIR, name);
	if (strcmp(text, want) != 0) {
		size_t at, line = 1;

		for (at = 0; text[at] && text[at] == want[at]; at++)
			line += text[at] == '\n';
		fail_msg("%s differs in line %zu:\n  is   %.60s\n  want %.60s", name, line,
			 text + at, want + at);
	}
	free(want);
	free(text);
}
