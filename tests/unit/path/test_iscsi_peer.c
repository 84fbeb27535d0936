/* SPDX-License-Identifier: MIT
 *
 * The iSCSI path against a scripted target: logins that fail in every way, loss, time-outs, and
 * the forms commands take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "owner.h"
#include "peer.h"

struct bench {
	struct loop *loop;
	struct peer peer;
	struct owner owner;
	struct path_config config;
};

static void open_bench(struct bench *b)
{
	assert_int_equal(loop_new_real(&b->loop), 0);
	peer_open(&b->peer, b->loop);
	b->config = owner_config(&b->owner, b->peer.portal);
}

static void open_path(struct bench *b)
{
	assert_int_equal(owner_open(&b->owner, b->loop, &b->config), 0);
}

static void connect_path(struct bench *b)
{
	unsigned events = b->owner.ups + b->owner.downs;

	assert_int_equal(path_connect(b->owner.path), 0);
	assert_int_equal(b->owner.ups + b->owner.downs, events); /* never from within */
}

static void bring_up(struct bench *b)
{
	open_path(b);
	connect_path(b);
	assert_true(owner_wait(&b->owner, &b->owner.ups, 1, 5));
	assert_true(b->owner.path->up);
}

static void close_bench(struct bench *b)
{
	path_free(b->owner.path);
	peer_close(&b->peer);
	loop_free(b->loop);
}

static void expect_down(struct bench *b, unsigned downs, enum path_detect by, const char *why)
{
	assert_true(owner_wait(&b->owner, &b->owner.downs, downs, 5));
	assert_false(b->owner.path->up);
	assert_true(b->owner.completed_before_down);
	if (b->owner.path->lost_by != by)
		fail_msg("lost by %s, not %s: '%s'", path_detect_names[b->owner.path->lost_by],
			 path_detect_names[by], b->owner.why);
	if (!strstr(b->owner.why, why))
		fail_msg("'%s' does not say '%s'", b->owner.why, why);
}

static void refused(void **unused)
{
	struct bench b;

	open_bench(&b);
	peer_stop_listening(&b.peer);
	open_path(&b);
	for (unsigned i = 1; i <= 3; i++) {
		connect_path(&b);
		expect_down(&b, i, PATH_DETECT_RESET, "refused");
	}
	close_bench(&b);
}

static void silent(void **unused)
{
	struct bench b;

	open_bench(&b);
	b.peer.silent = true;
	b.config.login_timeout_ns = 100 * NS_PER_MS;
	open_path(&b);
	connect_path(&b);
	expect_down(&b, 1, PATH_DETECT_LOGIN, "timed out during login");
	assert_int_equal(b.peer.connections, 1);
	close_bench(&b);
}

static void closed_in_login(void **unused)
{
	struct bench b;

	open_bench(&b);
	b.peer.close_at_login = true;
	open_path(&b);
	connect_path(&b);
	expect_down(&b, 1, PATH_DETECT_CLOSED, "closed by the target during login");
	b.peer.close_at_login = false;
	b.peer.garbage = true;
	connect_path(&b);
	expect_down(&b, 2, PATH_DETECT_PROTOCOL, "during login");
	b.peer.garbage = false;
	b.peer.login_status = 0x0203;
	connect_path(&b);
	expect_down(&b, 3, PATH_DETECT_LOGIN, "login refused: ");
	b.peer.login_status = 0;
	b.peer.no_unit = true;
	connect_path(&b);
	expect_down(&b, 4, PATH_DETECT_LOGIN, "no logical unit of disk type");
	b.peer.no_unit = false;
	b.peer.attentions = 100;
	connect_path(&b);
	expect_down(&b, 5, PATH_DETECT_LOGIN, "unit attentions");
	b.peer.attentions = 0;
	connect_path(&b);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 1, 5));
	close_bench(&b);
}

