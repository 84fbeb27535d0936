/* SPDX-License-Identifier: MIT
 *
 * The last proof that a lost write is gone: LOGICAL UNIT RESET, and what it does to others.
 */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "scene.h"

struct load {
	struct rig *rig;
	struct rig_io *rios[16];
	bool stop;
};

static void load_done(struct io *io)
{
	struct rig_io *rio = io->owner;
	struct load *load = (struct load *)rio->rig;

	rio->done++;
	assert_int_equal(io->status, 0);
	if (!load->stop)
		io_submit(load->rig->layer, io);
}

static void start_load(struct load *load, struct rig *rig)
{
	*load = (struct load){.rig = rig};
	for (unsigned i = 0; i < ARRAY_SIZE(load->rios); i++) {
		load->rios[i] = rig_io_new(rig, i % 2 ? IO_READ : IO_WRITE, 1000 + i, 1, 5);
		load->rios[i]->rig = (struct rig *)load;
		load->rios[i]->io.done = load_done;
		io_submit(rig->layer, &load->rios[i]->io);
	}
}

static void stop_load(struct load *load)
{
	load->stop = true;
	rig_run_for(load->rig, NS_PER_S);
	for (unsigned i = 0; i < ARRAY_SIZE(load->rios); i++)
		rig_io_free(load->rios[i]);
}

/* The last rung: after the hold the unit is reset, with nothing in flight that it would hit. */
static void reset_is_the_last_rung(void **unused)
{
	struct rig_io *older, *newer;
	static struct scene scene;
	struct rig *rig = &scene.rig;
	struct load load;
	uint64_t lost_ns;

	open_scene(&scene, NULL, 3, true, 4 * NS_PER_S, 60 * NS_PER_S);
	rig->fakes[0]->refuse_login = true;
	older = lose_a_write(rig, 0, 1);
	lost_ns = loop_now_ns(rig->loop);
	start_load(&load, rig);
	rig_run_for(rig, 10 * NS_PER_S);
	assert_int_equal(rig->disk.resets, 0); /* nobody waits: no reason to hurt others */
	assert_int_equal(mpio_fences(rig->mpio), 1);
	newer = submit(rig, IO_WRITE, 107, 1, 2);
	rig_run_for(rig, 10 * MS);
	assert_int_equal(rig->disk.resets, 1);
	assert_int_equal(rig->disk.reset_victims, 0);
	assert_true(newer->done_ns > lost_ns + 5 * NS_PER_S);
	expect(older, 0);
	expect(newer, 0);
	assert_int_equal(milestone(&scene, MPIO_FENCED)->proof, MPIO_PROOF_RESET);
	/* And one that waits from the start waits for the hold. */
	stop_load(&load);
	assert_int_equal(rig_do(rig, IO_READ, 0, 1, 0), 0);
	if (rig->fakes[1]->submitted > rig->fakes[2]->submitted)
		assert_int_equal(rig_do(rig, IO_READ, 0, 1, 0), 0);
	older = lose_a_write(rig, 1, 3);
	lost_ns = loop_now_ns(rig->loop);
	newer = submit(rig, IO_WRITE, 107, 1, 4);
	rig->fakes[1]->refuse_login = true;
	rig_run_for(rig, 6 * NS_PER_S);
	assert_true(newer->done_ns >= lost_ns + 5 * NS_PER_S);
	assert_true(newer->done_ns < lost_ns + 5 * NS_PER_S + 10 * MS);
	expect(older, 0);
	expect(newer, 0);
	rig_run_for(rig, 100 * NS_PER_S);
	assert_int_equal(content(rig, 107), 4);
	rig_close(rig);
}

/* I/O that is not answered within the time a reset waits for it is ended by the reset without an
 * answer, whichever path it is on: it comes back and is done again. */
static void reset_brings_back_what_it_ends(void **unused)
{
	struct rig_io *older, *newer, *slow[6];
	static struct scene scene;
	struct rig *rig = &scene.rig;

	open_scene(&scene, NULL, 3, true, 4 * NS_PER_S, 60 * NS_PER_S);
	rig->fakes[0]->refuse_login = true;
	older = lose_a_write(rig, 0, 1);
	rig_run_for(rig, 6 * NS_PER_S);
	rig->fakes[1]->service_ns = rig->fakes[2]->service_ns = 3600 * NS_PER_S;
	for (unsigned i = 0; i < ARRAY_SIZE(slow); i++)
		slow[i] = submit(rig, IO_WRITE, 200 + i, 1, 7);
	rig->fakes[1]->service_ns = rig->fakes[2]->service_ns = MS;
	newer = submit(rig, IO_WRITE, 107, 1, 2);
	rig_run_for(rig, 2 * NS_PER_S);
	assert_int_equal(rig->disk.resets, 1);
	assert_int_equal(rig->disk.reset_victims, ARRAY_SIZE(slow));
	assert_int_equal(rig->disk.abort_sets, 1);
	expect(older, 0);
	expect(newer, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(slow); i++) {
		expect(slow[i], 0);
		assert_int_equal(content(rig, 200 + i), 7);
	}
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reset_is_the_last_rung),
	    cmocka_unit_test(reset_brings_back_what_it_ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
