/* SPDX-License-Identifier: MIT
 *
 * A session: one I_T nexus over a link, with the commands that are on their way or in the target.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "harness/sim/sim_impl.h"

enum { TARGET_PORT_GROUP = 1 };

static void session_free(struct sim_session *session)
{
	assert(session->closed && session->in_target == 0 && !session->path);
	scsi_nexus_free(session->nexus);
	sim_link_unref(session->link);
	free(session->commands);
	free(session);
}

static void login_answered(struct sim_message *message)
{
	struct sim_session *session = message->owner;

	sim_path_heard(session->path);
	sim_probe_start(session->path);
}

static void login_arrived(struct sim_message *message)
{
	struct sim_session *session = message->owner;
	const struct sim_path *path = session->path;

	session->nexus = scsi_nexus_new(session->target, path->initiator, path->isid,
					TARGET_PORT_GROUP, path->relative_port);
	if (!session->nexus) {
		sim_path_lose(session->path, "login refused: out of resources");
		return;
	}
	message->arrived = login_answered;
	sim_link_send(session->link, message, SIM_TO_INITIATOR, SIM_HEADER_BYTES);
}

int sim_session_open(struct sim_path *path, struct sim_session **ret_session)
{
	/* One to identify with serves as a raw one later. */
	unsigned count = path->path.config.max_in_flight + PATH_COMMANDS_MAX;
	struct sim_session *session = calloc(1, sizeof *session);

	if (!session)
		return -ENOMEM;
	session->commands = calloc(count, sizeof *session->commands);
	if (!session->commands) {
		free(session);
		return -ENOMEM;
	}
	session->path = path;
	session->link = sim_link_ref(path->link);
	session->target = path->target;
	TAILQ_INIT(&session->free);
	TAILQ_INIT(&session->active);
	for (unsigned i = 0; i < count; i++) {
		session->commands[i].session = session;
		session->commands[i].message.owner = &session->commands[i];
		TAILQ_INSERT_TAIL(&session->free, &session->commands[i], entry);
	}
	session->ping.owner = session;
	session->login = (struct sim_message){.arrived = login_arrived, .owner = session};
	TAILQ_INSERT_TAIL(&session->link->sessions, session, entry);
	sim_link_send(session->link, &session->login, SIM_TO_TARGET, SIM_HEADER_BYTES);
	*ret_session = session;
	return 0;
}

struct sim_command *sim_session_command(struct sim_session *session)
{
	struct sim_command *command = TAILQ_FIRST(&session->free);

	if (!command)
		return NULL;
	TAILQ_REMOVE(&session->free, command, entry);
	TAILQ_INSERT_TAIL(&session->active, command, entry);
	memset(command->task.cdb, 0, sizeof command->task.cdb);
	command->pio = NULL;
	command->raw = NULL;
	command->send_bytes = 0;
	command->task.edtl_bytes = 0;
	return command;
}

void sim_command_free(struct sim_command *command)
{
	assert(command->place == SIM_IDLE && !command->message.crossing && !command->task.in_buf);
	command->out = buf_unref(command->out);
	command->pio = NULL;
	command->raw = NULL;
	TAILQ_REMOVE(&command->session->active, command, entry);
	TAILQ_INSERT_TAIL(&command->session->free, command, entry);
}

static void answer_arrived(struct sim_message *message)
{
	struct sim_command *command = message->owner;

	command->place = SIM_IDLE;
	sim_path_answered(command->session->path, command);
}

static void answer(struct sim_command *command)
{
	const struct scsi_task *task = &command->task;
	uint32_t data_bytes = MIN_OF(task->in_bytes, task->edtl_bytes);

	command->place = SIM_COMING;
	command->message.arrived = answer_arrived;
	sim_link_send(command->session->link, &command->message, SIM_TO_INITIATOR,
		      SIM_HEADER_BYTES + (uint64_t)data_bytes);
}

/* The task of a closed session has ended. */
static void command_drained(struct sim_command *command)
{
	struct sim_session *session = command->session;

	scsi_task_release(&command->task);
	command->place = SIM_IDLE;
	if (session->in_target > 0)
		return;
	if (session->path)
		sim_path_drained(session->path);
	else
		session_free(session);
}

