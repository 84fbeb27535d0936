/* SPDX-License-Identifier: MIT
 *
 * base/config: scalars with units, near misses, --set, and the effective configuration.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/config.h"

/* ---- scalars ---- */

struct whole_case {
	const char *text;
	uint64_t value;
};

static const struct whole_case sizes[] = {
    {"0", 0},
    {"512", 512},
    {"512B", 512},
    {"512 b", 512},
    {"64k", 64 * KIB},
    {"64K", 64 * KIB},
    {"64KiB", 64 * KIB},
    {"64kib", 64 * KIB},
    {"64kB", 64000},
    {"64 KB", 64000},
    {"2m", 2 * MIB},
    {"2MB", 2000000},
    {"1 GiB", GIB},
    {"1.5GiB", GIB + GIB / 2},
    {"0.5 KiB", 512},
    {"3GB", UINT64_C(3000000000)},
    {"16TiB", 16 * TIB},
    {"1.25TB", UINT64_C(1250000000000)},
    {"1t ", TIB},
    {"16777215TiB", UINT64_C(16777215) * TIB},
    {"18446744073709551615", UINT64_MAX},
};

static const struct whole_case durations[] = {
    {"0", 0},
    {"0.0", 0},
    {"1ns", 1},
    {"250us", 250 * NS_PER_US},
    {"250 \302\265s", 250 * NS_PER_US},
    {"10ms", 10 * NS_PER_MS},
    {"5 s", 5 * NS_PER_S},
    {"1.5s", 1500 * NS_PER_MS},
    {"2sec", 2 * NS_PER_S},
    {"2m", 120 * NS_PER_S},
    {"2min", 120 * NS_PER_S},
    {"1h", 3600 * NS_PER_S},
    {"30d", 30 * 86400 * NS_PER_S},
};

static const struct whole_case counts[] = {
    {"0", 0},
    {"42", 42},
    {"18446744073709551615", UINT64_MAX},
};

static void check_whole(enum cfg_type type, const struct whole_case *cases, size_t count)
{
	char why[300];
	for (size_t i = 0; i < count; i++) {
		uint64_t value = 7;
		assert_int_equal(cfg_parse_scalar(type, cases[i].text, &value, why, sizeof why), 0);
		assert_true(value == cases[i].value);
	}
}

static void test_whole(void **state)
{
	check_whole(CFG_SIZE, sizes, ARRAY_SIZE(sizes));
	check_whole(CFG_DURATION, durations, ARRAY_SIZE(durations));
	check_whole(CFG_UINT, counts, ARRAY_SIZE(counts));
}

struct real_case {
	enum cfg_type type;
	const char *text;
	double value;
};

static void test_real(void **state)
{
	static const struct real_case cases[] = {
	    {CFG_PERCENT, "5%", 0.05}, {CFG_PERCENT, "12.5 %", 0.125}, {CFG_PERCENT, "0", 0},
	    {CFG_PERCENT, "100%", 1},  {CFG_REAL, "0.20", 0.20},       {CFG_REAL, "200/s", 200},
	    {CFG_REAL, "1e3", 1000},   {CFG_REAL, "-1.5", -1.5},
	};
	char why[300];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double value = 7;
		assert_int_equal(
		    cfg_parse_scalar(cases[i].type, cases[i].text, &value, why, sizeof why), 0);
		assert_true(value == cases[i].value);
	}
}

struct bad_case {
	enum cfg_type type;
	const char *text, *why;
};

#define SIZE_UNITS                                                                            \
	"units understood: B, KiB, MiB, GiB, TiB (1024; also k, M, G, T) and kB, MB, GB, TB " \
	"(1000)"
#define DURATION_UNITS "units understood: ns, us, ms, s, m, h, d"
#define PORTAL_FORM                                                                               \
	"is not a portal; write a numeric address and a port from 1 to 65535, as 127.0.0.1:3260 " \
	"or [::1]:3260"

