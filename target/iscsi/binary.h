/* SPDX-License-Identifier: MIT
 *
 * Binary values in text keys (RFC 7143 6.1): hexadecimal "0x..." or base64 "0b...".
 */
#ifndef SANLAB_TARGET_ISCSI_BINARY_H
#define SANLAB_TARGET_ISCSI_BINARY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of TEXT put into TO; 0: no such value, or more than SIZE bytes. */
size_t iscsi_binary_decode(const char *text, uint8_t *to, size_t size);
/* Writes "0x..." with its NUL: 2 * BYTES + 3 characters. */
void iscsi_binary_encode(const uint8_t *from, size_t bytes, char *out);

#endif
