/* SPDX-License-Identifier: MIT
 *
 * CRC32C over ISA-L, whose function neither inverts nor takes more than an int of bytes.
 */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#include "base/simd.h"

uint32_t crc32c(uint32_t crc, const void *buf, size_t size)
{
	const size_t most = 1 << 30;
	const unsigned char *from = buf;

	crc = ~crc;
	while (size > 0) {
		size_t part = size < most ? size : most;

		/* The parameter is not const, but nothing is written. */
		crc = crc32_iscsi((unsigned char *)(uintptr_t)from, (int)part, crc);
		from += part;
		size -= part;
	}
	simd_done();
	return ~crc;
}

uint32_t crc32c_of_block(const void *block, size_t size, size_t at)
{
	static const unsigned char zero[4];
	const unsigned char *bytes = block;
	uint32_t crc = crc32c(0, bytes, at);

	crc = crc32c(crc, zero, sizeof zero);
	return crc32c(crc, bytes + at + sizeof zero, size - at - sizeof zero);
}
