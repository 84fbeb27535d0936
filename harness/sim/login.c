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

enum { KEY_NOT_READY = 2, KEY_UNIT_ATTENTION = 6 };

struct probe_step {
	const char *name;
	uint8_t cdb[16];
	uint16_t data_bytes;
	bool optional;
	int (*parse)(const uint8_t *data, size_t size, struct identity_facts *facts);
	bool (*needed)(const struct identity_facts *facts); /* NULL: always */
};

static bool no_designator(const struct identity_facts *facts)
{
	return facts->rank == 0;
}

static const struct probe_step steps[] = {
    {.name = "TEST UNIT READY", .cdb = {0x00}},
    {.name = "INQUIRY", .cdb = {0x12, 0, 0, 0, 96}, .data_bytes = 96, .parse = identity_inquiry},
    {.name = "INQUIRY of page 83h",
     .cdb = {0x12, 1, 0x83, SIM_PROBE_DATA_BYTES >> 8, SIM_PROBE_DATA_BYTES & 0xff},
     .data_bytes = SIM_PROBE_DATA_BYTES,
     .optional = true,
     .parse = identity_vpd_designators},
    {.name = "INQUIRY of page 80h",
     .cdb = {0x12, 1, 0x80, 0, 252},
     .data_bytes = 252,
     .optional = true,
     .parse = identity_vpd_serial,
     .needed = no_designator},
    {.name = "INQUIRY of page b0h",
     .cdb = {0x12, 1, 0xb0, 0, 64},
     .data_bytes = 64,
     .optional = true,
     .parse = identity_vpd_limits},
    {.name = "READ CAPACITY(16)",
     .cdb = {0x9e, 0x10, [13] = 32},
     .data_bytes = 32,
     .parse = identity_capacity16},
    {.name = "MODE SENSE(6)",
     .cdb = {0x1a, 0x08, 0x3f, 0, 192},
     .data_bytes = 192,
     .optional = true,
     .parse = identity_mode6},
};

void sim_probe_send(void *arg)
{
	struct sim_path *path = arg;
	const struct probe_step *step = &steps[path->probe.step];
	struct sim_command *command = sim_session_command(path->session);

	assert(command); /* one is kept for this */
	memcpy(command->task.cdb, step->cdb, sizeof step->cdb);
	command->task.edtl_bytes = step->data_bytes;
	sim_command_send(command);
}

void sim_probe_start(struct sim_path *path)
{
	path->probe = (struct sim_probe){0};
	sim_probe_send(path);
}

static void advance(struct sim_path *path)
{
	struct sim_probe *probe = &path->probe;
	struct path_identity *identity = &probe->facts.identity;

	do {
		probe->step++;
	} while (probe->step < ARRAY_SIZE(steps) && steps[probe->step].needed &&
		 !steps[probe->step].needed(&probe->facts));
	if (probe->step < ARRAY_SIZE(steps)) {
		sim_probe_send(path);
		return;
	}
	identity->can_unmap = probe->facts.lbpme && probe->facts.told_unmap;
	path->path.identity = *identity;
	sim_path_came_up(path);
}

static void refused(struct sim_path *path, const char *how)
{
	const struct probe_step *step = &steps[path->probe.step];

	if (step->optional)
		advance(path);
	else
		sim_path_lose(path, "%s failed: %s", step->name, how);
}

static void wait_a_little(struct sim_path *path)
{
	loop_timer_set(path->path.loop, &path->pause,
		       loop_now_ns(path->path.loop) + SIM_PROBE_PAUSE_NS);
}

static void check_condition(struct sim_path *path, const uint8_t *sense)
{
	unsigned key = sense[2] & 0x0f, asc = sense[12], ascq = sense[13];

	if (key == KEY_UNIT_ATTENTION) {
		if (++path->probe.attentions > SIM_PROBE_ATTENTIONS)
			sim_path_lose(path, "unit attentions without end, last %02x/%02x", asc,
				      ascq);
		else
			sim_probe_send(path);
	} else if (key == KEY_NOT_READY && asc == 0x04 && (ascq == 0x01 || ascq == 0x0a)) {
		wait_a_little(path); /* becoming ready, access state transition */
	} else if (steps[path->probe.step].optional) {
		advance(path);
	} else {
		sim_path_lose(path, "%s failed: sense %02x/%02x/%02x", steps[path->probe.step].name,
			      key, asc, ascq);
	}
}

void sim_probe_answered(struct sim_path *path, const struct sim_answer *answer)
{
	const struct probe_step *step = &steps[path->probe.step];
	struct identity_facts *facts = &path->probe.facts;

	switch (answer->status) {
	case SCSI_GOOD:
		if (!step->parse ||
		    (answer->bytes > 0 && step->parse(answer->data, answer->bytes, facts) == 0))
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
	default:
		refused(path, "unexpected status");
		break;
	}
}
