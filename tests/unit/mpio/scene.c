/* SPDX-License-Identifier: MIT
 *
 * What the tests of fencing share.
 */
#include "scene.h"

#include "base/bytes.h"

static void on_track(void *arg, const struct mpio_track *track)
{
	struct scene *scene = arg;

	assert_true(scene->count < TRACKS);
	scene->tracks[scene->count++] = *track;
}

const struct mpio_track *milestone(const struct scene *scene, enum mpio_milestone which)
{
	for (unsigned i = 0; i < scene->count; i++)
		if (scene->tracks[i].milestone == which)
			return &scene->tracks[i];
	return NULL;
}

/* Every path's lost writes arrive within TRAVEL and are executed within LINGER.  With APART each
 * path has a portal group of its own. */
void open_scene(struct scene *scene, const struct mpio_config *config, unsigned paths, bool apart,
		uint64_t travel_ns, uint64_t linger_ns)
{
	struct mpio_config with_retries = {.max_retries = 30, .no_path_ns = 20 * NS_PER_S};

	if (config) {
		with_retries = *config;
		with_retries.max_retries = 30;
	}
	scene->count = 0;
	rig_open(&scene->rig, &with_retries, paths, 1);
	mpio_on_track(scene->rig.mpio, on_track, scene);
	for (unsigned i = 0; i < paths; i++) {
		struct fake_path *fake = scene->rig.fakes[i];

		fake->identity.portal_group = apart ? (int)i : 0;
		fake->ghosts = true;
		fake->travel_ns = travel_ns;
		fake->linger_ns = linger_ns;
	}
	rig_start(&scene->rig);
}

struct rig_io *submit(struct rig *rig, enum io_op op, uint64_t block, uint64_t blocks, uint8_t fill)
{
	struct rig_io *rio = rig_io_new(rig, op, block, blocks, fill);

	io_submit(rig->layer, &rio->io);
	return rio;
}

void expect(struct rig_io *rio, int status)
{
	assert_int_equal(rio->done, 1);
	assert_int_equal(rio->io.status, status);
	rig_io_free(rio);
}

uint8_t content(const struct rig *rig, uint64_t block)
{
	return rig->disk.data[block * FAKE_BLOCK_BYTES];
}

/* The next write, of 8 blocks at 100, is lost with path PATH; others of it with it. */
struct rig_io *lose_a_write(struct rig *rig, unsigned path, uint8_t fill)
{
	struct rig_io *rio;

	rig->fakes[path]->hold = true;
	rio = submit(rig, IO_WRITE, 100, 8, fill);
	assert_int_equal(rig->fakes[path]->path.in_flight, 1);
	fake_path_kill(rig->fakes[path], "silence");
	rig->fakes[path]->hold = false;
	return rio;
}
