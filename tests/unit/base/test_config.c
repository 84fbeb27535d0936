/* SPDX-License-Identifier: MIT
 *
 * base/config: decoding by schema, every kind of error with its exact text and place, --set,
 * and the way back to YAML.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/config.h"

/* ---- a schema with one field of each type ---- */

struct part {
	const char *name;
	uint64_t size_bytes;
	int colour;
};

struct limits {
	uint64_t depth, wait_ns;
};

struct root {
	const char *name;
	bool on;
	uint64_t count;
	uint64_t size_bytes;
	uint64_t wait_ns;
	double share;
	double rate;
	int colour;
	struct cfg_portal portal;
	struct limits limits;
	struct cfg_list parts;
	struct cfg_list words;
	struct cfg_list portals;
	struct cfg_raw any;
};

static const char *const colour_names[] = {"red", "green", "blue", NULL};

static const struct cfg_field part_fields[] = {
    {"name", CFG_STRING, offsetof(struct part, name), .required = true, .help = "its name"},
    {"size", CFG_SIZE, offsetof(struct part, size_bytes), .preset = "1MiB"},
    {"colour", CFG_ENUM, offsetof(struct part, colour), .preset = "green", .names = colour_names},
};
static const struct cfg_schema part_schema = {"part", sizeof(struct part), part_fields,
					      ARRAY_SIZE(part_fields)};

static const struct cfg_field limits_fields[] = {
    {"depth", CFG_UINT, offsetof(struct limits, depth), .preset = "32", .min = 1, .max = 128},
    {"wait", CFG_DURATION, offsetof(struct limits, wait_ns), .preset = "250ms"},
};
static const struct cfg_schema limits_schema = {"limits", sizeof(struct limits), limits_fields,
						ARRAY_SIZE(limits_fields)};

static const struct cfg_field root_fields[] = {
    {"name", CFG_STRING, offsetof(struct root, name), .required = true},
    {"on", CFG_BOOL, offsetof(struct root, on), .preset = "yes"},
    {"count", CFG_UINT, offsetof(struct root, count), .preset = "3", .min = 1, .max = 48},
    {"size", CFG_SIZE, offsetof(struct root, size_bytes), .min = 4096},
    {"wait", CFG_DURATION, offsetof(struct root, wait_ns), .preset = "1500ms", .max = 60e9},
    {"share", CFG_PERCENT, offsetof(struct root, share), .preset = "5%", .max = 100},
    {"rate", CFG_REAL, offsetof(struct root, rate), .preset = "0.20", .min = 0.001, .max = 1000},
    {"colour", CFG_ENUM, offsetof(struct root, colour), .names = colour_names},
    {"portal", CFG_PORTAL, offsetof(struct root, portal)},
    {"limits", CFG_STRUCT, offsetof(struct root, limits), .sub = &limits_schema},
    {"parts", CFG_LIST, offsetof(struct root, parts), .sub = &part_schema},
    {"words", CFG_STRINGS, offsetof(struct root, words)},
    {"portals", CFG_PORTALS, offsetof(struct root, portals)},
    {"any", CFG_UNION, offsetof(struct root, any), .preset = "memory"},
};
static const struct cfg_schema root_schema = {"root", sizeof(struct root), root_fields,
					      ARRAY_SIZE(root_fields)};

static struct cfg *parse(const char *text)
{
	struct cfg *cfg = NULL;
	assert_int_equal(cfg_parse("lab.yaml", text, strlen(text), &cfg), 0);
	return cfg;
}

