/* SPDX-License-Identifier: MIT
 *
 * The simulated path when things end: cut, stall, disconnection and calls from within callbacks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "lab.h"

/* Writes crossing and in the target: all are lost at once, in order, then DOWN; what the target
 * holds it may still execute. */
static void test_cut(void **state)
{
	struct lab lab;
	struct side *side = &lab.sides[0];
	struct transfer back, held, going, after;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	lab.volume.deferred = true;
	transfer_start(&held, side, IO_WRITE, 1, 1, 0x11);
	lab_run_for(&lab, DELAY_NS / 2);
	transfer_start(&back, side, IO_READ, 8, 8, 0);
	lab_run_for(&lab, DELAY_NS);
	lab.volume.deferred = false;
	assert_int_equal(lab.volume.held_count, 2);
	transfer_start(&going, side, IO_WRITE, 2, 1, 0x22);
	sim_link_cut(side->link, true);
	assert_int_equal(lab.ended, 0);
	assert_int_equal(side->downs, 0);
	transfer_start(&after, side, IO_READ, 0, 1, 0); /* the session is gone: not sent */
	lab_run_for(&lab, 0);
	assert_int_equal(lab.ended, 4);
	assert_int_equal(after.pio.result, PATH_NOT_SENT);
	assert_true(held.order < back.order && back.order < going.order);
	assert_int_equal(held.pio.result, PATH_LOST);
	assert_int_equal(back.pio.result, PATH_LOST);
	assert_int_equal(going.pio.result, PATH_LOST);
	assert_int_equal(side->downs, 1);
	assert_string_equal(side->why, "connection reset: the link was cut");
	assert_int_equal(side->path->lost_by, PATH_DETECT_RESET);
	fake_volume_release(&lab.volume, 2);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(side->downs, 1);
	assert_int_equal(lab.volume.data[2 * BLOCK], 0); /* never arrived */
	transfer_finish(&held);
	transfer_finish(&back);
	transfer_finish(&going);
	transfer_finish(&after);

	assert_int_equal(lab.sides[1].downs, 0); /* the other link is whole */
	assert_int_equal(path_connect(side->path), 0);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(side->downs, 2);
	assert_non_null(strstr(side->why, "the link is cut"));
	sim_link_cut(side->link, false);
	assert_int_equal(path_connect(side->path), 0);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(side->ups, 2);
	transfer_start(&back, side, IO_READ, 1, 1, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(back.pio.result, PATH_OK);
	assert_int_equal(back.data[0], 0x11); /* executed although its answer was lost */
	transfer_finish(&back);
	lab_done(&lab);
}

/* An answer on its way back is lost too; a cut during login fails it. */
static void test_cut_answer_and_login(void **state)
{
	struct lab lab;
	struct transfer read;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	transfer_start(&read, &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, DELAY_NS + DELAY_NS / 2);
	assert_int_equal(lab.volume.reads, 1);
	sim_link_cut(lab.sides[0].link, true);
	sim_link_cut(lab.sides[0].link, false);
	lab_run_for(&lab, 0);
	assert_int_equal(read.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].downs, 1);
	transfer_finish(&read);
	for (uint64_t at = 0; at <= UP_NS - DELAY_NS; at += DELAY_NS / 2) {
		unsigned downs = lab.sides[0].downs;

		assert_int_equal(path_connect(lab.sides[0].path), 0);
		lab_run_for(&lab, at);
		sim_link_cut(lab.sides[0].link, true);
		sim_link_cut(lab.sides[0].link, false);
		lab_run_for(&lab, 0);
		assert_int_equal(lab.sides[0].downs, downs + 1);
	}
	assert_int_equal(lab.sides[0].ups, 1);
	lab_done(&lab);
}

