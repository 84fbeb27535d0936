/* SPDX-License-Identifier: MIT
 *
 * The log: records, commits, the ring, and what a reader finds of it after all kinds of ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hist.h"
#include "harness/workload/ese/ese_checkpoint.h"
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

static void file_closed(void *arg, uint64_t generation)
{
	struct fixture *f = arg;

	f->files_closed++;
	f->last_file = generation;
}

static void written(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	struct fixture *f = arg;
	struct ese_segment segment;

	assert_int_equal(ese_segment_parse(segments, SIGNATURE, lgpos, &segment), 0);
	f->written_bytes += bytes;
}

static void down(void *arg, int status)
{
	((struct fixture *)arg)->down = status;
}

static void open_log(struct fixture *f, uint64_t start, uint32_t epoch, uint64_t gather_ns)
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

static int setup(void **state)
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

static int teardown(void **state)
{
	struct fixture *f = *state;

	ese_log_close(f->log);
	crash_device_fini(&f->device);
	loop_free(f->loop);
	free(f);
	return 0;
}

static struct ese_record a_record(uint64_t key, uint32_t padded_bytes)
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

static int append(struct fixture *f, uint32_t bytes, uint64_t *ret_end)
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

static void waited(struct ese_log_waiter *waiter, int status)
{
	struct wait *wait = container_of(waiter, struct wait, waiter);

	assert_int_equal(wait->status, 1);
	wait->status = status;
	wait->at_ns = loop_now_ns(wait->loop);
}

static void commit(struct fixture *f, struct wait *wait, uint64_t lgpos)
{
	*wait = (struct wait){.waiter.done = waited, .loop = f->loop, .status = 1};
	ese_log_commit(f->log, lgpos, &wait->waiter);
}

static void run_for(struct fixture *f, uint64_t ns)
{
	loop_run_until(f->loop, loop_now_ns(f->loop) + ns);
}

/* ---- reading back ---- */

static bool got_record(void *arg, const struct ese_record *record, uint64_t first, uint64_t end)
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

static void got_segments(void *arg, uint64_t lgpos, const void *bytes, uint32_t size)
{
	((struct fixture *)arg)->segment_bytes += size;
}

static void got_end(void *arg, const struct ese_log_read_result *result)
{
	struct fixture *f = arg;

	assert_false(f->ended);
	f->result = *result;
	f->ended = true;
}

static void read_log(struct fixture *f, uint64_t from, uint64_t until)
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

/* ---- records ---- */

static void codes_and_decodes(void **state)
{
	static uint8_t buf[ESE_RECORD_MAX];
	static struct ese_slots slots;
	struct ese_slot moved[3] = {{.key = 5, .version = 1, .bytes = 2129},
				    {.key = 9, .version = 2, .bytes = 100},
				    {.key = 11, .child = UINT64_C(0x123456789abc)}};
	struct ese_record record = {.kind = ESE_RECORD_SPLIT, .update_count = 3}, back;
	uint32_t coded, bytes, peeked;

	record.updates[0] = (struct ese_update){.page = 1,
						.dbtime_before = 2,
						.dbtime_after = 3,
						.kind = ESE_UPDATE_CUT,
						.key = 4,
						.target = 5};
	record.updates[1] = (struct ese_update){.page = 5,
						.dbtime_after = 3,
						.kind = ESE_UPDATE_IMAGE,
						.level = 2,
						.previous = 1,
						.next = 8,
						.base_first = 77,
						.base_count = 66,
						.slot_count = 3,
						.slots = moved};
	record.updates[2] = (struct ese_update){.page = 9,
						.dbtime_before = UINT64_MAX - 1,
						.dbtime_after = UINT64_MAX,
						.kind = ESE_UPDATE_PUT,
						.key = UINT64_MAX,
						.version = UINT32_MAX,
						.bytes = 3};
	coded = ese_record_encode(&record, buf);
	assert_int_equal(coded, ese_record_bytes(&record));
	assert_int_equal(ese_record_peek(buf, &bytes, &peeked), 0);
	assert_int_equal(bytes, coded);
	assert_int_equal(peeked, coded);
	assert_int_equal(ese_record_decode(buf, coded, &back, &slots), 0);
	assert_int_equal(back.update_count, 3);
	assert_memory_equal(back.updates[1].slots, moved, sizeof moved);
	for (unsigned i = 0; i < 3; i++) {
		back.updates[i].slots = record.updates[i].slots;
		assert_memory_equal(&back.updates[i], &record.updates[i], sizeof back.updates[i]);
	}
	/* Nothing shorter or longer is one, and no byte makes the decoder read beyond it. */
	for (uint32_t size = 0; size < coded; size++)
		assert_int_equal(ese_record_decode(buf, size, &back, &slots), -EBADMSG);
	for (uint32_t at = 0; at < coded; at++) {
		uint8_t *copy = malloc(coded);

		memcpy(copy, buf, coded);
		copy[at] ^= 0xff;
		ese_record_decode(copy, coded, &back, &slots);
		free(copy);
	}
	record.padded_bytes = 7600;
	assert_int_equal(ese_record_bytes(&record), 7600);
}

