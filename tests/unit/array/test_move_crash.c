/* SPDX-License-Identifier: MIT
 *
 * Page moves of file stores, cut off at each step: the process dies before, in the middle of or
 * instead of the Nth change of a file, or that change fails.  Whatever is opened afterwards has no
 * page lost or owned twice, holds every acknowledged write, goes on with the drain and cleans what
 * was left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/rng.h"
#include "target/drive/vfs.h"
#include "tests/unit/array/lab.h"
#include "tests/unit/array/pool_check.h"
#include "tests/unit/array/rig.h"

#define P POOL_PAGE_BYTES

enum { PAGES = 3, SECTORS = 8, SECTOR = 4096, STEPS_MAX = 2000 };

static struct lab lab;
static char root[64], places[2][96];

/* What may lie in each sector, as known outside the process that dies. */
static struct known {
	uint64_t acknowledged, pending;
	bool maybe_zero; /* an UNMAP was begun and has not succeeded */
} (*known)[SECTORS];

static int *drained; /* the member whose drain has begun, likewise; -1: none */

/* ---- the Nth change ---- */

enum cut { CUT_DIES, CUT_FAILS };
static enum cut cut;
static unsigned changes_left; /* 0: none is cut */

static bool cut_here(void)
{
	if (changes_left == 0 || --changes_left > 0)
		return false;
	if (cut == CUT_DIES)
		_exit(7);
	errno = EIO;
	return true;
}

static ssize_t cut_write(int fd, const struct iovec *iov, int count, off_t at)
{
	/* Half of it arrives, as when the process dies in the middle. */
	if (changes_left == 1 && iov[0].iov_len > 1) {
		struct iovec half = {iov[0].iov_base, iov[0].iov_len / 2};
		(void)!pwritev(fd, &half, 1, at);
	}
	return cut_here() ? -1 : pwritev(fd, iov, count, at);
}

/* A process that dies keeps what it wrote. */
static int cut_sync(int fd)
{
	return cut_here() ? -1 : 0;
}

static int cut_resize(int fd, off_t size)
{
	return cut_here() ? -1 : ftruncate(fd, size);
}

static int cut_punch(int fd, off_t at, off_t size)
{
	static unsigned punches;

	/* A page that is cleaned is punched chunk by chunk: a few of them will do. */
	return punches++ % 60 == 30 && cut_here() ? -1 : vfs_system.punch(fd, at, size);
}

static int cut_rename(const char *from, const char *to)
{
	return cut_here() ? -1 : rename(from, to);
}

static struct vfs_ops ops;