static void test_stall_keepalive(void **state)
{
	static const struct path_config config = {
	    .lun = 3,
	    .keepalive_ns = NS_PER_S,
	    .io_timeout_ns = 5 * NS_PER_S,
	    .tcp_user_timeout_ns = 9 * NS_PER_S,
	};
	struct lab lab;
	struct transfer read;
	uint64_t heard;

	lab_init(&lab, &lab_plain_link, &config);
	lab_connect_all(&lab);
	heard = lab.sides[0].event_ns;
	sim_link_stall(lab.sides[0].link, true);
	transfer_start(&read, &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, 10 * NS_PER_S);
	assert_int_equal(read.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].downs, 1);
	assert_int_equal(lab.sides[0].event_ns - heard, 3 * NS_PER_S);
	assert_string_equal(lab.sides[0].why,
			    "no sign of life for 3.00 s: 2 keep-alives unanswered");
	transfer_finish(&read);
	assert_int_equal(lab.volume.reads, 0);
	assert_int_equal(lab.sides[1].downs, 0); /* idle, but answered */
	lab_done(&lab);
}

static void test_stall_io_timeout(void **state)
{
	static const struct path_config config = {
	    .lun = 3, .keepalive_ns = 10 * NS_PER_S, .io_timeout_ns = 300 * NS_PER_MS};
	struct lab lab;
	struct transfer read;

	lab_init(&lab, &lab_plain_link, &config);
	lab_connect_all(&lab);
	lab_run_for(&lab, 123 * NS_PER_MS);
	/* The link is fine, the target does not answer this one. */
	lab.volume.deferred = true;
	transfer_start(&read, &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, 300 * NS_PER_MS - 1);
	assert_int_equal(lab.sides[0].downs, 0);
	lab_run_for(&lab, 1);
	assert_int_equal(read.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].downs, 1);
	assert_int_equal(lab.sides[0].path->lost_by, PATH_DETECT_COMMAND);
	fake_volume_release(&lab.volume, 1);
	assert_non_null(strstr(lab.sides[0].why, "no answer to a command for 300"));
	transfer_finish(&read);
	lab_done(&lab);
}

/* A stall that ends in time only delays. */
static void test_stall_ends(void **state)
{
	static const struct path_config config = {
	    .lun = 3, .keepalive_ns = NS_PER_S, .tcp_user_timeout_ns = 2 * NS_PER_S};
	struct lab lab;
	struct transfer reads[2];
	uint64_t begin;

	lab_init(&lab, &lab_plain_link, &config);
	lab_connect_all(&lab);
	begin = loop_now_ns(lab.loop);
	sim_link_stall(lab.sides[0].link, true);
	transfer_start(&reads[0], &lab.sides[0], IO_READ, 0, 1, 0);
	transfer_start(&reads[1], &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, 1100 * NS_PER_MS);
	assert_int_equal(lab.ended, 0);
	sim_link_stall(lab.sides[0].link, false);
	lab_run_for(&lab, 10 * NS_PER_S);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(reads[i].pio.result, PATH_OK);
		assert_int_equal(reads[i].done_ns - begin, 1100 * NS_PER_MS + DELAY_NS);
		assert_int_equal(reads[i].order, i);
		transfer_finish(&reads[i]);
	}
	assert_int_equal(lab.sides[0].downs, 0);
	lab_done(&lab);
}

/* Disconnect ends everything at once, without event; the target's rest goes by itself. */
static void test_disconnect(void **state)
{
	struct lab lab;
	struct transfer held, going;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	lab.volume.deferred = true;
	transfer_start(&held, &lab.sides[0], IO_WRITE, 1, 4, 0x33);
	lab_run_for(&lab, DELAY_NS);
	assert_int_equal(lab.volume.held_count, 1);
	transfer_start(&going, &lab.sides[0], IO_WRITE, 2, 1, 0x44);
	path_disconnect(lab.sides[0].path);
	assert_int_equal(held.pio.result, PATH_LOST);
	assert_int_equal(going.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].path->in_flight, 0);
	transfer_finish(&held);
	transfer_finish(&going);
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	lab_run_for(&lab, NS_PER_S);
	/* The new login waits until what the old session had has ended. */
	assert_int_equal(lab.sides[0].downs, 0);
	assert_int_equal(lab.sides[0].ups, 1);
	lab.volume.deferred = false;
	fake_volume_release(&lab.volume, lab.volume.held_count);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(lab.sides[0].downs, 0);
	assert_int_equal(lab.sides[0].ups, 2);
	lab.volume.deferred = true;
	/* And a path freed with I/O in the target. */
	transfer_start(&going, &lab.sides[0], IO_READ, 0, 1, 0);
	lab_run_for(&lab, DELAY_NS);
	lab.sides[0].path = path_free(lab.sides[0].path);
	lab.sides[0].link = sim_link_free(lab.sides[0].link);
	assert_int_equal(going.pio.result, PATH_LOST);
	transfer_finish(&going);
	fake_volume_release(&lab.volume, 1);
	assert_int_equal(lab.volume.data[BLOCK], 0x33);
	lab_done(&lab);
}

