/* SPDX-License-Identifier: MIT
 *
 * The simulated path on the virtual loop: login, I/O, exact delays, cut, stall, teardown and
 * determinism.  The SCSI layer is the real one, its volume a fake.
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
#include "harness/sim/sim.h"
#include "tests/unit/scsi/fake_volume.h"

#define DELAY_NS     NS_PER_MS
#define UP_NS	     (16 * DELAY_NS) /* login, seven commands, one unit attention */
#define VOLUME_BYTES (4 * MIB)

enum { PATHS = 2, BLOCK = 512 };

struct lab;

struct side {
	struct lab *lab;
	struct sim_link *link;
	struct path *path;
	unsigned ups, downs;
	uint64_t event_ns;
	char why[160];
	bool disconnect_on_up, free_on_done;
};

struct lab {
	struct loop *loop;
	struct buf_pool *pool;
	struct volume volume;
	struct scsi_device *device;
	struct scsi_target *target;
	struct side sides[PATHS];
	unsigned ended; /* path_ios, in all */
	char trace[16384];
	size_t traced;
};

struct transfer {
	struct path_io pio;
	struct iovec iov[2];
	uint8_t *data;
	struct side *side;
	unsigned index, done_count, order;
	uint64_t done_ns;
};

static void trace(struct lab *lab, const char *what, unsigned index, unsigned result)
{
	int n =
	    snprintf(lab->trace + lab->traced, sizeof lab->trace - lab->traced, "%llu %s %u %u\n",
		     (unsigned long long)loop_now_ns(lab->loop), what, index, result);

	lab->traced = MIN_OF(lab->traced + (size_t)n, sizeof lab->trace - 1);
}

static void on_event(void *arg, struct path *path, enum path_event event, const char *why)
{
	struct side *side = arg;

	assert_ptr_equal(side->path, path);
	side->event_ns = loop_now_ns(side->lab->loop);
	snprintf(side->why, sizeof side->why, "%s", why);
	trace(side->lab, event == PATH_EVENT_UP ? "up" : "down",
	      (unsigned)(side - side->lab->sides), 0);
	if (event == PATH_EVENT_DOWN) {
		side->downs++;
		assert_int_equal(path->in_flight, 0);
		assert_false(path->up);
		return;
	}
	side->ups++;
	assert_true(path->up);
	if (side->disconnect_on_up)
		path_disconnect(path);
}

static void lab_init(struct lab *lab, const struct sim_link_config *link,
		     const struct path_config *timeouts)
{
	memset(lab, 0, sizeof *lab);
	assert_int_equal(loop_new_virtual(0, &lab->loop), 0);
	lab->pool = buf_pool_new(64 * MIB);
	lab->device = scsi_device_new(lab->loop, lab->pool);
	lab->target = scsi_target_new(lab->device, "iqn.2026-11.test.sanlab:sim:db1");
	fake_volume_init(&lab->volume, "db1", VOLUME_BYTES, BLOCK, true, true);
	assert_int_equal(
	    scsi_target_add_lun(lab->target, 3, scsi_device_add(lab->device, &lab->volume)), 0);
	for (unsigned i = 0; i < PATHS; i++) {
		struct side *side = &lab->sides[i];
		struct path_config config = timeouts ? *timeouts : (struct path_config){.lun = 3};
		struct sim_link_config link_config = *link;
		char portal[32];

		snprintf(portal, sizeof portal, "127.0.0.1:%u", 3261 + i);
		side->lab = lab;
		config.portal = portal;
		config.target = scsi_target_name(lab->target);
		config.initiator_name = "iqn.2026-11.test.sanlab:host:mbx1";
		config.isid_qualifier = i + 1;
		config.event = on_event;
		config.arg = side;
		link_config.seed += i;
		assert_int_equal(sim_link_new(lab->loop, &link_config, &side->link), 0);
		assert_int_equal(
		    path_new_sim(lab->loop, &config, side->link, lab->target, &side->path), 0);
	}
}

