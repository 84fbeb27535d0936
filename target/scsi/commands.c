/* SPDX-License-Identifier: MIT
 *
 * The one command table: the families, and the index that finds a row by opcode and service
 * action.
 */
#include "target/scsi/internal.h"

static const struct scsi_command *const families[] = {
    scsi_compare_write_commands, scsi_defect_commands,	     scsi_lba_status_commands,
    scsi_medium_commands,	 scsi_orwrite_commands,	     scsi_prefetch_commands,
    scsi_format_commands,	 scsi_diagnostic_commands,   scsi_sanitize_commands,
    scsi_write_atomic_commands,	 scsi_write_same_commands,   scsi_write_verify_commands,
    scsi_readwrite_commands,	 scsi_basic_commands,	     scsi_inquiry_commands,
    scsi_capacity_commands,	 scsi_mode_commands,	     scsi_unmap_commands,
    scsi_verify_commands,	 scsi_mode_select_commands,  scsi_log_commands,
    scsi_opcode_commands,	 scsi_port_group_commands,   scsi_referral_commands,
    scsi_extended_copy_commands, scsi_receive_copy_commands, scsi_pr_in_commands,
    scsi_pr_out_commands,	 scsi_reserve_commands,
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

const struct scsi_command *scsi_commands_row(unsigned index)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		for (const struct scsi_command *row = families[i]; row->name; row++) {
			if (index-- == 0)
				return row;
		}
	}
	return NULL;
}

bool scsi_command_present(const struct scsi_command *command, const struct scsi_lu *lu)
{
	if ((command->flags & SCSI_CMD_THIN) && !(lu && volume_is_thin(lu->volume)))
		return false;
	return !(command->flags & SCSI_CMD_REMOVABLE) || (lu && volume_is_removable(lu->volume));
}
