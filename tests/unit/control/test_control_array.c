/* SPDX-License-Identifier: MIT
 *
 * Controllers, members and drives of a running target, through the commands of the control socket.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bytes.h"
#include "lab.h"
#include "target/array/member.h"
#include "target/array/pool_status.h"

#define COMMAND(name, rest) "{\"command\": \"" name "\"" rest "}"
#define CONTROLLER(n)	    ", \"controller\": " #n
#define MEMBER(name)	    ", \"member\": \"" name "\""

static const char *portal_state(struct lab *lab, size_t index)
{
	struct iscsi_portal *portal = iscsi_server_portal(target_server(lab->target), index);

	return iscsi_portal_is_silent(portal) ? "silent" : "up";
}

/* ---- style lun ---- */

static bool volumes_are_taken_over(struct lab *lab)
{
	return lab_state_of(lab, "a", 2) == ALUA_OPTIMIZED;
}

static bool volume_is_back(struct lab *lab)
{
	return lab_state_of(lab, "a", 1) == ALUA_OPTIMIZED &&
	       lab_state_of(lab, "a", 2) == ALUA_NON_OPTIMIZED;
}

/* The survivor has every volume after a transition; the other's are given back when it returns. */
static void test_duo(void **state)
{
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_LUN);
	assert_true(lab_command(&lab, COMMAND("controller-fail", CONTROLLER(0))));
	assert_false(lab_command(&lab, COMMAND("controller-fail", CONTROLLER(0))));
	/* Group portal and every other portal are controller 0's. */
	assert_string_equal(portal_state(&lab, 0), "silent");
	assert_string_equal(portal_state(&lab, 1), "silent");
	assert_string_equal(portal_state(&lab, 2), "up");
	assert_int_equal(lab_state_of(&lab, "a", 1), ALUA_UNAVAILABLE);
	assert_int_equal(lab_state_of(&lab, "a", 2), ALUA_TRANSITIONING);
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_UNAVAILABLE);
	assert_int_equal(lab_state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	lab_wait(&lab, volumes_are_taken_over, "volume a is optimized on the survivor");

	assert_true(lab_command(&lab, COMMAND("controller-return", "")));
	assert_string_equal(portal_state(&lab, 0), "up");
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_NON_OPTIMIZED);
	lab_wait(&lab, volume_is_back, "volume a goes back");
	assert_int_equal(lab_state_of(&lab, "b", 2), ALUA_OPTIMIZED);
	assert_int_equal(lab_state_of(&lab, "b", 1), ALUA_NON_OPTIMIZED);
	lab_stop(&lab);
}

/* ---- style equallogic ---- */

struct read {
	struct io io;
	struct iovec iov;
	uint8_t data[4096];
	bool ended;
};

static void read_ended(struct io *io)
{
	((struct read *)io->owner)->ended = true;
}

static struct read the_read;

static void submit_to(struct lab *lab, struct member *member, enum io_op op)
{
	struct read *read = &the_read;

	(void)lab;
	memset(read, 0, sizeof *read);
	read->iov = (struct iovec){read->data, sizeof read->data};
	read->io = (struct io){.op = op,
			       .length_bytes = sizeof read->data,
			       .iov = &read->iov,
			       .iov_count = 1,
			       .done = read_ended,
			       .owner = read};
	io_submit(&member->layer, &read->io);
}

static bool read_has_ended(struct lab *lab)
{
	(void)lab;
	return the_read.ended;
}

/* While its controllers fail over a member's portals are silent and requests for its pages wait;
 * offline it refuses them. */
static void test_pair(void **state)
{
	struct member *member;
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_EQUALLOGIC);
	member = group_member_at(target_group(lab.target), 0);
	assert_true(lab_command(&lab, COMMAND("controller-fail", MEMBER("m1"))));
	assert_string_equal(portal_state(&lab, 0), "up"); /* the group's */
	assert_string_equal(portal_state(&lab, 1), "silent");
	assert_string_equal(portal_state(&lab, 2), "silent");
	assert_string_equal(portal_state(&lab, 3), "up");
	submit_to(&lab, member, IO_READ);
	assert_true(loop_turn(lab.loop, false) >= 0);
	assert_false(the_read.ended);
	lab_wait(&lab, read_has_ended, "the read ends when the other controller serves");
	assert_int_equal(the_read.io.status, 0);
	assert_string_equal(portal_state(&lab, 1), "up");

	/* The second one too, with a request that waits. */
	assert_true(lab_command(&lab, COMMAND("controller-return", MEMBER("m1"))));
	assert_true(lab_command(&lab, COMMAND("controller-fail", MEMBER("m1"))));
	submit_to(&lab, member, IO_READ);
	assert_true(lab_command(&lab, COMMAND("controller-fail", MEMBER("m1"))));
	assert_true(the_read.ended);
	assert_int_equal(the_read.io.status, -ENODEV);
	assert_true(member_is_offline(member));
	submit_to(&lab, member, IO_WRITE);
	assert_int_equal(the_read.io.status, -ENODEV);
	lab_stop(&lab);
}

