/* SPDX-License-Identifier: MIT
 *
 * The lab file: what the shipped labs come to, every cross-check with its text and place, and the
 * effective configuration, which loads again to the same.
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

#define M1 "group.pools.default.members.m1."

/* Loads TEXT; *ret_errors is what was printed (to be freed). */
static struct lab *load(const char *text, const char *const *sets, char **ret_errors)
{
	struct lab *lab = NULL;
	size_t size = 0, set_count = 0;
	FILE *to = open_memstream(ret_errors, &size);
	assert_non_null(to);
	while (sets && sets[set_count])
		set_count++;
	int rc = lab_parse("lab.yaml", text, strlen(text), sets, set_count, to, &lab);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(rc, lab ? 0 : -EINVAL);
	assert_true(lab ? !**ret_errors : **ret_errors);
	return lab;
}

/* Which keys there are is no test's business: "unknown key ... allowed: a, b" ends at "allowed:".
 */
static void cut_allowed(char *errors)
{
	for (char *line = errors; *line;) {
		char *end = strchrnul(line, '\n'), *unknown = strstr(line, "unknown key");
		char *allowed = unknown && unknown < end ? strstr(unknown, "allowed:") : NULL;
		if (allowed && allowed < end) {
			char *keep = allowed + strlen("allowed:");
			memmove(keep, end, strlen(end) + 1);
			end = keep;
		}
		line = *end ? end + 1 : end;
	}
}

static void check_errors(const char *text, const char *const *sets, const char *expected)
{
	char *errors = NULL;
	struct lab *lab = load(text, sets, &errors);
	cut_allowed(errors);
	assert_string_equal(errors, expected);
	free(errors);
	lab_free(lab);
}

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
	struct lab *again = load(text, NULL, &errors);
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

/* ---- one small lab for the rest ---- */

static const char small[] =
    "name: small\n"							/*  1 */
    "group:\n"								/*  2 */
    "  portal: 127.0.0.1:3260\n"					/*  3 */
    "  pools:\n"							/*  4 */
    "  - name: default\n"						/*  5 */
    "    members:\n"							/*  6 */
    "    - name: m1\n"							/*  7 */
    "      drives: {count: 4, size: 1GiB}\n"				/*  8 */
    "      raid: raid10\n"						/*  9 */
    "      portals: [127.0.0.1:3261, 127.0.0.1:3262]\n"			/* 10 */
    "    - name: m2\n"							/* 11 */
    "      drives: {count: 3, size: 1GiB, spares: 1}\n"			/* 12 */
    "      raid: raid10\n"						/* 13 */
    "      portals: [127.0.0.1:3263]\n"					/* 14 */
    "  volumes:\n"							/* 15 */
    "  - {name: db1, size: 1GiB}\n"					/* 16 */
    "  - {name: db2, size: 1GiB, thin: false}\n"			/* 17 */
    "  - {name: db3, size: 1GiB}\n"					/* 18 */
    "hosts:\n"								/* 19 */
    "- {name: h1, volumes: [db1, db2]}\n"				/* 20 */
    "- {name: h2, volumes: [db3]}\n"					/* 21 */
    "workload: {type: exchange, mailboxes: 10, database-size: 64MiB}\n" /* 22 */
    "faults:\n"								/* 23 */
    "- {at: 1s, path-down: {host: h1, path: 2}, for: 5s}\n"		/* 24 */
    "- {at: 2s, path-reset: {host: h2, path: 0, volume: db3}}\n"	/* 25 */
    "- {at: 3s, portal-down: {portal: 127.0.0.1:3262}}\n"		/* 26 */
    "- {at: 4s, all-paths-down: {host: h2}, for: 1s}\n"			/* 27 */
    "- {at: 5s, all-paths-down: }\n"					/* 28 */
    "expect:\n"								/* 29 */
    "- {data-mismatches: 0}\n"						/* 30 */
    "- {max-io-gap: \"<= 2s\"}\n"					/* 31 */
    "- {achieved-iops: \">=95%\"}\n"					/* 32 */
    "- {db-read-latency: < 20ms}\n"					/* 33 */
    "- {io-errors: \"> 3\"}\n"						/* 34 */
    "- {path-share: within 2.5%}\n";					/* 35 */

