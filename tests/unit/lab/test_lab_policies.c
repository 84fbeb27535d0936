/* SPDX-License-Identifier: MIT
 *
 * The policies' keys of a lab: which paths a host opens, which policy a volume gets, and what is
 * wrong with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/lab/lab.h"
#include "tests/unit/lab/lab_text.h"

/* Three members with four, two and one portals. */
static const char text[] =
    "name: sessions\n"
    "group:\n"
    "  portal: 127.0.0.1:3260\n"
    "  pools:\n"
    "  - name: default\n"
    "    members:\n"
    "    - {name: m1, drives: {count: 4, size: 1GiB}, raid: raid10, portals: [127.0.0.1:11, "
    "127.0.0.1:12, 127.0.0.1:13, 127.0.0.1:14]}\n"
    "    - {name: m2, drives: {count: 4, size: 1GiB}, raid: raid10, portals: [127.0.0.1:21, "
    "127.0.0.1:22]}\n"
    "    - {name: m3, drives: {count: 4, size: 1GiB}, raid: raid10, portals: [127.0.0.1:31]}\n"
    "  volumes: [{name: db1, size: 1GiB}, {name: db2, size: 1GiB}, {name: db3, size: 1GiB}]\n"
    "hosts:\n"
    "- name: h1\n"
    "  volumes: [db1, db2, db3]\n"
    "  mpio: {}\n";

/* The last digits of the ports of VOLUME's paths: "11 12 21". */
static void check_ports(const char *const *sets, const char *volume, const char *expected)
{
	struct lab_path paths[LAB_MAX_PATHS];
	char *errors = NULL, ports[300] = "";
	struct lab *lab = load_text(text, sets, &errors);
	int count;

	assert_string_equal(errors, "");
	count = lab_paths_of(lab, lab_find_host(lab, "h1"), volume, paths);
	for (int i = 0; i < count; i++) {
		size_t used = strlen(ports);

		snprintf(ports + used, sizeof ports - used, "%s%s", i ? " " : "",
			 strrchr(paths[i].portal, ':') + 1);
	}
	assert_string_equal(ports, expected);
	free(errors);
	lab_free(lab);
}

#define H1	  "hosts.h1.mpio."
#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void sessions_follow_the_rule(void **unused)
{
	check_ports(NULL, "db1", "11 12 13 14 21 22 31");
	/* EqualLogic's defaults: two a slice, six a volume; from volume to volume all ports. */
	check_ports(SETS(H1 "sessions-per-volume=6"), "db1", "11 12 21 22 31");
	check_ports(SETS(H1 "sessions-per-volume=6"), "db2", "13 14 21 22 31");
	check_ports(SETS(H1 "sessions-per-slice=1"), "db1", "11 21 31");
	check_ports(SETS(H1 "sessions-per-slice=1"), "db2", "12 22 31");
	check_ports(SETS(H1 "sessions-per-slice=1"), "db3", "13 21 31");
	check_ports(SETS(H1 "sessions-per-slice=4"), "db1", "11 12 13 21 22 31"); /* 6 */
	check_ports(SETS(H1 "sessions-per-slice=4", H1 "sessions-per-volume=12"), "db1",
		    "11 12 13 14 21 22 31");
	/* Whichever comes first; which member has the more goes round. */
	check_ports(SETS(H1 "sessions-per-volume=4"), "db1", "11 12 21 31");
	check_ports(SETS(H1 "sessions-per-volume=4"), "db2", "13 21 22 31");
	check_ports(SETS(H1 "sessions-per-volume=1"), "db1", "11");
	check_ports(SETS(H1 "sessions-per-volume=1"), "db2", "22");
	check_ports(SETS(H1 "sessions-per-volume=1"), "db3", "31");
}

static void check_errors(const char *const *sets, const char *expected)
{
	char *errors = NULL;

	lab_free(load_text(text, sets, &errors));
	assert_string_equal(errors, expected);
	free(errors);
}

