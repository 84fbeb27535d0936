/* SPDX-License-Identifier: MIT
 *
 * Groups on file stores: what was acknowledged is there after an orderly end and after kill -9;
 * drives that missed writes stay out; files that do not belong together are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
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
#include "target/array/member.h"
#include "tests/unit/array/lab.h"

#define P POOL_PAGE_BYTES

enum { RECORD = 32, HEADER = 4096, BLOCK = 4096, DRIVES = 4 };

static struct lab lab;
static char root[64], place[80];

static void describe(bool with_b)
{
	lab_init(&lab);
	struct member_config *member = lab_member(&lab, "m1", "raid5", DRIVES, 64 * MIB);
	member->store_kind = "file";
	member->store_place = place;
	lab_volume(&lab, "a", 6 * P, true);
	if (with_b)
		lab_volume(&lab, "b", 3 * P, true);
}

static int setup(void **state)
{
	snprintf(root, sizeof root, "/tmp/sanlab-group-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(place, sizeof place, "%s/store", root);
	describe(true);
	return 0;
}

static char *file(const char *name)
{
	static char path[160];
	snprintf(path, sizeof path, "%s/%s", place, name);
	return path;
}

static char *drive_file(unsigned index)
{
	char name[40];
	snprintf(name, sizeof name, "m1-drive%02u.drive", index);
	return file(name);
}

static int teardown(void **state)
{
	DIR *dir = opendir(place);
	for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(place);
	return rmdir(root);
}

static void write_at(const char *volume, uint64_t offset, uint8_t value)
{
	uint8_t data[4096];
	memset(data, value, sizeof data);
	assert_int_equal(lab_io(&lab, volume, IO_WRITE, offset, data, sizeof data), 0);
}

static void expect_at(const char *volume, uint64_t offset, uint8_t value)
{
	uint8_t data[4096], wanted[4096];
	memset(wanted, value, sizeof wanted);
	assert_int_equal(lab_io(&lab, volume, IO_READ, offset, data, sizeof data), 0);
	assert_memory_equal(data, wanted, sizeof data);
}

static uint64_t allocated(const char *volume)
{
	return volume_allocated_bytes(group_find_volume(lab.open, volume));
}

static void orderly_end(void **state)
{
	lab_opens(&lab);
	write_at("a", 0, 1);
	write_at("b", P, 2);
	write_at("a", 5 * P - 2048, 3);
	write_at("a", 3 * P, 4);
	assert_int_equal(lab_io(&lab, "a", IO_UNMAP, 3 * P, NULL, P), 0);
	assert_int_equal(lab_io(&lab, "a", IO_FLUSH, 0, NULL, 0), 0);
	lab_close(&lab);

	lab_opens(&lab);
	assert_int_equal(allocated("a"), 3 * P);
	assert_int_equal(allocated("b"), P);
	expect_at("a", 0, 1);
	expect_at("b", P, 2);
	expect_at("a", 5 * P - 2048, 3);
	expect_at("a", 3 * P, 0);
	expect_at("b", 0, 0);
	write_at("b", 0, 5); /* may take the page that came back */
	expect_at("b", 4096, 0);
	lab_close(&lab);

	/* Without volume b its pages wait for it; a does not get them. */
	describe(false);
	lab_opens(&lab);
	assert_int_equal(group_member_at(lab.open, 0)->used_pages, 5);
	for (uint64_t page = 0; page < 6; page++)
		write_at("a", page * P + 65536, 6);
	lab_close(&lab);
	describe(true);
	lab_opens(&lab);
	expect_at("b", 0, 5);
	expect_at("b", P, 2);
	expect_at("a", 0, 1);
	lab_close(&lab);
}

/* The child acknowledges through the pipe, then is killed without any goodbye. */
static void writer(int acknowledge)
{
	struct err err = {0};
	char number = 0;
	if (lab_open(&lab, &err))
		_exit(1);
	for (;; number++) {
		write_at("a", (uint64_t)(number % 6) * P + (uint64_t)number * 4096,
			 (uint8_t)(number + 1));
		if (number == 3 && lab_io(&lab, "a", IO_UNMAP, 0, NULL, P)) /* page 0 goes */
			_exit(1);
		if (write(acknowledge, &number, 1) != 1)
			_exit(1);
		if (number == 100)
			break;
	}
	for (;;)
		pause();
}

