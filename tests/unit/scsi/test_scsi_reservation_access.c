/* SPDX-License-Identifier: MIT
 *
 * Which command passes which reservation (SPC-4 and SBC-3, tables of allowed commands), RESERVE
 * and RELEASE, and what goes before RESERVATION CONFLICT.
 */
#include "tests/unit/scsi/pr_client.h"

#define KEY_A UINT64_C(0xa)
#define KEY_B UINT64_C(0xb)

/* What a nexus without access may do: under the write exclusive types, under the exclusive access
 * types, while another has reserved with RESERVE. */
enum { WE = 1, EA = 2, R6 = 4, ALWAYS = WE | EA | R6 };

static const struct {
	uint8_t cdb[16];
	unsigned passes;
} commands[] = {
    {{0x00}, WE | EA},			    /* TEST UNIT READY */
    {{0x03, [4] = 18}, ALWAYS},		    /* REQUEST SENSE */
    {{0x12, [4] = 96}, ALWAYS},		    /* INQUIRY */
    {{0xa0, [9] = 64}, ALWAYS},		    /* REPORT LUNS */
    {{0x25}, ALWAYS},			    /* READ CAPACITY (10) */
    {{0x9e, 0x10, [13] = 32}, ALWAYS},	    /* READ CAPACITY (16) */
    {{0x9e, 0x12, [13] = 32}, WE},	    /* GET LBA STATUS */
    {{0x9e, 0x13, [13] = 32}, ALWAYS},	    /* REPORT REFERRALS */
    {{0xa3, 0x0a, [9] = 64}, ALWAYS},	    /* REPORT TARGET PORT GROUPS */
    {{0xa3, 0x0c, [9] = 64}, WE},	    /* REPORT SUPPORTED OPERATION CODES */
    {{0xa3, 0x0d, [9] = 64}, WE},	    /* REPORT SUPPORTED TMFs */
    {{0xa4, 0x0a, [9] = 64}, 0},	    /* SET TARGET PORT GROUPS */
    {{0x4d, [2] = 0x40, [8] = 64}, ALWAYS}, /* LOG SENSE */
    {{0x1a, [2] = 0x3f, [4] = 64}, WE},	    /* MODE SENSE */
    {{0x5a, [2] = 0x3f, [8] = 64}, WE},
    {{0x15, 0x10, [4] = 4}, 0}, /* MODE SELECT */
    {{0x55, 0x10, [8] = 8}, 0},
    {{0x1b, [4] = 0x01}, ALWAYS}, /* START STOP UNIT: start */
    {{0x1b, [4] = 0x00}, 0},	  /* stop */
    {{0x1b, [4] = 0x02}, 0},	  /* eject */
    {{0x1b, [4] = 0x31}, 0},	  /* a power condition */
    {{0x08, [4] = 1}, WE},	  /* READ */
    {{0x28, [8] = 1}, WE},
    {{0xa8, [9] = 1}, WE},
    {{0x88, [13] = 1}, WE},
    {{0x34, [8] = 1}, WE}, /* PRE-FETCH */
    {{0x90, [13] = 1}, WE},
    {{0x37, [8] = 8}, WE}, /* READ DEFECT DATA */
    {{0xb7, [9] = 8}, WE},
    {{0x2f, [8] = 1}, WE}, /* VERIFY */
    {{0xaf, [9] = 1}, WE},
    {{0x8f, [13] = 1}, WE},
    {{0x84, 0x03, [13] = 64}, WE}, /* RECEIVE COPY RESULTS */
    {{0x0a, [4] = 1}, 0},	   /* WRITE */
    {{0x2a, [8] = 1}, 0},
    {{0xaa, [9] = 1}, 0},
    {{0x8a, [13] = 1}, 0},
    {{0x2e, [8] = 1}, 0}, /* WRITE AND VERIFY */
    {{0xae, [9] = 1}, 0},
    {{0x8e, [13] = 1}, 0},
    {{0x41, [8] = 1}, 0}, /* WRITE SAME */
    {{0x93, [13] = 1}, 0},
    {{0x9c, [13] = 1}, 0},	/* WRITE ATOMIC */
    {{0x89, [13] = 1}, 0},	/* COMPARE AND WRITE */
    {{0x8b, [13] = 1}, 0},	/* ORWRITE */
    {{0x42, [8] = 8}, 0},	/* UNMAP */
    {{0x48, 0x01, [8] = 8}, 0}, /* SANITIZE */
    {{0x35}, 0},		/* SYNCHRONIZE CACHE */
    {{0x91}, 0},
    {{0x83, [13] = 16}, 0}, /* EXTENDED COPY */
};

