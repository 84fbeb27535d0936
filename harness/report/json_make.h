/* SPDX-License-Identifier: MIT
 *
 * JSON values that are always valid: no NaN, no overflow, no broken UTF-8.
 */
#ifndef SANLAB_HARNESS_REPORT_JSON_MAKE_H
#define SANLAB_HARNESS_REPORT_JSON_MAKE_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "harness/report/format.h"

#define RUN_SCHEMA "sanlab/run/1"

/* JSON integers are signed here; counters stop at the largest. */
static inline json_t *make_count(uint64_t count)
{
	return json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count);
}

static inline json_t *make_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

static inline json_t *make_string(const char *text)
{
	json_t *string = text ? json_string(text) : json_null();
	char *clean;

	if (string)
		return string;
	clean = utf8_clean(text);
	string = clean ? json_string(clean) : NULL;
	free(clean);
	return string;
}

/* A reference to VALUE, or null. */
static inline json_t *make_ref(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

#endif