static void redirections(void **unused)
{
	struct bench b;
	struct peer second;

	open_bench(&b);
	peer_open(&second, b.loop);
	b.peer.redirect_to = second.portal;
	open_path(&b);
	connect_path(&b);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 1, 5));
	assert_string_equal(b.owner.path->redirected_to, second.portal);
	assert_int_equal(second.logins, 1);
	assert_int_equal(b.peer.logins, 0);
	/* The next login begins at the group address again. */
	peer_drop(&second, true);
	expect_down(&b, 1, PATH_DETECT_RESET, "reset");
	connect_path(&b);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 2, 5));
	assert_int_equal(b.peer.connections, 2);
	path_disconnect(b.owner.path);
	/* In a circle. */
	second.redirect_to = b.peer.portal;
	connect_path(&b);
	expect_down(&b, 2, PATH_DETECT_LOGIN, "redirected more than");
	/* To a name, and to itself. */
	b.peer.redirect_to = "array.example.com:3260";
	connect_path(&b);
	expect_down(&b, 3, PATH_DETECT_LOGIN, "no numeric address");
	b.peer.redirect_to = b.peer.portal;
	connect_path(&b);
	expect_down(&b, 4, PATH_DETECT_LOGIN, "to itself");
	peer_close(&second);
	close_bench(&b);
}

static void identity(void **unused)
{
	struct bench b;
	const struct path_identity *id;

	open_bench(&b);
	b.peer.attentions = 2; /* as after any login */
	bring_up(&b);
	id = &b.owner.path->identity;
	assert_int_equal(id->block_bytes, PEER_BLOCK_BYTES);
	assert_int_equal(id->blocks, PEER_BLOCKS);
	assert_int_equal(id->designator_bytes, 16);
	assert_int_equal(id->designator[0], 0x60);
	assert_int_equal(id->max_transfer_blocks, 128);
	assert_int_equal(id->max_unmap_blocks, 1000);
	assert_true(id->can_unmap);
	assert_false(id->write_protected);
	assert_string_equal(id->vendor, "PEER");
	assert_string_equal(id->product, "SCRIPTED");
	/* The same ISID at every login, the whole qualifier in it. */
	path_disconnect(b.owner.path);
	b.peer.write_protected = true;
	connect_path(&b);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 2, 5));
	assert_true(id->write_protected);
	assert_memory_equal(b.peer.isids[0], b.peer.isids[1], 6);
	assert_memory_equal(b.peer.isids[0], ((uint8_t[]){0x80, 0x00, 0x12, 0x34, 0x56, 0x78}), 6);
	assert_int_equal(path_connect(b.owner.path) < 0, 1); /* is up */
	close_bench(&b);
}

/* A port in standby, unavailable or offline does not hide which unit it is. */
static void identity_without_access(void **unused)
{
	static const uint8_t states[] = {0x0b, 0x0c, 0x12};
	const struct path_identity *id;
	struct bench b;

	open_bench(&b);
	open_path(&b);
	id = &b.owner.path->identity;
	for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
		b.peer.no_access = states[i];
		b.peer.attentions = 1;
		connect_path(&b);
		assert_true(owner_wait(&b.owner, &b.owner.ups, i + 1, 5));
		assert_int_equal(b.peer.refused, i + 1); /* once told it asks no more */
		assert_true(id->no_capacity);
		assert_int_equal(id->blocks, 0);
		assert_int_equal(id->block_bytes, 0);
		assert_int_equal(id->designator_bytes, 16);
		assert_string_equal(id->vendor, "PEER");
		path_disconnect(b.owner.path);
	}
	b.peer.no_access = 0x03; /* needs a hand: another matter */
	connect_path(&b);
	expect_down(&b, 1, PATH_DETECT_LOGIN, "TEST UNIT READY failed: sense 02/04/03");
	b.peer.no_access = 0;
	connect_path(&b);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 4, 5));
	assert_false(id->no_capacity);
	assert_int_equal(id->blocks, PEER_BLOCKS);
	close_bench(&b);
}

