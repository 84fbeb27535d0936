/* SPDX-License-Identifier: MIT
 *
 * Channels of a drive without moving parts.
 */
#include "target/drive/ssd.h"

#include <assert.h>

#include "base/bytes.h"
#include "target/drive/drive.h"

void ssd_init(struct ssd *ssd, const struct drive_model *model)
{
	assert(model->channels > 0 && model->channels <= SSD_CHANNELS_MAX);
	assert(model->transfer_bytes_per_s > 0);
	*ssd = (struct ssd){.model = model};
}

static uint64_t *first_free(struct ssd *ssd)
{
	uint64_t *best = &ssd->free_ns[0];
	for (unsigned i = 1; i < ssd->model->channels; i++)
		if (ssd->free_ns[i] < *best)
			best = &ssd->free_ns[i];
	return best;
}

uint64_t ssd_start(struct ssd *ssd, struct drive_command *command, const struct drive_slow *slow)
{
	const struct drive_model *model = ssd->model;
	uint64_t latency_ns =
	    command->op == IO_WRITE ? model->write_latency_ns : model->read_latency_ns;
	uint64_t busy_ns = 0;
	struct drive_slow piece_slow = {.factor = slow->factor};

	command->due_ns = command->ready_ns;
	command->times.start_ns = UINT64_MAX;
	for (uint64_t left = command->length_bytes; left > 0;) {
		uint64_t bytes = MIN_OF(left, (uint64_t)SSD_PIECE_BYTES);
		uint64_t *free_ns = first_free(ssd);
		uint64_t start_ns = MAX_OF(*free_ns, command->ready_ns);
		uint64_t service_ns = latency_ns + (uint64_t)((double)bytes * 1e9 /
							      (double)model->transfer_bytes_per_s);
		service_ns = drive_slowed_ns(&piece_slow, service_ns);
		*free_ns = start_ns + service_ns;
		busy_ns += service_ns;
		command->times.start_ns = MIN_OF(command->times.start_ns, start_ns);
		command->due_ns = MAX_OF(command->due_ns, *free_ns);
		left -= bytes;
	}
	command->due_ns += slow->extra_ns;
	command->times.transfer_ns =
	    command->due_ns - MIN_OF(command->times.start_ns, command->due_ns);
	return busy_ns / model->channels;
}
