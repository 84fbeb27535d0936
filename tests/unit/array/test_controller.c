/* SPDX-License-Identifier: MIT
 *
 * The controllers' state machines, by tables: an event at an instant, and what holds afterwards.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "target/array/controller.h"

enum { PORT_0 = 1, PORT_1 = 2, BOTH = PORT_0 | PORT_1 };

struct pair_step {
	const char *what;
	uint64_t at_ms;
	struct controller_event event;
	int result;
	enum controller_phase phase;
	const char *role[2];
	unsigned serves; /* bits of the first two ports */
	bool mirrored;
	uint64_t deadline_ms;
};

static void run_pair(unsigned count, const struct pair_step *steps, size_t step_count)
{
	struct controller_pair pair;

	controller_pair_init(&pair, count, 2 * NS_PER_S);
	for (size_t i = 0; i < step_count; i++) {
		const struct pair_step *step = &steps[i];
		int r = controller_pair_event(&pair, &step->event, step->at_ms * NS_PER_MS);
		unsigned serves = 0;

		for (unsigned p = 0; p < 2; p++)
			serves |= controller_pair_serves(&pair, p) ? 1U << p : 0;
		if (r != step->result || pair.phase != step->phase || serves != step->serves ||
		    controller_pair_mirrored(&pair) != step->mirrored ||
		    pair.deadline_ns != step->deadline_ms * NS_PER_MS ||
		    strcmp(controller_pair_role(&pair, 0), step->role[0]) != 0 ||
		    strcmp(controller_pair_role(&pair, 1), step->role[1]) != 0)
			fail_msg(
			    "%s: result %d, %s, ports %u, mirrored %d, deadline %llu ms, %s/%s",
			    step->what, r, controller_phase_names[pair.phase], serves,
			    controller_pair_mirrored(&pair),
			    (unsigned long long)(pair.deadline_ns / NS_PER_MS),
			    controller_pair_role(&pair, 0), controller_pair_role(&pair, 1));
	}
}

#define RUN_PAIR(count, steps) run_pair(count, steps, ARRAY_SIZE(steps))

static const struct pair_step failover_steps[] = {
    {"not yet",
     0,
     {CONTROLLER_TIME},
     -EALREADY,
     CONTROLLER_SERVING,
     {"active", "passive"},
     BOTH,
     true,
     0},
    {"active dies",
     10,
     {CONTROLLER_FAIL, 0},
     0,
     CONTROLLER_TAKING_OVER,
     {"failed", "active"},
     0,
     false,
     2010},
    {"dead already",
     11,
     {CONTROLLER_FAIL, 0},
     -EALREADY,
     CONTROLLER_TAKING_OVER,
     {"failed", "active"},
     0,
     false,
     2010},
    {"too early",
     2009,
     {CONTROLLER_TIME},
     -EALREADY,
     CONTROLLER_TAKING_OVER,
     {"failed", "active"},
     0,
     false,
     2010},
    {"taken over",
     2010,
     {CONTROLLER_TIME},
     0,
     CONTROLLER_SERVING,
     {"failed", "active"},
     BOTH,
     false,
     0},
    {"comes back as the passive one",
     3000,
     {CONTROLLER_RETURN, 0},
     0,
     CONTROLLER_SERVING,
     {"passive", "active"},
     BOTH,
     true,
     0},
    {"nothing to fail back",
     3001,
     {CONTROLLER_FAIL_BACK},
     -EINVAL,
     CONTROLLER_SERVING,
     {"passive", "active"},
     BOTH,
     true,
     0},
    {"passive dies",
     4000,
     {CONTROLLER_FAIL, 0},
     0,
     CONTROLLER_SERVING,
     {"failed", "active"},
     BOTH,
     false,
     0},
    {"no third",
     4001,
     {CONTROLLER_FAIL, 2},
     -EINVAL,
     CONTROLLER_SERVING,
     {"failed", "active"},
     BOTH,
     false,
     0},
};

static void test_pair_failover(void **state)
{
	RUN_PAIR(2, failover_steps);
}

