/* SPDX-License-Identifier: MIT
 *
 * A drive without moving parts: channels side by side.  Pure: (state, command, now) -> instant.
 *
 * A command is cut into pieces of SSD_PIECE_BYTES; each goes to the channel that is free first and
 * takes the operation's latency plus its bytes at the channel's rate.  The command ends with its
 * last piece.  So one small read costs latency, many use all channels, and a long one is spread.
 */
#ifndef SANLAB_TARGET_DRIVE_SSD_H
#define SANLAB_TARGET_DRIVE_SSD_H

#include "target/drive/command.h"

struct drive_model;

enum { SSD_CHANNELS_MAX = 32, SSD_PIECE_BYTES = 16 * 1024 };

struct ssd {
	const struct drive_model *model;
	uint64_t free_ns[SSD_CHANNELS_MAX];
};

void ssd_init(struct ssd *ssd, const struct drive_model *model);
/* Fills due_ns; returns the time the channels work for it, divided by their number. */
uint64_t ssd_start(struct ssd *ssd, struct drive_command *command, const struct drive_slow *slow);

#endif
