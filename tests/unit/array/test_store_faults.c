/* SPDX-License-Identifier: MIT
 *
 * Faults of the host's file system, in SQLite's manner: the Nth call of a kind fails, once or for
 * ever from then on, for N = 1, 2, ... until a run passes untouched.  Whatever failed: what was
 * acknowledged is there after opening again, the rest is old or new, errors say what is wrong, and
 * a drive that could not be synced is not trusted any more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/member.h"
#include "target/array/sweep.h"
#include "target/drive/vfs.h"
#include "tests/unit/array/lab.h"

#define P POOL_PAGE_BYTES

enum { BLOCKS = 24, BLOCK_BYTES = 4096, SECTOR_BYTES = 512, CALLS_MAX = 3000 };

static struct lab lab;
static char root[64], place[80];
static const char *raid;
static unsigned drives; /* few, as each adds calls that can fail */
static bool degraded;	/* one of them is out while the pool serves */

/* ---- the faulty system ---- */

enum call { CALL_READ, CALL_WRITE, CALL_SYNC, CALL_RESIZE, CALL_ALLOCATE, CALL_PUNCH, CALL_RENAME };

static struct fault {
	enum call call;
	int error; /* 0: a short transfer */
	bool for_ever;
	unsigned at, seen;
	unsigned hits;
	ino_t sync_victim; /* of the first sync that failed */
} fault;

static bool hit(enum call call)
{
	if (call != fault.call)
		return false;
	fault.seen++;
	if (fault.seen != fault.at && !(fault.for_ever && fault.seen > fault.at))
		return false;
	fault.hits++;
	errno = fault.error;
	return true;
}

static ssize_t faulty_preadv(int fd, const struct iovec *iov, int count, off_t at)
{
	if (!hit(CALL_READ))
		return preadv(fd, iov, count, at);
	return fault.error ? -1 : preadv(fd, &(struct iovec){iov->iov_base, 1}, 1, at);
}

/* A short write leaves the part it tells of; one that fails leaves half of it. */
static ssize_t faulty_pwritev(int fd, const struct iovec *iov, int count, off_t at)
{
	if (!hit(CALL_WRITE))
		return pwritev(fd, iov, count, at);
	ssize_t written = pwrite(fd, iov->iov_base, MAX_OF(iov->iov_len / 2, 1), at);
	errno = fault.error;
	return fault.error ? -1 : written;
}

static int faulty_sync(int fd)
{
	struct stat status;
	if (!hit(CALL_SYNC))
		return 0; /* the process does not die: nothing is lost without it */
	if (!fault.sync_victim && fstat(fd, &status) == 0)
		fault.sync_victim = status.st_ino;
	errno = fault.error;
	return -1;
}

static int faulty_resize(int fd, off_t size)
{
	return hit(CALL_RESIZE) ? -1 : ftruncate(fd, size);
}

static int faulty_allocate(int fd, off_t at, off_t size)
{
	return hit(CALL_ALLOCATE) ? -1 : vfs_system.allocate(fd, at, size);
}

static int faulty_punch(int fd, off_t at, off_t size)
{
	return hit(CALL_PUNCH) ? -1 : vfs_system.punch(fd, at, size);
}

static int faulty_rename(const char *from, const char *to)
{
	return hit(CALL_RENAME) ? -1 : rename(from, to);
}

static int faulty_sync_memory(void *memory, size_t size)
{
	return hit(CALL_SYNC) ? -1 : 0;
}

static const struct vfs_ops faulty = {
    .preadv = faulty_preadv,
    .pwritev = faulty_pwritev,
    .sync = faulty_sync,
    .resize = faulty_resize,
    .allocate = faulty_allocate,
    .punch = faulty_punch,
    .rename = faulty_rename,
    .sync_memory = faulty_sync_memory,
};

/* ---- the lab and its shadow ---- */

static uint8_t acknowledged[BLOCKS]; /* value of each block */
static uint8_t maybe[BLOCKS];	     /* or that one */

static void describe(void)
{
	lab_init(&lab);
	struct member_config *member = lab_member(&lab, "m1", raid, drives, 64 * MIB);
	member->store_kind = "file";
	member->store_place = place;
	lab_volume(&lab, "a", 4 * P, true);
}

static uint64_t place_of(unsigned block)
{
	return block % 4 * P + block / 4 * UINT64_C(70000) / BLOCK_BYTES * BLOCK_BYTES;
}

static int submit(enum io_op op, unsigned block, uint8_t value)
{
	uint8_t data[BLOCK_BYTES];

	memset(data, value, sizeof data);
	int status =
	    lab_io(&lab, "a", op, place_of(block), op == IO_WRITE ? data : NULL, sizeof data);
	if (status == 0)
		acknowledged[block] = maybe[block] = value;
	else
		maybe[block] = value;
	return status;
}

