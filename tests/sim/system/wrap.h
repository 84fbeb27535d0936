/* SPDX-License-Identifier: MIT
 *
 * Between MPIO and its simulated paths: answers that no fault of the system brings about often
 * enough (BUSY, TASK SET FULL, unit attentions), and mutants: faults of the initiator itself, which
 * the simulation has to notice.
 */
#ifndef SANLAB_TESTS_SIM_SYSTEM_WRAP_H
#define SANLAB_TESTS_SIM_SYSTEM_WRAP_H

#include "base/rng.h"
#include "initiator/path/path.h"

enum wrap_mutant {
	WRAP_NONE,
	WRAP_NO_FENCE,	  /* lost writes are re-issued and forgotten */
	WRAP_NO_TEARDOWN, /* a new login leaves the old session alone */
	WRAP_EARLY_FENCE, /* proofs that a session is dead come without asking the target */
	WRAP_NO_IDENTITY, /* whatever unit is there counts as the right one */
	WRAP_DOUBLE_DONE, /* one of many I/Os ends twice */
	WRAP_COUNT,
};
extern const char *const mutant_names[];

/* For all paths of a world. */
struct wrap_trouble {
	struct rng rng;
	double share; /* of the I/Os that are answered so; 0: none */
};

struct wrap {
	struct path *path;
	const struct path_ops *ops; /* the real ones */
	void (*event)(void *arg, struct path *path, enum path_event event, const char *why);
	void *arg;
	enum wrap_mutant mutant;
	struct wrap_trouble *trouble;
	bool identified;
	struct path_identity identity;
	struct path_io *refused, **refused_tail;
	struct path_fence *proved;
	struct path_io *doubled; /* ends once too often */
	struct loop_task later;
};

/* Before the path is given to MPIO, and after that. */
void wrap_begin(struct wrap *wrap, struct path *path, enum wrap_mutant mutant,
		struct wrap_trouble *trouble);
void wrap_events(struct wrap *wrap);

#endif
