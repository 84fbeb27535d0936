/* SPDX-License-Identifier: MIT
 *
 * Bugs other initiators had in the life of a session: keep-alive, windows, ends, descriptors.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANY = 32, WINDOW = 64, LATE = 4 };

static uint8_t memory[WINDOW + LATE][8 * PEER_BLOCK_BYTES];
static struct owner_io oios[WINDOW + LATE];

static void submit_many(struct rig *rig, unsigned from, unsigned count, enum io_op op)
{
	for (unsigned i = from; i < from + count; i++) {
		oios[i] = (struct owner_io){0};
		owner_submit(&rig->owner, &oios[i], op, i * 8, 8, memory[i]);
	}
}

static void expect_one_end_each(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(oios[i].ends, 1);
}

/* An answer with an additional header segment, which nothing here has asked for. */
static bool answer_with_ahs(struct peer *peer, const struct peer_pdu *pdu)
{
	static const uint8_t ahs[4];
	uint8_t bhs[PEER_BHS_BYTES];

	if (!rig_is_write(pdu))
		return false;
	peer_header(peer, pdu->bhs, PEER_RESPONSE, bhs);
	bhs[4] = 1;
	peer_send(peer, bhs, NULL, 0);
	(void)!send(peer->fd, ahs, sizeof ahs, MSG_NOSIGNAL);
	return true;
}

static void test_prior_25_ahs_in_an_answer(void **unused)
{
	struct rig rig;

	rig_open(&rig);
	rig.peer.script = answer_with_ahs;
	rig_up(&rig);
	submit_many(&rig, 0, MANY, IO_WRITE);
	rig_expect_down(&rig, 1, "");
	assert_int_equal(rig.owner.lost, MANY);
	expect_one_end_each(MANY);
	rig.peer.script = NULL;
	rig_up(&rig);
	submit_many(&rig, 0, MANY, IO_WRITE);
	rig_expect(&rig, &rig.owner.ok, MANY);
	rig_close(&rig);
}

static void test_prior_58_end_during_io(void **unused)
{
	struct rig rig;

	for (unsigned way = 0; way < 3; way++) {
		rig_open(&rig);
		rig_up(&rig);
		rig.peer.mute_io = way != 0;
		submit_many(&rig, 0, MANY, IO_WRITE);
		if (way == 2) /* all of them are with the target */
			rig_expect(&rig, &rig.peer.writes, MANY);
		path_disconnect(rig.owner.path);
		assert_int_equal(rig.owner.done, MANY);
		assert_int_equal(rig.owner.lost, MANY);
		expect_one_end_each(MANY);
		assert_int_equal(rig.owner.path->in_flight, 0);
		rig.peer.mute_io = false;
		rig_up(&rig);
		submit_many(&rig, 0, MANY, IO_WRITE);
		rig_expect(&rig, &rig.owner.ok, MANY);
		expect_one_end_each(MANY);
		assert_int_equal(rig.owner.downs, 0);
		rig_close(&rig);
	}
}

/* ---- 60: a path that is busy ---- */

struct busy {
	struct peer *peer;
	struct loop_timer timer;
	uint8_t request[PEER_BHS_BYTES];
	bool pending;
	unsigned nops, pieces, sent;
};

static bool swallow_nops(struct busy *busy, const struct peer_pdu *pdu)
{
	if ((pdu->bhs[0] & 0x3f) != PEER_NOP_OUT)
		return false;
	busy->nops++;
	return true;
}

static void answer_late(void *arg)
{
	struct busy *busy = arg;

	busy->pending = false;
	peer_data_in(busy->peer, busy->request, memory[0], 8 * PEER_BLOCK_BYTES);
}

/* Each read is answered after a while; a NOP never is. */
static bool late_reads(struct peer *peer, const struct peer_pdu *pdu)
{
	struct busy *busy = peer->script_arg;

	if (swallow_nops(busy, pdu))
		return true;
	if (!rig_is_read(pdu))
		return false;
	assert_false(busy->pending);
	busy->pending = true;
	memcpy(busy->request, pdu->bhs, sizeof busy->request);
	loop_timer_set(peer->loop, &busy->timer, loop_now_ns(peer->loop) + 25 * NS_PER_MS);
	return true;
}

