/* SPDX-License-Identifier: MIT
 *
 * The recorder: what it writes our reader reads back, it changes nothing on its way, and a disk
 * that is full or slow is told and disturbs nobody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs these before it */
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/loop.h"
#include "harness/trace/recorder.h"
#include "tests/unit/trace/trace_text.h"

struct below {
	struct io_layer layer;
	uint64_t passed;
	struct io last;
};

static void below_submit(struct io_layer *layer, struct io *io)
{
	struct below *below = container_of(layer, struct below, layer);

	below->passed++;
	below->last = *io;
	io_complete(io, 0);
}

static const struct io_layer_ops below_ops = {.name = "below", .submit = below_submit};

static void io_done(struct io *io)
{
	(*(unsigned *)io->owner)++;
}

struct rig {
	struct loop *loop;
	struct recorder *recorder;
	struct below below;
	struct io_layer *layer;
	unsigned done;
	char path[64];
};

static void open_rig(struct rig *rig, const char *file)
{
	*rig = (struct rig){.below = {.layer = {.ops = &below_ops, .size_bytes = GIB}}};
	assert_int_equal(loop_new_virtual(0, &rig->loop), 0);
	assert_int_equal(recorder_open(file, rig->loop, &rig->recorder, NULL), 0);
	rig->layer = recorder_wrap(rig->recorder, &rig->below.layer, "mbx1", "db1");
	assert_non_null(rig->layer);
	assert_int_equal(rig->layer->size_bytes, GIB);
}

static void close_rig(struct rig *rig)
{
	recorder_close(rig->recorder);
	loop_free(rig->loop);
}

static void send(struct rig *rig, enum io_op op, uint64_t offset, uint64_t length, unsigned flags)
{
	struct io io = {
	    .op = op,
	    .flags = flags,
	    .offset_bytes = offset,
	    .length_bytes = length,
	    .done = io_done,
	    .owner = &rig->done,
	};

	io_submit(rig->layer, &io);
	assert_int_equal(rig->below.last.op, op);
	assert_int_equal(rig->below.last.flags, flags);
	assert_int_equal(rig->below.last.offset_bytes, offset);
}

static void five_ios(struct rig *rig)
{
	send(rig, IO_WRITE, 999, 512, 0); /* before the start: not recorded */
	loop_run_until(rig->loop, NS_PER_MS);
	recorder_start(rig->recorder);
	send(rig, IO_READ, 4096, 8192, 0);
	loop_run_until(rig->loop, NS_PER_MS + 250 * NS_PER_US);
	send(rig, IO_WRITE, 0, 512, IO_FUA);
	send(rig, IO_WRITE, 512, 512, 0);
	loop_run_until(rig->loop, 3 * NS_PER_S);
	send(rig, IO_FLUSH, 0, 0, 0);
	send(rig, IO_UNMAP, MIB, MIB, 0);
	recorder_stop(rig->recorder);
	send(rig, IO_READ, 0, 512, 0);
	assert_int_equal(rig->done, 7);
	assert_int_equal(rig->below.passed, 7);
}

static void test_round_trip(void **state)
{
	static const char *const names[] = {"", ".gz"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char file[80], out[1000];
		const char *files[] = {file};
		struct trace_options options = {.files = files, .file_count = 1};
		struct recorder_result result;
		struct rig rig;

		trace_text_file("", 0, false, rig.path);
		snprintf(file, sizeof file, "%s%s", rig.path, names[i]);
		unlink(rig.path);
		open_rig(&rig, file);
		five_ios(&rig);
		recorder_finish(rig.recorder, &result);
		assert_int_equal(result.ios, 5);
		assert_int_equal(result.lost, 0);
		assert_int_equal(result.status, 0);
		assert_string_equal(result.file, file);
		send(&rig, IO_READ, 0, 512, 0); /* it still passes I/O on */
		trace_text_read(&options, out, sizeof out);
		assert_string_equal(out, "1000+? mbx1.db1 read 4096+8192\n"
					 "250000+? mbx1.db1 write 0+512 fua\n"
					 "250000+? mbx1.db1 write 512+512\n"
					 "2999000000+? mbx1.db1 flush 0+0\n"
					 "2999000000+? mbx1.db1 trim 1048576+1048576\n");
		close_rig(&rig);
		unlink(file);
	}
}

/* Many times the buffers. */
static void test_long(void **state)
{
	enum { IOS = 400000 };
	struct recorder_result result;
	struct stat st;
	struct rig rig;
	char path[64];

	trace_text_file("", 0, false, path);
	open_rig(&rig, path);
	recorder_start(rig.recorder);
	for (unsigned i = 0; i < IOS; i++)
		send(&rig, IO_READ, 4096ULL * i, 4096, 0);
	recorder_finish(rig.recorder, &result);
	assert_int_equal(result.ios, IOS);
	assert_int_equal(result.lost, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > IOS * 25);
	close_rig(&rig);
	unlink(path);
}

static void test_full_disk(void **state)
{
	struct recorder_result result;
	struct rig rig;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		skip();
	close(fd);
	open_rig(&rig, "/dev/full");
	recorder_start(rig.recorder);
	for (unsigned i = 0; i < 40000; i++)
		send(&rig, IO_READ, 0, 4096, 0);
	assert_int_equal(rig.done, 40000);
	recorder_finish(rig.recorder, &result);
	assert_int_equal(result.status, -ENOSPC);
	close_rig(&rig);
}

static void test_refused(void **state)
{
	struct recorder *recorder = NULL;
	struct err err = {0};

	assert_int_equal(recorder_open("/nowhere/x.fio", NULL, &recorder, &err), -ENOENT);
	assert_string_equal(err.what,
			    "cannot record into '/nowhere/x.fio': No such file or directory");
	assert_null(recorder_close(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_full_disk),
	    cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
