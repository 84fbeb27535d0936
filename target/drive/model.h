/* SPDX-License-Identifier: MIT
 *
 * What the drive needs of its service-time layer beyond drive_model_open; private to the room.
 */
#ifndef SANLAB_TARGET_DRIVE_MODEL_H
#define SANLAB_TARGET_DRIVE_MODEL_H

#include "target/drive/drive.h"

/* Modelled service time is added to *BUSY_NS from now on. */
void drive_model_count_busy(struct io_layer *layer, uint64_t *busy_ns);
/* Serves what waits at once and passes later requests straight through. */
void drive_model_drain(struct io_layer *layer);
/* Service time of a request that begins at OFFSET while the head stands at HEAD on a drive of
 * SIZE bytes. */
uint64_t drive_service_ns(const struct drive_model *model, uint64_t size_bytes, uint64_t head_bytes,
			  const struct io *io);

#endif