static const struct bad_case bad[] = {
    {CFG_SIZE, "", "'' is not a size; " SIZE_UNITS},
    {CFG_SIZE, "-1k", "'-1k' is not a size; " SIZE_UNITS},
    {CFG_SIZE, "1KiBB", "'1KiBB' is not a size; " SIZE_UNITS},
    {CFG_SIZE, "1.GiB", "'1.GiB' is not a size; " SIZE_UNITS},
    {CFG_SIZE, "1 very long unit", "'1 very long unit' is not a size; " SIZE_UNITS},
    {CFG_SIZE, "0.3KiB", "'0.3KiB' is not a whole number of bytes"},
    {CFG_SIZE, "16777216TiB", "'16777216TiB' is too large a size"},
    {CFG_SIZE, "18446744073709551616", "'18446744073709551616' is too large a size"},
    {CFG_DURATION, "5", "'5' lacks a unit of time; " DURATION_UNITS},
    {CFG_DURATION, "5 fortnights", "'5 fortnights' is not a duration; " DURATION_UNITS},
    {CFG_DURATION, "0.5ns", "'0.5ns' is not a whole number of nanoseconds"},
    {CFG_DURATION, "300000d", "'300000d' is too long a time"},
    {CFG_UINT, "1.5", "'1.5' is not a whole number"},
    {CFG_UINT, "0x10", "'0x10' is not a whole number"},
    {CFG_UINT, "-1", "'-1' is not a whole number"},
    {CFG_UINT, "99999999999999999999", "'99999999999999999999' is too large a number"},
    {CFG_PERCENT, "0.05", "'0.05' is not a percentage; write it as 5%"},
    {CFG_PERCENT, "5%%", "'5%%' is not a percentage; write it as 5%"},
    {CFG_REAL, "nan", "'nan' is not a number"},
    {CFG_REAL, "1e999", "'1e999' is not a number"},
    {CFG_REAL, "0x1p3", "'0x1p3' is not a number"},
    {CFG_REAL, "5/m", "'5/m' is not a number"},
    {CFG_PORTAL, "127.0.0.1", "'127.0.0.1' " PORTAL_FORM},
    {CFG_PORTAL, "127.0.0.1:", "'127.0.0.1:' " PORTAL_FORM},
    {CFG_PORTAL, ":3260", "':3260' " PORTAL_FORM},
    {CFG_PORTAL, "127.0.0.1:0", "'127.0.0.1:0' " PORTAL_FORM},
    {CFG_PORTAL, "127.0.0.1:65536", "'127.0.0.1:65536' " PORTAL_FORM},
    {CFG_PORTAL, "127.0.0.1:32a", "'127.0.0.1:32a' " PORTAL_FORM},
    {CFG_PORTAL, "127.0.0.1.5:3260", "'127.0.0.1.5:3260' " PORTAL_FORM},
    {CFG_PORTAL, "::1:3260", "'::1:3260' " PORTAL_FORM},
    {CFG_PORTAL, "[::1:3260", "'[::1:3260' " PORTAL_FORM},
    {CFG_PORTAL, "[]:3260", "'[]:3260' " PORTAL_FORM},
    {CFG_PORTAL, "[", "'[' " PORTAL_FORM},
    {CFG_PORTAL, "san.example:3260", "'san.example:3260' " PORTAL_FORM},
    {CFG_STRING, "x", "not a scalar type"},
};

static void test_bad_scalars(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char why[300] = "";
		unsigned char out[sizeof(struct cfg_portal)];
		memset(out, 0xa5, sizeof out);
		assert_int_equal(cfg_parse_scalar(bad[i].type, bad[i].text, out, why, sizeof why),
				 -EINVAL);
		assert_string_equal(why, bad[i].why);
		for (size_t j = 0; j < sizeof out; j++)
			assert_int_equal(out[j], 0xa5); /* untouched */
	}
}

static void test_portals(void **state)
{
	static const struct {
		const char *text, *shown, *host;
		unsigned port;
	} cases[] = {
	    {"127.0.0.1:3260", "127.0.0.1:3260", "127.0.0.1", 3260},
	    {"[::1]:65535", "[::1]:65535", "::1", 65535},
	    {"[0:0:0::00A]:1", "[::a]:1", "::a", 1},
	    {"10.1.2.3:08", "10.1.2.3:8", "10.1.2.3", 8},
	};
	char why[300];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cfg_portal portal = {.set = false};
		assert_int_equal(
		    cfg_parse_scalar(CFG_PORTAL, cases[i].text, &portal, why, sizeof why), 0);
		assert_string_equal(portal.text, cases[i].shown);
		assert_string_equal(portal.host, cases[i].host);
		assert_int_equal(portal.port, cases[i].port);
		assert_true(portal.set);
	}
}

static void test_nearest(void **state)
{
	static const char *const names[] = {"portal", "pools", "volumes", "style", "raid10", NULL};
	static const struct {
		const char *word, *nearest;
	} cases[] = {
	    {"protal", "portal"}, /* swapped */
	    {"portl", "portal"},  /* left out */
	    {"portall", "portal"},
	    {"PORTAL", "portal"},
	    {"volume", "volumes"},
	    {"pool", "pools"},
	    {"raid11", "raid10"},
	    {"sytle", "style"},
	    {"", NULL},
	    {"x", NULL},
	    {"hosts", NULL},
	    {"a-word-much-longer-than-any-of-the-names-there-are", NULL},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *near = cfg_nearest(cases[i].word, names);
		if (cases[i].nearest) {
			assert_non_null(near);
			assert_string_equal(near, cases[i].nearest);
		} else {
			assert_null(near);
		}
	}
}

