/* SPDX-License-Identifier: MIT
 *
 * A request to a layer that completes within submit, as stores do.
 */
#ifndef SANLAB_TARGET_DRIVE_INLINE_IO_H
#define SANLAB_TARGET_DRIVE_INLINE_IO_H

#include "base/io.h"

/* Submits IO, whose done and owner are used for this; its status. */
int io_submit_now(struct io_layer *layer, struct io *io);

#endif
