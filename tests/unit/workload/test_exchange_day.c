/* SPDX-License-Identifier: MIT
 *
 * The course of a day.
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
#include "base/rng.h"
#include "harness/workload/ese/ese_config.h"
#include "harness/workload/exchange_day.h"

#define HOUR_NS (3600 * NS_PER_S)

static void near(double got, double want, double slack)
{
	if (!(fabs(got - want) <= slack))
		fail_msg("%.9g, not %.9g", got, want);
}

static void without_one_the_rate_is_even(void **state)
{
	struct exchange_day_config config = {.length_ns = 24 * HOUR_NS};
	struct exchange_day day;

	exchange_day_init(&day, &config);
	near(exchange_day_at(&day, 5 * HOUR_NS), 1, 0);
	near(exchange_day_mean(&day, 0, 24 * HOUR_NS), 1, 0);
	assert_int_equal(exchange_day_after(&day, 1234, 5678), 1234 + 5678);
}

static void an_office_sleeps_at_night(void **state)
{
	struct exchange_day_config config = {.shape = EXCHANGE_DAY_OFFICE,
					     .length_ns = 24 * HOUR_NS};
	struct exchange_day day, late, fast;

	exchange_day_init(&day, &config);
	near(exchange_day_at(&day, 9 * HOUR_NS), 1, 0.01);
	near(exchange_day_at(&day, 3 * HOUR_NS), 0.02, 0.01);
	assert_true(exchange_day_mean(&day, 8 * HOUR_NS, 17 * HOUR_NS) > 0.8);
	near(exchange_day_mean(&day, 0, 24 * HOUR_NS), 0.406, 0.001);
	/* Days repeat; a day may begin at any hour, and be over sooner. */
	near(exchange_day_at(&day, 33 * HOUR_NS), exchange_day_at(&day, 9 * HOUR_NS), 1e-12);
	config.from_ns = 8 * HOUR_NS;
	exchange_day_init(&late, &config);
	near(exchange_day_at(&late, HOUR_NS), exchange_day_at(&day, 9 * HOUR_NS), 1e-12);
	config.length_ns = 24 * 60 * NS_PER_S;
	exchange_day_init(&fast, &config);
	near(exchange_day_at(&fast, 60 * NS_PER_S), exchange_day_at(&day, 9 * HOUR_NS), 1e-12);
}

/* From one arrival to the next there is just as much work as was asked for. */
static void arrivals_bring_the_work_they_should(void **state)
{
	struct exchange_day_config config = {
	    .shape = EXCHANGE_DAY_OFFICE, .from_ns = 5 * HOUR_NS, .length_ns = 24 * HOUR_NS};
	struct exchange_day day;
	uint64_t at_ns = 0;
	struct rng rng;

	rng_init(&rng, 5, 1);
	exchange_day_init(&day, &config);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t work_ns = 1 + rng_below(&rng, 1U << 31) * (i % 40 ? 1 : 3000);
		uint64_t next_ns = exchange_day_after(&day, at_ns, work_ns);

		assert_true(next_ns >= at_ns);
		if (next_ns - at_ns > 1000)
			near(exchange_day_mean(&day, at_ns, next_ns) * (double)(next_ns - at_ns) /
				 (double)work_ns,
			     1, 1e-3);
		at_ns = next_ns;
	}
}

static void expect(const char *text, const char *complaint)
{
	struct ese_config config;
	struct cfg *cfg = NULL;
	char *said = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&said, &size);
	int r = ese_config_parse(text, &cfg, &config);

	cfg_print_errors(cfg, to);
	fclose(to);
	if (complaint ? r == 0 || !strstr(said, complaint) : r < 0)
		fail_msg("%s\ngives: %s", text, said);
	free(said);
	cfg_free(cfg);
}

static void what_does_not_fit_is_refused(void **state)
{
	static const char hours[] = "engine: ese\nmailboxes: 5\nloop: open\nday: {shape: hours, "
				    "hours: [1%, 1%, 1%, 1%, 1%, 1%, 1%, 1%, 9%, 9%, 9%, 100%, 1%, "
				    "1%, 1%, 1%, 1%, 1%, 1%, 1%, 1%, 1%, 1%, 0%]}\n";

	expect(hours, NULL);
	expect("engine: ese\nmailboxes: 5\nloop: open\nday: {shape: office, from: 8h}\n", NULL);
	expect("engine: ese\nmailboxes: 5\nday: {shape: office}\n", "loop: open");
	expect("engine: ese\nmailboxes: 5\nloop: open\nday: {shape: hours}\n", "belong together");
	expect("engine: ese\nmailboxes: 5\nloop: open\nday: {shape: hours, hours: [1%, 2%]}\n",
	       "2 percentages, not 24");
	expect("engine: ese\nmailboxes: 5\nmessages: 150\niops-per-mailbox: 0.1\n", "say the same");
}

static void messages_and_client_make_the_rate(void **state)
{
	struct ese_config config;
	struct cfg *cfg = NULL;

	assert_int_equal(
	    ese_config_parse("engine: ese\nmailboxes: 1000\nmessages: 250\n", &cfg, &config), 0);
	near(ese_config_target_iops(&config), 168, 1e-6);
	cfg_free(cfg);
	assert_int_equal(ese_config_parse("engine: ese\nprofile: exchange-2010\nmailboxes: 1000\n"
					  "messages: 150\nday: {client: online}\n",
					  &cfg, &config),
			 0);
	near(ese_config_target_iops(&config), 225, 1e-6);
	cfg_free(cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(without_one_the_rate_is_even),
	    cmocka_unit_test(an_office_sleeps_at_night),
	    cmocka_unit_test(arrivals_bring_the_work_they_should),
	    cmocka_unit_test(what_does_not_fit_is_refused),
	    cmocka_unit_test(messages_and_client_make_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
