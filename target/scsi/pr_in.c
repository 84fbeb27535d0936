/* SPDX-License-Identifier: MIT
 *
 * PERSISTENT RESERVE IN (SPC-4 6.15): what is registered and reserved.
 */
#include "target/scsi/internal.h"
#include "target/scsi/pr_transport_id.h"

enum {
	PR_IN_HEADER_BYTES = 8,
	READ_RESERVATION_BYTES = 16,
	FULL_STATUS_BYTES = 24, /* and the TransportID */
	CAPABILITIES_BYTES = 8,
};

static void put_header(uint8_t *data, const struct pr_state *pr, uint32_t additional_bytes)
{
	put_be32(data, pr->generation);
	put_be32(data + 4, additional_bytes);
}

/* The reply is as long as there are registrations: built in a buffer of its own. */
static struct buf *reply_buf(struct scsi_task *task, size_t bytes)
{
	task->scratch = buf_new(task->lu->device->pool, bytes);
	if (!task->scratch) {
		task->status = SCSI_BUSY;
		scsi_task_end(task);
	}
	return task->scratch;
}

static uint32_t allocation_bytes(const struct scsi_task *task)
{
	return get_be16(task->cdb + 7);
}

static void read_keys_execute(struct scsi_task *task)
{
	const struct pr_state *pr = task->lu->reservations.pr;
	uint32_t bytes = pr->count * 8;
	struct buf *buf = reply_buf(task, PR_IN_HEADER_BYTES + bytes);

	if (!buf)
		return;
	put_header(buf->data, pr, bytes);
	for (unsigned i = 0; i < pr->count; i++)
		put_be64(buf->data + PR_IN_HEADER_BYTES + 8 * (size_t)i, pr->registrations[i].key);
	scsi_task_reply(task, buf->data, PR_IN_HEADER_BYTES + bytes, allocation_bytes(task));
}

static void read_reservation_execute(struct scsi_task *task)
{
	const struct pr_state *pr = task->lu->reservations.pr;
	uint8_t data[PR_IN_HEADER_BYTES + READ_RESERVATION_BYTES] = {0};
	uint32_t bytes = pr->type != PR_NONE ? READ_RESERVATION_BYTES : 0;

	put_header(data, pr, bytes);
	if (!pr_type_is_all_registrants(pr->type) && bytes > 0)
		put_be64(data + 8, pr->registrations[pr->holder].key);
	data[21] = pr->type; /* scope 0: the logical unit */
	scsi_task_reply(task, data, PR_IN_HEADER_BYTES + bytes, allocation_bytes(task));
}

static void report_capabilities_execute(struct scsi_task *task)
{
	uint8_t data[CAPABILITIES_BYTES] = {0};
	bool can_persist = volume_state_dir(task->lu->volume) != NULL;

	put_be16(data, CAPABILITIES_BYTES);
	data[2] = 0x10 | 0x08 | 0x04 | (can_persist ? 0x01 : 0x00); /* CRH, SIP_C, ATP_C, PTPL_C */
	/* TMV.  ALLOW COMMANDS 011b: TEST UNIT READY passes every type, MODE SENSE and its like
	 * pass the write exclusive ones. */
	data[3] = 0x80 | 0x30 | (task->lu->reservations.pr->persists ? 0x01 : 0x00); /* PTPL_A */
	data[4] = 0xea; /* WR_EX_AR, EX_AC_RO, WR_EX_RO, EX_AC, WR_EX */
	data[5] = 0x01; /* EX_AC_AR */
	scsi_task_reply(task, data, sizeof data, allocation_bytes(task));
}

static void read_full_status_execute(struct scsi_task *task)
{
	const struct pr_state *pr = task->lu->reservations.pr;
	struct buf *buf =
	    reply_buf(task, PR_IN_HEADER_BYTES + pr->count * (size_t)(FULL_STATUS_BYTES +
								      PR_TRANSPORT_ID_MAX_BYTES));
	uint32_t at = PR_IN_HEADER_BYTES;

	if (!buf)
		return;
	for (unsigned i = 0; i < pr->count; i++) {
		const struct pr_registration *registration = &pr->registrations[i];
		uint8_t *out = buf->data + at;
		unsigned bytes =
		    pr_transport_id_put(out + FULL_STATUS_BYTES, &registration->initiator);

		memset(out, 0, FULL_STATUS_BYTES);
		put_be64(out, registration->key);
		if (pr_is_holder(pr, i)) {
			out[12] = 0x01; /* R_HOLDER */
			out[13] = pr->type;
		}
		put_be16(out + 18, registration->port);
		put_be32(out + 20, bytes);
		at += FULL_STATUS_BYTES + bytes;
	}
	put_header(buf->data, pr, at - PR_IN_HEADER_BYTES);
	scsi_task_reply(task, buf->data, at, allocation_bytes(task));
}

#define ROW(action, title, exec)                                                     \
	{                                                                            \
		.opcode = 0x5e, .service_action = (action), .cdb_bytes = 10,         \
		.access = SCSI_ACCESS_PR, .name = (title),                           \
		.usage = {0x5e, (action), [7] = 0xff, 0xff, 0x04}, .execute = (exec) \
	}

const struct scsi_command scsi_pr_in_commands[] = {
    ROW(0, "PERSISTENT RESERVE IN (READ KEYS)", read_keys_execute),
    ROW(1, "PERSISTENT RESERVE IN (READ RESERVATION)", read_reservation_execute),
    ROW(2, "PERSISTENT RESERVE IN (REPORT CAPABILITIES)", report_capabilities_execute),
    ROW(3, "PERSISTENT RESERVE IN (READ FULL STATUS)", read_full_status_execute),
    {0},
};