static int setup(void **state)
{
	ops = vfs_system;
	ops.pwritev = cut_write;
	ops.sync = cut_sync;
	ops.resize = cut_resize;
	ops.punch = cut_punch;
	ops.rename = cut_rename;
	vfs = &ops;
	known = mmap(NULL, sizeof *known * PAGES, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(known != MAP_FAILED);
	drained =
	    mmap(NULL, sizeof *drained, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(drained != MAP_FAILED);
	*drained = -1;
	log_set_level(LOG_LEVEL_ERROR);
	return 0;
}

static int teardown(void **state)
{
	vfs = &vfs_system;
	return munmap(known, sizeof *known * PAGES) | munmap(drained, sizeof *drained);
}

/* ---- the lab ---- */

static void remove_place(const char *place)
{
	char command[160];

	snprintf(command, sizeof command, "rm -rf '%s'", place);
	assert_int_equal(system(command), 0);
}

static void open_lab(void)
{
	struct err err = {0};

	lab_init(&lab);
	for (unsigned i = 0; i < 2; i++) {
		struct member_config *member = lab_member(&lab, i ? "m2" : "m1", "raid0", 1, 5 * P);
		member->store_kind = "file";
		member->store_place = places[i];
	}
	lab_volume(&lab, "a", PAGES * P, true);
	if (lab_open(&lab, &err))
		fail_msg("%s", err.what);
}

static uint64_t place_of(unsigned page, unsigned sector)
{
	return page * P + sector * (P / SECTORS / 4096) * 4096;
}

static int write_value(unsigned page, unsigned sector, uint64_t value)
{
	uint64_t data[SECTOR / 8];
	struct known *one = &known[page][sector];

	for (size_t i = 0; i < ARRAY_SIZE(data); i++)
		data[i] = value;
	one->pending = value;
	int rc = lab_io(&lab, "a", IO_WRITE, place_of(page, sector), data, SECTOR);
	if (rc == 0) {
		one->acknowledged = value;
		one->maybe_zero = false;
	}
	return rc;
}

/* A sector is old or new, or, where the process died in the middle of a write, both. */
static void compare(void)
{
	uint64_t data[SECTOR / 8];

	for (unsigned page = 0; page < PAGES; page++)
		for (unsigned sector = 0; sector < SECTORS; sector++) {
			struct known *one = &known[page][sector];
			assert_int_equal(
			    lab_io(&lab, "a", IO_READ, place_of(page, sector), data, SECTOR), 0);
			for (size_t i = 0; i < ARRAY_SIZE(data); i++)
				if (data[i] != one->acknowledged && data[i] != one->pending &&
				    !(data[i] == 0 && one->maybe_zero))
					fail_msg("page %u sector %u: %llu, neither %llu nor %llu",
						 page, sector, (unsigned long long)data[i],
						 (unsigned long long)one->acknowledged,
						 (unsigned long long)one->pending);
		}
}

static bool is_quiet(struct pool *pool)
{
	struct pool_moves moves;

	pool_moves(pool, &moves);
	return moves.under_way == 0 && moves.planned == 0 && moves.cleaning == 0;
}

/* Drains the member with more pages under writes; ends when it is empty, or after a while. */
static void drain_under_writes(uint64_t seed)
{
	struct pool *pool = group_pool(lab.open, 0);
	bool second = pool_member(pool, 1)->used_pages > pool_member(pool, 0)->used_pages;
	struct member *member = pool_member(pool, second);
	struct drain_progress progress = {.state = DRAIN_NONE};
	struct err err = {0};
	struct rng rng;

	rng_init(&rng, seed, 1);
	if (pool_drain(pool, member, &err)) {
		if (cut != CUT_FAILS || !strstr(err.what, "cannot write the page map"))
			fail_msg("%s", err.what);
		return;
	}
	*drained = second;
	for (unsigned turn = 0; turn < 600 && progress.state != DRAIN_EMPTY; turn++) {
		if (turn % 8 == 0)
			(void)write_value((unsigned)rng_below(&rng, PAGES),
					  (unsigned)rng_below(&rng, SECTORS), rng_u64(&rng));
		if (turn % 100 == 50 && rng_below(&rng, 2)) {
			unsigned page = (unsigned)rng_below(&rng, PAGES);
			for (unsigned i = 0; i < SECTORS; i++)
				known[page][i].maybe_zero = true;
			if (lab_io(&lab, "a", IO_UNMAP, page * P, NULL, P) == 0)
				memset(known[page], 0, sizeof known[page]);
		}
		assert_int_equal(loop_turn(lab.loop, true), 0);
		pool_check(pool);
		pool_drain_progress(pool, member, &progress);
	}
	if (changes_left == 0 && cut == CUT_DIES)
		assert_true(progress.state == DRAIN_EMPTY);
}

/* In a process of its own.  True: it came to its end without being cut. */
static bool run_cut(uint64_t seed, unsigned at)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		open_lab();
		changes_left = at;
		drain_under_writes(seed);
		bool cut_off = changes_left == 0;
		lab_close(&lab);
		_exit(cut_off ? 7 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 7))
		fail_msg("step %u, seed %llu: the process ended with %d", at,
			 (unsigned long long)seed, status);
	return WEXITSTATUS(status) == 0;
}