static const struct pair_step second_failure_steps[] = {
    {"active dies",
     0,
     {CONTROLLER_FAIL, 0},
     0,
     CONTROLLER_TAKING_OVER,
     {"failed", "active"},
     0,
     false,
     2000},
    {"and the other while it takes over",
     500,
     {CONTROLLER_FAIL, 1},
     0,
     CONTROLLER_OFFLINE,
     {"failed", "failed"},
     0,
     false,
     0},
    {"its time comes all the same",
     2000,
     {CONTROLLER_TIME},
     -EALREADY,
     CONTROLLER_OFFLINE,
     {"failed", "failed"},
     0,
     false,
     0},
    {"one comes back",
     3000,
     {CONTROLLER_RETURN, 0},
     0,
     CONTROLLER_TAKING_OVER,
     {"active", "failed"},
     0,
     false,
     5000},
    {"the other too",
     3500,
     {CONTROLLER_RETURN, 1},
     0,
     CONTROLLER_TAKING_OVER,
     {"active", "passive"},
     0,
     false,
     5000},
    {"serves",
     5000,
     {CONTROLLER_TIME},
     0,
     CONTROLLER_SERVING,
     {"active", "passive"},
     BOTH,
     true,
     0},
};

static const struct pair_step alone_steps[] = {
    {"no second",
     0,
     {CONTROLLER_FAIL, 1},
     -EINVAL,
     CONTROLLER_SERVING,
     {"active", "absent"},
     BOTH,
     false,
     0},
    {"the only one dies",
     1,
     {CONTROLLER_FAIL, 0},
     0,
     CONTROLLER_OFFLINE,
     {"failed", "absent"},
     0,
     false,
     0},
    {"comes back",
     2,
     {CONTROLLER_RETURN, 0},
     0,
     CONTROLLER_TAKING_OVER,
     {"active", "absent"},
     0,
     false,
     2002},
};

static void test_pair_second_failure(void **state)
{
	RUN_PAIR(2, second_failure_steps);
	RUN_PAIR(1, alone_steps);
}

/* The partner port of the passive controller keeps the address, as long as there is one. */
static void test_pair_vertical_port(void **state)
{
	static const struct pair_step steps[] = {
	    {"link lost",
	     0,
	     {CONTROLLER_LINK_DOWN, 0, 1},
	     0,
	     CONTROLLER_SERVING,
	     {"active", "passive"},
	     BOTH,
	     true,
	     0},
	    {"lost already",
	     1,
	     {CONTROLLER_LINK_DOWN, 0, 1},
	     -EALREADY,
	     CONTROLLER_SERVING,
	     {"active", "passive"},
	     BOTH,
	     true,
	     0},
	    {"the partner's too",
	     2,
	     {CONTROLLER_LINK_DOWN, 1, 1},
	     0,
	     CONTROLLER_SERVING,
	     {"active", "passive"},
	     PORT_0,
	     true,
	     0},
	    {"one comes back",
	     3,
	     {CONTROLLER_LINK_UP, 1, 1},
	     0,
	     CONTROLLER_SERVING,
	     {"active", "passive"},
	     BOTH,
	     true,
	     0},
	    {"and its controller dies",
	     4,
	     {CONTROLLER_FAIL, 1},
	     0,
	     CONTROLLER_SERVING,
	     {"active", "failed"},
	     PORT_0,
	     false,
	     0},
	    {"no such port",
	     5,
	     {CONTROLLER_LINK_UP, 0, CONTROLLER_PORTS_MAX},
	     -EINVAL,
	     CONTROLLER_SERVING,
	     {"active", "failed"},
	     PORT_0,
	     false,
	     0},
	    {"the first link is back",
	     6,
	     {CONTROLLER_LINK_UP, 0, 1},
	     0,
	     CONTROLLER_SERVING,
	     {"active", "failed"},
	     BOTH,
	     false,
	     0},
	};

	RUN_PAIR(2, steps);
}

struct duo_step {
	const char *what;
	uint64_t at_ms;
	struct controller_event event;
	int result;
	unsigned actions[2];
	uint64_t deadline_ms;
};

static void run_duo(enum controller_failback failback, const struct duo_step *steps,
		    size_t step_count)
{
	struct controller_duo duo;

	controller_duo_init(&duo, 500 * NS_PER_MS, failback);
	for (size_t i = 0; i < step_count; i++) {
		const struct duo_step *step = &steps[i];
		struct controller_actions actions = {{0, 0}};
		int r = controller_duo_event(&duo, &step->event, step->at_ms * NS_PER_MS, &actions);

		if (r != step->result || actions.of[0] != step->actions[0] ||
		    actions.of[1] != step->actions[1] ||
		    duo.deadline_ns != step->deadline_ms * NS_PER_MS)
			fail_msg("%s: result %d, actions %x %x, deadline %llu ms", step->what, r,
				 actions.of[0], actions.of[1],
				 (unsigned long long)(duo.deadline_ns / NS_PER_MS));
	}
}

