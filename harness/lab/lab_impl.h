/* SPDX-License-Identifier: MIT
 *
 * What the files of harness/lab share; private to them.
 */
#ifndef SANLAB_HARNESS_LAB_LAB_IMPL_H
#define SANLAB_HARNESS_LAB_LAB_IMPL_H

#include "harness/lab/lab.h"

/* Tables of schemas are long: their rows are written so.  THIS is the structure described. */
#define SCHEMA(label, type, table)                            \
	{                                                     \
		label, sizeof(type), table, ARRAY_SIZE(table) \
	}
#define AT(member) offsetof(struct THIS, member)

extern const struct cfg_schema lab_schema;   /* schema.c */
extern const struct cfg_schema fault_schema; /* fault_schema.c */

/* `path-reset: {...}` and the other kinds of faults: which keys they take. */
struct fault_args {
	const char *host, *volume, *member, *user, *to;
	int mode, dial;	     /* copy-activate */
	uint64_t rate_bytes; /* copy-reseed, a second */
	uint64_t path;
	struct cfg_portal portal;
	uint64_t drive, controller, port, extra_ns;
	double factor, rate;
	uint64_t above_bytes, delay_ns, jitter_ns, count, transition_ns;
	double loss;
	/* random */
	struct cfg_list of; /* const char * */
	uint64_t times, within_ns, shortest_ns, longest_ns, leave;
};
extern const struct cfg_schema *const fault_schemas[FAULT_KINDS];

/* Keeps of the COUNT paths, in their order, those that the session limits let a host open to the
 * group's VOLUME-th volume; returns how many. */
int lab_limit_sessions(const struct mpio_config *mpio, size_t volume, struct lab_path *paths,
		       int count);

/* Each adds its errors to lab->cfg and fills what its part of struct lab says. */
void lab_check_hosts(struct lab *lab);
bool lab_volume_is_used(const struct lab *lab, const char *volume); /* by some host */
void lab_check_faults(struct lab *lab);
void lab_check_expect(struct lab *lab);
/* A `random` entry: its keys make sense, ARGS' are kept for lab_make_timeline. */
void lab_check_random(struct lab *lab, struct fault_config *fault, const struct fault_args *args);
/* schedule.c: lab->timeline from the faults, after every check has passed. */
int lab_make_timeline(struct lab *lab);
void lab_free_timeline(struct lab *lab);

#endif
