/* SPDX-License-Identifier: MIT
 *
 * The pure parts of MPIO: policies, path states, back-off and the sense table.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/mpio/path_state.h"
#include "initiator/mpio/policy.h"
#include "initiator/mpio/retry.h"

static const struct mpio_ask some_ask = {.length_bytes = 4096};

static void *policy_state(const struct mpio_policy *policy, const struct mpio_config *config)
{
	void *state = calloc(1, policy->state_bytes);

	assert_non_null(state);
	policy->init(state, config, NULL);
	return state;
}

static void names_match_table(void **unused)
{
	unsigned count = 0;

	for (; mpio_policy_names[count]; count++) {
		const struct mpio_policy *policy = mpio_policy_find(mpio_policy_names[count]);

		assert_non_null(policy);
		assert_ptr_equal(policy, mpio_policy_at((int)count));
		assert_non_null(policy->help);
	}
	assert_int_equal(count, 9);
	assert_null(mpio_policy_find("least-blocks-ever"));
	assert_null(mpio_policy_at(-1));
	assert_null(mpio_policy_at((int)count));
}

static void round_robin_is_exact(void **unused)
{
	static const uint64_t grains[] = {1, 3, 1000};

	for (size_t g = 0; g < ARRAY_SIZE(grains); g++) {
		const struct mpio_policy *policy = mpio_policy_find("round-robin");
		struct mpio_config config = {.rr_ios = grains[g]};
		void *state = policy_state(policy, &config);
		struct mpio_path_view views[4] = {{true}, {true}, {true}, {true}};

		for (uint64_t i = 0; i < 4 * grains[g] * 5; i++)
			assert_int_equal(policy->select(state, views, 4, &some_ask),
					 i / grains[g] % 4);
		free(state);
	}
}

static void round_robin_passes_over(void **unused)
{
	const struct mpio_policy *policy = mpio_policy_find("round-robin");
	struct mpio_config config = {.rr_ios = 2};
	void *state = policy_state(policy, &config);
	struct mpio_path_view views[3] = {{true}, {false}, {.usable = true, .full = true}};

	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(policy->select(state, views, 3, &some_ask), 0);
	views[1].usable = true;
	assert_int_equal(policy->select(state, views, 3, &some_ask), 1);
	assert_int_equal(policy->select(state, views, 3, &some_ask), 1);
	assert_int_equal(policy->select(state, views, 3, &some_ask), 0);
	views[0].usable = views[1].usable = false;
	assert_int_equal(policy->select(state, views, 3, &some_ask), -1);
	views[2].full = false;
	assert_int_equal(policy->select(state, views, 3, &some_ask), 2);
	free(state);
}

static void failover_only_fails_back(void **unused)
{
	const struct mpio_policy *policy = mpio_policy_find("failover-only");
	struct mpio_config config = {.preferred_path = 1};
	void *state = policy_state(policy, &config);
	struct mpio_path_view views[3] = {{true}, {true}, {true}};

	assert_int_equal(policy->select(state, views, 3, &some_ask), 1);
	views[1].full = true; /* full is waited for */
	assert_int_equal(policy->select(state, views, 3, &some_ask), -1);
	views[1] = (struct mpio_path_view){0};
	assert_int_equal(policy->select(state, views, 3, &some_ask), 2);
	views[2].usable = false;
	assert_int_equal(policy->select(state, views, 3, &some_ask), 0);
	views[2].usable = true; /* no preferred one: stays */
	assert_int_equal(policy->select(state, views, 3, &some_ask), 0);
	views[1].usable = true;
	assert_int_equal(policy->select(state, views, 3, &some_ask), 1);
	free(state);
}

static void states_step(void **unused)
{
	struct mpio_config config = {.reconnect_min_ns = 100, .reconnect_max_ns = 1000};
	struct path_machine machine = {0};
	struct path_output out;
	struct rng rng;

	rng_init(&rng, 1, 1);
	out = path_machine_step(&machine, PATH_INPUT_CONNECT, &config, 0, &rng);
	assert_int_equal(out.to, MPIO_PATH_CONNECTING);
	assert_false(out.reconnect);
	out = path_machine_step(&machine, PATH_INPUT_WRONG, &config, 0, &rng);
	assert_int_equal(out.to, MPIO_PATH_WRONG_LU);
	assert_true(out.reconnect);
	assert_int_equal(out.reconnect_after_ns, 1000);
	path_machine_step(&machine, PATH_INPUT_CONNECT, &config, 0, &rng);
	for (unsigned i = 0; i < 5; i++) {
		out = path_machine_step(&machine, PATH_INPUT_DOWN, &config, 0, &rng);
		assert_int_equal(out.to, MPIO_PATH_DOWN);
		assert_int_equal(machine.failures, i + 1);
		path_machine_step(&machine, PATH_INPUT_CONNECT, &config, 0, &rng);
	}
	out = path_machine_step(&machine, PATH_INPUT_UP, &config, 0, &rng);
	assert_int_equal(out.from, MPIO_PATH_CONNECTING);
	assert_int_equal(out.to, MPIO_PATH_UP);
	assert_int_equal(machine.failures, 0);
	for (int i = 0; i < 4; i++)
		assert_non_null(mpio_path_state_names[i]);
}

