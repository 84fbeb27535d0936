/* SPDX-License-Identifier: MIT
 *
 * Checksums: right content always verifies, whatever the vectors look like; one wrong bit anywhere
 * does not; the file beside the drive's outlives the process, is made anew when it is missing and
 * goes when checksums are turned off.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "target/drive/drive.h"
#include "target/drive/faults.h"
#include "target/drive/inline_io.h"
#include "target/drive/store_file.h"

enum { SECTOR = 512, DRIVE_BYTES = 2 << 20, LARGEST = 600 * 1024, VECTORS = 16 };

static char place[64];
static char sums_file[PATH_MAX], drive_file[PATH_MAX];
static struct loop *loop;
static struct drive *drive;
static struct rng rng;
static uint8_t shadow[DRIVE_BYTES], buffer[LARGEST];

static int try_open(bool in_file, bool checksums, uint64_t size, struct err *err)
{
	struct drive_config config = {
	    .name = "m1-drive00",
	    .model = drive_model_find("sas-15k-600"),
	    .size_bytes = size,
	    .store = in_file ? &store_file_ops : &store_memory_ops,
	    .store_place = in_file ? place : NULL,
	    .checksums = checksums,
	};
	drive = drive_close(drive);
	return drive_open(loop, &config, &drive, err);
}

static void open_drive(bool in_file, bool checksums)
{
	struct err err = {0};
	if (try_open(in_file, checksums, DRIVE_BYTES, &err))
		fail_msg("%s", err.what);
}

static int setup(void **state)
{
	snprintf(place, sizeof place, "/tmp/sanlab-integrity-XXXXXX");
	assert_non_null(mkdtemp(place));
	snprintf(sums_file, sizeof sums_file, "%s/m1-drive00.sums", place);
	snprintf(drive_file, sizeof drive_file, "%s/m1-drive00.drive", place);
	memset(shadow, 0, sizeof shadow);
	rng_init(&rng, 11, 0);
	return loop_new_virtual(0, &loop);
}

static int teardown(void **state)
{
	drive = drive_close(drive);
	loop = loop_free(loop);
	(void)unlink(sums_file);
	(void)unlink(drive_file);
	return rmdir(place);
}

static int run(enum io_op op, unsigned flags, uint64_t offset, uint64_t length, bool cut_up)
{
	struct iovec iov[VECTORS];
	unsigned count = 0;
	uint64_t done = 0;
	while (done < length) {
		uint64_t part = length - done;
		if (cut_up && count + 1 < VECTORS)
			part = rng_below(&rng, part + 1);
		iov[count++] = (struct iovec){buffer + done, part};
		done += part;
	}
	bool moves = op == IO_READ || op == IO_WRITE;
	struct io io = {
	    .op = op,
	    .flags = flags,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = moves ? iov : NULL,
	    .iov_count = moves ? count : 0,
	};
	return io_submit_now(&drive->layer, &io);
}

static void random_round(void)
{
	uint64_t most = rng_below(&rng, 4) ? 16 : LARGEST / SECTOR;
	uint64_t length = (1 + rng_below(&rng, most)) * SECTOR;
	uint64_t offset = rng_below(&rng, (DRIVE_BYTES - length) / SECTOR + 1) * SECTOR;
	switch (rng_below(&rng, 4)) {
	case 0:
		assert_int_equal(run(IO_UNMAP, 0, offset, length, false), 0);
		memset(shadow + offset, 0, length);
		break;
	case 1:
	case 2:
		if (rng_below(&rng, 4))
			rng_fill(&rng, buffer, length);
		else
			memset(buffer, 0, length);
		assert_int_equal(
		    run(IO_WRITE, rng_below(&rng, 8) ? 0 : IO_FUA, offset, length, true), 0);
		memcpy(shadow + offset, buffer, length);
		break;
	default:
		assert_int_equal(run(IO_READ, 0, offset, length, true), 0);
		assert_memory_equal(buffer, shadow + offset, length);
	}
}

static void read_all(void)
{
	for (uint64_t at = 0; at < DRIVE_BYTES; at += 256 * KIB) {
		assert_int_equal(run(IO_READ, 0, at, 256 * KIB, true), 0);
		assert_memory_equal(buffer, shadow + at, 256 * KIB);
	}
}

static void random_load(void **state)
{
	for (int in_file = 0; in_file < 2; in_file++) {
		memset(shadow, 0, sizeof shadow);
		open_drive(in_file, true);
		for (unsigned i = 0; i < 400; i++)
			random_round();
		assert_int_equal(run(IO_FLUSH, 0, 0, 0, false), 0);
		read_all();
	}
	/* Again after a restart. */
	open_drive(true, true);
	read_all();
	for (unsigned i = 0; i < 100; i++)
		random_round();
	open_drive(true, true);
	read_all();
}

/* Lent memory is verified as well. */
static void lent_memory(void **state)
{
	static struct io_lent lent;
	open_drive(false, true);
	rng_fill(&rng, buffer, 200 * KIB);
	assert_int_equal(run(IO_WRITE, 0, 32 * KIB, 200 * KIB, false), 0);
	assert_int_equal(io_lend(&drive->layer, 0, 256 * KIB, &lent), 0);
	assert_int_equal(iov_bytes(lent.iov, lent.count), 256 * KIB);
	io_lent_give_back(&lent);
	/* Behind the drive's back: a drive with faults does not lend. */
	struct iovec iov = {buffer, SECTOR};
	struct io io = {
	    .op = IO_WRITE,
	    .offset_bytes = 100 * KIB,
	    .length_bytes = SECTOR,
	    .iov = &iov,
	    .iov_count = 1,
	};
	assert_int_equal(io_submit_now(drive->bare_store, &io), 0);
	assert_int_equal(io_lend(&drive->layer, 0, 256 * KIB, &lent), -EILSEQ);
	io_lent_give_back(&lent);
	assert_int_equal(io_lend(&drive->layer, 0, 100 * KIB, &lent), 0);
	io_lent_give_back(&lent);
	assert_int_equal(drive_add_media_error(drive, 0, SECTOR), 0);
	assert_int_equal(io_lend(&drive->layer, 0, 4 * KIB, &lent), -EOPNOTSUPP);
}