/* ---- commits ---- */

static void durable_commit_is_on_the_device(void **state)
{
	struct fixture *f = *state;
	struct wait wait;
	uint64_t end;

	assert_int_equal(append(f, 7600, &end), 0);
	commit(f, &wait, end);
	assert_int_equal(wait.status, 1);
	run_for(f, 2 * NS_PER_MS);
	assert_int_equal(wait.status, 0);
	assert_int_equal(wait.at_ns, NS_PER_MS);
	assert_true(ese_log_flushed(f->log) >= end);
	/* 7,600 B are two segments' worth. */
	assert_int_equal(ese_log_counters(f->log)->write_bytes, 2 * ESE_SEGMENT_BYTES);
	assert_int_equal(f->stream.total.ios, 1);
	read_log(f, MIB, 0);
	assert_int_equal(f->keys, 1);
	assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
	assert_int_equal(f->result.next_lgpos, MIB + 2 * ESE_SEGMENT_BYTES);
}

static void commits_share_a_write(void **state)
{
	struct fixture *f = *state;
	struct wait waits[10];
	uint64_t end;

	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(append(f, 1200, &end), 0);
		commit(f, &waits[i], end);
	}
	run_for(f, 5 * NS_PER_MS);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(waits[i].status, 0);
	/* The first had a write of its own, the nine that came meanwhile one together. */
	assert_int_equal(ese_log_counters(f->log)->writes, 2);
	assert_int_equal(waits[9].at_ns, 2 * NS_PER_MS);
	assert_int_equal(f->written_bytes, ese_log_counters(f->log)->write_bytes);
}

static void gathering_shares_the_first_too(void **state)
{
	struct fixture *f = *state;
	struct wait waits[2];
	uint64_t end;

	f->log = ese_log_close(f->log);
	open_log(f, MIB, 1, 10 * NS_PER_MS);
	for (unsigned i = 0; i < 2; i++) {
		append(f, 1200, &end);
		commit(f, &waits[i], end);
		run_for(f, 5 * NS_PER_MS);
	}
	run_for(f, 6 * NS_PER_MS);
	assert_int_equal(waits[0].status, 0);
	assert_int_equal(waits[1].status, 0);
	assert_int_equal(ese_log_counters(f->log)->writes, 1);
	assert_int_equal(waits[1].at_ns, 11 * NS_PER_MS);
}

static void lazy_commit_is_written_within_its_bound(void **state)
{
	struct fixture *f = *state;
	uint64_t end;

	append(f, 1200, &end);
	ese_log_commit(f->log, end, NULL);
	run_for(f, ESE_LAZY_FLUSH_NS - 1);
	assert_true(ese_log_flushed(f->log) < end);
	run_for(f, NS_PER_MS + 1);
	assert_true(ese_log_flushed(f->log) >= end);
	assert_int_equal(ese_log_counters(f->log)->flushes_lazy, 1);
	/* Nothing more to do: nothing more is written. */
	run_for(f, 10 * ESE_LAZY_FLUSH_NS);
	assert_int_equal(ese_log_counters(f->log)->writes, 1);
	append(f, 1200, &end);
	run_for(f, ESE_LAZY_FLUSH_NS + NS_PER_MS);
	assert_true(ese_log_flushed(f->log) >= end);
}