/* ---- --set ---- */

struct item {
	const char *name;
	uint64_t size_bytes;
	struct cfg_list portals;
};
struct top {
	uint64_t seed;
	double share;
	bool on;
	struct {
		struct cfg_portal portal;
		uint64_t wait_ns;
	} group;
	struct cfg_list items;
	struct cfg_list words;
	struct cfg_raw work;
};

static const struct cfg_field item_fields[] = {
    {"name", CFG_STRING, offsetof(struct item, name), .required = true},
    {"size", CFG_SIZE, offsetof(struct item, size_bytes), .preset = "1536k"},
    {"portals", CFG_PORTALS, offsetof(struct item, portals)},
};
static const struct cfg_schema item_schema = {"item", sizeof(struct item), item_fields,
					      ARRAY_SIZE(item_fields)};
#define GROUP_AT(member) (offsetof(struct top, group.member) - offsetof(struct top, group))
static const struct cfg_field group_fields[] = {
    {"portal", CFG_PORTAL, GROUP_AT(portal), .help = "its address"},
    {"wait", CFG_DURATION, GROUP_AT(wait_ns), .preset = "90s", .max = 3600e9, .help = "how long"},
};
static const struct cfg_schema group_schema = {"group", sizeof(((struct top *)0)->group),
					       group_fields, ARRAY_SIZE(group_fields)};
static const struct cfg_field top_fields[] = {
    {"seed", CFG_UINT, offsetof(struct top, seed), .preset = "42"},
    {"share", CFG_PERCENT, offsetof(struct top, share), .preset = "0.7%"},
    {"on", CFG_BOOL, offsetof(struct top, on), .preset = "yes"},
    {"group", CFG_STRUCT, offsetof(struct top, group), .sub = &group_schema, .help = "the group"},
    {"items", CFG_LIST, offsetof(struct top, items), .sub = &item_schema},
    {"words", CFG_STRINGS, offsetof(struct top, words)},
    {"work", CFG_UNION, offsetof(struct top, work)},
};
static const struct cfg_schema top_schema = {"top", sizeof(struct top), top_fields,
					     ARRAY_SIZE(top_fields)};

static const char base_text[] = "seed: 1\n"
				"items:\n"
				"  - {name: db1, size: 1GiB}\n"
				"  - {name: db2, size: 2GiB, portals: [127.0.0.1:1]}\n";

static struct cfg *load(const char *text, const char *const *sets, struct top *top)
{
	struct cfg *cfg = NULL;
	assert_int_equal(cfg_parse("lab.yaml", text, strlen(text), &cfg), 0);
	for (; sets && *sets; sets++)
		cfg_set(cfg, *sets);
	cfg_decode(cfg, &top_schema, top);
	return cfg;
}

