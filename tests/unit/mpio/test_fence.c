/* SPDX-License-Identifier: MIT
 *
 * Fencing: what waits for a lost write and for how long, the ladder of proofs, and that without it
 * late writes do destroy newer ones.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "scene.h"

/* The re-issue goes at once, with it reads and writes elsewhere; what overlaps waits for the proof,
 * which a login with the lost path's name through the other path brings. */
static void only_overlaps_wait(void **unused)
{
	struct rig_io *older, *newer, *unmap, *read, *apart, *flush;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	open_scene(&scene, NULL, 2, false, 0, NS_PER_S);
	rig->fakes[1]->errand_ns = 20 * MS;
	older = lose_a_write(rig, 0, 1);
	assert_int_equal(rig->fakes[1]->path.in_flight, 1);
	newer = submit(rig, IO_WRITE, 104, 8, 2);
	unmap = submit(rig, IO_UNMAP, 99, 2, 0);
	read = submit(rig, IO_READ, 107, 1, 0);
	apart = submit(rig, IO_WRITE, 108, 1, 3);
	flush = submit(rig, IO_FLUSH, 0, 0, 0);
	assert_int_equal(rig->fakes[1]->path.in_flight, 4);
	assert_int_equal(mpio_waiting(rig->mpio), 2);
	assert_int_equal(mpio_fences(rig->mpio), 1);
	rig_run_for(rig, 15 * MS);
	expect(older, 0);
	assert_int_equal(read->data[0], 1);
	expect(read, 0);
	expect(apart, 0);
	expect(flush, 0);
	assert_int_equal(newer->done + unmap->done, 0);
	rig_run_for(rig, 10 * MS);
	assert_int_equal(rig->fakes[1]->fences, 1);
	assert_int_equal(mpio_fences(rig->mpio), 0);
	expect(newer, 0);
	expect(unmap, 0);
	assert_int_equal(milestone(&scene, MPIO_FENCED)->proof, MPIO_PROOF_OTHER_LOGIN);
	assert_int_equal(milestone(&scene, MPIO_FENCED)->other, 1);
	rig_run_for(rig, 10 * NS_PER_S);
	assert_int_equal(rig_state(rig, 0), MPIO_PATH_UP);
	assert_int_equal(rig->fakes[0]->logins, 2);
	assert_int_equal(content(rig, 100), 0);
	assert_int_equal(content(rig, 103), 1);
	assert_int_equal(content(rig, 104), 2);
	assert_int_equal(rig->disk.resets, 0);
	rig_close(rig);
}

/* The milestones of a failover, each once. */
static void failover_is_recorded(void **unused)
{
	static const enum mpio_milestone order[] = {
	    MPIO_LOST,	 MPIO_FIRST_REISSUE, MPIO_FIRST_SUCCESS, MPIO_DRAINED,
	    MPIO_FENCED, MPIO_UP_AGAIN,	     MPIO_FIRST_IO};
	static struct scene scene;
	struct rig *rig = &scene.rig;
	uint64_t alive_ns, lost_ns;
	struct rig_io *rio;

	open_scene(&scene, NULL, 2, false, 0, 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_do(rig, IO_WRITE, 0, 1, 1), 0);
	alive_ns = rig->fakes[0]->path.heard_ns;
	lost_ns = loop_now_ns(rig->loop);
	rio = lose_a_write(rig, 0, 1);
	rig_run_for(rig, NS_PER_S);
	expect(rio, 0);
	assert_int_equal(rig_do(rig, IO_READ, 0, 1, 1), 0);
	assert_int_equal(rig_do(rig, IO_READ, 0, 1, 1), 0);
	assert_int_equal(scene.count, ARRAY_SIZE(order));
	for (unsigned i = 0; i < ARRAY_SIZE(order); i++) {
		assert_int_equal(scene.tracks[i].milestone, order[i]);
		assert_int_equal(scene.tracks[i].path, 0);
		assert_int_equal(scene.tracks[i].loss, 1);
		assert_true(i == 0 || scene.tracks[i].at_ns >= scene.tracks[i - 1].at_ns);
	}
	assert_int_equal(scene.tracks[0].at_ns, lost_ns);
	assert_int_equal(scene.tracks[0].alive_ns, alive_ns);
	assert_int_equal(scene.tracks[0].by, PATH_DETECT_RESET);
	assert_int_equal(scene.tracks[0].ios, 1);
	assert_int_equal(milestone(&scene, MPIO_DRAINED)->ios, 0); /* none failed */
	assert_int_equal(scene.tracks[1].at_ns, lost_ns);	   /* at once */
	assert_int_equal(scene.tracks[1].other, 1);
	rig_close(rig);
}

