/* SPDX-License-Identifier: MIT
 *
 * The Exchange workload on a well-behaved device: rates, sizes, exactly-once, log ring, read-back.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_device.h"
#include "harness/workload/exchange.h"

#define DELAY_NS (2 * NS_PER_MS)

/* One database of the QNAP report: 58.046 transactional IOPS. */
static struct exchange_config qnap(void)
{
	return (struct exchange_config){
	    .profile = 2,
	    .mailboxes = 1000,
	    .iops_per_mailbox = 0.058046,
	    .copies = 2,
	    .log_bytes = 16 * MIB,
	    .prefill_bytes = 32 * MIB,
	    .bdm = true,
	    .bdm_per_s = 9.0,
	    .log_fua = true,
	    .max_outstanding = 64,
	};
}

static void open_run(struct fake_run *run, struct loop *loop, struct fake_device *fakes,
		     unsigned count, const struct exchange_config *config, uint64_t seed)
{
	static struct workload_device devices[4];
	struct workload_env env = {
	    .loop = loop,
	    .seed = seed,
	    .devices = devices,
	    .device_count = count,
	    .mismatch = fake_mismatch,
	    .arg = run,
	};
	struct err err = {0};

	*run = (struct fake_run){.loop = loop};
	for (unsigned i = 0; i < count; i++)
		devices[i] = fakes[i].device;
	if (exchange_workload_ops.open(&env, config, &run->workload, &err) < 0)
		fail_msg("open: %s", err.what);
}

static struct stream *stream_of(struct workload *workload, const char *name)
{
	for (unsigned i = 0; i < workload->stream_count; i++)
		if (strcmp(workload->streams[i].name, name) == 0)
			return &workload->streams[i];
	fail_msg("no stream %s", name);
	return NULL;
}

static void assert_near(const char *what, double got, double want, double tolerance)
{
	if (fabs(got - want) > tolerance * want)
		fail_msg("%s: got %g, want %g within %g %%", what, got, want, tolerance * 100);
}

static void run_lengths_have_the_right_means(void **state)
{
	struct exchange_config config = qnap();
	struct exchange_rates rates;
	struct rng rng;
	double reads = 0, writes = 0, logs = 0;
	const unsigned draws = 1000000;

	exchange_rates(&config, 1, &rates);
	rng_init(&rng, 11, 0);
	for (unsigned i = 0; i < draws; i++) {
		reads += exchange_run_length(&rng, rates.profile->read_continuation, 8);
		writes += exchange_run_length(&rng, rates.profile->write_continuation, 8);
		logs += exchange_run_length(&rng, rates.log_continuation, 64);
	}
	assert_near("read bytes", reads / draws * 32768, 33350, 0.01);
	assert_near("write bytes", writes / draws * 32768, 36852, 0.01);
	assert_near("log bytes", logs / draws * 4096, 20620, 0.01);
}

static void rates_follow_mailboxes(void **state)
{
	struct exchange_config config = {.profile = 0, .mailboxes = 500};
	struct exchange_rates rates;

	exchange_rates(&config, 5, &rates);
	assert_near("planned", rates.transactional, 20, 1e-9);
	assert_near("reads", rates.read, 12.86, 1e-9);
	assert_near("writes", rates.write, 7.14, 1e-9);
	assert_near("log writes", rates.log_write, 1.82784, 1e-9);
	assert_true(rates.bdm == 0);
	config.copies = 1;
	exchange_rates(&config, 5, &rates);
	assert_true(rates.log_read == 0);
	config.read_share = 0.5;
	config.iops_per_mailbox = 1;
	exchange_rates(&config, 5, &rates);
	assert_near("reads", rates.read, 50, 1e-9);
}