static char *errors_of(const struct cfg *cfg)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	cfg_print_errors(cfg, to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void expect_errors(const struct cfg *cfg, const char *expected)
{
	char *errors = errors_of(cfg);
	assert_string_equal(errors, expected);
	free(errors);
}

/* Decodes TEXT after the SETs (NULL-terminated) and compares all messages. */
static void check_errors(const char *text, const char *const *sets, const char *expected)
{
	struct root root;
	struct cfg *cfg = parse(text);
	for (; sets && *sets; sets++)
		cfg_set(cfg, *sets);
	cfg_decode(cfg, &root_schema, &root);
	expect_errors(cfg, expected);
	if (*expected)
		assert_true(cfg_error_count(cfg) > 0);
	cfg_free(cfg);
}

/* ---- values ---- */

static void test_defaults(void **state)
{
	struct root root;
	struct cfg *cfg = parse("name: x\n");
	cfg_decode(cfg, &root_schema, &root);
	assert_int_equal(cfg_error_count(cfg), 0);
	assert_string_equal(root.name, "x");
	assert_true(root.on);
	assert_int_equal(root.count, 3);
	assert_int_equal(root.size_bytes, 0);
	assert_int_equal(root.wait_ns, 1500 * NS_PER_MS);
	assert_true(root.share == 0.05);
	assert_true(root.rate == 0.20);
	assert_false(root.portal.set);
	assert_int_equal(root.limits.depth, 32);
	assert_int_equal(root.limits.wait_ns, 250 * NS_PER_MS);
	assert_int_equal(root.parts.count, 0);
	assert_string_equal(cfg_raw_scalar(&root.any), "memory");
	assert_true(cfg_given(cfg, &root.name));
	assert_false(cfg_given(cfg, &root.count));
	assert_false(cfg_given(cfg, &root.limits.depth));
	assert_false(cfg_given(cfg, &root.any));
	assert_false(cfg_given(cfg, &cfg));
	cfg_free(cfg);
}

static const char full[] = "name: \"all of it\"\n"
			   "on: off\n"
			   "count: 48\n"
			   "size: 1.5 GiB\n"
			   "wait: 10ms\n"
			   "share: 12.5%\n"
			   "rate: 200/s\n"
			   "colour: blue\n"
			   "portal: \"[0::1]:3260\"\n"
			   "limits: {depth: 128, wait: 2m}\n"
			   "parts:\n"
			   "  - {name: a, size: 64k, colour: red}\n"
			   "  - name: b\n"
			   "words: [one, 'two words', 3]\n"
			   "portals: [127.0.0.1:3261, 127.0.0.1:3262]\n"
			   "any: {file: /dir, more: [1, 2]}\n";

static void test_every_type(void **state)
{
	struct root root;
	struct cfg *cfg = parse(full);
	cfg_decode(cfg, &root_schema, &root);
	expect_errors(cfg, "");
	assert_string_equal(root.name, "all of it");
	assert_false(root.on);
	assert_int_equal(root.count, 48);
	assert_int_equal(root.size_bytes, GIB * 3 / 2);
	assert_int_equal(root.wait_ns, 10 * NS_PER_MS);
	assert_true(root.share == 0.125);
	assert_true(root.rate == 200);
	assert_int_equal(root.colour, 2);
	assert_string_equal(root.portal.text, "[::1]:3260");
	assert_string_equal(root.portal.host, "::1");
	assert_int_equal(root.limits.wait_ns, 120 * NS_PER_S);

	const struct part *parts = root.parts.items;
	assert_int_equal(root.parts.count, 2);
	assert_int_equal(parts[0].size_bytes, 65536);
	assert_int_equal(parts[0].colour, 0);
	assert_string_equal(parts[1].name, "b");
	assert_int_equal(parts[1].size_bytes, MIB);
	assert_int_equal(parts[1].colour, 1);

	const char *const *words = root.words.items;
	assert_int_equal(root.words.count, 3);
	assert_string_equal(words[1], "two words");
	assert_string_equal(words[2], "3");
	const struct cfg_portal *portals = root.portals.items;
	assert_int_equal(root.portals.count, 2);
	assert_int_equal(portals[1].port, 3262);

	const char *key;
	struct cfg_raw value, element;
	assert_null(cfg_raw_scalar(&root.any));
	assert_true(cfg_raw_entry(&root.any, 0, &key, &value));
	assert_string_equal(key, "file");
	assert_string_equal(cfg_raw_scalar(&value), "/dir");
	assert_true(cfg_raw_entry(&root.any, 1, &key, &value));
	assert_true(cfg_raw_entry(&value, 1, &key, &element));
	assert_null(key);
	assert_string_equal(cfg_raw_scalar(&element), "2");
	assert_false(cfg_raw_entry(&root.any, 2, &key, &value));
	cfg_free(cfg);
}

/* ---- errors ---- */

struct error_case {
	const char *text, *expected;
};

static const struct error_case error_cases[] = {
    {"nmae: x\n",
     "lab.yaml:1:1: missing key 'name' in root\n"
     "lab.yaml:1:1: unknown key 'nmae' in root; did you mean 'name'? allowed: name, on, "
     "count, size, wait, share, rate, colour, portal, limits, parts, words, portals, "
     "any\n"},
    {"name: x\nlimits:\n  dept: 3\n  zzzzzz: 1\n",
     "lab.yaml:3:3: unknown key 'dept' in limits; did you mean 'depth'? allowed: depth, wait\n"
     "lab.yaml:4:3: unknown key 'zzzzzz' in limits; allowed: depth, wait\n"},
    {"name: x\nparts:\n  - size: 1k\n  - {name: b}\n",
     "lab.yaml:3:5: missing key 'name' in part; name: its name\n"},
    {"name: x\nsize: 1GIGA\n", "lab.yaml:2:7: 'size': '1GIGA' is not a size; units understood: B, "
			       "KiB, MiB, GiB, TiB (1024; also k, M, G, T) and kB, MB, GB, TB "
			       "(1000)\n"},
    {"name: x\nwait: 10\n", "lab.yaml:2:7: 'wait': '10' lacks a unit of time; units understood: "
			    "ns, us, ms, s, m, h, d\n"},
    {"name: x\nwait: 2 weeks\n", "lab.yaml:2:7: 'wait': '2 weeks' is not a duration; units "
				 "understood: ns, us, ms, s, m, h, d\n"},
    {"name: x\ncount: 0\n", "lab.yaml:2:8: 'count' is 0; it must be from 1 to 48\n"},
    {"name: x\ncount: many\n", "lab.yaml:2:8: 'count': 'many' is not a whole number\n"},
    {"name: x\nsize: 512\n", "lab.yaml:2:7: 'size' is 512; it must be at least 4KiB\n"},
    {"name: x\nwait: 2m\n", "lab.yaml:2:7: 'wait' is 2m; it must be at most 1m\n"},
    {"name: x\nshare: 101%\n", "lab.yaml:2:8: 'share' is 101%; it must be at most 100%\n"},
    {"name: x\nshare: 0.05\n", "lab.yaml:2:8: 'share': '0.05' is not a percentage; write it as "
			       "5%\n"},
    {"name: x\nrate: -1\n", "lab.yaml:2:7: 'rate' is -1; it must be from 0.001 to 1000\n"},
    {"name: x\ncolour: grene\n", "lab.yaml:2:9: 'colour' has the unknown value 'grene'; did you "
				 "mean 'green'? allowed: red, green, blue\n"},
    {"name: x\ncolour: octarine\n", "lab.yaml:2:9: 'colour' has the unknown value 'octarine'; "
				    "allowed: red, green, blue\n"},
    {"name: x\non: maybe\n", "lab.yaml:2:5: 'on' is 'maybe'; it must be true or false\n"},
    {"name: x\nportal: localhost:3260\n",
     "lab.yaml:2:9: 'portal': 'localhost:3260' is not a portal; write a numeric address and a port "
     "from 1 to 65535, as 127.0.0.1:3260 or [::1]:3260\n"},
    {"name: x\nportals: [127.0.0.1:1, 127.0.0.1]\n",
     "lab.yaml:2:24: 'portals': '127.0.0.1' is not a portal; write a numeric address and a port "
     "from 1 to 65535, as 127.0.0.1:3260 or [::1]:3260\n"},
    {"name: [x]\n", "lab.yaml:1:1: 'name' must be a single value, not a list\n"},
    {"name:\n", "lab.yaml:1:1: 'name' has no value\n"},
    {"name: x\nparts: 5\n", "lab.yaml:2:8: 'parts' must be a list, not a single value\n"},
    {"name: x\nparts: [5]\n", "lab.yaml:2:9: part must be a mapping (`key: value`), not a single "
			      "value\n"},
    {"name: x\nlimits: [5]\n", "lab.yaml:2:1: limits must be a mapping (`key: value`), not a "
			       "list\n"},
    {"name: x\nwords: {a: 1}\n", "lab.yaml:2:1: 'words' must be a list, not a mapping\n"},
    {"name: x\nwords: [a, [b]]\n", "lab.yaml:2:12: 'words' must be a single value, not a list\n"},
    {"name: x\ncount: 1\nname: y\n", "lab.yaml:3:1: duplicate key 'name'; first given at line "
				     "1\n"},
    {"name: x\nlimits: {depth: 1, depth: {a: [1]}}\n",
     "lab.yaml:2:20: duplicate key 'depth'; first given at line 2\n"},
    {"name: &a x\nwords: [*a]\n",
     "lab.yaml:1:7: anchors (&a) are not supported; write the value out\n"
     "lab.yaml:2:9: aliases (*a) are not supported; write the value out\n"},
    {"name: x\ncount: !!int 4\n", "lab.yaml:2:8: tags (tag:yaml.org,2002:int) are not supported; "
				  "leave the tag out\n"},
    {"name: x\n---\nname: y\n", "lab.yaml:2:1: a second document begins here; a file holds one\n"},
    {"name: x\n  on: no\n", "lab.yaml:2:5: not valid YAML: mapping values are not allowed in this "
			    "context\n"},
    {"name: x\nwords: [a, b\n", "lab.yaml:3:1: not valid YAML: did not find expected ',' or ']' "
				"(while parsing a flow sequence)\n"},
    {"name: \"a\\0b\"\n", "lab.yaml:1:7: a value contains a NUL character\n"},
    {"name: \xff\n", "lab.yaml: not readable as text: invalid leading UTF-8 octet at byte 6\n"},
    {"? [a, b]\n: 1\n", "lab.yaml:1:3: a key must be a single word\n"},
    {"just text\n", "lab.yaml:1:1: the file must be a mapping (`key: value` lines)\n"},
    {"", "lab.yaml:1:1: missing key 'name' in root\n"},
};

static void test_errors(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(error_cases); i++)
		check_errors(error_cases[i].text, NULL, error_cases[i].expected);
}