static void workload(void)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		submit(IO_WRITE, i, (uint8_t)(i + 1));
		if (i % 8 == 7)
			(void)lab_io(&lab, "a", IO_FLUSH, 0, NULL, 0);
	}
	for (unsigned i = 0; i < BLOCKS; i += 3)
		if (maybe[i] == acknowledged[i])
			submit(i % 2 ? IO_UNMAP : IO_WRITE, i, i % 2 ? 0 : (uint8_t)(i + 101));
	(void)lab_io(&lab, "a", IO_FLUSH, 0, NULL, 0);
	if (lab_io(&lab, "a", IO_UNMAP, 3 * P, NULL, P) == 0)
		for (unsigned i = 3; i < BLOCKS; i += 4)
			acknowledged[i] = maybe[i] = 0;
	else
		for (unsigned i = 3; i < BLOCKS; i += 4)
			if (maybe[i] == acknowledged[i])
				maybe[i] = 0;
}

/* A write that failed may have been taken in part, sector by sector. */
static bool is_possible(const uint8_t *data, unsigned block)
{
	uint8_t old[SECTOR_BYTES], new[SECTOR_BYTES];

	memset(old, acknowledged[block], sizeof old);
	memset(new, maybe[block], sizeof new);
	for (const uint8_t *at = data; at < data + BLOCK_BYTES; at += SECTOR_BYTES)
		if (memcmp(at, old, sizeof old) != 0 && memcmp(at, new, sizeof new) != 0)
			return false;
	return true;
}

static void verify(void)
{
	uint8_t data[BLOCK_BYTES];

	for (unsigned i = 0; i < BLOCKS; i++) {
		int status = lab_io(&lab, "a", IO_READ, place_of(i), data, sizeof data);
		assert_int_equal(status, 0);
		if (!is_possible(data, i))
			fail_msg("call %d fails with %d at %u%s: block %u is %u, not %u or %u",
				 fault.call, fault.error, fault.at,
				 fault.for_ever ? " and from then on" : "", i, data[0],
				 acknowledged[i], maybe[i]);
	}
}

static void clear_place(void)
{
	DIR *dir = opendir(place);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(place);
}

/* The drive whose file could not be synced while it was in use, or `drives`. */
static unsigned victim(void)
{
	for (unsigned i = 0; i < drives; i++) {
		struct stat status;
		char path[160];
		snprintf(path, sizeof path, "%s/m1-drive%02u.drive", place, i);
		if (fault.sync_victim && stat(path, &status) == 0 &&
		    status.st_ino == fault.sync_victim)
			return i;
	}
	return drives;
}

/* What the stores say of each fault would fill pages. */
static void hush(bool quiet)
{
	static int kept = -1;

	if (quiet) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		dup2(null, STDERR_FILENO);
		close(null);
	} else if (kept >= 0) {
		dup2(kept, STDERR_FILENO);
		close(kept);
	}
}

/* A run with the fault.  False: it was untouched. */
static bool run(void)
{
	struct err err = {0};
	bool served = false;

	memset(acknowledged, 0, sizeof acknowledged);
	memset(maybe, 0, sizeof maybe);
	clear_place();
	describe();
	fault.seen = fault.hits = 0;
	fault.sync_victim = 0;
	vfs = &faulty;
	unsigned before = 0;
	hush(true);
	if (lab_open(&lab, &err) == 0) {
		before = fault.hits;
		served = true;
		if (degraded)
			drive_set_failed(member_drive(group_member_at(lab.open, 0), 0), true);
		workload();
		lab_close(&lab);
	}
	hush(false);
	if (!served)
		assert_true(err.code < 0 && err.what[0] != 0);
	bool touched = fault.hits > 0, serving_hit = served && before == 0 && touched;

	/* The file system is well again. */
	fault.at = UINT32_MAX;
	err = (struct err){0};
	if (lab_open(&lab, &err))
		fail_msg("call %d, error %d: it does not start again: %s", fault.call, fault.error,
			 err.what);
	verify();
	if (serving_hit && !fault.for_ever && fault.call == CALL_SYNC && victim() < drives)
		assert_int_not_equal(member_drive_state(group_member_at(lab.open, 0), victim()),
				     MEMBER_DRIVE_ONLINE);
	lab_close(&lab);
	return touched;
}

static void loop_over(enum call call, int error, bool for_ever)
{
	bool touched = true;
	for (unsigned at = 1; touched; at++) {
		fault =
		    (struct fault){.call = call, .error = error, .for_ever = for_ever, .at = at};
		assert_true(at < CALLS_MAX);
		touched = run();
		/* What follows is much the same for neighbours, and for full and failing. */
		at += call == CALL_PUNCH ? 16 : for_ever ? 5 : error == ENOSPC ? 2 : 0;
		assert_true(touched || at > 1); /* there are such calls */
	}
}