static void half_a_buffer_is_written(void **state)
{
	struct fixture *f = *state;
	uint64_t end = 0;

	while (ese_log_tip(f->log) < MIB + ESE_LOG_BUFFER_BYTES / 2 + 7600)
		assert_int_equal(append(f, 7600, &end), 0);
	run_for(f, 5 * NS_PER_MS);
	assert_int_equal(ese_log_counters(f->log)->flushes_capacity, 1);
	assert_int_equal(ese_log_counters(f->log)->writes, 3); /* 256 KiB at most each */
	assert_true(ese_log_flushed(f->log) >= MIB + ESE_LOG_BUFFER_BYTES / 2 - ESE_SEGMENT_BYTES);
	assert_true(ese_log_flushed(f->log) <= end);
}

/* ---- the ring ---- */

static void ring_is_not_overwritten(void **state)
{
	struct fixture *f = *state;
	struct wait room = {.waiter.done = waited, .loop = f->loop, .status = 1};
	uint64_t end = 0, first_end = 0;

	for (;;) {
		int r = append(f, 7600, &end);

		if (!first_end)
			first_end = end;
		if (r == -EAGAIN && ese_log_counters(f->log)->waits_ring)
			break;
		run_for(f, 2 * NS_PER_MS);
	}
	assert_true(end <= MIB + RING_FILES * MIB);
	assert_true(end > MIB + RING_FILES * MIB - 3 * 7600);
	ese_log_wait_room(f->log, &room.waiter);
	run_for(f, 2 * ESE_LAZY_FLUSH_NS);
	assert_int_equal(room.status, 1);
	ese_log_hold(f->log, 3, MIB);
	ese_log_checkpoint_at(f->log, 2 * MIB + 100);
	assert_int_equal(room.status, 1); /* somebody still reads the first file */
	ese_log_hold(f->log, 3, UINT64_MAX);
	assert_int_equal(room.status, 0);
	assert_int_equal(append(f, 7600, &end), 0);
	read_log(f, MIB, 0);
	assert_int_equal(f->first_key, 0);
	assert_int_equal(f->keys, f->next_key - 1);
}

static void many_rounds_read_back(void **state)
{
	struct fixture *f = *state;
	struct rng rng;
	uint64_t end = 0, last_durable = 0, key_at[64] = {0};

	rng_init(&rng, 42, 0);
	while (end < 40 * MIB) {
		struct wait wait;
		uint64_t first = ese_log_tip(f->log), needed;

		if (append(f, 200 + (uint32_t)rng_below(&rng, 20000), &end) == 0 &&
		    !key_at[first / MIB])
			key_at[first / MIB] = f->next_key - 1;
		if (rng_below(&rng, 3) == 0) {
			commit(f, &wait, end);
			run_for(f, 3 * NS_PER_MS);
			assert_int_equal(wait.status, 0);
			last_durable = end;
		}
		needed = end / MIB > 3 ? (end / MIB - 2) * MIB : MIB;
		ese_log_checkpoint_at(f->log, needed);
	}
	run_for(f, 2 * ESE_LAZY_FLUSH_NS);
	assert_true(last_durable > 0);
	assert_int_equal(f->files_closed, f->last_file);
	for (unsigned pause = 0; pause < 3; pause++) {
		uint64_t from = (end / MIB - 2) * MIB;

		f->pause_every = pause;
		read_log(f, from, 0);
		assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
		/* The first record that begins in the file, up to the last one of all. */
		assert_int_equal(f->first_key, key_at[from / MIB]);
		assert_int_equal(f->first_key + f->keys, f->next_key);
		assert_int_equal(f->result.end_lgpos, end);
	}
	/* One closed file for a copy. */
	read_log(f, (end / MIB - 1) * MIB, end / MIB * MIB);
	assert_int_equal(f->result.end, ESE_LOG_END_UNTIL);
	assert_int_equal(f->segment_bytes, MIB);
	assert_int_equal(f->result.reads, 4);
}

