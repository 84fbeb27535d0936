/* SPDX-License-Identifier: MIT
 *
 * Hexadecimal and base64 (RFC 4648) values.
 */
#include "target/iscsi/binary.h"

#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An odd number of digits begins with half a byte. */
static size_t decode_hex(const char *text, uint8_t *to, size_t size)
{
	size_t digits = strlen(text), at = digits % 2;

	if ((digits + 1) / 2 > size)
		return 0;
	memset(to, 0, (digits + 1) / 2);
	for (size_t i = 0; i < digits; i++, at++) {
		int digit = hex_digit(text[i]);

		if (digit < 0)
			return 0;
		to[at / 2] = (uint8_t)(to[at / 2] << 4 | digit);
	}
	return (digits + 1) / 2;
}

static int base64_digit(char c)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static size_t decode_base64(const char *text, uint8_t *to, size_t size)
{
	size_t chars = strlen(text), pad = 0, bytes;
	uint32_t group = 0;

	if (chars == 0 || chars % 4 != 0)
		return 0;
	while (pad < 2 && text[chars - 1 - pad] == '=')
		pad++;
	bytes = chars / 4 * 3 - pad;
	if (bytes > size)
		return 0;
	for (size_t i = 0, out = 0; i < chars; i++) {
		int digit = i < chars - pad ? base64_digit(text[i]) : 0;

		if (digit < 0)
			return 0;
		group = group << 6 | (uint32_t)digit;
		if (i % 4 != 3)
			continue;
		for (int shift = 16; shift >= 0 && out < bytes; shift -= 8)
			to[out++] = (uint8_t)(group >> shift);
	}
	return bytes;
}

size_t iscsi_binary_decode(const char *text, uint8_t *to, size_t size)
{
	if (text[0] != '0')
		return 0;
	if (text[1] == 'x' || text[1] == 'X')
		return decode_hex(text + 2, to, size);
	if (text[1] == 'b' || text[1] == 'B')
		return decode_base64(text + 2, to, size);
	return 0;
}

void iscsi_binary_encode(const uint8_t *from, size_t bytes, char *out)
{
	static const char digits[] = "0123456789abcdef";

	*out++ = '0';
	*out++ = 'x';
	for (size_t i = 0; i < bytes; i++) {
		*out++ = digits[from[i] >> 4];
		*out++ = digits[from[i] & 15];
	}
	*out = '\0';
}
