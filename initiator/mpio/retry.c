/* SPDX-License-Identifier: MIT
 *
 * Sense and status -> action.  The first row that matches counts, so exceptions stand before
 * their rule.
 */
#include "initiator/mpio/retry.h"

#include <errno.h>

#include "base/bytes.h"

enum {
	NO_SENSE = 0x0,
	RECOVERED_ERROR = 0x1,
	NOT_READY = 0x2,
	MEDIUM_ERROR = 0x3,
	HARDWARE_ERROR = 0x4,
	ILLEGAL_REQUEST = 0x5,
	UNIT_ATTENTION = 0x6,
	DATA_PROTECT = 0x7,
	ABORTED_COMMAND = 0xb,

	STATUS_BUSY = 0x08,
	STATUS_RESERVATION_CONFLICT = 0x18,
	STATUS_TASK_SET_FULL = 0x28,
	STATUS_ACA_ACTIVE = 0x30,
	STATUS_TASK_ABORTED = 0x40,

	ANY = RETRY_ANY,
};

static const struct retry_rule rules[] = {
    {NO_SENSE, ANY, ANY, RETRY_SAME, -EIO, "no sense"},
    {RECOVERED_ERROR, ANY, ANY, RETRY_ACCEPT, 0, "recovered error"},

    {NOT_READY, 0x04, 0x01, RETRY_BACKOFF, -EBUSY, "becoming ready"},
    {NOT_READY, 0x04, 0x0a, RETRY_ACCESS, -EIO, "port group in transition",
     .access = MPIO_TRANSITIONING},
    {NOT_READY, 0x04, 0x0b, RETRY_ACCESS, -EIO, "port in standby", .access = MPIO_STANDBY},
    {NOT_READY, 0x04, 0x0c, RETRY_ACCESS, -EIO, "port unavailable", .access = MPIO_UNAVAILABLE},
    {NOT_READY, 0x04, 0x12, RETRY_ACCESS, -EIO, "unit offline", .access = MPIO_OFFLINE},
    {NOT_READY, ANY, ANY, RETRY_ELSEWHERE, -EIO, "not ready"},

    {MEDIUM_ERROR, ANY, ANY, RETRY_FAIL, -EIO, "medium error"},
    {HARDWARE_ERROR, ANY, ANY, RETRY_ELSEWHERE, -EIO, "hardware error"},

    {ILLEGAL_REQUEST, 0x20, ANY, RETRY_FAIL, -EOPNOTSUPP, "command not supported"},
    {ILLEGAL_REQUEST, 0x21, 0x00, RETRY_FAIL, -ERANGE, "beyond the end"},
    {ILLEGAL_REQUEST, 0x25, 0x00, RETRY_RECHECK, -EIO, "logical unit not there", ALSO_MISSING},
    {ILLEGAL_REQUEST, ANY, ANY, RETRY_FAIL, -EIO, "illegal request"},

    {UNIT_ATTENTION, 0x29, ANY, RETRY_SAME, -EIO, "power on or reset", ALSO_TELL},
    {UNIT_ATTENTION, 0x2a, 0x01, RETRY_SAME, -EIO, "mode parameters changed", ALSO_TELL},
    {UNIT_ATTENTION, 0x2a, 0x03, RETRY_SAME, -EIO, "reservations preempted", ALSO_TELL},
    {UNIT_ATTENTION, 0x2a, 0x04, RETRY_SAME, -EIO, "reservations released", ALSO_TELL},
    {UNIT_ATTENTION, 0x2a, 0x05, RETRY_SAME, -EIO, "registrations preempted", ALSO_TELL},
    {UNIT_ATTENTION, 0x2a, 0x06, RETRY_SAME, -EIO, "access state changed", ALSO_ASK},
    {UNIT_ATTENTION, 0x2a, 0x07, RETRY_SAME, -EIO, "access state transition failed", ALSO_ASK},
    {UNIT_ATTENTION, 0x2a, 0x09, RETRY_RECHECK, -EIO, "capacity changed"},
    {UNIT_ATTENTION, 0x3f, 0x03, RETRY_RECHECK, -EIO, "inquiry data changed"},
    {UNIT_ATTENTION, 0x3f, 0x05, RETRY_RECHECK, -EIO, "device identifier changed"},
    {UNIT_ATTENTION, 0x3f, 0x0e, RETRY_RECHECK, -EIO, "list of logical units changed"},
    {UNIT_ATTENTION, 0x38, 0x07, RETRY_SAME, -EIO, "thin provisioning threshold", ALSO_TELL},
    {UNIT_ATTENTION, ANY, ANY, RETRY_SAME, -EIO, "unit attention"},

    {DATA_PROTECT, 0x27, 0x07, RETRY_FAIL, -ENOSPC, "no space to allocate"},
    {DATA_PROTECT, ANY, ANY, RETRY_FAIL, -EROFS, "write-protected"},
    {ABORTED_COMMAND, ANY, ANY, RETRY_SAME, -EIO, "command aborted", ALSO_MARK},
    {ANY, ANY, ANY, RETRY_FAIL, -EIO, "sense"},
};

/* `key` holds the status. */
static const struct retry_rule statuses[] = {
    {STATUS_BUSY, ANY, ANY, RETRY_BACKOFF, -EBUSY, "BUSY", ALSO_BUSY},
    {STATUS_TASK_SET_FULL, ANY, ANY, RETRY_BACKOFF, -EBUSY, "TASK SET FULL", ALSO_FULL},
    {STATUS_ACA_ACTIVE, ANY, ANY, RETRY_BACKOFF, -EBUSY, "ACA ACTIVE"},
    {STATUS_TASK_ABORTED, ANY, ANY, RETRY_SAME, -EIO, "TASK ABORTED"},
    {STATUS_RESERVATION_CONFLICT, ANY, ANY, RETRY_FAIL, -EBUSY, "RESERVATION CONFLICT", ALSO_TELL},
    {ANY, ANY, ANY, RETRY_FAIL, -EIO, "unknown status"},
};

static const struct retry_rule *find(const struct retry_rule *table, int key, int asc, int ascq)
{
	while ((table->key != ANY && table->key != key) ||
	       (table->asc != ANY && table->asc != asc) ||
	       (table->ascq != ANY && table->ascq != ascq))
		table++; /* the last row matches all */
	return table;
}

const struct retry_rule *retry_for_sense(uint8_t key, uint8_t asc, uint8_t ascq)
{
	return find(rules, key, asc, ascq);
}

const struct retry_rule *retry_for_status(uint8_t scsi_status)
{
	return find(statuses, scsi_status, 0, 0);
}

const struct retry_rule *retry_rules(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(rules);
	return rules;
}

uint64_t retry_backoff_ns(unsigned retries)
{
	return retries < 7 ? (UINT64_C(10) << retries) * NS_PER_MS : NS_PER_S;
}
