/* SPDX-License-Identifier: MIT
 *
 * The file of a database: its layout, its header in two copies, and the flush map on its way to the
 * volume and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workload/ese/page_rig.h"

static void parts_lie_one_behind_the_other(void **state)
{
	const uint64_t volumes[] = {16 * MIB, 20 * MIB + 4096, GIB, 524500000000, 16 * TIB};
	struct ese_layout layout;
	struct err err = {0};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(volumes); i++) {
		for (uint32_t files = 0; files <= 8; files += 4) {
			uint64_t map;

			assert_int_equal(
			    ese_layout_database(volumes[i], 0, 100, files, &layout, &err), 0);
			map = layout.map_offset_bytes + ese_flush_map_bytes(layout.pages);
			assert_int_equal(layout.map_offset_bytes, layout.pages * ESE_PAGE_BYTES);
			assert_true(layout.end_bytes <= volumes[i]);
			/* Nothing much is wasted. */
			assert_true(volumes[i] - layout.end_bytes < 3 * MIB + volumes[i] / 20000);
			if (!files)
				continue;
			assert_true(layout.checkpoint_offset_bytes >= map);
			assert_int_equal(layout.ring_offset_bytes % MIB, 0);
			assert_true(layout.ring_offset_bytes >=
				    layout.checkpoint_offset_bytes + 8192);
			assert_int_equal(layout.end_bytes, layout.ring_offset_bytes + files * MIB);
		}
	}
	assert_int_equal(ese_layout_database(16 * MIB, 0, 1000, 4, &layout, &err), -ENOSPC);
	assert_string_not_equal(err.what, "");
	assert_int_equal(ese_layout_database(16 * MIB, 16 * MIB, 10, 4, &layout, NULL), -ENOSPC);
	assert_int_equal(ese_layout_database(MIB, 0, 10, 4, &layout, NULL), -ENOSPC);
	assert_int_equal(ese_layout_database(16 * MIB, 4 * MIB, 10, 4, &layout, NULL), 0);
	assert_int_equal(layout.pages, 128);
	assert_int_equal(ese_layout_log(16 * MIB, 3 * MIB, 4, &layout, &err), 0);
	assert_int_equal(layout.checkpoint_offset_bytes, 3 * MIB);
	assert_int_equal(layout.end_bytes, 8 * MIB);
	assert_int_equal(ese_layout_log(16 * MIB, 13 * MIB, 4, &layout, NULL), -ENOSPC);
}

static void a_header_survives_its_bytes(void **state)
{
	uint8_t buf[ESE_FILE_HEADER_BYTES];
	struct ese_file_header header = {
	    .state = ESE_FILE_DIRTY,
	    .identity = {.creation = {1, 2, 3}, .database = 4, .seed = 5},
	    .sparse = true,
	    .sequence = 6,
	    .pages = 7,
	    .rules = {.seed = 8,
		      .pages = 9,
		      .record_bytes = 10,
		      .fanout = 11,
		      .children_max = 12,
		      .full_leaves = 0.125},
	    .log_signature = 13,
	    .attach_lgpos = 14,
	    .clean_dbtime = 15,
	};
	struct ese_file_header back;

	(void)state;
	ese_file_header_encode(&header, buf);
	assert_int_equal(ese_file_header_decode(buf, &back), 0);
	assert_int_equal(back.state, header.state);
	assert_memory_equal(back.identity.creation, header.identity.creation, 16);
	assert_int_equal(back.identity.database, header.identity.database);
	assert_int_equal(back.identity.seed, header.identity.seed);
	assert_true(back.sparse);
	assert_int_equal(back.sequence, 6);
	assert_int_equal(back.pages, 7);
	assert_true(ese_file_same_rules(&back.rules, &header.rules));
	assert_int_equal(back.log_signature, 13);
	assert_int_equal(back.attach_lgpos, 14);
	assert_int_equal(back.clean_dbtime, 15);
	for (unsigned bit = 0; bit < 160 * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_true(ese_file_header_decode(buf, &back) < 0);
		buf[bit / 8] ^= (uint8_t)(1U << bit % 8);
	}
	memset(buf, 0, sizeof buf);
	assert_int_equal(ese_file_header_decode(buf, &back), -ENOENT);
}