/* No other path in the portal group: the path's own new login is the proof. */
static void own_login_is_the_proof(void **unused)
{
	struct mpio_config config = {.fence = MPIO_FENCE_STRICT, .no_path_ns = NS_PER_S};
	struct rig_io *older, *newer;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	open_scene(&scene, &config, 2, true, 0, 10 * NS_PER_S);
	rig->fakes[0]->refuse_login = true;
	older = lose_a_write(rig, 0, 1);
	newer = submit(rig, IO_WRITE, 100, 8, 2);
	rig_run_for(rig, 20 * NS_PER_S);
	expect(older, 0);
	assert_int_equal(newer->done, 0);
	rig->fakes[0]->refuse_login = false;
	rig_run_for(rig, 5 * NS_PER_S);
	expect(newer, 0);
	assert_int_equal(milestone(&scene, MPIO_FENCED)->proof, MPIO_PROOF_LOGIN);
	assert_int_equal(rig->fakes[1]->fences + rig->disk.resets, 0);
	rig_run_for(rig, 20 * NS_PER_S);
	assert_int_equal(content(rig, 107), 2);
	rig_close(rig);
}

/* A login that was led to another portal group says nothing about the old nexus. */
static void login_elsewhere_is_no_proof(void **unused)
{
	struct mpio_config config = {.fence = MPIO_FENCE_STRICT, .fence_wait_ns = 30 * NS_PER_S};
	struct rig_io *older, *newer, *waits;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	config.no_path_ns = NS_PER_S;
	open_scene(&scene, &config, 2, true, 0, NS_PER_S);
	rig->fakes[0]->identity.portal_group = 7;
	older = lose_a_write(rig, 0, 1);
	newer = submit(rig, IO_WRITE, 100, 8, 2);
	rig_run_for(rig, 10 * NS_PER_S);
	expect(older, 0);
	assert_int_equal(rig_state(rig, 0), MPIO_PATH_UP);
	assert_int_equal(newer->done, 0);
	/* Nobody waits for ever. */
	rig_run_for(rig, 21 * NS_PER_S);
	expect(newer, -ETIMEDOUT);
	/* And it is not forgotten. */
	waits = submit(rig, IO_WRITE, 100, 8, 3);
	rig_run_for(rig, NS_PER_S);
	assert_int_equal(waits->done, 0);
	rig->fakes[0]->identity.portal_group = 0;
	fake_path_kill(rig->fakes[0], "again");
	rig_run_for(rig, 5 * NS_PER_S);
	expect(waits, 0);
	assert_int_equal(mpio_fences(rig->mpio), 0);
	rig_close(rig);
}

/* A path that cannot do it is followed by the next; then the lost one by itself. */
static void failed_proofs_are_followed_by_others(void **unused)
{
	struct rig_io *older, *newer;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	open_scene(&scene, NULL, 4, false, 0, NS_PER_S);
	rig->fakes[0]->refuse_login = true;
	rig->fakes[1]->fence_status = -ECONNREFUSED;
	rig->fakes[2]->fence_status = -ETIMEDOUT;
	older = lose_a_write(rig, 0, 1);
	newer = submit(rig, IO_WRITE, 100, 8, 2);
	rig_run_for(rig, 10 * MS);
	expect(older, 0);
	expect(newer, 0);
	assert_int_equal(rig->fakes[1]->fences, 1);
	assert_int_equal(rig->fakes[2]->fences, 1);
	assert_int_equal(rig->fakes[3]->fences, 1);
	rig_close(rig);

	/* None can: tried again with each login that fails, until it succeeds. */
	open_scene(&scene, NULL, 3, false, 0, NS_PER_S);
	rig->fakes[0]->refuse_login = true;
	rig->fakes[1]->fence_status = rig->fakes[2]->fence_status = -EACCES;
	rig->fakes[1]->reset_status = rig->fakes[2]->reset_status = -EIO;
	older = lose_a_write(rig, 0, 1);
	newer = submit(rig, IO_WRITE, 100, 8, 2);
	rig_run_for(rig, 20 * NS_PER_S);
	expect(older, 0);
	assert_int_equal(newer->done, 0);
	assert_true(rig->fakes[1]->fences > 2 && rig->fakes[1]->fences < 20);
	assert_int_equal(rig_do(rig, IO_READ, 100, 8, 0), 0);
	rig->fakes[0]->refuse_login = false;
	rig_run_for(rig, 5 * NS_PER_S);
	expect(newer, 0);
	rig_close(rig);
}

