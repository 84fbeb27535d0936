/* SPDX-License-Identifier: MIT
 *
 * A device whose paths lose writes that may still come, and the milestones it tells.
 */
#ifndef SANLAB_TESTS_MPIO_SCENE_H
#define SANLAB_TESTS_MPIO_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "rig.h"

enum { MS = 1000 * 1000, TRACKS = 64 };

struct scene {
	struct rig rig;
	struct mpio_track tracks[TRACKS];
	unsigned count;
};

const struct mpio_track *milestone(const struct scene *scene, enum mpio_milestone which);
/* Every path's lost writes arrive within TRAVEL and are executed within LINGER.  With APART each
 * path has a portal group of its own. */
void open_scene(struct scene *scene, const struct mpio_config *config, unsigned paths, bool apart,
		uint64_t travel_ns, uint64_t linger_ns);
struct rig_io *submit(struct rig *rig, enum io_op op, uint64_t block, uint64_t blocks,
		      uint8_t fill);
void expect(struct rig_io *rio, int status);
uint8_t content(const struct rig *rig, uint64_t block);
/* The next write, of 8 blocks at 100, is lost with path PATH; others of it with it. */
struct rig_io *lose_a_write(struct rig *rig, unsigned path, uint8_t fill);

#endif
