/* SPDX-License-Identifier: MIT
 *
 * Pages, pager and file: what is written comes back, every fault of a device is found and has its
 * name, and nothing is reported that is none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workload/ese/page_rig.h"

static uint8_t *at(struct rig *rig, uint64_t page)
{
	return rig->fake.memory + page * ESE_PAGE_BYTES;
}

/* ---- bytes ---- */

static void each_image_survives_its_bytes(void **state)
{
	struct rig rig;
	_Alignas(64) static uint8_t buf[ESE_PAGE_BYTES];

	(void)state;
	rig_init(&rig, 1, true, true, 0);
	for (uint32_t page = ESE_PAGE_FIRST; page < rig.rules.pages; page++) {
		struct ese_page_expect expect = {.flush = 17, .newer_dbtime = UINT64_MAX};
		struct ese_page_found found;
		struct ese_image back;

		rig_change(&rig, page);
		ese_page_encode(&rig.identity, page, 17, &rig.model[page], buf);
		assert_int_equal(ese_page_check(&rig.identity, buf, page, &expect, &found), -1);
		assert_int_equal(found.dbtime, rig.model[page].dbtime);
		ese_image_init(&back, rig.pool, page);
		assert_int_equal(ese_page_decode(buf, &back), 0);
		assert_true(ese_image_equal(&back, &rig.model[page]));
		assert_int_equal(back.bytes, rig.model[page].bytes);
		ese_image_clear(&back);
	}
	rig_free(&rig);
}

static int check_bytes(struct rig *rig, const void *buf, uint64_t page, uint8_t flush)
{
	struct ese_page_expect expect = {
	    .flush = flush, .newer_dbtime = UINT64_MAX, .unwritten_is_zero = true};
	struct ese_page_found found;

	return ese_page_check(&rig->identity, buf, page, &expect, &found);
}

static void every_flipped_bit_is_damage(void **state)
{
	_Alignas(64) static uint8_t buf[ESE_PAGE_BYTES];
	struct rig rig;

	(void)state;
	rig_init(&rig, 2, true, true, 0);
	for (unsigned i = 0; i < 4000; i++) {
		uint64_t page = rig_pick(&rig);
		/* All of the header and of the stamps, then anywhere. */
		uint64_t bit = i < 640	      ? i
			       : i < 640 + 64 ? ((i - 640) / 8 + 1) * 4096 * 8 - 8 + (i - 640) % 8
					      : rng_below(&rig.rng, ESE_PAGE_BYTES * 8);
		int kind;

		ese_page_encode(&rig.identity, page, 200, &rig.model[page], buf);
		buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
		kind = check_bytes(&rig, buf, page, 200);
		if (kind != MISMATCH_CORRUPT)
			fail_msg("bit %u of page %u: kind %d", (unsigned)bit, (unsigned)page, kind);
	}
	rig_free(&rig);
}

static void every_mixture_of_units_is_torn(void **state)
{
	_Alignas(64) static uint8_t old[ESE_PAGE_BYTES], now[ESE_PAGE_BYTES], buf[ESE_PAGE_BYTES];
	struct rig rig;

	(void)state;
	rig_init(&rig, 3, true, true, 0);
	for (unsigned mask = 1; mask < 255; mask++) {
		uint64_t page = rig_pick(&rig);
		bool zeros = mask % 3 == 0;

		memset(old, 0, sizeof old);
		if (!zeros)
			ese_page_encode(&rig.identity, page, 254, &rig.model[page], old);
		rig_change(&rig, page);
		ese_page_encode(&rig.identity, page, 1, &rig.model[page], now);
		for (unsigned i = 0; i < ESE_PAGE_UNITS; i++)
			memcpy(buf + (size_t)i * 4096,
			       (mask >> i & 1 ? now : old) + (size_t)i * 4096, 4096);
		assert_int_equal(check_bytes(&rig, buf, page, 1), MISMATCH_TORN);
		/* A write that stopped within a unit. */
		memcpy(buf, old, sizeof buf);
		memcpy(buf, now, (size_t)(mask % 8 + 1) * 4096 - 512);
		if (mask % 8 < 7 || !zeros)
			assert_int_equal(check_bytes(&rig, buf, page, 1), MISMATCH_TORN);
	}
	rig_free(&rig);
}

/* ---- faults of a device ---- */