/* While a login with its name is under way the lost path does not log in itself. */
static void isid_is_used_once(void **unused)
{
	struct mpio_config config = {.reconnect_min_ns = MS, .reconnect_max_ns = MS};
	struct rig_io *older;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	config.no_path_ns = NS_PER_S;
	open_scene(&scene, &config, 2, false, 0, NS_PER_S);
	rig->fakes[1]->errand_ns = 50 * MS; /* fake_fence asserts the rest */
	older = lose_a_write(rig, 0, 1);
	rig_run_for(rig, 45 * MS);
	assert_int_equal(rig_state(rig, 0), MPIO_PATH_DOWN);
	rig_run_for(rig, 15 * MS);
	assert_int_equal(rig_state(rig, 0), MPIO_PATH_UP);
	expect(older, 0);
	/* Its helper may go meanwhile. */
	older = lose_a_write(rig, 0, 1);
	rig_run_for(rig, 10 * MS);
	fake_path_kill(rig->fakes[1], "too");
	rig_run_for(rig, 200 * MS);
	expect(older, 0);
	assert_int_equal(rig_state(rig, 0), MPIO_PATH_UP);
	assert_int_equal(rig_state(rig, 1), MPIO_PATH_UP);
	assert_int_equal(mpio_fences(rig->mpio), 0);
	rig_close(rig);
}

/* Two lost writes to one range keep their order; neither blocks the other for ever. */
static void lost_writes_keep_their_order(void **unused)
{
	struct rig_io *a, *b;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	open_scene(&scene, NULL, 3, false, 0, NS_PER_S);
	rig->fakes[0]->hold = rig->fakes[1]->hold = true;
	rig->fakes[2]->errand_ns = 10 * MS;
	a = submit(rig, IO_WRITE, 5, 4, 1);
	b = submit(rig, IO_WRITE, 6, 4, 2);
	fake_path_kill(rig->fakes[1], "reset"); /* b is the older loss */
	fake_path_kill(rig->fakes[0], "reset");
	rig->fakes[0]->hold = rig->fakes[1]->hold = false;
	assert_int_equal(rig->fakes[2]->path.in_flight, 1);
	rig_run_for(rig, 5 * MS);
	assert_int_equal(b->done, 1);
	assert_int_equal(a->done, 0);
	rig_run_for(rig, 10 * MS);
	assert_int_equal(a->done, 1);
	rig_run_for(rig, 5 * NS_PER_S);
	assert_int_equal(content(rig, 5), 1);
	assert_int_equal(content(rig, 8), 1);
	assert_int_equal(content(rig, 9), 2);
	expect(a, 0);
	expect(b, 0);

	/* Both paths at once, nobody left to help. */
	a = submit(rig, IO_WRITE, 5, 4, 3);
	b = submit(rig, IO_WRITE, 6, 4, 4);
	for (unsigned i = 0; i < 3; i++)
		fake_path_kill(rig->fakes[i], "reset");
	rig_run_for(rig, 10 * NS_PER_S);
	assert_true(content(rig, 6) == 3 || content(rig, 6) == 4);
	assert_int_equal(content(rig, 6), content(rig, 8));
	expect(a, 0);
	expect(b, 0);
	assert_int_equal(mpio_fences(rig->mpio), 0);
	rig_close(rig);
}

/* ... also when the old nexus of the earlier one is dead before it is done again: done last, it
 * would be undone by what is left of the later one. */