/* Any single bit, anywhere, is found; content that moved to another place is as well. */
static void one_bit(void **state)
{
	open_drive(false, true);
	rng_fill(&rng, buffer, 64 * KIB);
	assert_int_equal(run(IO_WRITE, 0, 0, 64 * KIB, false), 0);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t sector = rng_below(&rng, 256);
		assert_int_equal(drive_corrupt(drive, sector * SECTOR, SECTOR, 1, i), 0);
		assert_int_equal(run(IO_READ, 0, 0, 128 * KIB, true), -EILSEQ);
		assert_int_equal(run(IO_READ, 0, sector * SECTOR, SECTOR, true), -EILSEQ);
		assert_int_equal(drive_undo_corruption(drive), 0);
		assert_int_equal(run(IO_READ, 0, 0, 128 * KIB, true), 0);
	}
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void sums_are_made_anew(void **state)
{
	open_drive(true, true);
	for (unsigned i = 0; i < 50; i++)
		random_round();
	drive = drive_close(drive);
	assert_true(exists(sums_file));
	assert_int_equal(unlink(sums_file), 0);
	open_drive(true, true);
	read_all();
	/* Off: what is written now has no sums, so none may be left. */
	open_drive(true, false);
	assert_false(exists(sums_file));
	for (unsigned i = 0; i < 50; i++)
		random_round();
	open_drive(true, true);
	read_all();
	/* Sums of a drive that is gone. */
	drive = drive_close(drive);
	assert_int_equal(unlink(drive_file), 0);
	memset(shadow, 0, sizeof shadow);
	open_drive(true, true);
	read_all();
}

static void foreign_sums(void **state)
{
	struct err err = {0};
	open_drive(true, true);
	drive = drive_close(drive);
	assert_int_equal(truncate(sums_file, 5000), 0);
	assert_int_equal(try_open(true, true, DRIVE_BYTES, &err), -EUCLEAN);
	assert_non_null(strstr(err.what, "m1-drive00.sums is damaged"));
	assert_int_equal(unlink(sums_file), 0);
	open_drive(true, true);
}

/* Another file in the running drive's place, as a new drive in a slot. */
static void new_file(void **state)
{
	struct store_super super = {.size_bytes = DRIVE_BYTES, .name = "m1-drive00"};
	open_drive(true, true);
	memset(buffer, 1, 8 * SECTOR);
	assert_int_equal(run(IO_WRITE, 0, 0, 8 * SECTOR, false), 0);
	assert_int_equal(store_file_make(place, &super, NULL), 0);
	assert_int_equal(store_file_insert(drive->bare_store, place, "m1-drive00", NULL), 0);
	assert_int_equal(run(IO_READ, 0, 0, 8 * SECTOR, false), -EILSEQ);
	assert_int_equal(drive_store_replaced(drive, place, NULL), 0);
	read_all();
	open_drive(true, true);
	read_all();
}

/* Content that changed while nobody looked, or a write that was killed before its sums. */
static void changed_on_disk(void **state)
{
	open_drive(true, true);
	memset(buffer, 1, 8 * SECTOR);
	assert_int_equal(run(IO_WRITE, 0, 0, 8 * SECTOR, false), 0);
	drive = drive_close(drive);
	int fd = open(drive_file, O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, STORE_DATA_AT + 3 * SECTOR), 1);
	close(fd);
	open_drive(true, true);
	assert_int_equal(run(IO_READ, 0, 0, 3 * SECTOR, false), 0);
	assert_int_equal(run(IO_READ, 0, 0, 4 * SECTOR, false), -EILSEQ);
	memset(buffer, 2, SECTOR);
	assert_int_equal(run(IO_WRITE, 0, 3 * SECTOR, SECTOR, false), 0);
	assert_int_equal(run(IO_READ, 0, 0, 8 * SECTOR, false), 0);
}

/* Sparse as the data. */
static void file_is_sparse(void **state)
{
	struct stat status;
	assert_int_equal(try_open(true, true, 64 * GIB, NULL), 0);
	memset(buffer, 1, SECTOR);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(run(IO_WRITE, 0, i * 7 * GIB, SECTOR, false), 0);
	assert_int_equal(stat(sums_file, &status), 0);
	assert_true((uint64_t)status.st_size > 64 * GIB / 128);
	assert_true(status.st_blocks * 512 < 256 * 1024);
	assert_int_equal(run(IO_UNMAP, 0, 0, 64 * GIB, false), 0);
	assert_int_equal(run(IO_READ, 0, 7 * GIB, SECTOR, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(random_load, setup, teardown),
	    cmocka_unit_test_setup_teardown(lent_memory, setup, teardown),
	    cmocka_unit_test_setup_teardown(one_bit, setup, teardown),
	    cmocka_unit_test_setup_teardown(sums_are_made_anew, setup, teardown),
	    cmocka_unit_test_setup_teardown(foreign_sums, setup, teardown),
	    cmocka_unit_test_setup_teardown(new_file, setup, teardown),
	    cmocka_unit_test_setup_teardown(changed_on_disk, setup, teardown),
	    cmocka_unit_test_setup_teardown(file_is_sparse, setup, teardown),
	};
	return cmocka_run_group_tests_name("integrity", tests, NULL, NULL);
}
