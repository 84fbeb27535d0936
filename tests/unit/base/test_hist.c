/* SPDX-License-Identifier: MIT
 *
 * Latency histogram: error bound, quantiles against a sorted list, merging.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hist.h"
#include "base/rng.h"

static struct hist one, two, both;

static void empty(void **state)
{
	hist_reset(&one);
	assert_int_equal(hist_quantile_ns(&one, 0.5), 0);
	assert_true(hist_mean_ns(&one) == 0);
	assert_int_equal(one.min_ns, 0);
}

static void buckets_join(void **state)
{
	assert_int_equal(hist_bucket_low_ns(0), 0);
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t low = hist_bucket_low_ns(i), high = hist_bucket_high_ns(i);

		assert_true(low <= high);
		if (i > 0)
			assert_int_equal(low, hist_bucket_high_ns(i - 1) + 1);
		if (low > 0)
			assert_true((double)(high - low) / (double)low < 0.008);
	}
	assert_int_equal(hist_bucket_high_ns(HIST_BUCKETS - 1), (UINT64_C(1) << 42) - 1);
}

static void every_value_in_its_bucket(void **state)
{
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		hist_reset(&one);
		hist_record(&one, hist_bucket_low_ns(i));
		hist_record(&one, hist_bucket_high_ns(i));
		assert_int_equal(one.bucket[i], 2);
	}
}

static void single_values_are_exact(void **state)
{
	static const uint64_t values[] = {
	    0, 1, 127, 128, 129, 4095, 1000000, 123456789, UINT64_C(1) << 42, UINT64_C(1) << 60,
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		hist_reset(&one);
		hist_record(&one, values[i]);
		assert_int_equal(one.min_ns, values[i]);
		assert_int_equal(one.max_ns, values[i]);
		assert_int_equal(hist_quantile_ns(&one, 0), values[i]);
		assert_int_equal(hist_quantile_ns(&one, 0.99), values[i]);
		assert_int_equal(hist_quantile_ns(&one, 1), values[i]);
		assert_true(hist_mean_ns(&one) == (double)values[i]);
	}
}

enum { SAMPLES = 20000 };

static int compare(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

static void quantiles_of_a_sorted_list(void **state)
{
	static const double quantiles[] = {0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999};
	static uint64_t sample[SAMPLES];
	struct rng rng;
	double sum = 0;

	rng_init(&rng, 11, 0);
	hist_reset(&one);
	for (size_t i = 0; i < SAMPLES; i++) {
		sample[i] = (uint64_t)rng_exponential(&rng, 3e6);
		hist_record(&one, sample[i]);
		sum += (double)sample[i];
	}
	qsort(sample, SAMPLES, sizeof sample[0], compare);
	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++) {
		uint64_t exact = sample[(size_t)ceil(quantiles[i] * SAMPLES) - 1];
		double got = (double)hist_quantile_ns(&one, quantiles[i]);

		assert_true(got >= (double)exact);
		assert_true(got <= (double)exact * 1.008);
	}
	assert_int_equal(hist_quantile_ns(&one, 0), sample[0]);
	assert_int_equal(hist_quantile_ns(&one, 1), sample[SAMPLES - 1]);
	assert_true(fabs(hist_mean_ns(&one) - sum / SAMPLES) < 1);
}

static void merge_is_recording_both(void **state)
{
	struct rng rng;

	rng_init(&rng, 12, 0);
	hist_reset(&one);
	hist_reset(&two);
	hist_reset(&both);
	hist_merge(&two, &one); /* empty into empty */
	assert_memory_equal(&two, &one, sizeof one);
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t value = 1000 + rng_below(&rng, 100000000);

		hist_record(i % 3 ? &one : &two, value);
		hist_record(&both, value);
	}
	hist_merge(&one, &two);
	assert_memory_equal(&one, &both, sizeof both);
	hist_reset(&two);
	hist_merge(&one, &two); /* an empty one changes nothing, its min of 0 neither */
	assert_memory_equal(&one, &both, sizeof both);
	hist_merge(&two, &both);
	assert_memory_equal(&two, &both, sizeof both);
}

static void counts_do_not_wrap(void **state)
{
	hist_reset(&one);
	hist_reset(&two);
	hist_record(&one, 500);
	hist_record(&two, 500);
	one.bucket[0] = two.bucket[0] = UINT32_MAX - 1;
	hist_merge(&one, &two);
	assert_int_equal(one.bucket[0], UINT32_MAX);
	hist_record(&one, 0);
	assert_int_equal(one.bucket[0], UINT32_MAX);
	one.sum_ns = UINT64_MAX - 1;
	hist_record(&one, 5);
	assert_int_equal(one.sum_ns, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(empty),
	    cmocka_unit_test(buckets_join),
	    cmocka_unit_test(every_value_in_its_bucket),
	    cmocka_unit_test(single_values_are_exact),
	    cmocka_unit_test(quantiles_of_a_sorted_list),
	    cmocka_unit_test(merge_is_recording_both),
	    cmocka_unit_test(counts_do_not_wrap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
