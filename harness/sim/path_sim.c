/* SPDX-License-Identifier: MIT
 *
 * The `sim` kind of path: life from path_new_sim to path_free, I/O, keep-alive, and the end of a
 * session.  What may call the owner never runs within a call of the owner's.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/text.h"
#include "harness/sim/sim_impl.h"

static void destroy(struct sim_guard *guard)
{
	struct sim_path *path = container_of(guard, struct sim_path, guard);
	struct loop *loop = path->path.loop;

	loop_task_cancel(loop, &path->later);
	loop_timer_cancel(loop, &path->tick);
	loop_timer_cancel(loop, &path->pause);
	sim_link_unref(path->link);
	free(path->commands);
	free(path);
}

static void event(struct sim_path *path, enum path_event what, const char *why)
{
	if (!path->guard.free_wanted && path->path.config.event)
		path->path.config.event(path->path.config.arg, &path->path, what, why);
}

static void append(struct path_io ***tail, struct path_io *pio)
{
	pio->next = NULL;
	**tail = pio;
	*tail = &pio->next;
}

/* ---- the end of I/O ---- */

static void end_refused(struct sim_path *path)
{
	struct path_io *pio = path->refused;

	/* One round: what is refused from within done waits for the next. */
	path->refused = NULL;
	path->refused_tail = &path->refused;
	while (pio) {
		struct path_io *next = pio->next;

		pio->result = PATH_NOT_SENT;
		pio->done(pio);
		pio = next;
	}
	sim_raw_end(&path->raw_refused, &path->raw_refused_tail, PATH_NOT_SENT);
}

static void account_end(struct sim_path *path, const struct path_io *pio)
{
	assert(path->path.in_flight > 0);
	path->path.in_flight--;
	path->path.in_flight_bytes -= sim_data_bytes(&path->path, pio);
}

/* Nothing of the session that is over will be heard of any more. */
static void abandon_session(struct sim_path *path)
{
	struct sim_command *command;

	path->path.up = false;
	loop_timer_cancel(path->path.loop, &path->tick);
	loop_timer_cancel(path->path.loop, &path->pause);
	while ((command = TAILQ_FIRST(&path->active))) {
		if (command->pio)
			append(&path->lost_tail, command->pio);
		else if (command->raw)
			sim_raw_append(&path->raw_lost_tail, command->raw);
		sim_command_free(path, command);
	}
	path->raw_in_flight = 0;
	sim_functions_lost(path);
}

static void end_lost(struct sim_path *path)
{
	struct path_io *pio;

	while ((pio = path->lost)) {
		path->lost = pio->next;
		if (!path->lost)
			path->lost_tail = &path->lost;
		account_end(path, pio);
		pio->result = PATH_LOST;
		pio->done(pio);
	}
	sim_raw_end(&path->raw_lost, &path->raw_lost_tail, PATH_LOST);
}

static void on_later(void *arg)
{
	struct sim_path *path = arg;

	sim_enter(&path->guard);
	end_refused(path);
	end_lost(path);
	if (path->phase == SIM_LOST) { /* not disconnected meanwhile */
		char why[sizeof path->why];

		memcpy(why, path->why, sizeof why);
		path->phase = SIM_DOWN;
		path->path.lost_by = path->by;
		event(path, PATH_EVENT_DOWN, why);
	}
	sim_leave(&path->guard);
}

void sim_path_lose(struct sim_path *path, enum path_detect by, const char *format, ...)
{
	va_list args;

	if (path->phase == SIM_DOWN || path->phase == SIM_LOST)
		return;
	va_start(args, format);
	vsnprintf(path->why, sizeof path->why, format, args);
	va_end(args);
	path->by = by;
	path->phase = SIM_LOST;
	sim_conn_close(&path->conn);
	abandon_session(path);
	loop_task_queue(path->path.loop, &path->later);
}

/* ---- keep-alive and deadlines ---- */

static uint64_t oldest_submit_ns(const struct sim_path *path)
{
	const struct sim_command *oldest = TAILQ_FIRST(&path->active);

	/* With nothing in flight the next I/O begins now at the earliest. */
	return oldest ? oldest->submit_ns : loop_now_ns(path->path.loop);
}

