/* SPDX-License-Identifier: MIT
 *
 * Numbers as people read them: scaled units, always spelled out (MiB/s is not MB/s).
 * Each writes at most SIZE bytes and returns OUT.
 */
#ifndef SANLAB_BASE_TEXT_H
#define SANLAB_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

char *text_duration(char *out, size_t size, double ns);	     /* "842 ns", "1.84 s", "12.3 ms" */
char *text_bytes(char *out, size_t size, double bytes);	     /* "4.0 KiB", "1.2 GiB" */
char *text_rate(char *out, size_t size, double bytes_per_s); /* "31.2 MiB/s" */
/* "2026-11-30T10:04:39.123Z" from nanoseconds since 1970. */
char *text_utc(char *out, size_t size, uint64_t wall_ns);
/* URL as it may be shown: the password of `user%password@` is replaced by `***`. */
char *text_url(char *out, size_t size, const char *url);

#endif
