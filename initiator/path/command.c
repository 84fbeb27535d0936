/* SPDX-License-Identifier: MIT
 *
 * Raw commands on a path that is up: what MPIO asks a unit beside I/O.  They have their own slots
 * and end in the same three ways: answered, refused or lost, each exactly once.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

void command_init(struct iscsi_path *p)
{
	p->raw_answered_tail = &p->raw_answered;
	p->raw_refused_tail = &p->raw_refused;
	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++)
		p->raws[i].owner = p;
}

static void append(struct path_command ***tail, struct path_command *command)
{
	command->task = NULL;
	command->next = NULL;
	**tail = command;
	*tail = &command->next;
}

static void release(struct iscsi_raw *raw)
{
	free(raw->task.datain.data); /* sense data; else NULL */
	raw->task.datain.data = NULL;
	raw->command = NULL;
}

static uint32_t got_bytes(const struct path_command *command, const struct scsi_task *task)
{
	size_t residual = task->residual_status == SCSI_RESIDUAL_UNDERFLOW ? task->residual : 0;

	return command->to_target
		   ? 0
		   : command->data_bytes - (uint32_t)MIN_OF(residual, command->data_bytes);
}

static void answered(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_raw *raw = arg;
	struct iscsi_path *p = raw->owner;
	struct path_command *command = raw->command;
	struct iscsi_answer answer;

	if (p->tearing)
		return; /* command_end_lost ends it */
	assert(command && command->task == raw);
	if (p->aborting)
		status = SCSI_STATUS_TASK_ABORTED;
	if (!iscsi_answer_take(&answer, status, &raw->task)) {
		session_lose_failed(p, errno);
		return;
	}
	p->heard = true;
	command->result = answer.result;
	command->scsi_status = answer.scsi_status;
	command->sense_key = answer.sense_key;
	command->asc = answer.asc;
	command->ascq = answer.ascq;
	command->got_bytes = answer.result == PATH_OK ? got_bytes(command, &raw->task) : 0;
	release(raw);
	append(&p->raw_answered_tail, command);
}

static struct iscsi_raw *free_raw(struct iscsi_path *p)
{
	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++)
		if (!p->raws[i].command)
			return &p->raws[i];
	return NULL;
}

static int queue(struct iscsi_path *p, struct iscsi_raw *raw, const struct path_command *command)
{
	struct scsi_task *task = &raw->task;

	memset(task, 0, sizeof *task);
	memcpy(task->cdb, command->cdb, sizeof task->cdb);
	task->cdb_size = (int)command->cdb_bytes;
	task->expxferlen = (int)command->data_bytes;
	raw->iov = (struct scsi_iovec){.iov_base = command->data, .iov_len = command->data_bytes};
	if (command->data_bytes && command->to_target) {
		task->xfer_dir = SCSI_XFER_WRITE;
		scsi_task_set_iov_out(task, &raw->iov, 1);
	} else if (command->data_bytes) {
		task->xfer_dir = SCSI_XFER_READ;
		scsi_task_set_iov_in(task, &raw->iov, 1);
	}
	return iscsi_scsi_command_async(p->ctx, p->wire_lun, task, answered, NULL, raw);
}

void command_submit(struct path *path, struct path_command *command)
{
	struct iscsi_path *p = container_of(path, struct iscsi_path, path);
	struct iscsi_raw *raw = free_raw(p);

	assert(command->cdb_bytes <= sizeof command->cdb);
	if (!path->up || p->lost || !raw || command->data_bytes > INT_MAX ||
	    queue(p, raw, command) != 0) {
		append(&p->raw_refused_tail, command);
		loop_task_queue(path->loop, &p->later);
		return;
	}
	raw->command = command;
	command->task = raw;
	command->submit_ns = loop_now_ns(path->loop);
	p->queued++;
	loop_task_queue(path->loop, &p->flush);
}

void command_deliver(struct iscsi_path *p)
{
	struct path_command *command;

	while ((command = p->raw_answered)) {
		p->raw_answered = command->next;
		if (!p->raw_answered)
			p->raw_answered_tail = &p->raw_answered;
		command->done(command);
	}
}

void command_end_refused(struct iscsi_path *p)
{
	struct path_command *command = p->raw_refused;

	/* One round: what is refused from within done waits for the next. */
	p->raw_refused = NULL;
	p->raw_refused_tail = &p->raw_refused;
	while (command) {
		struct path_command *next = command->next;

		command->result = PATH_NOT_SENT;
		command->done(command);
		command = next;
	}
}

void command_end_lost(struct iscsi_path *p)
{
	assert(!p->ctx);
	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++) {
		struct path_command *command = p->raws[i].command;

		if (!command)
			continue;
		release(&p->raws[i]);
		command->task = NULL;
		command->result = PATH_LOST;
		command->done(command);
	}
}

uint64_t command_waiting_ns(const struct iscsi_path *p, uint64_t now)
{
	uint64_t longest = 0;

	for (unsigned i = 0; i < PATH_COMMANDS_MAX; i++)
		if (p->raws[i].command)
			longest = MAX_OF(longest, now - p->raws[i].command->submit_ns);
	return longest;
}
