/* SPDX-License-Identifier: MIT
 *
 * The lab file: what the shipped labs, a small one and the presets come to, and the effective
 * configuration, which loads again to the same.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "harness/workload/workload.h"
#include "tests/unit/lab/lab_text.h"

static char *emit(const struct lab *lab)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	assert_int_equal(lab_emit(lab, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

/* ---- the shipped labs ---- */

static struct lab *load_shipped(const char *name, const char *const *sets, size_t set_count)
{
	struct lab *lab = NULL;
	char path[1000];
	(void)snprintf(path, sizeof path, "%s/scripts/labs/%s", SOURCE_ROOT, name);
	assert_int_equal(lab_load(path, sets, set_count, &lab), 0);
	return lab;
}

/* What LAB prints loads again and prints the same. */
static void check_round_trip(const struct lab *lab)
{
	char *text = emit(lab), *errors = NULL;
	struct lab *again = load_text(text, NULL, &errors);
	assert_string_equal(errors, "");
	char *text_again = emit(again);
	assert_string_equal(text, text_again);
	free(text);
	free(text_again);
	free(errors);
	lab_free(again);
}

static void test_quickstart(void **state)
{
	struct lab *lab = load_shipped("quickstart.yaml", NULL, 0);
	struct lab_path paths[LAB_MAX_PATHS];
	const struct host_config *host = lab_find_host(lab, "mbx1");

	assert_string_equal(lab->name, "quickstart");
	assert_true(lab->has_group);
	assert_int_equal(lab->group.style, GROUP_STYLE_EQUALLOGIC);
	assert_int_equal(lab->group.volumes.count, 5);
	assert_int_equal(lab->run.warmup_ns, 5 * NS_PER_S);
	assert_int_equal(lab->run.duration_ns, 30 * NS_PER_S);
	assert_true(lab->run.verify);
	assert_non_null(host);
	assert_null(lab_find_host(lab, "mbx2"));
	assert_string_equal(lab_host_volume(host, 4), "db5");
	assert_null(lab_host_volume(host, 5));
	assert_int_equal(lab_paths_of(lab, host, "db3", paths), 4);
	for (int i = 0; i < 4; i++) {
		char portal[64];
		(void)snprintf(portal, sizeof portal, "127.0.0.1:%d", 3261 + i);
		assert_string_equal(paths[i].portal, portal);
		assert_null(paths[i].url);
	}
	assert_int_equal(lab_paths_of(lab, host, "db6", paths), -ENOENT);
	assert_non_null(lab->workload_ops);
	assert_string_equal(lab->workload_ops->name, "exchange");
	assert_non_null(lab->workload_config);
	assert_true(lab_can_run(lab, NULL));

	const struct expect_config *expect = lab->expect.items;
	assert_int_equal(lab->expect.count, 3);
	assert_string_equal(expect[2].key, "path-share");
	assert_int_equal(expect[2].op, EXPECT_LE);
	assert_true(expect[2].value == 0.01);
	const struct pool_config *pools = lab->group.pools.items;
	const struct member_config *members = pools[0].members.items;
	assert_string_equal(members[0].store_kind, "memory");
	assert_null(members[0].store_place);
	assert_string_equal(raid_level_names[members[0].raid], "raid50");
	check_round_trip(lab);
	lab_free(lab);
}

static void test_raw(void **state)
{
	const char *const sets[] = {"group.portal=127.0.0.1:4260"};
	struct lab *lab = load_shipped("raw.yaml", sets, 1);
	struct err err = {0};
	const struct volume_config *volume = lab->group.volumes.items;

	assert_int_equal(lab->group.style, GROUP_STYLE_LUN);
	assert_string_equal(lab->group.portal.text, "127.0.0.1:4260");
	assert_int_equal(lab->group.volumes.count, 1);
	assert_string_equal(volume->name, "raw0");
	assert_int_equal(volume->size_bytes, GIB);
	assert_true(volume->thin);
	assert_int_equal(volume->block_bytes, 512);
	assert_null(lab->workload_ops);
	assert_false(lab_can_run(lab, &err));
	assert_string_equal(err.what, "lab 'raw' has no hosts: nobody would do any I/O");
	check_round_trip(lab);
	lab_free(lab);
}

static void test_existing_target(void **state)
{
	const char *const sets[] = {
	    "hosts.mbx1.luns.lun0.urls=[iscsi://127.0.0.1:4260/iqn.2026-11.test.x:a/1, "
	    "iscsi://127.0.0.1:4261/iqn.2026-11.test.x:a/1]"};
	struct lab *lab = load_shipped("existing-target.yaml", sets, 1);
	struct lab_path paths[LAB_MAX_PATHS];

	assert_false(lab->has_group);
	assert_true(lab_can_run(lab, NULL));
	assert_int_equal(lab_paths_of(lab, lab->hosts.items, "lun0", paths), 2);
	assert_string_equal(paths[1].portal, "127.0.0.1:4261");
	assert_string_equal(paths[1].url, "iscsi://127.0.0.1:4261/iqn.2026-11.test.x:a/1");
	check_round_trip(lab);
	lab_free(lab);
}