/* On zeros two small writes make a database; elsewhere every page is written. */
static void create_writes_what_it_must(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, 1, true, true, 0);
	assert_int_equal(rig.fake.writes, 2 + 2); /* and two for its use */
	assert_true(ese_file_header(rig.file)->sparse);
	rig_free(&rig);

	rig_init(&rig, 2, true, false, 0);
	assert_true(rig.fake.writes >= rig.rules.pages / ESE_RUN_PAGES);
	assert_true(rig.fake.writes < rig.rules.pages / ESE_RUN_PAGES + 12);
	assert_false(ese_file_header(rig.file)->sparse);
	assert_int_equal(rig_checksum(&rig).bad, 0);
	/* One more on the same volume, said to be zero: it is not, so it is written whole. */
	rig.known_zero = true;
	rig.identity.creation[9] = 77;
	rig_open(&rig);
	assert_int_equal(rig_create(&rig), 0);
	assert_false(ese_file_header(rig.file)->sparse);
	rig_open(&rig);
	assert_int_equal(rig_attach(&rig), 0);
	assert_int_equal(ese_file_header(rig.file)->identity.creation[9], 77);
	assert_int_equal(rig_checksum(&rig).bad, 0);
	assert_int_equal(rig.mismatches, 0);
	rig_free(&rig);
}

static void pass_over_written_pages_only(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, 2, true, true, 0);
	rig.written_only = true;
	assert_int_equal(rig_checksum(&rig).pages, 0);
	assert_int_equal(rig_write(&rig, 10, 8, 0), 0);
	assert_int_equal(rig_write(&rig, 19, 3, 0), 0);
	assert_int_equal(rig_write(&rig, rig.rules.pages - 1, 1, 0), 0);
	rig.fake.memory[20 * ESE_PAGE_BYTES + 5] ^= 1;
	assert_int_equal(rig_checksum(&rig).pages, 12);
	assert_int_equal(rig_checksum(&rig).bad, 1);
	rig.written_only = false;
	assert_int_equal(rig_checksum(&rig).pages, rig.rules.pages - ESE_PAGE_FIRST);
	rig.fake.fault = FAKE_GONE;
	assert_int_equal(rig_checksum(&rig).unreadable, rig.rules.pages - ESE_PAGE_FIRST);
	assert_int_equal(rig_checksum(&rig).status, -ENODEV);
	rig_free(&rig);
}

/* What a page of the earlier creation is when the new one's write of it was lost. */
static void the_earlier_creation_is_foreign(void **state)
{
	struct ese_page_io pio;
	struct rig rig;
	unsigned different;

	(void)state;
	rig_init(&rig, 3, true, false, 0);
	rig.identity.creation[9] = 77;
	rig.fake.fault = FAKE_LOST;
	rig.fake.fault_count = 1;
	rig.fake.from = 16 * ESE_PAGE_BYTES;
	rig_open(&rig);
	assert_int_equal(rig_create(&rig), 0);
	rig_open(&rig);
	assert_int_equal(rig_attach(&rig), 0);
	assert_int_equal(rig_checksum(&rig).of_kind[MISMATCH_FOREIGN], ESE_RUN_PAGES);
	assert_int_equal(rig_read(&rig, 16, 1, &pio, &different), -EUCLEAN);
	assert_int_equal(pio.kind[0], MISMATCH_FOREIGN);
	rig_free(&rig);
}

static void either_copy_of_the_header_will_do(void **state)
{
	struct rig rig;

	(void)state;
	for (unsigned copy = 0; copy < 2; copy++) {
		rig_init(&rig, 4, true, true, 0);
		rig.fake.memory[copy * ESE_PAGE_BYTES + 50] ^= 1;
		rig_open(&rig);
		assert_int_equal(rig_attach(&rig), 0);
		assert_int_equal(ese_file_header(rig.file)->state, ESE_FILE_DIRTY);
		assert_int_equal(ese_file_header(rig.file)->log_signature, RIG_SIGNATURE);
		rig.fake.memory[(1 - copy) * ESE_PAGE_BYTES + 50] ^= 1;
		rig_open(&rig);
		assert_int_equal(rig_attach(&rig), -EUCLEAN);
		rig_free(&rig);
	}
}

