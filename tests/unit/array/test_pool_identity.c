/* SPDX-License-Identifier: MIT
 *
 * Pools on file stores: members that were lost, restored from old copies or swapped are refused,
 * new ones are welcome, crashes between the two steps of a start are survived; drive files that
 * are missing, foreign or old are out as far as the RAID level covers it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/volume.h"
#include "target/drive/vfs.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/store_files.h"

#define P POOL_PAGE_BYTES

enum { DRIVES = 4, PLACES = 6 };

static struct lab lab;
static char root[64], places[PLACES][80];

/* ---- labs ---- */

static void add_member(const char *name, const char *place, const char *raid)
{
	struct member_config *member = lab_member(&lab, name, raid, DRIVES, 64 * MIB);
	member->store_kind = "file";
	member->store_place = place;
}

static void describe(unsigned members)
{
	static const char *const names[] = {"m1", "m2", "m3"};
	lab_init(&lab);
	for (unsigned i = 0; i < members; i++)
		add_member(names[i], places[i], "raid10");
	lab_volume(&lab, "a", 8 * P, true);
}

static int setup(void **state)
{
	lab_sync_nothing();
	snprintf(root, sizeof root, "%s/sanlab-pool-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(root))
		return -1;
	for (unsigned i = 0; i < PLACES; i++)
		snprintf(places[i], sizeof places[i], "%s/s%u", root, i);
	log_set_level(LOG_LEVEL_ERROR);
	describe(2);
	return 0;
}

static int teardown(void **state)
{
	vfs = &vfs_system;
	for (unsigned i = 0; i < PLACES; i++)
		remove_dir(places[i]);
	return rmdir(root);
}

/* ---- members ---- */

static void lost_member(void **state)
{
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	assert_int_equal(rename(places[1], places[4]), 0);
	lab_refuses(&lab, -ENOENT, "the store of member m2");
	assert_int_equal(access(places[1], F_OK), -1); /* nothing was made */
	assert_int_equal(mkdir(places[1], 0700), 0);   /* as of a file system not mounted */
	lab_refuses(&lab, -ENOENT, "is empty, but member m1 knows it");
	assert_int_equal(rmdir(places[1]), 0);
	assert_int_equal(rename(places[4], places[1]), 0);
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);

	/* The member's record alone is lost. */
	unlink(path_of(places[1], "m2.pool"));
	lab_refuses(&lab, -ENOENT, "m2");
}

static void old_copy_of_a_member(void **state)
{
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	copy_dir(places[1], places[4]);
	lab_opens(&lab);
	lab_write_pages(&lab, 2);
	lab_close(&lab);
	copy_dir(places[1], places[5]);
	copy_dir(places[4], places[1]);
	lab_refuses(&lab, -ESTALE, "older than its pool");
	copy_dir(places[5], places[1]);
	lab_opens(&lab);
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
}

static void old_parts_of_a_member(void **state)
{
	static const char *const parts[] = {"m2.pool", "m2.pagemap"};
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	copy_dir(places[1], places[4]);
	lab_opens(&lab);
	lab_write_pages(&lab, 2);
	lab_close(&lab);
	copy_dir(places[1], places[5]);
	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		copy_file(path_of(places[4], parts[i]), path_of(places[1], parts[i]));
		lab_refuses(&lab, -ESTALE, "m2");
		copy_dir(places[5], places[1]); /* a refused start may have left a mark */
	}
	lab_opens(&lab);
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
}

static void foreign_member(void **state)
{
	lab_opens(&lab);
	lab_close(&lab);
	lab.members[0].store_place = places[1];
	lab.members[1].store_place = places[0];
	lab_refuses(&lab, -EMEDIUMTYPE, "has nothing of member m1 but the store of member m2");
	describe(2);
	lab.members[1].name = "renamed";
	lab_refuses(&lab, -EMEDIUMTYPE, "has nothing of member renamed but the store of member m2");

	describe(2);
	lab.members[0].store_place = places[2];
	lab.members[1].store_place = places[3];
	lab_opens(&lab); /* another pool altogether */
	lab_close(&lab);
	lab.members[1].store_place = places[1];
	lab_refuses(&lab, -EMEDIUMTYPE, "not of the pool that member m1 belongs to");
	describe(2);
	lab_opens(&lab);
	lab_close(&lab);
}