static void data_and_forms(void **unused)
{
	static uint8_t out[4 * PEER_BLOCK_BYTES], in[4 * PEER_BLOCK_BYTES];
	struct owner_io oio = {0};
	struct bench b;

	open_bench(&b);
	b.config.lun = 300;
	bring_up(&b);
	memset(out, 0xc3, sizeof out);
	owner_submit(&b.owner, &oio, IO_WRITE, 5, 4, out);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 1, 5));
	assert_int_equal(b.peer.last_cdb[0], 0x8a);
	assert_int_equal(b.peer.last_cdb[1], 0);
	assert_int_equal(get_be16(b.peer.last_lun), 0x4000 | 300);
	owner_submit(&b.owner, &oio, IO_READ, 5, 4, in);
	assert_int_equal(b.owner.path->in_flight, 1);
	assert_int_equal(b.owner.path->in_flight_bytes, sizeof in);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 2, 5));
	assert_memory_equal(in, out, sizeof out);
	assert_int_equal(b.owner.path->in_flight, 0);
	assert_int_equal(b.owner.path->in_flight_bytes, 0);
	oio.pio.flags = IO_FUA;
	owner_submit(&b.owner, &oio, IO_WRITE, 5, 1, out);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 3, 5));
	assert_int_equal(b.peer.last_cdb[1], 0x08);
	assert_int_equal(b.peer.flushes, 0);
	oio.pio.flags = 0;
	owner_submit(&b.owner, &oio, IO_FLUSH, 0, 0, NULL);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 4, 5));
	assert_int_equal(b.peer.flushes, 1);
	owner_submit(&b.owner, &oio, IO_UNMAP, 6, 2, NULL);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 5, 5));
	assert_int_equal(b.peer.disk[6 * PEER_BLOCK_BYTES], 0);
	assert_int_equal(b.peer.disk[8 * PEER_BLOCK_BYTES], 0xc3);
	/* Half of the data with GOOD is no success. */
	b.peer.short_read = true;
	owner_submit(&b.owner, &oio, IO_READ, 0, 4, in);
	assert_true(owner_wait(&b.owner, &b.owner.other, 1, 5));
	assert_int_equal(oio.pio.result, PATH_SENSE);
	assert_int_equal(oio.pio.sense_key, 0xb);
	b.peer.io_status = 2;
	owner_submit(&b.owner, &oio, IO_READ, 0, 4, in);
	assert_true(owner_wait(&b.owner, &b.owner.other, 2, 5));
	assert_int_equal(oio.pio.sense_key, 3);
	assert_int_equal(oio.pio.asc, 0x11);
	b.peer.io_status = 0x28;
	owner_submit(&b.owner, &oio, IO_WRITE, 0, 4, out);
	assert_true(owner_wait(&b.owner, &b.owner.other, 3, 5));
	assert_int_equal(oio.pio.result, PATH_STATUS);
	assert_int_equal(oio.pio.scsi_status, 0x28);
	assert_true(b.owner.path->up);
	close_bench(&b);
}

/* READ CAPACITY(16) refused: ten-byte commands; no DPOFUA: FUA by SYNCHRONIZE CACHE. */
static void old_unit(void **unused)
{
	static uint8_t data[PEER_BLOCK_BYTES];
	struct owner_io oio = {0};
	struct bench b;

	open_bench(&b);
	b.peer.no_capacity16 = b.peer.no_dpofua = true;
	bring_up(&b);
	assert_int_equal(b.owner.path->identity.blocks, PEER_BLOCKS);
	owner_submit(&b.owner, &oio, IO_READ, 7, 1, data);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 1, 5));
	assert_int_equal(b.peer.last_cdb[0], 0x28);
	oio.pio.flags = IO_FUA;
	owner_submit(&b.owner, &oio, IO_WRITE, 7, 1, data);
	assert_true(owner_wait(&b.owner, &b.owner.ok, 2, 5));
	assert_int_equal(b.peer.writes, 1);
	assert_int_equal(b.peer.flushes, 1);
	assert_int_equal(b.peer.last_cdb[0], 0x35);
	assert_int_equal(oio.ends, 1);
	close_bench(&b);
}

enum { MANY = 64 };

static void submit_many(struct bench *b, struct owner_io *oios, enum io_op op)
{
	static uint8_t data[MANY][8 * PEER_BLOCK_BYTES];

	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&b->owner, &oios[i], op, i * 8, 8, data[i]);
}