/* What was due is what was drawn, whether it could be issued or not. */
static void due_is_what_was_drawn(void **state)
{
	uint64_t due[2], ended[2];

	for (unsigned i = 0; i < 2; i++) {
		struct exchange_config config = qnap();
		struct fake_device fake;
		struct fake_run run;
		struct loop *loop;
		const struct stream *reads;

		assert_int_equal(loop_new_virtual(0, &loop), 0);
		/* The second device serves two reads a second, far fewer than are due. */
		fake_init(&fake, loop, "db1", 64 * MIB, i ? NS_PER_S : NS_PER_MS);
		config.max_outstanding = i ? 2 : 64;
		open_run(&run, loop, &fake, 1, &config, 9);
		assert_int_equal(fake_prepare(&run), 0);
		workload_reset_counters(run.workload);
		run.workload->ops->start(run.workload);
		fake_run_for(&run, 20 * NS_PER_S);
		workload_count_due(run.workload, loop_now_ns(loop));
		reads = stream_of(run.workload, "db-read");
		due[i] = reads->due;
		ended[i] = reads->total.ios;
		assert_int_equal(fake_stop(&run), 0);
		run.workload->ops->free(run.workload);
		fake_done(&fake);
		loop_free(loop);
	}
	assert_near("due", (double)due[0], 20 * 37.3, 0.1);
	assert_int_equal(due[0], due[1]);
	assert_true(ended[0] >= due[0] - 2 && ended[0] <= due[0]);
	assert_true(ended[1] < due[1] / 2);
}

static void an_hour_keeps_the_rates(void **state)
{
	static const struct {
		const char *name;
		double per_s, bytes;
	} want[] = {
	    {"db-read", 37.327, 33350}, {"db-write", 20.719, 36852},  {"log-write", 5.305, 20620},
	    {"bdm-read", 9.0, 261600},	{"log-read", 0.4178, 262144},
	};
	struct exchange_config config = qnap();
	struct fake_device fake;
	struct fake_run run;
	struct loop *loop;
	uint64_t ios = 0, ended;

	assert_int_equal(loop_new_virtual(NS_PER_S, &loop), 0);
	fake_init(&fake, loop, "db1", 64 * MIB, DELAY_NS);
	open_run(&run, loop, &fake, 1, &config, 5);
	assert_near("planned", run.workload->plan.transactional_iops, 58.046, 1e-9);
	assert_int_equal(fake_prepare(&run), 0);
	assert_int_equal(run.workload->check.pages_written, 1024);
	ended = fake.ended;
	run.workload->ops->start(run.workload);
	fake_run_for(&run, 3600 * NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct stream *stream = stream_of(run.workload, want[i].name);

		assert_near(want[i].name, (double)stream->total.ios / 3600, want[i].per_s, 0.02);
		assert_near(want[i].name, (double)stream->total.bytes / (double)stream->total.ios,
			    want[i].bytes, 0.01);
		assert_near(want[i].name, stream->planned_per_s, want[i].per_s, 0.005);
		assert_near(want[i].name, hist_mean_ns(&stream->total.service), DELAY_NS, 0.01);
		assert_int_equal(stream->in_flight, 0);
		assert_int_equal(stream->total.errors, 0);
		ios += stream->total.ios;
	}
	/* Each one ended once, and none is missing. */
	assert_int_equal(ios, fake.ended - ended);
	assert_int_equal(fake.submitted, fake.ended);
	assert_int_equal(run.mismatches, 0);
	assert_true(run.workload->check.pages_checked > 400000);
	assert_int_equal(fake_verify(&run), 0);
	assert_int_equal(run.mismatches, 0);
	assert_int_equal(run.workload->check.pages_read_back, run.workload->check.pages_written);
	/* 16 MiB of log have long been written; the database has grown to its end. */
	assert_true(run.workload->check.pages_written > 1024 + 4096);
	assert_true(fake.max_end == 64 * MIB);
	run.workload->ops->free(run.workload);
	fake_done(&fake);
	loop_free(loop);
}