static void open_busy(struct rig *rig, struct busy *busy, loop_fn on_timer,
		      bool (*script)(struct peer *peer, const struct peer_pdu *pdu))
{
	*busy = (struct busy){0};
	rig_open(rig);
	rig->config.keepalive_ns = 20 * NS_PER_MS;
	rig_up(rig);
	busy->peer = &rig->peer;
	rig->peer.script = script;
	rig->peer.script_arg = busy;
	loop_timer_init(&busy->timer, on_timer, busy);
}

static void test_prior_60_busy_path_outlives_unanswered_nops(void **unused)
{
	struct busy busy;
	struct rig rig;

	open_busy(&rig, &busy, answer_late, late_reads);
	for (unsigned i = 1; i <= 12; i++) {
		submit_many(&rig, 0, 1, IO_READ);
		rig_expect(&rig, &rig.owner.ok, i);
	}
	assert_true(busy.nops > 2);
	assert_int_equal(rig.owner.downs, 0);
	/* Nothing more comes: now it is lost. */
	rig_expect_down(&rig, 1, "keep-alives unanswered");
	loop_timer_cancel(rig.loop, &busy.timer);
	rig_close(&rig);
}

enum { PIECES = 64, PIECE_BYTES = 8 * PEER_BLOCK_BYTES / PIECES };

/* One read whose data come as a thin stream. */
static void send_piece(void *arg)
{
	struct busy *busy = arg;
	uint8_t bhs[PEER_BHS_BYTES];
	bool last = busy->sent + 1 == PIECES;

	peer_header(busy->peer, busy->request, PEER_DATA_IN, bhs);
	bhs[1] = last ? 0x81 : 0;
	if (!last)
		busy->peer->stat_sn--; /* there is no status in it */
	put_be32(bhs + 20, UINT32_MAX);
	put_be32(bhs + 36, busy->sent);
	put_be32(bhs + 40, busy->sent * PIECE_BYTES);
	peer_send(busy->peer, bhs, memory[1] + (size_t)busy->sent * PIECE_BYTES, PIECE_BYTES);
	busy->sent++;
	if (!last)
		loop_timer_set(busy->peer->loop, &busy->timer,
			       loop_now_ns(busy->peer->loop) + 5 * NS_PER_MS);
}

static bool thin_read(struct peer *peer, const struct peer_pdu *pdu)
{
	struct busy *busy = peer->script_arg;

	if (swallow_nops(busy, pdu))
		return true;
	if (!rig_is_read(pdu))
		return false;
	memcpy(busy->request, pdu->bhs, sizeof busy->request);
	send_piece(busy);
	return true;
}

static void test_prior_60_data_on_the_way_are_a_sign_of_life(void **unused)
{
	struct busy busy;
	struct rig rig;

	open_busy(&rig, &busy, send_piece, thin_read);
	rig_fill(memory[1], sizeof memory[1], 60);
	submit_many(&rig, 0, 1, IO_READ);
	rig_expect(&rig, &rig.owner.done, 1);
	assert_int_equal(rig.owner.ok, 1);
	assert_int_equal(rig.owner.downs, 0);
	assert_memory_equal(memory[0], memory[1], sizeof memory[0]);
	loop_timer_cancel(rig.loop, &busy.timer);
	rig_close(&rig);
}

/* ---- 91: a closed window ---- */

struct window {
	uint8_t first[PEER_BHS_BYTES]; /* the oldest read */
	bool any, held;
	uint32_t next_cmd_sn;
	unsigned reads;
};

static bool contiguous(struct peer *peer, const struct peer_pdu *pdu)
{
	struct window *window = peer->script_arg;

	if ((pdu->bhs[0] & 0x3f) == PEER_LOGIN) {
		window->any = false;
		return false;
	}
	if (!(pdu->bhs[0] & 0x40)) {
		if (window->any)
			assert_int_equal(get_be32(pdu->bhs + 24), window->next_cmd_sn);
		window->any = true;
		window->next_cmd_sn = get_be32(pdu->bhs + 24) + 1;
	}
	if (!rig_is_read(pdu) || !window->held)
		return false;
	if (window->reads++ == 0)
		memcpy(window->first, pdu->bhs, sizeof window->first);
	/* Nothing may be beyond what was allowed (28). */
	assert_true((int32_t)(get_be32(pdu->bhs + 24) - peer->max_cmd_sn) <= 0);
	if (window->reads > WINDOW)
		peer_data_in(peer, pdu->bhs, memory[0], 8 * PEER_BLOCK_BYTES);
	return true;
}

