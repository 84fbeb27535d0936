/* SPDX-License-Identifier: MIT
 *
 * Redo and soft recovery on a store of make-believe pages: each keeps its dbtime and a sum over all
 * that was ever done to it, in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/workload/ese/ese_recover.h"
#include "tests/unit/workload/ese/crash_device.h"

enum { PAGES = 300, BASE = 64 << 10, FILES = 8 };

struct page {
	uint64_t dbtime, sum;
};

struct fixture {
	struct loop *loop;
	struct crash_device device;
	struct ese_log_area area;
	struct ese_log *log;
	struct rng rng;
	struct page model[PAGES]; /* as it should be */
	struct page disk[PAGES];  /* what recovery works on */
	bool clean[PAGES];	  /* not changed since the last copy to disk */
	uint64_t dbtime;
	/* Of the redo. */
	uint64_t fetch_ns; /* 0: at once */
	struct loop_timer timer;
	void (*fetched)(void *arg, int status);
	void *fetched_arg;
	unsigned held;
	int fetch_status;
	uint64_t lost_page, lost_found, lost_expected, lost_count;
	uint64_t batch_max;
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
	rng_init(&f->rng, 3, 0);
	for (unsigned i = 0; i < PAGES; i++)
		f->clean[i] = true;
	f->fetch_ns = 5 * NS_PER_MS;
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

/* ---- the store ---- */

static void fetch_due(void *arg)
{
	struct fixture *f = arg;

	f->fetched(f->fetched_arg, f->fetch_status);
}

static void fetch(void *arg, const uint64_t *pages, unsigned count,
		  void (*done)(void *done_arg, int status), void *done_arg)
{
	struct fixture *f = arg;

	assert_int_equal(f->held, 0);
	assert_true(count > 0 && count <= ESE_PREREAD_MAX);
	for (unsigned i = 1; i < count; i++)
		assert_true(pages[i - 1] < pages[i]);
	f->batch_max = MAX_OF(f->batch_max, count);
	if (f->fetch_status == 0)
		f->held = count;
	f->fetched = done;
	f->fetched_arg = done_arg;
	if (!f->fetch_ns) {
		done(done_arg, f->fetch_status);
		return;
	}
	loop_timer_init(&f->timer, fetch_due, f);
	loop_timer_set(f->loop, &f->timer, loop_now_ns(f->loop) + f->fetch_ns);
}

static void release(void *arg, const uint64_t *pages, unsigned count)
{
	struct fixture *f = arg;

	assert_int_equal(f->held, count);
	f->held = 0;
}

static uint64_t dbtime_of(void *arg, uint64_t page)
{
	return ((struct fixture *)arg)->disk[page].dbtime;
}

static void change(struct page *page, const struct ese_update *update)
{
	if (update->kind == ESE_UPDATE_IMAGE)
		page->sum = update->slots[0].key;
	else
		page->sum = page->sum * 31 + update->key;
	page->dbtime = update->dbtime_after;
}

static int apply(void *arg, const struct ese_update *update, uint64_t first, uint64_t end)
{
	struct fixture *f = arg;

	assert_true(f->held > 0);
	assert_true(first < end);
	change(&f->disk[update->page], update);
	return 0;
}

static void lost_flush(void *arg, uint64_t page, uint64_t found, uint64_t expected)
{
	struct fixture *f = arg;

	f->lost_count++;
	f->lost_page = page;
	f->lost_found = found;
	f->lost_expected = expected;
}

static const struct ese_redo_ops store_ops = {
    .fetch = fetch,
    .release = release,
    .dbtime = dbtime_of,
    .apply = apply,
    .lost_flush = lost_flush,
};

/* ---- doing and recovering ---- */

/* One record that changes 1..8 pages; a page that was clean is logged as a whole. */
static void do_record(struct fixture *f)
{
	struct ese_record record = {
	    .kind = ESE_RECORD_SPLIT,
	    .update_count = 1 + (unsigned)rng_below(&f->rng, 8) * (rng_below(&f->rng, 4) == 0),
	    .padded_bytes = (uint32_t)rng_below(&f->rng, 8000),
	};
	struct ese_slot slots[ESE_UPDATES_MAX];
	uint64_t first, end, base = rng_below(&f->rng, PAGES - ESE_UPDATES_MAX);

	record.update_count = MIN_OF(record.update_count, (unsigned)ESE_UPDATES_MAX);
	for (unsigned i = 0; i < record.update_count; i++) {
		struct ese_update *update = &record.updates[i];
		uint64_t page = base + i;

		*update = (struct ese_update){
		    .page = page,
		    .dbtime_before = f->model[page].dbtime,
		    .dbtime_after = ++f->dbtime,
		    .kind = ESE_UPDATE_PUT,
		    .key = rng_u64(&f->rng),
		};
		change(&f->model[page], update);
		if (f->clean[page]) {
			slots[i] = (struct ese_slot){.key = f->model[page].sum};
			update->kind = ESE_UPDATE_IMAGE;
			update->slots = &slots[i];
			update->slot_count = 1;
		}
		f->clean[page] = false;
	}
	assert_int_equal(ese_log_append(f->log, &record, &first, &end), 0);
}

