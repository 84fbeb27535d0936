/* SPDX-License-Identifier: MIT
 *
 * The key table: rule by rule, and the window arithmetic.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "target/iscsi/params.h"
#include "target/iscsi/window.h"

struct offer {
	const char *key, *value, *answer; /* answer NULL: none */
	bool discovery;
	int result;
};

static const struct offer offers[] = {
    {"HeaderDigest", "None", "None"},
    {"HeaderDigest", "CRC32C,None", "CRC32C"},
    {"HeaderDigest", "None,CRC32C", "None"},
    {"HeaderDigest", "SHA,CRC32C", "CRC32C"},
    {"HeaderDigest", "CRC32", "Reject"},
    {"DataDigest", "CRC32C", "CRC32C"},
    {"InitialR2T", "No", "No"},
    {"InitialR2T", "Yes", "Yes"},
    {"InitialR2T", "yes", "Reject"},
    {"ImmediateData", "Yes", "Yes"},
    {"ImmediateData", "No", "No"},
    {"MaxBurstLength", "16776192", "1048576"},
    {"MaxBurstLength", "4096", "4096"},
    {"MaxBurstLength", "0x1000", "4096"},
    {"MaxBurstLength", "511", "Reject"},
    {"MaxBurstLength", "16777216", "Reject"},
    {"MaxBurstLength", "12a", "Reject"},
    {"MaxBurstLength", "-1", "Reject"},
    {"MaxBurstLength", "", "Reject"},
    {"MaxBurstLength", "99999999999999999999999", "Reject"},
    {"FirstBurstLength", "262144", "262144"},
    {"FirstBurstLength", "524288", "262144"},
    {"MaxOutstandingR2T", "1", "1"},
    {"MaxOutstandingR2T", "65535", "8"},
    {"MaxOutstandingR2T", "0", "Reject"},
    {"MaxConnections", "8", "4"},
    {"DefaultTime2Wait", "2", "2"},
    {"DefaultTime2Retain", "20", "0"},
    {"ErrorRecoveryLevel", "2", "0"},
    {"DataPDUInOrder", "No", "Yes"},
    {"DataSequenceInOrder", "Yes", "Yes"},
    {"IFMarker", "Yes", "No"},
    {"OFMarker", "No", "No"},
    {"OFMarkInt", "1~65535", "Reject"},
    {"TaskReporting", "FastAbort,RFC3720", "RFC3720"},
    {"X-com.example.key", "1", "NotUnderstood"},
    {"maxburstlength", "4096", "NotUnderstood"},
    {"TargetAlias", "x", "Reject"},
    {"MaxRecvDataSegmentLength", "65536", NULL},
    {"MaxRecvDataSegmentLength", "100", "Reject"},
    {"InitiatorAlias", "somebody", NULL},
    {"AuthMethod", "None", NULL, false, -EPROTO},
    {"SendTargets", "All", NULL, false, -EPROTO},
    {"InitialR2T", "No", "Irrelevant", true},
    {"FirstBurstLength", "65536", "Irrelevant", true},
    {"MaxConnections", "1", "Irrelevant", true},
    {"HeaderDigest", "None", "None", true},
    {"DefaultTime2Wait", "0", "0", true},
};

static void test_rules(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
		const struct offer *offer = &offers[i];
		char data[512], wanted[512];
		struct iscsi_text out = {.data = data, .size = sizeof data};
		struct iscsi_negotiation negotiation;

		print_message("# %s=%s\n", offer->key, offer->value);
		iscsi_negotiation_init(&negotiation);
		negotiation.discovery = offer->discovery;
		assert_int_equal(iscsi_params_offer(&negotiation, STAGE_OPERATIONAL, offer->key,
						    offer->value, &out),
				 offer->result);
		iscsi_params_close(&negotiation, &out);
		if (!offer->answer) {
			assert_int_equal(out.bytes, 0);
			continue;
		}
		snprintf(wanted, sizeof wanted, "%s=%s", offer->key, offer->answer);
		assert_string_equal(data, wanted);
		assert_int_equal(out.bytes, strlen(wanted) + 1);
	}
}

