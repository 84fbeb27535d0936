/* SPDX-License-Identifier: MIT
 *
 * Text of the report writers: escaping, numbers for people, evidence as lines.
 */
#ifndef SANLAB_HARNESS_REPORT_FORMAT_H
#define SANLAB_HARNESS_REPORT_FORMAT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes TEXT (NULL: nothing) as XML and HTML character data or attribute value.  What neither
 * may hold (broken UTF-8, control characters) becomes U+FFFD. */
void escape_xml(FILE *to, const char *text);
/* The length in bytes of the character at TEXT; 0 when that is not valid UTF-8 or not allowed
 * in XML. */
unsigned utf8_length(const char *text);
/* TEXT with what is not valid UTF-8 replaced by '?'; the caller frees.  NULL: out of memory. */
char *utf8_clean(const char *text);
/* printf's %-*s counts bytes; this pads (or cuts, with an ellipsis) to WIDTH columns. */
void put_column(FILE *to, const char *text, unsigned width);
/* Writes TEXT wrapped at 80 columns, the lines after the first indented. */
void put_wrapped(FILE *to, const char *text, unsigned column, unsigned indent);

/* Each writes into OUT and returns it; "-" stands for what was not measured. */
char *format_count(char *out, size_t size, uint64_t count); /* "12,345,678" */
char *format_real(char *out, size_t size, double value);    /* "1,234", "12.3", "0.46" */
char *format_share(char *out, size_t size, double share);   /* "25.1 %" */
char *format_latency(char *out, size_t size, double ns, uint64_t count); /* "-" if none counted */
char *format_mib(char *out, size_t size, double bytes_per_s); /* MiB/s without the unit */
char *format_clock(char *out, size_t size, uint64_t at_ns);   /* "12.345 s", "1:02:03.456" */

/* Calls LINE for each leaf of EVIDENCE: key "paths.2.ios", value as text, scaled when the key
 * names its unit ("1843000000 (1.84 s)").  At most EVIDENCE_LINES_MAX. */
enum { EVIDENCE_LINES_MAX = 64 };
typedef void (*evidence_fn)(void *arg, const char *key, const char *value);
void evidence_each(const json_t *evidence, evidence_fn line, void *arg);

#endif
