/* SPDX-License-Identifier: MIT
 *
 * Names of a trace's devices.  They are few, and most records have the one of the record before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/trace/trace_impl.h"

int trace_names_init(struct trace_names *names)
{
	*names = (struct trace_names){.name = calloc(TRACE_DEVICES_MAX, TRACE_NAME_MAX)};
	return names->name ? 0 : -ENOMEM;
}

void trace_names_done(struct trace_names *names)
{
	free(names->name);
	names->name = NULL;
}

int trace_names_index(struct trace_names *names, const char *name)
{
	if (names->count && strcmp(names->name[names->last], name) == 0)
		return (int)names->last;
	if (strlen(name) >= TRACE_NAME_MAX)
		return -ENAMETOOLONG;
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->name[i], name) == 0) {
			names->last = i;
			return (int)i;
		}
	if (names->count == TRACE_DEVICES_MAX)
		return -ENOSPC;
	memcpy(names->name[names->count], name, strlen(name) + 1);
	names->last = names->count++;
	return (int)names->last;
}
