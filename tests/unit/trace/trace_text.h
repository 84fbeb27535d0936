/* SPDX-License-Identifier: MIT
 *
 * Traces for tests: texts become files, records become lines that are easy to compare.
 */
#ifndef SANLAB_TESTS_TRACE_TEXT_H
#define SANLAB_TESTS_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/trace/trace.h"

/* Writes TEXT into a new file; its name is in PATH. */
void trace_text_file(const char *text, size_t size, bool gz, char path[64]);
/* Reads all of the trace: "BEGIN+LENGTH DEVICE op OFFSET+SIZE[ fua][ class]", times in ns, ? for an
 * end that is not known, one a line.  Ends with "! what", or "" and the counts "bad B, late O". */
void trace_text_read(const struct trace_options *options, char *out, size_t size);
/* One file of TEXT with default options. */
void trace_text(const char *text, char *out, size_t size);

#endif