static void backoff_doubles_up_to_the_limit(void **unused)
{
	struct mpio_config config = {.reconnect_min_ns = 250, .reconnect_max_ns = 4000};
	static const uint64_t full[] = {250, 500, 1000, 2000, 4000, 4000, 4000};
	struct rng rng;
	bool varied = false;

	rng_init(&rng, 7, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(full); i++) {
		for (unsigned n = 0; n < 50; n++) {
			uint64_t ns = path_backoff_ns(i, &config, &rng);

			assert_in_range(ns, full[i] - full[i] / 4, full[i]);
			varied |= ns != full[i];
		}
	}
	assert_true(varied);
	assert_in_range(path_backoff_ns(UINT32_MAX, &config, &rng), 3000, 4000);
}

static void sense_table(void **unused)
{
	static const struct {
		uint8_t key, asc, ascq;
		enum retry_action action;
		int status;
	} expected[] = {
	    {0x1, 0x17, 0x01, RETRY_ACCEPT, 0},	      {0x2, 0x04, 0x01, RETRY_BACKOFF, -EBUSY},
	    {0x2, 0x04, 0x0a, RETRY_ACCESS, -EIO},    {0x2, 0x04, 0x0b, RETRY_ACCESS, -EIO},
	    {0x2, 0x04, 0x0c, RETRY_ACCESS, -EIO},    {0x2, 0x04, 0x12, RETRY_ACCESS, -EIO},
	    {0x2, 0x3a, 0x00, RETRY_ELSEWHERE, -EIO}, {0x3, 0x11, 0x00, RETRY_FAIL, -EIO},
	    {0x4, 0x44, 0x00, RETRY_ELSEWHERE, -EIO}, {0x5, 0x20, 0x00, RETRY_FAIL, -EOPNOTSUPP},
	    {0x5, 0x21, 0x00, RETRY_FAIL, -ERANGE},   {0x5, 0x24, 0x00, RETRY_FAIL, -EIO},
	    {0x5, 0x25, 0x00, RETRY_RECHECK, -EIO},   {0x6, 0x29, 0x00, RETRY_SAME, -EIO},
	    {0x6, 0x29, 0x07, RETRY_SAME, -EIO},      {0x6, 0x2a, 0x01, RETRY_SAME, -EIO},
	    {0x6, 0x2a, 0x06, RETRY_SAME, -EIO},      {0x6, 0x2a, 0x09, RETRY_RECHECK, -EIO},
	    {0x6, 0x38, 0x07, RETRY_SAME, -EIO},      {0x6, 0x3f, 0x03, RETRY_RECHECK, -EIO},
	    {0x6, 0x3f, 0x05, RETRY_RECHECK, -EIO},   {0x6, 0x3f, 0x0e, RETRY_RECHECK, -EIO},
	    {0x7, 0x27, 0x00, RETRY_FAIL, -EROFS},    {0x7, 0x27, 0x07, RETRY_FAIL, -ENOSPC},
	    {0xb, 0x00, 0x00, RETRY_SAME, -EIO},      {0xb, 0x4b, 0x00, RETRY_SAME, -EIO},
	    {0xe, 0x1d, 0x00, RETRY_FAIL, -EIO},      {0xff, 0xff, 0xff, RETRY_FAIL, -EIO},
	};
	static const struct {
		uint8_t status;
		enum retry_action action;
		int end;
	} statuses[] = {
	    {0x08, RETRY_BACKOFF, -EBUSY}, {0x28, RETRY_BACKOFF, -EBUSY},
	    {0x30, RETRY_BACKOFF, -EBUSY}, {0x40, RETRY_SAME, -EIO},
	    {0x18, RETRY_FAIL, -EBUSY},	   {0x77, RETRY_FAIL, -EIO},
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct retry_rule *rule =
		    retry_for_sense(expected[i].key, expected[i].asc, expected[i].ascq);

		assert_int_equal(rule->action, expected[i].action);
		assert_int_equal(rule->status, expected[i].status);
	}
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
		assert_int_equal(retry_for_status(statuses[i].status)->action, statuses[i].action);
		assert_int_equal(retry_for_status(statuses[i].status)->status, statuses[i].end);
	}
}

/* No row may be hidden by an earlier one. */
static void every_row_is_reachable(void **unused)
{
	size_t count;
	const struct retry_rule *rules = retry_rules(&count);

	for (size_t i = 0; i < count; i++) {
		/* Values no exception names stand for "any". */
		int key = rules[i].key == RETRY_ANY ? 0xf : rules[i].key;
		int asc = rules[i].asc == RETRY_ANY ? 0xee : rules[i].asc;
		int ascq = rules[i].ascq == RETRY_ANY ? 0xee : rules[i].ascq;

		assert_ptr_equal(retry_for_sense((uint8_t)key, (uint8_t)asc, (uint8_t)ascq),
				 &rules[i]);
		assert_true(rules[i].status < 0 || rules[i].action == RETRY_ACCEPT);
	}
}

static void retry_delays_grow(void **unused)
{
	assert_int_equal(retry_backoff_ns(0), 10 * NS_PER_MS);
	assert_int_equal(retry_backoff_ns(6), 640 * NS_PER_MS);
	assert_int_equal(retry_backoff_ns(7), NS_PER_S);
	assert_int_equal(retry_backoff_ns(UINT32_MAX), NS_PER_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_match_table),
	    cmocka_unit_test(round_robin_is_exact),
	    cmocka_unit_test(round_robin_passes_over),
	    cmocka_unit_test(failover_only_fails_back),
	    cmocka_unit_test(states_step),
	    cmocka_unit_test(backoff_doubles_up_to_the_limit),
	    cmocka_unit_test(sense_table),
	    cmocka_unit_test(every_row_is_reachable),
	    cmocka_unit_test(retry_delays_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
