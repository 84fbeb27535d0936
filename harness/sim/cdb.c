/* SPDX-License-Identifier: MIT
 *
 * A path_io as a CDB, and the target's answer as a path_io's result.
 */
#include "base/bytes.h"
#include "harness/sim/sim_impl.h"
#include "target/scsi/scsi.h"

enum {
	OP_UNMAP = 0x42,
	OP_READ16 = 0x88,
	OP_WRITE16 = 0x8a,
	OP_SYNCHRONIZE_CACHE16 = 0x91,
	CDB_FUA = 1 << 3,
	KEY_ABORTED = 0x0b,
	ASC_DATA_PHASE_ERROR = 0x4b,
};

uint32_t sim_data_bytes(const struct path *path, const struct path_io *pio)
{
	if (pio->op != IO_READ && pio->op != IO_WRITE)
		return 0;
	return pio->blocks * path->identity.block_bytes;
}

static void put_range(uint8_t *cdb, uint8_t opcode, const struct path_io *pio)
{
	cdb[0] = opcode;
	put_be64(cdb + 2, pio->lba);
	put_be32(cdb + 10, pio->blocks);
}

void sim_cdb_build(struct sim_command *command, const struct path *path)
{
	const struct path_io *pio = command->pio;
	uint8_t *cdb = command->cdb;
	uint32_t bytes = sim_data_bytes(path, pio);

	command->iov = pio->iov;
	command->iov_count = pio->iov_count;
	switch (pio->op) {
	case IO_READ:
		put_range(cdb, OP_READ16, pio);
		command->in_bytes = bytes;
		break;
	case IO_WRITE:
		put_range(cdb, OP_WRITE16, pio);
		if (pio->flags & IO_FUA)
			cdb[1] = CDB_FUA;
		command->out_bytes = bytes;
		break;
	case IO_FLUSH:
		put_range(cdb, OP_SYNCHRONIZE_CACHE16, pio);
		break;
	case IO_UNMAP:
		cdb[0] = OP_UNMAP;
		put_be16(cdb + 7, SIM_UNMAP_LIST_BYTES);
		memset(command->unmap, 0, sizeof command->unmap);
		put_be16(command->unmap, SIM_UNMAP_LIST_BYTES - 2);
		put_be16(command->unmap + 2, SIM_UNMAP_LIST_BYTES - 8);
		put_be64(command->unmap + 8, pio->lba);
		put_be32(command->unmap + 16, pio->blocks);
		command->out_bytes = SIM_UNMAP_LIST_BYTES;
		command->own_iov = (struct iovec){command->unmap, SIM_UNMAP_LIST_BYTES};
		command->iov = &command->own_iov;
		command->iov_count = 1;
		break;
	}
}

static void take_sense(struct path_io *pio, uint8_t key, uint8_t asc, uint8_t ascq)
{
	pio->result = PATH_SENSE;
	pio->sense_key = key;
	pio->asc = asc;
	pio->ascq = ascq;
}

void sim_result_take(struct path_io *pio, const struct sim_answer *answer)
{
	pio->scsi_status = answer->status;
	pio->sense_key = pio->asc = pio->ascq = 0;
	switch (answer->status) {
	case SCSI_GOOD:
		pio->result = PATH_OK;
		/* GOOD for less than was asked is no success. */
		if (answer->missing_bytes > 0 && (pio->op == IO_READ || pio->op == IO_WRITE))
			take_sense(pio, KEY_ABORTED, ASC_DATA_PHASE_ERROR, 0);
		break;
	case SCSI_CHECK_CONDITION:
		take_sense(pio, answer->sense[2] & 0x0f, answer->sense[12], answer->sense[13]);
		break;
	default:
		pio->result = PATH_STATUS;
		break;
	}
}