static void lab_done(struct lab *lab)
{
	for (unsigned i = 0; i < PATHS; i++) {
		path_free(lab->sides[i].path);
		sim_link_free(lab->sides[i].link);
	}
	scsi_target_free(lab->target);
	scsi_device_free(lab->device);
	assert_int_equal(buf_pool_in_use_bytes(lab->pool), 0);
	buf_pool_free(lab->pool);
	fake_volume_done(&lab->volume);
	loop_free(lab->loop);
}

static void run_for(struct lab *lab, uint64_t ns)
{
	assert_int_equal(loop_run_until(lab->loop, loop_now_ns(lab->loop) + ns), 0);
}

static const struct sim_link_config plain_link = {.delay_ns = DELAY_NS};

static void connect_all(struct lab *lab)
{
	for (unsigned i = 0; i < PATHS; i++)
		assert_int_equal(path_connect(lab->sides[i].path), 0);
	run_for(lab, NS_PER_S / 2);
	for (unsigned i = 0; i < PATHS; i++)
		assert_true(lab->sides[i].path->up);
}

static void on_done(struct path_io *pio)
{
	struct transfer *transfer = pio->owner;
	struct lab *lab = transfer->side->lab;

	transfer->done_count++;
	transfer->done_ns = loop_now_ns(lab->loop);
	transfer->order = lab->ended++;
	trace(lab, "done", transfer->index, pio->result);
	if (pio->result == PATH_LOST) { /* nothing may touch it from now on */
		free(transfer->data);
		transfer->data = NULL;
	}
	if (transfer->side->free_on_done) {
		transfer->side->free_on_done = false;
		path_free(transfer->side->path);
		transfer->side->path = NULL;
	}
}

static void start(struct transfer *transfer, struct side *side, enum io_op op, uint64_t lba,
		  uint32_t blocks, uint8_t fill)
{
	size_t bytes = op == IO_READ || op == IO_WRITE ? (size_t)blocks * BLOCK : 0;

	memset(transfer, 0, sizeof *transfer);
	transfer->side = side;
	transfer->pio = (struct path_io){
	    .op = op, .lba = lba, .blocks = blocks, .done = on_done, .owner = transfer};
	if (bytes > 0) {
		transfer->data = malloc(bytes);
		assert_non_null(transfer->data);
		memset(transfer->data, fill, bytes);
		transfer->iov[0] = (struct iovec){transfer->data, 200};
		transfer->iov[1] = (struct iovec){transfer->data + 200, bytes - 200};
		transfer->pio.iov = transfer->iov;
		transfer->pio.iov_count = 2;
	}
	path_submit(side->path, &transfer->pio);
	assert_int_equal(transfer->done_count, 0); /* never from within */
}

static void finish(struct transfer *transfer)
{
	assert_int_equal(transfer->done_count, 1);
	free(transfer->data);
	transfer->data = NULL;
}

static void test_login(void **state)
{
	struct lab lab;
	const struct path_identity *a, *b;

	lab_init(&lab, &plain_link, NULL);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(path_connect(lab.sides[i].path), 0);
		assert_int_equal(path_connect(lab.sides[i].path), -EALREADY);
		assert_int_equal(lab.sides[i].ups, 0);
	}
	run_for(&lab, UP_NS - 1);
	assert_int_equal(lab.sides[0].ups, 0);
	run_for(&lab, 1);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(lab.sides[i].ups, 1);
		assert_int_equal(lab.sides[i].event_ns, UP_NS);
	}
	a = &lab.sides[0].path->identity;
	b = &lab.sides[1].path->identity;
	assert_int_equal(a->designator_bytes, 16);
	assert_memory_equal(a->designator, lab.volume.naa, 16);
	assert_int_equal(b->designator_bytes, 16);
	assert_memory_equal(a->designator, b->designator, sizeof a->designator);
	assert_int_equal(a->relative_port, 3261);
	assert_int_equal(b->relative_port, 3262);
	assert_int_equal(a->target_port_group, 1);
	assert_int_equal(a->block_bytes, BLOCK);
	assert_int_equal(a->blocks, VOLUME_BYTES / BLOCK);
	assert_int_equal(a->max_transfer_blocks, 16384);
	assert_true(a->can_unmap);
	assert_false(a->write_protected);
	assert_string_equal(a->vendor, "SANLAB");
	assert_string_equal(a->product, "db1");
	lab_done(&lab);
}