/* ---- faults ---- */

static void flip(struct fixture *f, uint64_t lgpos)
{
	f->device.memory[ese_log_offset(&f->area, lgpos) + 2000] ^= 1;
}

static void damage_is_not_an_end(void **state)
{
	struct fixture *f = *state;
	struct wait wait;
	uint64_t end;

	for (unsigned i = 0; i < 20; i++) {
		append(f, 7600, &end);
		commit(f, &wait, end);
		run_for(f, 2 * NS_PER_MS);
	}
	flip(f, MIB + 5 * ESE_SEGMENT_BYTES);
	read_log(f, MIB, 0);
	assert_int_equal(f->result.end, ESE_LOG_END_CORRUPT);
	assert_int_equal(f->result.status, -EBADMSG);
	assert_int_equal(f->keys, 2);
	assert_int_equal(f->result.next_lgpos, MIB + 5 * ESE_SEGMENT_BYTES);
	flip(f, MIB + 5 * ESE_SEGMENT_BYTES);
	/* In the last write it cannot be told from one that was torn. */
	flip(f, (end & ~(uint64_t)4095) - ESE_SEGMENT_BYTES);
	read_log(f, MIB, 0);
	assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
	assert_int_equal(f->keys, 19);
}

/* What a torn write left behind the end is not taken for what comes after it. */
static void torn_tail_stays_dead(void **state)
{
	struct fixture *f = *state;
	struct wait wait;
	uint64_t end, next;

	for (unsigned i = 0; i < 8; i++)
		append(f, 7600, &end);
	commit(f, &wait, end);
	run_for(f, 2 * NS_PER_MS);
	assert_int_equal(wait.status, 0);
	f->log = ese_log_close(f->log);
	flip(f, MIB + 4 * ESE_SEGMENT_BYTES);
	read_log(f, MIB, 0);
	assert_int_equal(f->keys, 2);
	assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
	assert_int_equal(f->result.epoch, 1);
	next = f->result.next_lgpos;
	open_log(f, next, f->result.epoch + 1, 0);
	f->next_key = 2;
	append(f, 100, &end);
	commit(f, &wait, end);
	run_for(f, 2 * NS_PER_MS);
	read_log(f, MIB, 0);
	assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
	assert_int_equal(f->keys, 3);
	assert_int_equal(f->result.epoch, 2);
	assert_int_equal(f->result.next_lgpos, next + ESE_SEGMENT_BYTES);
}

static void failing_writes_are_tried_again(void **state)
{
	struct fixture *f = *state;
	struct wait wait, dead;
	uint64_t end;

	f->device.fail_writes = 5;
	append(f, 7600, &end);
	commit(f, &wait, end);
	run_for(f, NS_PER_S);
	assert_int_equal(wait.status, 0);
	assert_int_equal(ese_log_counters(f->log)->errors, 5);
	assert_int_equal(f->down, 0);
	/* ... but not for ever. */
	f->device.fail_writes = UINT32_MAX;
	append(f, 7600, &end);
	commit(f, &dead, end);
	run_for(f, ESE_LOG_RETRY_NS + NS_PER_S);
	assert_int_equal(dead.status, -EIO);
	assert_int_equal(f->down, -EIO);
	assert_int_equal(append(f, 7600, &end), -EIO);
	assert_int_equal(ese_log_status(f->log), -EIO);
}

static void called_back(void *arg, int status)
{
	*(int *)arg = status;
}

static int checkpoint_write(struct fixture *f, struct ese_checkpointer *pointer, uint64_t lgpos)
{
	struct ese_checkpoint checkpoint = {.redo_lgpos = lgpos, .tree = {1, 2, 3}};
	int status = 1;

	ese_checkpoint_write(pointer, &checkpoint, called_back, &status);
	run_for(f, 10 * NS_PER_MS);
	return status;
}

static int checkpoint_read(struct fixture *f, struct ese_checkpoint *ret)
{
	struct ese_checkpointer pointer;
	int status = 1;

	assert_int_equal(ese_checkpointer_init(&pointer, &f->area), 0);
	ese_checkpoint_read(&pointer, ret, called_back, &status);
	run_for(f, 10 * NS_PER_MS);
	ese_checkpointer_fini(&pointer);
	return status;
}