/* What has begun has gone on. */
static void check_drains(struct pool *pool)
{
	struct err err = {0};

	for (int i = 0; i < 2; i++) {
		struct member *member = pool_member(pool, (unsigned)i);
		struct drain_progress progress;
		pool_drain_progress(pool, member, &progress);
		if (i == *drained)
			assert_int_equal(progress.state, DRAIN_EMPTY);
		assert_int_equal(progress.state, member->draining ? DRAIN_EMPTY : DRAIN_NONE);
		assert_int_equal(pool_drain_stop(pool, member, &err), 0);
	}
	*drained = -1;
}

static void check_after(void)
{
	open_lab();
	struct pool *pool = group_pool(lab.open, 0);
	pool_check(pool);
	compare();
	for (unsigned turn = 0; !is_quiet(pool); turn++) {
		assert_true(turn < 600);
		assert_int_equal(loop_turn(lab.loop, true), 0);
		pool_check(pool);
	}
	compare();
	check_drains(pool);
	/* What is acknowledged now is what is there. */
	for (unsigned page = 0; page < PAGES; page++)
		for (unsigned sector = 0; sector < SECTORS; sector++)
			assert_int_equal(write_value(page, sector, page * 100 + sector + 1), 0);
	lab_close(&lab);
}

static enum drain_state state_of(unsigned member)
{
	struct pool *pool = group_pool(lab.open, 0);
	struct drain_progress progress;

	pool_drain_progress(pool, pool_member(pool, member), &progress);
	return progress.state;
}

static void make_places(void)
{
	snprintf(root, sizeof root, "/tmp/sanlab-move-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (unsigned i = 0; i < 2; i++)
		snprintf(places[i], sizeof places[i], "%s/s%u", root, i);
	memset(known, 0, sizeof *known * PAGES);
	changes_left = 0;
}

static void drain_outlives_restart(void **state)
{
	struct err err = {0};

	make_places();
	open_lab();
	for (unsigned page = 0; page < PAGES; page++)
		assert_int_equal(write_value(page, 0, page + 1), 0);
	struct pool *pool = group_pool(lab.open, 0);
	assert_int_equal(pool_drain(pool, pool_member(pool, 0), &err), 0);
	pool_moves_pause(pool, true);
	lab_close(&lab);

	open_lab();
	pool = group_pool(lab.open, 0);
	assert_int_equal(state_of(0), DRAIN_UNDER_WAY);
	assert_int_equal(state_of(1), DRAIN_NONE);
	while (state_of(0) != DRAIN_EMPTY)
		assert_int_equal(loop_turn(lab.loop, true), 0);
	compare();
	lab_close(&lab);

	/* An empty member takes no page after the next start either, until it is told. */
	open_lab();
	pool = group_pool(lab.open, 0);
	assert_int_equal(state_of(0), DRAIN_EMPTY);
	assert_int_equal(pool_drain_stop(pool, pool_member(pool, 0), &err), 0);
	lab_close(&lab);
	open_lab();
	assert_int_equal(state_of(0), DRAIN_NONE);
	lab_close(&lab);
	remove_place(root);
}

static void at_each_step(enum cut kind, unsigned stride)
{
	unsigned at = 1;

	make_places();
	check_after();
	cut = kind;
	for (; !run_cut(at, at); at += stride) {
		assert_true(at < STEPS_MAX);
		changes_left = 0;
		check_after();
	}
	print_message("# %u steps\n", at);
	assert_true(at > 30);
	check_after();
	remove_place(root);
}

static void dies_at_each_step(void **state)
{
	at_each_step(CUT_DIES, 1);
}

static void fails_at_each_step(void **state)
{
	at_each_step(CUT_FAILS, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(drain_outlives_restart),
	    cmocka_unit_test(dies_at_each_step),
	    cmocka_unit_test(fails_at_each_step),
	};
	return cmocka_run_group_tests_name("move_crash", tests, setup, teardown);
}