static void mistakes_are_told(void **unused)
{
	check_errors(SETS(H1 "sessions-per-volume=2", H1 "sessions-per-slice=3"),
		     "--set hosts.h1.mpio.sessions-per-slice=3: 'sessions-per-slice' is more than "
		     "'sessions-per-volume'; a volume has at least one slice\n");
	check_errors(SETS(H1 "sessions-per-volume=13", H1 "sessions-per-slice=0"),
		     "--set hosts.h1.mpio.sessions-per-volume=13: 'sessions-per-volume' is 13; it "
		     "must be from 1 to 12\n"
		     "--set hosts.h1.mpio.sessions-per-slice=0: 'sessions-per-slice' is 0; it must "
		     "be from 1 to 4\n");
	check_errors(SETS("group.style=lun", H1 "sessions-per-slice=2"),
		     "--set hosts.h1.mpio.sessions-per-slice=2: sessions are limited in style "
		     "equallogic only; elsewhere every portal or url listed is one path\n");
	check_errors(SETS(H1 "policy=weighted-paths"),
		     "--set hosts.h1.mpio.policy=weighted-paths: policy 'weighted-paths' needs "
		     "'weights'; one number a path, in their order: weights: [0, 0, 10, 10]\n");
	check_errors(SETS(H1 "policy=weighted-paths", H1 "weights=[1, 2]"),
		     "--set hosts.h1.mpio.weights=[1, 2]: 'weights' has 2 numbers; volume 'db1' "
		     "has 7 paths\n");
	check_errors(SETS(H1 "throughput=[1, 2, 3, 4, 5, 6, 101]"),
		     "--set hosts.h1.mpio.throughput=[1, 2, 3, 4, 5, 6, 101]: 'throughput' is 101; "
		     "it must be at most 100\n");
	check_errors(SETS(H1 "throughput=[1]", H1 "sessions-per-volume=1"), "");
	check_errors(SETS(H1 "primary-paths=[0, 7]"),
		     "--set hosts.h1.mpio.primary-paths=[0, 7]: 'primary-paths' names path 7; "
		     "volume 'db1' has 7 paths, counted from 0\n");
	check_errors(SETS(H1 "primary-paths=[3, 3]"),
		     "--set hosts.h1.mpio.primary-paths=[3, 3]: 'primary-paths' names path 3 "
		     "twice\n");
	check_errors(SETS(H1 "preferred-path=6"), "");
	check_errors(
	    SETS(H1 "preferred-path=6", H1 "sessions-per-slice=1"),
	    "--set hosts.h1.mpio.preferred-path=6: 'preferred-path' is 6; volume 'db1' has "
	    "3 paths, counted from 0\n");
	check_errors(SETS(H1 "policy=least-queue-dept"),
		     "--set hosts.h1.mpio.policy=least-queue-dept: 'policy' has the unknown value "
		     "'least-queue-dept'; did you mean 'least-queue-depth'? allowed: round-robin, "
		     "failover-only, round-robin-subset, least-queue-depth, weighted-paths, "
		     "least-blocks, service-time, historical-service-time, slice-aware\n");
}

/* Faults count the paths that are opened. */
static void faults_count_opened_paths(void **unused)
{
	char *errors = NULL;
	struct lab *lab = load_text(
	    text,
	    SETS(H1 "sessions-per-slice=1", "faults=[{at: 1s, path-down: {host: h1, path: 2}}]"),
	    &errors);
	const struct fault_config *fault;

	assert_string_equal(errors, "");
	fault = lab->faults.items;
	assert_string_equal(fault->portal.text, "127.0.0.1:31");
	free(errors);
	lab_free(lab);
	errors = NULL;
	lab_free(load_text(
	    text,
	    SETS(H1 "sessions-per-slice=1", "faults=[{at: 1s, path-down: {host: h1, path: 3}}]"),
	    &errors));
	assert_non_null(strstr(errors, "it has 3, counted from 0"));
	free(errors);
}

static void overrides_are_checked(void **unused)
{
	char *errors = NULL;
	struct lab *lab =
	    load_text(text, SETS(H1 "policies=[{volume: db2, policy: least-blocks}]"), &errors);
	struct mpio_config config;

	assert_string_equal(errors, "");
	mpio_config_for(&lab_find_host(lab, "h1")->mpio, "db2", &config);
	assert_string_equal(mpio_policy_names[config.policy], "least-blocks");
	mpio_config_for(&lab_find_host(lab, "h1")->mpio, "db1", &config);
	assert_string_equal(mpio_policy_names[config.policy], "round-robin");
	free(errors);
	lab_free(lab);
	check_errors(SETS(H1 "policies=[{volume: db22, policy: least-blocks}]"),
		     "--set hosts.h1.mpio.policies=[{volume: db22, policy: least-blocks}]: the "
		     "host has no volume 'db22'; did you mean 'db2'?\n");
	check_errors(SETS(H1 "policies=[{policy: least-blocks}]"),
		     "--set hosts.h1.mpio.policies=[{policy: least-blocks}]: an entry of "
		     "'policies' has either 'volume' or 'hardware'\n");
	check_errors(SETS(H1 "policies=[{volume: db1, policy: round-robin}, {volume: db1, "
			     "policy: weighted-paths}]",
			  H1 "weights=[0, 0, 0, 0, 0, 0, 0]"),
		     "--set hosts.h1.mpio.policies=[{volume: db1, policy: round-robin}, {volume: "
		     "db1, policy: weighted-paths}]: volume 'db1' has a policy already\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sessions_follow_the_rule),
	    cmocka_unit_test(mistakes_are_told),
	    cmocka_unit_test(faults_count_opened_paths),
	    cmocka_unit_test(overrides_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
