/* SPDX-License-Identifier: MIT
 *
 * The log as it is written: records, commits, the ring, and the writes that emerge of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workload/ese/log_rig.h"

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
	    cmocka_unit_test_setup_teardown(qnap_log_emerges, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
