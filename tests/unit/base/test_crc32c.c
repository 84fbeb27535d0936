/* SPDX-License-Identifier: MIT
 *
 * CRC32C against the vectors of RFC 7143 (appendix A.4) and against a bit-by-bit reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/rng.h"

static void rfc_vectors(void **state)
{
	/* A READ(10) command PDU, the RFC's last vector. */
	static const uint8_t read10[48] = {
	    [0] = 0x01,	 [1] = 0xc0,  [16] = 0x14, [22] = 0x04,
	    [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02,
	};
	uint8_t bytes[32];

	memset(bytes, 0, sizeof bytes);
	assert_int_equal(crc32c(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof bytes);
	assert_int_equal(crc32c(0, bytes, 32), 0x62a8ab43);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	assert_int_equal(crc32c(0, bytes, 32), 0x46dd794e);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (uint8_t)(31 - i);
	assert_int_equal(crc32c(0, bytes, 32), 0x113fdb5c);
	assert_int_equal(crc32c(0, read10, 48), 0xd9963a56);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(0, "", 0), 0);
}

static uint32_t crc_by_bits(uint32_t crc, const uint8_t *from, size_t size)
{
	crc = ~crc;
	for (size_t i = 0; i < size; i++) {
		crc ^= from[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
	}
	return ~crc;
}

static void every_length_and_split(void **state)
{
	uint8_t bytes[700];
	struct rng rng;

	rng_init(&rng, 1, 0);
	rng_fill(&rng, bytes, sizeof bytes);
	for (size_t size = 0; size < sizeof bytes - 3; size++) {
		const uint8_t *from = bytes + size % 4; /* unaligned too */
		uint32_t want = crc_by_bits(0, from, size);
		size_t split = size / 3;

		assert_int_equal(crc32c(0, from, size), want);
		assert_int_equal(crc32c(crc32c(0, from, split), from + split, size - split), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rfc_vectors),
	    cmocka_unit_test(every_length_and_split),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
