/* SPDX-License-Identifier: MIT
 *
 * Mixes of the raw workload, and sweeps over depths and rates.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fake_device.h"
#include "harness/workload/raw_mix.h"

/* ---- mixes ---- */

static void shares_are_those_asked_for(void **state)
{
	struct raw_config config = {.op = RAW_RW,
				    .pattern = RAW_MIXED,
				    .read_share = 0.8,
				    .random_share = 0.25,
				    .sizes = {{4 * KIB, 0.6}, {32 * KIB, 0.3}, {64 * KIB, 0.1}},
				    .size_count = 3};
	unsigned reads = 0, small = 0, follows = 0, count = 100000;
	struct raw_place place = {.span_bytes = 64 * MIB};
	uint64_t last_end = 0;
	struct raw_mix mix;
	struct rng rng;

	rng_init(&rng, 3, 3);
	raw_mix_init(&mix, &config);
	assert_int_equal(mix.unit_bytes, 4 * KIB);
	assert_int_equal(mix.largest_bytes, 64 * KIB);
	for (unsigned i = 0; i < count; i++) {
		uint64_t bytes = raw_mix_bytes(&mix, &rng), at;

		at = raw_mix_offset(&mix, &rng, &place, bytes);
		reads += raw_mix_reads(&mix, &rng);
		small += bytes == 4 * KIB;
		assert_true(at % mix.unit_bytes == 0 && at + bytes <= place.span_bytes);
		if (at == last_end) {
			follows++;
			last_end = at + bytes;
		} else if (place.cursor_bytes == at + bytes && at == 0) {
			last_end = at + bytes; /* the sequential ones have come round */
		}
	}
	assert_in_range(reads, 79000, 81000);
	assert_in_range(small, 59000, 61000);
	assert_in_range(follows, 74000, 76500);
}

static void one_size_keeps_its_grid(void **state)
{
	struct raw_config config = {.op = RAW_READ, .block_bytes = 12 * KIB};
	struct raw_place place = {.span_bytes = 120 * KIB};
	unsigned seen = 0;
	struct raw_mix mix;
	struct rng rng;

	rng_init(&rng, 3, 3);
	raw_mix_init(&mix, &config);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t at = raw_mix_offset(&mix, &rng, &place, raw_mix_bytes(&mix, &rng));

		assert_int_equal(at % (12 * KIB), 0);
		seen |= 1U << (at / (12 * KIB));
		assert_true(raw_mix_reads(&mix, &rng));
	}
	assert_int_equal(seen, 1023);
}

/* ---- sweeps ---- */

struct sweep_run {
	struct fake_run run;
	struct fake_device fake;
	bool ended;
};

static void load_ended(void *arg)
{
	struct sweep_run *run = arg;

	run->ended = true;
	run->run.workload->ops->window(run->run.workload, false);
}

static void open_sweep(struct sweep_run *run, const struct raw_config *config, uint64_t delay_ns)
{
	struct workload_env env = {.seed = 2, .device_count = 1, .ended = load_ended, .arg = run};
	struct err err = {0};

	*run = (struct sweep_run){.ended = false};
	assert_int_equal(loop_new_virtual(0, &run->run.loop), 0);
	fake_init(&run->fake, run->run.loop, "v", 16 * MIB, delay_ns);
	env.loop = run->run.loop;
	env.devices = &run->fake.device;
	if (raw_workload_ops.open(&env, config, &run->run.workload, &err) < 0)
		fail_msg("open: %s", err.what);
	assert_true(run->run.workload->ends_itself);
	assert_int_equal(fake_prepare(&run->run), 0);
	run->run.workload->ops->start(run->run.workload);
}

static void close_sweep(struct sweep_run *run)
{
	assert_int_equal(fake_stop(&run->run), 0);
	run->run.workload->ops->free(run->run.workload);
	fake_done(&run->fake);
	loop_free(run->run.loop);
}

