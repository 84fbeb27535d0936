/* SPDX-License-Identifier: MIT
 *
 * The table of formats.
 */
#include <string.h>

#include "base/bytes.h"
#include "harness/trace/trace.h"

static const struct trace_format *const formats[] = {
    &trace_fio_iolog, &trace_blkparse, &trace_msr, &trace_spc, &trace_etw,
};

const char *const trace_format_names[] = {"auto", "fio", "blkparse", "msr", "spc", "etw", NULL};

const struct trace_format *trace_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (strcmp(formats[i]->name, name) == 0)
			return formats[i];
	return NULL;
}

const struct trace_format *trace_format_of(const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i]->is_mine(line))
			return formats[i];
	return NULL;
}