/* ---- one small lab ---- */

static void test_small(void **state)
{
	char *errors = NULL;
	struct lab *lab = load_text(small_lab, NULL, &errors);
	assert_string_equal(errors, "");
	free(errors);

	const struct fault_config *faults = lab->faults.items;
	assert_int_equal(lab->faults.count, 5);
	assert_int_equal(faults[0].kind, FAULT_PATH_DOWN);
	assert_string_equal(faults[0].host, "h1");
	assert_string_equal(faults[0].volume, "db1");
	assert_int_equal(faults[0].path, 2);
	assert_string_equal(faults[0].portal.text, "127.0.0.1:3263");
	assert_int_equal(faults[0].for_ns, 5 * NS_PER_S);
	assert_int_equal(faults[1].kind, FAULT_PATH_RESET);
	assert_string_equal(faults[1].volume, "db3");
	assert_string_equal(faults[1].portal.text, "127.0.0.1:3261");
	assert_int_equal(faults[2].kind, FAULT_PORTAL_DOWN);
	assert_string_equal(faults[2].portal.text, "127.0.0.1:3262");
	assert_int_equal(faults[3].kind, FAULT_ALL_PATHS_DOWN);
	assert_string_equal(faults[3].host, "h2");
	assert_int_equal(faults[4].kind, FAULT_ALL_PATHS_DOWN);
	assert_null(faults[4].host);

	static const struct {
		const char *key;
		int op;
		double value;
	} expected[] = {
	    {"data-mismatches", EXPECT_EQ, 0},	{"max-io-gap", EXPECT_LE, 2e9},
	    {"achieved-iops", EXPECT_GE, 0.95}, {"db-read-latency", EXPECT_LT, 20e6},
	    {"io-errors", EXPECT_GT, 3},	{"path-share", EXPECT_LE, 0.025},
	};
	const struct expect_config *expect = lab->expect.items;
	assert_int_equal(lab->expect.count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(expect[i].key, expected[i].key);
		assert_int_equal(expect[i].op, expected[i].op);
		assert_true(expect[i].value == expected[i].value);
	}
	check_round_trip(lab);
	lab_free(lab);
}

/* In style lun the group's portal is a path too, the first. */
static void test_lun_paths(void **state)
{
	const char *const sets[] = {"group.style=lun", NULL};
	struct lab_path paths[LAB_MAX_PATHS];
	char *errors = NULL;
	struct lab *lab = load_text(small_lab, sets, &errors);
	assert_string_equal(errors, "");
	free(errors);
	assert_int_equal(lab_paths_of(lab, lab->hosts.items, "db1", paths), 4);
	assert_string_equal(paths[0].portal, "127.0.0.1:3260");
	assert_string_equal(paths[3].portal, "127.0.0.1:3263");
	const struct fault_config *faults = lab->faults.items;
	assert_string_equal(faults[0].portal.text, "127.0.0.1:3262");
	lab_free(lab);
}

/* Faults of the array come out with all they name. */
static void test_array_faults(void **state)
{
	const char *const sets[] = {
	    "faults=[{at: 1s, drive-fail: {member: m1, drive: 3}, for: 2s}, "
	    "{at: 2s, drive-slow: {member: m2, drive: 1, factor: 8, extra: 1ms}}, "
	    "{at: 3s, drive-latent: {member: m1, drive: 0, rate: 5%}}, "
	    "{at: 4s, controller-failover: {member: m2}}, "
	    "{at: 4s, controller-failover: {member: m2, controller: 1}}, "
	    "{at: 5s, link-down: {member: m1, port: 1}}, {at: 6s, member-offline: {member: m2}}]",
	    "expect=[{rebuild: finished}, {scrub: clean}]", NULL};
	char *errors = NULL;
	struct lab *lab = load_text(small_lab, sets, &errors);
	assert_string_equal(errors, "");
	free(errors);
	const struct fault_config *faults = lab->faults.items;
	assert_int_equal(faults[0].kind, FAULT_DRIVE_FAIL);
	assert_string_equal(faults[0].member, "m1");
	assert_int_equal(faults[0].drive, 3);
	assert_int_equal(faults[1].kind, FAULT_DRIVE_SLOW);
	assert_true(faults[1].factor == 8);
	assert_int_equal(faults[1].extra_ns, NS_PER_MS);
	assert_true(faults[2].rate == 0.05);
	assert_int_equal(faults[3].controller, -1);
	assert_int_equal(faults[4].controller, 1);
	assert_int_equal(faults[5].controller, 0);
	assert_int_equal(faults[5].port, 1);
	assert_int_equal(faults[6].kind, FAULT_MEMBER_OFFLINE);
	const struct expect_config *expect = lab->expect.items;
	assert_string_equal(expect[0].key, "rebuild");
	assert_string_equal(expect[1].text, "clean");
	check_round_trip(lab);
	lab_free(lab);
}

