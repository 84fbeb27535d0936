/* SPDX-License-Identifier: MIT
 *
 * The run engine on the virtual loop, with the real MPIO over paths in memory: phases, faults,
 * early ends, and that equal seeds leave equal events to the byte.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/run/run.h"
#include "harness/workload/exchange_profile.h"
#include "memory_path.h"

enum { VOLUMES = 2, PATHS = 2 };

static const char lab_text[] =
    "name: engine\n"
    "seed: 7\n"
    "group:\n"
    "  style: equallogic\n"
    "  portal: 127.0.0.1:3260\n"
    "  pools:\n"
    "    - name: default\n"
    "      members:\n"
    "        - name: m1\n"
    "          drives: {model: sas-15k-600, count: 4}\n"
    "          raid: raid10\n"
    "          portals: [127.0.0.1:3261, 127.0.0.1:3262]\n"
    "          store: memory\n"
    "  volumes:\n"
    "    - {name: db1, pool: default, size: 64MiB}\n"
    "    - {name: db2, pool: default, size: 64MiB}\n"
    "hosts:\n"
    "  - {name: h1, volumes: [db1, db2], mpio: {no-path: 2s}}\n"
    "workload: {type: exchange, mailboxes: 1000, log-size: 16MiB, prefill: 8MiB}\n"
    "run: {warmup: 2s, duration: 10s}\n";

struct rig {
	struct lab *lab;
	struct loop *loop;
	struct memory_disk disks[VOLUMES];
	struct memory_path *paths[VOLUMES][PATHS];
	struct run_device devices[VOLUMES];
	unsigned ready;
	struct event_log *events;
	struct run_engine *engine;
	bool finished;
	struct loop_timer timer;
	unsigned faults_begun, faults_ended;
	uint64_t fault_at_ns[8];
	unsigned fault_count;
};

static void device_ready(void *arg, int status, const char *why)
{
	struct rig *rig = arg;

	assert_int_equal(status, 0);
	rig->ready++;
	if (rig->ready == VOLUMES)
		loop_stop(rig->loop);
}

static void engine_finished(void *arg)
{
	struct rig *rig = arg;

	rig->finished = true;
	loop_stop(rig->loop);
}

static int apply_fault(void *arg, const struct fault_config *fault, bool begin, struct err *err)
{
	struct rig *rig = arg;

	rig->faults_begun += begin;
	rig->faults_ended += !begin;
	if (rig->fault_count < ARRAY_SIZE(rig->fault_at_ns))
		rig->fault_at_ns[rig->fault_count++] = loop_now_ns(rig->loop);
	for (unsigned v = 0; v < VOLUMES; v++)
		for (unsigned p = 0; p < PATHS; p++) {
			if (fault->kind == FAULT_BLACK_HOLE && fault->path == p) {
				rig->paths[v][p]->silent = begin;
				rig->paths[v][p]->base.lost_by = PATH_DETECT_KEEPALIVE;
			}
			if (fault->kind == FAULT_SCRUB || fault_is_of_network(fault->kind) ||
			    (fault->kind != FAULT_ALL_PATHS_DOWN && fault->path != p))
				continue;
			memory_path_cut(rig->paths[v][p], begin);
			if (fault->kind == FAULT_PATH_RESET)
				memory_path_cut(rig->paths[v][p], false);
		}
	return 0;
}

static void make_devices(struct rig *rig)
{
	const struct host_config *host = rig->lab->hosts.items;
	static const char *const volumes[VOLUMES] = {"db1", "db2"};
	static const char *const portals[PATHS] = {"127.0.0.1:3261", "127.0.0.1:3262"};

	for (unsigned v = 0; v < VOLUMES; v++) {
		rig->disks[v] = (struct memory_disk){
		    .size_bytes = 64 * MIB, .delay_ns = 500 * NS_PER_US, .id = (uint8_t)(v + 1)};
		rig->disks[v].memory = calloc(1, rig->disks[v].size_bytes);
		rig->devices[v] =
		    (struct run_device){.host = "h1", .volume = volumes[v], .known_zero = true};
		assert_int_equal(
		    mpio_new(rig->loop, &host->mpio, volumes[v], 7 + v, &rig->devices[v].mpio), 0);
		for (unsigned p = 0; p < PATHS; p++) {
			struct path_config config = {0};

			mpio_path_config(&host->mpio, &config);
			config.portal = portals[p];
			assert_int_equal(
			    memory_path_new(rig->loop, &config, &rig->disks[v], &rig->paths[v][p]),
			    0);
			assert_int_equal(
			    mpio_add_path(rig->devices[v].mpio, &rig->paths[v][p]->base), 0);
		}
		mpio_start(rig->devices[v].mpio, NS_PER_S, device_ready, rig);
	}
	while (rig->ready < VOLUMES)
		assert_int_equal(loop_run(rig->loop), 0);
}

static void rig_open(struct rig *rig, const char *const *sets, size_t set_count, const char *dir)
{
	struct fault_ops faults = {.apply = apply_fault, .arg = rig};
	struct err err = {0};

	*rig = (struct rig){0};
	assert_int_equal(lab_parse("engine.yaml", lab_text, sizeof lab_text - 1, sets, set_count,
				   stderr, &rig->lab),
			 0);
	assert_int_equal(loop_new_virtual(0, &rig->loop), 0);
	make_devices(rig);
	assert_int_equal(event_log_open(dir, &rig->events, &err), 0);
	if (run_engine_new(rig->loop, rig->lab, rig->devices, VOLUMES, &faults, rig->events,
			   &rig->engine, &err) < 0)
		fail_msg("%s", err.what);
}

/* At most an hour of virtual time. */
static struct record *rig_run(struct rig *rig)
{
	run_engine_start(rig->engine, engine_finished, rig);
	while (!rig->finished && loop_now_ns(rig->loop) < 3600 * NS_PER_S)
		assert_int_equal(loop_run_until(rig->loop, 3600 * NS_PER_S), 0);
	assert_true(rig->finished);
	return run_engine_record(rig->engine);
}

