/* SPDX-License-Identifier: MIT
 *
 * Asymmetric logical unit access: reporting, explicit and implicit changes, transitions on the
 * virtual clock, and what each state lets through.  Nexus a is in group 1, nexus b in group 2.
 */
#include <errno.h>

#include "target/scsi/alua.h"
#include "tests/unit/scsi/fixture.h"

#define TUR	  CDB(0, 0, 0, 0, 0, 0)
#define STPG(n)	  CDB(0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, (n), 0, 0)
#define READ_ONE  CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0)
#define WRITE_ONE CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0)

static struct scsi_lu *lu_of(struct fixture *fixture, struct volume *volume)
{
	return scsi_device_add(fixture->device, volume);
}

static void set(struct fixture *fixture, uint16_t group, enum alua_state state,
		uint64_t transition_ns)
{
	assert_int_equal(scsi_alua_set(lu_of(fixture, &fixture->thin), group, state, transition_ns),
			 0);
}

/* The descriptor of GROUP in REPORT TARGET PORT GROUPS. */
static void report(struct scsi_nexus *nexus, unsigned lun, uint16_t group, uint8_t ret[12])
{
	struct request request = {0};
	const uint8_t *data =
	    request_good_in(&request, nexus, lun, CDB(0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
	const uint8_t *end = data + 4 + get_be32(data);
	bool found = false;

	assert_int_equal(get_be32(data), request.task.in_bytes - 4);
	for (data += 4; data < end; data += 8 + 4 * data[7]) {
		if (get_be16(data + 2) != group)
			continue;
		memcpy(ret, data, 12);
		found = true;
	}
	assert_ptr_equal(data, end);
	assert_true(found);
	request_release(&request);
}

static unsigned state_of(struct scsi_nexus *nexus, uint16_t group)
{
	uint8_t raw[12] = {0};

	report(nexus, LUN_THIN, group, raw);
	return raw[0] & 0x0f;
}

static void test_report(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};
	uint8_t raw[12];
	const uint8_t *data;

	report(fixture->a, LUN_THIN, 1, raw);
	assert_int_equal(raw[0], 0x00); /* all groups equal: optimized, none preferred */
	assert_int_equal(raw[1], 0xcf);
	assert_int_equal(raw[5], 0);
	assert_int_equal(raw[7], 1);
	assert_int_equal(get_be16(raw + 10), 1);
	report(fixture->a, LUN_THIN, 2, raw);
	assert_int_equal(get_be16(raw + 10), 0x102);
	assert_int_equal(scsi_port_add(fixture->device, 2, 0x103), 1);
	assert_int_equal(scsi_port_add(fixture->device, 2, 0x103), 1);
	report(fixture->b, LUN_THIN, 2, raw);
	assert_int_equal(raw[7], 2);

	/* extended header */
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0xa3, 0x2a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0));
	assert_int_equal(get_be32(data), request.task.in_bytes - 4);
	assert_int_equal(data[4], 0x10);
	assert_int_equal(data[5], ALUA_TRANSITION_S);
	assert_int_equal(get_be16(data + 8 + 2), 1);
	request_release(&request);
	/* cut to the allocation length, the length as it is */
	data = request_good_in(&request, fixture->a, LUN_THIN,
			       CDB(0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0));
	assert_int_equal(request.task.in_bytes, 4);
	assert_int_equal(get_be32(data), 12 + 16);
	request_release(&request);
	request_expect(fixture->a, LUN_THIN, CDB(0xa3, 0x4a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0), NULL, 0,
		       0x052400);
}

