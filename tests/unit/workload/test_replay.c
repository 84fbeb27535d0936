/* SPDX-License-Identifier: MIT
 *
 * Replays on the virtual clock: what is sent where and when, in each mode, and what is known of the
 * data.  The device writes down what it is asked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs these before it */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_device.h"
#include "harness/trace/trace.h"
#include "harness/workload/replay.h"

enum { VOLUMES = 2 };

/* A fake_device behind a layer that logs, and that can be given the delays of single I/Os. */
struct logging {
	struct io_layer layer;
	struct rig *rig;
	unsigned index;
};

struct rig {
	struct fake_run run;
	struct fake_device fake[VOLUMES];
	struct logging logging[VOLUMES];
	struct workload_device devices[VOLUMES];
	uint64_t delays_ns[64]; /* of the next I/Os, 0: the usual */
	unsigned sent;
	char log[16384], path[64], why[400];
	const char *files[1];
	bool ended, no_unmap;
};

static void log_submit(struct io_layer *layer, struct io *io)
{
	static const char *const ops[] = {"read", "write", "flush", "trim"};
	struct logging *logging = container_of(layer, struct logging, layer);
	struct rig *rig = logging->rig;
	struct fake_device *fake = &rig->fake[logging->index];
	uint64_t usual_ns = fake->delay_ns;
	size_t used = strlen(rig->log);

	snprintf(rig->log + used, sizeof rig->log - used,
		 "%" PRIu64 " v%u %s %" PRIu64 "+%" PRIu64 "%s\n",
		 loop_now_ns(rig->run.loop) / NS_PER_US, logging->index, ops[io->op],
		 io->offset_bytes, io->length_bytes, io->flags & IO_FUA ? " fua" : "");
	if (io->op == IO_UNMAP) {
		memset(fake->memory + io->offset_bytes, 0, io->length_bytes);
		io_complete(io, rig->no_unmap ? -EOPNOTSUPP : 0);
		return;
	}
	if (rig->sent < ARRAY_SIZE(rig->delays_ns) && rig->delays_ns[rig->sent])
		fake->delay_ns = rig->delays_ns[rig->sent];
	rig->sent++;
	io_submit(&fake->layer, io);
	fake->delay_ns = usual_ns;
}

static const struct io_layer_ops log_ops = {.name = "log", .submit = log_submit};

static void ended(void *arg)
{
	struct rig *rig = container_of((struct fake_run *)arg, struct rig, run);

	rig->ended = true;
}

static void failed(void *arg, const char *why)
{
	struct rig *rig = container_of((struct fake_run *)arg, struct rig, run);

	snprintf(rig->why, sizeof rig->why, "%s", why);
}

static struct replay_config defaults(void)
{
	return (struct replay_config){
	    .scale_time = 1,
	    .scale_space = 1,
	    .loops = 1,
	    .queue_depth = 64,
	    .max_io_bytes = MIB,
	    .late_limit_ns = 10 * NS_PER_MS,
	    .verify = true,
	};
}

static struct rig *rig_new(const char *trace, struct replay_config config, uint64_t delay_ns)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct workload_env env = {
	    .seed = 3,
	    .devices = rig->devices,
	    .device_count = VOLUMES,
	    .mismatch = fake_mismatch,
	    .ended = ended,
	    .failed = failed,
	    .arg = &rig->run,
	};
	struct err err = {0};
	FILE *file;
	int fd;

	snprintf(rig->path, sizeof rig->path, "/tmp/sanlab-replay.XXXXXX");
	fd = mkstemp(rig->path);
	file = fdopen(fd, "w");
	assert_non_null(file);
	fputs(trace, file);
	fclose(file);
	rig->files[0] = rig->path;
	config.traces = (struct cfg_list){rig->files, 1};
	assert_int_equal(loop_new_virtual(0, &rig->run.loop), 0);
	for (unsigned i = 0; i < VOLUMES; i++) {
		fake_init(&rig->fake[i], rig->run.loop, i ? "v1" : "v0", 16 * MIB, delay_ns);
		rig->logging[i] = (struct logging){
		    .layer = {.ops = &log_ops, .size_bytes = 16 * MIB}, .rig = rig, .index = i};
		rig->devices[i] = rig->fake[i].device;
		rig->devices[i].layer = &rig->logging[i].layer;
	}
	env.loop = rig->run.loop;
	if (replay_workload_ops.open(&env, &config, &rig->run.workload, &err) < 0) {
		snprintf(rig->why, sizeof rig->why, "%s", err.what);
		return rig;
	}
	assert_int_equal(fake_prepare(&rig->run), 0);
	rig->run.workload->ops->start(rig->run.workload);
	return rig;
}

