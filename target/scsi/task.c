/* SPDX-License-Identifier: MIT
 *
 * The life of a task: prepare, execute, end; abort and logical unit reset.
 *
 * A task set holds what has been prepared and is not done; ordering.c says when it may begin.  A
 * reset waits for the tasks that were in the set when it came; tasks carry a sequence number so
 * that overlapping resets each count their own.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "target/scsi/internal.h"

struct reset_wait {
	uint64_t before; /* waits for tasks with a smaller sequence number */
	unsigned remaining;
	loop_fn finished;
	void *arg;
	TAILQ_ENTRY(reset_wait) entry;
};

static void task_begin(struct scsi_task *task)
{
	assert(task->phase == TASK_IDLE);
	task->out_bytes = 0;
	task->out_iov = NULL;
	task->out_iov_count = 0;
	task->out_got_bytes = 0;
	task->status = SCSI_GOOD;
	task->sense_bytes = 0;
	task->in_buf = NULL;
	task->in_lent = false;
	task->in_bytes = 0;
	task->transfer_bytes = 0;
	task->aborted = false;
	task->lu = NULL;
	task->command = NULL;
	task->in_task_set = false;
	task->phase = TASK_IDLE;
	task->step = 0;
	task->scratch = NULL;
	task->range.state = 0;
	task->preempt_waiters = 0;
}

static void task_set_enter(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;

	task->phase = TASK_PREPARED;
	task->nexus->task_count++;
	if (!lu)
		return;
	task->sequence = lu->sequence++;
	task->in_task_set = true;
	lu->task_count++;
	lu->barrier_count += scsi_is_barrier(task);
	TAILQ_INSERT_TAIL(&lu->tasks, task, entry);
}

static void task_set_leave(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;

	if (task->phase == TASK_DORMANT)
		lu->dormant_count--;
	task->phase = TASK_IDLE;
	task->nexus->task_count--;
	if (!task->in_task_set)
		return;
	lu->barrier_count -= scsi_is_barrier(task);
	TAILQ_REMOVE(&lu->tasks, task, entry);
	task->in_task_set = false;
	lu->task_count--;
}

/* Tells the resets of LU whose last task this was; called when the task's own done has run. */
static void resets_progress(struct scsi_lu *lu, uint64_t sequence)
{
	struct reset_wait *wait, *next;
	struct reset_list over = TAILQ_HEAD_INITIALIZER(over);

	for (wait = TAILQ_FIRST(&lu->resets); wait; wait = next) {
		next = TAILQ_NEXT(wait, entry);
		if (sequence >= wait->before || --wait->remaining > 0)
			continue;
		TAILQ_REMOVE(&lu->resets, wait, entry);
		TAILQ_INSERT_TAIL(&over, wait, entry);
	}
	while ((wait = TAILQ_FIRST(&over))) {
		TAILQ_REMOVE(&over, wait, entry);
		wait->finished(wait->arg);
		free(wait);
	}
}

void scsi_task_end(struct scsi_task *task)
{
	struct scsi_lu *lu = task->lu;
	uint64_t sequence = task->sequence;
	uint8_t waiters = task->preempt_waiters;

	assert(task->phase != TASK_IDLE);
	task_set_leave(task);
	if (task->range.state != 0)
		scsi_range_leave(&task->range);
	if (task->aborted)
		task->status = SCSI_TASK_ABORTED;
	task->scratch = buf_unref(task->scratch);
	task->done(task);
	if (!lu)
		return;
	if (!TAILQ_EMPTY(&lu->resets))
		resets_progress(lu, sequence);
	if (waiters)
		scsi_preempt_progress(lu, waiters);
	if (!TAILQ_EMPTY(&lu->range_ready))
		scsi_range_run(lu);
	if (lu->dormant_count > 0)
		scsi_order_run(lu);
}

void scsi_task_reply(struct scsi_task *task, const void *data, uint32_t data_bytes,
		     uint32_t allocation_bytes)
{
	uint32_t bytes = MIN_OF(data_bytes, allocation_bytes);

	if (bytes > 0) {
		task->in_buf = buf_new(task->nexus->target->device->pool, bytes);
		if (!task->in_buf) {
			task->status = SCSI_BUSY;
			scsi_task_end(task);
			return;
		}
		memcpy(task->in_buf->data, data, bytes);
	}
	task->in_bytes = bytes;
	task->transfer_bytes = bytes;
	scsi_task_end(task);
}

bool scsi_task_scratch(struct scsi_task *task, uint32_t bytes)
{
	task->scratch = buf_new(task->nexus->target->device->pool, bytes);
	if (!task->scratch) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return false;
	}
	task->in_iov.iov_base = task->scratch->data;
	task->in_iov.iov_len = bytes;
	task->io.iov = &task->in_iov;
	task->io.iov_count = 1;
	return true;
}

