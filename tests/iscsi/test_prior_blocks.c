/* SPDX-License-Identifier: MIT
 *
 * Faults that other targets had with WRITE SAME and COMPARE AND WRITE (see test_prior_login.c).
 */
#include "tests/iscsi/real_fixture.h"

/* Block limits (VPD b0). */
static const uint8_t *limits(struct real_fixture *f, struct pdu_client *c, unsigned lun)
{
	struct real_answer answer =
	    real_run(f, c, lun, FLAG_READ, CDB(0x12, 1, 0xb0, 0, 64, 0), 64, NULL, 0);

	assert_int_equal(answer.status, SCSI_GOOD);
	return f->back;
}

/* ---- 67 ---- */

static uint32_t write_same(struct real_fixture *f, struct pdu_client *c, unsigned lun,
			   unsigned flags, uint64_t lba, uint32_t blocks, uint32_t block_bytes)
{
	uint8_t cdb[16] = {0x93, (uint8_t)flags};

	put_be64(cdb + 2, lba);
	put_be32(cdb + 10, blocks);
	return real_run(f, c, lun, FLAG_WRITE, cdb, sizeof cdb, block_bytes, f->pattern,
			block_bytes)
	    .sense;
}

static void bug_67_write_same_limit_is_the_one_reported(void **state)
{
	static const uint32_t block_bytes[REAL_LUN_COUNT] = {512, 512, 4096};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);

	for (unsigned lun = 0; lun < REAL_LUN_COUNT; lun++) {
		uint64_t limit = get_be64(limits(f, c, lun) + 36);
		uint64_t capacity = REAL_VOLUME_BYTES / block_bytes[lun];

		assert_true(limit > 0); /* there is one, so it is told */
		if (limit < capacity) {
			assert_int_equal(
			    write_same(f, c, lun, 0, 0, (uint32_t)limit, block_bytes[lun]), 0);
			assert_int_equal(
			    write_same(f, c, lun, 0, 0, (uint32_t)limit + 1, block_bytes[lun]),
			    0x052400);
			/* No number means all blocks to the end, which is too many as well. */
			assert_int_equal(write_same(f, c, lun, 0, 0, 0, block_bytes[lun]),
					 0x052400);
		}
		assert_int_equal(write_same(f, c, lun, 0, 0, UINT32_MAX, block_bytes[lun]),
				 0x052400);
		assert_int_equal(write_same(f, c, lun, 0, capacity - 1, 2, block_bytes[lun]),
				 0x052100);
		assert_int_equal(write_same(f, c, lun, 0, UINT64_MAX, 1, block_bytes[lun]),
				 0x052100);
		assert_int_equal(write_same(f, c, lun, 0, capacity - 1, 0, block_bytes[lun]), 0);
	}
}

/* With UNMAP at any place and of any length; data around it stays. */
static void bug_67_write_same_with_unmap_at_any_alignment(void **state)
{
	enum { BLOCKS = 256 };
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint8_t expected[BLOCKS * 512];

	for (unsigned lba = 0; lba < 20; lba += 3) {
		for (unsigned blocks = 1; blocks < BLOCKS - 20; blocks += blocks < 20 ? 1 : 37) {
			real_pattern(expected, sizeof expected, lba + blocks);
			real_write(f, c, 0, 0, BLOCKS, expected);
			memset(f->pattern, 0, 512);
			assert_int_equal(write_same(f, c, 0, 0x08, lba, blocks, 512), 0);
			memset(expected + lba * 512, 0, blocks * 512);
			assert_memory_equal(real_read(f, c, 0, 0, BLOCKS), expected,
					    sizeof expected);
		}
	}
	/* A thick volume says that it cannot, and does nothing. */
	assert_int_equal(write_same(f, c, REAL_LUN_THICK, 0x08, 0, 8, 4096), 0x052400);
}

/* ---- 68 ---- */

static struct real_answer compare_write(struct real_fixture *f, struct pdu_client *c, uint32_t lba,
					uint8_t blocks, uint32_t edtl)
{
	uint8_t cdb[16] = {0x89};

	put_be64(cdb + 2, lba);
	cdb[13] = blocks;
	return real_run(f, c, 0, FLAG_WRITE, cdb, sizeof cdb, edtl, NULL, 0);
}

/* The pattern is both halves of the data-out: what is compared, and what is written then. */
static void halves_fill(struct real_fixture *f, const uint8_t *compare, const uint8_t *write,
			size_t bytes)
{
	memcpy(f->pattern, compare, bytes);
	memcpy(f->pattern + bytes, write, bytes);
}

