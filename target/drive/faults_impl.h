/* SPDX-License-Identifier: MIT
 *
 * The drive's side of its faults; private to the room.
 */
#ifndef SANLAB_TARGET_DRIVE_FAULTS_IMPL_H
#define SANLAB_TARGET_DRIVE_FAULTS_IMPL_H

#include "target/drive/drive.h"

/* A request to the mechanism.  True: the faults keep it, or have ended it. */
bool drive_faults_take(struct drive *drive, struct io *io);
/* A request that ended with STATUS: the status it shows. */
int drive_faults_judge(struct drive *drive, const struct io *io, int status);
/* Ends what hangs, at once. */
void drive_faults_drain(struct drive *drive);
void drive_faults_free(struct drive *drive);

/* The drive's loop, and the request on its way past the faults. */
struct loop *drive_loop(const struct drive *drive);
void drive_go_on(struct drive *drive, struct io *io);

#endif