static void expect_ends(const struct owner_io *oios)
{
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(oios[i].ends, 1);
}

static void reset_with_io_in_flight(void **unused)
{
	static struct owner_io oios[MANY];
	struct bench b;

	for (unsigned way = 0; way < 3; way++) {
		open_bench(&b);
		bring_up(&b);
		memset(oios, 0, sizeof oios);
		if (way == 0)
			b.peer.close_after = 10; /* by reset, after nine answers */
		else
			b.peer.mute_io = true;
		submit_many(&b, oios, way == 1 ? IO_READ : IO_WRITE);
		if (way) {
			assert_true(owner_wait(&b.owner, way == 1 ? &b.peer.reads : &b.peer.writes,
					       MANY, 5));
			peer_drop(&b.peer, way == 1);
		}
		expect_down(&b, 1, way == 2 ? PATH_DETECT_CLOSED : PATH_DETECT_RESET,
			    way == 2 ? "closed by the target" : "reset");
		expect_ends(oios);
		assert_int_equal(b.owner.ok + b.owner.lost, MANY);
		assert_true(b.owner.lost >= (way ? MANY : MANY - 9));
		assert_int_equal(b.owner.path->in_flight, 0);
		/* And again. */
		b.peer.mute_io = false;
		b.peer.close_after = 0;
		connect_path(&b);
		assert_true(owner_wait(&b.owner, &b.owner.ups, 2, 5));
		submit_many(&b, oios, IO_READ);
		assert_true(owner_wait(&b.owner, &b.owner.done, 2 * MANY, 5));
		close_bench(&b);
	}
}

static void io_timeout(void **unused)
{
	static uint8_t data[8][PEER_BLOCK_BYTES];
	struct owner_io oios[8] = {0};
	struct bench b;

	open_bench(&b);
	b.config.io_timeout_ns = 100 * NS_PER_MS;
	b.config.keepalive_ns = 20 * NS_PER_MS;
	bring_up(&b);
	b.peer.mute_io = true; /* NOPs are answered: only the command's own deadline helps */
	for (unsigned i = 0; i < 8; i++)
		owner_submit(&b.owner, &oios[i], IO_READ, i, 1, data[i]);
	expect_down(&b, 1, PATH_DETECT_COMMAND, "no answer to a command");
	assert_true(b.peer.nops > 0);
	assert_int_equal(b.owner.lost, 8);
	close_bench(&b);
}

/* A target that takes no more commands takes no NOP either. */
static void closed_window_is_noticed(void **unused)
{
	static struct owner_io oios[MANY];
	struct bench b;

	open_bench(&b);
	b.config.keepalive_ns = 20 * NS_PER_MS;
	bring_up(&b);
	b.peer.mute_io = true;
	memset(oios, 0, sizeof oios);
	submit_many(&b, oios, IO_READ);
	expect_down(&b, 1, PATH_DETECT_KEEPALIVE, "keep-alives unanswered");
	assert_int_equal(b.peer.nops, 0);
	expect_ends(oios);
	assert_int_equal(b.owner.lost, MANY);
	close_bench(&b);
}

static void keep_alive(void **unused)
{
	struct bench b;

	open_bench(&b);
	b.config.keepalive_ns = 20 * NS_PER_MS;
	bring_up(&b);
	assert_true(owner_wait(&b.owner, &b.peer.nops, 3, 5)); /* idle, and alive */
	assert_int_equal(b.owner.downs, 0);
	b.peer.mute_all = true;
	expect_down(&b, 1, PATH_DETECT_KEEPALIVE, "keep-alives unanswered");
	close_bench(&b);
}

static void idle_close_is_noticed(void **unused)
{
	struct bench b;

	open_bench(&b);
	bring_up(&b);
	peer_drop(&b.peer, false);
	expect_down(&b, 1, PATH_DETECT_CLOSED, "closed by the target");
	close_bench(&b);
}