static void test_calls_from_callbacks(void **state)
{
	struct lab lab;
	struct transfer transfers[3];

	lab_init(&lab, &lab_plain_link, NULL);
	lab.sides[0].disconnect_on_up = true;
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(lab.sides[0].ups, 1);
	assert_int_equal(lab.sides[0].downs, 0);
	assert_false(lab.sides[0].path->up);
	lab.sides[0].disconnect_on_up = false;
	lab_connect_all(&lab);
	for (unsigned i = 0; i < 3; i++)
		transfer_start(&transfers[i], &lab.sides[0], IO_READ, 0, 1, 0);
	lab.sides[0].free_on_done = true; /* of the first: the others are lost */
	lab_run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transfers[i].pio.result, i == 0 ? PATH_OK : PATH_LOST);
		transfer_finish(&transfers[i]);
	}
	/* The same when the link is cut: free from within the first loss. */
	for (unsigned i = 0; i < 3; i++)
		transfer_start(&transfers[i], &lab.sides[1], IO_READ, 0, 1, 0);
	lab.sides[1].free_on_done = true;
	sim_link_cut(lab.sides[1].link, true);
	lab_run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transfers[i].pio.result, PATH_LOST);
		transfer_finish(&transfers[i]);
	}
	assert_int_equal(lab.sides[1].downs, 0);
	lab_done(&lab);
}

/* The fencing hazard: a write behind a stall is lost for the initiator, whose reset is lost, too;
 * when the stall ends the target executes it. */
static void test_late_write(void **state)
{
	struct lab lab;
	struct side *side = &lab.sides[0];
	struct transfer late, newer;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	sim_link_stall(side->link, true);
	transfer_start(&late, side, IO_WRITE, 1, 1, 0x11);
	lab_run_for(&lab, 3 * NS_PER_S);
	assert_int_equal(late.pio.result, PATH_LOST);
	assert_int_equal(side->downs, 1);
	transfer_finish(&late);
	transfer_start(&newer, &lab.sides[1], IO_WRITE, 1, 1, 0x22);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(newer.pio.result, PATH_OK);
	assert_int_equal(lab.volume.data[BLOCK], 0x22);
	transfer_finish(&newer);
	sim_link_stall(side->link, false);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(lab.volume.data[BLOCK], 0x11);
	/* Its answer finds no connection: the target's session has ended by that. */
	assert_int_equal(lab.server->session_count, 1);
	lab_done(&lab);
}

/* The same where the network forgets what nobody sends again. */
static void test_forgotten_write(void **state)
{
	const struct sim_link_config forgetful = {.delay_ns = DELAY_NS, .life_ns = NS_PER_S};
	struct lab lab;
	struct transfer late;

	lab_init(&lab, &forgetful, NULL);
	lab_connect_all(&lab);
	sim_link_stall(lab.sides[0].link, true);
	transfer_start(&late, &lab.sides[0], IO_WRITE, 1, 1, 0x11);
	lab_run_for(&lab, 4 * NS_PER_S);
	assert_int_equal(late.pio.result, PATH_LOST);
	transfer_finish(&late);
	sim_link_stall(lab.sides[0].link, false);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(lab.volume.data[BLOCK], 0);
	lab_done(&lab);
}

