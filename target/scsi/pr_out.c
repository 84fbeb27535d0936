/* SPDX-License-Identifier: MIT
 *
 * PERSISTENT RESERVE OUT (SPC-4 6.16): parameter list in, change of state, and what follows from
 * it: durability, unit attentions, aborted commands.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "target/scsi/internal.h"
#include "target/scsi/pr_persist.h"
#include "target/scsi/pr_transport_id.h"

enum {
	LIST_BYTES = 24,
	LIST_MAX_BYTES = 32 * 1024,
	LIST_MAX_INITIATORS = 256, /* initiator ports one command can name */
};

struct initiators {
	unsigned count;
	struct pr_initiator at[LIST_MAX_INITIATORS];
};

/* What parsing collects; too much for the stack. */
struct parsed {
	struct initiators initiators;
	uint16_t ports[ALUA_PORTS_MAX];
	struct pr_request request;
};

static enum scsi_prepared pr_out_prepare(struct scsi_task *task)
{
	uint32_t bytes = get_be32(task->cdb + 5);

	if (bytes < LIST_BYTES || bytes > LIST_MAX_BYTES)
		return scsi_sense_fail(task, SENSE_PARAMETER_LIST_LENGTH);
	task->out_bytes = bytes;
	task->transfer_bytes = bytes;
	return SCSI_NEEDS_DATA;
}

/* ---- initiator ports that a parameter list names ---- */

static uint32_t add_initiator(struct initiators *initiators, const struct pr_initiator *initiator)
{
	for (unsigned i = 0; i < initiators->count; i++) {
		const struct pr_initiator *other = &initiators->at[i];

		if (memcmp(other->isid, initiator->isid, PR_ISID_BYTES) == 0 &&
		    strcasecmp(other->name, initiator->name) == 0)
			return SENSE_NONE;
	}
	if (initiators->count == LIST_MAX_INITIATORS)
		return SENSE_INSUFFICIENT_REGISTRATION;
	initiators->at[initiators->count++] = *initiator;
	return SENSE_NONE;
}

static bool target_has_lu(const struct scsi_target *target, const struct scsi_lu *lu)
{
	for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
		if (target->luns[i] == lu)
			return true;
	}
	return false;
}

/* Format 00b names an initiator device: all its ports that are known here, logged in or
 * registered (SPC-4 7.6.4.6). */
static uint32_t add_known_ports(struct initiators *initiators, const struct scsi_lu *lu,
				const char *name)
{
	const struct pr_state *pr = lu->reservations.pr;
	const struct scsi_target *target;
	const struct scsi_nexus *nexus;
	struct pr_initiator initiator = {.name = ""};
	unsigned before = initiators->count;
	uint32_t code = SENSE_NONE;

	snprintf(initiator.name, sizeof initiator.name, "%s", name);
	for (target = TAILQ_FIRST(&lu->device->targets); target;
	     target = TAILQ_NEXT(target, entry)) {
		if (!target_has_lu(target, lu))
			continue;
		for (nexus = TAILQ_FIRST(&target->nexuses); nexus;
		     nexus = TAILQ_NEXT(nexus, entry)) {
			if (strcasecmp(nexus->initiator_name, name) != 0)
				continue;
			memcpy(initiator.isid, nexus->isid, PR_ISID_BYTES);
			code = code != SENSE_NONE ? code : add_initiator(initiators, &initiator);
		}
	}
	for (unsigned i = 0; code == SENSE_NONE && i < pr->count; i++) {
		if (strcasecmp(pr->registrations[i].initiator.name, name) == 0)
			code = add_initiator(initiators, &pr->registrations[i].initiator);
	}
	if (code == SENSE_NONE && initiators->count == before)
		code = SENSE_INVALID_FIELD_IN_LIST;
	return code;
}

static uint32_t parse_transport_ids(const struct scsi_lu *lu, const uint8_t *data, size_t bytes,
				    struct initiators *initiators)
{
	uint32_t code = SENSE_NONE;

	while (code == SENSE_NONE && bytes > 0) {
		struct pr_initiator initiator;
		bool is_device;
		size_t used;

		if (!pr_transport_id_get(data, bytes, &initiator, &is_device, &used))
			return SENSE_INVALID_FIELD_IN_LIST;
		code = is_device ? add_known_ports(initiators, lu, initiator.name)
				 : add_initiator(initiators, &initiator);
		data += used;
		bytes -= used;
	}
	return code;
}

/* ---- parameter lists ---- */

