/* SPDX-License-Identifier: MIT
 *
 * After login: is there a unit, which one is it, how large, with which limits.
 *
 * The commands and the parsers are those of the iscsi path (initiator/path/identity.h), so that
 * both kinds of path see the same unit the same way.
 */
#include <assert.h>

#include "base/bytes.h"
#include "harness/sim/sim_impl.h"
#include "target/scsi/scsi.h"

enum { KEY_NOT_READY = 2, KEY_UNIT_ATTENTION = 6 };

void sim_probe_send(void *arg)
{
	struct sim_path *path = arg;
	const struct identity_step *step = &identity_steps[path->probe.step];
	struct sim_command *command = sim_command_new(path);

	assert(command); /* one is kept for this */
	memset(path->probe.data, 0, sizeof path->probe.data);
	memcpy(command->cdb, step->cdb, sizeof step->cdb);
	command->in_bytes = step->data_bytes;
	command->own_iov = (struct iovec){path->probe.data, step->data_bytes};
	command->iov = &command->own_iov;
	command->iov_count = 1;
	sim_command_send(path, command);
}

void sim_probe_start(struct sim_path *path)
{
	path->probe = (struct sim_probe){.facts = identity_unknown()};
	sim_probe_send(path);
}

static void advance(struct sim_path *path)
{
	struct sim_probe *probe = &path->probe;

	probe->step = identity_next_step(probe->step, &probe->facts);
	if (probe->step < IDENTITY_STEPS) {
		sim_probe_send(path);
		return;
	}
	identity_conclude(&probe->facts);
	path->path.identity = probe->facts.identity;
	sim_path_came_up(path);
}

static void refused(struct sim_path *path, const char *how)
{
	const struct identity_step *step = &identity_steps[path->probe.step];

	if (step->optional)
		advance(path);
	else
		sim_path_lose(path, PATH_DETECT_LOGIN, "%s failed: %s", step->name, how);
}

static void wait_a_little(struct sim_path *path)
{
	loop_timer_set(path->path.loop, &path->pause,
		       loop_now_ns(path->path.loop) + SIM_PROBE_PAUSE_NS);
}

static void check_condition(struct sim_path *path, const uint8_t *sense)
{
	uint8_t key = sense[2] & 0x0f, asc = sense[12], ascq = sense[13];

	if (key == KEY_UNIT_ATTENTION) {
		if (++path->probe.attentions > SIM_PROBE_ATTENTIONS)
			sim_path_lose(path, PATH_DETECT_LOGIN,
				      "unit attentions without end, last %02x/%02x", asc, ascq);
		else
			sim_probe_send(path);
	} else if (key == KEY_NOT_READY && asc == 0x04 && (ascq == 0x01 || ascq == 0x0a)) {
		wait_a_little(path); /* becoming ready, access state transition */
	} else if (identity_without_access(path->probe.step, key, asc, ascq, &path->probe.facts) ||
		   identity_steps[path->probe.step].optional) {
		advance(path);
	} else {
		sim_path_lose(path, PATH_DETECT_LOGIN, "%s failed: sense %02x/%02x/%02x",
			      identity_steps[path->probe.step].name, key, asc, ascq);
	}
}

void sim_probe_answered(struct sim_path *path, const struct sim_answer *answer)
{
	const struct identity_step *step = &identity_steps[path->probe.step];
	struct identity_facts *facts = &path->probe.facts;
	uint32_t bytes = step->data_bytes - MIN_OF(answer->missing_bytes, step->data_bytes);

	switch (answer->status) {
	case SCSI_GOOD:
		if (!step->parse || (bytes > 0 && step->parse(path->probe.data, bytes, facts) == 0))
			advance(path);
		else
			refused(path, step->parse == identity_inquiry
					  ? "no logical unit of disk type there"
					  : "unintelligible data");
		break;
	case SCSI_CHECK_CONDITION:
		check_condition(path, answer->sense);
		break;
	case SCSI_BUSY:
	case SCSI_TASK_SET_FULL:
		wait_a_little(path);
		break;
	case SCSI_RESERVATION_CONFLICT:
		/* Somebody's reservation is no reason not to know the unit. */
		if (path->probe.step == 0)
			advance(path);
		else
			refused(path, "RESERVATION CONFLICT");
		break;
	default:
		refused(path, "unexpected status");
		break;
	}
}