void scsi_task_submit(struct scsi_task *task, enum io_op op, uint64_t offset_bytes,
		      uint64_t length_bytes, void (*finish)(struct io *io))
{
	if (op == IO_WRITE && !task->lu->mode.write_cache)
		task->io.flags |= IO_FUA;
	task->io.op = op;
	task->io.offset_bytes = offset_bytes;
	task->io.length_bytes = length_bytes;
	task->io.done = finish;
	task->io.owner = task;
	io_submit(volume_layer(task->lu->volume), &task->io);
}

void scsi_task_io_done(struct io *io)
{
	struct scsi_task *task = io->owner;

	scsi_sense_from_io(task, io->op, io->status);
	if (task->status != SCSI_GOOD && task->in_bytes > 0) {
		task->in_bytes = 0;
		task->transfer_bytes = 0;
	}
	scsi_task_end(task);
}

/* Finds the logical unit; false when the task has ended with LOGICAL UNIT NOT SUPPORTED. */
static bool task_address(struct scsi_task *task)
{
	int lun = scsi_lun_decode(task->lun);

	if (lun >= 0)
		task->lu = scsi_nexus_lu(task->nexus, (unsigned)lun);
	if (task->lu)
		task->lun_index = (uint16_t)lun;
	else if (!task->command || !(task->command->flags & SCSI_CMD_ANY_LUN))
		return false;
	return true;
}

/* An opcode without the service action asked for is a field's fault, not the opcode's. */
static uint32_t unknown_command(const struct scsi_task *task)
{
	const struct scsi_command *row = task->nexus->target->device->by_opcode[task->cdb[0]];

	return row && row->service_action >= 0 ? SENSE_INVALID_FIELD_IN_CDB : SENSE_INVALID_OPCODE;
}

enum scsi_prepared scsi_prepare(struct scsi_task *task)
{
	const struct scsi_command *command;
	enum scsi_prepared prepared = SCSI_READY;
	uint32_t attention;

	task_begin(task);
	command = scsi_commands_find(task->nexus->target->device, task->cdb);
	task->command = command;
	if (!task_address(task))
		return scsi_sense_fail(task, SENSE_LU_NOT_SUPPORTED);
	if (task->lu && command && task->lu->reserved && scsi_reservation_conflicts(task)) {
		scsi_reservation_refuse(task);
		return SCSI_ENDED;
	}
	if (task->lu && (!command || !(command->flags & SCSI_CMD_PAST_UA))) {
		scsi_threshold_check(task->lu);
		scsi_referrals_check(task->lu);
		attention = scsi_ua_take(task->nexus, task->lun_index);
		if (attention != SENSE_NONE)
			return scsi_sense_fail(task, attention);
	}
	if (!command || !scsi_command_present(command, task->lu))
		return scsi_sense_fail(task, unknown_command(task));
	if (task->lu) {
		uint32_t not_ready = scsi_alua_check(task);

		if (not_ready != SENSE_NONE)
			return scsi_sense_fail(task, not_ready);
	}
	/* NACA and the ACA attribute: NormACA is 0. */
	if ((task->cdb[command->cdb_bytes - 1] & 0x04) || task->attribute >= SCSI_ACA)
		return scsi_sense_fail(task, SENSE_INVALID_FIELD_IN_CDB);
	if (task->lu && !scsi_medium_is_ready(task))
		return SCSI_ENDED;
	if (task->lu && task->lu->task_count >= SCSI_LU_MAX_TASKS) {
		task->status = SCSI_TASK_SET_FULL;
		return SCSI_ENDED;
	}
	if (command->prepare)
		prepared = command->prepare(task);
	if (prepared != SCSI_ENDED)
		task_set_enter(task);
	return prepared;
}

/* Executes a task that has what it needs: checks again what may have changed while it waited. */
static void task_run(struct scsi_task *task)
{
	if (task->aborted || (task->lu && !scsi_medium_is_ready(task)))
		scsi_task_end(task);
	else
		task->command->execute(task);
}

static void task_range_ready(struct scsi_range *range)
{
	task_run(container_of(range, struct scsi_task, range));
}

static bool task_range_enter(struct scsi_task *task)
{
	struct scsi_range *range = &task->range;
	bool whole = task->command->flags & SCSI_CMD_WHOLE_LU;

	range->lu = task->lu;
	range->lba = whole ? 0 : task->lba;
	range->blocks = whole ? UINT64_MAX : task->blocks;
	range->atomic = task->command->flags & SCSI_CMD_ATOMIC;
	range->ready = task_range_ready;
	return scsi_range_enter(range);
}

void scsi_task_start(struct scsi_task *task)
{
	task->phase = TASK_EXECUTING;
	if (!(task->command->flags & SCSI_CMD_RANGE) || task_range_enter(task))
		task_run(task);
}

bool scsi_must_wait(const struct scsi_task *task)
{
	return task->lu && task->lu->barrier_count > 0 && scsi_order_waits(task);
}

