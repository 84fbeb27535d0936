/* SPDX-License-Identifier: MIT
 *
 * The file store: what was written is there after opening again, and nothing is opened that is not
 * this drive's file, whole and free.
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
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "target/drive/drive.h"

enum { SIZE_BYTES = 1 << 20, SUPER_BYTES = 8192 };

static struct loop *loop;
static char place[64];
static char path[128];
static int last_status;

static void done(struct io *io)
{
	last_status = io->status;
}

static int run(struct io_layer *store, enum io_op op, unsigned flags, uint64_t offset,
	       const struct iovec *iov, unsigned count, uint64_t length)
{
	struct io io = {
	    .op = op,
	    .flags = flags,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .iov = iov,
	    .iov_count = count,
	    .done = done,
	};
	last_status = 1;
	io_submit(store, &io);
	return last_status;
}

static int open_as(const char *name, uint64_t size, struct io_layer **ret, struct err *err)
{
	*err = (struct err){0};
	return store_file_ops.open(loop, place, name, size, ret, err);
}

static int setup(void **state)
{
	snprintf(place, sizeof place, "/tmp/sanlab-store-XXXXXX");
	if (!mkdtemp(place) || loop_new_virtual(0, &loop))
		return -1;
	snprintf(path, sizeof path, "%s/m1-drive00.drive", place);
	return 0;
}

static int teardown(void **state)
{
	loop = loop_free(loop);
	unlink(path);
	return rmdir(place);
}

static void survives_reopen(void **state)
{
	struct io_layer *store;
	struct err err;
	uint8_t out[4096], in[4096], zero[4096] = {0};
	struct iovec halves[2] = {{out, 1000}, {out + 1000, 3096}}, whole = {in, sizeof in};
	struct stat status;

	assert_false(store_file_exists(place, "m1-drive00"));
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	assert_true(store_file_exists(place, "m1-drive00"));
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (uint8_t)(i * 7);
	assert_int_equal(run(store, IO_WRITE, IO_FUA, 8192, halves, 2, 4096), 0);
	assert_int_equal(run(store, IO_WRITE, 0, SIZE_BYTES - 4096, halves, 2, 4096), 0);
	assert_int_equal(run(store, IO_FLUSH, 0, 0, NULL, 0, 0), 0);
	assert_int_equal(run(store, IO_READ, 0, SIZE_BYTES - 512, &whole, 1, 4096), -ERANGE);
	store->ops->free(store);

	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	assert_int_equal(run(store, IO_READ, 0, 8192, &whole, 1, 4096), 0);
	assert_memory_equal(in, out, 4096);
	assert_int_equal(run(store, IO_READ, 0, 0, &whole, 1, 4096), 0);
	assert_memory_equal(in, zero, 4096);
	assert_int_equal(stat(path, &status), 0);
	blkcnt_t before = status.st_blocks;
	assert_int_equal(run(store, IO_UNMAP, 0, 8192, NULL, 0, 4096), 0);
	assert_int_equal(run(store, IO_READ, 0, 8192, &whole, 1, 4096), 0);
	assert_memory_equal(in, zero, 4096);
	assert_int_equal(run(store, IO_FLUSH, 0, 0, NULL, 0, 0), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_blocks <= before);
	assert_int_equal(status.st_size, SUPER_BYTES + SIZE_BYTES);
	store->ops->free(store);
}

static void many_entries(void **state)
{
	struct io_layer *store;
	struct err err;
	static uint8_t out[200 * 512], in[200 * 512];
	struct iovec iov[200], whole = {in, sizeof in};

	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	for (unsigned i = 0; i < 200; i++) {
		memset(out + i * 512, (int)i + 1, 512);
		iov[i] = (struct iovec){out + i * 512, 512};
	}
	assert_int_equal(run(store, IO_WRITE, 0, 512, iov, 200, sizeof out), 0);
	assert_int_equal(run(store, IO_READ, 0, 512, &whole, 1, sizeof in), 0);
	assert_memory_equal(in, out, sizeof in);
	store->ops->free(store);
}

static void second_target_is_kept_out(void **state)
{
	struct io_layer *store, *second = NULL;
	struct err err;
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &second, &err), -EBUSY);
	assert_null(second);
	assert_non_null(strstr(err.what, "in use by another target"));
	assert_non_null(strstr(err.what, path));
	store->ops->free(store);
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	store->ops->free(store);
}

static void poke(off_t at, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, size, at), size);
	close(fd);
}

static void refusals(void **state)
{
	static const uint8_t zeros[SUPER_BYTES];
	struct io_layer *store = NULL;
	struct err err;
	char other[128];

	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	store->ops->free(store);
	store = NULL;

	assert_int_equal(open_as("m1-drive00", 2 * SIZE_BYTES, &store, &err), -EMEDIUMTYPE);
	assert_non_null(strstr(err.what, "the lab asks for 2097152"));

	snprintf(other, sizeof other, "%s/m2-drive00.drive", place);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(open_as("m2-drive00", SIZE_BYTES, &store, &err), -EMEDIUMTYPE);
	assert_non_null(strstr(err.what, "belongs to drive m1-drive00"));
	assert_int_equal(rename(other, path), 0);

	poke(100, "x", 1); /* torn: one byte of the superblock */
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), -EUCLEAN);
	assert_non_null(strstr(err.what, "damaged"));
	poke(100, "\0", 1);
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), 0);
	store->ops->free(store);
	store = NULL;

	assert_int_equal(truncate(path, SUPER_BYTES + SIZE_BYTES / 2), 0);
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), -EUCLEAN);
	assert_non_null(strstr(err.what, "cut short"));

	poke(0, zeros, sizeof zeros); /* foreign */
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), -EMEDIUMTYPE);
	assert_non_null(strstr(err.what, "no superblock"));
	assert_true(err.hint[0] != 0);
	assert_int_equal(truncate(path, 0), 0); /* missing altogether */
	assert_int_equal(open_as("m1-drive00", SIZE_BYTES, &store, &err), -EMEDIUMTYPE);
	assert_null(store);
}

static void bad_places(void **state)
{
	struct io_layer *store = NULL;
	struct err err = {0};
	assert_int_equal(store_file_ops.open(loop, NULL, "d", SIZE_BYTES, &store, &err), -EINVAL);
	err = (struct err){0};
	assert_int_equal(
	    store_file_ops.open(loop, "/nonexistent/dir", "d", SIZE_BYTES, &store, &err), -ENOENT);
	assert_non_null(strstr(err.what, "/nonexistent/dir"));
	assert_null(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(survives_reopen, setup, teardown),
	    cmocka_unit_test_setup_teardown(many_entries, setup, teardown),
	    cmocka_unit_test_setup_teardown(second_target_is_kept_out, setup, teardown),
	    cmocka_unit_test_setup_teardown(refusals, setup, teardown),
	    cmocka_unit_test(bad_places),
	};
	return cmocka_run_group_tests_name("store_file", tests, NULL, NULL);
}