static void bug_68_compare_and_write_lengths(void **state)
{
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	unsigned max = limits(f, c, 0)[5];
	static uint8_t zero[255 * 512], before[8 * 512];

	assert_true(max > 0);
	assert_int_equal(compare_write(f, c, 0, 0, 0).status, SCSI_GOOD);
	for (unsigned blocks = 1; blocks <= 255; blocks++) {
		struct real_answer answer;

		if (blocks > max) {
			answer = compare_write(f, c, 0, (uint8_t)blocks, blocks * 1024);
			assert_int_equal(answer.sense, 0x052400);
		}
		/* An expected length that is not twice the blocks: refused, and nothing written. */
		for (unsigned edtl = 0; edtl <= 8; edtl++) {
			if (edtl == 2 * blocks)
				continue;
			memset(f->pattern, 0, 8192);
			f->pattern[600] = 1;
			answer = compare_write(f, c, 0, (uint8_t)blocks, edtl * 512);
			assert_int_equal(answer.status, SCSI_CHECK_CONDITION);
			assert_int_equal(answer.sense >> 16, 5);
		}
	}
	memcpy(before, real_read(f, c, 0, 0, 8), sizeof before);
	assert_memory_equal(before, zero, sizeof before);
}

static void bug_68_miscompare_says_where(void **state)
{
	static const uint32_t offsets[] = {0, 1, 26, 27, 28, 255, 511, 512, 513, 1000, 1023};
	struct real_fixture *f = *state;
	struct pdu_client *c = real_login(f, 0, NULL, 0);
	uint8_t data[1024], other[1024], changed[1024];

	real_pattern(data, sizeof data, 5);
	real_pattern(other, sizeof other, 99);
	real_write(f, c, 0, 100, 2, data);
	for (size_t i = 0; i < ARRAY_SIZE(offsets) * 2; i++) {
		uint32_t at = offsets[i / 2];
		struct real_answer answer;

		memcpy(changed, data, sizeof data);
		changed[at] ^= 0x10;
		if (i % 2) /* only the first difference counts */
			memset(changed + at, 0xff, sizeof changed - at);
		if (changed[at] == data[at])
			continue;
		halves_fill(f, changed, other, sizeof data);
		answer = compare_write(f, c, 100, 2, 2048);
		assert_int_equal(answer.sense, 0x0e1d00);
		assert_int_equal(answer.sense_data[0], 0xf0); /* VALID */
		assert_int_equal(get_be32(answer.sense_data + 3), at);
		assert_memory_equal(real_read(f, c, 0, 100, 2), data, sizeof data);
	}
	halves_fill(f, data, other, sizeof data);
	assert_int_equal(compare_write(f, c, 100, 2, 2048).status, SCSI_GOOD);
	assert_memory_equal(real_read(f, c, 0, 100, 2), other, sizeof other);
}

/* Of several at once, from several sessions, one wins. */
static void bug_68_one_winner(void **state)
{
	static const uint8_t cdb[16] = {0x89, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1};
	struct real_fixture *f = *state;
	uint8_t data[1024] = {0}, now[512] = {0};

	for (unsigned i = 0; i < REAL_CLIENTS; i++)
		real_login(f, i, PDU_KEYS("ImmediateData=Yes"));
	for (unsigned round = 1; round < 50; round++) {
		uint32_t itt[REAL_CLIENTS];
		unsigned winners = 0;

		for (unsigned i = 0; i < REAL_CLIENTS; i++) {
			uint8_t bhs[BHS_BYTES];

			memcpy(data, now, sizeof now);
			memset(data + 512, (int)(round * REAL_CLIENTS + i), 512);
			real_command(&f->client[i], bhs, REAL_LUN_SLOW, FLAG_FINAL | FLAG_WRITE,
				     cdb, 16, 1024, data, 1024);
			itt[i] = bhs_itt(bhs);
			pdu_client_push(&f->client[i]);
		}
		for (unsigned i = 0; i < REAL_CLIENTS; i++) {
			struct real_answer answer = real_finish(f, &f->client[i], itt[i]);

			if (answer.status == SCSI_GOOD) {
				winners++;
				memset(now, (int)(round * REAL_CLIENTS + i), sizeof now);
			} else {
				assert_int_equal(answer.sense, 0x0e1d00);
			}
		}
		assert_int_equal(winners, 1);
		assert_memory_equal(real_read(f, &f->client[0], REAL_LUN_SLOW, 7, 1), now, 512);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    REAL_TEST(bug_67_write_same_limit_is_the_one_reported),
	    REAL_TEST(bug_67_write_same_with_unmap_at_any_alignment),
	    REAL_TEST(bug_68_compare_and_write_lengths),
	    REAL_TEST(bug_68_miscompare_says_where),
	    REAL_TEST(bug_68_one_winner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