static void test_login_fails(void **state)
{
	static const struct path_config wrong_lun = {.lun = 4};
	static const struct path_config impatient = {.lun = 3, .login_timeout_ns = 5 * DELAY_NS};
	struct lab lab;

	lab_init(&lab, &plain_link, &wrong_lun);
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	run_for(&lab, NS_PER_S);
	assert_int_equal(lab.sides[0].ups, 0);
	assert_int_equal(lab.sides[0].downs, 1);
	assert_string_equal(lab.sides[0].why, "TEST UNIT READY failed: sense 05/25/00");
	lab_done(&lab);

	lab_init(&lab, &plain_link, &impatient);
	sim_link_stall(lab.sides[0].link, true);
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	assert_int_equal(path_connect(lab.sides[1].path), 0);
	run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < PATHS; i++) {
		assert_int_equal(lab.sides[i].downs, 1);
		assert_int_equal(lab.sides[i].event_ns, 5 * DELAY_NS);
		assert_non_null(strstr(lab.sides[i].why, "timed out"));
	}
	lab_done(&lab);
}

static void test_io(void **state)
{
	struct lab lab;
	struct transfer write, read, flush, unmap;
	uint64_t begin;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	begin = loop_now_ns(lab.loop);
	start(&write, &lab.sides[0], IO_WRITE, 5, 8, 0x5a);
	assert_int_equal(lab.sides[0].path->in_flight, 1);
	assert_int_equal(lab.sides[0].path->in_flight_bytes, 4096);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(write.pio.result, PATH_OK);
	assert_int_equal(write.done_ns - begin, 2 * DELAY_NS);
	assert_int_equal(lab.sides[0].path->in_flight, 0);
	assert_int_equal(lab.sides[0].path->in_flight_bytes, 0);
	assert_int_equal(lab.volume.last.flags, 0);
	finish(&write);

	start(&read, &lab.sides[1], IO_READ, 4, 10, 0xff);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(read.pio.result, PATH_OK);
	for (unsigned i = 0; i < 10 * BLOCK; i++)
		assert_int_equal(read.data[i], i >= BLOCK && i < 9 * BLOCK ? 0x5a : 0);
	finish(&read);

	start(&flush, &lab.sides[0], IO_FLUSH, 0, 0, 0);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(flush.pio.result, PATH_OK);
	assert_int_equal(lab.volume.flushes, 1);
	finish(&flush);
	start(&unmap, &lab.sides[0], IO_UNMAP, 6, 2, 0);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(unmap.pio.result, PATH_OK);
	assert_int_equal(lab.volume.data[6 * BLOCK - 1], 0x5a);
	assert_int_equal(lab.volume.data[6 * BLOCK], 0);
	assert_int_equal(lab.volume.data[8 * BLOCK], 0x5a);
	finish(&unmap);
	lab_done(&lab);
}

static void test_fua(void **state)
{
	struct lab lab;
	struct transfer write;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	start(&write, &lab.sides[0], IO_WRITE, 0, 1, 1);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(lab.volume.last.flags, 0);
	write.done_count = 0;
	write.pio.flags = IO_FUA;
	path_submit(lab.sides[0].path, &write.pio);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(lab.volume.last.flags, IO_FUA);
	finish(&write);
	lab_done(&lab);
}

