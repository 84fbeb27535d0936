/* SPDX-License-Identifier: MIT
 *
 * The fake device server.
 */
#include "tests/unit/iscsi/fake_scsi.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

enum fake_phase { FAKE_IDLE, FAKE_PREPARED, FAKE_EXECUTING };

struct fake_wait {
	unsigned pending;
	loop_fn finished;
	void *arg;
};

struct scsi_target {
	struct buf_pool *pool;
	char name[224];
	uint8_t *disk[FAKE_LUNS];
	TAILQ_HEAD(fake_task_list, scsi_task) tasks;
	bool hold, attention;
	unsigned held, executed, resets, target_resets, clears, nexuses;
	uint8_t last_cdb[SCSI_MAX_CDB_BYTES];
	struct fake_wait wait[64]; /* resets under way; a task's `sequence` has their bits */
};

struct scsi_nexus {
	struct scsi_target *target;
	unsigned tasks;
	bool hidden[FAKE_LUNS];
};

struct scsi_target *fake_target_new(struct buf_pool *pool, const char *name)
{
	struct scsi_target *target = calloc(1, sizeof *target);

	assert(target);
	target->pool = pool;
	snprintf(target->name, sizeof target->name, "%s", name);
	TAILQ_INIT(&target->tasks);
	for (unsigned i = 0; i < FAKE_LUNS; i++) {
		target->disk[i] = calloc(FAKE_BLOCKS, FAKE_BLOCK_BYTES);
		assert(target->disk[i]);
	}
	return target;
}

struct scsi_target *fake_target_free(struct scsi_target *target)
{
	assert(TAILQ_EMPTY(&target->tasks) && target->nexuses == 0);
	for (unsigned i = 0; i < FAKE_LUNS; i++)
		free(target->disk[i]);
	free(target);
	return NULL;
}

uint8_t *fake_disk(struct scsi_target *target, unsigned lun)
{
	return target->disk[lun];
}

unsigned fake_held_count(const struct scsi_target *target)
{
	return target->held;
}

void fake_attention(struct scsi_target *target)
{
	target->attention = true;
}

unsigned fake_executed(const struct scsi_target *target)
{
	return target->executed;
}

unsigned fake_resets(const struct scsi_target *target)
{
	return target->resets;
}

unsigned fake_target_resets(const struct scsi_target *target)
{
	return target->target_resets;
}

unsigned fake_clears(const struct scsi_target *target)
{
	return target->clears;
}

unsigned fake_nexuses(const struct scsi_target *target)
{
	return target->nexuses;
}

const uint8_t *fake_last_cdb(const struct scsi_target *target)
{
	return target->last_cdb;
}

const char *scsi_target_name(const struct scsi_target *target)
{
	return target->name;
}

struct scsi_nexus *scsi_nexus_new(struct scsi_target *target, const char *initiator_name,
				  const uint8_t isid[6], uint16_t target_port_group,
				  uint16_t relative_port)
{
	struct scsi_nexus *nexus = calloc(1, sizeof *nexus);

	assert(nexus);
	nexus->target = target;
	target->nexuses++;
	return nexus;
}

struct scsi_nexus *scsi_nexus_free(struct scsi_nexus *nexus)
{
	if (nexus) {
		assert(nexus->tasks == 0);
		nexus->target->nexuses--;
	}
	free(nexus);
	return NULL;
}

void scsi_nexus_hide(struct scsi_nexus *nexus, unsigned lun)
{
	if (lun < FAKE_LUNS)
		nexus->hidden[lun] = true;
}

static int lun_of(const uint8_t lun[8])
{
	return lun[0] == 0 && lun[1] < FAKE_LUNS ? lun[1] : -1;
}

bool scsi_nexus_has(const struct scsi_nexus *nexus, const uint8_t lun[8])
{
	return lun_of(lun) >= 0 && !nexus->hidden[lun_of(lun)];
}

static enum scsi_prepared fail(struct scsi_task *task, uint8_t key, uint8_t asc, uint8_t ascq)
{
	task->status = SCSI_CHECK_CONDITION;
	memset(task->sense, 0, sizeof task->sense);
	task->sense[0] = 0x70;
	task->sense[2] = key;
	task->sense[7] = 10;
	task->sense[12] = asc;
	task->sense[13] = ascq;
	task->sense_bytes = SCSI_SENSE_BYTES;
	return SCSI_ENDED;
}

