/* SPDX-License-Identifier: MIT
 *
 * Big-endian fields of wire structures (SAM-5, RFC 7143) and small arithmetic helpers.
 */
#ifndef SANLAB_BASE_BYTES_H
#define SANLAB_BASE_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_be16(const void *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof v);
	return be16toh(v);
}

static inline uint32_t get_be24(const void *p)
{
	const uint8_t *b = p;
	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline uint32_t get_be32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return be32toh(v);
}

static inline uint64_t get_be64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return be64toh(v);
}

static inline void put_be16(void *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof v);
}

static inline void put_be24(void *p, uint32_t v)
{
	uint8_t *b = p;
	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

static inline void put_be32(void *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof v);
}

static inline void put_be64(void *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof v);
}

#define ARRAY_SIZE(a)	      (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b)	      ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)	      ((a) > (b) ? (a) : (b))
#define container_of(p, t, m) ((t *)(void *)((char *)(p)-offsetof(t, m)))

static inline uint64_t round_up_u64(uint64_t v, uint64_t unit)
{
	return (v + unit - 1) / unit * unit;
}

#define NS_PER_S  UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)
#define KIB	  UINT64_C(1024)
#define MIB	  (KIB * 1024)
#define GIB	  (MIB * 1024)
#define TIB	  (GIB * 1024)

/* The greatest common divisor; of 0 and N it is N. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

#endif