/* Prepares only. */
static bool conflicts(struct scsi_nexus *nexus, const uint8_t cdb[16])
{
	struct request request = {0};
	bool result;

	request_prepare(&request, nexus, LUN_THIN, cdb, 16, 512);
	result = request.prepared == SCSI_ENDED && request.task.status == SCSI_RESERVATION_CONFLICT;
	if (request.prepared != SCSI_ENDED)
		scsi_abort(&request.task);
	request_release(&request);
	return result;
}

static void expect_access(struct scsi_nexus *nexus, unsigned passing, bool all)
{
	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		bool wanted = !all && !(commands[i].passes & passing);

		if (conflicts(nexus, commands[i].cdb) != wanted)
			fail_msg("command %02x/%02x row %u: %s", commands[i].cdb[0],
				 commands[i].cdb[1], i, wanted ? "passed" : "conflicted");
	}
}

static void test_persistent(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;
	static const struct {
		uint8_t type;
		unsigned passing;
		bool registrants;
	} rows[] = {
	    {1, WE, false}, {3, EA, false}, {5, WE, true},
	    {6, EA, true},  {7, WE, true},  {8, EA, true},
	};

	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_A, 0), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(pr_out(a, PR_RESERVE, rows[i].type, KEY_A, 0, 0), 0);
		expect_access(a, 0, true);
		expect_access(b, rows[i].passing, false);
		assert_int_equal(pr_out(b, PR_REGISTER, 0, 0, KEY_B, 0), 0);
		expect_access(b, rows[i].passing, rows[i].registrants);
		expect_reservation(b, rows[i].type, rows[i].type >= 7 ? 0 : KEY_A);
		assert_int_equal(pr_out(b, PR_REGISTER, 0, KEY_B, 0, 0), 0);
		assert_int_equal(pr_out(a, PR_RELEASE, rows[i].type, KEY_A, 0, 0), 0);
		expect_access(b, 0, true);
		assert_int_equal(tur(b), 0);
	}
}

/* A row that says nothing counts as a write; those that say something are in the table above. */
static void test_rows(void **state)
{
	struct fixture *fixture = *state;
	const struct scsi_command *row;

	for (unsigned index = 0; (row = scsi_commands_row(index)); index++) {
		bool known = row->access == SCSI_ACCESS_WRITE || row->access == SCSI_ACCESS_PR ||
			     row->opcode == 0x16 || row->opcode == 0x17 || row->opcode == 0x56 ||
			     row->opcode == 0x57 || row->opcode == 0x1e || row->opcode == 0x84;

		for (unsigned i = 0; i < ARRAY_SIZE(commands); i++)
			known |= scsi_commands_find(fixture->device, commands[i].cdb) == row;
		if (!known)
			fail_msg("%s: not tested", row->name);
	}
}

static void test_prevent(void **state)
{
	struct fixture *fixture = *state;
	const uint8_t allow[16] = {0x1e}, prevent[16] = {0x1e, [4] = 1};

	fixture->thin.removable = true;
	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, 0), 0);
	assert_int_equal(pr_out(fixture->a, PR_RESERVE, 3, KEY_A, 0, 0), 0);
	assert_false(conflicts(fixture->b, allow));
	assert_true(conflicts(fixture->b, prevent));
	assert_false(conflicts(fixture->a, prevent));
}

/* ---- RESERVE and RELEASE ---- */

#define RESERVE6  CDB(0x16, 0, 0, 0, 0, 0)
#define RELEASE6  CDB(0x17, 0, 0, 0, 0, 0)
#define RESERVE10 CDB(0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0)
#define RELEASE10 CDB(0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0)