static void set_tick(struct sim_path *path)
{
	const struct path_config *config = &path->path.config;
	uint64_t keepalive_due = path->path.heard_ns + config->keepalive_ns * (path->pings + 1);
	uint64_t answer_due = oldest_submit_ns(path) + config->io_timeout_ns;

	loop_timer_set(path->path.loop, &path->tick, MIN_OF(keepalive_due, answer_due));
}

static void keep_alive(struct sim_path *path, uint64_t now)
{
	const struct path_config *config = &path->path.config;
	uint64_t silence = now - path->path.heard_ns;
	char text[32];

	if (now - oldest_submit_ns(path) >= config->io_timeout_ns) {
		text_duration(text, sizeof text, (double)(now - oldest_submit_ns(path)));
		sim_path_lose(path, PATH_DETECT_COMMAND, "no answer to a command for %s", text);
		return;
	}
	if (silence >= config->keepalive_ns * (path->pings + 1)) {
		if (path->pings >= config->keepalive_misses) {
			text_duration(text, sizeof text, (double)silence);
			sim_path_lose(path, PATH_DETECT_KEEPALIVE,
				      "no sign of life for %s: %u keep-alives unanswered", text,
				      path->pings);
			return;
		}
		path->pings++;
		sim_ping(path);
	}
	set_tick(path);
}

static void on_tick(void *arg)
{
	struct sim_path *path = arg;
	char text[32];

	switch (path->phase) {
	case SIM_REFUSED:
		sim_path_lose(path, PATH_DETECT_RESET, "cannot connect to %s: the link is cut",
			      path->portal);
		break;
	case SIM_LOGIN:
		text_duration(text, sizeof text, (double)path->path.config.login_timeout_ns);
		sim_path_lose(path, PATH_DETECT_LOGIN, "no login within %s: timed out", text);
		break;
	case SIM_UP:
		keep_alive(path, loop_now_ns(path->path.loop));
		break;
	case SIM_DOWN:
	case SIM_LOST:
		break;
	}
}

void sim_path_heard(struct sim_path *path)
{
	path->path.heard_ns = loop_now_ns(path->path.loop);
	path->pings = 0;
}

void sim_path_came_up(struct sim_path *path)
{
	path->phase = SIM_UP;
	path->path.up = true;
	set_tick(path);
	event(path, PATH_EVENT_UP, "");
}

void sim_path_answered(struct sim_path *path, struct sim_command *command,
		       const struct sim_answer *answer)
{
	struct path_io *pio = command->pio;

	if (command->raw) {
		sim_raw_answered(path, command, answer);
	} else if (!pio) {
		sim_command_free(path, command);
		sim_probe_answered(path, answer);
	} else {
		sim_result_take(pio, answer);
		sim_command_free(path, command);
		account_end(path, pio);
		pio->done(pio);
	}
}

/* ---- struct path_ops ---- */

static int sim_connect(struct path *base)
{
	struct sim_path *path = sim_path_of(base);
	uint64_t now = loop_now_ns(base->loop);
	int r;

	if (path->phase != SIM_DOWN)
		return -EALREADY;
	if (path->link->cut) {
		path->phase = SIM_REFUSED;
		loop_timer_set(base->loop, &path->tick, now + 2 * path->link->config.delay_ns);
		return 0;
	}
	put_be32(path->conn.isid + 2, base->config.isid_qualifier);
	r = sim_conn_open(&path->conn);
	if (r < 0)
		return r;
	path->phase = SIM_LOGIN;
	path->pings = 0;
	loop_timer_set(base->loop, &path->tick, now + base->config.login_timeout_ns);
	return 0;
}

static void sim_submit(struct path *base, struct path_io *pio)
{
	struct sim_path *path = sim_path_of(base);
	struct sim_command *command = NULL;

	assert(path->phase != SIM_UP || !base->identity.no_capacity);
	if (path->phase == SIM_UP && base->in_flight < base->config.max_in_flight &&
	    (uint64_t)pio->blocks * base->identity.block_bytes <= UINT32_MAX)
		command = sim_command_new(path);
	if (!command) {
		append(&path->refused_tail, pio);
		loop_task_queue(base->loop, &path->later);
		return;
	}
	command->pio = pio;
	pio->submit_ns = command->submit_ns;
	sim_cdb_build(command, base);
	base->in_flight++;
	base->in_flight_bytes += sim_data_bytes(base, pio);
	sim_command_send(path, command);
}

