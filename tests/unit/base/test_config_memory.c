/* SPDX-License-Identifier: MIT
 *
 * base/config when memory runs out: the Nth allocation fails, for every N until a load passes
 * untouched; each failure is told, nothing leaks, nothing is half decoded.
 *
 * The linker wraps the allocations of the code under test (see meson.build); libyaml's own are
 * not touched.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/config.h"

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

static long fail_at; /* counts down; 0: never */
static bool fail_on; /* all after the Nth fail as well */
static bool failed;

static bool refuse(void)
{
	if (!fail_at || --fail_at)
		return false;
	if (fail_on)
		fail_at = 1;
	failed = true;
	return true;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : __real_malloc(size);
}

struct part {
	const char *name;
	struct cfg_list words;
	struct cfg_list portals;
};
struct root {
	uint64_t size_bytes;
	struct cfg_list parts;
	struct cfg_raw any;
};

static const struct cfg_field part_fields[] = {
    {"name", CFG_STRING, offsetof(struct part, name), .required = true},
    {"words", CFG_STRINGS, offsetof(struct part, words)},
    {"portals", CFG_PORTALS, offsetof(struct part, portals)},
};
static const struct cfg_schema part_schema = {"part", sizeof(struct part), part_fields,
					      ARRAY_SIZE(part_fields)};
static const struct cfg_field root_fields[] = {
    {"size", CFG_SIZE, offsetof(struct root, size_bytes), .preset = "1k"},
    {"parts", CFG_LIST, offsetof(struct root, parts), .sub = &part_schema},
    {"any", CFG_UNION, offsetof(struct root, any), .preset = "memory"},
};
static const struct cfg_schema root_schema = {"root", sizeof(struct root), root_fields,
					      ARRAY_SIZE(root_fields)};

static const char text[] = "size: 4k\n"
			   "parts:\n"
			   "  - {name: a, words: [b, c], portals: [127.0.0.1:1]}\n"
			   "  - {name: d, words: [e, [f]], wrods: 1}\n"
			   "siez: 3\n";

static void attempt(FILE *sink)
{
	struct root root;
	struct cfg *cfg = NULL;
	int rc = cfg_parse("lab.yaml", text, strlen(text), &cfg);
	if (rc) {
		assert_int_equal(rc, -ENOMEM);
		assert_true(failed);
		assert_null(cfg);
		return;
	}
	cfg_set(cfg, "parts.d.words=[x, y]");
	cfg_set(cfg, "parts.2.name=z");
	cfg_decode(cfg, &root_schema, &root);
	cfg_error_at(cfg, &root.size_bytes, "a cross-check");
	cfg_hint(cfg, "with a hint");
	long rest = fail_at;
	fail_at = 0; /* printing is the test's */
	cfg_print_errors(cfg, sink);
	fail_at = rest;
	/* Two unknown keys and the cross-check; lost memory never lowers the number. */
	assert_true(cfg_error_count(cfg) >= (failed ? 1 : 3));
	cfg_free(cfg);
}

static void run_loop(bool persistent)
{
	FILE *sink = fopen("/dev/null", "w");
	assert_non_null(sink);
	long n = 0;
	do {
		assert_true(n < 10000);
		fail_on = persistent;
		failed = false;
		fail_at = ++n;
		attempt(sink);
		fail_at = 0;
	} while (failed);
	assert_true(n > 40); /* the loop did meet the allocations */
	(void)fclose(sink);
}

static void test_once(void **state)
{
	run_loop(false);
}

static void test_for_good(void **state)
{
	run_loop(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_once),
	    cmocka_unit_test(test_for_good),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
