/* SPDX-License-Identifier: MIT
 *
 * After login: is there a unit, which one is it, how large, with which limits.
 *
 * One command at a time, as identity_steps[] says.  Unit attentions are expected after a login
 * and taken, up to a limit; a unit that is busy or becoming ready is asked again until the login
 * deadline.  A port without access does not hide which unit it is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "initiator/path/iscsi_path.h"

enum { PROBE_PAUSE_NS = 50 * 1000 * 1000 };

static void conclude(struct iscsi_path *p)
{
	struct identity_facts *facts = &p->probe.facts;
	struct path_identity *id = &facts->identity;

	identity_conclude(facts);
	p->dpofua = facts->dpofua;
	if (p->cdb10 && (!id->max_transfer_blocks || id->max_transfer_blocks > UINT16_MAX))
		id->max_transfer_blocks = UINT16_MAX;
	p->path.identity = *id;
	p->identified = true;
}

static void advance(struct iscsi_path *p)
{
	struct iscsi_probe *probe = &p->probe;

	probe->step = identity_next_step(probe->step, &probe->facts);
	if (probe->step < IDENTITY_STEPS)
		probe_send(p);
	else
		conclude(p);
}

static void refused(struct iscsi_path *p, const char *how)
{
	const struct identity_step *step = &identity_steps[p->probe.step];

	if (!step->optional) {
		session_lose(p, PATH_DETECT_LOGIN, "%s failed: %s", step->name, how);
		return;
	}
	if (step->parse == identity_capacity16)
		p->cdb10 = true;
	advance(p);
}

static void wait_a_little(struct iscsi_path *p)
{
	loop_timer_set(p->path.loop, &p->pause, loop_now_ns(p->path.loop) + PROBE_PAUSE_NS);
}

static void check_condition(struct iscsi_path *p, const struct scsi_sense *sense)
{
	char text[32];

	if (sense->key == SCSI_SENSE_UNIT_ATTENTION) {
		if (++p->probe.attentions > ISCSI_PROBE_ATTENTIONS)
			session_lose(p, PATH_DETECT_LOGIN, "unit attentions without end, last %04x",
				     (unsigned)sense->ascq);
		else
			probe_send(p);
		return;
	}
	/* 04/01 becoming ready, 04/0A asymmetric access state transition */
	if (sense->key == SCSI_SENSE_NOT_READY &&
	    (sense->ascq == 0x0401 || sense->ascq == 0x040a)) {
		wait_a_little(p);
		return;
	}
	if (identity_without_access(p->probe.step, (uint8_t)sense->key, (uint8_t)(sense->ascq >> 8),
				    (uint8_t)sense->ascq, &p->probe.facts)) {
		advance(p);
		return;
	}
	snprintf(text, sizeof text, "sense %02x/%02x/%02x", (unsigned)sense->key,
		 (unsigned)sense->ascq >> 8 & 0xff, (unsigned)sense->ascq & 0xff);
	refused(p, text);
}

static void good(struct iscsi_path *p)
{
	struct iscsi_probe *probe = &p->probe;
	const struct identity_step *step = &identity_steps[probe->step];
	size_t size = step->data_bytes;

	if (probe->task.residual_status == SCSI_RESIDUAL_UNDERFLOW)
		size -= MIN_OF(size, probe->task.residual);
	if (step->parse && step->parse(probe->data, size, &probe->facts) < 0) {
		refused(p, step->parse == identity_inquiry ? "no logical unit of disk type there"
							   : "unintelligible data");
		return;
	}
	advance(p);
}

static void probe_done(struct iscsi_context *ctx, int status, void *command_data, void *arg)
{
	struct iscsi_path *p = arg;

	if (p->tearing)
		return;
	switch (status) {
	case SCSI_STATUS_GOOD:
		good(p);
		break;
	case SCSI_STATUS_CHECK_CONDITION:
		free(p->probe.task.datain.data);
		p->probe.task.datain.data = NULL;
		check_condition(p, &p->probe.task.sense);
		break;
	case SCSI_STATUS_BUSY:
	case SCSI_STATUS_TASK_SET_FULL:
		wait_a_little(p);
		break;
	case SCSI_STATUS_RESERVATION_CONFLICT:
		/* Somebody's reservation is no reason not to know the unit. */
		if (p->probe.step == 0)
			advance(p);
		else
			refused(p, "RESERVATION CONFLICT");
		break;
	default:
		session_lose_failed(p, errno);
		break;
	}
}

void probe_send(void *arg)
{
	struct iscsi_path *p = arg;
	struct iscsi_probe *probe = &p->probe;
	const struct identity_step *step = &identity_steps[probe->step];
	struct scsi_task *task = &probe->task;

	memset(task, 0, sizeof *task);
	memset(probe->data, 0, sizeof probe->data);
	memcpy(task->cdb, step->cdb, sizeof task->cdb);
	task->cdb_size = step->cdb_size;
	task->expxferlen = step->data_bytes;
	if (step->data_bytes) {
		task->xfer_dir = SCSI_XFER_READ;
		probe->iov =
		    (struct scsi_iovec){.iov_base = probe->data, .iov_len = step->data_bytes};
		scsi_task_set_iov_in(task, &probe->iov, 1);
	}
	if (iscsi_scsi_command_async(p->ctx, p->wire_lun, task, probe_done, NULL, p) != 0) {
		session_lose(p, PATH_DETECT_LOGIN, "cannot send %s: %s", step->name,
			     iscsi_get_error(p->ctx));
		loop_task_queue(p->path.loop, &p->later);
		return;
	}
	p->queued++;
	loop_task_queue(p->path.loop, &p->flush);
}

void probe_start(struct iscsi_path *p)
{
	memset(&p->probe, 0, sizeof p->probe);
	p->probe.facts = identity_unknown();
	p->cdb10 = false;
	p->phase = ISCSI_PROBING;
	probe_send(p);
}
