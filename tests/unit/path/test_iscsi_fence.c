/* SPDX-License-Identifier: MIT
 *
 * Fences of the iSCSI path against scripted targets: logins in a lost path's name, and task
 * management.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "tests/initiator/rig.h"

enum { FUNCTION_RESET = 5, FUNCTION_ABORT_SET = 2, TASK_ABORTED = 0x40 };

struct proof {
	struct path_fence fence;
	unsigned done;
	int status;
	struct owner *frees; /* whose path is freed from within done */
	unsigned ended;	     /* I/Os at the time of done */
	struct owner *watched;
};

static void on_proof(struct path_fence *fence, int status)
{
	struct proof *proof = fence->owner;

	proof->done++;
	proof->status = status;
	if (proof->watched)
		proof->ended = proof->watched->done;
	if (proof->frees)
		proof->frees->path = path_free(proof->frees->path);
}

static void proof_init(struct proof *proof)
{
	*proof = (struct proof){.fence = {.done = on_proof, .owner = proof}};
}

/* ---- reinstatement ---- */

/* A path that is up (through the rig's own peer), a victim that is down, and the peers that the
 * fence's first and second login meet: each serves only one connection. */
struct fence_rig {
	struct rig rig;
	struct owner victim;
	struct path_config victim_config;
	struct peer second, third;
	unsigned dials;
	struct proof proof;
};

static const char *dial(void *arg, const char *portal)
{
	struct fence_rig *f = arg;

	switch (f->dials++) {
	case 0:
		return f->rig.peer.portal;
	case 1:
		return f->second.portal;
	default:
		return f->third.portal;
	}
}

static void fence_rig_open(struct fence_rig *f)
{
	*f = (struct fence_rig){0};
	rig_open(&f->rig);
	peer_open(&f->second, f->rig.loop);
	peer_open(&f->third, f->rig.loop);
	f->rig.config.portal = "192.0.2.1:3260";
	f->rig.config.dial = dial;
	f->rig.config.dial_arg = f;
	f->rig.config.login_timeout_ns = 2 * NS_PER_S;
	f->victim_config = owner_config(&f->victim, "192.0.2.2:3260");
	f->victim_config.isid_qualifier = 0xfedcba98;
	f->victim_config.initiator_name = "iqn.2026-11.test.sanlab:victim";
	assert_int_equal(owner_open(&f->victim, f->rig.loop, &f->victim_config), 0);
	rig_up(&f->rig);
	proof_init(&f->proof);
}

static void fence_rig_close(struct fence_rig *f)
{
	path_free(f->victim.path);
	peer_close(&f->second);
	peer_close(&f->third);
	rig_close(&f->rig);
}

static int begin(struct fence_rig *f)
{
	int r = path_fence(f->rig.owner.path, f->victim.path, &f->proof.fence);

	assert_int_equal(f->proof.done, 0); /* never from within */
	return r;
}

static void expect(struct fence_rig *f, int status)
{
	rig_expect(&f->rig, &f->proof.done, 1);
	assert_int_equal(f->proof.status, status);
}

static bool note_login(struct peer *peer, const struct peer_pdu *pdu)
{
	struct peer_pdu *first = peer->script_arg;
	static uint8_t bhs[PEER_BHS_BYTES];
	static uint8_t text[1024];

	if ((pdu->bhs[0] & 0x3f) != PEER_LOGIN || first->bhs)
		return false;
	memcpy(bhs, pdu->bhs, sizeof bhs);
	memcpy(text, pdu->data, MIN_OF(pdu->size, sizeof text));
	*first = (struct peer_pdu){bhs, text, MIN_OF(pdu->size, (uint32_t)sizeof text)};
	return false;
}

static void a_login_in_the_victims_name(void **unused)
{
	struct peer_pdu login = {0};
	struct fence_rig f;

	fence_rig_open(&f);
	f.second.script = note_login;
	f.second.script_arg = &login;
	assert_int_equal(begin(&f), 0);
	expect(&f, 0);
	assert_int_equal(f.second.logins, 1);
	assert_int_equal(f.second.logouts, 1);
	assert_memory_equal(f.second.isids[0], ((uint8_t[]){0x80, 0x00, 0xfe, 0xdc, 0xba, 0x98}),
			    6);
	assert_int_equal(get_be16(login.bhs + 14), 0); /* TSIH: a session of its own */
	assert_non_null(
	    memmem(login.data, login.size, "InitiatorName=iqn.2026-11.test.sanlab:victim", 45));
	assert_int_equal(f.rig.owner.downs, 0);
	assert_true(f.rig.owner.path->up);
	fence_rig_close(&f);
}