static void test_dependent_keys(void **state)
{
	static const struct {
		const char *initial_r2t, *immediate, *max_burst, *first_burst;
	} cases[] = {
	    {"Yes", "No", "262144", "Irrelevant"},
	    {"Yes", "Yes", "262144", "65536"},
	    {"No", "No", "262144", "65536"},
	    {"No", "Yes", "4096", "4096"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char data[512];
		struct iscsi_text out = {.data = data, .size = sizeof data};
		struct iscsi_negotiation n;
		const char *at = data, *last = data;

		iscsi_negotiation_init(&n);
		/* FirstBurstLength first: its answer must wait for the others. */
		iscsi_params_offer(&n, STAGE_OPERATIONAL, "FirstBurstLength", "65536", &out);
		iscsi_params_offer(&n, STAGE_OPERATIONAL, "InitialR2T", cases[i].initial_r2t, &out);
		iscsi_params_offer(&n, STAGE_OPERATIONAL, "ImmediateData", cases[i].immediate,
				   &out);
		iscsi_params_offer(&n, STAGE_OPERATIONAL, "MaxBurstLength", cases[i].max_burst,
				   &out);
		iscsi_params_close(&n, &out);
		while (at < data + out.bytes) {
			last = at;
			at += strlen(at) + 1;
		}
		assert_string_equal(strchr(last, '=') + 1, cases[i].first_burst);
		assert_true(n.params.first_burst_bytes <= n.params.max_burst_bytes);
	}
}

static void test_repeated_key(void **state)
{
	char data[512];
	struct iscsi_text out = {.data = data, .size = sizeof data};
	struct iscsi_negotiation n;

	iscsi_negotiation_init(&n);
	assert_int_equal(
	    iscsi_params_offer(&n, STAGE_SECURITY, "InitiatorName", "iqn.2026-11.x:a", &out), 0);
	assert_int_equal(
	    iscsi_params_offer(&n, STAGE_OPERATIONAL, "InitiatorName", "iqn.2026-11.x:a", &out),
	    -EEXIST);
}

static void test_declaration(void **state)
{
	char data[512];
	struct iscsi_text out = {.data = data, .size = sizeof data};
	struct iscsi_negotiation n;

	iscsi_negotiation_init(&n);
	assert_int_equal(n.params.max_recv_bytes, ISCSI_DEFAULT_MRDSL);
	iscsi_params_declare(&n, &out);
	iscsi_params_declare(&n, &out);
	assert_string_equal(data, "MaxRecvDataSegmentLength=262144");
	assert_int_equal(out.bytes, strlen(data) + 1);
	assert_int_equal(n.params.max_recv_bytes, 262144);
	/* The initiator's own value counts for the other direction. */
	iscsi_params_offer(&n, STAGE_OPERATIONAL, "MaxRecvDataSegmentLength", "65536", &out);
	assert_int_equal(n.params.max_send_bytes, 65536);
	assert_int_equal(n.params.max_recv_bytes, 262144);
}

static void test_names(void **state)
{
	static const struct {
		const char *name, *normal; /* NULL: refused */
	} cases[] = {
	    {"iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test", NULL},
	    {"IQN.2026-11.Test:ABC", "iqn.2026-11.test:abc"},
	    {"eui.02004567A425678D", "eui.02004567a425678d"},
	    {"naa.52004567BA64678D", "naa.52004567ba64678d"},
	    {"foo bar", ""},
	    {"iqn.2026-11.x:a b", ""},
	    {"iqn.2026-11.x:a,i,0x1", ""},
	    {"iqn.", ""},
	    {"", ""},
	};
	char out[ISCSI_NAME_BYTES], name[300];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *normal = cases[i].normal ? cases[i].normal : cases[i].name;

		if (normal[0] == '\0') {
			assert_int_equal(iscsi_name_normalise(cases[i].name, out), -EINVAL);
			continue;
		}
		assert_int_equal(iscsi_name_normalise(cases[i].name, out), 0);
		assert_string_equal(out, normal);
	}
	memset(name, 'a', sizeof name);
	memcpy(name, "iqn.", 4);
	name[223] = '\0';
	assert_int_equal(iscsi_name_normalise(name, out), 0);
	name[223] = 'a';
	name[224] = '\0';
	assert_int_equal(iscsi_name_normalise(name, out), -EINVAL);
}

static void test_text_split(void **state)
{
	char text[] = "A=1\0\0B=\0C=x=y\0D=last";
	char *cursor = text, *key, *value;
	const char *end = text + sizeof text - 1; /* the last one has no NUL of its own */
	static const char *const wanted[] = {"A", "1", "B", "", "C", "x=y", "D", "last"};
	char bad[] = "novalue", long_key[80];

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i += 2) {
		assert_int_equal(iscsi_text_next(&cursor, end, &key, &value), 1);
		assert_string_equal(key, wanted[i]);
		assert_string_equal(value, wanted[i + 1]);
	}
	assert_int_equal(iscsi_text_next(&cursor, end, &key, &value), 0);
	cursor = bad;
	assert_int_equal(iscsi_text_next(&cursor, bad + 7, &key, &value), -EINVAL);
	memset(long_key, 'k', sizeof long_key);
	long_key[64] = '=';
	long_key[66] = '\0';
	cursor = long_key;
	assert_int_equal(iscsi_text_next(&cursor, long_key + 66, &key, &value), -EINVAL);
}

static void test_window_wraps(void **state)
{
	struct iscsi_window window;

	iscsi_window_init(&window, 0xfffffffe, 4);
	assert_int_equal(iscsi_window_max(&window), 1);
	assert_int_equal(iscsi_window_place(&window, 0xfffffffd), WINDOW_OUTSIDE);
	assert_int_equal(iscsi_window_place(&window, 0xfffffffe), WINDOW_NEXT);
	assert_int_equal(iscsi_window_place(&window, 0), WINDOW_AHEAD);
	assert_int_equal(iscsi_window_place(&window, 1), WINDOW_AHEAD);
	assert_int_equal(iscsi_window_place(&window, 2), WINDOW_OUTSIDE);
	for (int i = 0; i < 4; i++)
		iscsi_window_advance(&window, true);
	assert_int_equal(window.exp_cmd_sn, 2);
	assert_int_equal(iscsi_window_max(&window), 1); /* closed, and did not decrease */
	assert_int_equal(iscsi_window_place(&window, 2), WINDOW_OUTSIDE);
	iscsi_window_leave(&window);
	assert_int_equal(iscsi_window_place(&window, 2), WINDOW_NEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rules),	 cmocka_unit_test(test_dependent_keys),
	    cmocka_unit_test(test_repeated_key), cmocka_unit_test(test_declaration),
	    cmocka_unit_test(test_names),	 cmocka_unit_test(test_text_split),
	    cmocka_unit_test(test_window_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