static void rig_free(struct rig *rig)
{
	if (rig->run.workload)
		rig->run.workload->ops->free(rig->run.workload);
	for (unsigned i = 0; i < VOLUMES; i++)
		fake_done(&rig->fake[i]);
	loop_free(rig->run.loop);
	unlink(rig->path);
	free(rig);
}

/* Runs to the end of the trace and wants LOG. */
static void expect_log(struct rig *rig, const char *log)
{
	fake_run_for(&rig->run, 100 * NS_PER_S);
	assert_string_equal(rig->why, "");
	assert_string_equal(rig->log, log);
	assert_true(rig->ended);
	assert_int_equal(fake_stop(&rig->run), 0);
}

static uint64_t told(struct rig *rig, const char *part, const char *key)
{
	json_t *said = rig->run.workload->ops->describe(rig->run.workload);
	const json_t *from = part ? json_object_get(said, part) : said;
	uint64_t value;

	assert_true(json_is_integer(json_object_get(from, key)));
	value = (uint64_t)json_integer_value(json_object_get(from, key));
	json_decref(said);
	return value;
}

#define V3 "fio version 3 iolog\n"

/* Deadlines are absolute: a slow I/O delays none of the others. */
static void timed_is_on_time(void **state)
{
	struct rig *rig = rig_new(V3 "1000 a read 0 4096\n1500 a write 8192 512\n1500 b flush\n"
				     "4000 b sync 0 0\n1004000 a read 4096 512\n",
				  (struct replay_config){0}, 0);

	rig_free(rig); /* malformed beyond the limit: refused */
	rig = rig_new(V3 "1000 a read 0 4096\n1500 a write 8192 512\n1500 a datasync 8192 0\n"
			 "4000 b sync 0 0\n5000 b trim 4096 8192\n1004000 a read 4096 512\n",
		      defaults(), 50 * NS_PER_MS);
	expect_log(rig, "0 v0 read 0+4096\n500 v0 write 8192+512 fua\n3000 v1 flush 0+0\n"
			"4000 v1 trim 4096+8192\n1003000 v0 read 4096+512\n");
	assert_int_equal(told(rig, "lateness", "max_ns"), 0);
	assert_int_equal(told(rig, "lateness", "ios"), 5);
	rig_free(rig);
}

static void times_and_places_scale(void **state)
{
	struct replay_config config = defaults();
	struct rig *rig;

	config.scale_time = 0.5;
	config.scale_space = 2;
	rig = rig_new(V3 "1000 a read 512 512\n3000 a write 8192 1024\n5001 a read 12800 512\n",
		      config, 0);
	expect_log(rig, "0 v0 read 512+512\n1000 v0 write 16384+1024\n2000 v0 read 25088+512\n");
	rig_free(rig);
}

/* Passes follow each other a mean gap apart. */
static void loops_go_on(void **state)
{
	struct replay_config config = defaults();
	struct rig *rig;

	config.loops = 3;
	rig = rig_new(V3 "5000 a read 0 512\n6000 a read 512 512\n", config, 0);
	expect_log(rig, "0 v0 read 0+512\n1000 v0 read 512+512\n2000 v0 read 0+512\n"
			"3000 v0 read 512+512\n4000 v0 read 0+512\n5000 v0 read 512+512\n");
	assert_int_equal(told(rig, NULL, "passes"), 3);
	rig_free(rig);
}