static void test_owner(void **state)
{
	struct fixture *fixture = *state;
	uint8_t raw[12];

	scsi_alua_set_owner(lu_of(fixture, &fixture->thick), 2);
	report(fixture->a, LUN_THICK, 1, raw);
	assert_int_equal(raw[0], ALUA_NON_OPTIMIZED);
	report(fixture->a, LUN_THICK, 2, raw);
	assert_int_equal(raw[0], 0x80 | ALUA_OPTIMIZED); /* PREF */
	report(fixture->a, LUN_THIN, 1, raw);
	assert_int_equal(raw[0], ALUA_OPTIMIZED);
	request_expect(fixture->a, LUN_THICK, READ_ONE, NULL, 0, 0);
	/* a controller that comes later is not the owner either */
	assert_int_equal(scsi_port_add(fixture->device, 7, 9), 2);
	report(fixture->a, LUN_THICK, 7, raw);
	assert_int_equal(raw[0], ALUA_NON_OPTIMIZED);
}

/* As Linux does it: this group optimized, nothing about the other. */
static void test_take_over(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t list[8] = {[4] = ALUA_OPTIMIZED, [7] = 1};
	uint8_t raw[12];

	scsi_alua_set_owner(lu_of(fixture, &fixture->thin), 2);
	request_expect(fixture->a, LUN_THIN, STPG(8), list, 8, 0);
	report(fixture->a, LUN_THIN, 1, raw);
	assert_int_equal(raw[0], ALUA_OPTIMIZED);
	assert_int_equal(raw[5], 1); /* by SET TARGET PORT GROUPS */
	report(fixture->a, LUN_THIN, 2, raw);
	assert_int_equal(raw[0], 0x80 | ALUA_NON_OPTIMIZED);
	assert_int_equal(raw[5], 2); /* implicit */
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0x062a06);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0); /* one for both changes */
	/* what changes nothing tells nobody */
	request_expect(fixture->a, LUN_THIN, STPG(8), list, 8, 0);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0);
}

static void test_set_several(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t list[12] = {
	    [4] = ALUA_NON_OPTIMIZED, [7] = 1, [8] = ALUA_STANDBY, [11] = 2};

	request_expect(fixture->a, LUN_THIN, STPG(12), list, 12, 0);
	assert_int_equal(state_of(fixture->a, 1), ALUA_NON_OPTIMIZED);
	assert_int_equal(state_of(fixture->a, 2), ALUA_STANDBY);
	request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, 0);
	request_expect(fixture->b, LUN_THIN, READ_ONE, NULL, 0, 0x062a06);
	request_expect(fixture->b, LUN_THIN, READ_ONE, NULL, 0, 0x02040b);
	/* through the standby group back to work */
	request_expect(fixture->b, LUN_THIN, STPG(8), (const uint8_t[8]){[7] = 2}, 8, 0);
	request_expect(fixture->b, LUN_THIN, READ_ONE, NULL, 0, 0);
}

static void test_bad_sets(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		uint8_t bytes, list[12];
		uint32_t code;
	} rows[] = {
	    {0, {0}, 0},
	    {3, {0}, 0x051a00},
	    {4, {0}, 0},
	    {6, {0}, 0x051a00},
	    {8, {[4] = 0, [7] = 3}, 0x052600},			   /* no such group */
	    {8, {[4] = ALUA_OFFLINE, [7] = 1}, 0x052600},	   /* for operators */
	    {8, {[4] = ALUA_TRANSITIONING, [7] = 1}, 0x052600},	   /* for nobody */
	    {8, {[4] = 4, [7] = 1}, 0x052600},			   /* LBA dependent */
	    {12, {[4] = 2, [7] = 2, [8] = 0, [11] = 9}, 0x052600}, /* nothing of it happens */
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		request_expect(fixture->a, LUN_THIN, STPG(rows[i].bytes), rows[i].list,
			       rows[i].bytes, rows[i].code);
	assert_int_equal(state_of(fixture->a, 2), ALUA_OPTIMIZED);
	/* 67/0A: an offline group cannot be brought back by an initiator */
	set(fixture, 2, ALUA_OFFLINE, 0);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x062a06);
	request_expect(fixture->a, LUN_THIN, STPG(8), (const uint8_t[8]){[7] = 2}, 8, 0x05670a);
	request_expect(fixture->a, LUN_THIN, CDB(0xa4, 0x0a, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0),
		       rows[0].list, 12, 0x051a00);
}