static void lost_writes_keep_their_order_without_ranges(void **unused)
{
	const struct fake_answer busy = {PATH_STATUS, .scsi_status = 0x08};
	struct mpio_config config = {.fence = MPIO_FENCE_STRICT, .no_path_ns = NS_PER_S};
	struct rig_io *first, *second;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	open_scene(&scene, &config, 3, true, 0, 10 * NS_PER_S);
	rig->fakes[1]->refuse_login = true;
	rig->fakes[0]->hold = rig->fakes[1]->hold = true;
	first = submit(rig, IO_WRITE, 100, 8, 1);
	second = submit(rig, IO_WRITE, 104, 8, 2);
	assert_int_equal(rig->fakes[0]->path.in_flight, 1);
	assert_int_equal(rig->fakes[1]->path.in_flight, 1);
	/* The first is refused until its path has logged in again. */
	for (unsigned i = 0; i < 8; i++)
		fake_path_script(rig->fakes[2], busy);
	fake_path_kill(rig->fakes[0], "silence");
	fake_path_kill(rig->fakes[1], "silence");
	rig->fakes[0]->hold = false;
	while (!milestone(&scene, MPIO_FENCED))
		rig_run_for(rig, MS);
	assert_int_equal(mpio_fences(rig->mpio), 1);
	while (!first->done) {
		assert_int_equal(second->done, 0);
		rig_run_for(rig, MS);
	}
	rig_run_for(rig, NS_PER_S);
	expect(first, 0);
	expect(second, 0);
	assert_int_equal(content(rig, 104), 2);
	rig_run_for(rig, 20 * NS_PER_S);
	assert_int_equal(content(rig, 104), 2);
	rig_close(rig);
}

/* A write in flight on a healthy path might end after the re-issue and be undone by the ghost. */
static void reissue_waits_for_overlaps_in_flight(void **unused)
{
	struct rig_io *lost, *other, *read;
	static struct scene scene;
	struct rig *rig = &scene.rig;
	uint8_t seen;

	open_scene(&scene, NULL, 3, false, 0, NS_PER_S);
	rig->fakes[1]->service_ns = 30 * MS;
	rig->fakes[0]->hold = true;
	rig->fakes[2]->errand_ns = 200 * MS;
	rig->fakes[1]->errand_ns = 200 * MS;
	lost = submit(rig, IO_WRITE, 100, 8, 1);
	other = submit(rig, IO_WRITE, 104, 8, 2); /* path 1 */
	fake_path_kill(rig->fakes[0], "silence");
	rig->fakes[0]->hold = false;
	rig_run_for(rig, 20 * MS);
	assert_int_equal(lost->done, 0);
	rig_run_for(rig, 20 * MS);
	expect(other, 0);
	expect(lost, 0);
	read = submit(rig, IO_READ, 104, 1, 0);
	rig_run_for(rig, 40 * MS);
	seen = read->data[0];
	expect(read, 0);
	rig_run_for(rig, 5 * NS_PER_S);
	assert_int_equal(content(rig, 104), seen);
	rig_close(rig);
}

/* A write that failed for want of a path may still be executed, but not over a newer one. */
static void failed_write_keeps_its_fence(void **unused)
{
	struct mpio_config config = {.no_path_ns = 100 * MS};
	struct rig_io *older, *newer;
	static struct scene scene;
	struct rig *rig = &scene.rig;
	unsigned failed = 0;

	open_scene(&scene, &config, 2, true, 0, 3 * NS_PER_S);
	rig->fakes[0]->refuse_login = rig->fakes[1]->refuse_login = true;
	older = lose_a_write(rig, 0, 1);
	fake_path_kill(rig->fakes[1], "too");
	rig_run_for(rig, 200 * MS);
	expect(older, -ENODEV);
	for (unsigned i = 0; i < scene.count; i++)
		if (scene.tracks[i].milestone == MPIO_DRAINED)
			failed += scene.tracks[i].ios;
	assert_int_equal(failed, 1); /* of the loss that had it last */
	assert_int_equal(mpio_fences(rig->mpio), 2);
	rig->fakes[1]->refuse_login = false;
	rig_run_for(rig, NS_PER_S);
	assert_int_equal(rig_state(rig, 1), MPIO_PATH_UP);
	newer = submit(rig, IO_WRITE, 100, 8, 2);
	rig_run_for(rig, NS_PER_S);
	assert_int_equal(newer->done, 0);
	rig_run_for(rig, 5 * NS_PER_S);
	expect(newer, 0);
	assert_int_equal(rig->disk.resets, 1);
	rig_run_for(rig, 10 * NS_PER_S);
	assert_int_equal(content(rig, 100), 2);
	rig_close(rig);
}