/* Runs it whole and gives the curve. */
static json_t *sweep(struct sweep_run *run)
{
	fake_run_for(&run->run, 500 * NS_PER_MS); /* the warm-up */
	run->run.workload->ops->window(run->run.workload, true);
	for (unsigned i = 0; i < 200 && !run->ended; i++)
		fake_run_for(&run->run, 100 * NS_PER_MS);
	assert_true(run->ended);
	return run->run.workload->ops->describe(run->run.workload);
}

static double number_of(const json_t *curve, size_t step, const char *key)
{
	const json_t *found =
	    json_object_get(json_array_get(json_object_get(curve, "steps"), step), key);

	assert_non_null(found);
	return json_number_value(found);
}

static void depths_give_a_curve(void **state)
{
	uint64_t depths[] = {1, 4, 16, 2};
	struct raw_config config = {
	    .op = RAW_RW,
	    .block_bytes = 4096,
	    .read_share = 0.5,
	    .queue_depth = 32,
	    .sweep = {.depths = {depths, 4}, .settle_ns = NS_PER_S, .time_ns = 2 * NS_PER_S}};
	struct sweep_run run;
	json_t *curve;

	open_sweep(&run, &config, 10 * NS_PER_MS);
	curve = sweep(&run);
	assert_string_equal(json_string_value(json_object_get(curve, "by")), "queue-depth");
	assert_int_equal(json_array_size(json_object_get(curve, "steps")), 4);
	assert_int_equal(run.fake.max_in_flight, 16);
	for (size_t i = 0; i < 4; i++) {
		double iops = number_of(curve, i, "iops");

		assert_true(number_of(curve, i, "level") == (double)depths[i]);
		assert_true(iops >= (double)depths[i] * 98 && iops <= (double)depths[i] * 101);
		assert_true(number_of(curve, i, "max_ns") == 10e6);
		assert_true(number_of(curve, i, "from_ns") == (double)(3 * i + 1) * 1e9);
		assert_true(number_of(curve, i, "to_ns") == (double)(3 * i + 3) * 1e9);
		assert_true(number_of(curve, i, "errors") == 0);
	}
	json_decref(curve);
	close_sweep(&run);
}

/* 5 ms a request and two at a time: 400 a second are all there are. */
static void rates_beyond_what_is_possible_are_told(void **state)
{
	uint64_t rates[] = {100, 200, 800, 50};
	struct raw_config config = {
	    .op = RAW_RW,
	    .block_bytes = 8192,
	    .read_share = 0.5,
	    .queue_depth = 2,
	    .sweep = {.rates = {rates, 4}, .settle_ns = NS_PER_S, .time_ns = 4 * NS_PER_S}};
	struct sweep_run run;
	json_t *curve;

	open_sweep(&run, &config, 5 * NS_PER_MS);
	curve = sweep(&run);
	assert_string_equal(json_string_value(json_object_get(curve, "by")), "rate");
	for (size_t i = 0; i < 4; i++) {
		double iops = number_of(curve, i, "iops"), late = number_of(curve, i, "late");

		if (rates[i] == 800) {
			assert_true(iops > 395 && iops < 405);
			assert_true(late > 1900 && late < 2100);
			assert_true(number_of(curve, i, "mean_ns") > 500e6);
		} else {
			assert_true(iops > (double)rates[i] * 0.99 &&
				    iops < (double)rates[i] * 1.01);
			assert_true(late == 0);
			/* Nothing is left of the rate before. */
			assert_true(number_of(curve, i, "max_ns") == 5e6);
		}
	}
	assert_true(run.run.workload->check.pages_checked > 500);
	for (unsigned i = 0; i < MISMATCH_KINDS; i++)
		assert_int_equal(run.run.workload->check.mismatches[i], 0);
	json_decref(curve);
	close_sweep(&run);
}

