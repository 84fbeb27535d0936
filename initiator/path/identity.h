/* SPDX-License-Identifier: MIT
 *
 * What INQUIRY, VPD pages, READ CAPACITY and MODE SENSE say about a logical unit (SPC-4, SBC-3).
 * Pure: bytes in, facts out; lengths the target claims are never trusted.
 */
#ifndef SANLAB_INITIATOR_PATH_IDENTITY_H
#define SANLAB_INITIATOR_PATH_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "initiator/path/path.h"

struct identity_facts {
	struct path_identity identity;
	unsigned rank;	 /* of the designator held: higher is better, 0 none */
	uint8_t version; /* of INQUIRY: 6 is SPC-4 */
	bool dpofua;	 /* the FUA bit is honoured */
	bool lbpme;	 /* thin: UNMAP makes sense */
	bool told_unmap;
	bool have_capacity;
	bool without_access; /* a step has met a port without access */
};

/* The state to begin with. */
struct identity_facts identity_unknown(void);

/* Each returns 0 or -EPROTO when the data cannot be what was asked for. */
int identity_inquiry(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_vpd_designators(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_vpd_serial(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_vpd_extended(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_vpd_limits(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_capacity16(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_capacity10(const uint8_t *data, size_t size, struct identity_facts *facts);
int identity_mode6(const uint8_t *data, size_t size, struct identity_facts *facts);

/* One command of the probe after a login: every kind of path asks the same, each in its own way. */
struct identity_step {
	const char *name;
	uint8_t cdb[16];
	uint8_t cdb_size;
	uint16_t data_bytes;
	bool optional;	   /* a unit may refuse it */
	bool needs_access; /* a port in standby, unavailable or offline may (SPC-4 5.15.2.4) */
	/* NULL: no data to read */
	int (*parse)(const uint8_t *data, size_t size, struct identity_facts *facts);
	bool (*needed)(const struct identity_facts *facts); /* NULL: always */
};

enum { IDENTITY_STEPS = 9, IDENTITY_DATA_BYTES = 1024 };
extern const struct identity_step identity_steps[IDENTITY_STEPS];
/* The step after STEP that is still needed; IDENTITY_STEPS when there is none. */
unsigned identity_next_step(unsigned step, const struct identity_facts *facts);
/* STEP was answered with this sense.  True: for want of access, and the identification goes on
 * without such steps. */
bool identity_without_access(unsigned step, uint8_t key, uint8_t asc, uint8_t ascq,
			     struct identity_facts *facts);
/* After the last step: what follows from several answers. */
void identity_conclude(struct identity_facts *facts);

#endif
