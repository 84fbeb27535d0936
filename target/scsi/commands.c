/* SPDX-License-Identifier: MIT
 *
 * The one command table: the families, and the index that finds a row by opcode and service
 * action.
 */
#include "target/scsi/internal.h"

static const struct scsi_command *const families[] = {
    scsi_readwrite_commands, scsi_basic_commands, scsi_inquiry_commands, scsi_capacity_commands,
    scsi_mode_commands,	     scsi_unmap_commands, scsi_verify_commands,
};

void scsi_commands_index(struct scsi_device *device)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		for (const struct scsi_command *row = families[i]; row->name; row++) {
			if (!device->by_opcode[row->opcode])
				device->by_opcode[row->opcode] = row;
		}
	}
}

/* Rows of one opcode may stand in several families, each with its own service action. */
static const struct scsi_command *find_service_action(uint8_t opcode, int service_action)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		for (const struct scsi_command *row = families[i]; row->name; row++) {
			if (row->opcode == opcode && row->service_action == service_action)
				return row;
		}
	}
	return NULL;
}

const struct scsi_command *scsi_commands_find(const struct scsi_device *device, const uint8_t *cdb)
{
	const struct scsi_command *row = device->by_opcode[cdb[0]];

	if (!row || row->service_action < 0)
		return row;
	return find_service_action(cdb[0], cdb[1] & 0x1f);
}
