/* SPDX-License-Identifier: MIT
 *
 * Access states of a running target: how portals make groups, and the command alua-set.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "target/control/control.h"
#include "target/scsi/alua.h"
#include "target/target.h"

enum { PORTALS = 3 };

struct lab {
	struct cfg_portal portals[PORTALS];
	struct member_config members[2];
	struct volume_config volumes[2];
	struct pool_config pool;
	struct group_config group;
	struct loop *loop;
	struct target *target;
};

static void any_port(struct cfg_portal *portal)
{
	*portal = (struct cfg_portal){.set = true};
	snprintf(portal->host, sizeof portal->host, "127.0.0.1");
	snprintf(portal->text, sizeof portal->text, "127.0.0.1:0");
}

static int raid0_index(void)
{
	int i = 0;

	while (strcmp(raid_level_names[i], "raid0") != 0)
		i++;
	return i;
}

/* A group portal, two portals on the first member, one on the second. */
static void lab_start(struct lab *lab, enum group_style style)
{
	struct err err = {0};

	memset(lab, 0, sizeof *lab);
	for (unsigned i = 0; i < PORTALS; i++)
		any_port(&lab->portals[i]);
	for (unsigned i = 0; i < 2; i++) {
		lab->members[i] = (struct member_config){
		    .name = i ? "m2" : "m1",
		    .drives = {.count = 2, .size_bytes = 64 * MIB},
		    .raid = raid0_index(),
		    .chunk_bytes = 64 * KIB,
		    .timing = DRIVE_TIMING_NONE,
		    .store_kind = "memory",
		    .portals = {&lab->portals[i ? 2 : 0], i ? 1 : 2},
		};
		lab->volumes[i] = (struct volume_config){.name = i ? "b" : "a",
							 .pool = "default",
							 .size_bytes = 16 * MIB,
							 .thin = true,
							 .block_bytes = 512};
	}
	lab->pool = (struct pool_config){.name = "default", .members = {lab->members, 2}};
	lab->group = (struct group_config){
	    .style = (int)style, .pools = {&lab->pool, 1}, .volumes = {lab->volumes, 2}};
	any_port(&lab->group.portal);
	assert_int_equal(loop_new_real(&lab->loop), 0);
	if (target_start(lab->loop, &lab->group, "unit", 1, &lab->target, &err))
		fail_msg("%s", err.what);
}

static void lab_stop(struct lab *lab)
{
	target_stop(lab->target);
	loop_free(lab->loop);
}

static enum alua_state state_of(struct lab *lab, const char *volume, uint16_t group)
{
	enum alua_state state;

	assert_int_equal(scsi_alua_state(target_find_lu(lab->target, volume), group, &state), 0);
	return state;
}

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
	assert_int_equal(state_of(&lab, "a", 1), ALUA_OPTIMIZED);
	assert_int_equal(state_of(&lab, "a", 2), ALUA_NON_OPTIMIZED);
	assert_int_equal(state_of(&lab, "b", 1), ALUA_NON_OPTIMIZED);
	assert_int_equal(state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	lab_stop(&lab);
}

/* A group for each member, all equal. */
static void test_members(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_EQUALLOGIC);
	assert_int_equal(state_of(&lab, "a", 1), ALUA_OPTIMIZED);
	assert_int_equal(state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	assert_false(has_group(&lab, 3));
	assert_null(target_find_lu(lab.target, "c"));
	lab_stop(&lab);
}

/* Executes TEXT; true when it was carried out. */
static bool command(struct lab *lab, const char *text)
{
	json_t *request = json_loads(text, 0, NULL), *answer;
	bool ok;

	assert_non_null(request);
	answer = control_execute(lab->loop, lab->target, request);
	ok = json_is_true(json_object_get(answer, "ok"));
	if (!ok)
		assert_true(strlen(json_string_value(json_object_get(answer, "error"))) > 0);
	json_decref(request);
	json_decref(answer);
	return ok;
}

#define ALUA_SET(rest) "{\"command\": \"alua-set\", " rest "}"

static void test_alua_set(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_LUN);
	assert_true(
	    command(&lab, ALUA_SET("\"volume\": \"a\", \"group\": 2, \"state\": \"standby\"")));
	assert_int_equal(state_of(&lab, "a", 2), ALUA_STANDBY);
	assert_int_equal(state_of(&lab, "a", 1), ALUA_OPTIMIZED);
	assert_int_equal(state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	assert_true(command(&lab, ALUA_SET("\"volume\": \"b\", \"group\": 1, \"state\": "
					   "\"optimized\", \"transition\": \"60s\"")));
	assert_int_equal(state_of(&lab, "b", 1), ALUA_TRANSITIONING);
	assert_true(
	    command(&lab, ALUA_SET("\"volume\": \"b\", \"group\": 1, \"state\": \"failed\"")));
	assert_int_equal(state_of(&lab, "b", 1), ALUA_NON_OPTIMIZED);
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
		assert_false(command(&lab, wrong[i]));
	assert_int_equal(state_of(&lab, "a", 2), ALUA_NON_OPTIMIZED);
	lab_stop(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_controllers),
	    cmocka_unit_test(test_members),
	    cmocka_unit_test(test_alua_set),
	    cmocka_unit_test(test_alua_set_refused),
	};

	return cmocka_run_group_tests_name("control_alua", tests, NULL, NULL);
}
