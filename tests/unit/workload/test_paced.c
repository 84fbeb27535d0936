/* SPDX-License-Identifier: MIT
 *
 * The raw workload with a rate: even arrivals whatever the storage does, and every block verified.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake_device.h"
#include "harness/workload/raw.h"

static const struct raw_config plain = {
    .op = RAW_RW, .block_bytes = 8192, .queue_depth = 64, .read_share = 0.5, .rate = 1000};

static void open_paced(struct fake_run *run, struct fake_device *fake,
		       const struct raw_config *config, uint64_t delay_ns)
{
	struct workload_env env = {
	    .seed = 2, .device_count = 1, .mismatch = fake_mismatch, .arg = run};
	struct err err = {0};

	*run = (struct fake_run){.loop = NULL};
	assert_int_equal(loop_new_virtual(0, &run->loop), 0);
	fake_init(fake, run->loop, "v", 4 * MIB, delay_ns);
	env.loop = run->loop;
	env.devices = &fake->device;
	if (raw_workload_ops.open(&env, config, &run->workload, &err) < 0)
		fail_msg("open: %s", err.what);
	assert_int_equal(fake_prepare(run), 0);
}

static void close_paced(struct fake_run *run, struct fake_device *fake)
{
	run->workload->ops->free(run->workload);
	fake_done(fake);
	loop_free(run->loop);
}

static void arrivals_are_even_and_verified(void **state)
{
	struct fake_device fake;
	struct fake_run run;

	open_paced(&run, &fake, &plain, 3 * NS_PER_MS);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, 10 * NS_PER_S - 1);
	assert_int_equal(fake.submitted, 10000);
	assert_int_equal(fake_stop(&run), 0);
	assert_int_equal(run.workload->stream_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct stream *stream = &run.workload->streams[i];

		assert_in_range(stream->total.ios, 4800, 5200);
		assert_int_equal(stream->due, stream->total.ios);
		assert_int_equal(stream->total.response.max_ns, 3 * NS_PER_MS);
		assert_in_range(stream->max_gap_ns, 1, 30 * NS_PER_MS);
	}
	assert_int_equal(run.workload->streams[0].total.ios + run.workload->streams[1].total.ios,
			 10000);
	assert_int_equal(run.workload->check.pages_checked, run.workload->streams[0].total.ios);
	assert_int_equal(fake_verify(&run), 0);
	assert_int_equal(run.workload->check.pages_read_back, run.workload->check.pages_written);
	assert_true(run.workload->check.pages_written > 400);
	assert_int_equal(run.mismatches, 0);
	assert_true(run.workload->progress == 1);
	close_paced(&run, &fake);
}

/* Two seconds without an answer: more is due than may be in flight; each counts from when it was
 * due. */
static void a_stall_is_told_in_full(void **state)
{
	struct fake_device fake;
	struct fake_run run;
	uint64_t due = 0;

	open_paced(&run, &fake, &plain, NS_PER_MS);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, NS_PER_S - 1);
	fake.delay_ns = 2 * NS_PER_S;
	fake_run_for(&run, NS_PER_S);
	assert_int_equal(fake.in_flight, plain.queue_depth);
	fake.delay_ns = NS_PER_MS;
	fake_run_for(&run, 3 * NS_PER_S);
	workload_close_gaps(run.workload, loop_now_ns(run.loop));
	workload_count_due(run.workload, loop_now_ns(run.loop));
	for (unsigned i = 0; i < 2; i++) {
		const struct stream *stream = &run.workload->streams[i];

		assert_in_range(stream->max_gap_ns, 1990 * NS_PER_MS, 2010 * NS_PER_MS);
		assert_in_range(stream->total.response.max_ns, 1990 * NS_PER_MS, 2010 * NS_PER_MS);
		due += stream->due;
	}
	assert_int_equal(due, 5000);
	assert_int_equal(fake.max_in_flight, plain.queue_depth);
	assert_int_equal(fake_stop(&run), 0);
	close_paced(&run, &fake);
}

static void what_is_never_issued_is_due_all_the_same(void **state)
{
	struct fake_device fake;
	struct fake_run run;
	uint64_t due = 0;

	open_paced(&run, &fake, &plain, 3600 * NS_PER_S);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, 2 * NS_PER_S);
	workload_count_due(run.workload, loop_now_ns(run.loop));
	for (unsigned i = 0; i < 2; i++)
		due += run.workload->streams[i].due;
	assert_int_equal(due, 2000);
	assert_int_equal(fake_stop(&run), 0);
	close_paced(&run, &fake);
}

