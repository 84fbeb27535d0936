/* SPDX-License-Identifier: MIT
 *
 * Path states: access states of target port groups, health with hysteresis, windows that shrink,
 * failback, units that are gone, and how long I/O waits.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/mpio/alua.h"
#include "initiator/mpio/path_state.h"
#include "initiator/mpio/window.h"
#include "rig.h"

enum { MS = 1000 * 1000 };

/* ---- bytes ---- */

static void reports_are_parsed(void **unused)
{
	static const uint8_t data[] = {
	    0,	  0,	0, 32, 0x10, 9, 0, 0,			      /* extended: 9 s */
	    0x80, 0x8f, 0, 1,  0,    2, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, /* preferred, two ports */
	    0x0f, 0x8f, 0, 7,  0,    0, 0, 1, 0, 0, 0, 3,
	};
	struct alua_report report;
	uint8_t cdb[16], list[ALUA_STPG_BYTES];

	assert_int_equal(alua_parse(data, sizeof data, &report), 0);
	assert_int_equal(report.count, 2);
	assert_int_equal(report.transition_ns, 9 * NS_PER_S);
	assert_true(alua_find(&report, 1)->preferred);
	assert_int_equal(alua_find(&report, 1)->access, MPIO_OPTIMIZED);
	assert_int_equal(alua_find(&report, 7)->access, MPIO_TRANSITIONING);
	assert_null(alua_find(&report, 2));
	/* The short form, and data that ends too soon. */
	assert_int_equal(alua_parse(data + 4, 0, &report), -EPROTO);
	for (size_t cut = 0; cut < sizeof data; cut++) {
		struct alua_report part = {.count = 99};
		int r = alua_parse(data, cut, &part);

		assert_true(r == 0 ? part.count >= 1 && part.count <= 2 : part.count == 99);
	}
	alua_rtpg_cdb(cdb, true, 0x1234);
	assert_memory_equal(cdb, "\xa3\x2a\0\0\0\0\0\0\x12\x34", 10);
	alua_stpg(cdb, list, 0x0102);
	assert_memory_equal(cdb, "\xa4\x0a\0\0\0\0\0\0\0\x08", 10);
	assert_memory_equal(list, "\0\0\0\0\0\0\x01\x02", 8);
}

/* ---- the machine ---- */

static void health_has_hysteresis(void **unused)
{
	struct mpio_config config = {.marginal_errors = 3, .marginal_forget_ns = NS_PER_S};
	struct path_machine machine = {.access = MPIO_OPTIMIZED};
	struct path_output out;
	struct rng rng;

	config.reconnect_min_ns = config.reconnect_max_ns = 1;
	rng_init(&rng, 1, 1);
	for (unsigned i = 0; i < 3; i++) {
		path_machine_step(&machine, PATH_INPUT_CONNECT, &config, i, &rng);
		out = path_machine_step(&machine, PATH_INPUT_UP, &config, i, &rng);
		assert_int_equal(out.to, MPIO_PATH_UP);
		path_machine_step(&machine, PATH_INPUT_DOWN, &config, i, &rng);
	}
	path_machine_step(&machine, PATH_INPUT_CONNECT, &config, 3, &rng);
	out = path_machine_step(&machine, PATH_INPUT_UP, &config, 3, &rng);
	assert_int_equal(out.to, MPIO_PATH_DEGRADED);
	assert_int_equal(path_machine_rank(&machine), MPIO_RANK_DEGRADED);
	/* Below the threshold it is not well yet; only when all is forgotten. */
	out = path_machine_step(&machine, PATH_INPUT_LOOK, &config, 2 * NS_PER_S, &rng);
	assert_int_equal(out.to, MPIO_PATH_DEGRADED);
	assert_in_range(out.look_ns, 3 * NS_PER_S, 3 * NS_PER_S + 10);
	out = path_machine_step(&machine, PATH_INPUT_LOOK, &config, out.look_ns, &rng);
	assert_int_equal(out.to, MPIO_PATH_UP);
	assert_int_equal(out.look_ns, UINT64_MAX);
	/* One failure a second is forgotten as fast as it comes. */
	for (uint64_t s = 4; s < 20; s++)
		path_machine_mark(&machine, &config, s * NS_PER_S);
	assert_false(machine.degraded);
}