static void afap_keeps_the_depth(void **state)
{
	struct replay_config config = defaults();
	struct rig *rig;

	config.mode = REPLAY_AFAP;
	config.queue_depth = 2;
	rig = rig_new(V3 "1 a read 0 512\n9000000 a read 512 512\n99000000 b read 1024 512\n"
			 "990000000 a read 2048 512\n",
		      config, NS_PER_MS);
	expect_log(rig, "0 v0 read 0+512\n0 v0 read 512+512\n1000 v1 read 1024+512\n"
			"1000 v0 read 2048+512\n");
	rig_free(rig);
}

/* The third began when the first had ended and the second had not: it waits for the first alone.
 * The fourth waits for all. */
static void dependencies_are_kept(void **state)
{
	static const char trace[] =
	    "10000,h,0,Read,0,512,10000\n"     /* 1 ms .. 2 ms */
	    "10000,h,0,Read,512,512,60000\n"   /* 1 ms .. 7 ms */
	    "40000,h,0,Read,1024,512,10000\n"  /* 4 ms .. 5 ms */
	    "80000,h,0,Read,2048,512,10000\n"; /* 8 ms, 1 ms after the second */
	struct replay_config config = defaults();
	struct rig *rig;

	config.mode = REPLAY_DEPENDENCY;
	/* As in the trace: the same times. */
	rig = rig_new(trace, config, 0);
	rig_free(rig);
	rig = rig_new(trace, config, NS_PER_MS);
	/* 1 ms each: the third still thinks for 2 ms after the first, the fourth for 1 ms. */
	expect_log(rig, "0 v0 read 0+512\n0 v0 read 512+512\n3000 v0 read 1024+512\n"
			"5000 v0 read 2048+512\n");
	rig_free(rig);
	/* The storage is slower: the application waits for it, and then thinks. */
	rig = rig_new(trace, config, 20 * NS_PER_MS);
	expect_log(rig, "0 v0 read 0+512\n0 v0 read 512+512\n22000 v0 read 1024+512\n"
			"43000 v0 read 2048+512\n");
	assert_int_equal(told(rig, "lateness", "max_ns"), 0);
	rig_free(rig);
}

/* More is due than may be in flight: the rest is sent late, and that is told. */
static void lateness_is_told(void **state)
{
	struct replay_config config = defaults();
	struct rig *rig;

	config.queue_depth = 1;
	rig = rig_new(V3 "1000 a read 0 512\n2000 a read 512 512\n30000 a read 1024 512\n", config,
		      15 * NS_PER_MS);
	expect_log(rig, "0 v0 read 0+512\n15000 v0 read 512+512\n30000 v0 read 1024+512\n");
	assert_int_equal(told(rig, "lateness", "max_ns"), 14 * NS_PER_MS);
	assert_int_equal(told(rig, "lateness", "late"), 1);
	assert_int_equal(rig->run.workload->streams[0].backlog, 2);
	/* From when it was due. */
	assert_int_equal(rig->run.workload->streams[0].total.response.max_ns, 29 * NS_PER_MS);
	rig_free(rig);
}

/* ---- places ---- */

static void devices_are_spread(void **state)
{
	struct rig *rig = rig_new(
	    V3 "1 a read 0 512\n2 b read 0 512\n3 c read 0 512\n4 b read 0 512\n", defaults(), 0);

	expect_log(rig, "0 v0 read 0+512\n1 v1 read 0+512\n2 v0 read 0+512\n3 v1 read 0+512\n");
	rig_free(rig);
}

