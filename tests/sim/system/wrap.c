/* SPDX-License-Identifier: MIT
 *
 * Between MPIO and its simulated paths.
 */
#include "tests/sim/system/wrap.h"

#include <assert.h>

#include "base/bytes.h"

enum { WRAPS_MAX = 64, DOUBLE_DONE_ONE_IN = 100 };

const char *const mutant_names[] = {"none",	   "no-fence",	  "no-teardown", "early-fence",
				    "no-identity", "double-done", NULL};

/* One world at a time. */
static struct wrap *wraps[WRAPS_MAX];

static struct wrap *wrap_of(const struct path *path)
{
	for (unsigned i = 0; i < WRAPS_MAX; i++)
		if (wraps[i] && wraps[i]->path == path)
			return wraps[i];
	assert(!"a path without a wrap");
	return NULL;
}

static void end_refused(struct wrap *wrap)
{
	struct path_io *pio;

	while ((pio = wrap->refused)) {
		wrap->refused = pio->next;
		if (!wrap->refused)
			wrap->refused_tail = &wrap->refused;
		pio->done(pio);
	}
}

static void on_later(void *arg)
{
	struct wrap *wrap = arg;
	struct path_io *doubled = wrap->doubled;
	struct path_fence *fence;

	end_refused(wrap);
	wrap->doubled = NULL;
	if (doubled) {
		doubled->result = PATH_OK;
		doubled->done(doubled);
	}
	while ((fence = wrap->proved)) {
		wrap->proved = fence->next;
		fence->done(fence, 0);
	}
}

static void refuse(struct wrap *wrap, struct path_io *pio)
{
	static const struct path_io answers[] = {
	    {.result = PATH_STATUS, .scsi_status = 0x08}, /* BUSY */
	    {.result = PATH_STATUS, .scsi_status = 0x28}, /* TASK SET FULL */
	    {.result = PATH_STATUS, .scsi_status = 0x40}, /* TASK ABORTED */
	    {.result = PATH_SENSE, .sense_key = 0x6, .asc = 0x29, .ascq = 0x07},
	    {.result = PATH_SENSE, .sense_key = 0x6, .asc = 0x2a, .ascq = 0x01},
	    {.result = PATH_SENSE, .sense_key = 0x6, .asc = 0x2a, .ascq = 0x06},
	    {.result = PATH_SENSE, .sense_key = 0x6, .asc = 0x3f, .ascq = 0x0e},
	    {.result = PATH_SENSE, .sense_key = 0xb, .asc = 0x4b, .ascq = 0x00},
	    {.result = PATH_SENSE, .sense_key = 0x2, .asc = 0x04, .ascq = 0x01},
	    {.result = PATH_SENSE, .sense_key = 0x2, .asc = 0x04, .ascq = 0x0a},
	};
	const struct path_io *answer =
	    &answers[rng_below(&wrap->trouble->rng, ARRAY_SIZE(answers))];

	pio->result = answer->result;
	pio->scsi_status = answer->scsi_status ? answer->scsi_status : 0x02;
	pio->sense_key = answer->sense_key;
	pio->asc = answer->asc;
	pio->ascq = answer->ascq;
	pio->next = NULL;
	*wrap->refused_tail = pio;
	wrap->refused_tail = &pio->next;
	loop_task_queue(wrap->path->loop, &wrap->later);
}

static void wrap_submit(struct path *path, struct path_io *pio)
{
	struct wrap *wrap = wrap_of(path);
	struct wrap_trouble *trouble = wrap->trouble;

	if (trouble->share > 0 && rng_unit(&trouble->rng) < trouble->share) {
		refuse(wrap, pio);
		return;
	}
	if (wrap->mutant == WRAP_DOUBLE_DONE && rng_below(&trouble->rng, DOUBLE_DONE_ONE_IN) == 0) {
		wrap->doubled = pio;
		loop_task_queue(path->loop, &wrap->later);
	}
	wrap->ops->submit(path, pio);
}

static int wrap_connect(struct path *path)
{
	struct wrap *wrap = wrap_of(path);

	if (wrap->mutant == WRAP_NO_TEARDOWN)
		path->config.isid_qualifier += 1000;
	return wrap->ops->connect(path);
}

static int prove(struct wrap *wrap, struct path_fence *fence)
{
	fence->next = wrap->proved;
	wrap->proved = fence;
	loop_task_queue(wrap->path->loop, &wrap->later);
	return 0;
}

static int wrap_fence(struct path *path, const struct path *victim, struct path_fence *fence)
{
	struct wrap *wrap = wrap_of(path);

	if (wrap->mutant == WRAP_EARLY_FENCE || wrap->mutant == WRAP_NO_TEARDOWN)
		return prove(wrap, fence);
	return wrap->ops->fence(path, victim, fence);
}

static int wrap_reset_unit(struct path *path, struct path_fence *fence)
{
	struct wrap *wrap = wrap_of(path);

	if (wrap->mutant == WRAP_EARLY_FENCE)
		return prove(wrap, fence);
	return wrap->ops->reset_unit(path, fence);
}

static void wrap_command(struct path *path, struct path_command *command)
{
	wrap_of(path)->ops->command(path, command);
}

static void wrap_disconnect(struct path *path)
{
	struct wrap *wrap = wrap_of(path);

	end_refused(wrap);
	wrap->ops->disconnect(path);
}

static void wrap_free(struct path *path)
{
	struct wrap *wrap = wrap_of(path);

	end_refused(wrap);
	loop_task_cancel(path->loop, &wrap->later);
	for (unsigned i = 0; i < WRAPS_MAX; i++)
		if (wraps[i] == wrap)
			wraps[i] = NULL;
	wrap->path = NULL;
	wrap->ops->free(path);
}

static void on_event(void *arg, struct path *path, enum path_event event, const char *why)
{
	struct wrap *wrap = arg;

	if (event == PATH_EVENT_DOWN)
		end_refused(wrap); /* everything has ended before that */
	if (event == PATH_EVENT_UP && wrap->mutant == WRAP_NO_IDENTITY) {
		if (!wrap->identified)
			wrap->identity = path->identity;
		wrap->identified = true;
		path->identity = wrap->identity;
	}
	wrap->event(wrap->arg, path, event, why);
}

void wrap_begin(struct wrap *wrap, struct path *path, enum wrap_mutant mutant,
		struct wrap_trouble *trouble)
{
	static const struct path_ops ops = {
	    .name = "wrap",
	    .connect = wrap_connect,
	    .submit = wrap_submit,
	    .command = wrap_command,
	    .fence = wrap_fence,
	    .reset_unit = wrap_reset_unit,
	    .disconnect = wrap_disconnect,
	    .free = wrap_free,
	};
	unsigned i = 0;

	*wrap = (struct wrap){.path = path, .ops = path->ops, .mutant = mutant, .trouble = trouble};
	wrap->refused_tail = &wrap->refused;
	loop_task_init(&wrap->later, on_later, wrap);
	while (wraps[i])
		i++;
	assert(i < WRAPS_MAX);
	wraps[i] = wrap;
	path->ops = &ops;
}

void wrap_events(struct wrap *wrap)
{
	struct path_config *config = &wrap->path->config;

	wrap->event = config->event;
	wrap->arg = config->arg;
	config->event = on_event;
	config->arg = wrap;
}