static void task_done(struct scsi_task *task)
{
	struct sim_command *command = task->owner;

	assert(command->place == SIM_IN_TARGET);
	command->session->in_target--;
	command->out = buf_unref(command->out);
	if (command->session->closed)
		command_drained(command);
	else
		answer(command);
}

/* The wire: the request's data leaves the initiator's memory.  False: no buffer. */
static bool receive_data(struct sim_command *command)
{
	if (command->send_bytes == 0)
		return true;
	if (command->raw) {
		command->out_iov.iov_base = command->out->data; /* copied when it was sent */
	} else if (command->pio->op == IO_UNMAP) {
		command->out_iov.iov_base = command->unmap;
	} else {
		command->out = buf_new(command->session->link->pool, command->send_bytes);
		if (!command->out)
			return false;
		iov_to_mem(command->pio->iov, command->pio->iov_count, 0, command->out->data,
			   command->send_bytes);
		command->out_iov.iov_base = command->out->data;
	}
	command->out_iov.iov_len = command->send_bytes;
	return true;
}

static void request_arrived(struct sim_message *message)
{
	struct sim_command *command = message->owner;
	struct scsi_task *task = &command->task;

	if (!receive_data(command)) {
		task->status = SCSI_BUSY;
		task->in_bytes = 0;
		answer(command);
		return;
	}
	switch (scsi_prepare(task)) {
	case SCSI_ENDED:
		command->out = buf_unref(command->out);
		answer(command);
		return;
	case SCSI_NEEDS_DATA:
		task->out_iov = &command->out_iov;
		task->out_iov_count = 1;
		task->out_got_bytes = MIN_OF(command->send_bytes, task->out_bytes);
		break;
	case SCSI_READY:
		break;
	}
	command->place = SIM_IN_TARGET;
	command->session->in_target++;
	scsi_execute(task);
}

void sim_command_send(struct sim_command *command)
{
	struct sim_session *session = command->session;
	struct scsi_task *task = &command->task;
	unsigned lun = session->path->path.config.lun;

	assert(command->place == SIM_IDLE && !session->closed);
	task->nexus = session->nexus;
	memset(task->lun, 0, sizeof task->lun);
	put_be16(task->lun, (uint16_t)(lun < 256 ? lun : 0x4000 | lun));
	task->done = task_done;
	task->owner = command;
	command->place = SIM_GOING;
	command->message.arrived = request_arrived;
	sim_link_send(session->link, &command->message, SIM_TO_TARGET,
		      SIM_HEADER_BYTES + (uint64_t)command->send_bytes);
}

static void ping_answered(struct sim_message *message)
{
	sim_path_heard(((struct sim_session *)message->owner)->path);
}

static void ping_arrived(struct sim_message *message)
{
	struct sim_session *session = message->owner;

	message->arrived = ping_answered;
	sim_link_send(session->link, message, SIM_TO_INITIATOR, SIM_HEADER_BYTES);
}

/* One at a time is on its way: behind a stall a second could tell nothing the first does not. */
void sim_session_ping(struct sim_session *session)
{
	if (session->ping.crossing)
		return;
	session->ping.arrived = ping_arrived;
	sim_link_send(session->link, &session->ping, SIM_TO_TARGET, SIM_HEADER_BYTES);
}

void sim_session_close(struct sim_session *session)
{
	struct sim_command *command, *next;

	assert(!session->closed);
	session->closed = true;
	TAILQ_REMOVE(&session->link->sessions, session, entry);
	sim_link_recall(session->link, &session->login);
	sim_link_recall(session->link, &session->ping);
	for (command = TAILQ_FIRST(&session->active); command; command = next) {
		next = TAILQ_NEXT(command, entry);
		sim_link_recall(session->link, &command->message);
		if (command->place == SIM_IN_TARGET) {
			scsi_abort(&command->task);
			continue;
		}
		if (command->place == SIM_COMING)
			scsi_task_release(&command->task);
		command->place = SIM_IDLE;
	}
	if (session->in_target == 0)
		sim_path_drained(session->path);
}

void sim_session_detach(struct sim_session *session)
{
	session->path = NULL;
	if (session->in_target == 0)
		session_free(session);
}
