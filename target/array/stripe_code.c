/* SPDX-License-Identifier: MIT
 *
 * P, P + Q and copies.
 */
#include "target/array/stripe_code.h"

#include <assert.h>
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <string.h>

#include "base/simd.h"
#include "target/array/array.h"

enum { TABLE_BYTES = 32, GENERATOR = 2 };

static uint8_t power(unsigned exponent)
{
	uint8_t value = 1;
	for (; exponent > 0; exponent--)
		value = gf_mul(value, GENERATOR);
	return value;
}

static bool has(uint64_t mask, unsigned column)
{
	return mask >> column & 1;
}

void stripe_encode(const struct stripe_shape *shape, uint8_t *const *column, uint64_t size)
{
	void *vector[RAID_DRIVES_MAX];
	unsigned width = shape->data + shape->parities;
	int rc = 0;

	if (shape->copies) {
		for (unsigned i = 1; i < width; i++)
			memcpy(column[i], column[0], size);
		return;
	}
	for (unsigned i = 0; i < width; i++)
		vector[i] = column[i];
	if (shape->parities == 2)
		rc = pq_gen((int)width, (int)size, vector);
	else
		rc = xor_gen((int)width, (int)size, vector);
	simd_done();
	assert(rc == 0);
}

bool stripe_fits(const struct stripe_shape *shape, uint8_t *const *column, uint64_t size)
{
	void *vector[RAID_DRIVES_MAX];
	unsigned width = shape->data + shape->parities;

	for (unsigned i = 0; i < width; i++) {
		vector[i] = column[i];
		if (shape->copies && memcmp(column[0], column[i], size) != 0)
			return false;
	}
	if (shape->copies)
		return true;
	int rc = shape->parities == 2 ? pq_check((int)width, (int)size, vector)
				      : xor_check((int)width, (int)size, vector);
	simd_done();
	return rc == 0;
}

void stripe_difference(uint8_t *a, uint8_t *b, uint8_t *to, uint64_t size)
{
	void *vector[] = {a, b, to};
	int rc = xor_gen(3, (int)size, vector);
	simd_done();
	assert(rc == 0);
}

void stripe_apply(unsigned data, uint8_t *change, uint8_t *p, uint8_t *q, uint64_t size)
{
	uint8_t table[TABLE_BYTES], factor = power(data);

	if (p)
		stripe_difference(p, change, p, size);
	if (!q)
		return;
	ec_init_tables(1, 1, &factor, table);
	ec_encode_data_update((int)size, 1, 1, 0, table, change, &q);
	simd_done();
}

/* One lost column with P: everything else XORed. */
static void recover_by_p(unsigned lost, uint64_t have, uint8_t *const *column, uint64_t size)
{
	void *vector[RAID_DRIVES_MAX + 1];
	unsigned count = 0;

	for (uint64_t left = have; left; left &= left - 1)
		vector[count++] = column[__builtin_ctzll(left)];
	if (count == 1) { /* the only data column: P is its copy */
		memcpy(column[lost], vector[0], size);
		return;
	}
	vector[count++] = column[lost];
	int rc = xor_gen((int)count, (int)size, vector);
	simd_done();
	assert(rc == 0);
}

/* Each lost column is a sum of multiples of those at hand:
 *   with Q alone    D_a = (Q + sum g^i D_i) / g^a
 *   with P and Q    D_a = (Q + g^b P + sum (g^i + g^b) D_i) / (g^a + g^b), and D_b likewise */
static void recover_by_q(const struct stripe_shape *shape, uint64_t lost, uint64_t have,
			 uint8_t *const *column, uint64_t size)
{
	uint8_t rows[2 * RAID_DRIVES_MAX], table[2 * RAID_DRIVES_MAX * TABLE_BYTES];
	uint8_t *source[RAID_DRIVES_MAX], *to[2];
	unsigned sources = (unsigned)__builtin_popcountll(have), targets = 0;
	unsigned p = shape->data, q = shape->data + 1;

	for (uint64_t left = lost; left; left &= left - 1, targets++) {
		unsigned a = (unsigned)__builtin_ctzll(left), at = 0;
		uint64_t rest = lost & ~(UINT64_C(1) << a);
		uint8_t other = rest ? power((unsigned)__builtin_ctzll(rest)) : 0;
		uint8_t scale = gf_inv(power(a) ^ other);

		to[targets] = column[a];
		for (uint64_t others = have; others; others &= others - 1, at++) {
			unsigned i = (unsigned)__builtin_ctzll(others);
			uint8_t factor = i == q ? 1 : i == p ? other : power(i) ^ other;
			rows[targets * sources + at] = gf_mul(factor, scale);
			source[at] = column[i];
		}
	}
	ec_init_tables((int)sources, (int)targets, rows, table);
	ec_encode_data((int)size, (int)sources, (int)targets, table, source, to);
	simd_done();
}

void stripe_recover(const struct stripe_shape *shape, uint64_t lost, uint64_t have,
		    uint8_t *const *column, uint64_t size)
{
	if (!lost)
		return;
	if (shape->copies)
		memcpy(column[0], column[__builtin_ctzll(have)], size);
	else if (shape->parities < 2 || !has(have, shape->data + 1))
		recover_by_p((unsigned)__builtin_ctzll(lost), have, column, size);
	else
		recover_by_q(shape, lost, have, column, size);
}