static void a_map_leads(void **state)
{
	static const char *const both[] = {"v1", "h1/v0"}, *const first[] = {"v0"};
	struct replay_map_config rows[] = {
	    {.from = "b?", .to = {(void *)both, 2}, .stripe_bytes = 4096, .offset_bytes = MIB},
	    {.from = "a", .to = {(void *)first, 1}, .stripe_bytes = MIB, .size_bytes = 8192},
	};
	struct replay_config config = defaults();
	struct rig *rig;

	config.map = (struct cfg_list){rows, 2};
	config.max_io_bytes = 65536;
	rig = rig_new(
	    V3 "1 b1 write 2048 8192\n2 c read 0 512\n3 a read 4096 8192\n4 a read 81920 512\n"
	       "5 b2 sync 0 0\n6 a write 0 1000\n",
	    config, 0);
	/* 2 KiB, 4 KiB and 2 KiB of the stripe; a wraps within its 8 KiB; a sector is not cut. */
	expect_log(rig,
		   "0 v1 write 1050624+2048\n0 v0 write 1048576+4096\n0 v1 write 1052672+2048\n"
		   "2 v0 read 4096+4096\n2 v0 read 0+4096\n3 v0 read 0+512\n4 v1 flush 0+0\n"
		   "4 v0 flush 0+0\n5 v0 write 0+1024\n");
	assert_int_equal(told(rig, "left_out", "unmapped"), 1);
	assert_int_equal(told(rig, "changed", "wrapped"), 2);
	assert_int_equal(told(rig, "changed", "rounded"), 1);
	assert_int_equal(told(rig, "changed", "parts"), 4);
	rig_free(rig);
}

static void maps_are_checked(void **state)
{
	static const char *const nowhere[] = {"v7"};
	struct replay_map_config row = {
	    .from = "*", .to = {(void *)nowhere, 1}, .stripe_bytes = MIB};
	struct replay_config config = defaults();
	static const char *const first[] = {"v0"};
	struct rig *rig;

	config.map = (struct cfg_list){&row, 1};
	rig = rig_new(V3 "1 a read 0 512\n", config, 0);
	assert_string_equal(rig->why, "map: no host has a volume 'v7'");
	rig_free(rig);
	row.to.items = (void *)first;
	row.offset_bytes = 16 * MIB;
	rig = rig_new(V3 "1 a read 0 512\n", config, 0);
	assert_non_null(strstr(rig->why, "reaches beyond the end of volume 'v0'"));
	rig_free(rig);
}

static void what_is_beyond(void **state)
{
	static const char trace[] = V3 "1 a read 0 512\n2 a read 16777216 512\n3 a read 512 512\n";
	struct replay_config config = defaults();
	struct rig *rig;

	config.beyond = REPLAY_SKIP;
	rig = rig_new(trace, config, 0);
	expect_log(rig, "0 v0 read 0+512\n2 v0 read 512+512\n");
	assert_int_equal(told(rig, "left_out", "beyond_the_end"), 1);
	rig_free(rig);
	config.beyond = REPLAY_FAIL;
	rig = rig_new(trace, config, 0);
	fake_run_for(&rig->run, NS_PER_S);
	assert_string_equal(rig->why,
			    "an I/O of a at offset 16777216 is beyond the end of its region "
			    "of 16777216 bytes (beyond: fail)");
	assert_string_equal(rig->log, "0 v0 read 0+512\n");
	assert_int_equal(fake_stop(&rig->run), 0);
	rig_free(rig);
}

static void trims_nobody_knows(void **state)
{
	struct rig *rig = rig_new(V3 "1 a read 0 512\n", defaults(), 0);

	rig_free(rig);
	rig = rig_new(V3 "1000 a trim 0 4096\n2000 a read 0 512\n", defaults(), 0);
	rig->no_unmap = true;
	expect_log(rig, "0 v0 trim 0+4096\n1000 v0 read 0+512\n");
	rig_free(rig);
}