/* Room for the ranges is reserved before a write is sent: it waits when there may be none. */
static void full_table_pushes_back(void **unused)
{
	struct mpio_config config = {.fence = MPIO_FENCE_STRICT, .fence_limit = 4, .policy = 1};
	struct rig_io *writes[6], *read;
	static struct scene scene;
	struct rig *rig = &scene.rig;

	config.no_path_ns = NS_PER_S;
	open_scene(&scene, &config, 2, true, 0, NS_PER_S);
	rig->fakes[0]->refuse_login = rig->fakes[0]->hold = true;
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++)
		writes[i] = submit(rig, IO_WRITE, 10 * i, 1, 1);
	read = submit(rig, IO_READ, 0, 1, 1);
	assert_int_equal(rig->fakes[0]->path.in_flight, 5);
	assert_int_equal(mpio_waiting(rig->mpio), 2);
	fake_path_kill(rig->fakes[0], "silence");
	rig_run_for(rig, NS_PER_S);
	expect(read, 0);
	assert_int_equal(mpio_fences(rig->mpio), 4);
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++)
		assert_int_equal(writes[i]->done, 0);
	assert_int_equal(rig_do(rig, IO_READ, 0, 1, 0), 0);
	rig->fakes[0]->refuse_login = rig->fakes[0]->hold = false;
	rig_run_for(rig, 5 * NS_PER_S);
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++)
		expect(writes[i], 0);
	assert_int_equal(mpio_fences(rig->mpio), 0);
	rig_close(rig);
}

/* How many of 200 blocks hold what was overwritten, in the end. */
static unsigned stale_blocks(const struct mpio_config *config, uint64_t travel_ns)
{
	static struct scene scene;
	struct rig *rig = &scene.rig;
	struct rig_io *rios[200];
	unsigned stale = 0;

	open_scene(&scene, config, 2, true, travel_ns, travel_ns);
	rig->fakes[0]->refuse_login = true;
	rig->fakes[0]->hold = true;
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++)
		rios[i] = submit(rig, IO_WRITE, i, 1, 1);
	fake_path_kill(rig->fakes[0], "silence");
	rig->fakes[0]->hold = false;
	rig_run_for(rig, MS);
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++) {
		expect(rios[i], 0);
		rios[i] = submit(rig, IO_WRITE, i, 1, 2);
	}
	rig_run_for(rig, 40 * NS_PER_S);
	if (config->fence == MPIO_FENCE_STRICT)
		rig->fakes[0]->refuse_login = false;
	rig_run_for(rig, 10 * NS_PER_S);
	for (unsigned i = 0; i < ARRAY_SIZE(rios); i++) {
		expect(rios[i], 0);
		stale += content(rig, i) != 2;
	}
	rig_close(rig);
	return stale;
}

/* The test of the tests: without the fence, or with one whose assumption does not hold, late writes
 * destroy newer ones. */
static void without_the_fence_writes_come_late(void **unused)
{
	struct mpio_config config = {.no_path_ns = NS_PER_S, .queue_depth = 256};

	config.fence = MPIO_FENCE_NONE;
	assert_true(stale_blocks(&config, 4 * NS_PER_S) > 20);
	config.fence = MPIO_FENCE_STRICT;
	assert_int_equal(stale_blocks(&config, 4 * NS_PER_S), 0);
	config.fence = MPIO_FENCE_RESET;
	assert_int_equal(stale_blocks(&config, 4 * NS_PER_S), 0);
	/* A network that delivers after longer than fence-hold. */
	config.fence_hold_ns = NS_PER_S;
	assert_true(stale_blocks(&config, 4 * NS_PER_S) > 20);
	config.fence_hold_ns = 4 * NS_PER_S;
	assert_int_equal(stale_blocks(&config, 4 * NS_PER_S), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_overlaps_wait),
	    cmocka_unit_test(failover_is_recorded),
	    cmocka_unit_test(own_login_is_the_proof),
	    cmocka_unit_test(login_elsewhere_is_no_proof),
	    cmocka_unit_test(failed_proofs_are_followed_by_others),
	    cmocka_unit_test(isid_is_used_once),
	    cmocka_unit_test(lost_writes_keep_their_order),
	    cmocka_unit_test(lost_writes_keep_their_order_without_ranges),
	    cmocka_unit_test(reissue_waits_for_overlaps_in_flight),
	    cmocka_unit_test(failed_write_keeps_its_fence),
	    cmocka_unit_test(full_table_pushes_back),
	    cmocka_unit_test(without_the_fence_writes_come_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
