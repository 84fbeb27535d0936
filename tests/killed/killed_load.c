/* SPDX-License-Identifier: MIT
 *
 * Load and its shadow.
 */
#include "tests/killed/killed_load.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include "base/bytes.h"

enum {
	LUN_BLOCK_BYTES = 512,
	LUN_BLOCKS = LOAD_BLOCK_BYTES / LUN_BLOCK_BYTES,
	READ_BLOCKS = 64,
	UNMAP_BLOCKS = 16,
	PAGE_BLOCKS = 15 * 1024 * 1024 / LOAD_BLOCK_BYTES,
};
static const uint32_t none = UINT32_MAX;

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- content ---- */

static void block_fill(uint8_t *block, uint32_t number, uint32_t stamp)
{
	if (stamp == 0) {
		memset(block, 0, LOAD_BLOCK_BYTES);
		return;
	}
	for (unsigned i = 0; i < LOAD_BLOCK_BYTES; i += 16) {
		put_be32(block + i, number);
		put_be32(block + i + 4, stamp);
		put_be32(block + i + 8, ~stamp);
		put_be32(block + i + 12, number * 2654435761u ^ stamp ^ i);
	}
}

static bool block_is(const uint8_t *block, uint32_t number, uint32_t stamp)
{
	uint8_t wanted[LOAD_BLOCK_BYTES];
	block_fill(wanted, number, stamp);
	return memcmp(block, wanted, sizeof wanted) == 0;
}

/* ---- life ---- */

bool load_init(struct load *load, const char *portal, const char *target, uint32_t blocks,
	       uint64_t seed)
{
	*load = (struct load){.portal = portal, .target = target, .blocks = blocks};
	rng_init(&load->rng, seed, rng_stream_of("load"));
	load->answered = calloc(blocks, sizeof *load->answered);
	load->pending = malloc(blocks * sizeof *load->pending);
	bool good = load->answered && load->pending;
	for (unsigned i = 0; i < LOAD_DEPTH; i++) {
		load->ops[i].load = load;
		load->ops[i].data = malloc((size_t)LOAD_BLOCKS_MAX * LOAD_BLOCK_BYTES);
		good &= load->ops[i].data != NULL;
	}
	if (good)
		memset(load->pending, 0xff, blocks * sizeof *load->pending);
	return good;
}

void load_done(struct load *load)
{
	load_disconnect(load);
	for (unsigned i = 0; i < LOAD_DEPTH; i++)
		free(load->ops[i].data);
	free(load->answered);
	free(load->pending);
}

bool load_connect(struct load *load)
{
	load->iscsi = iscsi_create_context("iqn.2026-11.test.sanlab:killed");
	if (!load->iscsi)
		return false;
	iscsi_set_targetname(load->iscsi, load->target);
	iscsi_set_session_type(load->iscsi, ISCSI_SESSION_NORMAL);
	iscsi_set_noautoreconnect(load->iscsi, 1);
	iscsi_set_timeout(load->iscsi, 60);
	if (iscsi_full_connect_sync(load->iscsi, load->portal, 0) == 0)
		return true;
	fprintf(stderr, "cannot connect: %s\n", iscsi_get_error(load->iscsi));
	return false;
}

void load_disconnect(struct load *load)
{
	if (load->iscsi)
		iscsi_destroy_context(load->iscsi);
	load->iscsi = NULL;
}

/* ---- load ---- */

static void op_done(struct iscsi_context *iscsi, int status, void *command_data, void *private)
{
	struct load_op *op = private;
	struct load *load = op->load;
	struct scsi_task *task = command_data;

	if (status == SCSI_STATUS_GOOD) {
		for (uint32_t i = op->first; i < op->first + op->count; i++) {
			load->answered[i] = op->stamp;
			load->pending[i] = none;
		}
		load->writes += op->kind == LOAD_WRITE;
		load->unmaps += op->kind == LOAD_UNMAP;
	} else if (status != SCSI_STATUS_CANCELLED && status != SCSI_STATUS_ERROR &&
		   status != SCSI_STATUS_TIMEOUT) {
		fprintf(stderr, "a request failed: status %d, %s\n", status,
			iscsi_get_error(iscsi));
		load->failed = true;
	}
	/* Otherwise undecided: `pending` stays. */
	op->kind = LOAD_IDLE;
	load->busy--;
	if (task)
		scsi_free_scsi_task(task);
}

static bool range_is_idle(const struct load *load, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++)
		if (load->pending[i] != none)
			return false;
	return true;
}

static struct scsi_task *op_send(struct load *load, struct load_op *op)
{
	uint64_t lba = (uint64_t)op->first * LUN_BLOCKS;
	uint32_t lun_blocks = op->count * LUN_BLOCKS;

