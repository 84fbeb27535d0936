/* SPDX-License-Identifier: MIT
 *
 * What the drive, its tests and reports need of the service-time layer beyond drive_model_open;
 * private to the room.
 */
#ifndef SANLAB_TARGET_DRIVE_MODEL_H
#define SANLAB_TARGET_DRIVE_MODEL_H

#include "target/drive/command.h"
#include "target/drive/drive.h"

/* Where the modelled counters are kept from now on. */
void drive_model_count(struct io_layer *layer, struct drive_counters *counters);
/* Told of every command, with its modelled instants, just before it leaves. */
void drive_model_watch(struct io_layer *layer,
		       void (*watch)(void *arg, const struct drive_command *command), void *arg);
void drive_model_set_slow(struct io_layer *layer, const struct drive_slow *slow);
struct drive_slow drive_model_slow(const struct io_layer *layer);
/* Serves what waits at once and passes later requests straight through. */
void drive_model_drain(struct io_layer *layer);

#endif