/* The load is the same whatever the device does: only its own seed decides. */
static void arrivals_do_not_depend_on_the_device(void **state)
{
	static const uint64_t delays[] = {0, 100 * NS_PER_US, 30 * NS_PER_MS};
	uint64_t ios[ARRAY_SIZE(delays)];

	for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
		struct exchange_config config = qnap();
		struct fake_device fake;
		struct fake_run run;
		struct loop *loop;

		assert_int_equal(loop_new_virtual(0, &loop), 0);
		fake_init(&fake, loop, "db1", 64 * MIB, delays[i]);
		config.prefill_bytes = 0;
		open_run(&run, loop, &fake, 1, &config, 5);
		run.workload->ops->start(run.workload);
		fake_run_for(&run, 60 * NS_PER_S);
		assert_int_equal(fake_stop(&run), 0);
		ios[i] = stream_of(run.workload, "db-read")->total.ios;
		assert_int_equal(fake_verify(&run), 0);
		assert_int_equal(run.mismatches, 0);
		run.workload->ops->free(run.workload);
		fake_done(&fake);
		loop_free(loop);
	}
	assert_int_equal(ios[0], ios[1]);
	assert_int_equal(ios[0], ios[2]);
}

static void late_arrivals_are_all_issued(void **state)
{
	struct exchange_config config = qnap();
	struct fake_device fake;
	struct fake_run run;
	struct loop *loop;
	struct stream *reads;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "db1", 64 * MIB, NS_PER_MS);
	config.max_outstanding = 4;
	open_run(&run, loop, &fake, 1, &config, 9);
	assert_int_equal(fake_prepare(&run), 0);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, 10 * NS_PER_S);
	fake.delay_ns = 5 * NS_PER_S; /* a stall ... */
	fake_run_for(&run, 4 * NS_PER_S);
	fake.delay_ns = NS_PER_MS; /* ... whose backlog is worked off */
	fake_run_for(&run, 16 * NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	reads = stream_of(run.workload, "db-read");
	assert_near("reads", (double)reads->total.ios / 30, 37.327, 0.08);
	assert_true(reads->backlog > 100);
	assert_true(reads->total.response.max_ns >= 4 * NS_PER_S);
	/* Most of those late ones were served fast once sent: only the response tells. */
	assert_true(hist_quantile_ns(&reads->total.response, 0.9) > NS_PER_S);
	assert_true(hist_quantile_ns(&reads->total.service, 0.9) < 2 * NS_PER_MS);
	assert_true(reads->max_gap_ns > 4 * NS_PER_S && reads->max_gap_ns < 6 * NS_PER_S);
	run.workload->ops->free(run.workload);
	fake_done(&fake);
	loop_free(loop);
}

static void the_log_ring_wraps(void **state)
{
	struct exchange_config config = qnap();
	struct fake_device fake;
	struct fake_run run;
	struct loop *loop;
	struct exchange *exchange;
	struct stream *writes, *reads;
	uint64_t files;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "db1", 64 * MIB, NS_PER_MS);
	config.log_bytes = 3 * MIB;
	config.copies = 3;
	config.iops_per_mailbox = 0.6;
	open_run(&run, loop, &fake, 1, &config, 9);
	assert_int_equal(fake_prepare(&run), 0);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, 60 * NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	exchange = container_of(run.workload, struct exchange, base);
	writes = stream_of(run.workload, "log-write");
	reads = stream_of(run.workload, "log-read");
	files = exchange->dbs[0].files_closed;
	assert_int_equal(files, writes->total.bytes / MIB);
	assert_true(files > 30);
	/* Two other copies read four times 256 KiB of each; the last file may be under way. */
	assert_true(reads->total.ios <= files * 8 && reads->total.ios + 8 >= files * 8);
	assert_int_equal(exchange->dbs[0].log_reads_skipped, 0);
	assert_int_equal(exchange->dbs[0].log_next, writes->total.bytes / 4096 % 768);
	assert_int_equal(fake_verify(&run), 0);
	assert_int_equal(run.mismatches, 0);
	assert_int_equal(exchange->dbs[0].log.set.written, 768);
	run.workload->ops->free(run.workload);
	fake_done(&fake);
	loop_free(loop);
}

