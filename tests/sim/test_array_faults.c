/* SPDX-License-Identifier: MIT
 *
 * A lab under load on the virtual loop while its array breaks and is mended: drives fail and
 * return, get slow or lose sectors, controllers die and come back, in an order that follows from
 * the seed. Never more at a time than the array can bear: so there is no error and no mismatch.
 *
 *   test_array_faults [FIRST-SEED [COUNT]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "harness/lab/lab.h"
#include "harness/sim/sim_lab.h"

static const char lab_text[] =
    "name: faults\n"
    "group:\n"
    "  style: equallogic\n"
    "  portal: 127.0.0.1:3260\n"
    "  controllers: {failover: 1s}\n"
    "  pools:\n"
    "    - name: default\n"
    "      members:\n"
    "        - name: m1\n"
    "          drives: {count: 8, spares: 1, size: 64MiB}\n"
    "          raid: raid5\n"
    "          spare-delay: 1s\n"
    "          portals: [127.0.0.1:3261, 127.0.0.1:3262]\n"
    "        - name: m2\n"
    "          drives: {count: 8, spares: 2, size: 64MiB}\n"
    "          raid: raid10\n"
    "          spare-delay: 1s\n"
    "          portals: [127.0.0.1:3263, 127.0.0.1:3264]\n"
    "  volumes:\n"
    "    - {name: db1, size: 128MiB}\n"
    "hosts:\n"
    "  - {name: mbx1, volumes: [db1]}\n"
    "workload: {type: exchange, profile: exchange-2010, mailboxes: 500, iops-per-mailbox: 0.2, "
    "prefill: 16MiB, log-size: 16MiB}\n"
    "run: {warmup: 2s, duration: 60s}\n"
    "expect:\n"
    "  - {data-mismatches: 0}\n"
    "  - {io-errors: 0}\n"
    "  - {db-read-latency: < 5s}\n"
    "  - {db-write-latency: < 5s}\n"
    "  - {log-write-latency: < 5s}\n";

static unsigned long first_seed = 1, seed_count = 8;

static void draw_fault(struct rng *rng, const char *member, char *out, size_t size)
{
	unsigned drive = (unsigned)rng_below(rng, 6);

	switch (rng_below(rng, 4)) {
	case 0:
		snprintf(out, size, "drive-fail: {member: %s, drive: %u}", member, drive);
		break;
	case 1:
		snprintf(out, size, "drive-slow: {member: %s, drive: %u, extra: 20ms}", member,
			 drive);
		break;
	case 2:
		snprintf(out, size, "drive-latent: {member: %s, drive: %u, rate: 2%%}", member,
			 drive);
		break;
	default:
		snprintf(out, size, "controller-failover: {member: %s}", member);
		break;
	}
}

/* One fault a member at a time: each begins after the last one of its member was mended. */
static void draw_faults(struct rng *rng, char *out, size_t size)
{
	size_t used = (size_t)snprintf(out, size, "faults=[");

	for (unsigned m = 0; m < 2; m++) {
		uint64_t at_ms = 500 + rng_below(rng, 3000);

		while (at_ms < 50000) {
			uint64_t for_ms = 500 + rng_below(rng, 6000);
			char what[100];

			draw_fault(rng, m ? "m2" : "m1", what, sizeof what);
			used += (size_t)snprintf(
			    out + used, size - used, "%s{at: %llums, %s, for: %llums}",
			    out[used - 1] == '[' ? "" : ", ", (unsigned long long)at_ms, what,
			    (unsigned long long)for_ms);
			/* Until the drive is rebuilt, or the other controller has taken over. */
			at_ms += for_ms + 4000 + rng_below(rng, 4000);
		}
	}
	snprintf(out + used, size - used, "]");
}

static void run_seed(unsigned long seed)
{
	struct sim_lab_options options = {
	    .link = {.delay_ns = 100 * NS_PER_US, .jitter_ns = 20 * NS_PER_US}};
	char faults[4096], seed_set[40];
	const char *sets[] = {seed_set, faults};
	struct record *record = NULL;
	struct err err = {0};
	struct lab *lab;
	struct rng rng;
	bool passed;

	rng_init(&rng, seed, 77);
	snprintf(seed_set, sizeof seed_set, "seed=%lu", seed);
	draw_faults(&rng, faults, sizeof faults);
	assert_int_equal(
	    lab_parse("faults.yaml", lab_text, strlen(lab_text), sets, 2, stderr, &lab), 0);
	if (sim_lab_run(lab, &options, &record, &err))
		fail_msg("seed %lu: %s", seed, err.what);
	passed = record_passed(record) && !record->error;
	for (unsigned i = 0; i < record->verdict_count; i++)
		if (record->verdicts[i].status == VERDICT_FAIL)
			print_message("# %s: %s\n", record->verdicts[i].id,
				      record->verdicts[i].text);
	record_free(record);
	lab_free(lab);
	if (!passed)
		fail_msg("reproduce with: test_array_faults %lu 1   # --set '%s'", seed, faults);
}

static void arrays_break_and_are_mended(void **state)
{
	for (unsigned long i = 0; i < seed_count; i++)
		run_seed(first_seed + i);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(arrays_break_and_are_mended),
	};

	if (argc > 1)
		first_seed = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed_count = strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests_name("array_faults", tests, NULL, NULL);
}