/* What goes one way arrives; that nothing comes back is found by the keep-alive. */
static void test_half_stall(void **state)
{
	struct lab lab;
	struct transfer write;

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	sim_link_stall_lane(lab.sides[0].link, SIM_TO_INITIATOR, true);
	transfer_start(&write, &lab.sides[0], IO_WRITE, 1, 1, 0x11);
	lab_run_for(&lab, 4 * NS_PER_S);
	assert_int_equal(write.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].path->lost_by, PATH_DETECT_KEEPALIVE);
	assert_int_equal(lab.volume.data[BLOCK], 0x11);
	transfer_finish(&write);
	lab_done(&lab);
}

/* A lost segment comes again after a while, and what was sent behind it waits. */
static void test_drop(void **state)
{
	const uint64_t retransmit_ns = 200 * NS_PER_MS;
	struct lab lab;
	struct transfer writes[2];

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	sim_link_drop(lab.sides[0].link, SIM_TO_TARGET);
	for (unsigned i = 0; i < 2; i++)
		transfer_start(&writes[i], &lab.sides[0], IO_WRITE, i, 1, 0x11);
	lab_run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(writes[i].pio.result, PATH_OK);
		assert_int_equal(writes[i].done_ns - writes[i].pio.submit_ns,
				 retransmit_ns + 2 * DELAY_NS);
		transfer_finish(&writes[i]);
	}
	lab_done(&lab);
}

struct proof {
	struct path_fence fence;
	unsigned done;
	int status;
	uint64_t done_ns;
	struct lab *lab;
};

static void on_proof(struct path_fence *fence, int status)
{
	struct proof *proof = fence->owner;

	proof->done++;
	proof->status = status;
	proof->done_ns = loop_now_ns(proof->lab->loop);
}

static struct proof proof_of(struct lab *lab)
{
	return (struct proof){.lab = lab, .fence.done = on_proof};
}

/* Reinstatement through the portal of another path of the same portal group ends the old session,
 * and waits for what the unit still does for it. */
static void test_fence(void **state)
{
	struct lab lab;
	struct side *side = &lab.sides[0];
	struct transfer held, late;
	struct proof proof = proof_of(&lab);

	lab_init(&lab, &lab_plain_link, NULL);
	lab.server->portals[1]->config.group_tag = lab.server->portals[0]->config.group_tag;
	proof.fence.owner = &proof;
	assert_int_equal(path_fence(lab.sides[1].path, side->path, &proof.fence), -ENOTCONN);
	lab_connect_all(&lab);
	lab.volume.deferred = true;
	transfer_start(&held, side, IO_WRITE, 1, 1, 0x11);
	lab_run_for(&lab, 10 * DELAY_NS);
	lab.volume.deferred = false;
	sim_link_stall(side->link, true);
	transfer_start(&late, side, IO_WRITE, 2, 1, 0x22);
	lab_run_for(&lab, 3 * NS_PER_S);
	assert_int_equal(side->downs, 1);
	assert_int_equal(path_fence(lab.sides[1].path, side->path, &proof.fence), 0);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(proof.done, 0); /* the unit holds on to one */
	fake_volume_release(&lab.volume, 1);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(proof.done, 1);
	assert_int_equal(proof.status, 0);
	assert_int_equal(lab.server->session_count, 1);
	sim_link_stall(side->link, false);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(lab.volume.data[2 * BLOCK], 0); /* never executed */
	transfer_finish(&held);
	transfer_finish(&late);
	lab_done(&lab);
}

