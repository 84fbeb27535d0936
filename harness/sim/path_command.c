/* SPDX-License-Identifier: MIT
 *
 * Raw commands on the sim path: the same way as its I/O, in slots of their own.  Data to the target
 * is small and copied when it is sent.
 */
#include <assert.h>

#include "base/bytes.h"
#include "harness/sim/sim_impl.h"

void sim_raw_append(struct path_command ***tail, struct path_command *raw)
{
	raw->next = NULL;
	**tail = raw;
	*tail = &raw->next;
}

/* One round: what is submitted from within done waits for the next. */
void sim_raw_end(struct path_command **list, struct path_command ***tail, enum path_result result)
{
	struct path_command *raw = *list;

	*list = NULL;
	*tail = list;
	while (raw) {
		struct path_command *next = raw->next;

		raw->result = result;
		raw->done(raw);
		raw = next;
	}
}

static bool take_data(struct sim_command *command, const struct path_command *raw)
{
	if (!raw->to_target || raw->data_bytes == 0)
		return true;
	command->out = buf_new(command->session->link->pool, raw->data_bytes);
	if (!command->out)
		return false;
	memcpy(command->out->data, raw->data, raw->data_bytes);
	command->send_bytes = raw->data_bytes;
	return true;
}

void sim_raw_submit(struct path *base, struct path_command *raw)
{
	struct sim_path *path = container_of(base, struct sim_path, path);
	struct sim_command *command = NULL;

	assert(raw->cdb_bytes <= sizeof raw->cdb);
	if (path->phase == SIM_UP && path->raw_in_flight < PATH_COMMANDS_MAX)
		command = sim_session_command(path->session);
	if (command && !take_data(command, raw)) {
		sim_command_free(command);
		command = NULL;
	}
	if (!command) {
		sim_raw_append(&path->raw_refused_tail, raw);
		loop_task_queue(base->loop, &path->later);
		return;
	}
	command->raw = raw;
	raw->submit_ns = loop_now_ns(base->loop);
	memcpy(command->task.cdb, raw->cdb, sizeof raw->cdb);
	command->task.edtl_bytes = raw->data_bytes;
	path->raw_in_flight++;
	sim_command_send(command);
}

static void take_result(struct path_command *raw, const struct scsi_task *task)
{
	const struct io_lent *lent;

	raw->scsi_status = task->status;
	raw->sense_key = raw->asc = raw->ascq = 0;
	raw->got_bytes = 0;
	if (task->status == SCSI_CHECK_CONDITION) {
		raw->result = PATH_SENSE;
		raw->sense_key = task->sense[2] & 0x0f;
		raw->asc = task->sense[12];
		raw->ascq = task->sense[13];
		return;
	}
	raw->result = task->status == SCSI_GOOD ? PATH_OK : PATH_STATUS;
	if (raw->result != PATH_OK || raw->to_target || !task->in_buf)
		return;
	raw->got_bytes = MIN_OF(task->in_bytes, raw->data_bytes);
	if (!task->in_lent) {
		memcpy(raw->data, task->in_buf->data, raw->got_bytes);
		return;
	}
	lent = (const struct io_lent *)(const void *)task->in_buf->data;
	iov_to_mem(lent->iov, lent->count, 0, raw->data, raw->got_bytes);
}

void sim_raw_answered(struct sim_command *command)
{
	struct path_command *raw = command->raw;
	struct sim_path *path = command->session->path;

	take_result(raw, &command->task);
	scsi_task_release(&command->task);
	sim_command_free(command);
	assert(path->raw_in_flight > 0);
	path->raw_in_flight--;
	raw->done(raw);
}
