/* SPDX-License-Identifier: MIT
 *
 * Asking for access states and acting on them: REPORT TARGET PORT GROUPS after each login, when an
 * answer says that something has changed, while a group is in transition, and now and then; SET
 * TARGET PORT GROUPS when that is allowed and no path is optimized.
 *
 * One command at a time; its answer is about all paths.  A path that has logged in is told apart
 * from the others (`admitting`) until its group's state is known.
 */
#include "initiator/mpio/alua_ask.h"

#include <errno.h>
#include <stdio.h>

#include "base/bytes.h"
#include "initiator/mpio/device.h"

enum {
	TRIES = 20,			    /* answers without states, one after another */
	RETRY_NS = 20 * 1000 * 1000,	    /* after one that is no answer */
	POLL_MIN_NS = 50 * 1000 * 1000,	    /* during a transition, doubling */
	POLL_MAX_NS = 1000 * 1000 * 1000,   /* ... and while no path is usable */
	POLL_WAITED_NS = 200 * 1000 * 1000, /* ... but I/O waits for one */
	KEY_NOT_READY = 2,
	KEY_ILLEGAL_REQUEST = 5,
	KEY_UNIT_ATTENTION = 6,
};

/* After a group that did not want to. */
#define STPG_AGAIN_NS (10 * NS_PER_S)

static void ask(struct mpio *m);

/* ---- what is known ---- */

static bool has_alua(const struct mpio *m, const struct mpio_path *p)
{
	return p->path->identity.tpgs && p->path->ops->command && !m->alua.unsupported;
}

uint64_t mpio_alua_transition_ns(const struct mpio *m)
{
	return m->alua.report.transition_ns ? m->alua.report.transition_ns
					    : m->config.transition_ns;
}

static bool in_group(const struct mpio_path *p, uint16_t id)
{
	return p->path->up && p->path->identity.target_port_group == id;
}

static void set_access(struct mpio_path *p, enum mpio_access access)
{
	struct mpio *m = p->mpio;
	char why[64];

	if (p->machine.access == access && !p->admitting)
		return;
	path_machine_access(&p->machine, access, loop_now_ns(m->loop) + mpio_alua_transition_ns(m));
	snprintf(why, sizeof why, "port group %u: %s", p->path->identity.target_port_group,
		 mpio_access_name(access));
	if (p->admitting)
		mpio_path_admit(p);
	else
		mpio_path_look(p, why);
}

static void admit_all(struct mpio *m)
{
	for (unsigned i = 0; i < m->count; i++)
		if (m->paths[i]->admitting)
			set_access(m->paths[i], MPIO_ACCESS_NONE);
}

static bool any_access(const struct mpio *m, enum mpio_access access)
{
	for (unsigned i = 0; i < m->count; i++)
		if (mpio_path_logged_in(m->paths[i]->machine.state) &&
		    m->paths[i]->machine.access == access)
			return true;
	return false;
}

static void ask_after(struct mpio *m, uint64_t delay_ns)
{
	loop_timer_set(m->loop, &m->alua.timer, loop_now_ns(m->loop) + delay_ns);
}

/* When next, if nothing happens before. */
static void set_poll(struct mpio *m)
{
	struct mpio_alua *a = &m->alua;

	if (a->unsupported)
		return;
	if (any_access(m, MPIO_TRANSITIONING) || m->usable_count == 0) {
		uint64_t most_ns = mpio_waiting(m) ? POLL_WAITED_NS : POLL_MAX_NS;

		a->poll_ns = MIN_OF(MAX_OF(a->poll_ns * 2, (uint64_t)POLL_MIN_NS), most_ns);
		/* Not in step with an array that changes its mind at even times. */
		ask_after(m, a->poll_ns - rng_below(&m->rng, a->poll_ns / 4 + 1));
	} else {
		a->poll_ns = 0;
		if (m->config.alua_poll_ns)
			ask_after(m, m->config.alua_poll_ns);
	}
}

/* ---- SET TARGET PORT GROUPS ---- */

static void stpg_done(struct path_command *command)
{
	struct mpio *m = command->owner;

	m->alua.asking = false;
	if (m->freeing)
		return;
	m->depth++;
	/* Refused, or the path is gone: another group's turn after a while. */
	if (command->result != PATH_OK)
		m->alua.stpg_after_ns = loop_now_ns(m->loop) + STPG_AGAIN_NS;
	m->alua.again = false;
	ask(m);
	m->depth--;
}

static bool may_set(const struct mpio *m, const struct mpio_path *p)
{
	return mpio_path_logged_in(p->machine.state) && p->path->up && !p->failing && !p->drop &&
	       has_alua(m, p) && p->path->identity.tpgs & 2 && p->machine.access != MPIO_OFFLINE;
}

/* The path whose group is to become optimized: a preferred group's, else a usable one's. */
static struct mpio_path *path_to_set(struct mpio *m)
{
	struct mpio_path *found = NULL;
	unsigned best = 0;

	for (unsigned i = 0; i < m->count; i++) {
		/* From the one after the last tried on. */
		struct mpio_path *p = m->paths[(m->alua.stpg_via + 1 + i) % m->count];
		const struct alua_report_group *group =
		    alua_find(&m->alua.report, p->path->identity.target_port_group);
		unsigned value = 1 + (group && group->preferred ? 2U : 0U) +
				 (mpio_path_usable(p->machine.state) ? 1U : 0U);

		if (may_set(m, p) && value > best) {
			found = p;
			best = value;
		}
	}
	return found;
}