static void test_small(void **state)
{
	char *errors = NULL;
	struct lab *lab = load(small, NULL, &errors);
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
	struct lab *lab = load(small, sets, &errors);
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
	struct lab *lab = load(small, sets, &errors);
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

static const char preset_lab[] = "name: preset\n"
				 "group:\n"
				 "  portal: 127.0.0.1:3260\n"
				 "  pools:\n"
				 "  - name: default\n"
				 "    members:\n"
				 "    - name: m1\n"
				 "      model: ps6100xv-3.5\n"
				 "      portals: [127.0.0.1:3261]\n"
				 "  volumes:\n"
				 "  - {name: db1, size: 1GiB}\n";

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
		struct lab *lab = load(preset_lab, cases[i].sets, &errors);
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

static void test_preset_errors(void **state)
{
	static const char *const lun[] = {"group.style=lun", NULL};
	static const char *const ports[] = {M1 "model=ps4100e", M1 "raid=raid10",
					    M1 "portals=[127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3]",
					    NULL};
	static const char *const drives[] = {M1 "raid=raid10", M1 "drives={count: 1}", NULL};

	check_errors(preset_lab, lun,
		     "lab.yaml:8:14: 'ps6100xv-3.5' is an array of style equallogic, the group is "
		     "of style lun; set the group's style, or describe the member by its drives\n");
	check_errors(preset_lab, ports,
		     "--set " M1 "portals=[127.0.0.1:1, 127.0.0.1:2, 127.0.0.1:3]: 3 portals: a "
		     "ps4100e has 2 ports\n");
	/* What the preset gave is wrong because of what the file says. */
	check_errors(preset_lab, drives,
		     "lab.yaml:8:14: 1 spares of 1 drives leave none for data\n");
}

/* ---- errors ---- */

/* What issue 2 asks for: an unknown key, a bad unit, a volume in an unknown pool, two members on
 * one port and an impossible drive count, all in one go. */
static void test_five_errors(void **state)
{
	check_errors(
	    "name: bad\n"
	    "group:\n"
	    "  style: equallogic\n"
	    "  portal: 127.0.0.1:3260\n"
	    "  pools:\n"
	    "    - name: default\n"
	    "      members:\n"
	    "        - name: m1\n"
	    "          drives: {model: sas-15k-600, count: 7}\n"
	    "          raid: raid10\n"
	    "          protals: [127.0.0.1:3261]\n"
	    "          portals: [127.0.0.1:3261]\n"
	    "        - name: m2\n"
	    "          drives: {model: sas-15k-600, count: 8}\n"
	    "          raid: raid10\n"
	    "          portals: [127.0.0.1:3261]\n"
	    "  volumes:\n"
	    "    - {name: db1, pool: defualt, size: 1GiB}\n"
	    "    - {name: db2, pool: default, size: 1GIGA}\n",
	    NULL,
	    "lab.yaml:9:47: raid10 needs an even number of active drives, 2 to 64, not 7 "
	    "(member 'm1': 7 drives, 0 spares)\n"
	    "lab.yaml:11:11: unknown key 'protals' in member; did you mean 'portals'? "
	    "allowed:\n"
	    "lab.yaml:16:21: portal 127.0.0.1:3261 of m2 is already the portal of m1\n"
	    "lab.yaml:18:25: volume 'db1' is in the unknown pool 'defualt'; did you mean "
	    "'default'? pools: default\n"
	    "lab.yaml:19:40: 'size': '1GIGA' is not a size; units understood: B, KiB, MiB, "
	    "GiB, TiB (1024; also k, M, G, T) and kB, MB, GB, TB (1000)\n");
}

/* Each assignment alone turns the small lab into a wrong one. */
struct error_case {
	const char *set, *expected;
};

static const struct error_case group_cases[] = {
    {"name=Small", "the name 'Small' must be 1 to 32 characters of a-z, 0-9 and '-'"},
    {"group.volumes.db1.name=db 1",
     "the name 'db 1' must be 1 to 32 characters of a-z, 0-9 and '-'"},
    {"group.volumes.db3.name=db2", "there is a volume 'db2' already"},
    {"group.volumes.db1.size=1000KiB", "'size' is 1000KiB; it must be from 1MiB to 64TiB"},
    {"group.volumes.db1.size=1048577", "'size' is not a multiple of the block"},
    {"group.volumes.db1.block=1k", "'block' must be 512B or 4KiB"},
    {"group.volumes.db1.physical-block=8k", "'physical-block' must be 512B or 4KiB"},
    {"group.volumes.db2.size=4GiB",
     "volume 'db2' does not fit: pool 'default' has 3.0 GiB, thick volumes up to this one take "
     "4.0 GiB; make it thin or smaller, or add drives"},
    {"group.portal=127.0.0.1:3262",
     "portal 127.0.0.1:3262 of m1 is already the portal of the group"},
    {M1 "name=m2", "there is a member 'm2' already"},
    {M1 "drives.spares=4", "4 spares of 4 drives leave none for data"},
    {M1 "drives.spares=1", "raid10 needs an even number of active drives, 2 to 64, not 3 (member "
			   "'m1': 4 drives, 1 spares)"},
    {M1 "drives.count=49", "'count' is 49; it must be from 1 to 48"},
    {M1 "chunk=big", "'chunk': 'big' is not a size; units understood: B, KiB, MiB, GiB, TiB (1024; "
		     "also k, M, G, T) and kB, MB, GB, TB (1000)"},
    {M1 "drives.size=1q", "'size': '1q' is not a size; units understood: B, KiB, MiB, GiB, TiB "
			  "(1024; also k, M, G, T) and kB, MB, GB, TB (1000)"},
    {"group.volumes.db2.size=18446744073709551615",
     "'size' is 18446744073709551615; it must be from 1MiB to 64TiB"},
    {M1 "chunk=96KiB", "'chunk' must be a power of two"},
    {M1 "raid=raid7", "'raid' has the unknown value 'raid7'; did you mean 'raid0'? allowed: "
		      "raid0, raid1, raid10, raid5, raid50, raid6, raid60, adapt"},
    {M1 "portals=[]", "member 'm1' has no portals; the group portal only redirects to members "
		      "(style equallogic)"},
    {M1 "store=memroy", "'store' is of the unknown kind 'memroy'; did you mean 'memory'? allowed: "
			"memory, {file: DIR}, discard"},
    {M1 "store=tape",
     "'store' is of the unknown kind 'tape'; allowed: memory, {file: DIR}, discard"},
    {M1 "store=file", "a file store needs its directory: store: {file: DIR}"},
    {M1 "store={file: }", "a file store needs its directory: store: {file: DIR}"},
    {M1 "store={file: a, more: b}", "'store' must be memory, {file: DIR} or discard"},
    {M1 "store=[]", "'store' must be memory, {file: DIR} or discard"},
    {"group.pools.1={name: default, members: []}", "pool 'default' has no members"},
};

static const struct error_case host_cases[] = {
    {"hosts.h2.name=h1", "there is a host 'h1' already"},
    {"hosts.h2.volumes=[db3, db4]", "the group has no volume 'db4'; did you mean 'db1'?"},
    {"hosts.h2.volumes=[db3, db1]", "volume 'db1' is used by host 'h1' already; two writers would "
				    "corrupt it; give each its own"},
    {"hosts.h2.volumes=[db3, db3]", "volume 'db3' is used by host 'h2' already; two writers would "
				    "corrupt it; give each its own"},
    {"hosts.2.name=h3", "host 'h3' has neither volumes nor luns"},
    {"hosts.h1.stack=guset", "'stack' has the unknown value 'guset'; allowed: direct"},
    {"hosts.h1.mpio.preferred-path=3",
     "'preferred-path' is 3; volume 'db1' has 3 paths, counted from 0"},
    {"hosts.h1.mpio.reconnect-min=5s", "'reconnect-min' is longer than 'reconnect-max'"},
    {"hosts.h1.mpio.policy=roundrobin", "'policy' has the unknown value 'roundrobin'; did you "
					"mean 'round-robin'? allowed: round-robin, failover-only"},
    {"hosts.h1.luns=[{name: db1, urls: ['iscsi://127.0.0.1/iqn.2026-11.test:x/0']}]",
     "the host has a volume 'db1' already"},
    {"hosts.h1.luns=[{name: l, urls: [nonsense]}]",
     "not an iSCSI URL: nonsense: it does not begin with iscsi://; write "
     "iscsi://[user%password@]host[:port]/target-iqn/lun"},
    {"hosts.h1.luns=[{name: l, urls: []}]", "a lun needs at least one url"},
    {"hosts.h1.luns=[{name: k, urls: ['iscsi://127.0.0.1/iqn.2026-11.test:x/0']}, {name: l, urls: "
     "['iscsi://127.0.0.2/iqn.2026-11.test:x/0']}]",
     "another lun of this lab is the same logical unit; two writers would corrupt it; paths of one "
     "lun belong into one list of urls"},
    {"workload.type=exhcange",
     "there is no workload of type 'exhcange'; did you mean 'exchange'? allowed: exchange, raw"},
    {"workload=exchange", "'workload' must be a mapping with a `type`; write workload: {type: "
			  "exchange, ...}"},
    {"workload.mailboxes=none", "'mailboxes': 'none' is not a whole number"},
    {"workload.log-size=2GiB",
     "volume db1 has 1.0 GiB: too small for a database of 64.0 MiB and logs of 2.0 GiB; make the "
     "volume larger, or set workload.database-size, .prefill and .log-size"},
    {"run.interval=31s", "'interval' is longer than 'duration'"},
};

static const struct error_case run_cases[] = {
    {"faults.0.at=30s", "the fault begins after the measured window ('duration')"},
    {"faults.0.path-down.host=h3", "the lab has no host 'h3'; did you mean 'h1'?"},
    {"faults.0.path-down.path=3",
     "host 'h1' has no path 3 to volume 'db1': it has 3, counted from 0"},
    {"faults.0.path-down.volume=db3", "host 'h1' has no volume 'db3'"},
    {"faults.0.path-down.pth=1",
     "unknown key 'pth' in path fault; did you mean 'path'? allowed: host, path, volume"},
    {"faults.0.portal-down={portal: '127.0.0.1:3261'}",
     "a second kind in one fault ('path-down' and 'portal-down'); give each its own entry"},
    {"faults.1.for=1s", "'path-reset' is an instant and takes no 'for'; use 'path-down'"},
    {"faults.2.portal-down.portal=127.0.0.1:1",
     "neither the group nor a member has portal 127.0.0.1:1"},
    {"faults.3.all-paths-down.host=mbx", "the lab has no host 'mbx'"},
    {"faults.0={at: 1s}",
     "a fault without a kind; allowed: path-reset, path-down, portal-down, all-paths-down, "
     "drive-fail, drive-slow, drive-latent, member-offline, controller-failover, link-down, "
     "battery-lost, scrub"},
    {"faults.0.for=0s", "'for' is 0s; it must be from 1ns to 720h"},
    {"faults.0={at: 1s, drive-fail: {member: m3, drive: 0}}",
     "the group has no member 'm3'; did you mean 'm1'?"},
    {"faults.0={at: 1s, drive-fail: {member: m2, drive: 3}}",
     "member 'm2' has no drive 3: it has 3, counted from 0"},
    {"faults.0={at: 1s, drive-slow: {member: m1, drive: 1}}",
     "a slow drive needs a factor above 1 or some extra time"},
    {"faults.0={at: 1s, controller-failover: {}}",
     "in style equallogic controllers are a member's: name the member"},
    {"faults.0={at: 1s, controller-failover: {member: m1, controller: 2}}",
     "'controller' is 2; it must be at most 1"},
    {"faults.0={at: 1s, link-down: {member: m2, port: 1}}",
     "member 'm2' has no port 1: it has 1, counted from 0"},
    {"faults.0={at: 1s, battery-lost: {member: m1}}",
     "member 'm1' has no cache whose battery could fail"},
    {"faults.0={at: 30s, scrub: {member: m1}}",
     "the fault begins after the measured window ('duration')"},
    {"expect.2.achieved-iops=>= 195%", "'achieved-iops' is '>= 195%': more than all of it (100 %); "
				       "write a condition, such as \">= 95%\""},
    {"expect.5.path-share=within 500%",
     "'path-share' is 'within 500%': more than all of it (100 %); write a condition, such as "
     "within 1%"},
    {"expect.0={rebuild: begun}", "'rebuild' is 'begun'; write finished"},
    {"expect.0={}", "an expectation without a key"},
    {"expect.0.io-errors=0",
     "a second key in one expectation: 'io-errors'; give each its own entry"},
    {"expect.0.data-mismatches=none",
     "'data-mismatches': 'none' is not a whole number; write a condition, such as 0"},
    {"expect.1.max-io-gap=2s", "'max-io-gap' is '2s'; write a condition, such as \"<= 2s\""},
    {"expect.1.max-io-gap=<= 2", "'max-io-gap': '2' lacks a unit of time; units understood: ns, "
				 "us, ms, s, m, h, d; write a condition, such as \"<= 2s\""},
    {"expect.1.max-io-gap=", "'max-io-gap' needs a condition, such as \"<= 2s\""},
    {"expect.1.max-io-gap=[1]", "'max-io-gap' needs a condition, such as \"<= 2s\""},
    {"expect.2.achieved-iops=>= 0.95", "'achieved-iops': '0.95' is not a percentage; write it as "
				       "5%; write a condition, such as \">= 95%\""},
    {"expect.5.path-share=<= 1%", "'path-share' is '<= 1%'; write a condition, such as within 1%"},
};

static void check_cases(const struct error_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *const sets[] = {cases[i].set, NULL};
		char *errors = NULL;
		struct lab *lab = load(small, sets, &errors);
		lab_free(lab);
		char *message = strstr(errors, cases[i].expected);
		if (!message || strcmp(message + strlen(cases[i].expected), "\n") != 0)
			fail_msg("--set %s: expected '%s', got '%s'", cases[i].set,
				 cases[i].expected, errors);
		free(errors);
	}
}