static void expect_errors(const struct cfg *cfg, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	cfg_print_errors(cfg, to);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void test_set(void **state)
{
	const char *const sets[] = {
	    "seed=7",
	    "items.0.size=4MiB",
	    "items.db2.size=8MiB",
	    "items.db2.portals.0=[::1]:9",
	    "items.db2.portals.1=127.0.0.1:2",
	    "items.2.name=db3",
	    "items.db3.size=3k",
	    "group.portal=127.0.0.1:4260",
	    "words=[one, \"two, three\"]",
	    "work={type: raw, depth: 4}",
	    "work.depth=5",
	    NULL,
	};
	struct top top;
	struct cfg *cfg = load(base_text, sets, &top);
	expect_errors(cfg, "");
	assert_int_equal(top.seed, 7);
	assert_true(cfg_given(cfg, &top.group.portal));
	assert_string_equal(top.group.portal.text, "127.0.0.1:4260");
	assert_int_equal(top.group.wait_ns, 90 * NS_PER_S);
	const struct item *items = top.items.items;
	assert_int_equal(top.items.count, 3);
	assert_int_equal(items[0].size_bytes, 4 * MIB);
	assert_int_equal(items[1].size_bytes, 8 * MIB);
	assert_int_equal(items[2].size_bytes, 3 * KIB);
	const struct cfg_portal *portals = items[1].portals.items;
	assert_int_equal(items[1].portals.count, 2);
	assert_string_equal(portals[0].text, "[::1]:9");
	assert_string_equal(portals[1].text, "127.0.0.1:2");
	const char *const *words = top.words.items;
	assert_int_equal(top.words.count, 2);
	assert_string_equal(words[1], "two, three");
	const char *key;
	struct cfg_raw value;
	assert_true(cfg_raw_entry(&top.work, 1, &key, &value));
	assert_string_equal(cfg_raw_scalar(&value), "5");
	cfg_free(cfg);
}

static void test_set_errors(void **state)
{
	const char *const sets[] = {
	    "seed",
	    "=1",
	    "items..size=1k",
	    "items.db9.size=1k",
	    "items.5.size=1k",
	    "seed.low=1",
	    "group.prtal=127.0.0.1:1",
	    "items.db1.size=1 byte",
	    "words=[a, {]",
	    "seed=-1",
	    "work.=1",
	    "group.wait={a: 1, a: 2}",
	    NULL,
	};
	struct top top;
	struct cfg *cfg = load("items:\n  - {name: db1, sise: 1}\n", sets, &top);
	expect_errors(
	    cfg,
	    "lab.yaml:2:17: unknown key 'sise' in item; did you mean 'size'? allowed: name, size, "
	    "portals\n"
	    "--set seed: not an assignment; write it as KEY.PATH=VALUE\n"
	    "--set =1: not an assignment; write it as KEY.PATH=VALUE\n"
	    "--set items..size=1k: the key path has an empty part\n"
	    "--set items.db9.size=1k: no element named 'db9' in this list of 1\n"
	    "--set items.5.size=1k: no element 5: the list has 1 (counted from 0)\n"
	    "--set group.prtal=127.0.0.1:1: unknown key 'prtal' in group; did you mean 'portal'? "
	    "allowed: portal, wait\n"
	    "--set items.db1.size=1 byte: 'size': '1 byte' is not a size; " SIZE_UNITS "\n"
	    "--set words=[a, {]: not valid YAML: did not find expected node content (while parsing "
	    "a flow node)\n"
	    "--set seed=-1: 'seed': '-1' is not a whole number\n"
	    "--set work.=1: the key path has an empty part\n"
	    "--set group.wait={a: 1, a: 2}: duplicate key 'a'\n"
	    "--set group.wait={a: 1, a: 2}: 'wait' must be a single value, not a mapping\n");
	cfg_free(cfg);

	cfg = load("seed: 1\n", (const char *const[]){"seed.low=1", NULL}, &top);
	expect_errors(cfg, "--set seed.low=1: 'low' is inside a single value ('1'), not a "
			   "mapping\n");
	cfg_free(cfg);

	/* A file that is not YAML: what is set in it cannot be judged. */
	cfg = load("seed: [", (const char *const[]){"seed.low=1", NULL}, &top);
	assert_int_equal(cfg_error_count(cfg), 1);
	cfg_free(cfg);
}

static void test_set_too_often(void **state)
{
	struct top top;
	const char *sets[258] = {NULL};
	for (size_t i = 0; i < 257; i++)
		sets[i] = "seed=1";
	struct cfg *cfg = load("seed: 1\n", sets, &top);
	expect_errors(cfg, "lab.yaml: more than 256 --set assignments\n");
	cfg_free(cfg);
}

/* ---- the way back ---- */

static char *emit(const struct cfg *cfg)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	assert_int_equal(cfg_emit(cfg, &top_schema, to), 0);
	assert_int_equal(fclose(to), 0);
	return text;
}

