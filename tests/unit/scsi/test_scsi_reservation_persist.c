/* SPDX-License-Identifier: MIT
 *
 * APTPL: what is registered and reserved comes back with the next target, and a damaged file is
 * refused.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "target/scsi/pr_persist.h"
#include "tests/unit/scsi/pr_client.h"

#define KEY_A UINT64_C(0xa1a2a3a4a5a6a7a8)
#define KEY_B UINT64_C(0xb)

static char directory[] = "/tmp/sanlab-reservations-XXXXXX";

static struct pr_file file_of(const struct fixture *fixture)
{
	return (struct pr_file){directory, fixture->thin.name, fixture->thin.naa};
}

static void file_path(const struct fixture *fixture, char out[512])
{
	int at = snprintf(out, 512, "%s/%s.", directory, fixture->thin.name);

	for (unsigned i = 0; i < sizeof fixture->thin.naa; i++)
		at += snprintf(out + at, 512 - (size_t)at, "%02x", fixture->thin.naa[i]);
	snprintf(out + at, 512 - (size_t)at, ".reservations");
}

static bool file_exists(const struct fixture *fixture)
{
	char path[512];

	file_path(fixture, path);
	return access(path, F_OK) == 0;
}

/* The device as the next target finds it. */
static void restart(struct fixture *fixture)
{
	struct scsi_lu *lu = scsi_device_add(fixture->device, &fixture->thin);

	scsi_reservations_done(lu);
	assert_int_equal(scsi_reservations_init(lu), 0);
	scsi_reservations_changed(lu);
	assert_int_equal(scsi_device_restore(fixture->device, NULL), 0);
}

static int setup(void **state)
{
	struct fixture *fixture;

	fixture_setup(state);
	fixture = *state;
	fixture->thin.state_dir = directory;
	return 0;
}

static int teardown(void **state)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[512];

	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		assert_null(strstr(path, ".new")); /* nothing temporary is left */
		assert_int_equal(unlink(path), 0);
	}
	closedir(dir);
	return fixture_teardown(state);
}

static void test_restart(void **state)
{
	struct fixture *fixture = *state;
	struct scsi_nexus *a = fixture->a, *b = fixture->b;
	const uint8_t write[10] = {0x2a, [8] = 1};
	static uint8_t block[512];
	struct request request = {0};
	uint8_t data[16];

	restart(fixture); /* nothing there yet */
	expect_keys(a, 0, 0, NULL);
	assert_int_equal(pr_out(b, PR_REGISTER, 0, 0, KEY_B, 0), 0);
	assert_false(file_exists(fixture));
	assert_int_equal(pr_out(a, PR_REGISTER, 0, 0, KEY_A, PR_FLAG_APTPL), 0);
	assert_true(file_exists(fixture));
	assert_int_equal(pr_out(a, PR_RESERVE, 3, KEY_A, 0, 0), 0);
	restart(fixture);
	expect_keys(a, 0, KEYS(KEY_B, KEY_A)); /* the generation begins anew */
	expect_reservation(a, 3, KEY_A);
	pr_in(a, 2, data, sizeof data);
	assert_int_equal(data[2] & 0x01, 0x01);
	assert_int_equal(data[3] & 0x01, 0x01);
	/* It is the same nexuses that have and lack access. */
	request_run(&request, a, LUN_THIN, write, sizeof write, block, 512);
	assert_int_equal(outcome(&request), 0);
	request_release(&request);
	request_run(&request, b, LUN_THIN, write, sizeof write, block, 512);
	assert_int_equal(outcome(&request), CONFLICT);
	request_release(&request);
	/* Every change is in the file, those of others too. */
	assert_int_equal(pr_out(b, PR_PREEMPT, 6, KEY_B, KEY_A, 0), 0);
	assert_int_equal(tur(a), 0x062a05);
	restart(fixture);
	expect_keys(a, 0, KEYS(KEY_B));
	expect_reservation(a, 6, KEY_B);
	assert_int_equal(pr_out(b, PR_RELEASE, 6, KEY_B, 0, 0), 0);
	restart(fixture);
	expect_reservation(a, PR_NONE, 0);
	/* The last APTPL counts: zero, and nothing outlives the target. */
	assert_int_equal(pr_out(b, PR_REGISTER, 0, KEY_B, KEY_A, 0), 0);
	assert_false(file_exists(fixture));
	expect_keys(a, 1, KEYS(KEY_A));
	pr_in(a, 2, data, sizeof data);
	assert_int_equal(data[3] & 0x01, 0);
	restart(fixture);
	expect_keys(a, 0, 0, NULL);
}

static void test_move_persists(void **state)
{
	struct fixture *fixture = *state;
	static const char to[] = "iqn.2026-11.test:b,i,0x800000000002";
	uint8_t list[64] = {0};

	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, 0), 0);
	assert_int_equal(pr_out(fixture->a, PR_RESERVE, 8, KEY_A, 0, 0), 0);
	assert_int_equal(pr_out(fixture->a, PR_PREEMPT, 1, KEY_A, 0, 0), 0);
	put_be64(list, KEY_A);
	put_be64(list + 8, KEY_B);
	list[17] = 0x03; /* UNREG, APTPL */
	put_be16(list + 18, 0x102);
	put_be32(list + 20, 40);
	list[24] = 0x45;
	put_be16(list + 26, 36);
	memcpy(list + 28, to, sizeof to);
	assert_int_equal(pr_out_list(fixture->a, PR_REGISTER_AND_MOVE, 0, list, 64, 64), 0);
	restart(fixture);
	expect_keys(fixture->a, 0, KEYS(KEY_B));
	expect_reservation(fixture->b, 1, KEY_B);
	assert_int_equal(pr_out(fixture->b, PR_CLEAR, 0, KEY_B, 0, 0), 0);
	restart(fixture);
	expect_keys(fixture->a, 0, 0, NULL);
}

