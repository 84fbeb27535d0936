/* SPDX-License-Identifier: MIT
 *
 * Raw commands on the sim path: the same way as its I/O, in slots of their own.
 */
#include <assert.h>

#include "base/bytes.h"
#include "harness/sim/sim_impl.h"
#include "target/scsi/scsi.h"

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

void sim_raw_submit(struct path *base, struct path_command *raw)
{
	struct sim_path *path = sim_path_of(base);
	struct sim_command *command = NULL;

	assert(raw->cdb_bytes <= sizeof raw->cdb);
	if (path->phase == SIM_UP && path->raw_in_flight < PATH_COMMANDS_MAX)
		command = sim_command_new(path);
	if (!command) {
		sim_raw_append(&path->raw_refused_tail, raw);
		loop_task_queue(base->loop, &path->later);
		return;
	}
	command->raw = raw;
	raw->submit_ns = command->submit_ns;
	memcpy(command->cdb, raw->cdb, sizeof raw->cdb);
	if (raw->to_target)
		command->out_bytes = raw->data_bytes;
	else
		command->in_bytes = raw->data_bytes;
	command->own_iov = (struct iovec){raw->data, raw->data_bytes};
	command->iov = &command->own_iov;
	command->iov_count = 1;
	path->raw_in_flight++;
	sim_command_send(path, command);
}

static void take_result(struct path_command *raw, const struct sim_answer *answer)
{
	raw->scsi_status = answer->status;
	raw->sense_key = raw->asc = raw->ascq = 0;
	raw->got_bytes = 0;
	if (answer->status == SCSI_CHECK_CONDITION) {
		raw->result = PATH_SENSE;
		raw->sense_key = answer->sense[2] & 0x0f;
		raw->asc = answer->sense[12];
		raw->ascq = answer->sense[13];
		return;
	}
	raw->result = answer->status == SCSI_GOOD ? PATH_OK : PATH_STATUS;
	if (raw->result == PATH_OK && !raw->to_target)
		raw->got_bytes = raw->data_bytes - MIN_OF(answer->missing_bytes, raw->data_bytes);
}

void sim_raw_answered(struct sim_path *path, struct sim_command *command,
		      const struct sim_answer *answer)
{
	struct path_command *raw = command->raw;

	take_result(raw, answer);
	sim_command_free(path, command);
	assert(path->raw_in_flight > 0);
	path->raw_in_flight--;
	raw->done(raw);
}