static void rig_close(struct rig *rig)
{
	run_engine_free(rig->engine);
	for (unsigned v = 0; v < VOLUMES; v++) {
		mpio_free(rig->devices[v].mpio);
		free(rig->disks[v].memory);
	}
	event_log_close(rig->events);
	loop_free(rig->loop);
	lab_free(rig->lab);
}

static const struct record_verdict *verdict_of(const struct record *record, const char *id)
{
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (strcmp(record->verdicts[i].id, id) == 0)
			return &record->verdicts[i];
	fail_msg("no verdict %s", id);
	return NULL;
}

static void assert_status(const struct record *record, const char *id, enum verdict_status want)
{
	const struct record_verdict *verdict = verdict_of(record, id);

	if (verdict->status != want)
		fail_msg("%s: status %d, want %d: %s", id, (int)verdict->status, (int)want,
			 verdict->text);
}

static unsigned markers_of(const struct record *record, const char *kind)
{
	unsigned count = 0;

	for (unsigned i = 0; i < record->marker_count; i++)
		count += strcmp(record->markers[i].kind, kind) == 0;
	return count;
}

static void a_good_run_passes(void **state)
{
	static const char *const sets[] = {"expect=[{max-io-gap: \"<= 1s\"}, "
					   "{path-share: within 1%}]"};
	struct run_path_total total;
	const struct record *record;
	uint64_t share_sum = 0;
	struct rig rig;

	rig_open(&rig, sets, 1, NULL);
	record = rig_run(&rig);
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (record->verdicts[i].status != VERDICT_PASS)
			fail_msg("%s: %s", record->verdicts[i].id, record->verdicts[i].text);
	assert_true(record_passed(record));
	assert_null(record->error);
	assert_int_equal(record->window_end_ns - record->window_start_ns, 10 * NS_PER_S);
	assert_int_equal(record->sample_count, 12);
	assert_int_equal(record->path_count, 4);
	assert_int_equal(record->stream_count, 10);
	assert_int_equal(markers_of(record, "phase"), 5);
	assert_true(record->pages_written > 512);
	assert_int_equal(record->pages_read_back, record->pages_written);
	for (unsigned i = 0; i < record->path_count; i++) {
		assert_string_equal(record->paths[i].state, "up");
		assert_true(record->paths[i].share > 0.49 && record->paths[i].share < 0.51);
		assert_true(run_engine_path_total(rig.engine, i, &total));
		assert_true(total.reads + total.writes > record->paths[i].ios);
		share_sum += record->paths[i].ios;
	}
	assert_false(run_engine_path_total(rig.engine, record->path_count, &total));
	assert_true(share_sum > 2000);
	rig_close(&rig);
}