/* It would be read over and over. */
static void a_trace_of_nothing_ends(void **state)
{
	static const char *const first[] = {"v0"};
	struct replay_map_config row = {.from = "x", .to = {(void *)first, 1}, .stripe_bytes = MIB};
	struct replay_config config = defaults();
	struct rig *rig;

	config.map = (struct cfg_list){&row, 1};
	config.loops = 0;
	rig = rig_new(V3 "1 a read 0 512\n2 b read 0 512\n", config, 0);
	assert_string_equal(rig->why,
			    "no I/O of the trace is replayed: 2 of devices that `map` does "
			    "not name, 0 beyond the end; its devices are a, b");
	assert_int_equal(fake_stop(&rig->run), 0);
	rig_free(rig);
	rig = rig_new(V3 "1 a open\n", defaults(), 0);
	assert_string_equal(rig->why, "the trace holds no I/O");
	assert_int_equal(fake_stop(&rig->run), 0);
	rig_free(rig);
	config = defaults();
	config.max_bad_lines = 2;
	rig = rig_new(V3 "1 a open\n1 a read 0 0\n2 a read 0 0\n", config, 0);
	if (!strstr(rig->why, "the trace holds no I/O; malformed lines: 2, ") ||
	    !strstr(rig->why, ":3: the size is 0"))
		fail_msg("%s", rig->why);
	assert_int_equal(fake_stop(&rig->run), 0);
	rig_free(rig);
	/* One instant over and over passes time. */
	config = defaults();
	config.loops = 0;
	rig = rig_new(V3 "1 a read 0 512\n", config, 0);
	fake_run_for(&rig->run, 10 * NS_PER_MS);
	assert_int_equal(rig->sent, 11);
	assert_int_equal(fake_stop(&rig->run), 0);
	rig_free(rig);
}

static void bad_lines_end_it(void **state)
{
	char trace[40000] = V3;
	size_t used = strlen(trace);
	struct rig *rig;

	/* Beyond what is looked at before the start. */
	rig = rig_new(V3 "1 a read 0 512\nbad\n", defaults(), 0);
	assert_non_null(strstr(rig->why, ":3: 1 fields"));
	rig_free(rig);
	for (unsigned i = 0; i < 200; i++)
		used += (size_t)snprintf(trace + used, sizeof trace - used, "1 a read 0 512\nx\n");
	rig = rig_new(trace, defaults(), 0);
	assert_non_null(strstr(rig->why, ":3: "));
	rig_free(rig);
}

/* ---- data ---- */

static void fault(struct rig *rig, enum fake_fault kind, unsigned skip)
{
	rig->fake[0].fault = kind;
	rig->fake[0].skip = skip;
	rig->fake[0].fault_count = 1;
}

static void expect_kind(enum fake_fault kind, const char *trace, enum mismatch_kind found)
{
	struct rig *rig = rig_new(trace, defaults(), NS_PER_US);

	fault(rig, kind, 0);
	fake_run_for(&rig->run, NS_PER_S);
	assert_int_equal(fake_stop(&rig->run), 0);
	assert_int_equal(fake_verify(&rig->run), 0);
	assert_true(rig->run.mismatches > 0);
	assert_true(rig->run.workload->check.mismatches[found] > 0);
	rig_free(rig);
}

#define WRITES V3 "100 a write 0 16384\n2000 a write 0 16384\n"

static void faults_are_named(void **state)
{
	expect_kind(FAKE_CORRUPT, WRITES "3000 a read 0 16384\n", MISMATCH_CORRUPT);
	expect_kind(FAKE_MISDIRECTED,
		    V3 "1 a read 65536 512\n200 a write 4096 4096\n"
		       "300 a read 1052672 4096\n400 a write 8192 512\n",
		    MISMATCH_MISDIRECTED);
}

static void later_faults_are_named(void **state)
{
	static const struct {
		enum fake_fault fault;
		enum mismatch_kind found;
	} cases[] = {{FAKE_LOST, MISMATCH_STALE}, {FAKE_TORN, MISMATCH_TORN}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct replay_config config = defaults();
		struct rig *rig = rig_new(V3 "1000 a write 0 16384\n2000 a write 0 16384\n"
					     "3000 a read 0 16384\n",
					  config, NS_PER_US);

		fake_run_for(&rig->run, 500 * NS_PER_US);
		fault(rig, cases[i].fault, 0); /* of the second write */
		fake_run_for(&rig->run, NS_PER_S);
		assert_int_equal(fake_stop(&rig->run), 0);
		assert_int_equal(rig->run.mismatches, 1);
		assert_int_equal(rig->run.last.kind, cases[i].found);
		rig_free(rig);
	}
}

