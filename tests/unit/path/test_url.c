/* SPDX-License-Identifier: MIT
 *
 * iSCSI URLs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "initiator/path/path.h"

static void good_urls(void **unused)
{
	static const struct {
		const char *url, *portal, *target, *user, *password;
		unsigned lun;
	} cases[] = {
	    {"iscsi://127.0.0.1/iqn.a:b/0", "127.0.0.1:3260", "iqn.a:b", "", "", 0},
	    {"iscsi://127.0.0.1:3261/iqn.a:b/255", "127.0.0.1:3261", "iqn.a:b", "", "", 255},
	    {"iscsi://localhost/iqn.a/1", "127.0.0.1:3260", "iqn.a", "", "", 1},
	    {"iscsi://[::1]/iqn.a/1", "[::1]:3260", "iqn.a", "", "", 1},
	    {"iscsi://[fe80::1]:860/eui.02/16383", "[fe80::1]:860", "eui.02", "", "", 16383},
	    {"iscsi://joe%secret@10.1.2.3/iqn.a%3Ab/7", "10.1.2.3:3260", "iqn.a:b", "joe", "secret",
	     7},
	    {"iscsi://joe%p@ss%w@10.1.2.3:1/naa.5/7", "10.1.2.3:1", "naa.5", "joe", "p@ss%w", 7},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct path_url url;
		struct err err = {0};

		assert_int_equal(path_url_parse(cases[i].url, &url, &err), 0);
		assert_int_equal(err.code, 0);
		assert_string_equal(url.portal, cases[i].portal);
		assert_string_equal(url.target, cases[i].target);
		assert_string_equal(url.user, cases[i].user);
		assert_string_equal(url.password, cases[i].password);
		assert_int_equal(url.lun, cases[i].lun);
	}
}

static void bad_urls(void **unused)
{
	static const char *const urls[] = {
	    "",
	    "iscsi:",
	    "iscsi://",
	    "http://127.0.0.1/iqn.a/0",
	    "iscsi://127.0.0.1",
	    "iscsi://127.0.0.1/",
	    "iscsi://127.0.0.1/iqn.a",
	    "iscsi://127.0.0.1/iqn.a/",
	    "iscsi://127.0.0.1/iqn.a/x",
	    "iscsi://127.0.0.1/iqn.a/-1",
	    "iscsi://127.0.0.1/iqn.a/16384",
	    "iscsi://127.0.0.1/iqn.a/99999999999999999999",
	    "iscsi:///iqn.a/0",
	    "iscsi://127.0.0.1:/iqn.a/0",
	    "iscsi://127.0.0.1:0/iqn.a/0",
	    "iscsi://127.0.0.1:65536/iqn.a/0",
	    "iscsi://127.0.0.1:1x/iqn.a/0",
	    "iscsi://array.example.com/iqn.a/0",
	    "iscsi://::1/iqn.a/0",
	    "iscsi://[::1/iqn.a/0",
	    "iscsi://[::1]x/iqn.a/0",
	    "iscsi://[127.0.0.1]/iqn.a/0",
	    "iscsi://joe@127.0.0.1/iqn.a/0",
	    "iscsi://%x@127.0.0.1/iqn.a/0",
	    "iscsi://joe%@127.0.0.1/iqn.a/0",
	    "iscsi://127.0.0.1/disk/0",
	    "iscsi://127.0.0.1/iqn.a%3/0",
	    "iscsi://127.0.0.1/iqn.a%zz/0",
	    "iscsi://127.0.0.1/iqn.a%00b/0",
	};

	for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
		struct path_url url = {.lun = 77};
		struct err err = {0};

		assert_int_equal(path_url_parse(urls[i], &url, &err), -EINVAL);
		assert_int_equal(err.code, -EINVAL);
		assert_non_null(strstr(err.hint, "iscsi://"));
		assert_int_equal(url.lun, 77); /* untouched */
		assert_int_equal(path_url_parse(urls[i], &url, NULL), -EINVAL);
	}
}

static void long_parts_are_refused(void **unused)
{
	struct path_url url;
	char text[2000];
	char fill[1500];

	memset(fill, 'a', sizeof fill - 1);
	fill[sizeof fill - 1] = 0;
	snprintf(text, sizeof text, "iscsi://127.0.0.1/iqn.%s/0", fill);
	assert_int_equal(path_url_parse(text, &url, NULL), -EINVAL);
	snprintf(text, sizeof text, "iscsi://%s/iqn.a/0", fill);
	assert_int_equal(path_url_parse(text, &url, NULL), -EINVAL);
	fill[300] = 0;
	snprintf(text, sizeof text, "iscsi://joe%%%s@127.0.0.1/iqn.a/0", fill);
	assert_int_equal(path_url_parse(text, &url, NULL), -EINVAL);
	/* 223 is the longest name there is (RFC 7143 4.2.7.1). */
	fill[219] = 0;
	snprintf(text, sizeof text, "iscsi://127.0.0.1/iqn.%s/0", fill);
	assert_int_equal(path_url_parse(text, &url, NULL), 0);
	assert_int_equal(strlen(url.target), 223);
	fill[219] = 'a';
	fill[220] = 0;
	snprintf(text, sizeof text, "iscsi://127.0.0.1/iqn.%s/0", fill);
	assert_int_equal(path_url_parse(text, &url, NULL), -EINVAL);
}

static void passwords_stay_out_of_messages(void **unused)
{
	struct path_url url;
	struct err err = {0};

	path_url_parse("iscsi://joe%hunter2@host/iqn.a/0", &url, &err);
	assert_null(strstr(err.what, "hunter2"));
	err = (struct err){0};
	path_url_parse("iscsi://joe%hunter2@127.0.0.1/iqn.a/x", &url, &err);
	assert_null(strstr(err.what, "hunter2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_urls),
	    cmocka_unit_test(bad_urls),
	    cmocka_unit_test(long_parts_are_refused),
	    cmocka_unit_test(passwords_stay_out_of_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
