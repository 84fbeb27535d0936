/* SPDX-License-Identifier: MIT
 *
 * A small target for tests of the control room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "lab.h"

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
void lab_start(struct lab *lab, enum group_style style)
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
	    .style = (int)style,
	    .controllers = {.failover_ns = 50 * NS_PER_MS, .transition_ns = 50 * NS_PER_MS},
	    .pools = {&lab->pool, 1},
	    .volumes = {lab->volumes, 2}};
	any_port(&lab->group.portal);
	assert_int_equal(loop_new_real(&lab->loop), 0);
	if (target_start(lab->loop, &lab->group, "unit", 1, &lab->target, &err))
		fail_msg("%s", err.what);
}

void lab_stop(struct lab *lab)
{
	target_stop(lab->target);
	loop_free(lab->loop);
}

enum alua_state lab_state_of(struct lab *lab, const char *volume, uint16_t group)
{
	enum alua_state state;

	assert_int_equal(scsi_alua_state(target_find_lu(lab->target, volume), group, &state), 0);
	return state;
}

bool lab_command(struct lab *lab, const char *text)
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

void lab_wait(struct lab *lab, bool (*condition)(struct lab *lab), const char *what)
{
	uint64_t until_ns = loop_now_ns(lab->loop) + 10 * NS_PER_S;

	while (!condition(lab)) {
		if (loop_now_ns(lab->loop) > until_ns)
			fail_msg("not within ten seconds: %s", what);
		assert_true(loop_turn(lab->loop, true) >= 0);
	}
}
