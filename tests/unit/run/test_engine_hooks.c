/* SPDX-License-Identifier: MIT
 *
 * What a workload may ask of the run engine: to warm up for as long as it takes, to end the window
 * itself, to be told of it, and to describe what it did.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/run/progress.h"
#include "harness/run/run.h"
#include "memory_path.h"

static const char lab_text[] =
    "name: hooks\n"
    "hosts:\n"
    "  - {name: h1, luns: [{name: db1, urls: [\"iscsi://127.0.0.1/iqn.x/0\"]}]}\n"
    "workload: {type: raw}\n"
    "run: {warmup: 2s, duration: 10s, drain-limit: 3s}\n";

/* A workload that does as the test says. */
struct fake {
	struct workload base;
	struct workload_env env;
	struct loop_timer timer;
	/* the test's wishes */
	uint64_t warm_after_ns, end_after_ns; /* 0: never */
	int warm_status;
	const char *why; /* of a failure */
	bool within;	 /* calls back from within the call */
	/* what came */
	workload_fn warmed;
	void *warmed_arg;
	unsigned begun, ended, stopped;
	uint64_t begun_ns, ended_ns;
};
static struct fake fake;

static void fake_end(void)
{
	if (fake.why)
		fake.env.failed(fake.env.arg, fake.why);
	else
		fake.env.ended(fake.env.arg);
}

static void fake_warmed(void)
{
	if (fake.warm_status && fake.why)
		fake.env.failed(fake.env.arg, fake.why);
	fake.warmed(fake.warmed_arg, fake.warm_status);
}

static void fake_due(void *arg)
{
	if (fake.begun)
		fake_end();
	else
		fake_warmed();
}

static int fake_open(const struct workload_env *env, const void *config,
		     struct workload **ret_workload, struct err *err)
{
	fake.env = *env;
	loop_timer_init(&fake.timer, fake_due, NULL);
	*ret_workload = &fake.base;
	return 0;
}

static void fake_prepare(struct workload *workload, workload_fn done, void *arg)
{
	done(arg, 0);
}

static void fake_start(struct workload *workload) {}

static void fake_stop(struct workload *workload, workload_fn drained, void *arg)
{
	loop_timer_cancel(fake.env.loop, &fake.timer);
	fake.stopped++;
	drained(arg, 0);
}

static void fake_free(struct workload *workload) {}

static void fake_warm_up(struct workload *workload, workload_fn done, void *arg)
{
	fake.warmed = done;
	fake.warmed_arg = arg;
	fake.base.waits_for = "a better day";
	if (fake.within)
		fake_warmed();
	else if (fake.warm_after_ns)
		loop_timer_set(fake.env.loop, &fake.timer,
			       loop_now_ns(fake.env.loop) + fake.warm_after_ns);
}

static void fake_window(struct workload *workload, bool begins)
{
	uint64_t now_ns = loop_now_ns(fake.env.loop);

	fake.begun += begins;
	fake.ended += !begins;
	*(begins ? &fake.begun_ns : &fake.ended_ns) = now_ns;
	if (!begins || !fake.end_after_ns)
		return;
	if (fake.within)
		fake_end();
	else
		loop_timer_set(fake.env.loop, &fake.timer, now_ns + fake.end_after_ns);
}

static json_t *fake_describe(struct workload *workload)
{
	return json_pack("{s:s, s:i}", "test", "fake", "stopped", (int)fake.stopped);
}

static const struct workload_ops fake_ops = {
    .name = "fake",
    .open = fake_open,
    .prepare = fake_prepare,
    .start = fake_start,
    .stop = fake_stop,
    .verify = fake_prepare,
    .free = fake_free,
    .warm_up = fake_warm_up,
    .window = fake_window,
    .describe = fake_describe,
};

struct rig {
	struct lab *lab;
	struct loop *loop;
	struct memory_disk disk;
	struct memory_path *path;
	struct run_device device;
	struct event_log *events;
	struct run_engine *engine;
	bool ready, finished;
};

static void device_ready(void *arg, int status, const char *why)
{
	struct rig *rig = arg;

	assert_int_equal(status, 0);
	rig->ready = true;
	loop_stop(rig->loop);
}