void scsi_task_fault(struct scsi_task *task, uint8_t asc, uint8_t ascq)
{
	fail(task, 0x0b, asc, ascq);
}

static enum scsi_prepared prepare_rw(struct scsi_task *task)
{
	bool write = task->cdb[0] == 0x2a || task->cdb[0] == 0x8a;

	if (task->cdb[0] >= 0x80) {
		task->lba = get_be64(task->cdb + 2);
		task->blocks = get_be32(task->cdb + 10);
	} else {
		task->lba = get_be32(task->cdb + 2);
		task->blocks = get_be16(task->cdb + 7);
	}
	if (task->lba > FAKE_BLOCKS || task->blocks > FAKE_BLOCKS - task->lba)
		return fail(task, 5, 0x21, 0);
	if (write)
		task->out_bytes = task->blocks * FAKE_BLOCK_BYTES;
	return write ? SCSI_NEEDS_DATA : SCSI_READY;
}

static bool known(uint8_t opcode)
{
	static const uint8_t opcodes[] = {0x00, 0x12, 0x25, 0x9e, 0xa0, 0x35, 0x7f};

	return memchr(opcodes, opcode, sizeof opcodes);
}

enum scsi_prepared scsi_prepare(struct scsi_task *task)
{
	struct scsi_target *target = task->nexus->target;
	enum scsi_prepared prepared = SCSI_READY;
	uint8_t opcode = task->cdb[0];

	assert(task->phase == FAKE_IDLE);
	task->status = SCSI_GOOD;
	task->sense_bytes = 0;
	task->in_buf = NULL;
	task->in_bytes = task->transfer_bytes = task->out_bytes = task->out_got_bytes = 0;
	task->out_iov_count = 0;
	task->aborted = false;
	memcpy(target->last_cdb, task->cdb, sizeof target->last_cdb);
	task->lba = 0;
	if (lun_of(task->lun) < 0 || task->nexus->hidden[lun_of(task->lun)])
		return fail(task, 5, 0x25, 0);
	if (target->attention && opcode != 0x12 && opcode != 0xa0) {
		target->attention = false;
		return fail(task, 6, 0x29, 0);
	}
	if (opcode == 0x28 || opcode == 0x2a || opcode == 0x88 || opcode == 0x8a)
		prepared = prepare_rw(task);
	else if (!known(opcode))
		return fail(task, 5, 0x20, 0);
	if (prepared == SCSI_ENDED)
		return prepared;
	task->phase = FAKE_PREPARED;
	task->sequence = 0;
	TAILQ_INSERT_TAIL(&target->tasks, task, entry);
	task->nexus->tasks++;
	return prepared;
}

static void wait_done(struct fake_wait *wait)
{
	assert(wait->pending > 0);
	if (--wait->pending == 0)
		wait->finished(wait->arg);
}

static void task_end(struct scsi_task *task)
{
	struct scsi_target *target = task->nexus->target;
	uint64_t waiters = task->sequence;

	task->phase = FAKE_IDLE;
	TAILQ_REMOVE(&target->tasks, task, entry);
	task->nexus->tasks--;
	task->done(task);
	for (unsigned i = 0; i < 64; i++) {
		if (waiters >> i & 1)
			wait_done(&target->wait[i]);
	}
}

static void reply(struct scsi_task *task, const void *data, uint32_t bytes)
{
	task->in_buf = buf_new(task->nexus->target->pool, bytes);
	assert(task->in_buf);
	memcpy(task->in_buf->data, data, bytes);
	task->in_bytes = task->transfer_bytes = bytes;
}

static void execute_write(struct scsi_task *task, uint8_t *at)
{
	uint32_t bytes = MIN_OF(task->out_got_bytes, task->out_bytes);

	bytes -= bytes % FAKE_BLOCK_BYTES;
	if (bytes > 0) {
		iov_to_mem(task->out_iov, task->out_iov_count, 0, at, bytes);
		task->nexus->target->executed++;
	}
	task->transfer_bytes = task->out_bytes;
}