static char *read_file(const char *dir, const char *name)
{
	char path[200], *text = calloc(1, 1 << 22);
	FILE *from;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	from = fopen(path, "re");
	assert_non_null(from);
	assert_true(fread(text, 1, (1 << 22) - 1, from) > 0);
	fclose(from);
	unlink(path);
	return text;
}

/* One run with a path failure; returns its events. */
static char *events_of(const char *seed)
{
	const char *sets[] = {seed, "faults=[{at: 3s, path-down: {host: h1, path: 1}, for: 2s}, "
				    "{at: 7s, path-reset: {host: h1, path: 0}}]"};
	char dir[] = "/tmp/sanlab-test-XXXXXX";
	struct rig rig;
	char *events;

	assert_non_null(mkdtemp(dir));
	rig_open(&rig, sets, 2, dir);
	rig_run(&rig);
	rig_close(&rig);
	events = read_file(dir, "events.jsonl");
	assert_int_equal(rmdir(dir), 0);
	return events;
}

static void equal_seeds_give_equal_events(void **state)
{
	char *first = events_of("seed=1"), *again = events_of("seed=1");
	char *other = events_of("seed=2");
	char *line, *rest = first;

	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
	while ((line = strsep(&rest, "\n")) && *line) {
		json_t *event = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

		assert_non_null(event);
		json_decref(event);
	}
	free(first);
	free(again);
	free(other);
}

static void faults_come_and_go_on_time(void **state)
{
	static const char *const sets[] = {
	    "faults=[{at: 3s, path-down: {host: h1, path: 1}, for: 2s}, "
	    "{at: 7s, path-reset: {host: h1, path: 0}}, "
	    "{at: 9s, path-down: {host: h1, path: 1}}]"};
	const struct record *record;
	struct rig rig;
	uint64_t window_ns;

	rig_open(&rig, sets, 1, NULL);
	record = rig_run(&rig);
	assert_int_equal(rig.faults_begun, 3);
	assert_int_equal(rig.faults_ended, 1);
	window_ns = rig.fault_at_ns[0] - 3 * NS_PER_S;
	assert_int_equal(rig.fault_at_ns[1], window_ns + 5 * NS_PER_S);
	assert_int_equal(rig.fault_at_ns[2], window_ns + 7 * NS_PER_S);
	assert_int_equal(rig.fault_at_ns[3], window_ns + 9 * NS_PER_S);
	assert_int_equal(markers_of(record, "fault"), 4);
	assert_true(markers_of(record, "path") >= 8);
	/* The other path carried on: no error, no mismatch. */
	assert_true(record_passed(record));
	assert_status(record, "io-errors", VERDICT_PASS);
	assert_true(record->paths[1].losses >= 1);
	rig_close(&rig);
}

/* Each loss knows the fault that it was lost to, when that began and when it ended; a second loss
 * to a fault that lasts is counted from when the path was back. */
static void losses_are_blamed_on_faults(void **state)
{
	static const char *const sets[] = {
	    "faults=[{at: 3s, path-down: {host: h1, path: 1}, for: 2s}, "
	    "{at: 4s, scrub: {member: m1}, for: 1s}, " /* takes no path */
	    "{at: 7s, path-reset: {host: h1, path: 0}}]",
	    "expect=[{failover-time: <= 10s}, {failback-time: <= 20s}]"};
	const struct record *record;
	struct rig rig;
	uint64_t window_ns;
	unsigned down = 0, reset = 0;

	rig_open(&rig, sets, 2, NULL);
	record = rig_run(&rig);
	window_ns = record->window_start_ns;
	for (unsigned i = 0; i < record->failover_count; i++) {
		const struct record_failover *loss = &record->failovers[i];

		assert_non_null(loss->fault);
		if (loss->path == 1) {
			assert_non_null(strstr(loss->fault, "path-down begins: h1 path 1"));
			assert_int_equal(loss->at_ns[RECORD_FAULT], window_ns + 3 * NS_PER_S);
			assert_int_equal(loss->fault_end_ns, window_ns + 5 * NS_PER_S);
			assert_true(loss->at_ns[RECORD_UP_AGAIN] >= loss->fault_end_ns);
			down++;
		} else {
			assert_non_null(strstr(loss->fault, "path-reset: h1 path 0"));
			assert_int_equal(loss->at_ns[RECORD_FAULT], window_ns + 7 * NS_PER_S);
			assert_int_equal(loss->fault_end_ns, loss->at_ns[RECORD_FAULT]);
			reset++;
		}
	}
	assert_true(down >= 1 && reset >= 1);
	assert_status(record, "expect failover-time", VERDICT_PASS);
	assert_status(record, "expect failback-time", VERDICT_PASS);
	rig_close(&rig);
}