/* 48 bytes of header each way; 4144 bytes take 4144 us at 1 MB/s. */
static void test_rate(void **state)
{
	static const struct sim_link_config slow = {.delay_ns = DELAY_NS,
						    .rate_bytes_per_s = 1000000};
	struct lab lab;
	struct transfer writes[2], reads[2];
	uint64_t begin;

	lab_init(&lab, &slow, NULL);
	connect_all(&lab);
	begin = loop_now_ns(lab.loop);
	for (unsigned i = 0; i < 2; i++)
		start(&writes[i], &lab.sides[0], IO_WRITE, 0, 8, 7);
	run_for(&lab, NS_PER_S / 10);
	assert_int_equal(writes[0].done_ns - begin, 2 * DELAY_NS + (4144 + 48) * NS_PER_US);
	assert_int_equal(writes[1].done_ns - begin, 2 * DELAY_NS + (2 * 4144 + 48) * NS_PER_US);
	begin = loop_now_ns(lab.loop);
	for (unsigned i = 0; i < 2; i++)
		start(&reads[i], &lab.sides[0], IO_READ, 0, 8, 0);
	run_for(&lab, NS_PER_S / 10);
	assert_int_equal(reads[0].done_ns - begin, 2 * DELAY_NS + (48 + 4144) * NS_PER_US);
	assert_int_equal(reads[1].done_ns - begin, 2 * DELAY_NS + (48 + 2 * 4144) * NS_PER_US);
	for (unsigned i = 0; i < 2; i++) {
		finish(&writes[i]);
		finish(&reads[i]);
	}
	lab_done(&lab);
}

/* Jitter delays, it never lets one overtake another. */
static void test_jitter_keeps_order(void **state)
{
	static const struct sim_link_config shaky = {
	    .delay_ns = DELAY_NS, .jitter_ns = DELAY_NS, .seed = 7};
	struct lab lab;
	struct transfer writes[60];
	unsigned distinct = 0;

	lab_init(&lab, &shaky, NULL);
	connect_all(&lab);
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++) {
		uint64_t begin = loop_now_ns(lab.loop);

		start(&writes[i], &lab.sides[0], IO_WRITE, 9, 1, (uint8_t)i);
		writes[i].index = i;
		run_for(&lab, DELAY_NS / 10);
		assert_true(loop_now_ns(lab.loop) == begin + DELAY_NS / 10);
	}
	run_for(&lab, NS_PER_S / 10);
	for (unsigned i = 0; i < ARRAY_SIZE(writes); i++) {
		uint64_t took = writes[i].done_ns - writes[i].pio.submit_ns;

		assert_int_equal(writes[i].order, i);
		assert_in_range(took, 2 * DELAY_NS, 4 * DELAY_NS);
		distinct += took != 2 * DELAY_NS;
		finish(&writes[i]);
	}
	assert_true(distinct > ARRAY_SIZE(writes) / 2);
	assert_int_equal(lab.volume.data[9 * BLOCK], ARRAY_SIZE(writes) - 1);
	lab_done(&lab);
}

static void test_target_errors(void **state)
{
	struct lab lab;
	struct transfer transfer;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	lab.volume.fail_status = -EIO;
	start(&transfer, &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(transfer.pio.result, PATH_SENSE);
	assert_int_equal(transfer.pio.sense_key, 3);
	assert_int_equal(transfer.pio.asc, 0x11);
	finish(&transfer);
	lab.volume.fail_status = -EBUSY;
	start(&transfer, &lab.sides[0], IO_WRITE, 0, 1, 0);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(transfer.pio.result, PATH_STATUS);
	assert_int_equal(transfer.pio.scsi_status, 0x08);
	finish(&transfer);
	lab.volume.fail_status = 0;
	start(&transfer, &lab.sides[0], IO_WRITE, VOLUME_BYTES / BLOCK, 1, 0);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(transfer.pio.result, PATH_SENSE);
	assert_int_equal(transfer.pio.asc, 0x21);
	finish(&transfer);
	assert_true(lab.sides[0].path->up);
	lab_done(&lab);
}

static void test_not_sent(void **state)
{
	static const struct path_config narrow = {.lun = 3, .max_in_flight = 2};
	struct lab lab;
	struct transfer early, transfers[3];

	lab_init(&lab, &plain_link, &narrow);
	start(&early, &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, 1);
	assert_int_equal(early.pio.result, PATH_NOT_SENT);
	finish(&early);
	connect_all(&lab);
	for (unsigned i = 0; i < 3; i++)
		start(&transfers[i], &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, 10 * DELAY_NS);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transfers[i].pio.result, i < 2 ? PATH_OK : PATH_NOT_SENT);
		finish(&transfers[i]);
	}
	lab_done(&lab);
}