static void checkpoint_survives_a_torn_slot(void **state)
{
	struct fixture *f = *state;
	struct ese_checkpointer pointer;
	struct ese_checkpoint found = {0};

	assert_int_equal(ese_checkpointer_init(&pointer, &f->area), 0);
	assert_int_equal(checkpoint_read(f, &found), -ENOENT);
	for (uint64_t i = 1; i <= 5; i++) {
		assert_int_equal(checkpoint_write(f, &pointer, i * 1000), 0);
		assert_int_equal(checkpoint_read(f, &found), 0);
		assert_int_equal(found.redo_lgpos, i * 1000);
		assert_int_equal(found.sequence, i);
		assert_int_equal(found.tree[2], 3);
	}
	/* A failed write leaves the one before it, and the next goes to the same slot. */
	f->device.fail_writes = 1;
	assert_int_equal(checkpoint_write(f, &pointer, 6000), -EIO);
	f->device.memory[4096 * (6 % 2) + 200] ^= 1;
	assert_int_equal(checkpoint_read(f, &found), 0);
	assert_int_equal(found.redo_lgpos, 5000);
	assert_int_equal(checkpoint_write(f, &pointer, 7000), 0);
	assert_int_equal(checkpoint_read(f, &found), 0);
	assert_int_equal(found.redo_lgpos, 7000);
	/* The newer one damaged: the older counts.  Both: none. */
	f->device.memory[4096 * (found.sequence % 2) + 300] ^= 1;
	assert_int_equal(checkpoint_read(f, &found), 0);
	assert_int_equal(found.redo_lgpos, 5000);
	f->device.memory[4096 * (found.sequence % 2) + 300] ^= 1;
	assert_int_equal(checkpoint_read(f, &found), -ENOENT);
	ese_checkpointer_fini(&pointer);
}

/* ---- a copy's log ---- */

static void ship(void *arg, uint64_t lgpos, const void *segments, uint32_t bytes)
{
	assert_int_equal(ese_log_put(arg, lgpos, segments, bytes), 0);
}

/* What is written here is put there; the copy's own writes may tear in their own way; it goes on as
 * a log of its own. */
static void copy_follows_and_leads(void **state)
{
	struct fixture *f = *state;
	struct crash_device other;
	struct ese_log_area area = f->area;
	struct ese_log_config config = {.loop = f->loop, .epoch = 5};
	struct ese_log *copy;
	struct rng rng;
	uint64_t end;

	rng_init(&rng, 9, 0);
	crash_device_init(&other, f->loop, "db2", BASE + RING_FILES * MIB, 2);
	other.write_ns = 30 * NS_PER_MS; /* several of the active's writes in one of the copy's */
	area.layer = &other.layer;
	config.area = area;
	assert_int_equal(ese_log_open(&config, &copy, NULL), 0);
	f->log = ese_log_close(f->log);
	config.area = f->area;
	config.epoch = 7;
	config.written = ship;
	config.arg = copy;
	assert_int_equal(ese_log_open(&config, &f->log, NULL), 0);
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(append(f, 100 + (uint32_t)rng_below(&rng, 9000), &end), 0);
		if (i % 3 == 0)
			ese_log_flush(f->log, end);
		run_for(f, 3 * NS_PER_MS);
	}
	assert_int_equal(ese_log_put(copy, MIB, other.memory, ESE_SEGMENT_BYTES), -ESTALE);
	run_for(f, 2 * ESE_LAZY_FLUSH_NS);
	assert_int_equal(ese_log_put(copy, ese_log_next_segment(copy), other.memory, 4096),
			 -EBADMSG);
	assert_int_equal(ese_log_flushed(copy), ese_log_flushed(f->log));
	assert_true(ese_log_counters(copy)->writes < ese_log_counters(f->log)->writes);
	f->area = area;
	read_log(f, MIB, 0);
	assert_int_equal(f->keys, 200);
	/* A hole in the copy's last write is the end there, whatever the active had written when.
	 */
	other.memory[ese_log_offset(&area, f->result.next_lgpos - 2 * ESE_SEGMENT_BYTES) + 99] ^= 1;
	read_log(f, MIB, 0);
	assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
	other.memory[ese_log_offset(&area, f->result.next_lgpos) + 99] ^= 1;
	f->log = ese_log_close(f->log);
	f->log = copy;
	ese_log_lead(copy);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(append(f, 5000, &end), 0);
	run_for(f, 2 * ESE_LAZY_FLUSH_NS);
	read_log(f, MIB, 0);
	assert_int_equal(f->keys, 210);
	assert_int_equal(f->result.epoch, 8);
	assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
	f->log = ese_log_close(f->log);
	f->area.layer = &f->device.layer;
	crash_device_fini(&other);
}

