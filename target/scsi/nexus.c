/* SPDX-License-Identifier: MIT
 *
 * I_T nexuses and their unit attentions: one queue per logical unit, each condition in it at most
 * once, reported in the order of arrival and gone when reported.
 *
 * A new nexus finds POWER ON, RESET, OR BUS DEVICE RESET OCCURRED (29/00) on every logical unit.
 * That is how arrays tell an initiator that state kept for an earlier session is gone; initiators
 * meet it with a TEST UNIT READY after login, and tools test for exactly 29/00.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/scsi/internal.h"

struct scsi_nexus *scsi_nexus_new(struct scsi_target *target, const char *initiator_name,
				  const uint8_t isid[6], uint16_t target_port_group,
				  uint16_t relative_port)
{
	int alua_index = scsi_port_add(target->device, target_port_group, relative_port);
	struct scsi_nexus *nexus = alua_index >= 0 ? calloc(1, sizeof *nexus) : NULL;

	if (!nexus)
		return NULL;
	nexus->alua_index = (uint8_t)alua_index;
	TAILQ_INIT(&nexus->copy_records);
	nexus->target = target;
	snprintf(nexus->initiator_name, sizeof nexus->initiator_name, "%s", initiator_name);
	memcpy(nexus->isid, isid, sizeof nexus->isid);
	nexus->target_port_group = target_port_group;
	nexus->relative_port = relative_port;
	nexus->reservation_hash = pr_hash(nexus->initiator_name, isid, relative_port);
	for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
		if (target->luns[i])
			scsi_ua_add(nexus, i, SENSE_UA_POWER_ON);
	}
	TAILQ_INSERT_TAIL(&target->nexuses, nexus, entry);
	return nexus;
}

struct scsi_nexus *scsi_nexus_free(struct scsi_nexus *nexus)
{
	if (!nexus)
		return NULL;
	assert(nexus->task_count == 0);
	scsi_reserve_forget_nexus(nexus);
	scsi_copy_records_end(nexus);
	TAILQ_REMOVE(&nexus->target->nexuses, nexus, entry);
	free(nexus);
	return NULL;
}

void scsi_nexus_hide(struct scsi_nexus *nexus, unsigned lun)
{
	assert(lun < SCSI_MAX_LUNS);
	nexus->hidden[lun / 8] |= (uint8_t)(1U << lun % 8);
}

static uint32_t ua_code(const struct ua_queue *queue, unsigned index)
{
	return (uint32_t)SENSE_KEY_UNIT_ATTENTION << 16 | queue->code[index];
}

void scsi_ua_add(struct scsi_nexus *nexus, unsigned lun, uint32_t code)
{
	struct ua_queue *queue = &nexus->ua[lun];

	assert(code >> 16 == SENSE_KEY_UNIT_ATTENTION);
	for (unsigned i = 0; i < queue->count; i++) {
		if (ua_code(queue, i) == code)
			return;
	}
	if (queue->count == SCSI_UA_MAX) {
		/* 29/00 tells the initiator to expect anything: it stands for all of them. */
		queue->count = 0;
		code = SENSE_UA_POWER_ON;
	}
	queue->code[queue->count++] = (uint16_t)code;
}

static void ua_remove_at(struct ua_queue *queue, unsigned index)
{
	queue->count--;
	memmove(&queue->code[index], &queue->code[index + 1],
		(queue->count - index) * sizeof queue->code[0]);
}

uint32_t scsi_ua_take(struct scsi_nexus *nexus, unsigned lun)
{
	struct ua_queue *queue = &nexus->ua[lun];
	uint32_t code;

	if (queue->count == 0)
		return SENSE_NONE;
	code = ua_code(queue, 0);
	ua_remove_at(queue, 0);
	return code;
}

uint32_t scsi_ua_take_reset(struct scsi_nexus *nexus, unsigned lun)
{
	struct ua_queue *queue = &nexus->ua[lun];

	for (unsigned i = 0; i < queue->count; i++) {
		uint32_t code = ua_code(queue, i);

		if ((code >> 8 & 0xff) == 0x29) {
			ua_remove_at(queue, i);
			return code;
		}
	}
	return SENSE_NONE;
}

void scsi_ua_drop(struct scsi_nexus *nexus, uint32_t code)
{
	for (unsigned lun = 0; lun < SCSI_MAX_LUNS; lun++) {
		struct ua_queue *queue = &nexus->ua[lun];

		for (unsigned i = 0; i < queue->count; i++) {
			if (ua_code(queue, i) == code) {
				ua_remove_at(queue, i);
				break;
			}
		}
	}
}

static void ua_add_where(struct scsi_nexus *nexus, const struct scsi_lu *lu, uint32_t code)
{
	for (unsigned i = 0; i < SCSI_MAX_LUNS; i++) {
		if (nexus->target->luns[i] == lu)
			scsi_ua_add(nexus, i, code);
	}
}

void scsi_ua_broadcast(struct scsi_lu *lu, const struct scsi_nexus *except, uint32_t code)
{
	struct scsi_target *target;
	struct scsi_nexus *nexus;

	for (target = TAILQ_FIRST(&lu->device->targets); target;
	     target = TAILQ_NEXT(target, entry)) {
		for (nexus = TAILQ_FIRST(&target->nexuses); nexus;
		     nexus = TAILQ_NEXT(nexus, entry)) {
			if (nexus != except)
				ua_add_where(nexus, lu, code);
		}
	}
}