static void make_device(struct rig *rig)
{
	const struct host_config *host = rig->lab->hosts.items;
	struct path_config config = {0};

	rig->disk = (struct memory_disk){.size_bytes = MIB, .delay_ns = NS_PER_MS, .id = 1};
	rig->disk.memory = calloc(1, rig->disk.size_bytes);
	rig->device = (struct run_device){.host = "h1", .volume = "db1", .known_zero = true};
	assert_int_equal(mpio_new(rig->loop, &host->mpio, "db1", 7, &rig->device.mpio), 0);
	mpio_path_config(&host->mpio, &config);
	config.portal = "127.0.0.1:3260";
	assert_int_equal(memory_path_new(rig->loop, &config, &rig->disk, &rig->path), 0);
	assert_int_equal(mpio_add_path(rig->device.mpio, &rig->path->base), 0);
	mpio_start(rig->device.mpio, NS_PER_S, device_ready, rig);
	while (!rig->ready)
		assert_int_equal(loop_run(rig->loop), 0);
}

static void rig_open(struct rig *rig, struct fake wishes)
{
	struct err err = {0};

	fake = wishes;
	fake.base.ops = &fake_ops;
	*rig = (struct rig){0};
	assert_int_equal(
	    lab_parse("hooks.yaml", lab_text, sizeof lab_text - 1, NULL, 0, stderr, &rig->lab), 0);
	rig->lab->workload_ops = &fake_ops;
	assert_int_equal(loop_new_virtual(0, &rig->loop), 0);
	make_device(rig);
	assert_int_equal(event_log_open(NULL, &rig->events, &err), 0);
	if (run_engine_new(rig->loop, rig->lab, &rig->device, 1, NULL, rig->events, &rig->engine,
			   &err) < 0)
		fail_msg("%s", err.what);
}

static void engine_finished(void *arg)
{
	struct rig *rig = arg;

	rig->finished = true;
	loop_stop(rig->loop);
}

static const struct record *rig_run(struct rig *rig, uint64_t limit_ns)
{
	if (!rig->finished && run_engine_record(rig->engine)->end_ns == 0 && !fake.env.window_ns)
		fail_msg("the workload was not told how long the window is");
	run_engine_start(rig->engine, engine_finished, rig);
	while (!rig->finished && loop_now_ns(rig->loop) < limit_ns)
		assert_int_equal(loop_run_until(rig->loop, limit_ns), 0);
	return run_engine_record(rig->engine);
}

static void rig_close(struct rig *rig)
{
	run_engine_free(rig->engine);
	mpio_free(rig->device.mpio);
	free(rig->disk.memory);
	event_log_close(rig->events);
	loop_free(rig->loop);
	lab_free(rig->lab);
}

static uint64_t window_of(const struct record *record)
{
	return record->window_end_ns - record->window_start_ns;
}

static void warm_up_lasts_until_the_workload_is_warm(void **state)
{
	static const struct {
		uint64_t after_ns;
		bool within;
		uint64_t want_ns;
	} cases[] = {
	    {.after_ns = NS_PER_S, .want_ns = 2 * NS_PER_S},	     /* run.warmup counts too */
	    {.after_ns = 286 * NS_PER_S, .want_ns = 286 * NS_PER_S}, /* and the workload's */
	    {.within = true, .want_ns = 2 * NS_PER_S},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct record *record;
		struct rig rig;

		rig_open(&rig, (struct fake){.warm_after_ns = cases[i].after_ns,
					     .within = cases[i].within});
		assert_int_equal(fake.env.window_ns, 10 * NS_PER_S);
		record = rig_run(&rig, 3600 * NS_PER_S);
		assert_true(rig.finished);
		assert_null(record->error);
		assert_int_equal(record->window_start_ns, cases[i].want_ns);
		assert_int_equal(window_of(record), 10 * NS_PER_S);
		assert_int_equal(fake.begun, 1);
		assert_int_equal(fake.ended, 1);
		assert_int_equal(fake.ended_ns - fake.begun_ns, 10 * NS_PER_S);
		/* It describes what is over. */
		assert_int_equal(json_integer_value(json_object_get(record->exchange, "stopped")),
				 1);
		rig_close(&rig);
	}
}

static void progress_says_what_the_warm_up_waits_for(void **state)
{
	struct run_progress progress;
	char text[200];
	struct rig rig;

	rig_open(&rig, (struct fake){0});
	rig_run(&rig, 20 * NS_PER_S);
	run_engine_progress(rig.engine, &progress);
	progress_text(&progress, text, sizeof text);
	assert_non_null(strstr(text, "warmup"));
	assert_non_null(strstr(text, "a better day"));
	run_engine_stop(rig.engine, "enough");
	assert_true(rig.finished);
	assert_int_equal(fake.begun, 0);
	assert_int_equal(fake.stopped, 1);
	rig_close(&rig);
}