/* ---- the crash ---- */

struct commits {
	uint64_t durable_key; /* all before it are acknowledged */
	uint64_t lazy_key;    /* all before it are older than the bound */
	uint64_t appended_ns[4096];
};

/* Appends at random until the power goes with the Nth I/O; false: it did not. */
static bool run_to_crash(struct fixture *f, struct commits *commits, uint64_t seed)
{
	struct wait waits[16] = {0};
	uint64_t keys[16] = {0}, end;
	struct rng rng;

	rng_init(&rng, seed, 5);
	*commits = (struct commits){.durable_key = f->next_key};
	for (unsigned i = 0; i < 400 && !f->device.off; i++) {
		struct wait *wait = &waits[i % 16];

		if (i >= 16 && wait->status == 1)
			break;
		*wait = (struct wait){0};
		commits->appended_ns[i] = loop_now_ns(f->loop);
		if (append(f, 100 + (uint32_t)rng_below(&rng, 12000), &end) < 0)
			break;
		keys[i % 16] = f->next_key;
		if (rng_below(&rng, 3) == 0)
			commit(f, wait, end);
		run_for(f, rng_below(&rng, 40) * NS_PER_MS);
		for (unsigned k = 0; k < 16; k++)
			if (keys[k] && waits[k].waiter.done && waits[k].status == 0)
				commits->durable_key = MAX_OF(commits->durable_key, keys[k]);
	}
	/* The bound of lazy ones, with the time that writes take. */
	for (unsigned i = 0;
	     i < 400 &&
	     commits->appended_ns[i] + ESE_LAZY_FLUSH_NS + 10 * NS_PER_MS < loop_now_ns(f->loop);
	     i++)
		commits->lazy_key = i;
	run_for(f, NS_PER_S);
	return f->device.off;
}

/* SQLite's fault loop: the power goes with the Nth write, for every N, until a run is over before
 * it.  What was acknowledged is there, in order, and the log goes on behind it. */
static void crash_at_every_write(void **state)
{
	struct fixture *f = *state;
	static struct commits commits;
	uint64_t n = 1, end;
	bool crashed = true;

	f->log = ese_log_close(f->log);
	for (; crashed; n++) {
		uint64_t keys;

		memset(f->device.memory, 0, f->device.layer.size_bytes);
		rng_init(&f->device.rng, n, 77);
		open_log(f, 0, 1, 0);
		f->next_key = 0;
		f->device.ios = 0;
		f->device.crash_at = n;
		crashed = run_to_crash(f, &commits, n % 7);
		f->log = ese_log_close(f->log);
		crash_device_power_on(&f->device);
		read_log(f, MIB, 0);
		assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
		assert_true(f->keys == 0 || f->first_key == 0);
		if (f->keys < commits.durable_key)
			print_error("N=%u: %u of %u durable records are there\n", (unsigned)n,
				    (unsigned)f->keys, (unsigned)commits.durable_key);
		assert_true(f->keys >= commits.durable_key);
		assert_true(f->keys >= commits.lazy_key);
		/* A new life behind it. */
		keys = f->keys;
		f->next_key = keys;
		open_log(f, f->result.next_lgpos, f->result.epoch + 1, 0);
		for (unsigned i = 0; i < 5; i++) {
			append(f, 5000, &end);
			run_for(f, 2 * NS_PER_S);
		}
		f->log = ese_log_close(f->log);
		read_log(f, MIB, 0);
		assert_int_equal(f->result.end, ESE_LOG_END_REACHED);
		assert_int_equal(f->keys, keys + 5);
	}
	assert_true(n > 50);
}