/* One I/O crossing, one in the target, one coming back: all are lost, in order, then DOWN; what
 * the target holds is waited for. */
static void test_cut(void **state)
{
	struct lab lab;
	struct side *side = &lab.sides[0];
	struct transfer back, held, going, after;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	lab.volume.deferred = true;
	start(&held, side, IO_WRITE, 1, 1, 0x11);
	run_for(&lab, DELAY_NS / 2);
	start(&back, side, IO_READ, 8, 8, 0);
	run_for(&lab, DELAY_NS);
	lab.volume.deferred = false;
	assert_int_equal(lab.volume.held_count, 2);
	start(&going, side, IO_WRITE, 2, 1, 0x22);
	sim_link_cut(side->link, true);
	assert_int_equal(lab.ended, 0);
	assert_int_equal(side->downs, 0);
	start(&after, side, IO_READ, 0, 1, 0); /* the session is gone: not sent */
	run_for(&lab, NS_PER_S);
	assert_int_equal(lab.ended, 1);
	assert_int_equal(after.pio.result, PATH_NOT_SENT);
	assert_int_equal(side->downs, 0); /* the volume holds on to both */
	fake_volume_release(&lab.volume, 1);
	assert_int_equal(lab.ended, 1);
	fake_volume_release(&lab.volume, 1);
	assert_int_equal(lab.ended, 1); /* not from within the volume either */
	run_for(&lab, 0);
	assert_int_equal(lab.ended, 4);
	assert_true(held.order < back.order && back.order < going.order);
	assert_int_equal(held.pio.result, PATH_LOST);
	assert_int_equal(back.pio.result, PATH_LOST);
	assert_int_equal(going.pio.result, PATH_LOST);
	assert_int_equal(side->downs, 1);
	assert_string_equal(side->why, "connection reset: the link was cut");
	assert_int_equal(lab.volume.data[2 * BLOCK], 0); /* never arrived */
	finish(&held);
	finish(&back);
	finish(&going);
	finish(&after);

	assert_int_equal(lab.sides[1].downs, 0); /* the other link is whole */
	assert_int_equal(path_connect(side->path), 0);
	run_for(&lab, NS_PER_S);
	assert_int_equal(side->downs, 2);
	assert_non_null(strstr(side->why, "the link is cut"));
	sim_link_cut(side->link, false);
	assert_int_equal(path_connect(side->path), 0);
	run_for(&lab, NS_PER_S);
	assert_int_equal(side->ups, 2);
	start(&back, side, IO_READ, 1, 1, 0);
	run_for(&lab, 10 * DELAY_NS);
	assert_int_equal(back.pio.result, PATH_OK);
	assert_int_equal(back.data[0], 0x11); /* executed although its answer was lost */
	finish(&back);
	lab_done(&lab);
}

/* An answer on its way back is lost too; a cut during login fails it. */
static void test_cut_answer_and_login(void **state)
{
	struct lab lab;
	struct transfer read;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	start(&read, &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, DELAY_NS + DELAY_NS / 2);
	assert_int_equal(lab.volume.reads, 1);
	sim_link_cut(lab.sides[0].link, true);
	sim_link_cut(lab.sides[0].link, false);
	run_for(&lab, 0);
	assert_int_equal(read.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].downs, 1);
	finish(&read);
	for (uint64_t at = 0; at <= UP_NS - DELAY_NS; at += DELAY_NS / 2) {
		unsigned downs = lab.sides[0].downs;

		assert_int_equal(path_connect(lab.sides[0].path), 0);
		run_for(&lab, at);
		sim_link_cut(lab.sides[0].link, true);
		sim_link_cut(lab.sides[0].link, false);
		run_for(&lab, 0);
		assert_int_equal(lab.sides[0].downs, downs + 1);
	}
	assert_int_equal(lab.sides[0].ups, 1);
	lab_done(&lab);
}