static uint32_t parse_basic(const struct scsi_lu *lu, const uint8_t *list, size_t bytes,
			    struct pr_request *request, struct initiators *initiators)
{
	request->specifies = list[20] & 0x08;
	request->all_ports = list[20] & 0x04;
	request->persists = list[20] & 0x01;
	if (!request->specifies)
		return bytes == LIST_BYTES ? SENSE_NONE : SENSE_PARAMETER_LIST_LENGTH;
	if (request->action != PR_REGISTER)
		return SENSE_INVALID_FIELD_IN_LIST;
	if (bytes < LIST_BYTES + 4 || get_be32(list + LIST_BYTES) != bytes - LIST_BYTES - 4)
		return SENSE_PARAMETER_LIST_LENGTH;
	return parse_transport_ids(lu, list + LIST_BYTES + 4, bytes - LIST_BYTES - 4, initiators);
}

static uint32_t parse_move(const struct scsi_lu *lu, const uint8_t *list, size_t bytes,
			   struct pr_request *request, struct initiators *initiators)
{
	uint32_t code;

	request->leaves = list[17] & 0x02;
	request->persists = list[17] & 0x01;
	request->move_to_port = get_be16(list + 18);
	if (get_be32(list + 20) != bytes - LIST_BYTES)
		return SENSE_PARAMETER_LIST_LENGTH;
	code = parse_transport_ids(lu, list + LIST_BYTES, bytes - LIST_BYTES, initiators);
	if (code == SENSE_NONE && initiators->count != 1)
		code = SENSE_INVALID_FIELD_IN_LIST;
	return code;
}

/* The target ports by number, each once. */
static unsigned collect_ports(const struct alua_device *alua, uint16_t *ret_ports)
{
	unsigned count = 0;

	for (unsigned i = 0; i < alua->port_count; i++) {
		unsigned j = 0;

		while (j < count && ret_ports[j] != alua->port[i].relative)
			j++;
		if (j == count)
			ret_ports[count++] = alua->port[i].relative;
	}
	return count;
}

static bool takes_aptpl(enum pr_action action)
{
	return action == PR_REGISTER || action == PR_REGISTER_AND_IGNORE ||
	       action == PR_REGISTER_AND_MOVE;
}

static uint32_t parse(const struct scsi_task *task, const uint8_t *list, size_t bytes,
		      struct parsed *parsed)
{
	struct initiators *initiators = &parsed->initiators;
	struct pr_request *request = &parsed->request;
	uint32_t code;

	*request = (struct pr_request){
	    .action = (enum pr_action)(task->cdb[1] & 0x1f),
	    .type = task->cdb[2] >> 4 ? UINT8_MAX : task->cdb[2] & 0x0f, /* scope: only the unit */
	    .key = get_be64(list),
	    .service_key = get_be64(list + 8),
	    .from = scsi_pr_nexus(task->nexus),
	    .ports = parsed->ports,
	    .port_count = collect_ports(&task->lu->device->alua, parsed->ports),
	    .initiators = initiators->at,
	};
	code = request->action == PR_REGISTER_AND_MOVE
		   ? parse_move(task->lu, list, bytes, request, initiators)
		   : parse_basic(task->lu, list, bytes, request, initiators);
	request->initiator_count = initiators->count;
	if (code == SENSE_NONE && request->persists && takes_aptpl(request->action) &&
	    !volume_state_dir(task->lu->volume))
		code = SENSE_INVALID_FIELD_IN_LIST;
	return code;
}

/* ---- the change ---- */

/* Also before a command that turns APTPL off ends: the file must not come back to life. */
static int make_durable(const struct scsi_lu *lu, const struct pr_state *next)
{
	const struct pr_file file = {volume_state_dir(lu->volume), volume_name(lu->volume),
				     volume_naa(lu->volume)};

	if (!next->persists && !lu->reservations.pr->persists)
		return 0;
	return pr_file_save(&file, next);
}

static void tell_nexus(const struct scsi_lu *lu, struct scsi_nexus *nexus, uint32_t code)
{
	for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
		if (nexus->target->luns[i] == lu)
			scsi_ua_add(nexus, i, code);
	}
}

static void tell_registration(const struct scsi_lu *lu, const struct pr_registration *registration)
{
	struct scsi_target *target;
	struct scsi_nexus *nexus;

	for (target = TAILQ_FIRST(&lu->device->targets); target;
	     target = TAILQ_NEXT(target, entry)) {
		for (nexus = TAILQ_FIRST(&target->nexuses); nexus;
		     nexus = TAILQ_NEXT(nexus, entry)) {
			const struct pr_nexus candidate = scsi_pr_nexus(nexus);

			if (pr_is_of(registration, &candidate))
				tell_nexus(lu, nexus, registration->attention);
		}
	}
}

