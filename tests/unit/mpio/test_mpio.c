/* SPDX-License-Identifier: MIT
 *
 * The device on the virtual loop: shares, loss, fencing, queueing, splitting, ledger.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "rig.h"

static void ready_when_all_are_up(void **unused)
{
	struct rig rig;

	rig_open(&rig, NULL, 4, 1);
	rig_start(&rig);
	assert_int_equal(rig.ready_status, 0);
	assert_int_equal(rig.layer->size_bytes, RIG_BLOCKS * FAKE_BLOCK_BYTES);
	assert_int_equal(mpio_block_bytes(rig.mpio), FAKE_BLOCK_BYTES);
	assert_string_equal(mpio_name(rig.mpio), "vol");
	assert_int_equal(mpio_path_count(rig.mpio), 4);
	for (unsigned i = 0; i < 4; i++) {
		struct mpio_path_info info;

		mpio_path_info(rig.mpio, i, &info);
		assert_int_equal(info.state, MPIO_PATH_UP);
		assert_int_equal(info.ledger->logins, 1);
		assert_non_null(info.identity);
	}
	/* down -> connecting -> up for each */
	assert_int_equal(rig.event_count, 8);
	rig_close(&rig);
}

static void ready_after_settling(void **unused)
{
	struct rig rig;

	rig_open(&rig, NULL, 3, 1);
	rig.fakes[1]->refuse_login = true;
	rig.fakes[2]->connect_error = -ENETUNREACH;
	rig_start(&rig);
	assert_int_equal(rig.ready_status, 0);
	assert_int_equal(rig_do(&rig, IO_READ, 0, 8, 0), 0);
	rig_close(&rig);

	rig_open(&rig, NULL, 2, 1);
	rig.fakes[0]->refuse_login = rig.fakes[1]->refuse_login = true;
	rig_start(&rig);
	assert_int_equal(rig.ready_status, -ENODEV);
	assert_non_null(strstr(rig.ready_why, "login refused"));
	assert_non_null(strstr(rig.ready_why, "10.0.0."));
	rig_close(&rig);

	rig_open(&rig, NULL, 0, 1);
	rig_start(&rig);
	assert_int_equal(rig.ready_status, -ENODEV);
	rig_close(&rig);
}

static void data_goes_round(void **unused)
{
	struct rig rig;
	struct rig_io *rio;

	rig_open(&rig, NULL, 2, 1);
	rig_start(&rig);
	assert_int_equal(rig_do(&rig, IO_WRITE, 10, 8, 0xa5), 0);
	rio = rig_io_new(&rig, IO_READ, 9, 10, 0x11);
	io_submit(rig.layer, &rio->io);
	assert_int_equal(rio->done, 0);
	rig_run_for(&rig, NS_PER_MS);
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, 0);
	assert_int_equal(rio->data[0], 0);
	assert_int_equal(rio->data[512], 0xa5);
	assert_int_equal(rio->data[9 * 512 - 1], 0xa5);
	assert_int_equal(rio->data[9 * 512], 0);
	rig_io_free(rio);
	assert_int_equal(rig_do(&rig, IO_FLUSH, 0, 0, 0), 0);
	assert_int_equal(rig_do(&rig, IO_UNMAP, 10, 8, 0), 0);
	assert_int_equal(rig.disk.data[10 * 512], 0);
	assert_int_equal(rig_do(&rig, IO_READ, RIG_BLOCKS - 1, 2, 0), -ERANGE);
	assert_int_equal(rig_do(&rig, IO_READ, 0, 0, 0), 0);
	rig_close(&rig);
}

