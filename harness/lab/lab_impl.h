/* SPDX-License-Identifier: MIT
 *
 * What the files of harness/lab share; private to them.
 */
#ifndef SANLAB_HARNESS_LAB_LAB_IMPL_H
#define SANLAB_HARNESS_LAB_LAB_IMPL_H

#include "harness/lab/lab.h"

extern const struct cfg_schema lab_schema; /* schema.c */

/* `path-reset: {...}` and the other kinds of faults: which keys they take. */
struct fault_args {
	const char *host, *volume, *member;
	uint64_t path;
	struct cfg_portal portal;
	uint64_t drive, controller, port, extra_ns;
	double factor, rate;
};
extern const struct cfg_schema *const fault_schemas[FAULT_KINDS];

/* Each adds its errors to lab->cfg and fills what its part of struct lab says. */
void lab_check_hosts(struct lab *lab);
bool lab_volume_is_used(const struct lab *lab, const char *volume); /* by some host */
void lab_check_faults(struct lab *lab);
void lab_check_expect(struct lab *lab);

#endif