static void test_group_errors(void **state)
{
	check_cases(group_cases, ARRAY_SIZE(group_cases));
}

static void test_host_errors(void **state)
{
	check_cases(host_cases, ARRAY_SIZE(host_cases));
}

static void test_run_errors(void **state)
{
	check_cases(run_cases, ARRAY_SIZE(run_cases));
}

static void test_places(void **state)
{
	check_errors(small, (const char *const[]){"group.volumes.1.name=dbx", NULL},
		     "lab.yaml:20:29: the group has no volume 'db2'; did you mean 'db1'?\n");
	check_errors("name: x\n", NULL,
		     "lab.yaml:1:7: the lab has neither a group nor hosts: there is nothing to "
		     "do\n");
	check_errors(
	    "name: x\n"
	    "hosts:\n"
	    "- name: h\n"
	    "  volumes: [a]\n"
	    "faults:\n"
	    "- {at: 1s, all-paths-down: {}}\n",
	    NULL,
	    "lab.yaml:4:3: the lab has no group whose volumes a host could use; add a group, "
	    "or give the host luns with urls\n"
	    "lab.yaml:5:1: faults need a group: they are carried out by the lab's own "
	    "target\n");
	/* What is wrong already brings no further errors. */
	check_errors("name: x\n"
		     "group: {style: lun, portal: 1, pools: 2, volumes: [3]}\n"
		     "hosts: [4, {name: [], volumes: {}, luns: [5]}]\n"
		     "workload: 6\n"
		     "run: 7\n"
		     "faults: [8, {at: 1s, path-down: 9}]\n"
		     "expect: [10]\n",
		     NULL,
		     "lab.yaml:2:29: 'portal': '1' is not a portal; write a numeric address and a "
		     "port from 1 to 65535, as 127.0.0.1:3260 or [::1]:3260\n"
		     "lab.yaml:2:39: 'pools' must be a list, not a single value\n"
		     "lab.yaml:2:52: volume must be a mapping (`key: value`), not a single value\n"
		     "lab.yaml:3:9: host must be a mapping (`key: value`), not a single value\n"
		     "lab.yaml:3:13: 'name' must be a single value, not a list\n"
		     "lab.yaml:3:23: 'volumes' must be a list, not a mapping\n"
		     "lab.yaml:3:43: lun must be a mapping (`key: value`), not a single value\n"
		     "lab.yaml:4:11: 'workload' must be a mapping with a `type`; write workload: "
		     "{type: exchange, ...}\n"
		     "lab.yaml:5:6: run must be a mapping (`key: value`), not a single value\n"
		     "lab.yaml:6:10: fault must be a mapping (`key: value`), not a single value\n"
		     "lab.yaml:6:33: path fault must be a mapping (`key: value`), not a single "
		     "value\n"
		     "lab.yaml:7:10: expectation must be a mapping (`key: value`), not a single "
		     "value\n");
}

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
	    "\nhosts[].mpio.no-path: duration at most 1h, default 20s\n",
	    "\nfaults[].path-down.path: whole number at most 63, required\n",
	    "\nworkload: {type: exchange}: ",
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
	    cmocka_unit_test(test_preset_errors),
	    cmocka_unit_test(test_five_errors),
	    cmocka_unit_test(test_group_errors),
	    cmocka_unit_test(test_host_errors),
	    cmocka_unit_test(test_run_errors),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_files),
	    cmocka_unit_test(test_reference),
	    cmocka_unit_test(test_no_password_in_the_effective_configuration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