static void execute_other(struct scsi_task *task)
{
	static const uint8_t identity[] = "SANLAB  FAKE            1   ";
	uint8_t data[96] = {0};

	switch (task->cdb[0]) {
	case 0x12:
		data[2] = 6;
		data[3] = 2;
		data[4] = 31;
		memcpy(data + 8, identity, sizeof identity - 1);
		reply(task, data, MIN_OF(36U, get_be16(task->cdb + 3)));
		break;
	case 0x25:
		put_be32(data, FAKE_BLOCKS - 1);
		put_be32(data + 4, FAKE_BLOCK_BYTES);
		reply(task, data, 8);
		break;
	case 0x9e:
		put_be64(data, FAKE_BLOCKS - 1);
		put_be32(data + 8, FAKE_BLOCK_BYTES);
		reply(task, data, 32);
		break;
	case 0xa0:
		put_be32(data, 8 * FAKE_LUNS);
		data[17] = 1;
		reply(task, data, 8 + 8 * FAKE_LUNS);
		break;
	default:
		break;
	}
}

static void finish(struct scsi_task *task)
{
	struct scsi_target *target = task->nexus->target;
	int lun = lun_of(task->lun);
	uint8_t *at = target->disk[lun] + task->lba * FAKE_BLOCK_BYTES;

	if (!task->aborted) {
		if (task->cdb[0] == 0x28 || task->cdb[0] == 0x88)
			reply(task, at, task->blocks * FAKE_BLOCK_BYTES);
		else if (task->cdb[0] == 0x2a || task->cdb[0] == 0x8a)
			execute_write(task, at);
		else
			execute_other(task);
	}
	task_end(task);
}

void scsi_execute(struct scsi_task *task)
{
	struct scsi_target *target = task->nexus->target;

	assert(task->phase == FAKE_PREPARED && !task->aborted);
	task->phase = FAKE_EXECUTING;
	if (target->hold)
		target->held++;
	else
		finish(task);
}

bool scsi_must_wait(const struct scsi_task *task)
{
	return false;
}

void fake_hold(struct scsi_target *target, bool hold)
{
	struct scsi_task *task, *next;

	target->hold = hold;
	if (hold)
		return;
	for (task = TAILQ_FIRST(&target->tasks); task; task = next) {
		next = TAILQ_NEXT(task, entry);
		if (task->phase == FAKE_EXECUTING) {
			target->held--;
			finish(task);
		}
	}
}

void scsi_task_release(struct scsi_task *task)
{
	assert(task->phase == FAKE_IDLE);
	task->in_buf = buf_unref(task->in_buf);
}

void scsi_abort(struct scsi_task *task)
{
	if (task->phase == FAKE_IDLE || task->aborted)
		return;
	task->aborted = true;
	if (task->phase == FAKE_PREPARED)
		task_end(task);
}

static int end_tasks(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg)
{
	struct scsi_target *target = nexus->target;
	struct scsi_task *task, *next;
	int index = lun_of(lun);
	struct fake_wait *wait = target->wait;

	if (index < 0)
		return -ENXIO;
	while (wait->pending > 0)
		wait++;
	assert(wait < target->wait + ARRAY_SIZE(target->wait));
	*wait = (struct fake_wait){.pending = 1, .finished = finished, .arg = arg};
	for (task = TAILQ_FIRST(&target->tasks); task; task = next) {
		next = TAILQ_NEXT(task, entry);
		if (lun_of(task->lun) != index)
			continue;
		task->sequence |= UINT64_C(1) << (wait - target->wait);
		wait->pending++;
		scsi_abort(task);
	}
	wait_done(wait);
	return 0;
}

int scsi_reset_lu(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg)
{
	nexus->target->resets += lun_of(lun) >= 0;
	return end_tasks(nexus, lun, finished, arg);
}

int scsi_reset_target_lu(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished,
			 void *arg)
{
	nexus->target->target_resets += lun_of(lun) >= 0;
	return end_tasks(nexus, lun, finished, arg);
}

int scsi_clear_task_set(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg)
{
	nexus->target->clears += lun_of(lun) >= 0;
	return end_tasks(nexus, lun, finished, arg);
}