static void kill_nine(void **state)
{
	int pipes[2], status;
	char number = -1;

	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		writer(pipes[1]);
	}
	close(pipes[1]);
	while (number < 20 && read(pipes[0], &number, 1) == 1)
		;
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	while (read(pipes[0], &number, 1) == 1) /* acknowledged before it died */
		;
	close(pipes[0]);
	assert_true(number >= 20);

	lab_opens(&lab);
	for (char i = 0; i <= number; i++)
		expect_at("a", (uint64_t)(i % 6) * P + (uint64_t)i * 4096,
			  i == 0 ? 0 : (uint8_t)(i + 1));
	lab_close(&lab);
}

static void stale_drive_stays_out(void **state)
{
	lab_opens(&lab);
	write_at("a", 0, 1);
	drive_set_failed(member_drive(group_member_at(lab.open, 0), 0), true);
	for (uint64_t i = 0; i < 64; i++)
		write_at("a", i * 65536, (uint8_t)(i + 7));
	assert_false(member_drive_is_good(group_member_at(lab.open, 0), 0));
	lab_close(&lab);

	lab_opens(&lab); /* all files are there, but one is out of date */
	assert_false(member_drive(group_member_at(lab.open, 0), 0)->failed);
	assert_false(member_drive_is_good(group_member_at(lab.open, 0), 0));
	assert_true(member_drive_is_good(group_member_at(lab.open, 0), 1));
	for (uint64_t i = 0; i < 64; i++)
		expect_at("a", i * 65536, (uint8_t)(i + 7));
	lab_close(&lab);
}

static void second_target(void **state)
{
	struct err err = {0};
	struct group *second = NULL;
	lab_opens(&lab);
	assert_int_equal(group_open(lab.loop, &lab.group, "test", 1, &second, &err), -EBUSY);
	assert_null(second);
	assert_non_null(strstr(err.what, "in use by another target"));
	lab_close(&lab);
}

static void poke(const char *path, off_t at, uint8_t flip)
{
	uint8_t byte;
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= flip;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static off_t size_of(const char *path)
{
	struct stat status;
	assert_int_equal(stat(path, &status), 0);
	return status.st_size;
}

static void damaged_map(void **state)
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) { /* it does not come to an orderly end, whose record would be the last */
		lab_opens(&lab);
		for (uint64_t page = 0; page < 5; page++)
			write_at("a", page * P, (uint8_t)(page + 1));
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	const char *map = file("m1.pagemap");
	assert_int_equal(size_of(map), HEADER + BLOCK); /* start, ready, and five pages */

	poke(map, HEADER + 3 * RECORD + 20, 1);
	lab_refuses(&lab, -EUCLEAN, "damaged at record 3");
	poke(map, HEADER + 3 * RECORD + 20, 1);

	poke(map, 60, 1);
	lab_refuses(&lab, -EUCLEAN, "header");
	poke(map, 60, 1);

	/* A torn append: the last record is cut off, which loses an unacknowledged page only. */
	poke(map, HEADER + 6 * RECORD + 20, 1);
	lab_opens(&lab);
	assert_int_equal(allocated("a"), 4 * P);
	expect_at("a", 3 * P, 4);
	lab_close(&lab);
	lab_opens(&lab); /* a new record is in its place */
	assert_int_equal(allocated("a"), 4 * P);
	lab_close(&lab);

	/* What no crash leaves: a file that ends elsewhere. */
	for (off_t size = HEADER + BLOCK - 1; size > 0; size = size * 2 / 3) {
		struct err err = {0};
		assert_int_equal(truncate(map, size), 0);
		assert_true(lab_open(&lab, &err) < 0);
		if (size > HEADER)
			assert_non_null(strstr(err.what, "cut short"));
	}
}

/* A file that was cut at the end of a block has no empty record: it is not taken for whole. */
static void cut_at_a_block(void **state)
{
	struct member_shape shape = {"m1", "raid5", DRIVES, 0, 64 * KIB, 64 * MIB};
	struct page_journal *journal;
	struct err err = {0};

	assert_int_equal(page_journal_open(place, &shape, 500, &journal, NULL), 0);
	const char *map = file("m1.pagemap");
	for (uint32_t i = 0; i < 400; i++) {
		assert_int_equal(page_journal_take(journal, i, 77, i), 0);
		assert_int_equal(size_of(map) % BLOCK, 0);
		assert_true(size_of(map) > HEADER + (off_t)(i + 1) * RECORD);
	}
	page_journal_close(journal);
	for (unsigned blocks = 3; blocks > 0; blocks--) {
		assert_int_equal(truncate(map, HEADER + blocks * BLOCK), 0);
		err = (struct err){0};
		assert_int_equal(page_journal_open(place, &shape, 500, &journal, &err), -EUCLEAN);
		assert_non_null(strstr(err.what, "cut short"));
	}
}

