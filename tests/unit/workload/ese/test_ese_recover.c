/* SPDX-License-Identifier: MIT
 *
 * Redo and soft recovery on a store of make-believe pages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workload/ese/crash_device.h"
#include "tests/unit/workload/ese/page_store.h"

enum { BASE = 64 << 10, FILES = 8 };

struct fixture {
	struct loop *loop;
	struct crash_device device;
	struct ese_log_area area;
	struct ese_log *log;
	struct page_model model;
	struct page_store store; /* what recovery works on */
	struct ese_recovery *recovery;
	struct ese_recovery_result result;
	bool done;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct ese_log_config config;

	assert_int_equal(loop_new_virtual(0, &f->loop), 0);
	crash_device_init(&f->device, f->loop, "db1", BASE + FILES * MIB, 1);
	f->area = (struct ese_log_area){
	    .layer = &f->device.layer,
	    .ring_offset_bytes = BASE,
	    .files = FILES,
	    .signature = 99,
	};
	config = (struct ese_log_config){.loop = f->loop, .area = f->area, .epoch = 1};
	assert_int_equal(ese_log_open(&config, &f->log, NULL), 0);
	model_init(&f->model, 3);
	f->store.loop = f->loop;
	f->store.fetch_ns = 5 * NS_PER_MS;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ese_recovery_free(f->recovery);
	ese_log_close(f->log);
	crash_device_fini(&f->device);
	loop_free(f->loop);
	free(f);
	return 0;
}

/* ---- doing and recovering ---- */

static void do_records(struct fixture *f, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		model_record(&f->model, f->log);
		if (i % 16 == 0) {
			ese_log_flush(f->log, ese_log_tip(f->log));
			loop_run_until(f->loop, loop_now_ns(f->loop) + 10 * NS_PER_MS);
		}
		if (rng_below(&f->model.rng, 4) == 0) {
			uint64_t page = rng_below(&f->model.rng, STORE_PAGES);

			f->store.pages[page] = f->model.pages[page];
			f->model.clean[page] = true;
		}
	}
	ese_log_flush(f->log, ese_log_tip(f->log));
	loop_run_until(f->loop, loop_now_ns(f->loop) + NS_PER_S);
}

static void recovered(void *arg, const struct ese_recovery_result *result)
{
	struct fixture *f = arg;

	assert_false(f->done);
	f->result = *result;
	f->done = true;
}

static void recover(struct fixture *f, uint64_t redo_lgpos, uint64_t flushed_lgpos)
{
	struct ese_recovery_config config = {
	    .loop = f->loop,
	    .area = f->area,
	    .checkpoint = {.redo_lgpos = redo_lgpos, .flushed_lgpos = flushed_lgpos},
	    .ops = &page_store_ops,
	    .ops_arg = &f->store,
	    .done = recovered,
	    .arg = f,
	};

	f->done = false;
	f->recovery = ese_recovery_free(f->recovery);
	assert_int_equal(ese_recover(&config, &f->recovery, NULL), 0);
	for (unsigned i = 0; i < 1000 && !f->done; i++)
		loop_run_until(f->loop, loop_now_ns(f->loop) + NS_PER_S);
	assert_true(f->done);
	assert_int_equal(f->store.held, 0);
}

static void redoes_what_is_missing(void **state)
{
	struct fixture *f = *state;

	for (unsigned round = 0; round < 2; round++) {
		do_records(f, 500);
		f->store.fetch_ns = round ? 0 : 5 * NS_PER_MS;
		recover(f, MIB, ese_log_flushed(f->log));
		assert_int_equal(f->result.status, 0);
		assert_memory_equal(f->store.pages, f->model.pages, sizeof f->model.pages);
		assert_true(f->result.updates_done > 0);
		assert_true(f->result.updates_there > 0);
		assert_int_equal(f->result.dbtime, f->model.dbtime);
		assert_int_equal(f->result.records, 500 * (round + 1));
		assert_int_equal(f->result.log.end, ESE_LOG_END_REACHED);
		assert_true(f->result.files > 1.0 * (round + 1));
		assert_int_equal(f->store.batch_max, ESE_PREREAD_MAX);
	}
	/* Once more: everything is there. */
	recover(f, MIB, 0);
	assert_int_equal(f->result.updates_done, 0);
}