static void what_is_no_database_is_refused(void **state)
{
	struct ese_rules_config other;
	struct err err = {0};
	struct rig rig;

	(void)state;
	rig_init(&rig, 5, true, false, 0);
	other = rig.rules.config;
	other.record_bytes = 1000;
	assert_int_equal(ese_rules_init(&rig.rules, &other, &err), 0);
	rig_open(&rig);
	assert_int_equal(rig_attach(&rig), -EMEDIUMTYPE);
	assert_null(ese_file_pager(rig.file));
	rng_fill(&rig.rng, rig.fake.memory, RIG_VOLUME_BYTES);
	rig_open(&rig);
	assert_int_equal(rig_attach(&rig), -ENOENT);
	rig.fake.fault = FAKE_GONE;
	assert_int_equal(rig_attach(&rig), -ENODEV);
	rig_free(&rig);
}

/* Every I/O of create fails once: it says so, and what it leaves is no database. */
static void create_can_fail_anywhere(void **state)
{
	(void)state;
	for (unsigned nth = 0;; nth += nth < 6 || nth > 86 ? 1 : 8) {
		struct rig rig;
		int r;

		rig_init(&rig, 6, true, false, 0);
		rig.identity.creation[9] = 77;
		rig.fake.fault = FAKE_FAILED_NOT_DONE;
		rig.fake.skip = nth;
		rig.fake.fault_count = 1;
		rig_open(&rig);
		r = rig_create(&rig);
		if (rig.fake.fault_count) {
			assert_int_equal(r, 0);
			rig_free(&rig);
			assert_true(nth > 10);
			return;
		}
		assert_int_equal(r, -EIO);
		rig_open(&rig);
		r = rig_attach(&rig);
		/* The one before, as long as nothing of it was touched; or the new one, complete.
		 */
		if (r == 0)
			assert_int_equal(rig_checksum(&rig).bad, 0);
		else
			assert_int_equal(r, -ENOENT);
		rig_free(&rig);
	}
}

/* ---- flush map ---- */

static void the_map_survives_the_volume(void **state)
{
	struct ese_identity identity = {.creation = {7}, .database = 1};
	uint8_t buf[ESE_MAP_PAGE_BYTES];
	struct ese_flush_map map, back;
	const uint64_t pages = 3 * ESE_MAP_ENTRIES + 5;

	(void)state;
	assert_int_equal(ese_flush_map_init(&map, &identity, pages), 0);
	assert_int_equal(ese_flush_map_init(&back, &identity, pages), 0);
	assert_int_equal(map.map_pages, 4);
	for (uint64_t page = 0; page < pages; page += 3) {
		uint8_t flush = ese_flush_map_begin(&map, page);

		assert_true(flush != ESE_FLUSH_NEVER && flush != ESE_FLUSH_UNKNOWN);
		assert_true(ese_flush_map_unsure(&map, page));
		ese_flush_map_end(&map, page, flush, true);
		assert_false(ese_flush_map_unsure(&map, page));
	}
	assert_int_equal(map.dirty_count, 4);
	for (uint64_t i = 0; i < map.map_pages; i++) {
		ese_flush_map_encode(&map, i, buf);
		assert_int_equal(ese_flush_map_decode(&back, i, buf), 0);
	}
	assert_memory_equal(map.flush, back.flush, pages);
	/* A page of another place, a damaged one: nothing is known, which offends nobody. */
	ese_flush_map_encode(&map, 1, buf);
	assert_int_equal(ese_flush_map_decode(&back, 2, buf), -EBADMSG);
	assert_int_equal(ese_flush_map_get(&back, 2 * ESE_MAP_ENTRIES), ESE_FLUSH_UNKNOWN);
	buf[99] ^= 4;
	assert_int_equal(ese_flush_map_decode(&back, 1, buf), -EBADMSG);
	memset(buf, 0, sizeof buf);
	assert_int_equal(ese_flush_map_decode(&back, 1, buf), 0);
	assert_int_equal(ese_flush_map_get(&back, ESE_MAP_ENTRIES), ESE_FLUSH_NEVER);
	ese_flush_map_done(&map);
	ese_flush_map_done(&back);
}