static void members_come_and_go(void **state)
{
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	describe(3);
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
	describe(2); /* m3 was empty at an orderly end */
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
	describe(3); /* and is not what it was any more */
	lab_refuses(&lab, -ESTALE, "m3");
	remove_dir(places[2]);
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
	describe(1);
	lab_refuses(&lab, -ENOENT, "has a member m2");
	describe(3);
	lab.members[1].store_kind = "memory";
	lab_refuses(&lab, -ENOENT, "has a member m2");
}

/* ---- crashes within a start ---- */

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

/* True: the start came to its end. */
static bool start_with_crash(unsigned at_call)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct vfs_ops ops = *vfs;
		struct err err = {0};
		ops.sync = crash_sync;
		ops.rename = crash_rename;
		calls_left = at_call;
		vfs = &ops;
		_exit(lab_open(&lab, &err) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_not_equal(WEXITSTATUS(status), 1);
	return WEXITSTATUS(status) == 0;
}

/* A crash at any place of the first start, of a later one, and of one with a new member. */
static void crash_at_each_step(void **state)
{
	for (unsigned part = 0; part < 3; part++) {
		bool ended = false;
		for (unsigned at = 1; !ended; at++) {
			assert_true(at < 200);
			describe(2);
			if (part == 0)
				for (unsigned i = 0; i < 3; i++)
					remove_dir(places[i]);
			if (part == 2) {
				remove_dir(places[2]);
				remove_dir(places[0]);
				remove_dir(places[1]);
				lab_opens(&lab);
				lab_write_pages(&lab, 3);
				lab_close(&lab);
				describe(3);
			}
			ended = start_with_crash(at);
			lab_opens(&lab);
			if (part == 2)
				lab_expect_pages(&lab, 3);
			if (part == 1)
				lab_expect_pages(&lab, 4);
			lab_close(&lab);
		}
		lab_opens(&lab);
		lab_write_pages(&lab, 4);
		lab_close(&lab);
	}
}

/* ---- drives ---- */

static const char *drive_name(unsigned drive)
{
	static char names[4][40];
	static unsigned turn;
	char *name = names[turn++ % 4];
	snprintf(name, sizeof names[0], "m1-drive%02u.drive", drive);
	return name;
}

static const char *drive_path(const char *dir, unsigned drive)
{
	return path_of(dir, drive_name(drive));
}

static struct member *member(void)
{
	return group_member_at(lab.open, 0);
}

static void missing_drives(void **state)
{
	describe(1);
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);

	assert_int_equal(rename(drive_path(places[0], 1), drive_path(root, 1)), 0);
	lab_opens(&lab); /* drive 0 of the mirror has it all */
	assert_true(member_drive(member(), 1)->failed);
	assert_false(member_drive_is_good(member(), 1));
	lab_expect_pages(&lab, 1);
	lab_write_pages(&lab, 2);
	lab_close(&lab);
	assert_int_equal(access(drive_path(places[0], 1), F_OK), -1);

	/* Back again, it has missed writes. */
	assert_int_equal(rename(drive_path(root, 1), drive_path(places[0], 1)), 0);
	lab_opens(&lab);
	assert_false(member_drive(member(), 1)->failed);
	assert_false(member_drive_is_good(member(), 1));
	lab_expect_pages(&lab, 2);
	lab_close(&lab);

	/* The other half of the same mirror: nothing is left of the content. */
	assert_int_equal(rename(drive_path(places[0], 0), drive_path(root, 0)), 0);
	lab_refuses(&lab, -ENODEV, "drive 0 (missing)");
	assert_int_equal(rename(drive_path(root, 0), drive_path(places[0], 0)), 0);
	lab_opens(&lab);
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
}

static void old_drive(void **state)
{
	describe(1);
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	copy_file(drive_path(places[0], 2), drive_path(root, 2));
	copy_file(drive_path(places[0], 3), drive_path(root, 3));
	lab_opens(&lab);
	lab_write_pages(&lab, 2);
	lab_close(&lab);
	copy_file(drive_path(root, 2), drive_path(places[0], 2));
	lab_opens(&lab);
	assert_false(member_drive(member(), 2)->failed);
	assert_false(member_drive_is_good(member(), 2));
	lab_expect_pages(&lab, 2);
	lab_close(&lab);
	copy_file(drive_path(root, 3), drive_path(places[0], 3));
	lab_refuses(&lab, -ENODEV, "an older copy");
	unlink(drive_path(root, 2));
	unlink(drive_path(root, 3));
}