static void test_member_offline(void **state)
{
	struct member *member;
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_EQUALLOGIC);
	member = group_member_at(target_group(lab.target), 1);
	assert_true(lab_command(&lab, COMMAND("member-offline", MEMBER("m2"))));
	assert_false(lab_command(&lab, COMMAND("member-offline", MEMBER("m2"))));
	assert_true(member_is_offline(member));
	assert_string_equal(portal_state(&lab, 3), "silent");
	/* A controller that comes and goes meanwhile does not switch it on. */
	assert_true(lab_command(&lab, COMMAND("controller-fail", MEMBER("m2") CONTROLLER(1))));
	assert_true(member_is_offline(member));
	assert_true(lab_command(&lab, COMMAND("member-online", MEMBER("m2"))));
	assert_false(member_is_offline(member));
	assert_string_equal(portal_state(&lab, 3), "up");
	lab_stop(&lab);
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
	    COMMAND("controller-fail", ""),
	    COMMAND("controller-fail", MEMBER("m3")),
	    COMMAND("controller-fail", MEMBER("m1") CONTROLLER(2)),
	    COMMAND("controller-return", MEMBER("m1")),
	    COMMAND("controller-failback", ""),
	    COMMAND("link-down", MEMBER("m1") CONTROLLER(0)),
	    COMMAND("link-down", MEMBER("m1") CONTROLLER(0) ", \"port\": 32"),
	    COMMAND("link-up", MEMBER("m1") CONTROLLER(0) ", \"port\": 0"),
	    COMMAND("drive-fail", MEMBER("m1")),
	    COMMAND("drive-fail", MEMBER("m1") ", \"drive\": 2"),
	    COMMAND("drive-return", MEMBER("m1") ", \"drive\": 0"),
	    COMMAND("drive-replace", MEMBER("m1") ", \"drive\": 0"), /* in memory */
	    COMMAND("scrub-start", MEMBER("m1")),		     /* RAID 0 */
	    COMMAND("rebuild-rate", MEMBER("m1")),
	    COMMAND("rebuild-rate", MEMBER("m1") ", \"rate\": \"fast\""),
	    COMMAND("member-online", MEMBER("m1")),
	};
	struct lab lab;

	lab_start(&lab, GROUP_STYLE_EQUALLOGIC);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (lab_command(&lab, wrong[i]))
			fail_msg("carried out: %s", wrong[i]);
	lab_stop(&lab);
}

/* Every command has its words, and status is a document that tells states. */
static void test_status(void **state)
{
	const struct control_command_info *info;
	json_t *status, *member;
	struct lab lab;

	for (size_t i = 0; (info = control_command_info(i)); i++)
		assert_true(info->name[0] && info->help[0]);
	lab_start(&lab, GROUP_STYLE_EQUALLOGIC);
	assert_true(lab_command(&lab, COMMAND("drive-fail", MEMBER("m1") ", \"drive\": 1")));
	status = control_status(lab.target);
	assert_string_equal(json_string_value(json_object_get(status, "schema")),
			    "sanlab/target/1");
	member = json_array_get(json_object_get(status, "members"), 0);
	/* RAID 0 lacks a drive: nothing can make up for it. */
	assert_string_equal(json_string_value(json_object_get(member, "state")), "failed");
	assert_string_equal(json_string_value(json_object_get(member, "raid")), "raid0");
	assert_string_equal(json_string_value(json_object_get(
				json_array_get(json_object_get(member, "drives"), 1), "state")),
			    "failed");
	assert_int_equal(json_array_size(json_object_get(member, "controllers")), 2);
	json_decref(status);
	lab_stop(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_duo),
	    cmocka_unit_test(test_pair),
	    cmocka_unit_test(test_member_offline),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_status),
	};

	return cmocka_run_group_tests_name("control_array", tests, NULL, NULL);
}