static void cut_path(void *arg)
{
	struct rig *rig = arg;

	for (unsigned v = 0; v < VOLUMES; v++) {
		memory_path_cut(rig->paths[v][0], true);
		memory_path_cut(rig->paths[v][0], false);
	}
}

/* A path that was well for seconds after a fault is not lost to that fault. */
static void a_fault_that_is_over_is_not_blamed(void **state)
{
	static const char *const sets[] = {"faults=[{at: 3s, path-reset: {host: h1, path: 0}}]"};
	const struct record *record;
	struct rig rig;
	unsigned blamed = 0, unexplained = 0;

	rig_open(&rig, sets, 1, NULL);
	loop_timer_init(&rig.timer, cut_path, &rig);
	loop_timer_set(rig.loop, &rig.timer, loop_now_ns(rig.loop) + 10 * NS_PER_S);
	record = rig_run(&rig);
	for (unsigned i = 0; i < record->failover_count; i++) {
		assert_int_equal(record->failovers[i].path, 0);
		blamed += record->failovers[i].fault != NULL;
		unexplained += record->failovers[i].fault == NULL;
	}
	assert_int_equal(blamed, VOLUMES);
	assert_int_equal(unexplained, VOLUMES);
	rig_close(&rig);
}

/* A path that fell silent is not lost to what began later, while nobody had noticed. */
static void silence_is_blamed_on_its_beginning(void **state)
{
	static const char *const sets[] = {
	    "faults=[{at: 1s, path-slow: {host: h1, path: 0, delay: 1ms}}, "
	    "{at: 3s, black-hole: {host: h1, path: 0}, for: 3s}, "
	    "{at: 4s, path-slow: {host: h1, path: 0, delay: 2ms}, for: 2s}]"};
	const struct record *record;
	struct rig rig;

	rig_open(&rig, sets, 1, NULL);
	loop_timer_init(&rig.timer, cut_path, &rig);
	loop_timer_set(rig.loop, &rig.timer, loop_now_ns(rig.loop) + 7 * NS_PER_S);
	record = rig_run(&rig);
	assert_int_equal(record->failover_count, VOLUMES);
	for (unsigned i = 0; i < record->failover_count; i++) {
		assert_non_null(strstr(record->failovers[i].fault, "black-hole"));
		assert_int_equal(record->failovers[i].at_ns[RECORD_FAULT],
				 record->window_start_ns + 3 * NS_PER_S);
	}
	rig_close(&rig);
}

static void all_paths_gone_ends_the_run(void **state)
{
	static const char *const sets[] = {"faults=[{at: 3s, all-paths-down: {host: h1}}]"};
	const struct record *record;
	struct rig rig;

	rig_open(&rig, sets, 1, NULL);
	record = rig_run(&rig);
	assert_false(record_passed(record));
	assert_status(record, "completed", VERDICT_PASS);
	assert_status(record, "io-errors", VERDICT_FAIL);
	assert_status(record, "achieved-iops", VERDICT_FAIL);
	assert_status(record, "read-back", VERDICT_FAIL);
	assert_status(record, "data-mismatches", VERDICT_PASS);
	assert_int_equal(record->pages_read_back, 0);
	assert_int_equal(record->pages_not_readable, record->pages_written);
	/* Waiting I/O ends 2 s after the last path; the read-back does not wait for each page. */
	assert_true(record->end_ns < 30 * NS_PER_S);
	assert_string_not_equal(record->paths[0].state, "up");
	rig_close(&rig);
}

static void stop_now(void *arg)
{
	struct rig *rig = arg;

	run_engine_stop(rig->engine, "test");
}