static void shares_are_equal(void **unused)
{
	static const uint64_t grains[] = {1, 10};

	for (size_t g = 0; g < ARRAY_SIZE(grains); g++) {
		struct mpio_config config = {.rr_ios = grains[g], .no_path_ns = NS_PER_S};
		struct rig rig;

		rig_open(&rig, &config, 4, 1);
		rig_start(&rig);
		for (unsigned i = 0; i < 400; i++)
			assert_int_equal(rig_do(&rig, i % 2 ? IO_READ : IO_WRITE, i, 1, 7), 0);
		for (unsigned i = 0; i < 4; i++) {
			const struct mpio_ledger *ledger = rig_ledger(&rig, i);

			assert_int_equal(ledger->ios, 100);
			assert_int_equal(ledger->reads + ledger->writes, 100);
			assert_int_equal(ledger->read_bytes, ledger->reads * 512);
			assert_int_equal(ledger->write_bytes, ledger->writes * 512);
			assert_int_equal(ledger->latency.count, 100);
			assert_int_equal(ledger->latency.max_ns, 100 * NS_PER_US);
		}
		mpio_ledger_reset(rig.mpio);
		assert_int_equal(rig_ledger(&rig, 3)->ios, 0);
		rig_close(&rig);
	}
}

static void failover_only_uses_one(void **unused)
{
	struct mpio_config config = {.policy = 1, .preferred_path = 1, .no_path_ns = NS_PER_S};
	struct rig rig;

	rig_open(&rig, &config, 3, 1);
	rig_start(&rig);
	for (unsigned i = 0; i < 10; i++)
		rig_do(&rig, IO_READ, 0, 1, 0);
	assert_int_equal(rig_ledger(&rig, 1)->ios, 10);
	fake_path_kill(rig.fakes[1], "reset");
	for (unsigned i = 0; i < 10; i++) /* 1 ms: well before the reconnect */
		assert_int_equal(rig_do(&rig, IO_READ, 0, 1, 0), 0);
	assert_int_equal(
	    rig_ledger(&rig, 0)->ios + rig_ledger(&rig, 2)->ios + rig_ledger(&rig, 1)->ios, 20);
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(rig_state(&rig, 1), MPIO_PATH_UP);
	mpio_ledger_reset(rig.mpio);
	for (unsigned i = 0; i < 10; i++)
		rig_do(&rig, IO_READ, 0, 1, 0);
	assert_int_equal(rig_ledger(&rig, 1)->ios, 10);
	rig_close(&rig);
}

enum { MANY = 64 };

static void submit_many(struct rig *rig, struct rig_io **rios, enum io_op op)
{
	for (unsigned i = 0; i < MANY; i++) {
		rios[i] = rig_io_new(rig, op, i * 8, 8, (uint8_t)(i + 1));
		io_submit(rig->layer, &rios[i]->io);
	}
}

static void expect_many(struct rig_io **rios, int status)
{
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(rios[i]->done, 1);
		assert_int_equal(rios[i]->io.status, status);
		rig_io_free(rios[i]);
	}
}

static void loss_reissues_once(void **unused)
{
	struct rig_io *rios[MANY];
	const struct mpio_event *event;
	struct rig rig;
	uint64_t ios = 0;

	rig_open(&rig, NULL, 4, 1);
	rig_start(&rig);
	submit_many(&rig, rios, IO_WRITE);
	assert_int_equal(rig.fakes[2]->path.in_flight, MANY / 4);
	fake_path_kill(rig.fakes[2], "connection reset by peer");
	rig_run_for(&rig, 10 * NS_PER_MS);
	expect_many(rios, 0);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(rig.disk.data[i * 8 * 512], i + 1);
	event = rig_find_event(&rig, 2, MPIO_PATH_UP, MPIO_PATH_DOWN);
	assert_non_null(event);
	assert_int_equal(event->reissued, MANY / 4);
	assert_string_equal(event->why, "connection reset by peer");
	assert_int_equal(rig_ledger(&rig, 2)->reissued, MANY / 4);
	assert_int_equal(rig_ledger(&rig, 2)->losses, 1);
	for (unsigned i = 0; i < 4; i++)
		ios += rig_ledger(&rig, i)->ios;
	assert_int_equal(ios, MANY);
	assert_int_equal(rig_ledger(&rig, 2)->ios, 0);
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(rig_state(&rig, 2), MPIO_PATH_UP);
	assert_int_equal(rig_ledger(&rig, 2)->logins, 2);
	rig_close(&rig);
}