static void logins_that_prove_nothing(void **unused)
{
	static const int statuses[] = {-ECONNREFUSED, -ECONNRESET, -ETIMEDOUT, -ECONNREFUSED,
				       -ECONNREFUSED};
	struct fence_rig f;

	for (unsigned way = 0; way < ARRAY_SIZE(statuses); way++) {
		fence_rig_open(&f);
		f.second.login_status = way == 0 ? 0x0301 : 0;
		f.second.close_at_login = way == 1;
		f.second.silent = way == 2;
		f.rig.owner.path->config.login_timeout_ns = (way == 2 ? 50 : 5000) * NS_PER_MS;
		f.second.redirect_to = way == 3 ? "192.0.2.9:3260" : NULL;
		if (way == 4)
			peer_stop_listening(&f.second);
		assert_int_equal(begin(&f), 0);
		expect(&f, statuses[way]);
		assert_int_equal(f.rig.owner.downs, 0);
		fence_rig_close(&f);
	}
}

/* To reinstate on tgt a login offers CHAP; a target that has none may refuse it for that. */
static void refused_security_stage(void **unused)
{
	struct peer_pdu login = {0};
	struct fence_rig f;

	for (unsigned way = 0; way < 2; way++) {
		fence_rig_open(&f);
		f.second.login_status = 0x0200;
		f.third.login_status = way == 0 ? 0 : 0x0200;
		f.third.script = note_login;
		f.third.script_arg = &login;
		assert_int_equal(begin(&f), 0);
		expect(&f, way == 0 ? 0 : -ECONNREFUSED);
		assert_int_equal(f.dials, 3);
		assert_null(memmem(login.data, login.size, "CHAP", 4));
		assert_int_equal(f.third.logouts, way == 0);
		fence_rig_close(&f);
	}
}

static void fences_that_do_not_begin(void **unused)
{
	struct fence_rig f;
	struct path_config other;
	struct owner stranger;
	struct proof proofs[PATH_FENCES_MAX];
	unsigned cancelled = 0;

	fence_rig_open(&f);
	other = f.victim_config;
	other.target = "iqn.2026-11.test.sanlab:other";
	assert_int_equal(owner_open(&stranger, f.rig.loop, &other), 0);
	assert_int_equal(path_fence(f.rig.owner.path, stranger.path, &f.proof.fence), -EINVAL);
	assert_int_equal(path_fence(stranger.path, f.victim.path, &f.proof.fence), -ENOTCONN);
	path_free(stranger.path);
	/* The victim's own login is under way. */
	f.victim.path->config.dial = dial;
	f.victim.path->config.dial_arg = &f;
	assert_int_equal(path_connect(f.victim.path), 0);
	assert_int_equal(begin(&f), -EALREADY);
	path_disconnect(f.victim.path);
	/* More than the bound; the end of the path ends them all. */
	f.second.silent = true;
	for (unsigned i = 0; i < PATH_FENCES_MAX; i++) {
		proof_init(&proofs[i]);
		assert_int_equal(path_fence(f.rig.owner.path, f.victim.path, &proofs[i].fence), 0);
	}
	assert_int_equal(begin(&f), -EBUSY);
	f.rig.owner.path = path_free(f.rig.owner.path);
	for (unsigned i = 0; i < PATH_FENCES_MAX; i++)
		cancelled += proofs[i].done == 1 && proofs[i].status == -ECANCELED;
	assert_int_equal(cancelled, PATH_FENCES_MAX);
	fence_rig_close(&f);
}

/* The fence's login is its own: the loss of the path it began on does not end it; and the path may
 * be freed when it is done. */
static void fence_outlives_login(void **unused)
{
	struct fence_rig f;

	fence_rig_open(&f);
	f.proof.frees = &f.rig.owner;
	assert_int_equal(begin(&f), 0);
	peer_drop(&f.rig.peer, true);
	expect(&f, 0);
	assert_null(f.rig.owner.path);
	assert_int_equal(f.second.logouts, 1);
	fence_rig_close(&f);
}

/* ---- task management ---- */

struct functions {
	unsigned count;
	uint8_t bhs[PEER_BHS_BYTES]; /* the last */
	bool silent;
	uint8_t response;
};

static void answer_function(struct peer *peer, const struct functions *functions)
{
	uint8_t bhs[PEER_BHS_BYTES];

	peer_header(peer, functions->bhs, PEER_TASK_MANAGEMENT_RESPONSE, bhs);
	bhs[2] = functions->response;
	peer_send(peer, bhs, NULL, 0);
}