static void fill_window(struct rig *rig, struct window *window)
{
	*window = (struct window){0};
	rig_open(rig);
	rig->peer.script = contiguous;
	rig->peer.script_arg = window;
	rig->config.io_timeout_ns = 300 * NS_PER_MS;
	rig->config.keepalive_ns = 10 * NS_PER_S;
	rig_up(rig);
	rig->peer.window_closed = true;
	window->held = true;
	submit_many(rig, 0, WINDOW + LATE, IO_READ);
	rig_expect(rig, &window->reads, WINDOW);
}

static void test_prior_91_reopened_window_leaves_no_gap(void **unused)
{
	struct window window;
	struct rig rig;

	fill_window(&rig, &window);
	rig.peer.window_closed = false;
	peer_data_in(&rig.peer, window.first, memory[0], 8 * PEER_BLOCK_BYTES);
	rig_expect(&rig, &window.reads, WINDOW + LATE);
	rig_expect(&rig, &rig.owner.ok, 1 + LATE);
	assert_int_equal(rig.owner.downs, 0);
	rig_close(&rig);
}

static void test_prior_91_command_timeout_ends_the_session_in_order(void **unused)
{
	struct window window;
	struct rig rig;

	fill_window(&rig, &window);
	rig_expect_down(&rig, 1, "no answer to a command");
	assert_int_equal(window.reads, WINDOW);
	assert_int_equal(rig.owner.lost, WINDOW + LATE);
	expect_one_end_each(WINDOW + LATE);
	window.held = false;
	rig.peer.window_closed = false;
	rig_up(&rig);
	submit_many(&rig, 0, WINDOW + LATE, IO_READ);
	rig_expect(&rig, &rig.owner.ok, WINDOW + LATE);
	rig_close(&rig);
}

/* ---- 95: descriptors ---- */

enum { FILES = 16 };

static void test_prior_95_descriptors_of_others_are_left_alone(void **unused)
{
	struct stat before[FILES], after;
	int fds[FILES];
	struct rig rig;

	rig_open(&rig);
	rig_up(&rig);
	for (unsigned loss = 1; loss <= 3; loss++) {
		peer_drop(&rig.peer, loss & 1);
		rig_expect(&rig, &rig.owner.downs, loss);
		/* The number that the session had is one of these now. */
		for (unsigned i = 0; i < FILES; i++) {
			char name[] = "/tmp/sanlab-prior-XXXXXX";

			fds[i] = mkstemp(name);
			assert_true(fds[i] >= 0);
			assert_int_equal(unlink(name), 0);
			assert_int_equal(write(fds[i], "mine", 4), 4);
			assert_int_equal(fstat(fds[i], &before[i]), 0);
		}
		rig_up(&rig);
		submit_many(&rig, 0, MANY, IO_WRITE);
		rig_expect(&rig, &rig.owner.ok, loss * MANY);
		for (unsigned i = 0; i < FILES; i++) {
			assert_int_equal(fstat(fds[i], &after), 0);
			assert_int_equal(after.st_ino, before[i].st_ino);
			assert_int_equal(after.st_size, 4);
			close(fds[i]);
		}
	}
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_prior_25_ahs_in_an_answer),
	    cmocka_unit_test(test_prior_58_end_during_io),
	    cmocka_unit_test(test_prior_60_busy_path_outlives_unanswered_nops),
	    cmocka_unit_test(test_prior_60_data_on_the_way_are_a_sign_of_life),
	    cmocka_unit_test(test_prior_91_reopened_window_leaves_no_gap),
	    cmocka_unit_test(test_prior_91_command_timeout_ends_the_session_in_order),
	    cmocka_unit_test(test_prior_95_descriptors_of_others_are_left_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