static void access_decides(void **unused)
{
	static const struct {
		enum mpio_access access;
		enum mpio_path_state state;
		uint8_t rank;
	} cases[] = {
	    {MPIO_OPTIMIZED, MPIO_PATH_UP, 0},	   {MPIO_ACCESS_NONE, MPIO_PATH_UP, 0},
	    {MPIO_LBA_DEPENDENT, MPIO_PATH_UP, 2}, {MPIO_NON_OPTIMIZED, MPIO_PATH_UP, 4},
	    {MPIO_STANDBY, MPIO_PATH_STANDBY, 0},  {MPIO_UNAVAILABLE, MPIO_PATH_STANDBY, 0},
	    {MPIO_OFFLINE, MPIO_PATH_STANDBY, 0},  {MPIO_TRANSITIONING, MPIO_PATH_PENDING, 0},
	};
	struct mpio_config config = {.reconnect_min_ns = 1, .reconnect_max_ns = 1};
	struct rng rng;

	rng_init(&rng, 1, 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct path_machine machine = {.access = MPIO_ACCESS_NONE};

		path_machine_access(&machine, cases[i].access, 100);
		path_machine_step(&machine, PATH_INPUT_CONNECT, &config, 0, &rng);
		assert_int_equal(path_machine_step(&machine, PATH_INPUT_UP, &config, 0, &rng).to,
				 cases[i].state);
		assert_int_equal(path_machine_rank(&machine), cases[i].rank);
		/* A transition that takes too long counts as standby. */
		if (cases[i].access == MPIO_TRANSITIONING)
			assert_int_equal(
			    path_machine_step(&machine, PATH_INPUT_LOOK, &config, 100, &rng).to,
			    MPIO_PATH_STANDBY);
	}
}

static void windows_shrink_and_grow(void **unused)
{
	struct window window;
	uint64_t now = NS_PER_S;

	window_init(&window, 64);
	for (unsigned left = 63; left >= 20; left--) /* 44 of 64 refused together */
		window_full(&window, left, now);
	assert_int_equal(window.limit, 20);
	window_full(&window, 0, now);
	assert_int_equal(window.limit, 1);
	for (unsigned i = 0; i < 10; i++)
		window_good(&window, now);
	assert_int_equal(window.limit, 1); /* not so soon after */
	now += NS_PER_S;
	for (unsigned i = 0; i < 20000; i++)
		window_good(&window, now);
	assert_int_equal(window.limit, 64);
	for (unsigned i = 0; i < 30; i++)
		window_busy(&window, now + i);
	assert_int_equal(window.limit, 48); /* one burst */
}

/* ---- the device ---- */

static void optimized_paths_first(void **unused)
{
	struct rig rig;
	struct mpio_path_info info;

	rig_open_groups(&rig, NULL, AO, ANO);
	assert_int_equal(rig.ready_status, 0);
	rig_do_some(&rig, 40);
	rig_expect_ios(&rig, 40, 0); /* from the first I/O on */
	mpio_path_info(rig.mpio, 3, &info);
	assert_int_equal(info.access, MPIO_NON_OPTIMIZED);
	assert_int_equal(info.rank, MPIO_RANK_NON_OPTIMIZED);
	for (unsigned i = 0; i < 2; i++) {
		rig.fakes[i]->refuse_login = true;
		fake_path_kill(rig.fakes[i], "cut");
	}
	rig_do_some(&rig, 40);
	rig_expect_ios(&rig, 0, 40);
	rig.fakes[1]->refuse_login = false;
	rig_run_for(&rig, 10 * NS_PER_S);
	rig_do_some(&rig, 40);
	rig_expect_ios(&rig, 40, 0);
	rig_close(&rig);
}

/* A unit attention tells of new states; without one the poll finds them. */
static void changes_are_noticed(void **unused)
{
	struct mpio_config config = {.max_retries = 30, .alua_poll_ns = NS_PER_S};
	struct rig rig;

	config.no_path_ns = NS_PER_S;
	rig_open_groups(&rig, &config, AO, ANO);
	rig.disk.no_extended = true;
	rig.disk.groups[0].state = ANO;
	rig.disk.groups[1].state = AO;
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 6});
	fake_path_script(rig.fakes[1], (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 6});
	rig_do_some(&rig, 40);
	assert_true(rig_ledger(&rig, 2)->ios >= 10);
	rig_do_some(&rig, 40);
	rig_expect_ios(&rig, 0, 40);
	rig.disk.groups[0].state = AO;
	rig.disk.groups[1].state = STANDBY;
	rig_run_for(&rig, 1100 * MS);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_STANDBY);
	rig_do_some(&rig, 40);
	rig_expect_ios(&rig, 40, 0);
	assert_int_equal(rig_ledger(&rig, 2)->retries, 0);
	rig_close(&rig);
}