static void test_reserve(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;

	assert_int_equal(run_cdb(a, RESERVE6), 0);
	assert_int_equal(run_cdb(a, RESERVE6), 0);
	assert_int_equal(run_cdb(b, RESERVE6), CONFLICT);
	assert_int_equal(run_cdb(b, RESERVE10), CONFLICT);
	assert_int_equal(run_cdb(b, RELEASE6), 0); /* and nothing happens */
	assert_int_equal(run_cdb(b, RELEASE10), 0);
	expect_access(a, 0, true);
	expect_access(b, R6, false);
	/* Persistent reservations conflict, also for the holder. */
	assert_int_equal(run_cdb(a, CDB(0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0)), CONFLICT);
	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_A, 0), CONFLICT);
	assert_int_equal(pr_out(b, PR_REGISTER, 0, 0, KEY_B, 0), CONFLICT);
	assert_int_equal(run_cdb(a, RELEASE10), 0);
	expect_access(b, 0, true);
	assert_int_equal(run_cdb(b, RESERVE10), 0);
	assert_int_equal(run_cdb(a, RESERVE6), CONFLICT);
	assert_int_equal(run_cdb(b, RELEASE6), 0);
	expect_access(a, 0, true);
	/* Third parties and extents are of the past. */
	assert_int_equal(run_cdb(a, CDB(0x16, 0x10, 0, 0, 0, 0)), 0x052400);
	assert_int_equal(run_cdb(a, CDB(0x16, 0x01, 0, 0, 0, 0)), 0x052400);
	assert_int_equal(run_cdb(a, CDB(0x16, 0, 0, 0, 8, 0)), 0x052400);
	assert_int_equal(run_cdb(a, CDB(0x56, 0x02, 0, 0, 0, 0, 0, 0, 0, 0)), 0x052400);
	assert_int_equal(run_cdb(a, CDB(0x57, 0, 0, 0, 0, 0, 0, 0, 8, 0)), 0x052400);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void test_reserve_ends(void **state)
{
	struct fixture *fixture = *state;
	static const uint8_t lun[8] = {0, LUN_THIN}, thick[8] = {0, LUN_THICK};
	struct scsi_nexus *c =
	    scsi_nexus_new(fixture->target, "iqn.2026-11.test:c", (const uint8_t[6]){3}, 1, 1);

	assert_int_equal(tur(c), 0x062900);
	assert_int_equal(run_cdb(c, RESERVE6), 0);
	assert_int_equal(tur(fixture->a), CONFLICT);
	scsi_nexus_free(c);
	assert_int_equal(tur(fixture->a), 0);
	assert_int_equal(run_cdb(fixture->a, RESERVE6), 0);
	assert_int_equal(scsi_reset_lu(fixture->b, thick, nothing, NULL), 0);
	assert_int_equal(tur(fixture->b), CONFLICT); /* another unit's reset */
	assert_int_equal(scsi_reset_lu(fixture->b, lun, nothing, NULL), 0);
	assert_int_equal(tur(fixture->b), 0x062903);
	assert_int_equal(tur(fixture->b), 0);
}

/* CRH: who has access by a persistent reservation gets GOOD, and nothing happens. */
static void test_reserve_compatible(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;

	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_A, 0), 0);
	assert_int_equal(run_cdb(a, RESERVE6), CONFLICT); /* registered, nothing reserved */
	assert_int_equal(run_cdb(b, RESERVE6), CONFLICT);
	assert_int_equal(run_cdb(b, RELEASE6), CONFLICT);
	assert_int_equal(pr_out(a, PR_RESERVE, 1, KEY_A, 0, 0), 0);
	assert_int_equal(run_cdb(a, RESERVE6), 0);
	assert_int_equal(run_cdb(a, RELEASE6), 0);
	assert_int_equal(run_cdb(b, RESERVE10), CONFLICT);
	assert_int_equal(pr_out(b, PR_REGISTER, 0, 0, KEY_B, 0), 0);
	assert_int_equal(run_cdb(b, RESERVE6), CONFLICT);
	assert_int_equal(pr_out(a, PR_PREEMPT, 5, KEY_A, KEY_A, 0), 0);
	assert_int_equal(tur(b), 0x062a04);
	assert_int_equal(run_cdb(b, RESERVE6), 0);
	assert_int_equal(run_cdb(b, RELEASE10), 0);
	expect_reservation(b, 5, KEY_A);
	assert_null(scsi_device_add(fixture->device, &fixture->thin)->reservations.reserved_by);
}

/* SAM-5 5.3.3: a reset's unit attention, then RESERVATION CONFLICT, then other attentions. */
static void test_precedence(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;
	const uint8_t read[10] = {0x28, [8] = 1};

	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_A, 0), 0);
	assert_int_equal(pr_out(b, PR_REGISTER, 0, 0, KEY_B, 0), 0);
	assert_int_equal(pr_out(b, PR_RESERVE, 3, KEY_B, 0, 0), 0);
	assert_int_equal(pr_out(a, PR_PREEMPT, 3, KEY_A, KEY_B, 0), 0);
	scsi_ua_add(b, LUN_THIN, SENSE_UA_DEVICE_RESET);
	assert_int_equal(run_cdb(b, read, sizeof read), 0x062903);
	assert_int_equal(run_cdb(b, read, sizeof read), CONFLICT);
	assert_int_equal(tur(b), 0x062a05);
	assert_int_equal(run_cdb(b, read, sizeof read), CONFLICT);
	/* INQUIRY neither conflicts nor takes an attention. */
	scsi_ua_add(b, LUN_THIN, SENSE_UA_LUNS_CHANGED);
	assert_int_equal(run_cdb(b, CDB(0x12, 0, 0, 0, 96, 0)), 0);
	assert_int_equal(tur(b), SENSE_UA_LUNS_CHANGED);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_persistent), TEST(test_rows),	    TEST(test_prevent),
	    TEST(test_reserve),	   TEST(test_reserve_ends), TEST(test_reserve_compatible),
	    TEST(test_precedence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