static void not_a_map(void **state)
{
	lab_opens(&lab);
	lab_close(&lab);
	const char *map = file("m1.pagemap");
	poke(map, 0, 0xff);
	lab_refuses(&lab, -EMEDIUMTYPE, "not a page map");
}

static void wrong_shape(void **state)
{
	lab_opens(&lab);
	lab_close(&lab);
	lab.members[0].raid = 0;
	lab_refuses(&lab, -EMEDIUMTYPE, "raid5 over 4 drives");
	describe(true);
	lab.members[0].chunk_bytes = 128 * KIB;
	lab_refuses(&lab, -EMEDIUMTYPE, "another shape");
	describe(true);
	lab_opens(&lab);
	lab_close(&lab);
}

static void lost_files(void **state)
{
	char kept[160], away[160];
	lab_opens(&lab);
	lab_close(&lab);
	snprintf(away, sizeof away, "%s/away", root);

	snprintf(kept, sizeof kept, "%s", file("m1.pagemap"));
	assert_int_equal(rename(kept, away), 0);
	lab_refuses(&lab, -ENOENT, "m1.pagemap is missing");
	assert_int_equal(rename(away, kept), 0);
	lab_opens(&lab);
	lab_close(&lab);
}

/* A target that died while it made its files goes on making them. */
static void half_made(void **state)
{
	lab_opens(&lab);
	lab_close(&lab);
	/* As it is before the first commit: no drive has been used. */
	unlink(file("m1.pool"));
	unlink(file("m1-raid.nvram"));
	unlink(file("m1.pagemap"));
	unlink(drive_file(2));
	unlink(drive_file(3));
	lab_refuses(&lab, -ENOENT,
		    "m1.pagemap is missing"); /* files without any record of whose they are */
	unlink(drive_file(0));
	unlink(drive_file(1));
	lab_opens(&lab);
	write_at("a", 0, 9);
	lab_close(&lab);
	lab_opens(&lab);
	expect_at("a", 0, 9);
	lab_close(&lab);
}

static void history_is_rewritten(void **state)
{
	struct member_shape shape = {"m1", "raid5", DRIVES, 0, 64 * KIB, 64 * MIB};
	struct page_journal *journal;
	assert_int_equal(page_journal_open(place, &shape, 12, &journal, NULL), 0);
	assert_int_equal(page_journal_set_ready(journal), 0);
	assert_int_equal(page_journal_stale(journal, 3), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(page_journal_take(journal, i % 12, 77, i), 0);
		if (i < 995)
			assert_int_equal(page_journal_give(journal, i % 12), 0);
	}
	assert_int_equal(page_journal_take(journal, 12, 77, 0), -EUCLEAN); /* beyond the member */
	page_journal_close(journal);
	const char *map = file("m1.pagemap");
	off_t before = size_of(map);
	assert_int_equal(page_journal_open(place, &shape, 12, &journal, NULL), 0);
	assert_true(before > HEADER + 1900 * RECORD);
	assert_int_equal(size_of(map), HEADER + BLOCK);
	page_journal_close(journal);
	assert_int_equal(page_journal_open(place, &shape, 12, &journal, NULL), 0);
	assert_true(page_journal_is_ready(journal));
	assert_int_equal(page_journal_stale_mask(journal), 1 << 3);
	for (uint32_t i = 995; i < 1000; i++) {
		struct page_owner owner = page_journal_owner(journal, i % 12);
		assert_true(owner.used);
		assert_int_equal(owner.volume, 77);
		assert_int_equal(owner.page, i);
	}
	assert_false(page_journal_owner(journal, 5).used);
	page_journal_close(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(orderly_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(kill_nine, setup, teardown),
	    cmocka_unit_test_setup_teardown(stale_drive_stays_out, setup, teardown),
	    cmocka_unit_test_setup_teardown(second_target, setup, teardown),
	    cmocka_unit_test_setup_teardown(damaged_map, setup, teardown),
	    cmocka_unit_test_setup_teardown(cut_at_a_block, setup, teardown),
	    cmocka_unit_test_setup_teardown(not_a_map, setup, teardown),
	    cmocka_unit_test_setup_teardown(wrong_shape, setup, teardown),
	    cmocka_unit_test_setup_teardown(lost_files, setup, teardown),
	    cmocka_unit_test_setup_teardown(half_made, setup, teardown),
	    cmocka_unit_test_setup_teardown(history_is_rewritten, setup, teardown),
	};
	return cmocka_run_group_tests_name("group_file", tests, NULL, NULL);
}