/* Controllers change over: I/O waits, nothing fails, and goes on when the transition has ended. */
static void transitions_are_waited_for(void **unused)
{
	struct rig rig;
	struct rig_io *rio;
	uint64_t ended_ns;

	rig_open_groups(&rig, NULL, AO, STANDBY);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_STANDBY);
	rig.disk.groups[0].state = GONE;
	rig.disk.groups[1].state = MOVING;
	rio = rig_io_new(&rig, IO_WRITE, 0, 8, 7);
	io_submit(rig.layer, &rio->io);
	rig_run_for(&rig, 5 * NS_PER_S); /* longer than no-path */
	assert_int_equal(rio->done, 0);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_STANDBY);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_PENDING);
	assert_true(rig.fakes[0]->submitted + rig.fakes[1]->submitted <= 4);
	assert_true(rig.disk.rtpgs < 40);
	rig.disk.groups[1].state = AO;
	ended_ns = loop_now_ns(rig.loop);
	rig_run_for(&rig, 2 * NS_PER_S);
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, 0);
	assert_true(rio->done_ns < ended_ns + 1010 * MS);
	rig_do_some(&rig, 40);
	rig_expect_ios(&rig, 0, 40);
	rig_io_free(rio);
	rig_close(&rig);
}

static void transitions_end_some_time(void **unused)
{
	struct rig rig;
	struct rig_io *rio;
	uint64_t began_ns;

	rig_open_groups(&rig, NULL, AO, AO);
	rig.disk.transition_s = 7;
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 6});
	rig_do_some(&rig, 4); /* learns the time */
	rig.disk.groups[0].state = rig.disk.groups[1].state = MOVING;
	rio = rig_io_new(&rig, IO_READ, 0, 8, 7);
	began_ns = loop_now_ns(rig.loop);
	io_submit(rig.layer, &rio->io);
	rig_run_for(&rig, 20 * NS_PER_S);
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, -ENODEV);
	assert_in_range(rio->done_ns - began_ns, 9 * NS_PER_S, 10 * NS_PER_S);
	rig.disk.groups[1].state = ANO;
	rig_run_for(&rig, 2 * NS_PER_S);
	rig_do_some(&rig, 4);
	rig_io_free(rio);
	rig_close(&rig);
}

static void explicit_change(void **unused)
{
	struct mpio_config config = {.max_retries = 30, .alua_explicit = true};
	struct rig rig;

	config.no_path_ns = NS_PER_S;
	rig_open_groups(&rig, &config, AO, STANDBY);
	rig_do_some(&rig, 4);
	assert_int_equal(rig.disk.stpgs, 0);
	for (unsigned i = 0; i < 2; i++) {
		rig.fakes[i]->refuse_login = true;
		fake_path_kill(rig.fakes[i], "controller");
	}
	rig_run_for(&rig, 2 * NS_PER_S);
	assert_int_equal(rig.disk.stpgs, 1);
	assert_int_equal(rig.disk.stpg_group, 20);
	rig_do_some(&rig, 4);
	rig_expect_ios(&rig, 0, 4);
	/* Nothing of the kind without being asked to. */
	rig_close(&rig);
	config.alua_explicit = false;
	rig_open_groups(&rig, &config, STANDBY, STANDBY);
	assert_int_equal(rig.ready_status, -ENODEV);
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_int_equal(rig.disk.stpgs, 0);
	rig_close(&rig);
}