/* NEXT becomes the state. */
static void adopt(struct scsi_lu *lu, struct pr_state *next)
{
	for (unsigned i = 0; i < next->count; i++) {
		if (next->registrations[i].attention != SENSE_NONE)
			tell_registration(lu, &next->registrations[i]);
	}
	pr_state_settle(next);
	pr_state_free(lu->reservations.pr);
	lu->reservations.pr = next;
	scsi_reservations_changed(lu);
}

static void end_with(struct scsi_task *task, uint32_t code)
{
	if (code == PR_CONFLICT)
		task->status = SCSI_RESERVATION_CONFLICT;
	else if (code != SENSE_NONE)
		scsi_sense_fail(task, code);
	scsi_task_end(task);
}

static void change(struct scsi_task *task, const struct pr_request *request)
{
	struct scsi_lu *lu = task->lu;
	struct pr_state *next = pr_state_copy(lu->reservations.pr);
	bool aborts = request->action == PR_PREEMPT_AND_ABORT;
	uint32_t code = next ? pr_apply(next, request) : SENSE_INSUFFICIENT_REGISTRATION;
	unsigned slot = 0;

	if (code == SENSE_NONE && aborts && scsi_preempt_begin(task, &slot)) {
		pr_state_free(next);
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	if (code == SENSE_NONE && make_durable(lu, next)) {
		if (aborts)
			scsi_preempt_cancel(lu, slot);
		code = SENSE_INTERNAL_FAILURE;
	}
	if (code != SENSE_NONE) {
		pr_state_free(next);
		end_with(task, code);
		return;
	}
	if (aborts)
		scsi_preempt_mark(lu, slot, next);
	adopt(lu, next);
	if (aborts)
		scsi_preempt_abort(lu, slot);
	else
		scsi_task_end(task);
}

static void pr_out_execute(struct scsi_task *task)
{
	struct parsed *parsed;
	uint32_t code;

	if (task->out_got_bytes < task->out_bytes) {
		scsi_task_fail(task, SENSE_PARAMETER_LIST_LENGTH);
		return;
	}
	parsed = malloc(sizeof *parsed);
	task->scratch = buf_new(task->lu->device->pool, task->out_bytes);
	if (!parsed || !task->scratch) {
		free(parsed);
		task->status = SCSI_BUSY;
		scsi_task_end(task);
		return;
	}
	parsed->initiators.count = 0;
	iov_to_mem(task->out_iov, task->out_iov_count, 0, task->scratch->data, task->out_bytes);
	code = parse(task, task->scratch->data, task->out_bytes, parsed);
	if (code != SENSE_NONE)
		end_with(task, code);
	else
		change(task, &parsed->request);
	free(parsed);
}

/* ---- restoring ---- */

int scsi_device_restore(struct scsi_device *device, struct err *err)
{
	struct scsi_lu *lu;

	for (lu = TAILQ_FIRST(&device->lus); lu; lu = TAILQ_NEXT(lu, entry)) {
		const struct pr_file file = {volume_state_dir(lu->volume), volume_name(lu->volume),
					     volume_naa(lu->volume)};
		int r = file.directory ? pr_file_load(&file, lu->reservations.pr, err) : 0;

		if (r)
			return r;
		scsi_reservations_changed(lu);
	}
	return 0;
}

#define ROW(action, title)                                                              \
	{                                                                               \
		.opcode = 0x5f, .service_action = (action), .cdb_bytes = 10,            \
		.access = SCSI_ACCESS_PR, .name = "PERSISTENT RESERVE OUT (" title ")", \
		.usage = {0x5f, (action), 0xff, [5] = 0xff, 0xff, 0xff, 0xff, 0x04},    \
		.prepare = pr_out_prepare, .execute = pr_out_execute                    \
	}

const struct scsi_command scsi_pr_out_commands[] = {
    ROW(PR_REGISTER, "REGISTER"),
    ROW(PR_RESERVE, "RESERVE"),
    ROW(PR_RELEASE, "RELEASE"),
    ROW(PR_CLEAR, "CLEAR"),
    ROW(PR_PREEMPT, "PREEMPT"),
    ROW(PR_PREEMPT_AND_ABORT, "PREEMPT AND ABORT"),
    ROW(PR_REGISTER_AND_IGNORE, "REGISTER AND IGNORE EXISTING KEY"),
    ROW(PR_REGISTER_AND_MOVE, "REGISTER AND MOVE"),
    {0},
};