static void do_records(struct fixture *f, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		do_record(f);
		if (i % 16 == 0) {
			ese_log_flush(f->log, ese_log_tip(f->log));
			loop_run_until(f->loop, loop_now_ns(f->loop) + 10 * NS_PER_MS);
		}
		if (rng_below(&f->rng, 4) == 0) {
			uint64_t page = rng_below(&f->rng, PAGES);

			f->disk[page] = f->model[page];
			f->clean[page] = true;
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
	    .ops = &store_ops,
	    .ops_arg = f,
	    .done = recovered,
	    .arg = f,
	};

	f->done = false;
	f->recovery = ese_recovery_free(f->recovery);
	assert_int_equal(ese_recover(&config, &f->recovery, NULL), 0);
	for (unsigned i = 0; i < 1000 && !f->done; i++)
		loop_run_until(f->loop, loop_now_ns(f->loop) + NS_PER_S);
	assert_true(f->done);
	assert_int_equal(f->held, 0);
}

static void redoes_what_is_missing(void **state)
{
	struct fixture *f = *state;

	for (unsigned round = 0; round < 2; round++) {
		do_records(f, 500);
		f->fetch_ns = round ? 0 : 5 * NS_PER_MS;
		recover(f, MIB, ese_log_flushed(f->log));
		assert_int_equal(f->result.status, 0);
		assert_memory_equal(f->disk, f->model, sizeof f->model);
		assert_true(f->result.updates_done > 0);
		assert_true(f->result.updates_there > 0);
		assert_int_equal(f->result.dbtime, f->dbtime);
		assert_int_equal(f->result.records, 500 * (round + 1));
		assert_int_equal(f->result.log.end, ESE_LOG_END_REACHED);
		assert_true(f->result.files > 1.0 * (round + 1));
		assert_int_equal(f->batch_max, ESE_PREREAD_MAX);
	}
	/* Once more: everything is there. */
	recover(f, MIB, 0);
	assert_int_equal(f->result.updates_done, 0);
}

static void lost_flush_is_named(void **state)
{
	struct fixture *f = *state;
	struct page before;
	uint64_t redo_lgpos;

	do_records(f, 100);
	redo_lgpos = ese_log_tip(f->log);
	memcpy(f->disk, f->model, sizeof f->disk);
	memset(f->clean, 0, sizeof f->clean);
	before = f->disk[150];
	do_records(f, 300);
	/* The page's write before the checkpoint had been acknowledged and was lost. */
	f->disk[150] = (struct page){before.dbtime - 1, 12345};
	recover(f, redo_lgpos, 0);
	assert_int_equal(f->result.status, -EUCLEAN);
	assert_int_equal(f->result.pages_wrong, 1);
	assert_int_equal(f->lost_count, 1);
	assert_int_equal(f->lost_page, 150);
	assert_int_equal(f->lost_found, before.dbtime - 1);
	assert_int_equal(f->lost_expected, before.dbtime);
	/* All others are as they should be. */
	f->disk[150] = f->model[150];
	assert_memory_equal(f->disk, f->model, sizeof f->model);
}

static void torn_page_is_mended(void **state)
{
	struct fixture *f = *state;
	unsigned torn = 0;

	do_records(f, 400);
	for (unsigned i = 0; i < PAGES; i += 7)
		if (f->model[i].dbtime) {
			f->disk[i] = (struct page){ESE_DBTIME_UNREADABLE, 666};
			torn++;
		}
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, 0);
	assert_int_equal(f->result.pages_mended, torn);
	assert_memory_equal(f->disk, f->model, sizeof f->model);
}

static void errors_end_it(void **state)
{
	struct fixture *f = *state;
	uint64_t flushed;

	do_records(f, 200);
	flushed = ese_log_flushed(f->log);
	f->fetch_status = -EIO;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, -EIO);
	f->fetch_ns = 0;
	recover(f, MIB, 0);
	assert_int_equal(f->result.status, -EIO);
	f->fetch_status = 0;
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
	    .ops = &store_ops,
	    .ops_arg = f,
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
