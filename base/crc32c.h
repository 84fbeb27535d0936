/* SPDX-License-Identifier: MIT
 *
 * CRC32C (Castagnoli) as iSCSI digests and page headers use it: reflected, initial and final
 * inversion (RFC 7143 section 12.1; 32 bytes of 00 give 8a9136aa).  ISA-L does the work.
 */
#ifndef SANLAB_BASE_CRC32C_H
#define SANLAB_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues CRC (0 to begin) over SIZE bytes at BUF. */
uint32_t crc32c(uint32_t crc, const void *buf, size_t size);
/* Of a block that carries its own CRC, AT bytes in: as if those four bytes were zeros. */
uint32_t crc32c_of_block(const void *block, size_t size, size_t at);

#endif
