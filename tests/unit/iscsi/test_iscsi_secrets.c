/* SPDX-License-Identifier: MIT
 *
 * What CHAP is made of: digests, binary values, the file of secrets.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/iscsi/binary.h"
#include "target/iscsi/chap.h"

static const char secrets_text[] = "# users of the lab\n"
				   "exchange  a secret with blanks\n"
				   "\n"
				   "\tsql\tsixteen-byte-key\r\n"
				   "array the-array-itself";

static void test_digests(void **state)
{
	static const struct {
		int algorithm;
		const char *digest;
	} vectors[] = {
	    {CHAP_MD5, "cb9f0792f9e6f5845b722be9d45e866d"},
	    {CHAP_SHA1, "1d464758e165037731c15d1536ae46616b79c7e9"},
	    {CHAP_SHA256, "b4138865f443a320a6e99ae9c34763b937807677cc2d72199f2cb45783b98960"},
	    {CHAP_SHA3_256, "6f1820c2b39b4e3bba9ebcf4454c74f6d4da787153fc926cc5f800095a421cc2"},
	};
	struct chap_secret secret = {.bytes = "sixteen-byte-key", .size = 16};
	uint8_t challenge[16], digest[CHAP_DIGEST_MAX_BYTES];

	for (unsigned i = 0; i < sizeof challenge; i++)
		challenge[i] = (uint8_t)i;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		char text[2 * CHAP_DIGEST_MAX_BYTES + 3];

		assert_int_equal(chap_digest(vectors[i].algorithm, 0x17, &secret, challenge,
					     sizeof challenge, digest),
				 0);
		iscsi_binary_encode(digest, chap_digest_bytes(vectors[i].algorithm), text);
		assert_string_equal(text + 2, vectors[i].digest);
	}
	assert_int_equal(chap_digest(4, 0, &secret, challenge, 16, digest), -ENOTSUP);
	assert_int_equal(chap_digest_bytes(9), 0);
}

static void test_binary(void **state)
{
	static const struct {
		const char *text, *bytes;
		size_t size;
	} cases[] = {
	    {"0x0", "\0", 1},
	    {"0xaBcD", "\xab\xcd", 2},
	    {"0X123", "\x01\x23", 2},
	    {"0bAQID", "\1\2\3", 3},
	    {"0bAQI=", "\1\2", 2},
	    {"0BAQ==", "\1", 1},
	    {"0b+/+/", "\xfb\xff\xbf", 3},
	};
	static const char *const wrong[] = {
	    "",	     "0",      "0x",	 "0xg1",   "0x1 ",   "12",   "0b",
	    "0bAQI", "0bA===", "0bAQ=I", "0b====", "0bAQ*D", "x123", "0x00112233445566778899"};
	uint8_t bytes[9];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(iscsi_binary_decode(cases[i].text, bytes, sizeof bytes),
				 cases[i].size);
		assert_memory_equal(bytes, cases[i].bytes, cases[i].size);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(iscsi_binary_decode(wrong[i], bytes, sizeof bytes), 0);
}

static void test_secrets(void **state)
{
	static const char *const wrong[] = {
	    "alone", "alone   ", "a secret-of-twelve\na other-secret", "ok twelve-bytes!\nalone\n"};
	struct chap_secrets *secrets = NULL, *none = NULL;
	const struct chap_secret *secret;
	struct err err = {0};
	char longest[400];

	assert_int_equal(
	    chap_secrets_parse("f", secrets_text, sizeof secrets_text - 1, &secrets, &err), 0);
	secret = chap_secrets_find(secrets, "exchange");
	assert_non_null(secret);
	assert_int_equal(secret->size, strlen("a secret with blanks"));
	assert_memory_equal(secret->bytes, "a secret with blanks", secret->size);
	secret = chap_secrets_find(secrets, "sql");
	assert_int_equal(secret->size, 16);
	assert_non_null(chap_secrets_find(secrets, "array"));
	assert_null(chap_secrets_find(secrets, "#"));
	assert_null(chap_secrets_find(secrets, "nobody"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err = (struct err){0};
		assert_int_equal(chap_secrets_parse("f", wrong[i], strlen(wrong[i]), &none, &err),
				 -EINVAL);
		assert_null(none);
		assert_null(strstr(err.what, "secret-of"));
		assert_null(strstr(err.what, "other-secret"));
	}
	assert_string_equal(err.where, "f:2");
	memset(longest, 'x', sizeof longest);
	longest[1] = ' ';
	assert_int_equal(chap_secrets_parse("f", longest, 2 + 255, &none, &err), 0);
	none = chap_secrets_free(none);
	assert_int_equal(chap_secrets_parse("f", longest, 2 + 256, &none, &err), -EINVAL);
	assert_int_equal(
	    chap_secrets_parse("f", "a same-secret-12\nb same-secret-12", 33, &none, NULL), 0);
	assert_true(chap_secrets_is_shared(none, "a"));
	chap_secrets_free(none);
	assert_false(chap_secrets_is_shared(secrets, "array"));
	chap_secrets_free(secrets);
}

/* Another secret for a while, nobody else's, and then the old one. */
static void test_secret_changes(void **state)
{
	struct chap_secrets *secrets = NULL;
	const struct chap_secret *secret;

	assert_int_equal(
	    chap_secrets_parse("f", secrets_text, sizeof secrets_text - 1, &secrets, NULL), 0);
	secret = chap_secrets_find(secrets, "exchange");
	assert_int_equal(chap_secrets_change(secrets, "exchange", false), -EALREADY);
	assert_int_equal(chap_secrets_change(secrets, "exchange", true), 0);
	assert_memory_not_equal(secret->bytes, "a secret with blanks", secret->size);
	assert_int_equal(chap_secrets_find(secrets, "sql")->size, 16);
	assert_int_equal(chap_secrets_change(secrets, "exchange", true), -EALREADY);
	assert_int_equal(chap_secrets_change(secrets, "exchange", false), 0);
	assert_memory_equal(secret->bytes, "a secret with blanks", secret->size);
	assert_int_equal(chap_secrets_change(secrets, "nobody", true), -ENOENT);
	chap_secrets_free(secrets);
}

static void test_secrets_file(void **state)
{
	static const struct {
		mode_t mode;
		int r;
	} modes[] = {{0600, 0}, {0400, 0}, {0640, -EPERM}, {0604, -EPERM}, {0700, -EPERM}};
	char file[] = "/tmp/sanlab-secrets-XXXXXX";
	struct chap_secrets *secrets = NULL;
	struct err err = {0};
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, secrets_text, sizeof secrets_text - 1), sizeof secrets_text - 1);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		assert_int_equal(chmod(file, modes[i].mode), 0);
		err = (struct err){0};
		assert_int_equal(chap_secrets_load(file, &secrets, &err), modes[i].r);
		if (modes[i].r == 0)
			secrets = chap_secrets_free(secrets);
		else
			assert_non_null(strstr(err.hint, "chmod 0600"));
	}
	unlink(file);
	assert_int_equal(chap_secrets_load(file, &secrets, &err), -ENOENT);
	assert_int_equal(chap_secrets_load("/tmp", &secrets, &err), -EPERM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_digests),	 cmocka_unit_test(test_binary),
	    cmocka_unit_test(test_secrets),	 cmocka_unit_test(test_secret_changes),
	    cmocka_unit_test(test_secrets_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