static int setup(void **state)
{
	/* Thousands of small files: in memory where there is such a place. */
	snprintf(root, sizeof root, "%s/sanlab-faults-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(root))
		return -1;
	snprintf(place, sizeof place, "%s/store", root);
	log_set_level(LOG_LEVEL_ERROR); /* what is said of drives that are out of date */
	raid = "raid10";
	drives = 2;
	degraded = false;
	return 0;
}

static int teardown(void **state)
{
	vfs = &vfs_system;
	clear_place();
	return rmdir(root);
}

static void reads(void **state)
{
	loop_over(CALL_READ, EIO, false);
	loop_over(CALL_READ, 0, true); /* short ones */
}

static void writes(void **state)
{
	loop_over(CALL_WRITE, EIO, false);
	loop_over(CALL_WRITE, EIO, true);
	loop_over(CALL_WRITE, ENOSPC, false);
	loop_over(CALL_WRITE, ENOSPC, true);
}

static void short_writes(void **state)
{
	loop_over(CALL_WRITE, 0, false);
	loop_over(CALL_WRITE, 0, true);
}

static void syncs(void **state)
{
	loop_over(CALL_SYNC, EIO, false);
	loop_over(CALL_SYNC, EIO, true);
}

static void space(void **state)
{
	loop_over(CALL_RESIZE, ENOSPC, false);
	loop_over(CALL_PUNCH, EOPNOTSUPP, true);
	loop_over(CALL_PUNCH, EIO, false);
	loop_over(CALL_RENAME, EIO, false);
	loop_over(CALL_RENAME, EIO, true);
}

static void parity(void **state)
{
	raid = "raid5";
	drives = 3;
	loop_over(CALL_WRITE, EIO, false);
	loop_over(CALL_WRITE, ENOSPC, true);
	loop_over(CALL_SYNC, EIO, false);
}

/* What is written is all that the missing drive's content can be worked out from. */
static void parity_degraded(void **state)
{
	raid = "raid5";
	drives = 3;
	degraded = true;
	loop_over(CALL_WRITE, EIO, false);
	loop_over(CALL_WRITE, ENOSPC, true);
	loop_over(CALL_WRITE, 0, true);
}

/* Nobody has to ask: what failed half-way is done when there is space again. */
static void done_later(void **state)
{
	const struct raid_ops *ops = raid_find("raid5");
	uint8_t data[BLOCK_BYTES];
	struct err err = {0};

	raid = "raid5";
	drives = 3;
	memset(acknowledged, 0, sizeof acknowledged);
	memset(maybe, 0, sizeof maybe);
	describe();
	vfs = &faulty;
	fault = (struct fault){.call = CALL_WRITE, .error = ENOSPC, .at = UINT32_MAX};
	if (lab_open(&lab, &err))
		fail_msg("%s", err.what);
	struct member *member = group_member_at(lab.open, 0);
	assert_int_equal(submit(IO_WRITE, 0, 1), 0);
	hush(true);
	drive_set_failed(member_drive(member, 0), true);
	fault = (struct fault){.call = CALL_WRITE, .error = ENOSPC, .for_ever = true, .at = 1};
	assert_int_equal(submit(IO_WRITE, 0, 2), -EIO);
	assert_int_equal(ops->dirty_unit(member->raid, 0), 0);
	/* It is there for those who read, whatever the drives have. */
	assert_int_equal(lab_io(&lab, "a", IO_READ, place_of(0), data, sizeof data), 0);
	assert_int_equal(data[0], 2);
	assert_int_equal(loop_run_until(lab.loop, loop_now_ns(lab.loop) + 60 * NS_PER_S), 0);
	assert_int_equal(ops->dirty_unit(member->raid, 0), 0);
	fault = (struct fault){.call = CALL_WRITE, .at = UINT32_MAX};
	assert_int_equal(loop_run_until(lab.loop, loop_now_ns(lab.loop) + 120 * NS_PER_S), 0);
	hush(false);
	assert_true(ops->dirty_unit(member->raid, 0) == UINT64_MAX);
	acknowledged[0] = 2;
	verify();
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(reads, setup, teardown),
	    cmocka_unit_test_setup_teardown(writes, setup, teardown),
	    cmocka_unit_test_setup_teardown(short_writes, setup, teardown),
	    cmocka_unit_test_setup_teardown(syncs, setup, teardown),
	    cmocka_unit_test_setup_teardown(space, setup, teardown),
	    cmocka_unit_test_setup_teardown(parity, setup, teardown),
	    cmocka_unit_test_setup_teardown(parity_degraded, setup, teardown),
	    cmocka_unit_test_setup_teardown(done_later, setup, teardown),
	};
	return cmocka_run_group_tests_name("store_faults", tests, NULL, NULL);
}