/* What cannot be made durable does not happen. */
static void test_cannot_save(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, PR_FLAG_APTPL), 0);
	fixture->thin.state_dir = "/nonexistent/sanlab";
	assert_int_equal(pr_out(fixture->b, PR_REGISTER, 0, 0, KEY_B, PR_FLAG_APTPL), 0x044400);
	assert_int_equal(pr_out(fixture->a, PR_PREEMPT_AND_ABORT, 1, KEY_A, KEY_A, 0), 0x044400);
	assert_int_equal(pr_out(fixture->a, PR_RESERVE, 1, KEY_A, 0, 0), 0x044400);
	expect_keys(fixture->a, 1, KEYS(KEY_A));
	expect_reservation(fixture->a, PR_NONE, 0);
	for (unsigned i = 0; i < SCSI_MAX_PREEMPTS; i++)
		assert_null(scsi_device_add(fixture->device, &fixture->thin)
				->reservations.preempts[i]
				.task);
	fixture->thin.state_dir = directory;
}

static size_t slurp(const char *path, uint8_t *data, size_t size)
{
	FILE *file = fopen(path, "rb");
	size_t bytes;

	assert_non_null(file);
	bytes = fread(data, 1, size, file);
	fclose(file);
	return bytes;
}

static void spit(const char *path, const uint8_t *data, size_t bytes)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

/* Any bit that flips and any cut is noticed. */
static void test_damage(void **state)
{
	struct fixture *fixture = *state;
	struct pr_file file = file_of(fixture);
	uint8_t good[1024], bad[1024];
	struct err err = {0};
	char path[512];
	size_t bytes;

	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, KEY_A, PR_FLAG_APTPL), 0);
	assert_int_equal(pr_out(fixture->b, PR_REGISTER, 0, 0, KEY_B, PR_FLAG_APTPL), 0);
	assert_int_equal(pr_out(fixture->b, PR_RESERVE, 5, KEY_B, 0, 0), 0);
	file_path(fixture, path);
	bytes = slurp(path, good, sizeof good);
	for (size_t i = 0; i < bytes + 1; i++) {
		struct pr_state *loaded = pr_state_new();

		memcpy(bad, good, bytes);
		if (i < bytes)
			bad[i] ^= (uint8_t)(1U << i % 8);
		bad[bytes] = 0;
		spit(path, bad, i < bytes ? bytes : bytes + 1);
		assert_int_equal(pr_file_load(&file, loaded, NULL), -EBADMSG);
		assert_int_equal(loaded->count, 0);
		spit(path, good, i < bytes ? i : bytes);
		assert_int_equal(pr_file_load(&file, loaded, NULL), i < bytes ? -EBADMSG : 0);
		assert_int_equal(loaded->count, i < bytes ? 0 : 2);
		pr_state_free(loaded);
	}
	/* The device refuses, and says what to do. */
	spit(path, good, bytes - 1);
	assert_int_equal(scsi_device_restore(fixture->device, &err), -EBADMSG);
	assert_non_null(strstr(err.what, path));
	assert_true(err.hint[0] != '\0');
	spit(path, good, bytes);
	/* Of another volume. */
	file.naa = fixture->huge.naa;
	assert_int_equal(
	    pr_file_load(&file, scsi_device_add(fixture->device, &fixture->thin)->reservations.pr,
			 NULL),
	    0);
}

/* Well-formed to the checksum, but not what we write. */
static void test_forged(void **state)
{
	struct fixture *fixture = *state;
	struct pr_file file = file_of(fixture);
	static const struct {
		unsigned at;
		uint8_t value;
	} forged[] = {
	    {11, 2}, {16, 0}, {35, 1}, {35, 3},	 {39, 2},  {40, 2}, {40, 9},
	    {55, 0}, {64, 1}, {65, 0}, {65, 17}, {65, 19}, {70, 0},
	};
	uint8_t good[1024], bad[1024];
	char path[512];
	size_t bytes;

	assert_int_equal(pr_out(fixture->a, PR_REGISTER, 0, 0, 0xff, PR_FLAG_APTPL), 0);
	assert_int_equal(pr_out(fixture->b, PR_REGISTER, 0, 0, KEY_B, PR_FLAG_APTPL), 0);
	assert_int_equal(pr_out(fixture->b, PR_RESERVE, 5, KEY_B, 0, 0), 0);
	file_path(fixture, path);
	bytes = slurp(path, good, sizeof good);
	for (unsigned i = 0; i <= ARRAY_SIZE(forged) + 1; i++) {
		struct pr_state *loaded = pr_state_new();
		size_t size = bytes;
		int wanted = -EBADMSG;

		memcpy(bad, good, bytes);
		if (i < ARRAY_SIZE(forged))
			bad[forged[i].at] = forged[i].value;
		else if (i == ARRAY_SIZE(forged))
			bad[size++] = 0;
		else
			wanted = 0;
		put_be32(bad + 12, crc32c(crc32c(0, bad, 12), bad + 16, size - 16));
		spit(path, bad, size);
		if (pr_file_load(&file, loaded, NULL) != wanted)
			fail_msg("row %u", i);
		assert_int_equal(loaded->count, wanted ? 0 : 2);
		pr_state_free(loaded);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_restart), TEST(test_move_persists), TEST(test_cannot_save),
	    TEST(test_damage),	TEST(test_forged),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
