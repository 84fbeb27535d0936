/* SPDX-License-Identifier: MIT
 *
 * A passive copy: the log is shipped by file or by block and done again; switchover loses nothing,
 * failover what was not shipped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/workload/ese/ese_copy.h"
#include "tests/unit/workload/ese/crash_device.h"
#include "tests/unit/workload/ese/page_store.h"

enum { BASE = 64 << 10, FILES = 8 };

struct fixture {
	struct loop *loop;
	struct crash_device active_device, copy_device;
	struct ese_log_area active_area, copy_area;
	struct ese_log *active, *target;
	struct stream log_read, copy_read;
	struct page_model model;
	struct page_store store;
	struct ese_copy *copy;
	struct ese_copy_counters counters;
	uint64_t replayed;
	const char *why;
	int status; /* of the last callback; 1: none */
};

static void file_closed(void *arg, uint64_t generation)
{
	struct fixture *f = arg;

	if (f->copy)
		ese_copy_file_closed(f->copy, generation);
}

static void written(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct fixture *f = arg;

	if (f->copy)
		ese_copy_written(f->copy, lgpos, segments, bytes);
}

static void replayed(void *arg, uint64_t lgpos)
{
	struct fixture *f = arg;

	assert_true(lgpos >= f->replayed);
	f->replayed = lgpos;
	/* The copy's pages are written at once here. */
	ese_log_checkpoint_at(f->target, lgpos);
}

static void failed(void *arg, const char *why)
{
	((struct fixture *)arg)->why = why;
}

static void called_back(void *arg, int status)
{
	((struct fixture *)arg)->status = status;
}

static struct ese_log *open_log(struct fixture *f, const struct ese_log_area *area, bool active)
{
	struct ese_log_config config = {.loop = f->loop, .area = *area, .epoch = 1, .arg = f};
	struct ese_log *log;

	if (active) {
		config.file_closed = file_closed;
		config.written = written;
	}
	assert_int_equal(ese_log_open(&config, &log, NULL), 0);
	return log;
}

static void area_init(struct fixture *f, struct crash_device *device, struct ese_log_area *area,
		      const char *name)
{
	crash_device_init(device, f->loop, name, BASE + FILES * MIB, 1);
	*area = (struct ese_log_area){
	    .layer = &device->layer,
	    .ring_offset_bytes = BASE,
	    .files = FILES,
	    .signature = 7,
	};
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_int_equal(loop_new_virtual(0, &f->loop), 0);
	area_init(f, &f->active_device, &f->active_area, "db1");
	area_init(f, &f->copy_device, &f->copy_area, "db1b");
	f->active = open_log(f, &f->active_area, true);
	f->target = open_log(f, &f->copy_area, false);
	model_init(&f->model, 11);
	f->store.loop = f->loop;
	f->store.fetch_ns = 5 * NS_PER_MS;
	f->status = 1;
	*state = f;
	return 0;
}

static void run_for(struct fixture *f, uint64_t ns)
{
	loop_run_until(f->loop, loop_now_ns(f->loop) + ns);
	if (f->copy)
		ese_copy_counters(f->copy, &f->counters);
}

static int wait_back(struct fixture *f)
{
	for (unsigned i = 0; i < 1000 && f->status == 1; i++)
		run_for(f, NS_PER_S);
	return f->status;
}

static void end_copy(struct fixture *f)
{
	if (!f->copy)
		return;
	f->status = 1;
	ese_copy_stop(f->copy, called_back, f);
	assert_true(wait_back(f) <= 0);
	f->copy = ese_copy_free(f->copy);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	end_copy(f);
	f->copy_device.write_ns = NS_PER_MS;
	run_for(f, 1000 * NS_PER_S); /* what is in flight */
	ese_log_close(f->active);
	ese_log_close(f->target);
	crash_device_fini(&f->active_device);
	crash_device_fini(&f->copy_device);
	loop_free(f->loop);
	free(f);
	return 0;
}

static void start_copy(struct fixture *f, bool block, uint64_t replayed_lgpos)
{
	struct ese_copy_config config = {
	    .loop = f->loop,
	    .block = block,
	    .source = {f->active, f->active_area, &f->log_read},
	    .target = {f->target, f->copy_area, &f->copy_read},
	    .ops = &page_store_ops,
	    .ops_arg = &f->store,
	    .replayed_lgpos = replayed_lgpos,
	    .replayed = replayed,
	    .failed = failed,
	    .arg = f,
	};

	assert_int_equal(ese_copy_new(&config, &f->copy), 0);
	ese_copy_start(f->copy);
}

/* COUNT records, the checkpoint of the active close behind. */
static void load(struct fixture *f, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		while (ese_log_short_of_room(f->active))
			run_for(f, 100 * NS_PER_MS);
		model_record(&f->model, f->active);
		if (rng_below(&f->model.rng, 5) == 0)
			ese_log_flush(f->active, ese_log_tip(f->active));
		run_for(f, rng_below(&f->model.rng, 20) * NS_PER_MS);
		ese_log_checkpoint_at(f->active, ese_log_flushed(f->active));
	}
}

static void assert_same(struct fixture *f)
{
	assert_memory_equal(f->store.pages, f->model.pages, sizeof f->model.pages);
}