static void a_stopped_run_is_complete(void **state)
{
	static const struct {
		uint64_t at_ns;
		bool measured;
	} cases[] = {
	    {1, false},				    /* preparing */
	    {NS_PER_S, false},			    /* warming up */
	    {7 * NS_PER_S, true},		    /* measuring */
	    {12 * NS_PER_S + 10 * NS_PER_MS, true}, /* draining or reading back */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct record *record;
		struct rig rig;

		rig_open(&rig, NULL, 0, NULL);
		loop_timer_init(&rig.timer, stop_now, &rig);
		loop_timer_set(rig.loop, &rig.timer, loop_now_ns(rig.loop) + cases[i].at_ns);
		record = rig_run(&rig);
		assert_true(record->interrupted);
		assert_status(record, "completed", VERDICT_FAIL);
		assert_int_equal(record->window_end_ns > record->window_start_ns,
				 cases[i].measured);
		assert_true(record->end_ns < cases[i].at_ns + 2 * NS_PER_S);
		if (cases[i].measured)
			assert_status(record, "achieved-iops", VERDICT_PASS);
		rig_close(&rig);
	}
}

static void go_silent(void *arg)
{
	struct rig *rig = arg;

	for (unsigned v = 0; v < VOLUMES; v++)
		for (unsigned p = 0; p < PATHS; p++)
			rig->paths[v][p]->silent = true;
}

/* Paths that neither answer nor fail: nothing may wait for ever, nor be freed under an I/O. */
static void silence_ends_at_the_drain_limit(void **state)
{
	static const uint64_t at_ns[] = {1, 5 * NS_PER_S, 12 * NS_PER_S + 10 * NS_PER_MS};

	for (size_t i = 0; i < ARRAY_SIZE(at_ns); i++) {
		const struct record *record;
		struct rig rig;

		rig_open(&rig, NULL, 0, NULL);
		loop_timer_init(&rig.timer, go_silent, &rig);
		loop_timer_set(rig.loop, &rig.timer, loop_now_ns(rig.loop) + at_ns[i]);
		record = rig_run(&rig);
		assert_non_null(record->error);
		assert_false(record_passed(record));
		assert_true(record->end_ns < 120 * NS_PER_S);
		rig_close(&rig);
	}
}

static void a_failure_outside_is_recorded(void **state)
{
	const struct record *record;
	struct rig rig;

	rig_open(&rig, NULL, 0, NULL);
	run_engine_start(rig.engine, engine_finished, &rig);
	loop_run_until(rig.loop, loop_now_ns(rig.loop) + 5 * NS_PER_S);
	run_engine_fail(rig.engine, "the target ended");
	while (!rig.finished)
		assert_int_equal(loop_run(rig.loop), 0);
	record = run_engine_record(rig.engine);
	assert_string_equal(record->error, "the target ended");
	assert_status(record, "completed", VERDICT_FAIL);
	rig_close(&rig);
}

static void a_workload_that_does_not_fit_is_refused(void **state)
{
	struct exchange_config *config;
	struct run_engine *engine;
	struct rig rig = {0};
	struct err err = {0};

	assert_int_equal(
	    lab_parse("engine.yaml", lab_text, sizeof lab_text - 1, NULL, 0, stderr, &rig.lab), 0);
	/* The lab file's volumes are checked when it is loaded; those of a foreign target here. */
	config = rig.lab->workload_config;
	config->log_bytes = 128 * MIB;
	assert_int_equal(loop_new_virtual(0, &rig.loop), 0);
	make_devices(&rig);
	assert_int_equal(event_log_open(NULL, &rig.events, &err), 0);
	assert_int_equal(run_engine_new(rig.loop, rig.lab, rig.devices, VOLUMES, NULL, rig.events,
					&engine, &err),
			 -EINVAL);
	assert_non_null(strstr(err.what, "db1"));
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_good_run_passes),
	    cmocka_unit_test(equal_seeds_give_equal_events),
	    cmocka_unit_test(faults_come_and_go_on_time),
	    cmocka_unit_test(losses_are_blamed_on_faults),
	    cmocka_unit_test(a_fault_that_is_over_is_not_blamed),
	    cmocka_unit_test(silence_is_blamed_on_its_beginning),
	    cmocka_unit_test(all_paths_gone_ends_the_run),
	    cmocka_unit_test(a_stopped_run_is_complete),
	    cmocka_unit_test(silence_ends_at_the_drain_limit),
	    cmocka_unit_test(a_failure_outside_is_recorded),
	    cmocka_unit_test(a_workload_that_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