#define RUN_DUO(failback, steps) run_duo(failback, steps, ARRAY_SIZE(steps))

static void test_duo_auto(void **state)
{
	static const struct duo_step steps[] = {
	    {"dies", 0, {CONTROLLER_FAIL, 0}, 0, {CONTROLLER_SILENCE, CONTROLLER_TAKE}, 0},
	    {"dead already", 1, {CONTROLLER_FAIL, 0}, -EALREADY, {0, 0}, 0},
	    {"back while volumes still move",
	     100,
	     {CONTROLLER_RETURN, 0},
	     0,
	     {CONTROLLER_SPEAK, 0},
	     500},
	    {"too early", 499, {CONTROLLER_TIME}, -EALREADY, {0, 0}, 500},
	    {"then they go back",
	     500,
	     {CONTROLLER_TIME},
	     0,
	     {CONTROLLER_TAKE_OWN, CONTROLLER_TAKE_OWN},
	     0},
	    {"once", 1000, {CONTROLLER_TIME}, -EALREADY, {0, 0}, 0},
	    {"dies again", 2000, {CONTROLLER_FAIL, 1}, 0, {CONTROLLER_TAKE, CONTROLLER_SILENCE}, 0},
	    {"back later",
	     9000,
	     {CONTROLLER_RETURN, 1},
	     0,
	     {CONTROLLER_TAKE_OWN, CONTROLLER_SPEAK | CONTROLLER_TAKE_OWN},
	     0},
	    {"a lost link is the portal's affair",
	     9001,
	     {CONTROLLER_LINK_DOWN, 1},
	     -EINVAL,
	     {0, 0},
	     0},
	    {"no third", 9002, {CONTROLLER_FAIL, 2}, -EINVAL, {0, 0}, 0},
	};

	RUN_DUO(CONTROLLER_FAILBACK_AUTO, steps);
}

static void test_duo_manual(void **state)
{
	static const struct duo_step steps[] = {
	    {"dies", 0, {CONTROLLER_FAIL, 1}, 0, {CONTROLLER_TAKE, CONTROLLER_SILENCE}, 0},
	    {"not with one", 10, {CONTROLLER_FAIL_BACK}, -EALREADY, {0, 0}, 0},
	    {"back", 1000, {CONTROLLER_RETURN, 1}, 0, {0, CONTROLLER_SPEAK}, 0},
	    {"told to",
	     2000,
	     {CONTROLLER_FAIL_BACK},
	     0,
	     {CONTROLLER_TAKE_OWN, CONTROLLER_TAKE_OWN},
	     0},
	};

	RUN_DUO(CONTROLLER_FAILBACK_MANUAL, steps);
}

static void test_duo_second_failure(void **state)
{
	static const struct duo_step steps[] = {
	    {"one dies", 0, {CONTROLLER_FAIL, 0}, 0, {CONTROLLER_SILENCE, CONTROLLER_TAKE}, 0},
	    {"the other", 10, {CONTROLLER_FAIL, 1}, 0, {0, CONTROLLER_SILENCE}, 0},
	    {"one comes back and has all",
	     2000,
	     {CONTROLLER_RETURN, 0},
	     0,
	     {CONTROLLER_SPEAK | CONTROLLER_TAKE, 0},
	     0},
	    {"the other comes back too",
	     2100,
	     {CONTROLLER_RETURN, 1},
	     0,
	     {0, CONTROLLER_SPEAK},
	     2500},
	    {"a failure forgets the failback",
	     2200,
	     {CONTROLLER_FAIL, 1},
	     0,
	     {CONTROLLER_TAKE, CONTROLLER_SILENCE},
	     0},
	    {"for good", 2500, {CONTROLLER_TIME}, -EALREADY, {0, 0}, 0},
	};

	RUN_DUO(CONTROLLER_FAILBACK_AUTO, steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_pair_failover),      cmocka_unit_test(test_pair_second_failure),
	    cmocka_unit_test(test_pair_vertical_port), cmocka_unit_test(test_duo_auto),
	    cmocka_unit_test(test_duo_manual),	       cmocka_unit_test(test_duo_second_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