static void waits_for_a_path(void **unused)
{
	struct rig_io *rios[MANY];
	struct rig rig;
	uint64_t killed_ns;

	rig_open(&rig, NULL, 2, 1);
	rig_start(&rig);
	submit_many(&rig, rios, IO_WRITE);
	for (unsigned i = 0; i < 2; i++) {
		rig.fakes[i]->refuse_login = true;
		fake_path_kill(rig.fakes[i], "cable pulled");
	}
	killed_ns = loop_now_ns(rig.loop);
	assert_int_equal(mpio_waiting(rig.mpio), MANY);
	rig_run_for(&rig, 10 * NS_PER_S);
	assert_int_equal(rios[0]->done, 0);
	rig.fakes[1]->refuse_login = false;
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_true(rios[0]->done_ns >= killed_ns + 10 * NS_PER_S);
	expect_many(rios, 0);
	rig_close(&rig);
}

static void gives_up_without_a_path(void **unused)
{
	struct mpio_config config = {.no_path_ns = 3 * NS_PER_S};
	struct rig_io *rios[MANY], *late;
	struct rig rig;
	uint64_t killed_ns;

	rig_open(&rig, &config, 2, 1);
	rig_start(&rig);
	submit_many(&rig, rios, IO_READ);
	for (unsigned i = 0; i < 2; i++) {
		rig.fakes[i]->refuse_login = true;
		fake_path_kill(rig.fakes[i], "cable pulled");
	}
	killed_ns = loop_now_ns(rig.loop);
	rig_run_for(&rig, 10 * NS_PER_S);
	assert_int_equal(rios[0]->done_ns, killed_ns + 3 * NS_PER_S);
	expect_many(rios, -ENODEV);
	/* Gone: refused soon, but never from within the call. */
	late = rig_io_new(&rig, IO_READ, 0, 1, 0);
	io_submit(rig.layer, &late->io);
	assert_int_equal(late->done, 0);
	rig_run_for(&rig, 2 * NS_PER_MS);
	assert_int_equal(late->done, 1);
	assert_int_equal(late->io.status, -ENODEV);
	rig_io_free(late);
	/* And back. */
	rig.fakes[0]->refuse_login = false;
	rig_run_for(&rig, 5 * NS_PER_S);
	assert_int_equal(rig_do(&rig, IO_READ, 0, 1, 0), 0);
	rig_close(&rig);
}

static void large_io_is_split(void **unused)
{
	struct rig_io *rio;
	struct rig rig;

	rig_open(&rig, NULL, 2, 1);
	for (unsigned i = 0; i < 2; i++) {
		rig.fakes[i]->identity.max_transfer_blocks = i ? 16 : 100;
		rig.fakes[i]->identity.max_unmap_blocks = 50;
	}
	rig_start(&rig);
	rio = rig_io_new(&rig, IO_WRITE, 7, 100, 0);
	for (size_t i = 0; i < 100 * 512; i++)
		rio->data[i] = (uint8_t)(i / 512 + i);
	io_submit(rig.layer, &rio->io);
	rig_run_for(&rig, NS_PER_MS);
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, 0);
	assert_memory_equal(rig.disk.data + 7 * 512, rio->data, 100 * 512);
	assert_int_equal(rig_ledger(&rig, 0)->ios + rig_ledger(&rig, 1)->ios, 7);
	assert_int_equal(rig_ledger(&rig, 0)->write_bytes + rig_ledger(&rig, 1)->write_bytes,
			 100 * 512);
	rig_io_free(rio);
	/* One part fails: so does the whole, once, after all parts have ended. */
	fake_path_script(rig.fakes[0], (struct fake_answer){PATH_SENSE, 2, 3, 0x11, 0});
	assert_int_equal(rig_do(&rig, IO_READ, 7, 100, 0), -EIO);
	mpio_ledger_reset(rig.mpio);
	assert_int_equal(rig_do(&rig, IO_UNMAP, 0, 120, 0), 0);
	assert_int_equal(rig_ledger(&rig, 0)->ios + rig_ledger(&rig, 1)->ios, 3);
	rig_close(&rig);
}

