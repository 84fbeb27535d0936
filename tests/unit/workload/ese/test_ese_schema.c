/* SPDX-License-Identifier: MIT
 *
 * The configuration of the engine: defaults, what follows from what, and what is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_config.h"
#include "harness/workload/ese/ese_constants.h"
#include "harness/workload/exchange_profile.h"

static void parse(const char *text, struct cfg **ret_cfg, struct ese_config *ret_config)
{
	if (ese_config_parse(text, ret_cfg, ret_config) < 0) {
		cfg_print_errors(*ret_cfg, stderr);
		fail_msg("%s is refused", text);
	}
}

static void refused(const char *text, const char *expected)
{
	struct ese_config config;
	struct cfg *cfg = NULL;
	char *errors = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&errors, &size);

	assert_non_null(to);
	assert_int_equal(ese_config_parse(text, &cfg, &config), -EINVAL);
	cfg_print_errors(cfg, to);
	fclose(to);
	if (!strstr(errors, expected))
		fail_msg("%s: %s", text, errors);
	free(errors);
	cfg_free(cfg);
}

static void defaults_are_jetstress(void **state)
{
	struct ese_constants constants;
	struct ese_config config;
	struct cfg *cfg;

	parse("{engine: ese, mailboxes: 1000}", &cfg, &config);
	assert_int_equal(config.test, ESE_PERFORMANCE);
	assert_int_equal(config.session_count, 0);
	assert_int_equal(config.copies, 2);
	assert_int_equal(config.checkpoint_bytes, 100000000);
	assert_true(config.log_files * MIB >= 2 * config.checkpoint_bytes - MIB);
	assert_int_equal(config.cache_max_bytes, 256 * MIB);
	assert_true(config.mix.insert == 0.4 && config.mix.remove == 0.2 &&
		    config.mix.replace == 0.05);
	assert_true(ese_config_target_iops(&config) > 167.99 &&
		    ese_config_target_iops(&config) < 168.01);
	ese_config_constants(&config, &constants);
	assert_memory_equal(&constants, &ese_constants_default, sizeof constants);
	cfg_free(cfg);
}

static void one_follows_from_another(void **state)
{
	struct ese_constants constants;
	struct ese_config config;
	struct cfg *cfg;

	parse("{engine: ese, mailboxes: 10, copies: 1, sessions: 7, constants: {extra-dirty: 0}}",
	      &cfg, &config);
	assert_int_equal(config.checkpoint_bytes, 20000000);
	assert_int_equal(config.log_files, 64);
	assert_int_equal(config.session_count, 7);
	ese_config_constants(&config, &constants);
	assert_true(constants.extra_dirty == 0);
	assert_int_equal(constants.record_bytes, ese_constants_default.record_bytes);
	cfg_free(cfg);
}

static void nonsense_is_refused(void **state)
{
#define ESE "engine: ese, mailboxes: 10, "
	refused("{engine: ese}", "mailboxes");
	refused("{" ESE "prefill: 64MiB}", "'prefill' is a key of engine: streams");
	refused("{" ESE "sessions: many}", "'sessions' must be auto or 1 to 10000");
	refused("{" ESE "sessions: 0}", "'sessions' must be auto or 1 to 10000");
	refused("{" ESE "mix: {insert: 80%, delete: 30%}}", "more than 100%");
	refused("{" ESE "cache-min: 1GiB}", "'cache-min' is above 'cache-max'");
	refused("{" ESE "initial-size: 1GiB, database-size: 512MiB}", "above 'database-size'");
	refused("{" ESE "loop: open, sessions: 4}", "an open loop has no sessions");
	refused("{" ESE "checkpoint-depth: 100MB, log-files: 64}", "1.25 times");
	refused("{" ESE "constants: {flush-start: 4%}}", "'flush-start' is above");
	refused("{" ESE "placement: [{database: a, log: a}]}", "cannot hold a database and");
	refused("{" ESE "placement: [{database: a, copy-of: b}, {database: b, copy-of: c}]}",
		"volume b holds a copy itself");
	refused("{" ESE "replication: none, placement: [{database: a, copy-of: b}]}",
		"a copy needs its log");
	refused("{" ESE "test: soft-recovery, placement: [{database: a, copy-of: b}]}",
		"copies are for tests");
	refused("{" ESE "placement: [{database: a, log: b}, {database: a, log: c}]}",
		"database a is placed twice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(defaults_are_jetstress),
	    cmocka_unit_test(one_follows_from_another),
	    cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