static void foreign_drives(void **state)
{
	describe(1);
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	lab.members[0].store_place = places[1];
	lab_opens(&lab);
	lab_write_pages(&lab, 9);
	lab_close(&lab);
	describe(1);

	/* Of another pool, under the right name; then drive 0 in the place of drive 1. */
	copy_dir(places[0], places[4]);
	copy_file(drive_path(places[1], 1), drive_path(places[0], 1));
	lab_opens(&lab);
	assert_true(member_drive(member(), 1)->failed);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
	copy_dir(places[4], places[0]);
	copy_file(drive_path(places[0], 0), drive_path(places[0], 1));
	lab_opens(&lab);
	assert_true(member_drive(member(), 1)->failed);
	lab_expect_pages(&lab, 1);
	struct err err = {0};
	assert_int_equal(member_renew_drive(member(), 1, &err), -EEXIST);
	lab_close(&lab);

	copy_dir(places[4], places[0]);
	assert_int_equal(truncate(drive_path(places[0], 1), 65536), 0);
	lab_opens(&lab);
	assert_true(member_drive(member(), 1)->failed);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);

	copy_dir(places[4], places[0]);
	copy_file(drive_path(places[1], 0), drive_path(places[0], 0));
	copy_file(drive_path(places[1], 1), drive_path(places[0], 1));
	lab_refuses(&lab, -ENODEV, "drive 0 (belongs elsewhere: drive 0 of member m1");
}

static void new_drive(void **state)
{
	struct err err = {0};

	describe(1);
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	assert_int_equal(member_renew_drive(member(), 1, &err), -EBUSY);
	lab_close(&lab);
	unlink(drive_path(places[0], 1));
	lab_opens(&lab);
	err = (struct err){0};
	if (member_renew_drive(member(), 1, &err))
		fail_msg("%s", err.what);
	assert_false(member_drive(member(), 1)->failed);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
	lab_opens(&lab);
	assert_false(member_drive(member(), 1)->failed);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);
}

/* ---- volumes ---- */

static void volumes_change(void **state)
{
	lab_opens(&lab);
	lab_write_pages(&lab, 1);
	lab_close(&lab);
	lab.volumes[0].name = "b"; /* renamed: a new, empty volume */
	lab_opens(&lab);
	assert_int_equal(volume_allocated_bytes(group_find_volume(lab.open, "b")), 0);
	struct pool *pool = group_find_volume(lab.open, "b")->pool;
	assert_string_equal(pool_identity_volume(pool->identity, rng_stream_of("a")), "a");
	lab_close(&lab);
	describe(2);
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	lab_close(&lab);

	lab.volumes[0].size_bytes = 7 * P;
	lab_refuses(&lab, -EFBIG, "volume a has data up to 120 MiB");
	describe(2);
	lab.volumes[0].size_bytes = 9 * P;
	lab_opens(&lab);
	lab_expect_pages(&lab, 1);
	assert_int_equal(lab_io(&lab, "a", IO_UNMAP, 6 * P, NULL, 2 * P), 0);
	lab_close(&lab);
	lab.volumes[0].size_bytes = 6 * P;
	lab_opens(&lab);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(lost_member, setup, teardown),
	    cmocka_unit_test_setup_teardown(old_copy_of_a_member, setup, teardown),
	    cmocka_unit_test_setup_teardown(old_parts_of_a_member, setup, teardown),
	    cmocka_unit_test_setup_teardown(foreign_member, setup, teardown),
	    cmocka_unit_test_setup_teardown(members_come_and_go, setup, teardown),
	    cmocka_unit_test_setup_teardown(crash_at_each_step, setup, teardown),
	    cmocka_unit_test_setup_teardown(missing_drives, setup, teardown),
	    cmocka_unit_test_setup_teardown(old_drive, setup, teardown),
	    cmocka_unit_test_setup_teardown(foreign_drives, setup, teardown),
	    cmocka_unit_test_setup_teardown(new_drive, setup, teardown),
	    cmocka_unit_test_setup_teardown(volumes_change, setup, teardown),
	};
	return cmocka_run_group_tests_name("pool_identity", tests, NULL, NULL);
}
