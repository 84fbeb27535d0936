/* SPDX-License-Identifier: MIT
 *
 * Access rules and CHAP as the group's part of the lab file says them: defaults, what is decoded,
 * and every error at its place with its remedy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "target/array/access_config.h"
#include "target/array/array.h"

#define GROUP                                                                                      \
	"style: lun\n"                                                                             \
	"portal: 127.0.0.1:3260\n"                                                                 \
	"pools: [{name: p, members: [{name: m, drives: {count: 2, size: 64MiB}, raid: raid0}]}]\n" \
	"volumes: [{name: db1, size: 16MiB, pool: p}, {name: logs, size: 16MiB, pool: p}]\n"

struct parsed {
	struct cfg *cfg;
	struct group_config group;
	char *errors;
};

static void parse(struct parsed *parsed, const char *more)
{
	char text[2048];
	size_t size;
	FILE *to;

	snprintf(text, sizeof text, "%s%s", GROUP, more);
	assert_int_equal(cfg_parse("lab.yaml", text, strlen(text), &parsed->cfg), 0);
	cfg_decode(parsed->cfg, &group_schema, &parsed->group);
	group_config_check(parsed->cfg, &parsed->group);
	to = open_memstream(&parsed->errors, &size);
	assert_non_null(to);
	cfg_print_errors(parsed->cfg, to);
	fclose(to);
}

static void parsed_free(struct parsed *parsed)
{
	free(parsed->errors);
	cfg_free(parsed->cfg);
}

static void assert_list(const struct cfg_list *list, const char *const *expected)
{
	const char *const *items = list->items;
	size_t count = 0;

	for (; expected[count]; count++) {
		assert_true(count < list->count);
		assert_string_equal(items[count], expected[count]);
	}
	assert_int_equal(list->count, count);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__})

/* Nothing is asked for: everybody reaches everything. */
static void test_absent(void **state)
{
	struct parsed parsed;

	parse(&parsed, "");
	assert_string_equal(parsed.errors, "");
	assert_int_equal(parsed.group.access.count, 0);
	assert_null(parsed.group.chap.secrets);
	assert_null(parsed.group.chap.mutual_user);
	assert_false(parsed.group.chap.discovery);
	parsed_free(&parsed);
}

static void test_rules(void **state)
{
	struct parsed parsed;
	const struct access_config *rules;

	parse(&parsed, "access:\n"
		       "- {volumes: [db1], initiators: ['iqn.2026-01.test:*'], users: [exchange]}\n"
		       "- addresses: [192.0.2.7, 10.1.0.0/16, 'fd00::/8', '::1']\n"
		       "- {}\n"
		       "chap: {secrets: /etc/secrets, discovery: true, mutual-user: array}\n");
	assert_string_equal(parsed.errors, "");
	assert_int_equal(parsed.group.access.count, 3);
	rules = parsed.group.access.items;
	assert_list(&rules[0].volumes, LIST("db1", NULL));
	assert_list(&rules[0].initiators, LIST("iqn.2026-01.test:*", NULL));
	assert_list(&rules[0].users, LIST("exchange", NULL));
	assert_list(&rules[0].addresses, LIST(NULL));
	assert_list(&rules[1].addresses, LIST("192.0.2.7", "10.1.0.0/16", "fd00::/8", "::1", NULL));
	assert_list(&rules[2].volumes, LIST(NULL));
	assert_true(access_config_covers(&rules[0], "db1"));
	assert_false(access_config_covers(&rules[0], "logs"));
	assert_false(access_config_covers(&rules[0], "db"));
	assert_true(access_config_covers(&rules[1], "logs")); /* names none: means all */
	assert_string_equal(parsed.group.chap.secrets, "/etc/secrets");
	assert_true(parsed.group.chap.discovery);
	assert_string_equal(parsed.group.chap.mutual_user, "array");
	parsed_free(&parsed);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
	    {"access: [{volumes: [db1, lgos]}]\n",
	     "lab.yaml:5:26: access to the unknown volume 'lgos'; did you mean 'logs'?\n"},
	    {"access: [{volumes: [elsewhere]}]\n",
	     "lab.yaml:5:21: access to the unknown volume 'elsewhere'\n"},
	    {"access: [{addresses: [10.0.0.0/33]}]\n",
	     "lab.yaml:5:23: '10.0.0.0/33' is no address and no range of addresses; write "
	     "192.0.2.7, 10.1.0.0/16 or fd00::/8\n"},
	    {"access: [{addresses: [host.example]}]\n",
	     "lab.yaml:5:23: 'host.example' is no address and no range of addresses; write "
	     "192.0.2.7, 10.1.0.0/16 or fd00::/8\n"},
	    {"access: [{users: [exchange]}]\n",
	     "lab.yaml:5:11: 'users' are known by CHAP alone; add chap: {secrets: FILE} to the "
	     "group\n"},
	    {"chap: {discovery: true}\n",
	     "lab.yaml:5:19: 'chap' needs a file of secrets; chap: {secrets: FILE, ...}\n"},
	    {"chap: {mutual-user: array}\n",
	     "lab.yaml:5:21: 'chap' needs a file of secrets; chap: {secrets: FILE, ...}\n"},
	    /* all in one go */
	    {"access: [{volumes: [x1]}, {addresses: [a]}, {users: [u]}]\n",
	     "lab.yaml:5:21: access to the unknown volume 'x1'\n"
	     "lab.yaml:5:40: 'a' is no address and no range of addresses; write 192.0.2.7, "
	     "10.1.0.0/16 or fd00::/8\n"
	     "lab.yaml:5:46: 'users' are known by CHAP alone; add chap: {secrets: FILE} to the "
	     "group\n"},
	    {"chap: {secrets: s, discovery: perhaps}\n",
	     "lab.yaml:5:31: 'discovery' is 'perhaps'; it must be true or false\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct parsed parsed;

		parse(&parsed, rows[i].text);
		assert_string_equal(parsed.errors, rows[i].expected);
		parsed_free(&parsed);
	}
}

/* A key that is misspelt would open what it was to close. */
static void test_unknown_keys(void **state)
{
	struct parsed parsed;

	parse(&parsed, "access: [{initiator: [iqn.2026-01.test:a]}]\n"
		       "chap: {secret: /etc/secrets}\n");
	assert_int_equal(cfg_error_count(parsed.cfg), 2);
	assert_non_null(strstr(parsed.errors, "unknown key 'initiator' in access rule"));
	assert_non_null(strstr(parsed.errors, "did you mean 'initiators'?"));
	assert_non_null(strstr(parsed.errors, "unknown key 'secret' in chap"));
	assert_non_null(strstr(parsed.errors, "did you mean 'secrets'?"));
	parsed_free(&parsed);
}

static void test_too_many_rules(void **state)
{
	struct parsed parsed;
	char text[1000];
	size_t at = (size_t)snprintf(text, sizeof text, "access: [{}");

	for (unsigned i = 1; i < 257; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, ",{}");
	snprintf(text + at, sizeof text - at, "]\n");
	parse(&parsed, text);
	assert_string_equal(parsed.errors, "lab.yaml:5:1: a group has at most 256 access rules\n");
	parsed_free(&parsed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_absent),	   cmocka_unit_test(test_rules),
	    cmocka_unit_test(test_errors),	   cmocka_unit_test(test_unknown_keys),
	    cmocka_unit_test(test_too_many_rules),
	};

	return cmocka_run_group_tests_name("access_config", tests, NULL, NULL);
}