/* Prior bug 87, and the same for every state. */
static void test_states_and_commands(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t block[512];
	static const struct {
		enum alua_state state;
		uint32_t code;
		bool mode_and_log;
	} rows[] = {
	    {ALUA_OPTIMIZED, 0, true},	     {ALUA_NON_OPTIMIZED, 0, true},
	    {ALUA_STANDBY, 0x02040b, true},  {ALUA_UNAVAILABLE, 0x02040c, false},
	    {ALUA_OFFLINE, 0x020412, false}, {ALUA_TRANSITIONING, 0x02040a, false},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t code = rows[i].code, some = rows[i].mode_and_log ? 0 : code;
		struct request request = {0};
		const uint8_t *data;

		set(fixture, 1, rows[i].state, 0);
		if (i > 0)
			request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x062a06);
		request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, code);
		request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, code);
		request_expect(fixture->a, LUN_THIN, WRITE_ONE, block, sizeof block, code);
		request_expect(fixture->a, LUN_THIN, CDB(0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0), NULL, 0,
			       code);
		request_expect(fixture->a, LUN_THIN, CDB(0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0), NULL, 0,
			       code);
		request_expect(fixture->a, LUN_THIN, CDB(0x1a, 8, 0x0a, 0, 0xff, 0), NULL, 0, some);
		request_expect(fixture->a, LUN_THIN, CDB(0x4d, 0, 0x40, 0, 0, 0, 0, 0, 0xff, 0),
			       NULL, 0, some);
		request_expect(fixture->a, LUN_THIN, CDB(0x5e, 2, 0, 0, 0, 0, 0, 0, 8, 0), NULL, 0,
			       some);
		request_expect(fixture->a, LUN_THIN, CDB(0x12, 0, 0, 0, 0xff, 0), NULL, 0, 0);
		request_expect(fixture->a, LUN_THIN, CDB(0x12, 1, 0x83, 1, 0, 0), NULL, 0, 0);
		request_expect(fixture->a, LUN_THIN, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0),
			       NULL, 0, 0);
		assert_int_equal(state_of(fixture->a, 1), rows[i].state);
		data = request_good_in(&request, fixture->a, LUN_THIN, CDB(0x03, 0, 0, 0, 0xff, 0));
		assert_int_equal(
		    (uint32_t)(data[2] & 0x0f) << 16 | (uint32_t)data[12] << 8 | data[13], code);
		request_release(&request);
		/* the other logical units, and the other group, go on */
		request_expect(fixture->a, LUN_THICK, READ_ONE, NULL, 0, 0);
	}
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0x062a06);
	request_expect(fixture->b, LUN_THIN, READ_ONE, NULL, 0, 0);
}

/* Prior bug 85: three seconds of transition, told first by a unit attention. */
static void test_transition(void **state)
{
	struct fixture *fixture = *state;
	struct request request = {0};

	fixture->thin.deferred = true;
	request_prepare(&request, fixture->a, LUN_THIN, READ_ONE, 512);
	request_execute(&request, NULL);
	set(fixture, 1, ALUA_NON_OPTIMIZED, 3 * NS_PER_S);
	fake_volume_release(&fixture->thin, 1); /* what is under way ends as it would */
	assert_int_equal(request.task.status, SCSI_GOOD);
	request_release(&request);
	fixture->thin.deferred = false;
	request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, 0x062a06);
	request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, 0x02040a);
	assert_int_equal(loop_run_until(fixture->loop, 3 * NS_PER_S - 1), 0);
	request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, 0x02040a);
	assert_int_equal(state_of(fixture->a, 1), ALUA_TRANSITIONING);
	assert_int_equal(loop_run_until(fixture->loop, 3 * NS_PER_S), 0);
	request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, 0x062a06);
	request_expect(fixture->a, LUN_THIN, READ_ONE, NULL, 0, 0);
	assert_int_equal(state_of(fixture->a, 1), ALUA_NON_OPTIMIZED);
	/* both changes were one condition for those who did not ask in between */
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0x062a06);
	request_expect(fixture->b, LUN_THIN, TUR, NULL, 0, 0);
}