static bool take_function(struct peer *peer, const struct peer_pdu *pdu)
{
	struct functions *functions = peer->script_arg;

	if ((pdu->bhs[0] & 0x3f) != PEER_TASK_MANAGEMENT)
		return false;
	memcpy(functions->bhs, pdu->bhs, sizeof functions->bhs);
	functions->count++;
	if (!functions->silent)
		answer_function(peer, functions);
	return true;
}

static void open_functions(struct rig *rig, struct functions *functions)
{
	*functions = (struct functions){0};
	rig_open(rig);
	rig->peer.script = take_function;
	rig->peer.script_arg = functions;
	rig->config.lun = 5;
	rig_up(rig);
}

enum { MANY = 32 };

static void submit_many(struct rig *rig, struct owner_io *oios, enum io_op op)
{
	static uint8_t data[MANY][8 * PEER_BLOCK_BYTES];

	memset(oios, 0, MANY * sizeof *oios);
	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&rig->owner, &oios[i], op, i * 8, 8, data[i]);
}

/* Prior bug 93: LU RESET cancelled commands that it does not concern, here those sent after it.
 * Those sent before have ended in the target without an answer, and end here. */
static void reset_ends_what_was_sent_before(void **unused)
{
	static struct owner_io before[MANY], after[MANY];
	struct functions functions;
	struct proof proof;
	struct rig rig;

	for (unsigned way = 0; way < 2; way++) {
		open_functions(&rig, &functions);
		proof_init(&proof);
		proof.watched = &rig.owner;
		rig.peer.mute_io = true;
		submit_many(&rig, before, way ? IO_READ : IO_WRITE);
		functions.silent = true;
		if (way)
			assert_int_equal(path_reset_unit(rig.owner.path, &proof.fence), 0);
		else
			assert_int_equal(path_abort_tasks(rig.owner.path, &proof.fence), 0);
		rig_expect(&rig, &functions.count, 1);
		assert_int_equal(rig.peer.reads + rig.peer.writes, MANY);
		assert_int_equal(functions.bhs[0], 0x40 | PEER_TASK_MANAGEMENT);
		assert_int_equal(functions.bhs[1],
				 0x80 | (way ? FUNCTION_RESET : FUNCTION_ABORT_SET));
		assert_int_equal(get_be16(functions.bhs + 8), 5); /* LUN */
		assert_int_equal(get_be32(functions.bhs + 20), UINT32_MAX);
		/* These come after the function. */
		submit_many(&rig, after, IO_READ);
		rig_expect(&rig, &rig.peer.reads, way ? 2 * MANY : MANY);
		assert_int_equal(proof.done, 0);
		assert_int_equal(rig.owner.done, 0);
		answer_function(&rig.peer, &functions);
		rig_expect(&rig, &proof.done, 1);
		assert_int_equal(proof.status, 0);
		assert_int_equal(proof.ended, MANY);
		assert_int_equal(rig.owner.done, MANY);
		for (unsigned i = 0; i < MANY; i++) {
			assert_int_equal(before[i].ends, 1);
			assert_int_equal(before[i].pio.result, PATH_STATUS);
			assert_int_equal(before[i].pio.scsi_status, TASK_ABORTED);
			assert_int_equal(after[i].ends, 0);
		}
		assert_int_equal(rig.owner.path->in_flight, MANY);
		assert_true(rig.owner.path->up);
		rig_close(&rig);
	}
}

static void functions_that_fail(void **unused)
{
	static const struct {
		uint8_t response;
		int status;
	} cases[] = {{1, -EIO}, {2, -ENXIO}, {5, -EOPNOTSUPP}, {6, -EACCES}, {255, -EIO}};
	static struct owner_io oios[MANY];
	struct functions functions;
	struct proof proof;
	struct rig rig;

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		open_functions(&rig, &functions);
		proof_init(&proof);
		functions.response = cases[i].response;
		rig.peer.mute_io = true;
		submit_many(&rig, oios, IO_READ);
		assert_int_equal(path_reset_unit(rig.owner.path, &proof.fence), 0);
		rig_expect(&rig, &proof.done, 1);
		assert_int_equal(proof.status, cases[i].status);
		assert_int_equal(rig.owner.done, 0); /* may still be answered */
		rig_close(&rig);
	}
}