static void depth_is_kept(void **unused)
{
	struct mpio_config config = {.queue_depth = 4, .no_path_ns = NS_PER_S};
	struct rig_io *rios[MANY];
	struct mpio_path_info info;
	struct rig rig;

	rig_open(&rig, &config, 2, 1);
	rig_start(&rig);
	submit_many(&rig, rios, IO_READ);
	assert_int_equal(rig.fakes[0]->path.in_flight, 4);
	assert_int_equal(rig.fakes[1]->path.in_flight, 4);
	mpio_path_info(rig.mpio, 1, &info);
	assert_int_equal(info.in_flight, 4);
	assert_int_equal(mpio_waiting(rig.mpio), MANY - 8);
	rig_run_for(&rig, 10 * NS_PER_MS);
	expect_many(rios, 0);
	assert_int_equal(mpio_waiting(rig.mpio), 0);
	rig_close(&rig);
}

static void free_ends_everything(void **unused)
{
	struct rig_io *rios[MANY];
	struct mpio_config config = {.queue_depth = 4, .no_path_ns = NS_PER_S};
	struct rig rig;

	rig_open(&rig, &config, 2, 1);
	rig_start(&rig);
	submit_many(&rig, rios, IO_WRITE);
	rig_close(&rig);
	expect_many(rios, -ENODEV);
	assert_null(mpio_free(NULL));
}

struct chain {
	struct rig *rig;
	struct rig_io *rio;
	unsigned left;
};

static void chain_done(struct io *io)
{
	struct rig_io *rio = io->owner;
	struct chain *chain = (struct chain *)rio->rig;

	if (--chain->left)
		io_submit(chain->rig->layer, io);
}

/* Submitting from within done, also while the device is gone, neither recurses nor spins. */
static void done_may_submit(void **unused)
{
	struct mpio_config config = {.no_path_ns = NS_PER_MS};
	struct chain chain;
	struct rig rig;

	rig_open(&rig, &config, 2, 1);
	rig_start(&rig);
	chain = (struct chain){&rig, rig_io_new(&rig, IO_READ, 0, 8, 0), 1000};
	chain.rio->rig = (struct rig *)&chain;
	chain.rio->io.done = chain_done;
	io_submit(rig.layer, &chain.rio->io);
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(chain.left, 0);
	assert_int_equal(rig_ledger(&rig, 0)->ios, 500);
	for (unsigned i = 0; i < 2; i++) {
		rig.fakes[i]->refuse_login = true;
		fake_path_kill(rig.fakes[i], "reset");
	}
	chain.left = 200;
	io_submit(rig.layer, &chain.rio->io);
	rig_run_for(&rig, NS_PER_S);
	assert_int_equal(chain.left, 0);
	/* Out of range ends from within: a long chain must not eat the stack. */
	rig.fakes[0]->refuse_login = false;
	rig_run_for(&rig, 10 * NS_PER_S);
	chain.rio->io.offset_bytes = UINT64_C(1) << 40;
	chain.left = 200000;
	io_submit(rig.layer, &chain.rio->io);
	assert_int_equal(chain.left, 0);
	assert_int_equal(chain.rio->io.status, -ERANGE);
	rig_io_free(chain.rio);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ready_when_all_are_up),  cmocka_unit_test(ready_after_settling),
	    cmocka_unit_test(data_goes_round),	      cmocka_unit_test(shares_are_equal),
	    cmocka_unit_test(failover_only_uses_one), cmocka_unit_test(loss_reissues_once),
	    cmocka_unit_test(waits_for_a_path),	      cmocka_unit_test(gives_up_without_a_path),
	    cmocka_unit_test(large_io_is_split),      cmocka_unit_test(depth_is_kept),
	    cmocka_unit_test(free_ends_everything),   cmocka_unit_test(done_may_submit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