static void expect_bad(struct rig *rig, uint64_t page, enum mismatch_kind kind)
{
	struct ese_page_io pio;
	unsigned different;
	uint64_t before = rig->mismatches, counted = rig->check.mismatches[kind];

	assert_int_equal(rig_read(rig, page, 1, &pio, &different), -EUCLEAN);
	assert_int_equal(pio.bad, 1);
	assert_int_equal(pio.kind[0], kind);
	assert_int_equal(rig->mismatches, before + 1);
	assert_int_equal(rig->check.mismatches[kind], counted + 1);
	assert_int_equal(rig->last.kind, kind);
	assert_int_equal(rig->last.offset_bytes, page * ESE_PAGE_BYTES);
	assert_string_equal(rig->last.volume, "db1");
}

static void expect_good(struct rig *rig, uint64_t page)
{
	struct ese_page_io pio;
	unsigned different;

	assert_int_equal(rig_read(rig, page, 1, &pio, &different), 0);
	assert_int_equal(different, 0);
}

static void arm(struct rig *rig, enum fake_fault fault)
{
	rig->fake.fault = fault;
	rig->fake.fault_count = 1;
}

static void one_fault(struct rig *rig, uint64_t page)
{
	unsigned before = (unsigned)rng_below(&rig->rng, 3),
		 which = (unsigned)rng_below(&rig->rng, 7);
	enum fake_fault fault[] = {FAKE_LOST, FAKE_TORN, FAKE_MISDIRECTED, FAKE_CORRUPT};
	uint64_t victim = page + MIB / ESE_PAGE_BYTES;

	for (unsigned i = 0; i < before; i++)
		assert_int_equal(rig_write(rig, page, 1, 0), 0);
	before = ese_flush_map_get(ese_pager_map(ese_file_pager(rig->file)), page);
	if (which < ARRAY_SIZE(fault))
		arm(rig, fault[which]);
	assert_int_equal(rig_write(rig, page, 1, 0), 0);
	if (which == 0) {
		expect_bad(rig, page, before ? MISMATCH_STALE : MISMATCH_NEVER_WRITTEN);
	} else if (which == 1) {
		expect_bad(rig, page, MISMATCH_TORN);
	} else if (which == 2) {
		expect_bad(rig, page, before ? MISMATCH_STALE : MISMATCH_NEVER_WRITTEN);
		expect_bad(rig, victim, MISMATCH_MISDIRECTED);
		assert_int_equal(rig_write(rig, victim, 1, 0), 0);
	} else if (which == 3) {
		expect_bad(rig, page, MISMATCH_CORRUPT);
	} else if (which == 4) {
		struct ese_identity other = rig->identity;

		other.creation[5] ^= 1;
		ese_page_encode(&other, page, 9, &rig->model[page], at(rig, page));
		expect_bad(rig, page, MISMATCH_FOREIGN);
	} else if (which == 5) {
		struct ese_identity other = rig->identity;

		other.database++;
		ese_page_encode(&other, page, 9, &rig->model[page], at(rig, page));
		expect_bad(rig, page, MISMATCH_MISDIRECTED);
	} else {
		memset(at(rig, page), 0, ESE_PAGE_BYTES);
		expect_bad(rig, page, MISMATCH_NEVER_WRITTEN);
	}
	/* Written again, it is good again. */
	assert_int_equal(rig_write(rig, page, 1, 0), 0);
	expect_good(rig, page);
}

static void each_fault_is_found_and_named(void **state)
{
	struct rig rig;
	uint64_t different = 0;

	(void)state;
	rig_init(&rig, 4, true, true, 0);
	for (uint64_t i = 0; i < 200; i++) {
		one_fault(&rig, ESE_PAGE_FIRST + i * 3);
		rig_load(&rig, 3, &different);
	}
	assert_int_equal(different, 0);
	assert_int_equal(rig_checksum(&rig).bad, 0);
	rig_free(&rig);
}

/* In a run of pages only the bad one is bad. */
static void a_bad_page_does_not_spoil_its_run(void **state)
{
	struct ese_page_io pio;
	struct rig rig;
	unsigned different;

	(void)state;
	rig_init(&rig, 5, true, true, 0);
	assert_int_equal(rig_write(&rig, 10, 8, 0), 0);
	at(&rig, 13)[5000] ^= 1;
	memset(at(&rig, 16), 0, ESE_PAGE_BYTES);
	assert_int_equal(rig_read(&rig, 10, 8, &pio, &different), -EUCLEAN);
	assert_int_equal(pio.bad, 1 << 3 | 1 << 6);
	assert_int_equal(pio.kind[3], MISMATCH_CORRUPT);
	assert_int_equal(pio.kind[6], MISMATCH_NEVER_WRITTEN);
	assert_int_equal(different, 0);
	assert_int_equal(rig_checksum(&rig).bad, 2);
	rig_free(&rig);
}