/* True: a command is on its way. */
static bool set_optimized(struct mpio *m)
{
	struct mpio_alua *a = &m->alua;
	struct mpio_path *p;

	if (!m->config.alua_explicit || any_access(m, MPIO_OPTIMIZED) ||
	    any_access(m, MPIO_TRANSITIONING) || loop_now_ns(m->loop) < a->stpg_after_ns)
		return false;
	p = path_to_set(m);
	if (!p)
		return false;
	a->stpg_via = p->index;
	a->stpg_after_ns = loop_now_ns(m->loop) + NS_PER_S; /* its own answer says when next */
	a->command = (struct path_command){.cdb_bytes = 12,
					   .data = a->data,
					   .data_bytes = ALUA_STPG_BYTES,
					   .to_target = true,
					   .done = stpg_done,
					   .owner = m};
	alua_stpg(a->command.cdb, a->data, p->path->identity.target_port_group);
	a->asking = true;
	path_command(p->path, &a->command);
	return true;
}

/* ---- REPORT TARGET PORT GROUPS ---- */

static void told(struct mpio *m)
{
	m->alua.tries = 0;
	for (unsigned i = 0; i < m->count; i++) {
		struct mpio_path *p = m->paths[i];
		const struct alua_report_group *group;

		if (!p->admitting && !mpio_path_logged_in(p->machine.state))
			continue;
		group = alua_find(&m->alua.report, p->path->identity.target_port_group);
		set_access(p, group ? group->access : MPIO_ACCESS_NONE);
	}
}

/* No states to be had from this unit: all paths are equal. */
static void give_up(struct mpio *m, bool for_good)
{
	m->alua.tries = 0;
	m->alua.unsupported = for_good;
	admit_all(m);
}

static void no_answer(struct mpio *m, const struct path_command *command)
{
	struct mpio_alua *a = &m->alua;

	a->via = a->asked_via + 1; /* another path may know */
	if (++a->tries > TRIES) {
		give_up(m, false);
		set_poll(m);
		return;
	}
	if (command->result == PATH_SENSE && command->sense_key == KEY_UNIT_ATTENTION)
		ask(m);
	else
		ask_after(m, RETRY_NS);
}

static void refused(struct mpio *m, const struct path_command *command)
{
	if (command->asc == 0x24 && !m->alua.short_form) {
		m->alua.short_form = true;
		ask(m);
	} else {
		give_up(m, true);
	}
}

static void rtpg_done(struct path_command *command)
{
	struct mpio *m = command->owner;
	struct mpio_alua *a = &m->alua;
	bool again = a->again;

	a->asking = a->again = false;
	if (m->freeing)
		return;
	m->depth++;
	if (command->result == PATH_OK &&
	    alua_parse(a->data, command->got_bytes, &a->report) == 0) {
		told(m);
		if (again)
			ask(m);
		else if (!set_optimized(m))
			set_poll(m);
	} else if (command->result == PATH_OK) {
		give_up(m, true);
	} else if (command->result == PATH_SENSE && command->sense_key == KEY_ILLEGAL_REQUEST) {
		refused(m, command);
	} else {
		no_answer(m, command);
	}
	mpio_pump(m);
	m->depth--;
}

/* From `via` on the first that can. */
static struct mpio_path *path_to_ask(const struct mpio *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		struct mpio_path *p = m->paths[(m->alua.via + i) % m->count];

		if (p->path->up && !p->failing && !p->drop && has_alua(m, p) &&
		    (p->admitting || mpio_path_logged_in(p->machine.state)))
			return p;
	}
	return NULL;
}

static void ask(struct mpio *m)
{
	struct mpio_alua *a = &m->alua;
	struct mpio_path *p;

	if (a->asking) {
		a->again = true;
		return;
	}
	p = path_to_ask(m);
	if (!p)
		return; /* the next login asks */
	loop_timer_cancel(m->loop, &a->timer);
	a->asked_via = p->index;
	a->command = (struct path_command){.cdb_bytes = 12,
					   .data = a->data,
					   .data_bytes = sizeof a->data,
					   .done = rtpg_done,
					   .owner = m};
	alua_rtpg_cdb(a->command.cdb, !a->short_form, sizeof a->data);
	a->asking = true;
	path_command(p->path, &a->command);
}

void mpio_alua_due(void *arg)
{
	struct mpio *m = arg;

	m->depth++;
	ask(m);
	m->depth--;
}

/* ---- what the others say ---- */

bool mpio_alua_login(struct mpio_path *p)
{
	struct mpio *m = p->mpio;

	path_machine_access(&p->machine, MPIO_ACCESS_NONE, 0);
	if (!has_alua(m, p))
		return false;
	p->admitting = true;
	if (!m->alua.asking)
		m->alua.via = p->index;
	ask(m);
	return true;
}

bool mpio_alua_met(struct mpio_path *p, enum mpio_access access)
{
	struct mpio *m = p->mpio;
	uint16_t id = p->path->identity.target_port_group;

	if (!has_alua(m, p) || !mpio_path_logged_in(p->machine.state))
		return false;
	set_access(p, access);
	for (unsigned i = 0; i < m->count && id; i++)
		if (in_group(m->paths[i], id) && mpio_path_logged_in(m->paths[i]->machine.state))
			set_access(m->paths[i], access);
	m->alua.via = p->index;
	if (access == MPIO_TRANSITIONING)
		set_poll(m); /* it has just said how it is */
	else
		ask(m);
	return true;
}

void mpio_alua_changed(struct mpio_path *p)
{
	if (!has_alua(p->mpio, p))
		return;
	p->mpio->alua.via = p->index;
	ask(p->mpio);
}

void mpio_alua_lost(struct mpio_path *p)
{
	struct mpio *m = p->mpio;

	/* Its controller may have gone, and the others' states with it. */
	if (m->alua.report.count == 0)
		return;
	m->alua.via = p->index + 1;
	ask(m);
}