static void test_stall_keepalive(void **state)
{
	static const struct path_config config = {
	    .lun = 3, .keepalive_ns = NS_PER_S, .io_timeout_ns = 5 * NS_PER_S};
	struct lab lab;
	struct transfer read;
	uint64_t heard;

	lab_init(&lab, &plain_link, &config);
	connect_all(&lab);
	heard = lab.sides[0].event_ns;
	sim_link_stall(lab.sides[0].link, true);
	start(&read, &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, 10 * NS_PER_S);
	assert_int_equal(read.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].downs, 1);
	assert_int_equal(lab.sides[0].event_ns - heard, 3 * NS_PER_S);
	assert_string_equal(lab.sides[0].why,
			    "no sign of life for 3.00 s: 2 keep-alives unanswered");
	finish(&read);
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

	lab_init(&lab, &plain_link, &config);
	connect_all(&lab);
	run_for(&lab, 123 * NS_PER_MS);
	/* The link is fine, the target does not answer this one. */
	lab.volume.deferred = true;
	start(&read, &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, 300 * NS_PER_MS - 1);
	assert_int_equal(lab.sides[0].downs, 0);
	run_for(&lab, 1);
	assert_int_equal(lab.sides[0].downs, 0); /* the volume has not let go */
	fake_volume_release(&lab.volume, 1);
	run_for(&lab, 0);
	assert_int_equal(read.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].downs, 1);
	assert_non_null(strstr(lab.sides[0].why, "no answer to a command for 300"));
	finish(&read);
	lab_done(&lab);
}

/* A stall that ends in time only delays. */
static void test_stall_ends(void **state)
{
	struct lab lab;
	struct transfer reads[2];
	uint64_t begin;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	begin = loop_now_ns(lab.loop);
	sim_link_stall(lab.sides[0].link, true);
	start(&reads[0], &lab.sides[0], IO_READ, 0, 1, 0);
	start(&reads[1], &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, 1900 * NS_PER_MS);
	assert_int_equal(lab.ended, 0);
	sim_link_stall(lab.sides[0].link, false);
	run_for(&lab, 10 * NS_PER_S);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(reads[i].pio.result, PATH_OK);
		assert_int_equal(reads[i].done_ns - begin, 1900 * NS_PER_MS + DELAY_NS);
		assert_int_equal(reads[i].order, i);
		finish(&reads[i]);
	}
	assert_int_equal(lab.sides[0].downs, 0);
	lab_done(&lab);
}

/* Disconnect ends everything at once, without event; the target's rest goes by itself. */
static void test_disconnect(void **state)
{
	struct lab lab;
	struct transfer held, going;

	lab_init(&lab, &plain_link, NULL);
	connect_all(&lab);
	lab.volume.deferred = true;
	start(&held, &lab.sides[0], IO_WRITE, 1, 4, 0x33);
	run_for(&lab, DELAY_NS);
	assert_int_equal(lab.volume.held_count, 1);
	start(&going, &lab.sides[0], IO_WRITE, 2, 1, 0x44);
	path_disconnect(lab.sides[0].path);
	assert_int_equal(held.pio.result, PATH_LOST);
	assert_int_equal(going.pio.result, PATH_LOST);
	assert_int_equal(lab.sides[0].path->in_flight, 0);
	finish(&held);
	finish(&going);
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	run_for(&lab, NS_PER_S);
	assert_int_equal(lab.sides[0].downs, 0);
	assert_int_equal(lab.sides[0].ups, 2);
	/* And a path freed with I/O in the target. */
	start(&going, &lab.sides[0], IO_READ, 0, 1, 0);
	run_for(&lab, DELAY_NS);
	lab.sides[0].path = path_free(lab.sides[0].path);
	lab.sides[0].link = sim_link_free(lab.sides[0].link);
	assert_int_equal(going.pio.result, PATH_LOST);
	finish(&going);
	fake_volume_release(&lab.volume, 2);
	assert_int_equal(lab.volume.data[BLOCK], 0x33);
	lab_done(&lab);
}