/* What lies on a page that was never flushed although it read as zeros. */
static void a_page_never_flushed_must_be_zero(void **state)
{
	struct rig rig;
	struct ese_identity other;

	(void)state;
	rig_init(&rig, 6, true, true, 0);
	expect_good(&rig, 50);
	at(&rig, 50)[100] = 1;
	expect_bad(&rig, 50, MISMATCH_NEVER_WRITTEN);
	ese_page_encode(&rig.identity, 50, 9, &rig.model[50], at(&rig, 50));
	expect_good(&rig, 50); /* as created */
	rig_change(&rig, 51);
	ese_page_encode(&rig.identity, 51, 9, &rig.model[51], at(&rig, 51));
	expect_bad(&rig, 51, MISMATCH_NEVER_WRITTEN);
	other = rig.identity;
	other.creation[0]++;
	ese_page_encode(&other, 52, 9, &rig.model[52], at(&rig, 52));
	expect_bad(&rig, 52, MISMATCH_FOREIGN);
	rig_free(&rig);
}

/* ---- nothing is reported that is none ---- */

static void clean_runs_report_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		uint64_t different = 0;
		struct rig rig;

		rig_init(&rig, seed, seed != 4, seed % 2, seed == 2 ? 1000 : 0);
		for (unsigned round = 0; round < 4; round++) {
			rig_load(&rig, 250, &different);
			assert_int_equal(rig_detach(&rig), 0);
			if (rig.content)
				rig_open(&rig);
			assert_int_equal(rig_attach(&rig), 0);
			assert_int_equal(ese_file_header(rig.file)->state, ESE_FILE_CLEAN);
			assert_int_equal(rig_use(&rig), 0);
		}
		if (different || rig.mismatches || rig_checksum(&rig).bad)
			fail_msg("seed %u", (unsigned)seed);
		rig_free(&rig);
	}
}

/* A write that failed may or may not have been done; nobody is blamed until it is done again. */
static void failed_writes_leave_doubt_not_blame(void **state)
{
	struct ese_page_io pio;
	struct rig rig;
	unsigned different;

	(void)state;
	rig_init(&rig, 7, true, true, 0);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t page = rig_pick(&rig);

		arm(&rig, i % 2 ? FAKE_FAILED_DONE : FAKE_FAILED_NOT_DONE);
		rig.fake.fault_count = 1 + i % 3;
		while (rig_write(&rig, page, 1, 0) < 0) {
			assert_int_equal(rig_read(&rig, page, 1, &pio, &different), 0);
			assert_int_equal(pio.unsure, 1);
		}
		expect_good(&rig, page);
	}
	/* The number of a failed write is not taken again: its loss would not be seen. */
	arm(&rig, FAKE_FAILED_DONE);
	assert_int_equal(rig_write(&rig, 20, 1, 0), -EIO);
	arm(&rig, FAKE_LOST);
	assert_int_equal(rig_write(&rig, 20, 1, 0), 0);
	expect_bad(&rig, 20, MISMATCH_STALE);
	assert_int_equal(rig.mismatches, 1);
	rig_free(&rig);
}

static void note(struct ese_page_io *pio)
{
	*(bool *)pio->owner = true;
}

/* Maintenance reads pages that are being written. */
static void a_read_beside_a_write_is_unsure(void **state)
{
	bool read_ended = false, write_ended = false;
	struct ese_page_io read = {.first = 30, .count = 8, .done = note, .owner = &read_ended};
	struct ese_page_io write = {.first = 33, .count = 2, .done = note, .owner = &write_ended};
	struct rig rig;

	(void)state;
	rig_init(&rig, 8, true, true, 1000000);
	write.images[0] = &rig.model[33];
	write.images[1] = &rig.model[34];
	for (unsigned i = 0; i < 2; i++) {
		rig_change(&rig, 33);
		if (i == 0)
			ese_pager_read(ese_file_pager(rig.file), &read);
		ese_pager_write(ese_file_pager(rig.file), &write);
		if (i == 1)
			ese_pager_read(ese_file_pager(rig.file), &read);
		read_ended = write_ended = false;
		loop_run_until(rig.loop, loop_now_ns(rig.loop) + NS_PER_S);
		assert_true(read_ended && write_ended);
		assert_int_equal(read.status, 0);
		assert_int_equal(read.unsure, 3 << 3);
	}
	assert_int_equal(rig.mismatches, 0);
	expect_good(&rig, 33);
	rig_free(&rig);
}

/* ---- crashes ---- */

