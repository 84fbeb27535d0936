/* SPDX-License-Identifier: MIT
 *
 * Reservations of a logical unit: persistent ones (SPC-4 5.13) and those of RESERVE and RELEASE
 * (SPC-2), which exclude each other with the exceptions of CRH (SPC-4 5.13.3).
 *
 * Commands say in one column of their table row what they need (enum scsi_access); the data path
 * pays one test of scsi_lu.reserved while nothing is reserved.
 */
#ifndef SANLAB_TARGET_SCSI_RESERVATION_H
#define SANLAB_TARGET_SCSI_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>

#include "target/scsi/pr_state.h"

struct scsi_lu;
struct scsi_nexus;
struct scsi_task;

/* What a nexus that has no access may do all the same (SPC-4 and SBC-3, tables of allowed
 * commands).  A row that does not say counts as one that changes the medium. */
enum scsi_access {
	SCSI_ACCESS_WRITE,	/* nothing: conflicts with every type */
	SCSI_ACCESS_READ,	/* passes the write exclusive types */
	SCSI_ACCESS_PERSISTENT, /* passes every persistent reservation, not one of RESERVE */
	SCSI_ACCESS_BY_CDB,	/* START STOP UNIT, PREVENT ALLOW: the CDB tells */
	SCSI_ACCESS_PR,		/* PERSISTENT RESERVE: conflicts with RESERVE, the holder's too */
	SCSI_ACCESS_FREE,	/* never conflicts */
};

enum { SCSI_MAX_PREEMPTS = 8 }; /* PREEMPT AND ABORT under way on a logical unit */

struct preempt_wait {
	struct scsi_task *task; /* NULL: free */
	unsigned remaining;	/* tasks it waits for, and one while it is not yet counted up */
};

struct scsi_reservations {
	const struct scsi_nexus *reserved_by; /* RESERVE; NULL: nobody */
	struct pr_state *pr;
	struct preempt_wait preempts[SCSI_MAX_PREEMPTS];
};

/* reservation.c */
int scsi_reservations_init(struct scsi_lu *lu);
void scsi_reservations_done(struct scsi_lu *lu);
bool scsi_reservation_conflicts(const struct scsi_task *task);
/* Ends a prepare with RESERVATION CONFLICT, or with the unit attention that goes before it. */
void scsi_reservation_refuse(struct scsi_task *task);
/* Must follow every change: keeps scsi_lu.reserved true to the state. */
void scsi_reservations_changed(struct scsi_lu *lu);
struct pr_nexus scsi_pr_nexus(const struct scsi_nexus *nexus);

/* reserve6.c: what ends a reservation made with RESERVE */
void scsi_reserve_forget_lu(struct scsi_lu *lu);
void scsi_reserve_forget_nexus(const struct scsi_nexus *nexus);

/* pr_abort.c: the end of PREEMPT AND ABORT */
/* A slot for TASK; -EBUSY: all in use. */
int scsi_preempt_begin(struct scsi_task *task, unsigned *ret_slot);
void scsi_preempt_cancel(struct scsi_lu *lu, unsigned slot); /* it came to nothing */
/* Notes the commands of the nexuses that STATE marks as preempted, but the slot's own. */
void scsi_preempt_mark(struct scsi_lu *lu, unsigned slot, const struct pr_state *state);
/* Aborts them; the slot's task ends when the last of them has. */
void scsi_preempt_abort(struct scsi_lu *lu, unsigned slot);
/* A command has ended that the slots of WAITERS (a bit each) waited for. */
void scsi_preempt_progress(struct scsi_lu *lu, uint8_t waiters);

#endif
