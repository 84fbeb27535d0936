/* SPDX-License-Identifier: MIT
 *
 * The log after damage: torn and failing writes, the checkpoint's slots, a copy that takes over,
 * and the power going at every write.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "harness/workload/ese/ese_checkpoint.h"
#include "tests/unit/workload/ese/log_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(damage_is_not_an_end, setup, teardown),
	    cmocka_unit_test_setup_teardown(torn_tail_stays_dead, setup, teardown),
	    cmocka_unit_test_setup_teardown(failing_writes_are_tried_again, setup, teardown),
	    cmocka_unit_test_setup_teardown(checkpoint_survives_a_torn_slot, setup, teardown),
	    cmocka_unit_test_setup_teardown(copy_follows_and_leads, setup, teardown),
	    cmocka_unit_test_setup_teardown(crash_at_every_write, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