static void test_emit(void **state)
{
	const char *const sets[] = {"items.db2.size=1536KiB", "group.wait=90000ms", NULL};
	struct top top, again;
	struct part {
		uint64_t depth;
		const char *mode;
	} part;
	static const struct cfg_field part_fields[] = {
	    {"depth", CFG_UINT, offsetof(struct part, depth), .preset = "32"},
	    {"mode", CFG_STRING, offsetof(struct part, mode), .preset = "plain"},
	};
	static const struct cfg_schema part_schema = {"work", sizeof(struct part), part_fields,
						      ARRAY_SIZE(part_fields)};
	struct cfg *cfg = load("seed: 9\n"
			       "on: off\n"
			       "work: {mode: \"a: b # c\", type: raw}\n"
			       "items:\n"
			       "  - {name: \"~\", size: 2048, portals: ['[0::1]:1']}\n"
			       "  - {name: db2}\n"
			       "words: [\"\", 'true', \"two\\nlines\", plain]\n",
			       sets, &top);
	cfg_decode_raw(cfg, &top.work, &part_schema, &part);
	expect_errors(cfg, "");
	assert_int_equal(part.depth, 32);
	assert_string_equal(part.mode, "a: b # c");
	char *text = emit(cfg);
	assert_string_equal(text, "seed: 9\n"
				  "share: 0.7%\n"
				  "on: false\n"
				  "group:\n"
				  "  wait: 90s\n"
				  "items:\n"
				  "- name: \"~\"\n"
				  "  size: 2KiB\n"
				  "  portals: ['[::1]:1']\n"
				  "- name: db2\n"
				  "  size: 1536KiB\n"
				  "words: [\"\", true, \"two\\nlines\", plain]\n"
				  "work:\n"
				  "  type: raw\n"
				  "  depth: 32\n"
				  "  mode: 'a: b # c'\n");

	/* What was printed loads again, to the same values and the same text. */
	struct cfg *second = load(text, NULL, &again);
	cfg_decode_raw(second, &again.work, &part_schema, &part);
	expect_errors(second, "");
	assert_int_equal(again.seed, top.seed);
	assert_true(again.share == top.share);
	assert_int_equal(again.group.wait_ns, top.group.wait_ns);
	assert_int_equal(again.words.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(((const char *const *)again.words.items)[i],
				    ((const char *const *)top.words.items)[i]);
	char *text_again = emit(second);
	assert_string_equal(text, text_again);
	free(text);
	free(text_again);
	cfg_free(cfg);
	cfg_free(second);
}

static void test_emit_numbers(void **state)
{
	/* Every value survives the way out and back, whatever units it takes. */
	static const uint64_t values[] = {0,
					  1,
					  1023,
					  1024,
					  1025,
					  GIB - 1,
					  GIB + 1,
					  3600 * NS_PER_S,
					  61 * NS_PER_S,
					  999999999,
					  UINT64_C(3600000000000000),
					  1500};
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct top top, again;
		char set[64];
		const char *const sets[] = {"items.0.name=a", set, "group.wait=1ns", NULL};
		(void)snprintf(set, sizeof set, "items.0.size=%llu", (unsigned long long)values[i]);
		struct cfg *cfg = load("items: []\n", sets, &top);
		expect_errors(cfg, "");
		char *text = emit(cfg);
		struct cfg *second = load(text, NULL, &again);
		expect_errors(second, "");
		assert_true(((struct item *)again.items.items)->size_bytes == values[i]);
		assert_int_equal(again.group.wait_ns, 1);
		free(text);
		cfg_free(cfg);
		cfg_free(second);
	}
	for (int tenths = 0; tenths <= 1000; tenths++) {
		struct top top, again;
		char set[64];
		const char *const sets[] = {set, NULL};
		(void)snprintf(set, sizeof set, "share=%d.%d%%", tenths / 10, tenths % 10);
		struct cfg *cfg = load("", sets, &top);
		char *text = emit(cfg);
		struct cfg *second = load(text, NULL, &again);
		assert_true(top.share == again.share);
		free(text);
		cfg_free(cfg);
		cfg_free(second);
	}
}

static void test_emit_fails(void **state)
{
	struct top top;
	struct cfg *cfg = load(base_text, NULL, &top);
	FILE *to = fopen("/dev/full", "w");
	assert_non_null(to);
	assert_int_equal(cfg_emit(cfg, &top_schema, to), -EIO);
	(void)fclose(to);
	cfg_free(cfg);
}

static void test_reference(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_non_null(to);
	cfg_print_reference(&top_schema, "x.", to);
	assert_int_equal(fclose(to), 0);
	assert_non_null(strstr(text, "x.seed: whole number, default 42\n    \n"));
	assert_non_null(strstr(text, "x.group: mapping\n    the group\n"));
	assert_non_null(strstr(text, "x.group.wait: duration at most 1h, default 90s\n"
				     "    how long\n"));
	assert_non_null(strstr(text, "x.items[].name: text, required\n"));
	assert_non_null(strstr(text, "x.items[].size: size, default 1536KiB\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_whole),	cmocka_unit_test(test_real),
	    cmocka_unit_test(test_bad_scalars), cmocka_unit_test(test_portals),
	    cmocka_unit_test(test_nearest),	cmocka_unit_test(test_set),
	    cmocka_unit_test(test_set_errors),	cmocka_unit_test(test_set_too_often),
	    cmocka_unit_test(test_emit),	cmocka_unit_test(test_emit_numbers),
	    cmocka_unit_test(test_emit_fails),	cmocka_unit_test(test_reference),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
