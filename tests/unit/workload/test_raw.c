/* SPDX-License-Identifier: MIT
 *
 * The raw workload: depth, mix, places, errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake_device.h"
#include "harness/workload/raw.h"

static struct workload *open_raw(struct fake_run *run, struct loop *loop, struct fake_device *fake,
				 const struct raw_config *config)
{
	struct workload_env env = {
	    .loop = loop, .seed = 2, .devices = &fake->device, .device_count = 1};
	struct err err = {0};

	*run = (struct fake_run){.loop = loop};
	if (raw_workload_ops.open(&env, config, &run->workload, &err) < 0)
		fail_msg("open: %s", err.what);
	return run->workload;
}

static void the_loop_is_closed(void **state)
{
	struct raw_config config = {
	    .op = RAW_RW, .block_bytes = 4096, .queue_depth = 16, .read_share = 0.7};
	struct fake_device fake;
	struct fake_run run;
	struct loop *loop;
	struct workload *workload;
	double reads, writes;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "v", 16 * MIB, NS_PER_MS);
	workload = open_raw(&run, loop, &fake, &config);
	assert_int_equal(fake_prepare(&run), 0);
	workload->ops->start(workload);
	fake_run_for(&run, 10 * NS_PER_S);
	assert_int_equal(fake.in_flight, 16);
	assert_int_equal(fake_stop(&run), 0);
	assert_int_equal(fake.max_in_flight, 16);
	assert_int_equal(fake.submitted, fake.ended);
	assert_int_equal(workload->stream_count, 2);
	reads = (double)workload->streams[0].total.ios;
	writes = (double)workload->streams[1].total.ios;
	assert_true(reads + writes >= 159000 && reads + writes <= 160100);
	assert_true(reads / (reads + writes) > 0.69 && reads / (reads + writes) < 0.71);
	assert_true(workload->plan.transactional_iops == 0);
	assert_int_equal(fake_verify(&run), 0);
	workload->ops->free(workload);
	fake_done(&fake);
	loop_free(loop);
}

static void sequential_wraps_within_the_span(void **state)
{
	struct raw_config config = {.op = RAW_WRITE,
				    .pattern = RAW_SEQUENTIAL,
				    .block_bytes = 65536,
				    .queue_depth = 4,
				    .span_bytes = MIB};
	struct fake_device fake;
	struct fake_run run;
	struct loop *loop;
	struct workload *workload;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "v", 16 * MIB, NS_PER_MS);
	workload = open_raw(&run, loop, &fake, &config);
	workload->ops->start(workload);
	fake_run_for(&run, NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	assert_int_equal(fake.max_end, MIB);
	assert_int_equal(fake.reads, 0);
	assert_true(fake.writes > 3900);
	workload->ops->free(workload);
	fake_done(&fake);
	loop_free(loop);
}

static void a_dead_device_ends_the_loop(void **state)
{
	struct raw_config config = {.op = RAW_READ, .block_bytes = 4096, .queue_depth = 8};
	struct fake_device fake;
	struct fake_run run;
	struct loop *loop;
	struct workload *workload;

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "v", 16 * MIB, NS_PER_MS);
	workload = open_raw(&run, loop, &fake, &config);
	workload->ops->start(workload);
	fake_run_for(&run, NS_PER_S);
	fake.fault = FAKE_GONE;
	fake.delay_ns = 0;
	fake_run_for(&run, NS_PER_S);
	assert_true(workload->streams[0].total.errors >= 1);
	assert_true(workload->streams[0].total.errors <= 8);
	assert_int_equal(fake_stop(&run), 0);
	workload->ops->free(workload);
	fake_done(&fake);
	loop_free(loop);
}

static void wrong_block_sizes_are_refused(void **state)
{
	struct raw_config config = {.op = RAW_READ, .block_bytes = 512, .queue_depth = 8};
	struct fake_device fake;
	struct loop *loop;
	struct workload_env env = {.devices = &fake.device, .device_count = 1};
	struct workload *workload = NULL;
	struct err err = {0};

	assert_int_equal(loop_new_virtual(0, &loop), 0);
	fake_init(&fake, loop, "v", 16 * MIB, NS_PER_MS);
	env.loop = loop;
	fake.device.block_bytes = 4096;
	assert_int_equal(raw_workload_ops.open(&env, &config, &workload, &err), -EINVAL);
	assert_non_null(strstr(err.what, "multiple"));
	assert_null(workload);
	fake_done(&fake);
	loop_free(loop);
}

static void the_table_is_complete(void **state)
{
	for (size_t i = 0; workload_names[i]; i++) {
		const struct workload_ops *ops = workload_find(workload_names[i]);

		assert_non_null(ops);
		assert_string_equal(ops->name, workload_names[i]);
		assert_non_null(ops->schema);
		for (size_t k = 0; k < ops->schema->field_count; k++)
			assert_non_null(ops->schema->fields[k].help);
	}
	assert_null(workload_find("none"));
	for (unsigned i = 0; i < MISMATCH_KINDS; i++)
		assert_non_null(mismatch_names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_loop_is_closed),
	    cmocka_unit_test(sequential_wraps_within_the_span),
	    cmocka_unit_test(a_dead_device_ends_the_loop),
	    cmocka_unit_test(wrong_block_sizes_are_refused),
	    cmocka_unit_test(the_table_is_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
