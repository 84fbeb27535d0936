/* SPDX-License-Identifier: MIT
 *
 * What to do with an answer that is not GOOD: one table, sense or status -> action.  Pure.
 */
#ifndef SANLAB_INITIATOR_MPIO_RETRY_H
#define SANLAB_INITIATOR_MPIO_RETRY_H

#include <stddef.h>
#include <stdint.h>

#include "initiator/mpio/mpio.h"

enum retry_action {
	RETRY_ACCEPT,	      /* it is a success all the same */
	RETRY_FAIL,	      /* ends the io with `status` */
	RETRY_SAME,	      /* again at once, on the same path */
	RETRY_BACKOFF,	      /* again after a growing delay, on any path */
	RETRY_ELSEWHERE,      /* again on another path; when all have refused it, `status` */
	RETRY_ELSEWHERE_WAIT, /* again on another path; when all have refused it, after a delay */
	RETRY_RECHECK,	      /* the path logs in again and is identified anew; again elsewhere */
	RETRY_ACCESS, /* `access` is the state of the path's port group: again on another path,
		       * or when the state has changed; without ALUA as ELSEWHERE_WAIT */
};

/* What it means besides for the io. */
enum retry_also {
	ALSO_NOTHING,
	ALSO_FULL,    /* what is in flight on the path is what fits */
	ALSO_BUSY,    /* less should be in flight on the path */
	ALSO_ASK,     /* REPORT TARGET PORT GROUPS */
	ALSO_TELL,    /* a person should know */
	ALSO_MARK,    /* the path has failed once more */
	ALSO_MISSING, /* the unit may be gone for good */
};

enum { RETRY_ANY = -1 };

struct retry_rule {
	int key, asc, ascq; /* RETRY_ANY matches all */
	enum retry_action action;
	int status; /* of RETRY_FAIL, and when the retries are used up */
	const char *why;
	enum retry_also also;
	enum mpio_access access; /* of RETRY_ACCESS */
};

const struct retry_rule *retry_for_sense(uint8_t key, uint8_t asc, uint8_t ascq);
const struct retry_rule *retry_for_status(uint8_t scsi_status);

/* The table itself, for tests and documentation. */
const struct retry_rule *retry_rules(size_t *ret_count);

/* 10 ms, 20 ms ... 640 ms, then 1 s. */
uint64_t retry_backoff_ns(unsigned retries);

#endif