static void lost_flush_is_named(void **state)
{
	struct fixture *f = *state;
	struct store_page before;
	uint64_t redo_lgpos;

	do_records(f, 100);
	redo_lgpos = ese_log_tip(f->log);
	memcpy(f->store.pages, f->model.pages, sizeof f->store.pages);
	memset(f->model.clean, 0, sizeof f->model.clean);
	before = f->store.pages[150];
	do_records(f, 300);
	/* The page's write before the checkpoint had been acknowledged and was lost. */
	f->store.pages[150] = (struct store_page){before.dbtime - 1, 12345};
	recover(f, redo_lgpos, 0);
	assert_int_equal(f->result.status, -EUCLEAN);
	assert_int_equal(f->result.pages_wrong, 1);
	assert_int_equal(f->store.lost_count, 1);
	assert_int_equal(f->store.lost_page, 150);
	assert_int_equal(f->store.lost_found, before.dbtime - 1);
	assert_int_equal(f->store.lost_expected, before.dbtime);
	/* All others are as they should be. */
	f->store.pages[150] = f->model.pages[150];
	assert_memory_equal(f->store.pages, f->model.pages, sizeof f->model.pages);
}

static void torn_page_is_mended(void **state)
{
	struct fixture *f = *state;
	unsigned torn = 0;

	do_records(f, 400);
	for (unsigned i = 0; i < STORE_PAGES; i += 7)
		if (f->model.pages[i].dbtime) {
			f->store.pages[i] = (struct store_page){ESE_DBTIME_UNREADABLE, 666};
			torn++;
		}
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, 0);
	assert_int_equal(f->result.pages_mended, torn);
	assert_memory_equal(f->store.pages, f->model.pages, sizeof f->model.pages);
}

static void errors_end_it(void **state)
{
	struct fixture *f = *state;
	uint64_t flushed;

	do_records(f, 200);
	flushed = ese_log_flushed(f->log);
	f->store.fetch_status = -EIO;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, -EIO);
	f->store.fetch_ns = 0;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, -EIO);
	f->store.fetch_status = 0;
	/* The log is shorter than it was known to be. */
	f->device.memory[ese_log_offset(&f->area, flushed - ESE_SEGMENT_BYTES) + 99] ^= 1;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, 0);
	recover(f, MIB, flushed);
	assert_int_equal(f->result.status, -EBADMSG);
	/* Damage in its midst. */
	f->device.memory[ese_log_offset(&f->area, MIB + 40960) + 99] ^= 1;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, -EBADMSG);
	assert_int_equal(f->result.log.end, ESE_LOG_END_CORRUPT);
	f->device.off = true;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, -ECANCELED);
	assert_int_equal(f->result.log.end, ESE_LOG_END_ERROR);
	f->device.off = false;
}

static void can_be_stopped(void **state)
{
	struct fixture *f = *state;
	struct ese_recovery_config config = {
	    .loop = f->loop,
	    .area = f->area,
	    .checkpoint = {.redo_lgpos = MIB},
	    .ops = &page_store_ops,
	    .ops_arg = &f->store,
	    .done = recovered,
	    .arg = f,
	};

	do_records(f, 400);
	for (unsigned ms = 0; ms < 200; ms += 3) {
		f->done = false;
		f->recovery = ese_recovery_free(f->recovery);
		assert_int_equal(ese_recover(&config, &f->recovery, NULL), 0);
		loop_run_until(f->loop, loop_now_ns(f->loop) + ms * NS_PER_MS);
		ese_recovery_stop(f->recovery);
		loop_run_until(f->loop, loop_now_ns(f->loop) + NS_PER_S);
		assert_true(f->done);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(redoes_what_is_missing, setup, teardown),
	    cmocka_unit_test_setup_teardown(lost_flush_is_named, setup, teardown),
	    cmocka_unit_test_setup_teardown(torn_page_is_mended, setup, teardown),
	    cmocka_unit_test_setup_teardown(errors_end_it, setup, teardown),
	    cmocka_unit_test_setup_teardown(can_be_stopped, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
