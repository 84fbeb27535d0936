/* SPDX-License-Identifier: MIT
 *
 * Labs as text: two that tests change by assignments, and how they are loaded.
 */
#ifndef TESTS_UNIT_LAB_LAB_TEXT_H
#define TESTS_UNIT_LAB_LAB_TEXT_H

#include "harness/lab/lab.h"

#define M1 "group.pools.default.members.m1."

/* One small lab with everything in it, and one whose member is no more than its model. */
extern const char small_lab[], preset_lab[];

/* Loads TEXT; *ret_errors is what was printed (to be freed). SETS ends with NULL, or is NULL. */
struct lab *load_text(const char *text, const char *const *sets, char **ret_errors);

#endif
