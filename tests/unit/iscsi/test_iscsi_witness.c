/* SPDX-License-Identifier: MIT
 *
 * What the target has seen of its initiators: each kind of sight, what repeats, and what is
 * forgotten.
 */
#include "target/iscsi/witness.h"
#include "tests/unit/iscsi/fixture.h"

/* The newest sight of KIND; it must be there. */
static const struct iscsi_sight *seen(const struct fixture *f, enum iscsi_sight_kind kind)
{
	const struct iscsi_sight *sight, *found = NULL;

	for (uint64_t at = 0; (sight = iscsi_witness_next(f->server, at)); at = sight->number)
		if (sight->kind == kind)
			found = sight;
	assert_non_null(found);
	return found;
}

static unsigned sights(const struct fixture *f)
{
	const struct iscsi_sight *sight;
	unsigned count = 0;

	for (uint64_t at = 0; (sight = iscsi_witness_next(f->server, at)); at = sight->number)
		count++;
	return count;
}

static void test_login_and_its_ends(void **state)
{
	struct fixture *f = *state;
	struct iscsi_session_info info;
	struct pdu_client again;

	fixture_login(f, NULL, 0);
	assert_string_equal(seen(f, SIGHT_LOGIN)->target, TARGET_NAME);
	assert_string_equal(seen(f, SIGHT_LOGIN)->initiator, "iqn.2026-11.test.sanlab:client");
	pdu_client_init(&again, f->server);
	pdu_client_open(&again, f->portal);
	assert_int_equal(pdu_login(&again, TARGET_NAME, NULL, 0), 0);
	assert_string_equal(seen(f, SIGHT_ENDED)->text, "reinstated by a new login");
	assert_true(seen(f, SIGHT_REINSTATED)->number > seen(f, SIGHT_ENDED)->number);
	assert_true(iscsi_server_session(f->server, 0, &info));
	assert_string_equal(info.initiator, "iqn.2026-11.test.sanlab:client");
	assert_int_equal(info.connections, 1);
	assert_false(iscsi_server_session(f->server, 1, &info));
	assert_int_equal(iscsi_portal_reset(f->portal, NULL), 1);
	assert_string_equal(seen(f, SIGHT_ENDED)->text, "reset by the target");
	pdu_client_done(&again);
}

static void test_refused_login(void **state)
{
	struct fixture *f = *state;

	pdu_client_open(&f->client, f->portal);
	assert_int_not_equal(pdu_login(&f->client, "iqn.2026-11.test.sanlab:none", NULL, 0), 0);
	assert_string_equal(seen(f, SIGHT_LOGIN_REFUSED)->text, "login status 0203");
}

static void test_answers_and_functions(void **state)
{
	struct fixture *f = *state;
	uint8_t bhs[BHS_BYTES];

	fixture_login(f, NULL, 0);
	fake_attention(f->target);
	assert_int_equal(pdu_test_unit_ready(&f->client), SCSI_CHECK_CONDITION);
	assert_memory_equal(seen(f, SIGHT_ATTENTION)->text, "6/", 2);
	pdu_tmf(&f->client, bhs, 5, ISCSI_NO_TAG, 0);
	pdu_send(&f->client, bhs, NULL, 0);
	pdu_expect(&f->client, OP_TASK_MANAGEMENT_RESPONSE);
	assert_string_equal(seen(f, SIGHT_TASK_MANAGEMENT)->text, "LOGICAL UNIT RESET");
}

/* One that repeats counts up; of many that differ the latest are kept, with their numbers. */
static void test_repeats_and_bound(void **state)
{
	struct fixture *f = *state;
	unsigned before;

	fixture_login(f, NULL, 0);
	before = sights(f);
	for (int i = 0; i < 5; i++)
		iscsi_witness_note(f->client.conn, SIGHT_STATUS, "BUSY");
	assert_int_equal(sights(f), before + 1);
	assert_int_equal(seen(f, SIGHT_STATUS)->count, 5);
	for (int i = 0; i < 2 * ISCSI_SIGHTS; i++)
		iscsi_witness_note(f->client.conn, SIGHT_STATUS, "number %d", i);
	assert_int_equal(sights(f), ISCSI_SIGHTS);
	assert_int_equal(seen(f, SIGHT_STATUS)->number, before + 1 + 2 * ISCSI_SIGHTS);
	assert_null(iscsi_witness_next(f->server, before + 1 + 2 * ISCSI_SIGHTS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    FIXTURE_TEST(test_login_and_its_ends),
	    FIXTURE_TEST(test_refused_login),
	    FIXTURE_TEST(test_answers_and_functions),
	    FIXTURE_TEST(test_repeats_and_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
