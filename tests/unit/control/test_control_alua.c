/* SPDX-License-Identifier: MIT
 *
 * Access states of a running target: how portals make groups, and the command alua-set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "lab.h"

static bool has_group(struct lab *lab, uint16_t group)
{
	enum alua_state state;

	return scsi_alua_state(target_find_lu(lab->target, "a"), group, &state) == 0;
}

/* Two controllers, volumes owned in turn. */
static void test_controllers(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_LUN);
	assert_true(has_group(&lab, 2));
	assert_false(has_group(&lab, 3));
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "a", 2), ALUA_NON_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_NON_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	lab_stop(&lab);
}

/* A group for each member, all equal. */
static void test_members(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_EQUALLOGIC);
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	assert_false(has_group(&lab, 3));
	assert_null(target_find_lu(lab.target, "c"));
	lab_stop(&lab);
}

#define ALUA_SET(rest) "{\"command\": \"alua-set\", " rest "}"

static void test_alua_set(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_LUN);
	assert_true(
	    lab_command(&lab, ALUA_SET("\"volume\": \"a\", \"group\": 2, \"state\": \"standby\"")));
	assert_int_equal(lab_state_of(&lab, "a", 2), ALUA_STANDBY);
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	assert_true(lab_command(&lab, ALUA_SET("\"volume\": \"b\", \"group\": 1, \"state\": "
					       "\"optimized\", \"transition\": \"60s\"")));
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_TRANSITIONING);
	assert_true(
	    lab_command(&lab, ALUA_SET("\"volume\": \"b\", \"group\": 1, \"state\": \"failed\"")));
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_NON_OPTIMIZED);
	lab_stop(&lab);
}

static void test_alua_set_refused(void **state)
{
	static const char *const wrong[] = {
	    ALUA_SET("\"volume\": \"c\", \"group\": 2, \"state\": \"standby\""),
	    ALUA_SET("\"volume\": \"a\", \"group\": 9, \"state\": \"standby\""),
	    ALUA_SET("\"volume\": \"a\", \"group\": 0, \"state\": \"standby\""),
	    ALUA_SET("\"volume\": \"a\", \"group\": \"2\", \"state\": \"standby\""),
	    ALUA_SET("\"volume\": \"a\", \"group\": 2, \"state\": \"asleep\""),
	    ALUA_SET("\"volume\": \"a\", \"group\": 2"),
	    ALUA_SET("\"volume\": \"a\", \"group\": 2, \"state\": \"failed\""),
	    ALUA_SET("\"volume\": \"a\", \"group\": 2, \"state\": \"standby\", \"transition\": 3"),
	    ALUA_SET("\"volume\": \"a\", \"group\": 2, \"state\": \"standby\", \"transition\": "
		     "\"61s\""),
	};
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_LUN);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(lab_command(&lab, wrong[i]));
	assert_int_equal(lab_state_of(&lab, "a", 2), ALUA_NON_OPTIMIZED);
	lab_stop(&lab);
}

/* Every volume's states change places, or one volume's. */
static void test_alua_flip(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_LUN);
	assert_true(lab_command(&lab, "{\"command\": \"alua-flip\"}"));
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_NON_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "a", 2), ALUA_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 2), ALUA_NON_OPTIMIZED);
	assert_true(lab_command(&lab, "{\"command\": \"alua-flip\", \"volume\": \"a\", "
				      "\"transition\": \"60s\"}"));
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_TRANSITIONING);
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_OPTIMIZED);
	/* From where the transition would have led. */
	assert_true(lab_command(&lab, "{\"command\": \"alua-flip\", \"volume\": \"a\"}"));
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_NON_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "a", 2), ALUA_OPTIMIZED);
	assert_true(lab_command(&lab, ALUA_SET("\"volume\": \"a\", \"group\": 1, \"state\": "
					       "\"transitioning\"")));
	assert_false(lab_command(&lab, "{\"command\": \"alua-flip\", \"volume\": \"a\"}"));
	assert_false(lab_command(&lab, "{\"command\": \"alua-flip\", \"volume\": \"c\"}"));
	/* Nobody has a secret here. */
	assert_false(lab_command(&lab, "{\"command\": \"chap-change\", \"user\": \"u\"}"));
	lab_stop(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_controllers), cmocka_unit_test(test_members),
	    cmocka_unit_test(test_alua_set),	cmocka_unit_test(test_alua_set_refused),
	    cmocka_unit_test(test_alua_flip),
	};

	return cmocka_run_group_tests_name("control_alua", tests, NULL, NULL);
}