static void faults_are_found(void **state)
{
	static const struct {
		enum fake_fault fault;
		bool found;
	} cases[] = {
	    {FAKE_LOST, true},	      {FAKE_TORN, true},	 {FAKE_MISDIRECTED, true},
	    {FAKE_CORRUPT, true},     {FAKE_FAILED_DONE, false}, {FAKE_FAILED_NOT_DONE, false},
	    {FAKE_READ_ERROR, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fake_device fake;
		struct fake_run run;
		uint64_t errors;

		open_paced(&run, &fake, &plain, NS_PER_MS);
		run.workload->ops->start(run.workload);
		fake_run_for(&run, NS_PER_S);
		fake.fault = cases[i].fault;
		fake.fault_count = 3;
		fake_run_for(&run, NS_PER_S);
		assert_int_equal(fake.fault_count, 0);
		assert_int_equal(fake_stop(&run), 0);
		assert_int_equal(fake_verify(&run), 0);
		errors =
		    run.workload->streams[0].total.errors + run.workload->streams[1].total.errors;
		if ((run.mismatches > 0) != cases[i].found)
			fail_msg("fault %d: %llu mismatches", cases[i].fault,
				 (unsigned long long)run.mismatches);
		assert_int_equal(errors, cases[i].fault >= FAKE_FAILED_DONE ? 3 : 0);
		close_paced(&run, &fake);
	}
}

/* A volume that is gone ends the read-back at once, and says how much was not read. */
static void a_volume_that_is_gone(void **state)
{
	struct fake_device fake;
	struct fake_run run;
	const struct workload_check *check;

	open_paced(&run, &fake, &plain, NS_PER_MS);
	check = &run.workload->check;
	run.workload->ops->start(run.workload);
	fake_run_for(&run, NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	fake.fault = FAKE_GONE;
	fake.submitted = 0;
	assert_int_equal(fake_verify(&run), 0);
	assert_in_range(fake.submitted, 1, 16);
	assert_int_equal(check->pages_read_back, 0);
	assert_int_equal(check->pages_not_readable, check->pages_written);
	close_paced(&run, &fake);
}

static void one_kind_only(void **state)
{
	struct raw_config config = plain;
	struct fake_device fake;
	struct fake_run run;

	config.op = RAW_WRITE;
	config.pattern = RAW_SEQUENTIAL;
	config.span_bytes = MIB;
	open_paced(&run, &fake, &config, 0);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	assert_int_equal(run.workload->stream_count, 1);
	assert_int_equal(fake.reads, 0);
	assert_int_equal(fake.max_end, MIB);
	assert_int_equal(fake_verify(&run), 0);
	assert_int_equal(run.workload->check.pages_read_back, MIB / config.block_bytes);
	close_paced(&run, &fake);
}

static void blocks_must_carry_their_identity(void **state)
{
	struct raw_config config = plain;
	struct err err = {0};

	config.block_bytes = 512;
	assert_int_equal(raw_workload_ops.check(&config, "v", MIB, 512, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "4KiB"));
	config.content = RAW_NONE;
	assert_int_equal(raw_workload_ops.check(&config, "v", MIB, 512, &err), 0);
	config.content = RAW_VERIFIED;
	config.block_bytes = 64 * KIB;
	assert_int_equal(raw_workload_ops.check(&config, "v", MIB, 512, &err), 0);
	config.block_bytes = 6 * KIB;
	assert_int_equal(raw_workload_ops.check(&config, "v", MIB, 512, &err), -EINVAL);
	config.rate = 0;
	assert_int_equal(raw_workload_ops.check(&config, "v", MIB, 512, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(arrivals_are_even_and_verified),
	    cmocka_unit_test(a_stall_is_told_in_full),
	    cmocka_unit_test(what_is_never_issued_is_due_all_the_same),
	    cmocka_unit_test(faults_are_found),
	    cmocka_unit_test(a_volume_that_is_gone),
	    cmocka_unit_test(one_kind_only),
	    cmocka_unit_test(blocks_must_carry_their_identity),
	};

	return cmocka_run_group_tests_name("paced", tests, NULL, NULL);
}