/* Numbers go round without the two that mean something else, and none comes twice in a row. */
static void numbers_go_round(void **state)
{
	struct ese_identity identity = {.creation = {7}};
	struct ese_flush_map map;

	(void)state;
	assert_int_equal(ese_flush_map_init(&map, &identity, 10), 0);
	for (unsigned stride = 0; stride < 2; stride++) {
		bool seen[256] = {false};
		unsigned count = 0;

		map.stride = stride ? ESE_FLUSH_STRIDE_REDO : ESE_FLUSH_STRIDE;
		for (unsigned i = 0; i < ESE_FLUSH_LAST; i++) {
			uint8_t flush = ese_flush_map_begin(&map, 4);

			count += !seen[flush];
			seen[flush] = true;
			ese_flush_map_end(&map, 4, flush, true);
		}
		assert_int_equal(count, ESE_FLUSH_LAST);
		assert_false(seen[ESE_FLUSH_NEVER] || seen[ESE_FLUSH_UNKNOWN]);
	}
	ese_flush_map_done(&map);
}

/* A damaged map page costs the detection of stale pages below it, not the database. */
static void a_damaged_map_page_is_survived(void **state)
{
	uint64_t different = 0;
	struct rig rig;

	(void)state;
	rig_init(&rig, 8, true, true, 0);
	rig_load(&rig, 100, &different);
	assert_int_equal(rig_detach(&rig), 0);
	rig.fake.memory[rig.layout.map_offset_bytes + 700] ^= 1;
	rig_open(&rig);
	assert_int_equal(rig_attach(&rig), 0);
	assert_int_equal(rig_use(&rig), 0);
	rig_load(&rig, 300, &different);
	assert_int_equal(different, 0);
	assert_int_equal(rig_checksum(&rig).bad, 0);
	assert_int_equal(rig.mismatches, 0);
	rig_free(&rig);
}

/* The whole map of a TB takes 64 I/Os at most, and a few changes far fewer. */
static void the_map_is_written_in_long_runs(void **state)
{
	struct ese_flush_map map;
	struct ese_flush_map_io io;
	struct fake_device fake;
	struct ese_identity identity = {.creation = {7}};
	struct rig rig = {.status = 1};
	const uint64_t pages = 16 << 20;

	(void)state;
	assert_int_equal(loop_new_virtual(0, &rig.loop), 0);
	fake_init(&fake, rig.loop, "db1", ese_flush_map_bytes(pages), 1000);
	assert_int_equal(ese_flush_map_init(&map, &identity, pages), 0);
	assert_int_equal(ese_flush_map_io_init(&io, &map), 0);
	io.layer = &fake.layer;
	io.loop = rig.loop;
	for (uint64_t page = 5; page < pages; page += 1500)
		ese_flush_map_end(&map, page, ese_flush_map_begin(&map, page), true);
	ese_flush_map_persist(&io, false, rig_done, &rig);
	/* What changes while the first run is written is written with the next call. */
	ese_flush_map_end(&map, 6, ese_flush_map_begin(&map, 6), true);
	assert_int_equal(rig_wait(&rig), 0);
	assert_true(io.writes <= 66);
	assert_int_equal(map.dirty_count, 1);
	rig.status = 1;
	ese_flush_map_persist(&io, false, rig_done, &rig);
	assert_int_equal(rig_wait(&rig), 0);
	assert_true(io.writes <= 67);
	assert_int_equal(map.dirty_count, 0);
	/* A write that fails leaves its pages dirty. */
	ese_flush_map_end(&map, 7, ese_flush_map_begin(&map, 7), true);
	fake.fault = FAKE_FAILED_NOT_DONE;
	fake.fault_count = 1;
	rig.status = 1;
	ese_flush_map_persist(&io, false, rig_done, &rig);
	assert_int_equal(rig_wait(&rig), -EIO);
	assert_int_equal(map.dirty_count, 1);
	ese_flush_map_io_done(&io);
	ese_flush_map_done(&map);
	fake_done(&fake);
	loop_free(rig.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parts_lie_one_behind_the_other),
	    cmocka_unit_test(a_header_survives_its_bytes),
	    cmocka_unit_test(create_writes_what_it_must),
	    cmocka_unit_test(pass_over_written_pages_only),
	    cmocka_unit_test(the_earlier_creation_is_foreign),
	    cmocka_unit_test(either_copy_of_the_header_will_do),
	    cmocka_unit_test(what_is_no_database_is_refused),
	    cmocka_unit_test(create_can_fail_anywhere),
	    cmocka_unit_test(the_map_survives_the_volume),
	    cmocka_unit_test(numbers_go_round),
	    cmocka_unit_test(a_damaged_map_page_is_survived),
	    cmocka_unit_test(the_map_is_written_in_long_runs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