static void test_transition_fails(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_lu *lu = lu_of(fixture, &fixture->thin);
	enum alua_state now;

	assert_int_equal(scsi_alua_fail(lu, 1), -EALREADY);
	assert_int_equal(scsi_alua_fail(lu, 9), -ENOENT);
	set(fixture, 1, ALUA_STANDBY, 5 * NS_PER_S);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x062a06);
	assert_int_equal(scsi_alua_fail(lu, 1), 0);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x062a07);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0);
	assert_int_equal(scsi_alua_state(lu, 1, &now), 0);
	assert_int_equal(now, ALUA_OPTIMIZED);
	assert_int_equal(loop_run_until(fixture->loop, 10 * NS_PER_S), 0);
	assert_int_equal(state_of(fixture->a, 1), ALUA_OPTIMIZED); /* the timer is gone */
}

/* A change in the middle of a transition ends it. */
static void test_transition_overtaken(void **state)
{
	struct fixture *fixture = *state;

	set(fixture, 1, ALUA_STANDBY, 5 * NS_PER_S);
	set(fixture, 1, ALUA_NON_OPTIMIZED, 0);
	assert_int_equal(loop_run_until(fixture->loop, 10 * NS_PER_S), 0);
	request_expect(fixture->a, LUN_THIN, TUR, NULL, 0, 0x062a06);
	assert_int_equal(state_of(fixture->a, 1), ALUA_NON_OPTIMIZED);
	set(fixture, 1, ALUA_STANDBY, 5 * NS_PER_S); /* and one that teardown meets */
}

static void test_bounds(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_lu *lu = lu_of(fixture, &fixture->thin);
	static const uint8_t isid[6] = {0x80, 0, 0, 0, 0, 9};
	enum alua_state parsed;

	assert_int_equal(scsi_alua_set(lu, 9, ALUA_STANDBY, 0), -ENOENT);
	assert_int_equal(scsi_alua_set(lu, 1, ALUA_STANDBY, 61 * NS_PER_S), -ERANGE);
	assert_int_equal(scsi_alua_state(lu, 9, &parsed), -ENOENT);
	for (int group = 3; group <= ALUA_GROUPS_MAX; group++)
		assert_int_equal(scsi_port_add(fixture->device, (uint16_t)group, (uint16_t)group),
				 group - 1);
	assert_int_equal(scsi_port_add(fixture->device, 99, 99), -ENOSPC);
	assert_null(scsi_nexus_new(fixture->target, "iqn.2026-11.test:c", isid, 99, 99));
	for (int port = 1000; port < 1000 + ALUA_PORTS_MAX - 16; port++)
		assert_int_equal(scsi_port_add(fixture->device, 1, (uint16_t)port), 0);
	assert_int_equal(scsi_port_add(fixture->device, 1, 5000), -ENOSPC);
	request_expect(fixture->a, LUN_THIN, CDB(0xa3, 0x0a, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0), NULL, 0,
		       0);
	assert_int_equal(scsi_alua_state_parse("standby", &parsed), 0);
	assert_int_equal(parsed, ALUA_STANDBY);
	assert_int_equal(scsi_alua_state_parse("asleep", &parsed), -EINVAL);
	assert_string_equal(scsi_alua_state_name(ALUA_TRANSITIONING), "transitioning");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    CASE(test_report),
	    CASE(test_owner),
	    CASE(test_take_over),
	    CASE(test_set_several),
	    CASE(test_bad_sets),
	    CASE(test_states_and_commands),
	    CASE(test_transition),
	    CASE(test_transition_fails),
	    CASE(test_transition_overtaken),
	    CASE(test_bounds),
	};

	return cmocka_run_group_tests_name("scsi_alua", tests, NULL, NULL);
}
