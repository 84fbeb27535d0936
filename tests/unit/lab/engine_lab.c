/* SPDX-License-Identifier: MIT
 *
 * Labs that other verbs print.
 */
#include "tests/unit/lab/engine_lab.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness/lab/lab.h"

void engine_lab_accepted(const char *text)
{
	struct lab *lab;

	if (lab_parse("printed", text, strlen(text), NULL, 0, stderr, &lab) < 0)
		fail_msg("the lab is refused:\n%s", text);
	lab_free(lab);
}