/* All at once, in the order of the file, wherever they were found. */
static void test_errors_together(void **state)
{
	check_errors(
	    "parts:\n"
	    "  - {name: a, size: 1q}\n"
	    "  - {nam: b}\n"
	    "colour: gren\n"
	    "count: 77\n"
	    "nothing: 1\n",
	    NULL,
	    "lab.yaml:1:1: missing key 'name' in root\n"
	    "lab.yaml:2:21: 'size': '1q' is not a size; units understood: B, KiB, MiB, GiB, "
	    "TiB (1024; also k, M, G, T) and kB, MB, GB, TB (1000)\n"
	    "lab.yaml:3:5: missing key 'name' in part; name: its name\n"
	    "lab.yaml:3:6: unknown key 'nam' in part; did you mean 'name'? allowed: name, "
	    "size, colour\n"
	    "lab.yaml:4:9: 'colour' has the unknown value 'gren'; did you mean 'green'? "
	    "allowed: red, green, blue\n"
	    "lab.yaml:5:8: 'count' is 77; it must be from 1 to 48\n"
	    "lab.yaml:6:1: unknown key 'nothing' in root; allowed: name, on, count, size, "
	    "wait, share, rate, colour, portal, limits, parts, words, portals, any\n");
}

static void test_error_at(void **state)
{
	struct root root;
	struct cfg *cfg = parse("name: x\n"
				"limits:\n"
				"  depth: 3\n"
				"parts:\n"
				"  - {name: a, size: 1k}\n"
				"  - colour: red\n"
				"    name: b\n"
				"words: [one,\n"
				"        two]\n"
				"any:\n"
				"  file: here\n");
	cfg_decode(cfg, &root_schema, &root);
	expect_errors(cfg, "");
	const struct part *parts = root.parts.items;
	const char *const *words = root.words.items;
	const char *key;
	struct cfg_raw value;
	assert_true(cfg_raw_entry(&root.any, 0, &key, &value));

	cfg_error_raw(cfg, &value, "value of a raw part");
	cfg_error_raw(cfg, &root.any, "raw part");
	cfg_error_at(cfg, &words[1], "an element");
	cfg_error_at(cfg, &root.words, "a list");
	cfg_error_at(cfg, &parts[1].size_bytes, "absent: its %s", "mapping");
	cfg_hint(cfg, "give it %d", 1);
	cfg_error_at(cfg, &parts[1].name, "first field");
	cfg_error_at(cfg, &parts[0].size_bytes, "a value");
	cfg_error_at(cfg, (const char *)&root.limits.wait_ns + 3, "inside an absent field");
	cfg_error_at(cfg, &root.limits.depth, "nested");
	cfg_error_at(cfg, &root.count, "absent at the top");
	cfg_error_at(cfg, &cfg, "not decoded");
	assert_int_equal(cfg_error_count(cfg), 11);
	expect_errors(cfg, "lab.yaml: not decoded\n"
			   "lab.yaml:1:1: absent at the top\n"
			   "lab.yaml:2:1: inside an absent field\n"
			   "lab.yaml:3:10: nested\n"
			   "lab.yaml:5:21: a value\n"
			   "lab.yaml:6:5: absent: its mapping; give it 1\n"
			   "lab.yaml:7:11: first field\n"
			   "lab.yaml:8:1: a list\n"
			   "lab.yaml:9:9: an element\n"
			   "lab.yaml:10:1: raw part\n"
			   "lab.yaml:11:9: value of a raw part\n");
	cfg_free(cfg);
}