static void test_calls_from_callbacks(void **state)
{
	struct lab lab;
	struct transfer transfers[3];

	lab_init(&lab, &plain_link, NULL);
	lab.sides[0].disconnect_on_up = true;
	assert_int_equal(path_connect(lab.sides[0].path), 0);
	run_for(&lab, NS_PER_S);
	assert_int_equal(lab.sides[0].ups, 1);
	assert_int_equal(lab.sides[0].downs, 0);
	assert_false(lab.sides[0].path->up);
	lab.sides[0].disconnect_on_up = false;
	connect_all(&lab);
	for (unsigned i = 0; i < 3; i++)
		start(&transfers[i], &lab.sides[0], IO_READ, 0, 1, 0);
	lab.sides[0].free_on_done = true; /* of the first: the others are lost */
	run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transfers[i].pio.result, i == 0 ? PATH_OK : PATH_LOST);
		finish(&transfers[i]);
	}
	/* The same when the link is cut: free from within the first loss. */
	for (unsigned i = 0; i < 3; i++)
		start(&transfers[i], &lab.sides[1], IO_READ, 0, 1, 0);
	lab.sides[1].free_on_done = true;
	sim_link_cut(lab.sides[1].link, true);
	run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(transfers[i].pio.result, PATH_LOST);
		finish(&transfers[i]);
	}
	assert_int_equal(lab.sides[1].downs, 0);
	lab_done(&lab);
}

/* Same seed, same trace to the byte; another seed, another. */
static void run_scenario(uint64_t seed, char *out, size_t size)
{
	const struct sim_link_config shaky = {.delay_ns = 300 * NS_PER_US,
					      .jitter_ns = 200 * NS_PER_US,
					      .rate_bytes_per_s = 125000000,
					      .seed = seed};
	struct lab lab;
	struct transfer transfers[40];

	lab_init(&lab, &shaky, NULL);
	connect_all(&lab);
	for (unsigned i = 0; i < ARRAY_SIZE(transfers); i++) {
		start(&transfers[i], &lab.sides[i % 2], i % 3 ? IO_WRITE : IO_READ, i, 1 + i % 5,
		      (uint8_t)i);
		transfers[i].index = i;
		run_for(&lab, 90 * NS_PER_US);
		if (i == 25)
			sim_link_cut(lab.sides[1].link, true);
	}
	run_for(&lab, NS_PER_S);
	for (unsigned i = 0; i < ARRAY_SIZE(transfers); i++)
		finish(&transfers[i]);
	snprintf(out, size, "%s", lab.trace);
	lab_done(&lab);
}

static void test_deterministic(void **state)
{
	static char first[16384], again[16384], other[16384];

	run_scenario(1, first, sizeof first);
	run_scenario(1, again, sizeof again);
	run_scenario(2, other, sizeof other);
	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
	assert_non_null(strstr(first, "down 1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_login),
	    cmocka_unit_test(test_login_fails),
	    cmocka_unit_test(test_io),
	    cmocka_unit_test(test_fua),
	    cmocka_unit_test(test_rate),
	    cmocka_unit_test(test_jitter_keeps_order),
	    cmocka_unit_test(test_target_errors),
	    cmocka_unit_test(test_not_sent),
	    cmocka_unit_test(test_cut),
	    cmocka_unit_test(test_cut_answer_and_login),
	    cmocka_unit_test(test_stall_keepalive),
	    cmocka_unit_test(test_stall_io_timeout),
	    cmocka_unit_test(test_stall_ends),
	    cmocka_unit_test(test_disconnect),
	    cmocka_unit_test(test_calls_from_callbacks),
	    cmocka_unit_test(test_deterministic),
	};

	return cmocka_run_group_tests_name("sim_path", tests, NULL, NULL);
}