/* ---- what emerges (exchange.md 9.5) ---- */

struct emergence {
	struct fixture *f;
	struct rng rng;
	struct loop_timer timer;
	struct wait waits[256];
	unsigned next_wait;
	uint64_t updates;
};

static void transaction(void *arg)
{
	struct emergence *e = arg;
	double what = rng_unit(&e->rng);
	uint32_t bytes = what < 0.40 ? 7600 : what < 0.60 ? 1200 : what < 0.65 ? 4000 : 0;
	uint64_t end;

	loop_timer_set(e->f->loop, &e->timer,
		       loop_now_ns(e->f->loop) + (uint64_t)rng_exponential(&e->rng, 1e9 / 28.43));
	if (!bytes)
		return;
	assert_int_equal(append(e->f, bytes, &end), 0);
	e->updates++;
	ese_log_checkpoint_at(e->f->log, end > 2 * MIB ? end - MIB : MIB);
	if (rng_unit(&e->rng) < 0.30)
		commit(e->f, &e->waits[e->next_wait++ % 256], end);
	else
		ese_log_commit(e->f->log, end, NULL);
}

static void qnap_log_emerges(void **state)
{
	struct fixture *f = *state;
	struct emergence e = {.f = f};
	const struct ese_log_counters *counters;
	const double seconds = 7200;
	double rate, bytes;

	f->log = ese_log_close(f->log);
	f->device.write_ns = 1100 * NS_PER_US;
	open_log(f, 0, 1, ESE_GATHER_NS);
	rng_init(&e.rng, 1, 0);
	loop_timer_init(&e.timer, transaction, &e);
	loop_timer_set(f->loop, &e.timer, 1);
	run_for(f, (uint64_t)(seconds * 1e9));
	loop_timer_cancel(f->loop, &e.timer);
	run_for(f, 2 * NS_PER_S);
	counters = ese_log_counters(f->log);
	rate = (double)counters->writes / seconds;
	bytes = (double)counters->write_bytes / (double)counters->writes;
	print_message(
	    "# log writes %.3f/s of %.0f B (5.312/s of 20,620 B), %.4f files/s, lazy %.3f/s\n",
	    rate, bytes, (double)counters->files_closed / seconds,
	    (double)counters->flushes_lazy / seconds);
	assert_true(rate > 5.312 * 0.97 && rate < 5.312 * 1.03);
	assert_true(bytes > 20620 * 0.97 && bytes < 20620 * 1.03);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(codes_and_decodes),
	    cmocka_unit_test_setup_teardown(durable_commit_is_on_the_device, setup, teardown),
	    cmocka_unit_test_setup_teardown(commits_share_a_write, setup, teardown),
	    cmocka_unit_test_setup_teardown(gathering_shares_the_first_too, setup, teardown),
	    cmocka_unit_test_setup_teardown(lazy_commit_is_written_within_its_bound, setup,
					    teardown),
	    cmocka_unit_test_setup_teardown(half_a_buffer_is_written, setup, teardown),
	    cmocka_unit_test_setup_teardown(ring_is_not_overwritten, setup, teardown),
	    cmocka_unit_test_setup_teardown(many_rounds_read_back, setup, teardown),
	    cmocka_unit_test_setup_teardown(damage_is_not_an_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(torn_tail_stays_dead, setup, teardown),
	    cmocka_unit_test_setup_teardown(failing_writes_are_tried_again, setup, teardown),
	    cmocka_unit_test_setup_teardown(checkpoint_survives_a_torn_slot, setup, teardown),
	    cmocka_unit_test_setup_teardown(copy_follows_and_leads, setup, teardown),
	    cmocka_unit_test_setup_teardown(crash_at_every_write, setup, teardown),
	    cmocka_unit_test_setup_teardown(qnap_log_emerges, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