static void test_valid(void **state)
{
	struct root root;
	struct cfg *cfg = parse("count: 99\nsize: 4k\nparts: [{name: a}, {}, 7]\n");
	cfg_decode(cfg, &root_schema, &root);
	const struct part *parts = root.parts.items;
	assert_false(cfg_valid(cfg, &root.name));
	assert_false(cfg_valid(cfg, &root.count));
	assert_true(cfg_valid(cfg, &root.size_bytes));
	assert_true(cfg_valid(cfg, &root.wait_ns));
	assert_true(cfg_valid(cfg, &parts[0].name));
	assert_false(cfg_valid(cfg, &parts[1].name));
	assert_false(cfg_valid(cfg, &parts[2].name));
	assert_false(cfg_valid(cfg, &parts[2].size_bytes)); /* not a mapping: nothing in it */
	cfg_free(cfg);
}

static void test_check_name(void **state)
{
	static const struct {
		const char *text;
		bool good;
	} names[] = {
	    {"name: db1\n", true},
	    {"name: a-b-3\n", true},
	    {"name: DB1\n", false},
	    {"name: a b\n", false},
	    {"name: a.b\n", false},
	    {"name: ''\n", false},
	    {"count: 1\n", true},
	    {"name: b\303\274\n", false},
	    {"name: a2345678901234567890123456789012\n", true},
	    {"name: a23456789012345678901234567890123\n", false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct root root;
		struct cfg *cfg = parse(names[i].text);
		cfg_decode(cfg, &root_schema, &root);
		size_t before = cfg_error_count(cfg);
		cfg_check_name(cfg, &root.name);
		assert_int_equal(cfg_error_count(cfg) == before, names[i].good);
		cfg_free(cfg);
	}
}

/* HEAD, then TIMES times UNIT, then TAIL; to be freed. */
static char *repeat(const char *head, const char *unit, unsigned times, const char *tail)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	(void)fputs(head, to);
	for (unsigned i = 0; i < times; i++)
		(void)fputs(unit, to);
	(void)fputs(tail, to);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void test_more_errors_than_kept(void **state)
{
	struct root root;
	char *text = repeat("name: x\nwords: [", "[], ", 150, "last]\n");
	struct cfg *cfg = parse(text);
	cfg_decode(cfg, &root_schema, &root);
	cfg_hint(cfg, "of an error that is not kept");
	assert_int_equal(cfg_error_count(cfg), 150);
	char *errors = errors_of(cfg);
	assert_non_null(strstr(errors, "\nlab.yaml: 50 more errors are not shown\n"));
	free(errors);
	free(text);
	cfg_free(cfg);
}

/* ---- bounds ---- */

static void test_nesting(void **state)
{
	char *open = repeat("name: x\nany: ", "[", 31, ""), *text = repeat(open, "]", 31, "");
	check_errors(text, NULL, "");
	free(text);
	text = repeat(open, "[]", 1, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
	check_errors(text, NULL, "lab.yaml:2:37: nested too deeply (at most 32 levels)\n");
	free(text);
	free(open);
	/* Far beyond: the parser is not asked to go on. */
	text = repeat("name: x\nany: ", "[", 100000, "");
	check_errors(text, NULL, "lab.yaml:2:37: nested too deeply (at most 32 levels)\n");
	free(text);
}

static void test_long_lists(void **state)
{
	char *text = repeat("name: x\nwords: [", "a,", 40000, "]\n");
	check_errors(text, NULL, "lab.yaml:2:8201: too many entries in one list (at most 4096)\n");
	free(text);
}

static void test_many_values(void **state)
{
	/* Lists of lists, each below its own limit. */
	size_t size = 0;
	char *text = NULL;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	(void)fprintf(to, "name: x\nany:\n");
	for (int i = 0; i < 40; i++) {
		(void)fprintf(to, "- [");
		for (int j = 0; j < 1000; j++)
			(void)fprintf(to, "a,");
		(void)fprintf(to, "]\n");
	}
	assert_int_equal(fclose(to), 0);
	struct cfg *cfg = parse(text);
	char *errors = errors_of(cfg);
	assert_non_null(strstr(errors, ": the file has too many values\n"));
	free(errors);
	cfg_free(cfg);
	free(text);
}

static void test_large(void **state)
{
	struct err err = {0};
	struct cfg *cfg = NULL;
	size_t size = (1 << 20) + 1;
	char *text = malloc(size);
	char path[] = "/tmp/sanlab-test-config-XXXXXX";
	assert_non_null(text);
	memset(text, '#', size);
	assert_int_equal(cfg_parse("lab.yaml", text, size, &cfg), 0);
	expect_errors(cfg, "lab.yaml: the file is larger than 1 MiB\n");
	cfg = cfg_free(cfg);

	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	assert_int_equal(cfg_open(path, &cfg, &err), -EFBIG);
	assert_non_null(strstr(err.what, "is larger than 1 MiB"));
	assert_null(cfg);
	assert_int_equal(ftruncate(fd, (off_t)size - 1), 0);
	assert_int_equal(cfg_open(path, &cfg, NULL), 0);
	assert_int_equal(cfg_error_count(cfg), 0);
	cfg_free(cfg);
	close(fd);
	unlink(path);
	free(text);
}

static void test_long_scalar(void **state)
{
	char text[5000] = "name: ";
	memset(text + 6, 'a', 4096);
	check_errors(text, NULL, "");
	text[6 + 4096] = 'a';
	check_errors(text, NULL, "lab.yaml:1:7: a value is longer than 4096 bytes\n");
}

static void test_unreadable(void **state)
{
	struct cfg *cfg = NULL;
	struct err err = {0};
	assert_int_equal(cfg_open("/nonexistent/lab.yaml", &cfg, &err), -ENOENT);
	assert_string_equal(err.what,
			    "cannot read /nonexistent/lab.yaml: No such file or directory");
	assert_int_equal(cfg_open("/tmp", &cfg, NULL), -EISDIR);
	assert_null(cfg);
	assert_null(cfg_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),	cmocka_unit_test(test_every_type),
	    cmocka_unit_test(test_errors),	cmocka_unit_test(test_errors_together),
	    cmocka_unit_test(test_error_at),	cmocka_unit_test(test_valid),
	    cmocka_unit_test(test_check_name),	cmocka_unit_test(test_more_errors_than_kept),
	    cmocka_unit_test(test_nesting),	cmocka_unit_test(test_long_lists),
	    cmocka_unit_test(test_many_values), cmocka_unit_test(test_large),
	    cmocka_unit_test(test_long_scalar), cmocka_unit_test(test_unreadable),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