static void end_everything(struct sim_path *path)
{
	sim_fences_cancel(path);
	sim_conn_close(&path->conn);
	abandon_session(path);
	path->phase = SIM_DOWN;
	end_lost(path);
	end_refused(path);
}

static void sim_disconnect(struct path *base)
{
	struct sim_path *path = sim_path_of(base);

	sim_enter(&path->guard);
	end_everything(path);
	sim_leave(&path->guard);
}

static void sim_free(struct path *base)
{
	struct sim_path *path = sim_path_of(base);

	sim_enter(&path->guard);
	path->guard.free_wanted = true;
	end_everything(path);
	assert(base->in_flight == 0);
	sim_leave(&path->guard);
}

static const struct path_ops sim_ops = {
    .name = "sim",
    .connect = sim_connect,
    .submit = sim_submit,
    .disconnect = sim_disconnect,
    .free = sim_free,
    .command = sim_raw_submit,
    .fence = sim_fence,
    .reset_unit = sim_reset_unit,
    .abort_tasks = sim_abort_tasks,
};

static bool copy_string(char *out, size_t size, const char *text)
{
	return text && (size_t)snprintf(out, size, "%s", text) < size;
}

/* The path's own copies, and defaults for what was left at zero. */
static int take_config(struct sim_path *path, const struct path_config *from)
{
	struct path_config *config = &path->path.config;

	*config = *from;
	if (!copy_string(path->portal, sizeof path->portal, from->portal) ||
	    !copy_string(path->target_name, sizeof path->target_name, from->target) ||
	    !copy_string(path->initiator, sizeof path->initiator,
			 from->initiator_name ? from->initiator_name
					      : "iqn.2026-11.test.sanlab:initiator"))
		return -EINVAL;
	config->portal = path->portal;
	config->target = path->target_name;
	config->initiator_name = path->initiator;
	config->user = config->password = NULL;
	path_config_defaults(config);
	if (config->max_in_flight > SIM_MAX_IN_FLIGHT || config->lun > 0x3fff)
		return -EINVAL;
	put_be16(path->lun, (uint16_t)(config->lun < 256 ? config->lun : 0x4000 | config->lun));
	return 0;
}

static void init_conn(struct sim_path *path)
{
	struct sim_conn *conn = &path->conn;

	conn->link = path->link;
	conn->ops = &sim_session_ops;
	conn->arg = path;
	conn->guard = &path->guard;
	conn->initiator = path->initiator;
	conn->target = path->target_name;
	conn->isid[0] = 0x80; /* random format, RFC 7143 10.12.5: any qualifier will do */
	conn->tcp_user_timeout_ns = path->path.config.tcp_user_timeout_ns;
}

int path_new_sim(struct loop *loop, const struct path_config *config, struct sim_link *link,
		 struct path **ret_path)
{
	struct sim_path *path = calloc(1, sizeof *path);
	unsigned count;
	int r;

	if (!path)
		return -ENOMEM;
	r = take_config(path, config);
	count = path->path.config.max_in_flight + SIM_OTHER_COMMANDS;
	if (r == 0 && !(path->commands = calloc(count, sizeof *path->commands)))
		r = -ENOMEM;
	if (r < 0) {
		free(path);
		return r;
	}
	path->path.ops = &sim_ops;
	path->path.loop = loop;
	path->guard.destroy = destroy;
	path->link = sim_link_ref(link);
	TAILQ_INIT(&path->free);
	TAILQ_INIT(&path->active);
	TAILQ_INIT(&path->fences);
	for (unsigned i = 0; i < count; i++) {
		path->commands[i].index = i;
		TAILQ_INSERT_TAIL(&path->free, &path->commands[i], entry);
	}
	path->refused_tail = &path->refused;
	path->lost_tail = &path->lost;
	path->raw_refused_tail = &path->raw_refused;
	path->raw_lost_tail = &path->raw_lost;
	loop_task_init(&path->later, on_later, path);
	loop_timer_init(&path->tick, on_tick, path);
	loop_timer_init(&path->pause, sim_probe_send, path);
	init_conn(path);
	*ret_path = &path->path;
	return 0;
}
