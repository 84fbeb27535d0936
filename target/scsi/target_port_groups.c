/* SPDX-License-Identifier: MIT
 *
 * REPORT TARGET PORT GROUPS (SPC-4 6.37) and SET TARGET PORT GROUPS (6.45).
 */
#include "target/scsi/internal.h"

enum {
	GROUP_HEADER_BYTES = 8,
	GROUP_PORT_BYTES = 4,
	GROUP_PORTS_MAX = 255, /* an 8-bit count */
	REPORT_BYTES = 8 + ALUA_GROUPS_MAX * GROUP_HEADER_BYTES + ALUA_PORTS_MAX * GROUP_PORT_BYTES,
	SET_DESCRIPTOR_BYTES = 4,
	SET_HEADER_BYTES = 4,
	SET_LIST_MAX_BYTES = SET_HEADER_BYTES + SET_DESCRIPTOR_BYTES * 4 * ALUA_GROUPS_MAX,
};

enum report_format { FORMAT_LENGTH_ONLY, FORMAT_EXTENDED };

static unsigned put_group(const struct scsi_lu *lu, unsigned index, uint8_t *out)
{
	const struct alua_device *alua = &lu->device->alua;
	const struct alua_group *group = &lu->alua.group[index];
	uint16_t id = alua->group[index];
	unsigned bytes = GROUP_HEADER_BYTES;

	memset(out, 0, GROUP_HEADER_BYTES);
	out[0] = (uint8_t)((id == lu->alua.owner ? 0x80 : 0) | group->state); /* PREF */
	out[1] = 0x80 | 0x40 | 0x08 | 0x04 | 0x02 | 0x01; /* all but LBA dependent */
	put_be16(out + 2, id);
	out[5] = group->status;
	for (unsigned i = 0; i < alua->port_count && out[7] < GROUP_PORTS_MAX; i++) {
		if (alua->port[i].group != id)
			continue;
		put_be16(out + bytes, 0);
		put_be16(out + bytes + 2, alua->port[i].relative);
		bytes += GROUP_PORT_BYTES;
		out[7]++;
	}
	return bytes;
}

static void report_execute(struct scsi_task *task)
{
	uint8_t data[REPORT_BYTES] = {0};
	unsigned format = task->cdb[1] >> 5;
	unsigned bytes = 4;

	if (format > FORMAT_EXTENDED) {
		scsi_task_fail(task, SENSE_INVALID_FIELD_IN_CDB);
		return;
	}
	if (format == FORMAT_EXTENDED) {
		data[4] = FORMAT_EXTENDED << 4;
		data[5] = ALUA_TRANSITION_S;
		bytes += 4;
	}
	for (unsigned i = 0; i < task->lu->device->alua.group_count; i++)
		bytes += put_group(task->lu, i, data + bytes);
	put_be32(data, bytes - 4);
	scsi_task_reply(task, data, bytes, get_be32(task->cdb + 6));
}

static enum scsi_prepared set_prepare(struct scsi_task *task)
{
	task->out_bytes = get_be32(task->cdb + 6);
	if (task->out_bytes > SET_LIST_MAX_BYTES)
		return scsi_sense_fail(task, SENSE_PARAMETER_LIST_LENGTH);
	task->transfer_bytes = task->out_bytes;
	return task->out_bytes > 0 ? SCSI_NEEDS_DATA : SCSI_READY;
}

/* Offline is for an operator, transitioning for nobody. */
static bool may_be_asked(unsigned state)
{
	return state <= ALUA_UNAVAILABLE;
}

static uint32_t list_check(const struct scsi_lu *lu, const uint8_t *list, unsigned bytes)
{
	if (bytes < SET_HEADER_BYTES || bytes % SET_DESCRIPTOR_BYTES != 0)
		return SENSE_PARAMETER_LIST_LENGTH;
	for (unsigned at = SET_HEADER_BYTES; at < bytes; at += SET_DESCRIPTOR_BYTES) {
		int index = scsi_alua_index(lu->device, get_be16(list + at + 2));

		if (index < 0 || !may_be_asked(list[at] & 0x0f))
			return SENSE_INVALID_FIELD_IN_LIST;
		if (!may_be_asked(lu->alua.group[index].state))
			return SENSE_SET_GROUPS_FAILED;
	}
	return SENSE_NONE;
}

/* The logical unit moves to the controller of group INDEX: where it was optimized and nothing was
 * asked for, access becomes non-optimized. */
static void take_over(struct scsi_task *task, unsigned index, const bool *named)
{
	struct scsi_lu *lu = task->lu;

	for (unsigned i = 0; i < lu->device->alua.group_count; i++) {
		if (i != index && !named[i] && lu->alua.group[i].state == ALUA_OPTIMIZED)
			scsi_alua_put(lu, i, ALUA_NON_OPTIMIZED, ALUA_STATUS_IMPLICIT, task->nexus);
	}
}

static void set_execute(struct scsi_task *task)
{
	uint32_t bytes = MIN_OF(task->out_bytes, task->out_got_bytes);
	uint8_t list[SET_LIST_MAX_BYTES];
	bool named[ALUA_GROUPS_MAX] = {false};
	uint32_t code;

	if (task->out_bytes == 0) {
		scsi_task_end(task);
		return;
	}
	iov_to_mem(task->out_iov, task->out_iov_count, 0, list, bytes);
	code = list_check(task->lu, list, bytes);
	if (code != SENSE_NONE) {
		scsi_task_fail(task, code);
		return;
	}
	for (unsigned at = SET_HEADER_BYTES; at < bytes; at += SET_DESCRIPTOR_BYTES)
		named[scsi_alua_index(task->lu->device, get_be16(list + at + 2))] = true;
	for (unsigned at = SET_HEADER_BYTES; at < bytes; at += SET_DESCRIPTOR_BYTES) {
		int index = scsi_alua_index(task->lu->device, get_be16(list + at + 2));
		enum alua_state state = list[at] & 0x0f;

		scsi_alua_put(task->lu, (unsigned)index, state, ALUA_STATUS_EXPLICIT, task->nexus);
		if (task->lu->alua.owner != 0 && state == ALUA_OPTIMIZED)
			take_over(task, (unsigned)index, named);
	}
	scsi_task_end(task);
}

const struct scsi_command scsi_port_group_commands[] = {
    {.opcode = 0xa3,
     .service_action = 0x0a,
     .cdb_bytes = 12,
     .access = SCSI_ACCESS_FREE,
     .name = "REPORT TARGET PORT GROUPS",
     .usage = {0xa3, 0xea, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .execute = report_execute},
    {.opcode = 0xa4,
     .service_action = 0x0a,
     .cdb_bytes = 12,
     .name = "SET TARGET PORT GROUPS",
     .usage = {0xa4, 0x0a, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x04},
     .prepare = set_prepare,
     .execute = set_execute},
    {0},
};
