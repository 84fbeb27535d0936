/* SPDX-License-Identifier: MIT
 *
 * The Exchange workload on storage that lies: each lie is found and called by its name; honest
 * failures are counted as errors and never as mismatches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_device.h"
#include "harness/workload/exchange.h"

struct fixture {
	struct loop *loop;
	struct fake_device fake;
	struct fake_run run;
};

static void open_fixture(struct fixture *fixture)
{
	struct exchange_config config = {
	    .profile = 2,
	    .mailboxes = 100,
	    .iops_per_mailbox = 1,
	    .copies = 2,
	    .log_bytes = 16 * MIB,
	    .prefill_bytes = 32 * MIB,
	    .log_fua = true,
	    .max_outstanding = 64,
	};
	struct workload_env env = {
	    .seed = 4,
	    .devices = &fixture->fake.device,
	    .device_count = 1,
	    .mismatch = fake_mismatch,
	    .arg = &fixture->run,
	};
	struct err err = {0};

	assert_int_equal(loop_new_virtual(0, &fixture->loop), 0);
	fake_init(&fixture->fake, fixture->loop, "db1", 64 * MIB, NS_PER_MS);
	fixture->run = (struct fake_run){.loop = fixture->loop};
	env.loop = fixture->loop;
	assert_int_equal(exchange_workload_ops.open(&env, &config, &fixture->run.workload, &err),
			 0);
	assert_int_equal(fake_prepare(&fixture->run), 0);
	fixture->run.workload->ops->start(fixture->run.workload);
	fake_run_for(&fixture->run, 2 * NS_PER_S);
	assert_int_equal(fixture->run.mismatches, 0);
}

static void close_fixture(struct fixture *fixture)
{
	fixture->run.workload->ops->free(fixture->run.workload);
	fake_done(&fixture->fake);
	loop_free(fixture->loop);
}

static uint64_t errors_of(const struct workload *workload)
{
	uint64_t errors = 0;

	for (unsigned i = 0; i < workload->stream_count; i++)
		errors += workload->streams[i].total.errors;
	return errors;
}

static uint64_t others(const struct workload_check *check, enum mismatch_kind kind,
		       enum mismatch_kind also)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < MISMATCH_KINDS; i++)
		if (i != kind && i != also)
			sum += check->mismatches[i];
	return sum;
}

static const struct {
	enum fake_fault fault;
	bool in_log;
	enum mismatch_kind want, also;
} lies[] = {
    {FAKE_LOST, false, MISMATCH_STALE, MISMATCH_STALE},
    {FAKE_TORN, false, MISMATCH_TORN, MISMATCH_TORN},
    {FAKE_MISDIRECTED, false, MISMATCH_MISDIRECTED, MISMATCH_STALE},
    {FAKE_CORRUPT, false, MISMATCH_CORRUPT, MISMATCH_CORRUPT},
    /* The log's segments are 4 KiB: what is torn there was not written at all. */
    {FAKE_LOST, true, MISMATCH_NEVER_WRITTEN, MISMATCH_NEVER_WRITTEN},
};

static void lies_are_named(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct fixture fixture;
		const struct workload_check *check;

		open_fixture(&fixture);
		fixture.fake.from = lies[i].in_log ? 48 * MIB : 0;
		fixture.fake.to = lies[i].in_log ? 64 * MIB : 32 * MIB;
		fixture.fake.fault_count = 1;
		fixture.fake.fault = lies[i].fault;
		fake_run_for(&fixture.run, 2 * NS_PER_S);
		assert_int_equal(fixture.fake.fault_count, 0);
		assert_int_equal(fake_stop(&fixture.run), 0);
		assert_int_equal(fake_verify(&fixture.run), 0);
		check = &fixture.run.workload->check;
		if (check->mismatches[lies[i].want] == 0)
			fail_msg("case %zu: %s not found", i, mismatch_names[lies[i].want]);
		if (others(check, lies[i].want, lies[i].also))
			fail_msg("case %zu: called something else too", i);
		assert_true(fixture.run.last.offset_bytes >= fixture.fake.from);
		assert_true(fixture.run.last.offset_bytes < fixture.fake.to);
		assert_string_equal(fixture.run.last.volume, "db1");
		assert_int_equal(errors_of(fixture.run.workload), 0);
		close_fixture(&fixture);
	}
}

