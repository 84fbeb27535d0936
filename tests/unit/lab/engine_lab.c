/* SPDX-License-Identifier: MIT
 *
 * Labs that other verbs print.
 */
#include "tests/unit/lab/engine_lab.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "harness/lab/lab.h"
#include "harness/workload/ese/ese_config.h"

/* The lines from BEGIN to END, without their first two columns. */
static char *section_of(const char *text, const char *begin, const char *end)
{
	const char *at = strstr(text, begin), *stop;
	char *section = calloc(1, strlen(text) + 1), *to = section;

	assert_non_null(section);
	assert_non_null(at);
	at += strlen(begin);
	stop = strstr(at, end);
	assert_non_null(stop);
	while (at < stop) {
		size_t length = strcspn(at, "\n") + 1;

		memcpy(to, at + 2, length - 2);
		to += length - 2;
		at += length;
	}
	return section;
}

void engine_lab_accepted(const char *lab_text)
{
	char *load = section_of(lab_text, "\nworkload:\n  type: exchange\n", "run:\n"), *rest;
	struct ese_config config;
	struct cfg *cfg = NULL;
	struct lab *lab;

	if (ese_config_parse(load, &cfg, &config) < 0) {
		cfg_print_errors(cfg, stderr);
		fail_msg("the engine refuses:\n%s", load);
	}
	cfg_free(cfg);
	assert_true(asprintf(&rest, "%.*s\nworkload: {type: exchange, mailboxes: 1}\n%s",
			     (int)(strstr(lab_text, "\nworkload:") - lab_text), lab_text,
			     strstr(lab_text, "\nrun:") + 1) > 0);
	if (lab_parse("imported", rest, strlen(rest), NULL, 0, stderr, &lab) < 0)
		fail_msg("the lab is refused:\n%s", rest);
	lab_free(lab);
	free(rest);
	free(load);
}