void scsi_execute(struct scsi_task *task)
{
	assert(task->phase == TASK_PREPARED);
	if (task->aborted) /* a reset is under way: done is on its way */
		return;
	if (!scsi_must_wait(task)) {
		scsi_task_start(task);
		return;
	}
	task->phase = TASK_DORMANT;
	task->lu->dormant_count++;
}

void scsi_task_release(struct scsi_task *task)
{
	assert(task->phase == TASK_IDLE);
	task->in_buf = buf_unref(task->in_buf);
}

/* In the task set, and ended by whoever aborts it. */
static bool not_begun(const struct scsi_task *task)
{
	return task->phase == TASK_PREPARED || task->phase == TASK_DORMANT;
}

void scsi_abort(struct scsi_task *task)
{
	if (task->phase == TASK_IDLE || task->aborted)
		return;
	task->aborted = true;
	if (not_begun(task))
		scsi_task_end(task);
	else if (task->command->abort)
		task->command->abort(task);
}

/* Aborts the whole task set.  First all are marked, so that nothing a done callback does can
 * run one of them; then those without an io of their own are ended. */
static void task_set_abort(struct scsi_lu *lu)
{
	struct scsi_task *task, *next;
	struct task_set idle = TAILQ_HEAD_INITIALIZER(idle);

	for (task = TAILQ_FIRST(&lu->tasks); task; task = next) {
		next = TAILQ_NEXT(task, entry);
		if (task->aborted)
			continue;
		task->aborted = true;
		if (!not_begun(task) && !task->command->abort)
			continue;
		TAILQ_REMOVE(&lu->tasks, task, entry);
		TAILQ_INSERT_TAIL(&idle, task, entry);
	}
	while ((task = TAILQ_FIRST(&idle))) {
		TAILQ_REMOVE(&idle, task, entry);
		TAILQ_INSERT_TAIL(&lu->tasks, task, entry);
		if (not_begun(task))
			scsi_task_end(task);
		else
			task->command->abort(task);
	}
}

static struct scsi_lu *find_lu(const struct scsi_nexus *nexus, const uint8_t lun[8])
{
	int index = scsi_lun_decode(lun);

	return index >= 0 ? scsi_nexus_lu(nexus, (unsigned)index) : NULL;
}

bool scsi_nexus_has(const struct scsi_nexus *nexus, const uint8_t lun[8])
{
	return find_lu(nexus, lun) != NULL;
}

/* FINISHED comes when the tasks that are in the set now have ended; -ENOMEM. */
static int wait_for_tasks(struct scsi_lu *lu, loop_fn finished, void *arg)
{
	struct reset_wait *wait;

	if (lu->task_count == 0)
		return 0;
	wait = calloc(1, sizeof *wait);
	if (!wait)
		return -ENOMEM;
	*wait = (struct reset_wait){
	    .before = lu->sequence, .remaining = lu->task_count, .finished = finished, .arg = arg};
	TAILQ_INSERT_TAIL(&lu->resets, wait, entry);
	return 0;
}

static void clear_tasks(struct scsi_lu *lu, loop_fn finished, void *arg)
{
	if (lu->task_count > 0)
		task_set_abort(lu);
	else
		finished(arg);
}

static int reset_lu(const struct scsi_nexus *nexus, const uint8_t lun[8], uint32_t attention,
		    loop_fn finished, void *arg)
{
	struct scsi_lu *lu = find_lu(nexus, lun);
	int r = lu ? wait_for_tasks(lu, finished, arg) : -ENXIO;

	if (r < 0)
		return r;
	scsi_medium_reset(lu);
	scsi_reserve_forget_lu(lu);
	scsi_ua_broadcast(lu, NULL, attention);
	scsi_mode_reset(lu);
	clear_tasks(lu, finished, arg);
	return 0;
}

int scsi_reset_lu(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg)
{
	return reset_lu(nexus, lun, SENSE_UA_DEVICE_RESET, finished, arg);
}

int scsi_reset_target_lu(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished,
			 void *arg)
{
	return reset_lu(nexus, lun, SENSE_UA_BUS_RESET, finished, arg);
}

int scsi_clear_task_set(struct scsi_nexus *nexus, const uint8_t lun[8], loop_fn finished, void *arg)
{
	struct scsi_lu *lu = find_lu(nexus, lun);
	int r = lu ? wait_for_tasks(lu, finished, arg) : -ENXIO;
	struct scsi_task *task;

	if (r < 0)
		return r;
	for (task = TAILQ_FIRST(&lu->tasks); task; task = TAILQ_NEXT(task, entry)) {
		if (task->nexus != nexus && !task->aborted)
			scsi_ua_add(task->nexus, task->lun_index, SENSE_UA_COMMANDS_CLEARED);
	}
	clear_tasks(lu, finished, arg);
	return 0;
}