static void errors_count_in_their_step(void **state)
{
	uint64_t depths[] = {1, 2};
	struct raw_config config = {
	    .op = RAW_READ,
	    .block_bytes = 4096,
	    .queue_depth = 1,
	    .sweep = {.depths = {depths, 2}, .settle_ns = NS_PER_S, .time_ns = NS_PER_S}};
	struct sweep_run run;
	json_t *curve;

	open_sweep(&run, &config, 10 * NS_PER_MS);
	run.fake.fault = FAKE_READ_ERROR;
	run.fake.to = 16 * MIB;
	run.fake.skip = 50 + 150; /* the warm-up, and half of the first step */
	run.fake.fault_count = 7;
	curve = sweep(&run);
	assert_true(number_of(curve, 0, "errors") == 7);
	assert_true(number_of(curve, 1, "errors") == 0);
	json_decref(curve);
	close_sweep(&run);
}

static void one_that_is_cut_short_tells_what_it_has(void **state)
{
	uint64_t depths[] = {1, 2, 4};
	struct raw_config config = {
	    .op = RAW_READ,
	    .block_bytes = 4096,
	    .queue_depth = 1,
	    .sweep = {.depths = {depths, 3}, .settle_ns = NS_PER_S, .time_ns = NS_PER_S}};
	struct sweep_run run;
	json_t *curve;

	open_sweep(&run, &config, 10 * NS_PER_MS);
	run.run.workload->ops->window(run.run.workload, true);
	fake_run_for(&run.run, 3500 * NS_PER_MS);
	run.run.workload->ops->window(run.run.workload, false);
	curve = run.run.workload->ops->describe(run.run.workload);
	assert_int_equal(json_array_size(json_object_get(curve, "steps")), 2);
	assert_true(number_of(curve, 1, "to_ns") == 3.5e9);
	assert_true(number_of(curve, 1, "iops") > 190 && number_of(curve, 1, "iops") < 210);
	json_decref(curve);
	close_sweep(&run);
}

/* Blocks of two sizes, each a whole number of verified units. */
static void mixed_sizes_are_verified(void **state)
{
	struct raw_config config = {.op = RAW_RW,
				    .read_share = 0.5,
				    .queue_depth = 16,
				    .rate = 2000,
				    .sizes = {{8 * KIB, 0.5}, {96 * KIB, 0.5}},
				    .size_count = 2};
	struct workload_env env = {.seed = 2, .device_count = 1, .mismatch = fake_mismatch};
	struct fake_device fake;
	struct fake_run run = {.loop = NULL};
	struct err err = {0};

	assert_int_equal(loop_new_virtual(0, &run.loop), 0);
	fake_init(&fake, run.loop, "v", 4 * MIB, 2 * NS_PER_MS);
	env.loop = run.loop;
	env.devices = &fake.device;
	env.arg = &run;
	assert_int_equal(raw_workload_ops.open(&env, &config, &run.workload, &err), 0);
	assert_int_equal(fake_prepare(&run), 0);
	run.workload->ops->start(run.workload);
	fake_run_for(&run, 3 * NS_PER_S);
	assert_int_equal(fake_stop(&run), 0);
	assert_int_equal(fake_verify(&run), 0);
	assert_true(run.workload->check.pages_checked > 10000);
	assert_int_equal(run.workload->check.pages_read_back, run.workload->check.pages_written);
	assert_true(run.workload->check.pages_written > 400);
	for (unsigned i = 0; i < MISMATCH_KINDS; i++)
		assert_int_equal(run.workload->check.mismatches[i], 0);
	run.workload->ops->free(run.workload);
	fake_done(&fake);
	loop_free(run.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shares_are_those_asked_for),
	    cmocka_unit_test(one_size_keeps_its_grid),
	    cmocka_unit_test(depths_give_a_curve),
	    cmocka_unit_test(rates_beyond_what_is_possible_are_told),
	    cmocka_unit_test(errors_count_in_their_step),
	    cmocka_unit_test(one_that_is_cut_short_tells_what_it_has),
	    cmocka_unit_test(mixed_sizes_are_verified),
	};

	return cmocka_run_group_tests_name("raw_sweep", tests, NULL, NULL);
}