static void failed_warm_up_ends_the_run(void **state)
{
	for (unsigned within = 0; within < 2; within++) {
		const struct record *record;
		struct rig rig;

		rig_open(&rig, (struct fake){.warm_after_ns = 7 * NS_PER_S,
					     .warm_status = -ETIME,
					     .within = within,
					     .why = "the cache did not fill"});
		record = rig_run(&rig, 3600 * NS_PER_S);
		assert_true(rig.finished);
		assert_string_equal(record->error, "the cache did not fill");
		assert_false(record_passed(record));
		assert_int_equal(fake.begun, 0);
		assert_int_equal(fake.ended, 0);
		assert_int_equal(fake.stopped, 1);
		assert_string_equal(json_string_value(json_object_get(record->exchange, "test")),
				    "fake");
		rig_close(&rig);
	}
}

static void the_workload_may_end_the_window(void **state)
{
	for (unsigned within = 0; within < 2; within++) {
		const struct record *record;
		struct rig rig;

		rig_open(&rig, (struct fake){.warm_after_ns = NS_PER_S,
					     .end_after_ns = 4 * NS_PER_S,
					     .within = within});
		record = rig_run(&rig, 3600 * NS_PER_S);
		assert_true(rig.finished);
		assert_null(record->error);
		assert_int_equal(window_of(record), within ? 0 : 4 * NS_PER_S);
		assert_int_equal(fake.ended, 1);
		rig_close(&rig);
	}
}

static void failure_within_the_window_is_told(void **state)
{
	const struct record *record;
	struct rig rig;

	rig_open(&rig, (struct fake){.warm_after_ns = NS_PER_S,
				     .end_after_ns = 4 * NS_PER_S,
				     .why = "no way on"});
	record = rig_run(&rig, 3600 * NS_PER_S);
	assert_true(rig.finished);
	assert_string_equal(record->error, "no way on");
	assert_int_equal(window_of(record), 4 * NS_PER_S);
	rig_close(&rig);
}

/* A window that its workload ends may be longer than run.duration, but it must get on. */
static void open_end_lasts_while_it_gets_on(void **state)
{
	const struct record *record;
	struct rig rig;

	rig_open(&rig, (struct fake){.warm_after_ns = NS_PER_S, .base = {.ends_itself = true}});
	record = rig_run(&rig, 3600 * NS_PER_S);
	assert_true(rig.finished);
	assert_non_null(strstr(record->error, "window made no progress for 3"));
	assert_true(window_of(record) > 3 * NS_PER_S && window_of(record) < 10 * NS_PER_S);
	rig_close(&rig);

	rig_open(&rig, (struct fake){.warm_after_ns = NS_PER_S, .base = {.ends_itself = true}});
	for (unsigned i = 1; i < 60; i++) {
		fake.base.progress = i / 100.0;
		if (i == 1)
			run_engine_start(rig.engine, engine_finished, &rig);
		assert_int_equal(loop_run_until(rig.loop, i * NS_PER_S), 0);
	}
	assert_false(rig.finished);
	fake.env.ended(fake.env.arg);
	loop_run_until(rig.loop, 61 * NS_PER_S);
	assert_true(rig.finished);
	assert_true(window_of(run_engine_record(rig.engine)) > 50 * NS_PER_S);
	assert_null(run_engine_record(rig.engine)->error);
	rig_close(&rig);
}

/* The lab's interval goes before the workload's, and one second before nothing. */
static void samples_are_as_long_as_the_workload_wants(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct record *record;
		struct rig rig;

		rig_open(&rig, (struct fake){.within = true,
					     .base = {.sample_ns = i ? 5 * NS_PER_S : 0}});
		record = rig_run(&rig, 3600 * NS_PER_S);
		assert_true(rig.finished);
		assert_int_equal(record->sample_count, i ? 3 : 12);
		rig_close(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(warm_up_lasts_until_the_workload_is_warm),
	    cmocka_unit_test(progress_says_what_the_warm_up_waits_for),
	    cmocka_unit_test(failed_warm_up_ends_the_run),
	    cmocka_unit_test(the_workload_may_end_the_window),
	    cmocka_unit_test(failure_within_the_window_is_told),
	    cmocka_unit_test(open_end_lasts_while_it_gets_on),
	    cmocka_unit_test(samples_are_as_long_as_the_workload_wants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
