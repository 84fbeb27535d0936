/* SPDX-License-Identifier: MIT
 *
 * Address ranges.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/cidr.h"

static void test_ranges(void **state)
{
	static const struct {
		const char *range, *address;
		bool in;
	} cases[] = {
	    {"10.1.0.0/16", "10.1.255.1", true},
	    {"10.1.0.0/16", "10.2.0.0", false},
	    {"10.1.77.9/16", "10.1.0.1", true}, /* bits beyond the prefix */
	    {"192.0.2.7", "192.0.2.7", true},
	    {"192.0.2.7", "192.0.2.6", false},
	    {"192.0.2.7/32", "::ffff:192.0.2.7", true}, /* through a v6 socket */
	    {"192.0.2.128/25", "192.0.2.127", false},
	    {"192.0.2.128/25", "192.0.2.129", true},
	    {"0.0.0.0/0", "203.0.113.1", true},
	    {"0.0.0.0/0", "::1", false},
	    {"::/0", "203.0.113.1", true},
	    {"fd00::/8", "fdff::1", true},
	    {"fd00::/8", "fe00::1", false},
	    {"::1", "::1", true},
	    {"::1", "::2", false},
	    {"2001:db8::/33", "2001:db8:8000::", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cidr cidr;
		uint8_t address[16];

		assert_int_equal(cidr_parse(cases[i].range, &cidr), 0);
		assert_int_equal(cidr_parse_address(cases[i].address, address), 0);
		assert_int_equal(cidr_has(&cidr, address), cases[i].in);
	}
}

static void test_no_ranges(void **state)
{
	static const char *const wrong[] = {
	    "",
	    "10",
	    "10.1.0.0/",
	    "10.1.0.0/33",
	    "10.1.0.0/-1",
	    "10.1.0.0/+8",
	    "::/129",
	    "host",
	    "10.1.0.0/8x",
	    "1.2.3.4.5",
	    "/8",
	    "::1/0128",
	    "10.0.0.0/ 8",
	    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/8"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct cidr cidr;

		assert_int_equal(cidr_parse(wrong[i], &cidr), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_no_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