static void test_fence_fails(void **state)
{
	struct lab lab;
	struct proof proof = proof_of(&lab);

	lab_init(&lab, &lab_plain_link, NULL);
	lab_connect_all(&lab);
	proof.fence.owner = &proof;
	path_disconnect(lab.sides[0].path);
	/* Nobody listens any more. */
	sim_link_lead_to(lab.sides[1].link, NULL);
	assert_int_equal(path_fence(lab.sides[1].path, lab.sides[0].path, &proof.fence), 0);
	assert_int_equal(proof.done, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(proof.done, 1);
	assert_int_equal(proof.status, -ECONNREFUSED);
	/* The owner lets go of the path. */
	sim_link_stall(lab.sides[1].link, true);
	assert_int_equal(path_fence(lab.sides[1].path, lab.sides[0].path, &proof.fence), 0);
	path_disconnect(lab.sides[1].path);
	assert_int_equal(proof.done, 2);
	assert_int_equal(proof.status, -ECANCELED);
	lab_done(&lab);
}

/* What a function has ended in the target ends here with TASK ABORTED: the own commands of the path
 * that reset the unit, and those of another one by ABORT TASK SET.  What is sent later is not. */
static void test_functions_end_commands(void **state)
{
	struct lab lab;
	struct transfer held[PATHS], later;
	struct proof proof = proof_of(&lab);

	lab_init(&lab, &lab_plain_link, NULL);
	proof.fence.owner = &proof;
	lab_connect_all(&lab);
	lab.volume.deferred = true;
	for (unsigned i = 0; i < PATHS; i++)
		transfer_start(&held[i], &lab.sides[i], IO_WRITE, i, 1, 0x11);
	lab_run_for(&lab, 10 * DELAY_NS);
	lab.volume.deferred = false;
	assert_int_equal(path_reset_unit(lab.sides[1].path, &proof.fence), 0);
	transfer_start(&later, &lab.sides[1], IO_READ, 5, 1, 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	fake_volume_release(&lab.volume, PATHS);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(proof.done, 1);
	assert_int_equal(held[1].pio.result, PATH_STATUS);
	assert_int_equal(held[1].pio.scsi_status, 0x40);
	assert_int_equal(later.done_count, 1);
	assert_int_not_equal(later.pio.scsi_status, 0x40);
	assert_int_equal(held[0].done_count, 0);
	assert_int_equal(path_abort_tasks(lab.sides[0].path, &proof.fence), 0);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(proof.done, 2);
	assert_int_equal(held[0].pio.scsi_status, 0x40);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(lab.sides[i].path->in_flight, 0);
		assert_int_equal(lab.sides[i].downs, 0);
		transfer_finish(&held[i]);
	}
	transfer_finish(&later);
	lab_done(&lab);
}

/* LOGICAL UNIT RESET ends the other path's write in the target. */
static void test_reset_unit(void **state)
{
	struct lab lab;
	struct transfer held;
	struct proof proof = proof_of(&lab);

	lab_init(&lab, &lab_plain_link, NULL);
	proof.fence.owner = &proof;
	assert_int_equal(path_reset_unit(lab.sides[1].path, &proof.fence), -ENOTCONN);
	lab_connect_all(&lab);
	lab.volume.deferred = true;
	transfer_start(&held, &lab.sides[0], IO_WRITE, 1, 1, 0x11);
	lab_run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(path_reset_unit(lab.sides[1].path, &proof.fence), 0);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(proof.done, 0);
	fake_volume_release(&lab.volume, 1);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(proof.done, 1);
	assert_int_equal(proof.status, 0);
	assert_int_equal(lab.ended, 0); /* aborted without an answer, as RFC 7143 11.5.1 has it */
	/* And one whose answer never comes. */
	assert_int_equal(path_reset_unit(lab.sides[1].path, &proof.fence), 0);
	sim_link_cut(lab.sides[1].link, true);
	lab_run_for(&lab, NS_PER_S);
	assert_int_equal(proof.done, 2);
	assert_int_equal(proof.status, -ENOTCONN);
	path_disconnect(lab.sides[0].path);
	transfer_finish(&held);
	lab_done(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_cut_answer_and_login),
	    cmocka_unit_test(test_stall_keepalive),
	    cmocka_unit_test(test_stall_io_timeout),
	    cmocka_unit_test(test_stall_ends),
	    cmocka_unit_test(test_disconnect),
	    cmocka_unit_test(test_calls_from_callbacks),
	    cmocka_unit_test(test_late_write),
	    cmocka_unit_test(test_forgotten_write),
	    cmocka_unit_test(test_half_stall),
	    cmocka_unit_test(test_drop),
	    cmocka_unit_test(test_fence),
	    cmocka_unit_test(test_fence_fails),
	    cmocka_unit_test(test_reset_unit),
	    cmocka_unit_test(test_functions_end_commands),
	};

	return cmocka_run_group_tests_name("sim_loss", tests, NULL, NULL);
}