static void ships_closed_files(void **state)
{
	struct fixture *f = *state;

	start_copy(f, false, MIB);
	load(f, 4000);
	ese_log_flush(f->active, ese_log_tip(f->active));
	run_for(f, 5 * NS_PER_S);
	assert_null(f->why);
	/* Several rounds of the ring. */
	assert_true(f->counters.shipped_lgpos > 2 * FILES * MIB);
	assert_int_equal(f->counters.shipped_lgpos % MIB, 0);
	assert_int_equal(f->counters.shipped_lgpos / MIB, ese_log_flushed(f->active) / MIB);
	assert_int_equal(f->counters.copy_queue_files, 0);
	assert_true(f->counters.replay_queue_files <= 1);
	assert_int_equal(f->counters.blocks, 0);
	/* Each file in four reads. */
	assert_int_equal(f->counters.reads, (f->counters.shipped_lgpos / MIB - 1) * 4);
	assert_int_equal(f->log_read.total.ios, f->counters.reads);
	assert_int_equal(f->counters.updates_there, 0);
	/* The last file, and all is there. */
	f->status = 1;
	ese_copy_catch_up(f->copy, called_back, f);
	assert_int_equal(wait_back(f), 0);
	assert_same(f);
	assert_int_equal(f->store.lost_count, 0);
}

static void sends_blocks(void **state)
{
	struct fixture *f = *state;

	start_copy(f, true, MIB);
	load(f, 2000);
	ese_log_flush(f->active, ese_log_tip(f->active));
	run_for(f, 5 * NS_PER_S);
	assert_int_equal(f->counters.copy_queue_bytes, 0);
	assert_true(f->counters.blocks > 100);
	/* Nothing is read of the active's log as long as the copy keeps up. */
	assert_int_equal(f->counters.reads, 0);
	assert_same(f);
}

/* A copy that was away takes up by reading, and then gets blocks again. */
static void gets_up_to_date(void **state)
{
	struct fixture *f = *state;
	uint64_t replayed_lgpos;

	start_copy(f, true, MIB);
	load(f, 300);
	end_copy(f);
	replayed_lgpos = f->counters.replayed_lgpos;
	assert_true(f->counters.shipped_lgpos > MIB);
	load(f, 200);
	start_copy(f, true, replayed_lgpos);
	load(f, 300);
	ese_log_flush(f->active, ese_log_tip(f->active));
	run_for(f, 5 * NS_PER_S);
	assert_null(f->why);
	assert_true(f->counters.reads > 0);
	assert_true(f->counters.blocks > 0);
	assert_same(f);
}

static void failover_replays_what_was_shipped(void **state)
{
	struct fixture *f = *state;
	uint64_t end, durable;
	struct store_page *at = malloc(sizeof f->model.pages);

	start_copy(f, false, MIB);
	load(f, 1000);
	durable = ese_log_flushed(f->active);
	f->active_device.off = true;
	f->status = 1;
	ese_copy_source_lost(f->copy, called_back, f);
	assert_int_equal(wait_back(f), 0);
	end = f->counters.shipped_lgpos;
	assert_true(end < durable);
	assert_true(durable - end <= 2 * MIB);
	/* What is there is a state that was: all pages below some point of the log. */
	memcpy(at, f->store.pages, sizeof f->model.pages);
	for (unsigned i = 0; i < STORE_PAGES; i++)
		assert_true(at[i].dbtime <= f->model.pages[i].dbtime);
	free(at);
	end_copy(f);
	ese_log_lead(f->target);
	/* Goes on from there, on its own. */
	memcpy(f->model.pages, f->store.pages, sizeof f->model.pages);
	for (unsigned i = 0; i < 100; i++)
		model_record(&f->model, f->target);
	ese_log_flush(f->target, ese_log_tip(f->target));
	run_for(f, 5 * NS_PER_S);
	assert_true(ese_log_flushed(f->target) > end);
}

static void slow_copy_is_given_up(void **state)
{
	struct fixture *f = *state;

	f->store.fetch_ns = 100 * NS_PER_S;
	f->copy_device.write_ns = 300 * NS_PER_S;
	start_copy(f, false, MIB);
	load(f, 4000);
	assert_non_null(f->why);
	assert_int_equal(ese_copy_state(f->copy), ESE_COPY_FAILED);
	assert_true(ese_log_flushed(f->active) > (FILES + 1) * MIB);
	f->copy_device.write_ns = NS_PER_MS;
}

static void damage_is_told(void **state)
{
	struct fixture *f = *state;

	start_copy(f, true, MIB);
	load(f, 100);
	run_for(f, 5 * NS_PER_S);
	/* A page of the copy loses its last write. */
	for (unsigned i = 0; i < STORE_PAGES; i++)
		if (f->store.pages[i].dbtime > 1)
			f->store.pages[i].dbtime--;
	load(f, 300);
	run_for(f, 5 * NS_PER_S);
	assert_string_equal(f->why, "a page has lost a write");
	assert_true(f->counters.pages_wrong > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(ships_closed_files, setup, teardown),
	    cmocka_unit_test_setup_teardown(sends_blocks, setup, teardown),
	    cmocka_unit_test_setup_teardown(gets_up_to_date, setup, teardown),
	    cmocka_unit_test_setup_teardown(failover_replays_what_was_shipped, setup, teardown),
	    cmocka_unit_test_setup_teardown(slow_copy_is_given_up, setup, teardown),
	    cmocka_unit_test_setup_teardown(damage_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
