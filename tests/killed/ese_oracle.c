/* SPDX-License-Identifier: MIT
 *
 * See ese_oracle.h.
 */
#include "tests/killed/ese_oracle.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

bool oracle_init(struct oracle *oracle, unsigned keys)
{
	*oracle = (struct oracle){.keys = keys};
	for (unsigned i = 0; i < keys; i++) {
		oracle->key[i].ops = calloc(ORACLE_OPS_MAX, sizeof *oracle->key[i].ops);
		if (!oracle->key[i].ops)
			return false;
	}
	return keys <= ORACLE_KEYS_MAX;
}

void oracle_done(struct oracle *oracle)
{
	for (unsigned i = 0; i < oracle->keys; i++)
		free(oracle->key[i].ops);
}

void oracle_begin(struct oracle *oracle, uint32_t key, enum oracle_kind kind, bool lazy)
{
	struct oracle_key *of = &oracle->key[key];

	/* What happens to a key more often than that is not followed: the load leaves it alone. */
	if (of->count == ORACLE_OPS_MAX)
		abort();
	of->ops[of->count++] = (struct oracle_op){.kind = kind, .lazy = lazy};
}

void oracle_end(struct oracle *oracle, uint32_t key, bool failed, uint32_t version, uint64_t dbtime,
		uint64_t now_ns)
{
	struct oracle_key *of = &oracle->key[key];
	struct oracle_op *op = &of->ops[of->count - 1];

	if (failed) {
		of->count--;
		return;
	}
	op->ended = true;
	op->ended_ns = now_ns;
	op->dbtime = dbtime;
	op->after = (struct oracle_state){op->kind != ORACLE_DELETE, version};
	if (op->lazy)
		oracle->lazy++;
	else
		oracle->durable++;
}

void oracle_check_begin(struct oracle *oracle, uint64_t dead_ns, uint64_t bound_ns)
{
	oracle->low = 0;
	oracle->high = UINT64_MAX;
	oracle->checked_ns = dead_ns;
	oracle->bound_ns = bound_ns;
	for (unsigned i = 0; i < oracle->keys; i++)
		oracle->key[i].told = false;
}

static bool fits(const struct oracle_key *of, unsigned done, bool exists, uint32_t version)
{
	const struct oracle_op *op = done ? &of->ops[done - 1] : NULL;
	struct oracle_state state = op ? op->after : of->base;

	if (op && !op->ended) /* nobody knows its version */
		return exists == (op->kind != ORACLE_DELETE);
	return state.exists == exists && (!exists || state.version == version);
}

/* So many operations of the key must be there. */
static unsigned must_be_there(const struct oracle *oracle, const struct oracle_key *of)
{
	unsigned must = 0;

	for (unsigned i = 0; i < of->count; i++) {
		const struct oracle_op *op = &of->ops[i];

		if (op->ended &&
		    (!op->lazy || op->ended_ns + oracle->bound_ns < oracle->checked_ns))
			must = i + 1;
	}
	return must;
}

/* The key is as after DONE of its operations: that bounds the cut. */
static void bound_cut(struct oracle *oracle, uint32_t key, unsigned done)
{
	const struct oracle_key *of = &oracle->key[key];

	if (done && of->ops[done - 1].ended && of->ops[done - 1].dbtime > oracle->low) {
		oracle->low = of->ops[done - 1].dbtime;
		oracle->low_key = key;
	}
	if (done < of->count && of->ops[done].ended && of->ops[done].dbtime < oracle->high) {
		oracle->high = of->ops[done].dbtime;
		oracle->high_key = key;
	}
}

static void count(struct oracle *oracle, const struct oracle_key *of, unsigned done)
{
	for (unsigned i = done; i < of->count; i++)
		oracle->lazy_lost += of->ops[i].ended && of->ops[i].lazy;
	if (of->count && !of->ops[of->count - 1].ended) {
		oracle->undecided++;
		oracle->undecided_there += done == of->count;
	}
}

bool oracle_found(struct oracle *oracle, uint32_t key, bool exists, uint32_t version)
{
	struct oracle_key *of = &oracle->key[key];
	unsigned must = must_be_there(oracle, of), found = 0, done = 0;

	for (unsigned i = must; i <= of->count; i++)
		if (fits(of, i, exists, version)) {
			found++;
			done = i;
		}
	if (!found) {
		const struct oracle_op *op = must ? &of->ops[must - 1] : NULL;

		snprintf(
		    oracle->why, sizeof oracle->why,
		    "key %u is %s (version %u); of %u operations since the last recovery %u "
		    "must be there (the last of these is %s, dbtime %llu, ended %.3f s before), "
		    "before them it was %s (version %u)",
		    key, exists ? "there" : "not there", version, of->count, must,
		    !op	       ? "none"
		    : op->lazy ? "lazy"
			       : "durable",
		    op ? (unsigned long long)op->dbtime : 0,
		    op ? ((double)oracle->checked_ns - (double)op->ended_ns) / 1e9 : 0,
		    of->base.exists ? "there" : "not there", of->base.version);
		return false;
	}
	if (found == 1) { /* else nobody knows which */
		bound_cut(oracle, key, done);
		count(oracle, of, done);
	}
	of->base = (struct oracle_state){exists, version};
	of->count = 0;
	of->told = true;
	return true;
}

bool oracle_check_end(struct oracle *oracle)
{
	for (unsigned i = 0; i < oracle->keys; i++)
		if (!oracle->key[i].told) {
			snprintf(oracle->why, sizeof oracle->why, "key %u was not read", i);
			return false;
		}
	if (oracle->low < oracle->high)
		return true;
	snprintf(
	    oracle->why, sizeof oracle->why,
	    "the log was not redone up to one point: key %u has the update of dbtime %llu, key "
	    "%u lacks that of %llu",
	    oracle->low_key, (unsigned long long)oracle->low, oracle->high_key,
	    (unsigned long long)oracle->high);
	return false;
}