/* ---- presets ---- */

static const struct member_config *first_member(const struct lab *lab)
{
	const struct pool_config *pools = lab->group.pools.items;
	return pools[0].members.items;
}

/* A model stands for every key it gives; what the file says itself counts, and spares follow from
 * level and drives. */
static void test_presets(void **state)
{
	static const struct {
		const char *sets[4];
		const char *drive, *raid;
		uint64_t count, spares;
	} cases[] = {
	    {{NULL}, "sas-15k-600", "raid50", 24, 2},
	    {{M1 "model=ps6100x", NULL}, "sas-10k-600", "raid50", 24, 2},
	    {{M1 "raid=raid10", M1 "drives.count=7", NULL}, "sas-15k-600", "raid10", 7, 1},
	    {{M1 "drives.model=sas-10k-1200", M1 "drives.spares=4", NULL},
	     "sas-10k-1200",
	     "raid50",
	     24,
	     4},
	    {{M1 "model=ps6100e", NULL}, "nlsas-7k2-2000", "raid6", 24, 1},
	    {{M1 "model=ps4100e", NULL}, "nlsas-7k2-2000", "raid6", 12, 1},
	    {{M1 "model=me4024", "group.style=lun", NULL}, "sas-10k-1200", "adapt", 24, 0},
	    {{M1 "model=es1640dc", "group.style=lun", NULL}, "sas-7k2-1000", "raid10", 12, 0},
	    {{M1 "model=vnx5700-nlsas", "group.style=lun", NULL},
	     "nlsas-7k2-2000",
	     "raid10",
	     48,
	     0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *errors = NULL;
		struct lab *lab = load_text(preset_lab, cases[i].sets, &errors);
		if (!lab)
			fail_msg("case %zu: %s", i, errors);
		free(errors);
		const struct member_config *member = first_member(lab);
		assert_string_equal(drive_model_names[member->drives.model], cases[i].drive);
		assert_string_equal(raid_level_names[member->raid], cases[i].raid);
		assert_int_equal(member->drives.count, cases[i].count);
		assert_int_equal(member->drives.spares, cases[i].spares);
		assert_int_equal(member->controllers.count, 2);
		assert_true(member->cache.size_bytes >= 4 * GIB);
		check_round_trip(lab);
		lab_free(lab);
	}
}

/* ---- the effective configuration, the file, the reference ---- */

/* Reports carry the effective configuration: no secret may travel with them. */
static void test_no_password_in_the_effective_configuration(void **state)
{
	static const char *const sets[] = {
	    "hosts.0.luns.0.urls=[\"iscsi://joe%very-secret@127.0.0.1:3260/iqn.x:a/1\"]"};
	struct lab *lab = load_shipped("existing-target.yaml", sets, ARRAY_SIZE(sets));
	char *text = emit(lab);

	assert_null(strstr(text, "very-secret"));
	assert_non_null(strstr(text, "joe%***@127.0.0.1:3260/iqn.x:a/1"));
	free(text);
	lab_free(lab);
}

static void test_files(void **state)
{
	struct lab *lab = NULL;
	assert_int_equal(lab_load("/nonexistent/lab.yaml", NULL, 0, &lab), -ENOENT);
	assert_null(lab);
	assert_null(lab_free(NULL));
}

static void test_reference(void **state)
{
	static const char *const lines[] = {
	    "\nname: text, required\n",
	    "\ngroup.pools[].members[].drives.count: whole number from 1 to 48, required\n",
	    "\nhosts[].mpio.no-path: text, default queue 20s\n",
	    "\nfaults[].path-down.path: whole number at most 63, required\n",
	    "\nworkload: {type: exchange, engine: streams}: ",
	    "\nworkload.mailboxes: whole number from 1 to ",
	    "\nworkload: {type: raw}: ",
	};
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	lab_print_reference(to);
	assert_int_equal(fclose(to), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strstr(text, lines[i]))
			fail_msg("the reference lacks '%s'", lines[i] + 1);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_quickstart),
	    cmocka_unit_test(test_raw),
	    cmocka_unit_test(test_existing_target),
	    cmocka_unit_test(test_small),
	    cmocka_unit_test(test_lun_paths),
	    cmocka_unit_test(test_array_faults),
	    cmocka_unit_test(test_presets),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_reference),
	    cmocka_unit_test(test_no_password_in_the_effective_configuration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