/* Writes that meet, reads beside a write, failed writes, trims: nothing is known, nothing is said.
 */
static void what_is_not_known_is_not_checked(void **state)
{
	static const char trace[] = V3 "1000 a write 0 8192\n1010 a write 4096 8192\n"
				       "1020 a read 0 4096\n900000 a read 0 12288\n"
				       "1000000 a write 65536 4096\n1100000 a read 65536 4096\n"
				       "1200000 a trim 65536 4096\n1300000 a read 65536 4096\n"
				       "1400000 a write 0 4096\n1500000 a read 0 4096\n";
	struct rig *rig = rig_new(trace, defaults(), 10 * NS_PER_MS);

	rig->delays_ns[0] = 100 * NS_PER_MS; /* ends long after the second */
	fake_run_for(&rig->run, NS_PER_S - 10 * NS_PER_MS);
	fault(rig, FAKE_FAILED_NOT_DONE, 0); /* of the write at 65536 */
	fake_run_for(&rig->run, 2 * NS_PER_S);
	assert_int_equal(fake_stop(&rig->run), 0);
	assert_int_equal(told(rig, "verified", "reads_checked"), 1);
	assert_int_equal(fake_verify(&rig->run), 0);
	assert_int_equal(rig->run.mismatches, 0);
	assert_int_equal(rig->run.workload->check.pages_written, 8);
	assert_int_equal(rig->run.workload->check.pages_read_back, 8);
	rig_free(rig);
}

/* A slot for all of the read-back of two volumes. */
static void one_in_flight_reads_back_all(void **state)
{
	struct replay_config config = defaults();
	struct rig *rig;

	config.queue_depth = 1;
	rig = rig_new(V3
		      "1 a write 0 512\n2 b write 0 512\n3 a write 8388608 1048576\n4 b write 4096 "
		      "1048576\n",
		      config, NS_PER_US);
	fake_run_for(&rig->run, NS_PER_S);
	assert_int_equal(fake_stop(&rig->run), 0);
	assert_int_equal(fake_verify(&rig->run), 0);
	assert_int_equal(rig->run.workload->check.pages_read_back, 2 + 2 * 2048);
	assert_int_equal(rig->run.mismatches, 0);
	assert_true(rig->run.workload->progress == 1);
	rig_free(rig);
}

static void a_gone_volume_ends(void **state)
{
	struct rig *rig = rig_new(V3 "1 a write 0 1048576\n", defaults(), NS_PER_US);

	fake_run_for(&rig->run, NS_PER_S);
	assert_int_equal(fake_stop(&rig->run), 0);
	rig->fake[0].fault = FAKE_GONE;
	assert_int_equal(fake_verify(&rig->run), 0);
	assert_int_equal(rig->run.workload->check.pages_not_readable, 2048);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(timed_is_on_time),
	    cmocka_unit_test(times_and_places_scale),
	    cmocka_unit_test(loops_go_on),
	    cmocka_unit_test(afap_keeps_the_depth),
	    cmocka_unit_test(dependencies_are_kept),
	    cmocka_unit_test(lateness_is_told),
	    cmocka_unit_test(devices_are_spread),
	    cmocka_unit_test(a_map_leads),
	    cmocka_unit_test(maps_are_checked),
	    cmocka_unit_test(what_is_beyond),
	    cmocka_unit_test(trims_nobody_knows),
	    cmocka_unit_test(a_trace_of_nothing_ends),
	    cmocka_unit_test(bad_lines_end_it),
	    cmocka_unit_test(faults_are_named),
	    cmocka_unit_test(later_faults_are_named),
	    cmocka_unit_test(what_is_not_known_is_not_checked),
	    cmocka_unit_test(one_in_flight_reads_back_all),
	    cmocka_unit_test(a_gone_volume_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