/* A group that does not want to: another one's turn after a while. */
static void refused_change(void **unused)
{
	struct mpio_config config = {.max_retries = 30, .alua_explicit = true};
	struct rig rig;
	uint16_t first;

	config.no_path_ns = NS_PER_S;
	rig_open(&rig, &config, 4, 1);
	rig.disk.refuse_stpgs = 1;
	rig.disk.group_count = 2;
	rig.disk.groups[0] = (struct fake_group){.id = 10, .state = ANO};
	rig.disk.groups[1] = (struct fake_group){.id = 20, .state = ANO};
	for (unsigned i = 0; i < 4; i++) {
		rig.fakes[i]->identity.target_port_group = i % 2 ? 20 : 10;
		rig.fakes[i]->identity.tpgs = 2;
	}
	rig_start(&rig);
	assert_int_equal(rig.ready_status, 0);
	assert_int_equal(rig.disk.stpgs, 1);
	first = rig.disk.stpg_group;
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_int_equal(rig.disk.stpgs, 1);
	rig_do_some(&rig, 4); /* non-optimized is better than nothing */
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 6});
	rig_run_for(&rig, 6 * NS_PER_S);
	rig_do_some(&rig, 4); /* asks again */
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(rig.disk.stpgs, 2);
	assert_int_not_equal(rig.disk.stpg_group, first);
	rig_close(&rig);
}

/* A unit that says it has ALUA and then knows nothing of it: all paths are equal. */
static void unsupported_report(void **unused)
{
	static struct fake_answer no = {PATH_SENSE, 2, 5, 0x20, 0};
	struct rig rig;

	rig_open(&rig, NULL, 2, 1);
	rig.disk.next_command = &no;
	for (unsigned i = 0; i < 2; i++)
		rig.fakes[i]->identity.tpgs = 1;
	rig_start(&rig);
	assert_int_equal(rig.ready_status, 0);
	rig_do_some(&rig, 40);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 20);
	rig_close(&rig);
}

static void flapping_path_is_degraded(void **unused)
{
	struct mpio_config config = {.marginal_errors = 3, .marginal_forget_ns = 5 * NS_PER_S};
	struct rig rig;

	config.no_path_ns = NS_PER_S;
	rig_open(&rig, &config, 2, 1);
	rig_start(&rig);
	for (unsigned i = 0; i < 3; i++) {
		fake_path_kill(rig.fakes[0], "flap");
		rig_run_for(&rig, 500 * MS);
	}
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_DEGRADED);
	rig_do_some(&rig, 40);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 0);
	/* In an emergency it is better than nothing. */
	rig.fakes[1]->refuse_login = true;
	fake_path_kill(rig.fakes[1], "cut");
	rig_do_some(&rig, 10);
	rig.fakes[1]->refuse_login = false;
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_DEGRADED);
	rig_run_for(&rig, 10 * NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
	rig_do_some(&rig, 40);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 20);
	rig_close(&rig);
}

static void failback_is_delayed(void **unused)
{
	struct mpio_config config = {.policy = 1, .failback_delay_ns = 3 * NS_PER_S};
	struct rig rig;

	config.no_path_ns = NS_PER_S;
	rig_open(&rig, &config, 2, 1);
	rig_start(&rig);
	rig_do_some(&rig, 4);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 4);
	fake_path_kill(rig.fakes[0], "cut");
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
	rig_do_some(&rig, 4);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 0);
	fake_path_kill(rig.fakes[1], "cut too");
	rig_do_some(&rig, 4);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 4);
	rig_run_for(&rig, 10 * NS_PER_S);
	rig_do_some(&rig, 4);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 4);
	rig_close(&rig);
}

/* The unit is unmapped: confirmed by a login, then looked at seldom, used when it is back. */
static void removed_unit(void **unused)
{
	struct rig rig;

	rig_open(&rig, NULL, 2, 1);
	rig_start(&rig);
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 5, 0x25, 0});
	rig.fakes[0]->refuse_login = true;
	assert_int_equal(rig_do(&rig, IO_WRITE, 0, 1, 1), 0);
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_REMOVED);
	rig.fakes[0]->refuse_login = false;
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_int_equal(rig_state(&rig, 0), MPIO_PATH_UP);
	rig_close(&rig);
}