static void small_volumes_are_refused(void **state)
{
	static const struct {
		uint64_t volume, database, log, prefill;
		bool ok;
	} cases[] = {
	    {64 * MIB, 0, 16 * MIB, EXCHANGE_PREFILL_PRESET, true},
	    {18 * MIB, 0, 16 * MIB, EXCHANGE_PREFILL_PRESET, true},
	    {17 * MIB, 0, 16 * MIB, EXCHANGE_PREFILL_PRESET, false},
	    {8 * MIB, 0, 16 * MIB, 0, false},
	    {64 * MIB, 48 * MIB, 16 * MIB, 0, true},
	    {64 * MIB, 49 * MIB, 16 * MIB, 0, false},
	    {64 * MIB, 0, 16 * MIB, 49 * MIB, false},
	    {64 * MIB, 32 * MIB, 16 * MIB, 32 * MIB, true},
	    {64 * MIB, 0, 16 * MIB, 4096, false},
	};
	struct loop *loop;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct exchange_config config = qnap();
		struct fake_device fake;
		struct workload_env env = {
		    .loop = loop, .seed = 1, .devices = &fake.device, .device_count = 1};
		struct workload *workload = NULL;
		struct err err = {0};
		int r;

		fake_init(&fake, loop, "db1", cases[i].volume, 0);
		config.database_bytes = cases[i].database;
		config.log_bytes = cases[i].log;
		config.prefill_bytes = cases[i].prefill;
		r = exchange_workload_ops.open(&env, &config, &workload, &err);
		if ((r == 0) != cases[i].ok)
			fail_msg("case %zu: %d %s", i, r, err.what);
		if (r < 0) {
			assert_int_equal(r, -EINVAL);
			assert_null(workload);
			assert_non_null(strstr(err.what, "db1"));
			assert_true(err.hint[0] != '\0');
		} else {
			workload->ops->free(workload);
		}
		fake_done(&fake);
	}
	loop_free(loop);
}

static void a_volume_has_one_user(void **state)
{
	struct exchange_config config = qnap();
	struct workload_device devices[2];
	struct fake_device fake;
	struct loop *loop;
	struct workload_env env = {.seed = 1, .devices = devices, .device_count = 2};
	struct workload *workload;
	struct err err = {0};

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "db1", 64 * MIB, 0);
	env.loop = loop;
	devices[0] = devices[1] = fake.device;
	devices[1].host = "h2";
	assert_int_equal(exchange_workload_ops.open(&env, &config, &workload, &err), -EINVAL);
	assert_non_null(strstr(err.what, "h2"));
	fake_done(&fake);
	loop_free(loop);
}

static void stop_ends_the_preparation(void **state)
{
	struct exchange_config config = qnap();
	struct fake_device fake;
	struct fake_run run;
	struct fake_run drained;
	struct loop *loop;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "db1", 64 * MIB, NS_PER_S);
	open_run(&run, loop, &fake, 1, &config, 9);
	drained = run;
	run.status = drained.status = 1;
	run.workload->ops->prepare(run.workload, fake_callback, &run);
	fake_run_for(&run, 2 * NS_PER_S + 1);
	run.workload->ops->stop(run.workload, fake_callback, &drained);
	assert_int_equal(run.status, 1);
	assert_int_equal(fake_wait(&drained), 0);
	assert_int_equal(run.status, -ECANCELED);
	assert_int_equal(fake.submitted, fake.ended);
	assert_true(fake.ended < 128);
	run.workload->ops->free(run.workload);
	fake_done(&fake);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(run_lengths_have_the_right_means),
	    cmocka_unit_test(rates_follow_mailboxes),
	    cmocka_unit_test(due_is_what_was_drawn),
	    cmocka_unit_test(an_hour_keeps_the_rates),
	    cmocka_unit_test(arrivals_do_not_depend_on_the_device),
	    cmocka_unit_test(late_arrivals_are_all_issued),
	    cmocka_unit_test(the_log_ring_wraps),
	    cmocka_unit_test(small_volumes_are_refused),
	    cmocka_unit_test(a_volume_has_one_user),
	    cmocka_unit_test(stop_ends_the_preparation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