	if (op->kind == LOAD_UNMAP) {
		struct unmap_list list = {.lba = lba, .num = lun_blocks};
		return iscsi_unmap_task(load->iscsi, 0, 0, 0, &list, 1, op_done, op);
	}
	for (uint32_t i = 0; i < op->count; i++)
		block_fill(op->data + (size_t)i * LOAD_BLOCK_BYTES, op->first + i, op->stamp);
	int fua = rng_below(&load->rng, 20) == 0;
	return iscsi_write16_task(load->iscsi, 0, lba, op->data, op->count * LOAD_BLOCK_BYTES,
				  LUN_BLOCK_BYTES, 0, 0, fua, 0, 0, op_done, op);
}

/* A write of any size at any place, now and then an UNMAP of a little or of a page. */
static void op_choose(struct load *load, struct load_op *op)
{
	uint64_t what = rng_below(&load->rng, 1000);

	op->kind = what < 30 ? LOAD_UNMAP : LOAD_WRITE;
	op->count = 1 + (uint32_t)rng_below(&load->rng, rng_below(&load->rng, 4) ? 4 : 64);
	if (what < 3)
		op->count = PAGE_BLOCKS;
	else if (what < 30)
		op->count = UNMAP_BLOCKS;
	op->first = (uint32_t)rng_below(&load->rng, load->blocks - op->count + 1);
	if (op->kind == LOAD_UNMAP)
		op->first = op->first / op->count * op->count;
}

static bool op_start(struct load *load, struct load_op *op)
{
	for (unsigned attempt = 0; attempt < 8; attempt++) {
		op_choose(load, op);
		if (range_is_idle(load, op->first, op->count))
			break;
		op->kind = LOAD_IDLE;
	}
	if (op->kind == LOAD_IDLE)
		return true; /* another time */
	op->stamp = op->kind == LOAD_UNMAP ? 0 : ++load->stamp;
	for (uint32_t i = op->first; i < op->first + op->count; i++)
		load->pending[i] = op->stamp;
	load->busy++;
	if (op_send(load, op))
		return true;
	fprintf(stderr, "cannot send: %s\n", iscsi_get_error(load->iscsi));
	return false;
}

/* False: the connection has ended. */
static bool serve(struct load *load, int timeout_ms)
{
	struct pollfd poller = {.fd = iscsi_get_fd(load->iscsi),
				.events = (short)iscsi_which_events(load->iscsi)};
	int got = poll(&poller, 1, timeout_ms);
	if (got < 0)
		return errno == EINTR;
	return iscsi_service(load->iscsi, got ? poller.revents : 0) == 0;
}

bool load_run(struct load *load, unsigned duration_ms)
{
	uint64_t end = now_ms() + duration_ms;

	while (now_ms() < end) {
		for (unsigned i = 0; i < LOAD_DEPTH; i++)
			if (load->ops[i].kind == LOAD_IDLE && !op_start(load, &load->ops[i]))
				return false;
		if (!serve(load, 1)) {
			fprintf(stderr, "the connection ended: %s\n", iscsi_get_error(load->iscsi));
			return false;
		}
	}
	return !load->failed;
}

bool load_take_rest(struct load *load)
{
	uint64_t end = now_ms() + 5000;
	while (load->busy > 0 && now_ms() < end && serve(load, 100))
		;
	load_disconnect(load);
	if (load->busy > 0)
		fprintf(stderr, "%u requests have not ended\n", load->busy);
	return load->busy == 0 && !load->failed;
}

/* ---- verification ---- */

static bool check_block(struct load *load, uint32_t number, const uint8_t *block)
{
	uint32_t answered = load->answered[number], pending = load->pending[number];

	if (block_is(block, number, answered)) {
		load->pending[number] = none;
		return true;
	}
	if (pending != none && block_is(block, number, pending)) {
		load->answered[number] = pending;
		load->pending[number] = none;
		return true;
	}
	fprintf(stderr, "block %u: wanted write %u", number, answered);
	if (pending != none)
		fprintf(stderr, " or %u", pending);
	fprintf(stderr, ", found block %u of write %u\n", get_be32(block), get_be32(block + 4));
	return false;
}

bool load_verify(struct load *load)
{
	unsigned wrong = 0;

	for (uint32_t first = 0; first < load->blocks && wrong < 20; first += READ_BLOCKS) {
		uint32_t count = MIN_OF((uint32_t)READ_BLOCKS, load->blocks - first);
		struct scsi_task *task =
		    iscsi_read16_sync(load->iscsi, 0, (uint64_t)first * LUN_BLOCKS,
				      count * LOAD_BLOCK_BYTES, LUN_BLOCK_BYTES, 0, 0, 0, 0, 0);
		if (!task || task->status != SCSI_STATUS_GOOD ||
		    task->datain.size != (int)(count * LOAD_BLOCK_BYTES)) {
			fprintf(stderr, "cannot read block %u: %s\n", first,
				iscsi_get_error(load->iscsi));
			wrong++;
		} else {
			for (uint32_t i = 0; i < count; i++)
				wrong +=
				    !check_block(load, first + i,
						 task->datain.data + (size_t)i * LOAD_BLOCK_BYTES);
		}
		if (task)
			scsi_free_scsi_task(task);
	}
	return wrong == 0;
}
