/* SPDX-License-Identifier: MIT
 *
 * A log alone on a device that crashes, filled with records of ascending keys, and what a reader
 * finds of them.
 */
#ifndef SANLAB_TESTS_UNIT_WORKLOAD_ESE_LOG_RIG_H
#define SANLAB_TESTS_UNIT_WORKLOAD_ESE_LOG_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/workload/ese/ese_log_read.h"
#include "tests/unit/workload/ese/crash_device.h"

#define RING_FILES 4
#define SIGNATURE  UINT64_C(0x1122334455667788)
#define BASE	   (64 * KIB)

struct fixture {
	struct loop *loop;
	struct crash_device device;
	struct ese_log_area area;
	struct ese_log *log;
	struct stream stream;
	uint64_t next_key; /* of the next record appended */
	uint64_t files_closed, last_file;
	uint64_t written_bytes;
	int down;
	/* What a reader found. */
	struct ese_log_read_result result;
	uint64_t first_key, keys; /* records first_key.. in order */
	bool ended, in_order;
	uint64_t segment_bytes;
	struct ese_log_reader *reader;
	unsigned pause_every; /* records */
};

static inline void file_closed(void *arg, uint64_t generation)
{
	struct fixture *f = arg;

	f->files_closed++;
	f->last_file = generation;
}

static inline void written(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct fixture *f = arg;
	struct ese_segment segment;

	assert_int_equal(ese_segment_parse(segments, SIGNATURE, lgpos, &segment), 0);
	f->written_bytes += bytes;
}

static inline void down(void *arg, int status)
{
	((struct fixture *)arg)->down = status;
}

static inline void open_log(struct fixture *f, uint64_t start, uint32_t epoch, uint64_t gather_ns)
{
	struct ese_log_config config = {
	    .loop = f->loop,
	    .area = f->area,
	    .start_lgpos = start,
	    .epoch = epoch,
	    .gather_ns = gather_ns,
	    .stream = &f->stream,
	    .file_closed = file_closed,
	    .written = written,
	    .down = down,
	    .arg = f,
	};

	assert_int_equal(ese_log_open(&config, &f->log, NULL), 0);
}

static inline int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_int_equal(loop_new_virtual(0, &f->loop), 0);
	crash_device_init(&f->device, f->loop, "db1", BASE + RING_FILES * MIB, 1);
	f->area = (struct ese_log_area){
	    .layer = &f->device.layer,
	    .ring_offset_bytes = BASE,
	    .files = RING_FILES,
	    .signature = SIGNATURE,
	};
	open_log(f, 0, 1, 0);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;

	ese_log_close(f->log);
	crash_device_fini(&f->device);
	loop_free(f->loop);
	free(f);
	return 0;
}

static inline struct ese_record a_record(uint64_t key, uint32_t padded_bytes)
{
	struct ese_record record = {
	    .kind = ESE_RECORD_INSERT,
	    .update_count = 1,
	    .padded_bytes = padded_bytes,
	};

	record.updates[0] = (struct ese_update){
	    .page = 100 + key % 1000,
	    .dbtime_before = key,
	    .dbtime_after = key + 1,
	    .kind = ESE_UPDATE_PUT,
	    .key = key,
	    .version = 7,
	    .bytes = 2129,
	};
	return record;
}

static inline int append(struct fixture *f, uint32_t bytes, uint64_t *ret_end)
{
	struct ese_record record = a_record(f->next_key, bytes);
	uint64_t first;
	int r = ese_log_append(f->log, &record, &first, ret_end);

	if (r == 0)
		f->next_key++;
	return r;
}

struct wait {
	struct ese_log_waiter waiter;
	struct loop *loop;
	int status; /* 1: not yet */
	uint64_t at_ns;
};

static inline void waited(struct ese_log_waiter *waiter, int status)
{
	struct wait *wait = container_of(waiter, struct wait, waiter);

	assert_int_equal(wait->status, 1);
	wait->status = status;
	wait->at_ns = loop_now_ns(wait->loop);
}

static inline void commit(struct fixture *f, struct wait *wait, uint64_t lgpos)
{
	*wait = (struct wait){.waiter.done = waited, .loop = f->loop, .status = 1};
	ese_log_commit(f->log, lgpos, &wait->waiter);
}

static inline void run_for(struct fixture *f, uint64_t ns)
{
	loop_run_until(f->loop, loop_now_ns(f->loop) + ns);
}

/* ---- reading back ---- */

static inline bool got_record(void *arg, const struct ese_record *record, uint64_t first,
			      uint64_t end)
{
	struct fixture *f = arg;
	uint64_t key = record->updates[0].key;

	assert_true(first < end);
	if (f->keys == 0)
		f->first_key = key;
	else if (key != f->first_key + f->keys)
		f->in_order = false;
	f->keys++;
	return !f->pause_every || f->keys % f->pause_every;
}

static inline void got_segments(void *arg, uint64_t lgpos, const void *bytes, uint32_t size)
{
	((struct fixture *)arg)->segment_bytes += size;
}

static inline void got_end(void *arg, const struct ese_log_read_result *result)
{
	struct fixture *f = arg;

	assert_false(f->ended);
	f->result = *result;
	f->ended = true;
}

static inline void read_log(struct fixture *f, uint64_t from, uint64_t until)
{
	struct ese_log_read_config config = {
	    .loop = f->loop,
	    .area = f->area,
	    .from_lgpos = from,
	    .until_lgpos = until,
	    .record = got_record,
	    .segments = got_segments,
	    .ended = got_end,
	    .arg = f,
	};

	f->keys = f->segment_bytes = 0;
	f->ended = false;
	f->in_order = true;
	assert_int_equal(ese_log_reader_new(&config, &f->reader, NULL), 0);
	ese_log_reader_start(f->reader);
	for (unsigned i = 0; i < 100000 && !f->ended; i++) {
		run_for(f, 10 * NS_PER_MS);
		ese_log_reader_resume(f->reader);
	}
	assert_true(f->ended);
	assert_true(f->in_order);
	f->reader = ese_log_reader_free(f->reader);
}

#endif /* SANLAB_TESTS_UNIT_WORKLOAD_ESE_LOG_RIG_H */