static void orderly_end(void **unused)
{
	struct bench b;

	open_bench(&b);
	bring_up(&b);
	path_disconnect(b.owner.path);
	assert_false(b.owner.path->up);
	assert_true(owner_wait(&b.owner, &b.peer.logouts, 1, 5));
	assert_int_equal(b.owner.downs, 0); /* no event follows */
	close_bench(&b);
}

static void not_up_is_not_sent(void **unused)
{
	static struct owner_io oios[MANY];
	static uint8_t data[8 * PEER_BLOCK_BYTES];
	struct bench b;

	open_bench(&b);
	open_path(&b);
	memset(oios, 0, sizeof oios);
	owner_submit(&b.owner, &oios[0], IO_READ, 0, 8, data);
	assert_true(owner_wait(&b.owner, &b.owner.not_sent, 1, 5));
	path_free(b.owner.path);
	/* More than there are slots. */
	b.config.max_in_flight = 16;
	bring_up(&b);
	submit_many(&b, oios, IO_READ);
	assert_true(owner_wait(&b.owner, &b.owner.done, MANY, 5));
	assert_int_equal(b.owner.ok, 16);
	assert_int_equal(b.owner.not_sent, MANY - 16);
	close_bench(&b);
}

static void ends_from_within_done(void **unused)
{
	static struct owner_io oios[MANY];
	struct bench b;

	open_bench(&b);
	bring_up(&b);
	memset(oios, 0, sizeof oios);
	b.owner.disconnect_in_done = true;
	submit_many(&b, oios, IO_READ);
	assert_true(owner_wait(&b.owner, &b.owner.done, MANY, 5));
	expect_ends(oios);
	assert_true(b.owner.ok > 0 && b.owner.lost + b.owner.ok == MANY);
	connect_path(&b);
	assert_true(owner_wait(&b.owner, &b.owner.ups, 2, 5));
	b.owner.free_in_done = true;
	submit_many(&b, oios, IO_READ);
	assert_true(owner_wait(&b.owner, &b.owner.done, 2 * MANY, 5));
	expect_ends(oios);
	assert_null(b.owner.path);
	close_bench(&b);
	/* With everything in flight. */
	open_bench(&b);
	bring_up(&b);
	b.peer.mute_io = true;
	submit_many(&b, oios, IO_WRITE);
	path_free(b.owner.path);
	b.owner.path = NULL;
	expect_ends(oios);
	assert_int_equal(b.owner.lost, MANY);
	close_bench(&b);
}

static void bad_configuration(void **unused)
{
	struct bench b;
	struct loop *virtual_loop;

	open_bench(&b);
	b.config.portal = "localhost:3260"; /* a name would block the loop */
	assert_true(owner_open(&b.owner, b.loop, &b.config) < 0);
	b.config.portal = b.peer.portal;
	b.config.lun = 0x4000;
	assert_true(owner_open(&b.owner, b.loop, &b.config) < 0);
	b.config.lun = 0;
	assert_int_equal(loop_new_virtual(0, &virtual_loop), 0);
	assert_int_equal(owner_open(&b.owner, virtual_loop, &b.config), 0);
	assert_true(path_connect(b.owner.path) < 0);
	path_free(b.owner.path);
	loop_free(virtual_loop);
	b.owner.path = NULL;
	close_bench(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refused),
	    cmocka_unit_test(silent),
	    cmocka_unit_test(closed_in_login),
	    cmocka_unit_test(redirections),
	    cmocka_unit_test(identity),
	    cmocka_unit_test(identity_without_access),
	    cmocka_unit_test(data_and_forms),
	    cmocka_unit_test(old_unit),
	    cmocka_unit_test(reset_with_io_in_flight),
	    cmocka_unit_test(io_timeout),
	    cmocka_unit_test(closed_window_is_noticed),
	    cmocka_unit_test(keep_alive),
	    cmocka_unit_test(idle_close_is_noticed),
	    cmocka_unit_test(orderly_end),
	    cmocka_unit_test(not_up_is_not_sent),
	    cmocka_unit_test(ends_from_within_done),
	    cmocka_unit_test(bad_configuration),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