/* The target takes eight at a time: found out, kept, and tried again now and then. */
static void task_set_full_shrinks(void **unused)
{
	struct rig_io *rios[64];
	struct mpio_path_info info;
	struct rig rig;

	rig_open(&rig, NULL, 1, 1);
	rig_start(&rig);
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++) {
		if (i >= 8)
			fake_path_script(rig.fakes[0],
					 (struct fake_answer){PATH_STATUS, 0x28, 0, 0, 0});
		rios[i] = rig_io_new(&rig, IO_READ, i, 1, 0);
	}
	/* Those refused are answered first. */
	rig.fakes[0]->script_count = 56;
	for (unsigned i = 0; i < 56; i++)
		rig.fakes[0]->script[i] = (struct fake_answer){PATH_STATUS, 0x28, 0, 0, 0};
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++)
		io_submit(rig.layer, &rios[i]->io);
	rig_run_for(&rig, MS);
	mpio_path_info(rig.mpio, 0, &info);
	assert_int_equal(info.depth_limit, 8);
	rig_run_for(&rig, 5 * NS_PER_S);
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++) {
		assert_int_equal(rios[i]->done, 1);
		assert_int_equal(rios[i]->io.status, 0);
		rig_io_free(rios[i]);
	}
	rig_close(&rig);
}

static void no_path_forms(void **unused)
{
	uint64_t ns = 1;
	struct mpio_config config = {.no_path = "fail"};
	struct rig_io *rio;
	struct rig rig;

	assert_int_equal(mpio_parse_no_path("fail", &ns), 0);
	assert_int_equal(ns, 0);
	assert_int_equal(mpio_parse_no_path("queue", &ns), 0);
	assert_true(ns == MPIO_FOREVER);
	assert_int_equal(mpio_parse_no_path("queue 30s", &ns), 0);
	assert_int_equal(ns, 30 * NS_PER_S);
	assert_int_equal(mpio_parse_no_path("500ms", &ns), 0);
	assert_int_equal(ns, 500 * MS);
	assert_int_equal(mpio_parse_no_path("queue30s", &ns), -EINVAL);
	assert_int_equal(mpio_parse_no_path("queue for ever", &ns), -EINVAL);
	assert_int_equal(mpio_parse_no_path("3h", &ns), -EINVAL);

	rig_open(&rig, &config, 1, 1);
	rig_start(&rig);
	rig.fakes[0]->hold = true;
	rio = rig_io_new(&rig, IO_READ, 0, 1, 0);
	io_submit(rig.layer, &rio->io);
	fake_path_kill(rig.fakes[0], "cut");
	rig_run_for(&rig, MS);
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, -ENODEV);
	rig_io_free(rio);
	rig_close(&rig);

	config.no_path = "queue";
	rig_open(&rig, &config, 1, 1);
	rig_start(&rig);
	rig.fakes[0]->refuse_login = true;
	fake_path_kill(rig.fakes[0], "cut");
	rio = rig_io_new(&rig, IO_READ, 0, 1, 0);
	io_submit(rig.layer, &rio->io);
	rig_run_for(&rig, 10000 * NS_PER_S);
	assert_int_equal(rio->done, 0);
	rig.fakes[0]->refuse_login = false;
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, 0);
	rig_io_free(rio);
	rig_close(&rig);
}

/* What a person should know is told, once in a while. */
static void notices(void **unused)
{
	struct rig rig;
	const struct mpio_event *event;

	rig_open(&rig, NULL, 1, 1);
	rig_start(&rig);
	for (unsigned i = 0; i < 3; i++)
		fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 6, 0x2a, 3});
	rig_do_some(&rig, 4);
	event = rig_find_event(&rig, 0, MPIO_PATH_UP, MPIO_PATH_UP);
	assert_non_null(event);
	assert_string_equal(event->why, "reservations preempted (6/2a/03)");
	assert_int_equal(rig.event_count, 3); /* connecting, up, and once that */
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reports_are_parsed),
	    cmocka_unit_test(health_has_hysteresis),
	    cmocka_unit_test(access_decides),
	    cmocka_unit_test(windows_shrink_and_grow),
	    cmocka_unit_test(optimized_paths_first),
	    cmocka_unit_test(changes_are_noticed),
	    cmocka_unit_test(transitions_are_waited_for),
	    cmocka_unit_test(transitions_end_some_time),
	    cmocka_unit_test(explicit_change),
	    cmocka_unit_test(refused_change),
	    cmocka_unit_test(unsupported_report),
	    cmocka_unit_test(flapping_path_is_degraded),
	    cmocka_unit_test(failback_is_delayed),
	    cmocka_unit_test(removed_unit),
	    cmocka_unit_test(task_set_full_shrinks),
	    cmocka_unit_test(no_path_forms),
	    cmocka_unit_test(notices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
