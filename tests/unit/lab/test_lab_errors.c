/* SPDX-License-Identifier: MIT
 *
 * What is wrong with a lab file: every cross-check with its text and place.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/unit/lab/lab_text.h"

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
	struct lab *lab = load_text(text, sets, &errors);
	cut_allowed(errors);
	assert_string_equal(errors, expected);
	free(errors);
	lab_free(lab);
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
    {"hosts.h1.mpio.no-path=wait 5s",
     "'no-path' is neither fail, queue nor a duration; as in 'no-path: queue 20s', at most 1h"},
    {"hosts.h1.mpio.reconnect-min=5s", "'reconnect-min' is longer than 'reconnect-max'"},
    {"hosts.h1.mpio.policy=roundrobin",
     "'policy' has the unknown value 'roundrobin'; did you "
     "mean 'round-robin'? allowed: round-robin, failover-only, "
     "round-robin-subset, least-queue-depth, weighted-paths, least-blocks, "
     "service-time, historical-service-time, slice-aware"},
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
    {"workload.type=exhcange", "there is no workload of type 'exhcange'; did you mean 'exchange'? "
			       "allowed: exchange, foreign, raw, replay"},
    {"workload=exchange", "'workload' must be a mapping with a `type`; write workload: {type: "
			  "exchange, ...}"},
    {"workload.mailboxes=none", "'mailboxes': 'none' is not a whole number"},
    {"workload.log-size=2GiB",
     "volume db1 has 1.0 GiB: too small for a database of 64.0 MiB and logs of 2.0 GiB; make the "
     "volume larger, or set workload.database-size, .prefill and .log-size"},
    {"workload={type: exchange, engine: ese, mailboxes: 10, initial-size: 64MiB, placement: "
     "[{database: db9}]}",
     "placement: no host has a volume 'db9' (database); database, log and copy-of name volumes of "
     "the hosts"},
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
     "a fault without a kind; allowed: path-reset, path-down, portal-down, portal-silent, "
     "all-paths-down, "
     "session-reset, half-open, black-hole, path-hold, path-slow, digest-corruption, "
     "target-crash, alua-flip, chap-secret, drive-fail, drive-slow, drive-latent, "
     "member-offline, controller-failover, link-down, battery-lost, scrub, "
     "copy-activate, copy-reseed, random"},
    {"faults.0={at: 1s, copy-reseed: {database: db1}}", "the workload has no copies of databases"},
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
    {"expect.0={stream: write}", "an expectation without a key"},
    {"expect.0={io-errors: 0, stream: write}", "'io-errors' is not about single streams"},
    {"expect.0={failover-time: 2s}",
     "'failover-time' is '2s'; write a condition, such as \"<= 2s\""},
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
		struct lab *lab = load_text(small_lab, sets, &errors);
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
	check_errors(small_lab, (const char *const[]){"group.volumes.1.name=dbx", NULL},
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
	    "or give the host luns with urls\n");
	/* An engine that nobody knows says nothing of the other keys. */
	check_errors(small_lab,
		     (const char *const[]){"workload={type: exchange, engine: eze, mailboxes: 10, "
					   "initial-size: 64MiB, backlog: 1}",
					   NULL},
		     "--set workload={type: exchange, engine: eze, mailboxes: 10, initial-size: "
		     "64MiB, backlog: 1}: 'engine' has the unknown value 'eze'; did you mean "
		     "'ese'? allowed: streams, ese\n");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_preset_errors), cmocka_unit_test(test_five_errors),
	    cmocka_unit_test(test_group_errors),  cmocka_unit_test(test_host_errors),
	    cmocka_unit_test(test_run_errors),	  cmocka_unit_test(test_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
