/* SPDX-License-Identifier: MIT
 *
 * Open streams: rates, sizes and places are those that were asked for, latency counts from the
 * instant a request was due.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "harness/sim/array_load.h"

static const char lab_text[] = "name: load\n"
			       "group:\n"
			       "  style: lun\n"
			       "  portal: 127.0.0.1:3260\n"
			       "  pools:\n"
			       "    - name: default\n"
			       "      members:\n"
			       "        - name: m1\n"
			       "          drives: {model: sas-15k-600, count: 2, size: 1GiB}\n"
			       "          raid: raid0\n"
			       "          store: discard\n"
			       "          timing: modelled\n"
			       "  volumes:\n"
			       "    - {name: v, size: 1GiB, thin: false}\n";

struct fixture {
	struct lab *lab;
	struct loop *loop;
	struct group *group;
	struct array_load *load;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err err = {0};

	*state = f;
	return lab_parse("load.yaml", lab_text, strlen(lab_text), NULL, 0, stderr, &f->lab) ||
	       loop_new_virtual(0, &f->loop) ||
	       group_open(f->loop, &f->lab->group, "load", 1, &f->group, &err) ||
	       array_load_new(f->loop, 1, &f->load);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	group_close(f->group);
	array_load_free(f->load);
	loop_free(f->loop);
	lab_free(f->lab);
	free(f);
	return 0;
}

static void play(struct fixture *f, uint64_t seconds)
{
	loop_run_until(f->loop, 10 * NS_PER_S);
	array_load_begin_window(f->load);
	loop_run_until(f->loop, (10 + seconds) * NS_PER_S);
	array_load_stop(f->load);
	loop_run_until(f->loop, (20 + seconds) * NS_PER_S);
	assert_int_equal(array_load_outstanding(f->load), 0);
}

static void near(double found, double wanted, double share)
{
	if (found < wanted * (1 - share) || found > wanted * (1 + share))
		fail_msg("%g is not %g +- %g %%", found, wanted, share * 100);
}

static void rates_and_sizes(void **state)
{
	struct fixture *f = *state;
	struct array_stream_config config = {
	    .volume = group_volume(f->group, 0),
	    .op = IO_READ,
	    .per_second = 40,
	    .mean_bytes = 36932.5,
	    .unit_bytes = 32 * KIB,
	    .region_bytes = 1 * GIB,
	};
	int random = array_load_add(f->load, &config);

	config.op = IO_WRITE;
	config.pattern = ARRAY_STREAM_SEQUENTIAL;
	config.pace = ARRAY_STREAM_REGULAR;
	config.per_second = 5;
	config.mean_bytes = 20625;
	config.unit_bytes = 512;
	int paced = array_load_add(f->load, &config);

	play(f, 500);
	const struct array_stream_result *result = array_load_result(f->load, (unsigned)random);
	near((double)result->requests, 500 * 40, 0.03);
	near((double)result->bytes / (double)result->requests, 36932.5, 0.02);
	assert_int_equal(result->errors, 0);
	assert_true(hist_mean_ns(&result->latency) > 1e6);
	result = array_load_result(f->load, (unsigned)paced);
	near((double)result->requests, 500 * 5, 0.001);
	near((double)result->bytes / (double)result->requests, 20625, 0.001);
}

/* Twice what the drives can do: waiting counts. */
static void latency_counts_from_when_it_was_due(void **state)
{
	struct fixture *f = *state;
	struct array_stream_config config = {
	    .volume = group_volume(f->group, 0),
	    .op = IO_READ,
	    .pace = ARRAY_STREAM_REGULAR,
	    .per_second = 20,
	    .burst = 100,
	    .mean_bytes = 32 * KIB,
	    .unit_bytes = 32 * KIB,
	    .region_bytes = 1 * GIB,
	};
	int burst = array_load_add(f->load, &config);

	play(f, 100);
	const struct array_stream_result *result = array_load_result(f->load, (unsigned)burst);
	near((double)result->requests, 2000, 0.06);
	/* A hundred at once on two drives: the last waits for about fifty services of its drive. */
	assert_true(hist_quantile_ns(&result->latency, 1.0) >
		    20 * hist_quantile_ns(&result->latency, 0.0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(rates_and_sizes, setup, teardown),
	    cmocka_unit_test_setup_teardown(latency_counts_from_when_it_was_due, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
