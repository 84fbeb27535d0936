/* SPDX-License-Identifier: MIT
 *
 * Copies of a store's files that were made while its pool served, brought back after it ended:
 * older than the rest, although of the same start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/cache.h"
#include "target/array/member.h"
#include "target/drive/vfs.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/store_files.h"

#define P POOL_PAGE_BYTES

enum { DRIVES = 4 };

static struct lab lab;
static char root[64], place[80], copy[80], whole[80];

static void open_lab(void)
{
	lab_init(&lab);
	struct member_config *member = lab_member(&lab, "m1", "raid10", DRIVES, 64 * MIB);
	member->store_kind = "file";
	member->store_place = place;
	member->cache.size_bytes = 2 * MIB;
	member->cache.mode = CACHE_WRITE_BACK;
	lab_volume(&lab, "a", 8 * P, true);
	lab_opens(&lab);
}

static struct member *member(void)
{
	return group_member_at(lab.open, 0);
}

static int setup(void **state)
{
	lab_sync_nothing();
	snprintf(root, sizeof root, "%s/sanlab-copies-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(root))
		return -1;
	snprintf(place, sizeof place, "%s/store", root);
	snprintf(copy, sizeof copy, "%s/copy", root);
	snprintf(whole, sizeof whole, "%s/whole", root);
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int teardown(void **state)
{
	vfs = &vfs_system;
	remove_dir(place);
	remove_dir(copy);
	remove_dir(whole);
	return rmdir(root);
}

static unsigned calls_left;

static bool crash_now(void)
{
	return calls_left == 0 || --calls_left == 0;
}

static int crash_sync(int fd)
{
	if (crash_now())
		_exit(7);
	return 0;
}

static int crash_rename(const char *from, const char *to)
{
	if (crash_now())
		_exit(7);
	return rename(from, to);
}

static void serve_and_copy(void)
{
	open_lab();
	lab_write_pages(&lab, 1);
	copy_dir(place, copy);
	lab_write_pages(&lab, 2);
}

static void old_within_a_start(void **state)
{
	static const char *const parts[][2] = {
	    {"m1.pagemap", "page map of member m1"},
	    {"m1-raid.nvram", "battery-backed memory of start 1"},
	    {"m1-cache.nvram", "battery-backed memory of start 1"},
	};

	serve_and_copy();
	lab_close(&lab);
	copy_dir(place, whole);
	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		copy_file(path_of(copy, parts[i][0]), path_of(place, parts[i][0]));
		lab_refuses(&lab, -ESTALE, parts[i][1]);
		copy_dir(whole, place);
	}
	copy_file(path_of(copy, "m1-drive02.drive"), path_of(place, "m1-drive02.drive"));
	open_lab();
	assert_false(member_drive_is_good(member(), 2));
	assert_true(member_drive_is_good(member(), 3));
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
}

/* After a kill the numbers tell nothing of it, the checksums do. */
static void old_within_a_killed_start(void **state)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		serve_and_copy();
		_exit(lab_io(&lab, "a", IO_FLUSH, 0, NULL, 0) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	copy_file(path_of(copy, "m1-drive02.drive"), path_of(place, "m1-drive02.drive"));
	open_lab();
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
}

/* A crash at any place of the end leaves a pool that starts again with all its drives. */
static void crash_in_the_end(void **state)
{
	bool ended = false;

	for (unsigned at = 1; !ended; at++) {
		int status;
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0) {
			struct vfs_ops ops = *vfs;
			open_lab();
			lab_write_pages(&lab, (uint8_t)at);
			ops.sync = crash_sync;
			ops.rename = crash_rename;
			calls_left = at;
			vfs = &ops;
			lab_close(&lab);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		ended = WEXITSTATUS(status) == 0;
		assert_true(ended || (at < 100 && WEXITSTATUS(status) == 7));
		open_lab();
		lab_expect_pages(&lab, (uint8_t)at);
		for (unsigned i = 0; i < DRIVES; i++)
			assert_true(member_drive_is_good(member(), i));
		lab_close(&lab);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(old_within_a_start, setup, teardown),
	    cmocka_unit_test_setup_teardown(old_within_a_killed_start, setup, teardown),
	    cmocka_unit_test_setup_teardown(crash_in_the_end, setup, teardown),
	};
	return cmocka_run_group_tests_name("store_copies", tests, NULL, NULL);
}