static void functions_and_the_end_of_the_path(void **unused)
{
	struct functions functions;
	struct proof proofs[PATH_FENCES_MAX], one_more;
	struct rig rig;

	proof_init(&one_more);
	for (unsigned way = 0; way < 3; way++) {
		open_functions(&rig, &functions);
		functions.silent = true;
		for (unsigned i = 0; i < PATH_FENCES_MAX; i++) {
			proof_init(&proofs[i]);
			assert_int_equal(path_reset_unit(rig.owner.path, &proofs[i].fence), 0);
		}
		assert_int_equal(path_reset_unit(rig.owner.path, &one_more.fence), -EBUSY);
		rig_expect(&rig, &functions.count, 1); /* one at a time */
		if (way == 0) {
			peer_drop(&rig.peer, true);
			rig_expect_down(&rig, 1, "reset");
		} else if (way == 1) {
			path_disconnect(rig.owner.path);
		} else {
			rig.owner.path = path_free(rig.owner.path);
		}
		for (unsigned i = 0; i < PATH_FENCES_MAX; i++) {
			assert_int_equal(proofs[i].done, 1);
			assert_int_equal(proofs[i].status, -ENOTCONN);
		}
		if (rig.owner.path)
			assert_int_equal(path_reset_unit(rig.owner.path, &one_more.fence),
					 -ENOTCONN);
		rig_close(&rig);
	}
	/* No answer for as long as a command may wait: the path is lost. */
	open_functions(&rig, &functions);
	functions.silent = true;
	rig.owner.path->config.io_timeout_ns = 100 * NS_PER_MS;
	proof_init(&one_more);
	assert_int_equal(path_reset_unit(rig.owner.path, &one_more.fence), 0);
	rig_expect_down(&rig, 1, "no answer to a command");
	assert_int_equal(rig.owner.path->lost_by, PATH_DETECT_COMMAND);
	assert_int_equal(one_more.status, -ENOTCONN);
	rig_close(&rig);
}

/* Eight in a row, each answered. */
static void functions_queue(void **unused)
{
	struct functions functions;
	struct proof proofs[PATH_FENCES_MAX];
	struct rig rig;

	open_functions(&rig, &functions);
	for (unsigned i = 0; i < PATH_FENCES_MAX; i++) {
		proof_init(&proofs[i]);
		assert_int_equal(path_reset_unit(rig.owner.path, &proofs[i].fence), 0);
	}
	for (unsigned i = 0; i < PATH_FENCES_MAX; i++) {
		rig_expect(&rig, &proofs[i].done, 1);
		assert_int_equal(proofs[i].status, 0);
	}
	assert_int_equal(functions.count, PATH_FENCES_MAX);
	rig_close(&rig);
}

/* A window closed by the target: what libiscsi holds back is sent after the function and is none
 * of its business. */
static void held_back_is_not_aborted(void **unused)
{
	static struct owner_io oios[3][MANY];
	struct functions functions;
	struct proof proof;
	struct rig rig;
	unsigned sent, aborted = 0;

	open_functions(&rig, &functions);
	proof_init(&proof);
	functions.silent = true;
	rig.owner.path->config.keepalive_ns = 1000 * NS_PER_S;
	rig.peer.mute_io = true;
	rig.peer.window_closed = true; /* after 64 more */
	for (unsigned i = 0; i < 3; i++)
		submit_many(&rig, oios[i], IO_READ);
	assert_int_equal(path_reset_unit(rig.owner.path, &proof.fence), 0);
	rig_expect(&rig, &functions.count, 1);
	sent = rig.peer.reads;
	assert_true(sent > MANY && sent < 3 * MANY);
	rig.peer.mute_io = rig.peer.window_closed = false;
	answer_function(&rig.peer, &functions);
	rig_expect(&rig, &rig.owner.done, 3 * MANY);
	assert_int_equal(proof.done, 1);
	assert_int_equal(proof.status, 0);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned n = 0; n < MANY; n++)
			aborted += oios[i][n].pio.scsi_status == TASK_ABORTED;
	assert_int_equal(aborted, sent);
	assert_int_equal(rig.owner.ok, 3 * MANY - sent);
	rig_close(&rig);
}

/* ---- behind data ---- */

struct late_data {
	struct functions functions;
	struct rig *rig;
	struct proof proof;
	uint8_t read[PEER_BHS_BYTES]; /* kept until the write has come */
	uint32_t data_out_bytes;
	unsigned writes;
};

/* More than socket buffers hold. */
enum { LATE_WRITES = 32, LATE_BLOCKS = 512, LATE_BYTES = LATE_BLOCKS * PEER_BLOCK_BYTES };

