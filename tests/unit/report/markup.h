/* SPDX-License-Identifier: MIT
 *
 * A checker of markup: every element closed in order, attributes quoted and not repeated,
 * entities known, characters allowed.  Small on purpose; it knows what reports contain.
 */
#ifndef SANLAB_TESTS_UNIT_REPORT_MARKUP_H
#define SANLAB_TESTS_UNIT_REPORT_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

/* NULL when TEXT is well-formed, else what is wrong and where (valid until the next call).
 * HTML: void elements need no end, and script and style hold anything. */
const char *markup_check(const char *text, bool html);
/* How often NEEDLE occurs in TEXT. */
unsigned count_of(const char *text, const char *needle);

#endif
