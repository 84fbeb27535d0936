/* SPDX-License-Identifier: MIT
 *
 * The paths under test and their surroundings.
 */
#include "lab.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

const struct sim_link_config lab_plain_link = {.delay_ns = DELAY_NS};

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

void lab_init(struct lab *lab, const struct sim_link_config *link,
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
	lab->server = iscsi_server_new(lab->loop, lab->pool);
	assert_non_null(lab->server);
	assert_int_equal(iscsi_server_add_target(lab->server, lab->target), 0);
	for (unsigned i = 0; i < PATHS; i++) {
		struct side *side = &lab->sides[i];
		struct iscsi_portal_config portal_config = {
		    .group_tag = (uint16_t)(3261 + i), .target_port_group = 1, .owner = "m1"};
		struct iscsi_portal *at;
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
		assert_int_equal(iscsi_server_add_portal(lab->server, &portal_config, &at), 0);
		assert_int_equal(sim_link_new(lab->loop, &link_config, at, &side->link), 0);
		assert_int_equal(path_new_sim(lab->loop, &config, side->link, &side->path), 0);
	}
}

void lab_done(struct lab *lab)
{
	for (unsigned i = 0; i < PATHS; i++) {
		path_free(lab->sides[i].path);
		sim_link_free(lab->sides[i].link);
	}
	iscsi_server_free(lab->server);
	scsi_target_free(lab->target);
	scsi_device_free(lab->device);
	assert_int_equal(buf_pool_in_use_bytes(lab->pool), 0);
	buf_pool_free(lab->pool);
	fake_volume_done(&lab->volume);
	loop_free(lab->loop);
}

void lab_run_for(struct lab *lab, uint64_t ns)
{
	assert_int_equal(loop_run_until(lab->loop, loop_now_ns(lab->loop) + ns), 0);
}

void lab_connect_all(struct lab *lab)
{
	for (unsigned i = 0; i < PATHS; i++)
		assert_int_equal(path_connect(lab->sides[i].path), 0);
	lab_run_for(lab, NS_PER_S / 2);
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

void transfer_start(struct transfer *transfer, struct side *side, enum io_op op, uint64_t lba,
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

void transfer_finish(struct transfer *transfer)
{
	assert_int_equal(transfer->done_count, 1);
	free(transfer->data);
	transfer->data = NULL;
}