/* R2T for all of the writes, and after the last one the answer to the read before them. */
static bool ask_for_data(struct peer *peer, const struct peer_pdu *pdu)
{
	static uint8_t block[PEER_BLOCK_BYTES];
	struct late_data *late = peer->script_arg;
	uint8_t bhs[PEER_BHS_BYTES];

	switch (pdu->bhs[0] & 0x3f) {
	case PEER_TASK_MANAGEMENT:
		memcpy(late->functions.bhs, pdu->bhs, sizeof late->functions.bhs);
		late->functions.count++;
		assert_int_equal(late->data_out_bytes, LATE_WRITES * LATE_BYTES);
		answer_function(peer, &late->functions);
		return true;
	case PEER_DATA_OUT:
		late->data_out_bytes += pdu->size;
		return true;
	case PEER_COMMAND:
		break;
	default:
		return false;
	}
	if (rig_is_read(pdu)) {
		memcpy(late->read, pdu->bhs, sizeof late->read);
		return true;
	}
	if (!rig_is_write(pdu))
		return false;
	peer_header(peer, pdu->bhs, PEER_R2T, bhs);
	peer->stat_sn--; /* an R2T takes none */
	memcpy(bhs + 8, pdu->bhs + 8, 8);
	put_be32(bhs + 20, 7); /* TTT */
	put_be32(bhs + 44, LATE_BYTES);
	peer_send(peer, bhs, NULL, 0);
	if (++late->writes == LATE_WRITES)
		peer_data_in(peer, late->read, block, sizeof block);
	return true;
}

static void reset_when_read(struct path_io *pio)
{
	struct late_data *late = pio->owner;

	assert_int_equal(pio->result, PATH_OK);
	/* Until the test says so the peer does not read: Data-Out is stuck. */
	loop_watch_set(late->rig->loop, &late->rig->peer.watch, 0);
	assert_int_equal(path_reset_unit(late->rig->owner.path, &late->proof.fence), 0);
}

/* An immediate request in front of Data-Out would carry a CmdSN already used, which libiscsi 1.19
 * takes for the end of the connection. */
static void functions_wait_for_data(void **unused)
{
	static const char keys[] = "HeaderDigest=None\0DataDigest=None\0InitialR2T=Yes\0"
				   "ImmediateData=No\0MaxBurstLength=262144\0"
				   "FirstBurstLength=512\0MaxRecvDataSegmentLength=4096\0";
	static uint8_t data[LATE_BYTES], block[PEER_BLOCK_BYTES];
	struct iovec iov = {block, sizeof block};
	struct late_data late = {0};
	struct path_io read = {.op = IO_READ,
			       .blocks = 1,
			       .iov = &iov,
			       .iov_count = 1,
			       .done = reset_when_read,
			       .owner = &late};
	struct owner_io writes[LATE_WRITES] = {0};
	struct rig rig;
	int small = 4096;

	rig_open(&rig);
	/* The peer does not read for a while, which is long under valgrind. */
	rig.config.keepalive_ns = 20 * NS_PER_S;
	rig.config.tcp_user_timeout_ns = 20 * NS_PER_S;
	rig.config.io_timeout_ns = 20 * NS_PER_S;
	assert_int_equal(
	    setsockopt(rig.peer.listen_fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
	late.rig = &rig;
	proof_init(&late.proof);
	rig.peer.login_keys = keys;
	rig.peer.script = ask_for_data;
	rig.peer.script_arg = &late;
	rig_up(&rig);
	path_submit(rig.owner.path, &read);
	for (unsigned i = 0; i < LATE_WRITES; i++)
		owner_submit(&rig.owner, &writes[i], IO_WRITE, 0, LATE_BLOCKS, data);
	while (rig.peer.watch.events)
		assert_int_equal(loop_turn(rig.loop, true), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(loop_turn(rig.loop, false), 0);
	assert_int_equal(rig.owner.downs, 0);
	assert_int_equal(loop_watch_set(rig.loop, &rig.peer.watch, EPOLLIN), 0);
	rig_expect(&rig, &late.proof.done, 1);
	assert_int_equal(late.proof.status, 0);
	assert_int_equal(late.functions.count, 1);
	for (unsigned i = 0; i < LATE_WRITES; i++) {
		assert_int_equal(writes[i].ends, 1);
		assert_int_equal(writes[i].pio.scsi_status, TASK_ABORTED);
	}
	assert_int_equal(rig.owner.downs, 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_login_in_the_victims_name),
	    cmocka_unit_test(logins_that_prove_nothing),
	    cmocka_unit_test(refused_security_stage),
	    cmocka_unit_test(fences_that_do_not_begin),
	    cmocka_unit_test(fence_outlives_login),
	    cmocka_unit_test(reset_ends_what_was_sent_before),
	    cmocka_unit_test(functions_that_fail),
	    cmocka_unit_test(functions_and_the_end_of_the_path),
	    cmocka_unit_test(functions_queue),
	    cmocka_unit_test(held_back_is_not_aborted),
	    cmocka_unit_test(functions_wait_for_data),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