static void failures_are_errors_not_mismatches(void **state)
{
	static const enum fake_fault faults[] = {FAKE_FAILED_DONE, FAKE_FAILED_NOT_DONE,
						 FAKE_READ_ERROR};

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct fixture fixture;
		const struct workload_check *check;

		open_fixture(&fixture);
		fixture.fake.fault_count = 50;
		fixture.fake.fault = faults[i];
		fake_run_for(&fixture.run, 5 * NS_PER_S);
		assert_int_equal(fixture.fake.fault_count, 0);
		assert_int_equal(fake_stop(&fixture.run), 0);
		assert_int_equal(errors_of(fixture.run.workload), 50);
		assert_int_equal(fake_verify(&fixture.run), 0);
		check = &fixture.run.workload->check;
		assert_int_equal(fixture.run.mismatches, 0);
		assert_int_equal(check->pages_read_back, check->pages_written);
		assert_int_equal(check->pages_not_readable, 0);
		close_fixture(&fixture);
	}
}

static void unreadable_pages_are_counted(void **state)
{
	struct fixture fixture;
	const struct workload_check *check;

	open_fixture(&fixture);
	assert_int_equal(fake_stop(&fixture.run), 0);
	fixture.fake.from = 4 * MIB;
	fixture.fake.to = 4 * MIB + 1;
	fixture.fake.fault_count = 1;
	fixture.fake.fault = FAKE_READ_ERROR;
	assert_int_equal(fake_verify(&fixture.run), 0);
	check = &fixture.run.workload->check;
	assert_int_equal(check->pages_not_readable, 8);
	assert_int_equal(check->pages_read_back + 8, check->pages_written);
	assert_int_equal(fixture.run.mismatches, 0);
	close_fixture(&fixture);
}

static void a_dead_device_is_given_up(void **state)
{
	struct fixture fixture;
	const struct workload_check *check;
	uint64_t submitted;

	open_fixture(&fixture);
	fixture.fake.fault = FAKE_GONE;
	fake_run_for(&fixture.run, NS_PER_S);
	assert_int_equal(fake_stop(&fixture.run), 0);
	submitted = fixture.fake.submitted;
	assert_int_equal(fake_verify(&fixture.run), 0);
	check = &fixture.run.workload->check;
	assert_true(fixture.fake.submitted - submitted <= BULK_DEPTH);
	assert_int_equal(check->pages_read_back, 0);
	assert_int_equal(check->pages_not_readable, check->pages_written);
	assert_true(check->pages_written > 1024);
	assert_int_equal(fixture.run.mismatches, 0);
	close_fixture(&fixture);
}

static void damage_after_the_run_is_found_by_read_back(void **state)
{
	struct fixture fixture;

	open_fixture(&fixture);
	assert_int_equal(fake_stop(&fixture.run), 0);
	fixture.fake.memory[10 * MIB + 77] ^= 0x80;
	memset(fixture.fake.memory + 12 * MIB, 0, 32768);
	fixture.fake.memory[48 * MIB + 100] ^= 1; /* the first log segment */
	assert_int_equal(fake_verify(&fixture.run), 0);
	assert_int_equal(fixture.run.mismatches, 3);
	assert_int_equal(fixture.run.workload->check.mismatches[MISMATCH_CORRUPT], 2);
	assert_int_equal(fixture.run.workload->check.mismatches[MISMATCH_NEVER_WRITTEN], 1);
	assert_int_equal(fixture.run.last.offset_bytes, 48 * MIB);
	close_fixture(&fixture);
}

static void a_failing_prefill_fails_the_preparation(void **state)
{
	struct exchange_config config = {.mailboxes = 10,
					 .log_bytes = 16 * MIB,
					 .prefill_bytes = 32 * MIB,
					 .max_outstanding = 8};
	struct fixture fixture;
	struct workload_env env = {.seed = 4, .devices = &fixture.fake.device, .device_count = 1};

	assert_int_equal(loop_new_virtual(0, &fixture.loop), 0);
	fake_init(&fixture.fake, fixture.loop, "db1", 64 * MIB, NS_PER_MS);
	fixture.run = (struct fake_run){.loop = fixture.loop};
	env.loop = fixture.loop;
	assert_int_equal(exchange_workload_ops.open(&env, &config, &fixture.run.workload, NULL), 0);
	fixture.fake.fault = FAKE_GONE;
	assert_int_equal(fake_prepare(&fixture.run), -ENODEV);
	assert_true(fixture.fake.submitted <= BULK_DEPTH);
	assert_int_equal(fake_stop(&fixture.run), 0);
	close_fixture(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lies_are_named),
	    cmocka_unit_test(failures_are_errors_not_mismatches),
	    cmocka_unit_test(unreadable_pages_are_counted),
	    cmocka_unit_test(a_dead_device_is_given_up),
	    cmocka_unit_test(damage_after_the_run_is_found_by_read_back),
	    cmocka_unit_test(a_failing_prefill_fails_the_preparation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