/* The pages changed since the checkpoint are written again, as redo does. */
static void redo(struct rig *rig, const uint8_t *changed)
{
	struct ese_page_io pio;
	unsigned different;

	for (uint64_t page = ESE_PAGE_FIRST; page < rig->rules.pages; page++) {
		if (!changed[page])
			continue;
		if (changed[page] == 1 && rig_read(rig, page, 1, &pio, &different) != 0) {
			assert_int_equal(rig->status, -EUCLEAN);
			assert_int_equal(pio.kind[0], MISMATCH_TORN);
		}
		assert_int_equal(rig_write(rig, page, 1, 0), 0);
	}
}

/* The power went while PAGE was written: some units are new, some old. */
static void tear(struct rig *rig, uint64_t page)
{
	static uint8_t old[ESE_PAGE_BYTES];

	memcpy(old, at(rig, page), sizeof old);
	arm(rig, FAKE_FAILED_DONE);
	assert_int_equal(rig_write(rig, page, 1, 0), -EIO);
	for (unsigned i = 0; i < ESE_PAGE_UNITS; i++)
		if (rng_below(&rig->rng, 2))
			memcpy(at(rig, page) + (size_t)i * ESE_PAGE_UNIT_BYTES,
			       old + (size_t)i * ESE_PAGE_UNIT_BYTES, ESE_PAGE_UNIT_BYTES);
}

static void crash_once(struct rig *rig)
{
	static uint8_t changed[RIG_INITIAL_PAGES + 1];
	uint64_t different = 0, checkpoint;

	rig_load(rig, 60, &different);
	assert_int_equal(rig_persist(rig), 0);
	checkpoint = rig->dbtime;
	memset(changed, 0, sizeof changed);
	for (unsigned i = 0; i < 40; i++) {
		uint64_t page = rig_pick(rig);
		unsigned how = (unsigned)rng_below(&rig->rng, 8);

		/* Clean pages are rewritten as well, and some writes are under way at the end. */
		if (how == 0 && !changed[page])
			assert_int_equal(rig_write(rig, page, 1, 1), 0);
		if (how == 1)
			tear(rig, page);
		else if (how > 1)
			assert_int_equal(rig_write(rig, page, 1, 0), 0);
		if (how > 0) {
			/* Some are made by redo without a look at the volume. */
			changed[page] = rng_below(&rig->rng, 4) ? 1 : 2;
		}
		if (how == 7 && rig->fake.fault_count == 0)
			assert_int_equal(rig_persist(rig), 0);
	}
	rig_open(rig);
	assert_int_equal(rig_attach(rig), 0);
	assert_int_equal(ese_file_header(rig->file)->state, ESE_FILE_DIRTY);
	ese_pager_recovering(ese_file_pager(rig->file), checkpoint);
	redo(rig, changed);
	ese_pager_recovering(ese_file_pager(rig->file), UINT64_MAX);
	rig_load(rig, 60, &different);
	assert_int_equal(different, 0);
}

static void crashes_blame_nobody(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct rig rig;

		rig_init(&rig, seed, true, seed % 2, 0);
		for (unsigned i = 0; i < 12; i++)
			crash_once(&rig);
		if (rig.mismatches || rig_checksum(&rig).bad)
			fail_msg("seed %u", (unsigned)seed);
		rig_free(&rig);
	}
}

/* A write that the checkpoint builds on was lost: found after the crash too. */
static void a_write_lost_before_the_checkpoint_is_stale(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, 9, true, true, 0);
	assert_int_equal(rig_write(&rig, 40, 1, 0), 0);
	arm(&rig, FAKE_LOST);
	assert_int_equal(rig_write(&rig, 40, 1, 0), 0);
	assert_int_equal(rig_persist(&rig), 0);
	rig_open(&rig);
	assert_int_equal(rig_attach(&rig), 0);
	ese_pager_recovering(ese_file_pager(rig.file), rig.dbtime);
	expect_bad(&rig, 40, MISMATCH_STALE);
	rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_image_survives_its_bytes),
	    cmocka_unit_test(every_flipped_bit_is_damage),
	    cmocka_unit_test(every_mixture_of_units_is_torn),
	    cmocka_unit_test(each_fault_is_found_and_named),
	    cmocka_unit_test(a_bad_page_does_not_spoil_its_run),
	    cmocka_unit_test(a_page_never_flushed_must_be_zero),
	    cmocka_unit_test(clean_runs_report_nothing),
	    cmocka_unit_test(failed_writes_leave_doubt_not_blame),
	    cmocka_unit_test(a_read_beside_a_write_is_unsure),
	    cmocka_unit_test(crashes_blame_nobody),
	    cmocka_unit_test(a_write_lost_before_the_checkpoint_is_stale),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
