/* SPDX-License-Identifier: MIT
 *
 * See lab_text.h.
 */
#include "tests/unit/lab/lab_text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char small_lab[] =
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

const char preset_lab[] = "name: preset\n"
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

struct lab *load_text(const char *text, const char *const *sets, char **ret_errors)
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
