/* SPDX-License-Identifier: MIT
 *
 * Documents people read, byte for byte.  UPDATE_GOLDEN=1 rewrites the files; look at the
 * difference before committing it.
 */
#ifndef SANLAB_TESTS_UNIT_REPORT_GOLDEN_H
#define SANLAB_TESTS_UNIT_REPORT_GOLDEN_H

/* Fails unless TEXT, which it frees, is what tests/golden/NAME holds. */
void golden_compare(const char *name, char *text);

#endif
