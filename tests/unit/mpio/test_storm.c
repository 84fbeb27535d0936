/* SPDX-License-Identifier: MIT
 *
 * Seeded storms: random I/O while paths die, logins fail, targets answer unit attentions, BUSY and
 * aborts, and what was on its way over a lost path is executed later.  Four oracles
 *  - a shadow disk: what was acknowledged is read back; a write that failed is old or new;
 *  - every io ends exactly once;
 *  - the fence: while a lost write can still be executed no other write of its range is sent, but
 *    an older lost one, and no re-issue of it while another write of its range is in flight;
 *  - when all I/O has ended, late writes change nothing.
 * Without the fence, or with one that holds for too short, the first and the last find stale data.
 *
 * `test_storm SEED` runs one seed; a failing seed prints the command that repeats it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "rig.h"

enum {
	SEEDS = 100,
	MUTANT_SEEDS = 10,
	DEPTH = 48,
	IOS = 1500,
	BLOCKS = 256, /* few, so that ranges meet */
	IO_BLOCKS_MAX = 12,
	MAYBE_MAX = 64, /* failed writes since the last acknowledged one of a block */
};

struct storm_io {
	struct rig_io *rio;
	struct storm *storm;
	uint64_t block, blocks;
	uint32_t generation;
};

struct storm {
	struct rig rig;
	struct rng rng;
	bool overlapping; /* ranges may meet: no shadow disk then, but fences are tested */
	struct storm_io *slots[DEPTH];
	unsigned started, ended, failed;
	unsigned losses;
	unsigned
	    lost[IOS + 1]; /* by generation: >0: a lost write; older ones have smaller numbers */
	bool mutant;	   /* stale data is counted, not an error */
	unsigned stale;	   /* blocks */
	unsigned early;	   /* writes sent where a lost one may still come */
	bool draining;
	bool busy[BLOCKS];
	uint32_t shadow[BLOCKS];
	uint32_t maybe[BLOCKS][MAYBE_MAX]; /* what failed writes may have left */
	unsigned maybes[BLOCKS];
	struct loop_timer fault;
	uint64_t seed;
};

static void stamp(struct storm_io *sio)
{
	for (uint64_t i = 0; i < sio->blocks; i++) {
		uint32_t words[2] = {sio->generation, (uint32_t)(sio->block + i)};

		memcpy(sio->rio->data + i * FAKE_BLOCK_BYTES, words, sizeof words);
		memcpy(sio->rio->data + (i + 1) * FAKE_BLOCK_BYTES - sizeof words, words,
		       sizeof words);
	}
}

static void check_block(struct storm *storm, const uint8_t *data, uint64_t block)
{
	uint32_t head[2], tail[2];

	if (storm->mutant && storm->overlapping)
		return;
	memcpy(head, data, sizeof head);
	memcpy(tail, data + FAKE_BLOCK_BYTES - sizeof tail, sizeof tail);
	assert_int_equal(head[0], tail[0]); /* torn? */
	if (head[0]) {
		assert_int_equal(head[1], block); /* foreign? */
		assert_int_equal(tail[1], block);
	}
	if (head[0] == storm->shadow[block])
		return;
	for (unsigned i = 0; i < storm->maybes[block]; i++)
		if (head[0] == storm->maybe[block][i])
			return;
	storm->stale++;
	if (storm->mutant)
		return;
	fail_msg("block %llu holds %u, acknowledged was %u", (unsigned long long)block, head[0],
		 storm->shadow[block]);
}

static void submit_one(struct storm *storm, unsigned slot);

static void account(struct storm *storm, const struct storm_io *sio)
{
	const struct io *io = &sio->rio->io;

	for (uint64_t i = 0; i < sio->blocks; i++) {
		uint64_t block = sio->block + i;

		storm->busy[block] = false;
		if (io->op == IO_WRITE && io->status == 0) {
			storm->shadow[block] = sio->generation;
			storm->maybes[block] = 0;
		} else if (io->op == IO_WRITE) {
			assert_true(storm->maybes[block] < MAYBE_MAX);
			storm->maybe[block][storm->maybes[block]++] = sio->generation;
		} else if (io->op == IO_READ && io->status == 0) {
			check_block(storm, sio->rio->data + i * FAKE_BLOCK_BYTES, block);
		}
	}
}

static void storm_done(struct io *io)
{
	struct storm_io *sio = io->owner;
	struct storm *storm = sio->storm;

	for (unsigned slot = 0; slot < DEPTH; slot++) {
		if (storm->slots[slot] != sio)
			continue;
		storm->slots[slot] = NULL;
		storm->ended++;
		storm->failed += io->status != 0;
		if (!storm->overlapping)
			account(storm, sio);
		rig_io_free(sio->rio);
		free(sio);
		if (!storm->draining)
			submit_one(storm, slot);
		return;
	}
	fail_msg("an io ended that was not open");
}

static bool pick_range(struct storm *storm, uint64_t *block, uint64_t *blocks)
{
	for (unsigned tries = 0; tries < 50; tries++) {
		bool clear = true;

		*blocks = 1 + rng_below(&storm->rng, IO_BLOCKS_MAX);
		*block = rng_below(&storm->rng, BLOCKS - *blocks + 1);
		for (uint64_t i = 0; i < *blocks; i++)
			clear &= !storm->busy[*block + i];
		if (clear || storm->overlapping)
			return true;
	}
	return false;
}

static void submit_one(struct storm *storm, unsigned slot)
{
	uint64_t block, blocks;
	struct storm_io *sio;
	enum io_op op = rng_below(&storm->rng, 10) < 6 ? IO_WRITE : IO_READ;

	if (storm->started == IOS || !pick_range(storm, &block, &blocks))
		return;
	if (rng_below(&storm->rng, 40) == 0) {
		op = IO_FLUSH;
		blocks = 0;
	}
	sio = calloc(1, sizeof *sio);
	assert_non_null(sio);
	sio->storm = storm;
	sio->block = block;
	sio->blocks = blocks;
	sio->generation = ++storm->started;
	sio->rio = rig_io_new(&storm->rig, op, block, blocks, 0);
	sio->rio->io.owner = sio;
	sio->rio->io.done = storm_done;
	if (op == IO_WRITE)
		stamp(sio);
	for (uint64_t i = 0; i < blocks; i++)
		storm->busy[block + i] = true;
	storm->slots[slot] = sio;
	io_submit(storm->rig.layer, &sio->rio->io);
}

/* Whose command this is: the buffer tells. */
static struct storm_io *sio_of(struct storm *storm, const struct path_io *pio)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		struct storm_io *sio = storm->slots[i];
		const uint8_t *at = pio->iov_count ? pio->iov[0].iov_base : NULL;

		if (sio && at && at >= sio->rio->data &&
		    at < sio->rio->data + sio->blocks * FAKE_BLOCK_BYTES)
			return sio;
	}
	return NULL;
}

static void on_lost(void *arg, struct fake_path *fake, const struct path_io *pio)
{
	struct storm *storm = arg;
	struct storm_io *sio = sio_of(storm, pio);

	if (pio->op == IO_WRITE && sio && !storm->lost[sio->generation])
		storm->lost[sio->generation] = ++storm->losses;
}

/* May it be sent while GHOST may still be executed?  True: it is the same write. */
static bool check_ghost(struct storm *storm, const struct storm_io *self,
			const struct fake_ghost *ghost)
{
	uint32_t generation;
	unsigned lost = storm->lost[self->generation];

	memcpy(&generation, ghost->data, sizeof generation);
	if (generation == self->generation)
		return true;
	if (lost && lost < storm->lost[generation])
		return false;
	storm->early++;
	if (!storm->mutant)
		fail_msg("write %u is sent while lost write %u may still come", self->generation,
			 generation);
	return false;
}

static void check_in_flight(const struct storm *storm, const struct path_io *pio)
{
	for (unsigned i = 0; i < storm->rig.paths; i++) {
		const struct fake_cmd *cmd;

		TAILQ_FOREACH (cmd, &storm->rig.fakes[i]->cmds, link)
			if (cmd->pio != pio && cmd->pio->op == IO_WRITE &&
			    pio->lba < cmd->pio->lba + cmd->pio->blocks &&
			    cmd->pio->lba < pio->lba + pio->blocks)
				fail_msg("a lost write is sent again beside another one");
	}
}

static void on_submit(void *arg, struct fake_path *fake, const struct path_io *pio)
{
	struct storm *storm = arg;
	struct storm_io *self = sio_of(storm, pio);
	const struct fake_ghost *ghost;
	bool own = false;

	if (!self || pio->op != IO_WRITE)
		return;
	TAILQ_FOREACH (ghost, &storm->rig.disk.ghosts, link)
		if (pio->lba < ghost->lba + ghost->blocks && ghost->lba < pio->lba + pio->blocks)
			own |= check_ghost(storm, self, ghost);
	if (own && !storm->mutant)
		check_in_flight(storm, pio);
}

static void on_fault(void *arg)
{
	struct storm *storm = arg;
	struct rig *rig = &storm->rig;
	struct fake_path *fake = rig->fakes[rng_below(&storm->rng, rig->paths)];
	uint64_t kind = rng_below(&storm->rng, 10);

	if (kind < 4 && fake->path.up)
		fake_path_kill(fake, "storm");
	else if (kind < 6)
		fake->refuse_login = kind == 4 && rng_below(&storm->rng, 2);
	else if (kind < 8)
		fake->connect_error = kind == 6 && rng_below(&storm->rng, 2) ? -ENETUNREACH : 0;
	else if (kind == 8 && fake->script_at == fake->script_count && fake->script_at < 100)
		fake_path_script(fake, (struct fake_answer){PATH_SENSE, 2, 6, 0x3f, 0x0e});
	else if (kind == 9)
		fake->service_ns = 50 * NS_PER_US + rng_below(&storm->rng, 2 * NS_PER_MS);
	loop_timer_set(rig->loop, &storm->fault,
		       loop_now_ns(rig->loop) + rng_below(&storm->rng, 4 * NS_PER_MS));
}

enum mutant { AS_IT_IS, NO_FENCE, SHORT_HOLD };

static void set_up(struct storm *storm, uint64_t seed, bool overlapping, enum mutant mutant)
{
	/* Portal groups: one for all, pairs, one a path. */
	unsigned groups = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 2 : RIG_PATHS_MAX;
	struct mpio_config config = {
	    .fence = mutant == NO_FENCE			   ? MPIO_FENCE_NONE
		     : mutant == AS_IT_IS && seed % 7 == 0 ? MPIO_FENCE_STRICT
							   : MPIO_FENCE_RESET,
	    .fence_hold_ns = mutant == SHORT_HOLD ? 1 : 20 * NS_PER_MS,
	    .fence_limit = seed % 11 == 0 ? 40 : 0,
	    .rr_ios = 1 + seed % 3,
	    .policy = (int)(seed % 9), /* every one */
	    .no_path_ns = seed % 2 ? 20 * NS_PER_S : 40 * NS_PER_MS,
	    .reconnect_min_ns = 5 * NS_PER_MS,
	    .reconnect_max_ns = 80 * NS_PER_MS,
	    .max_retries = 100,
	    .queue_depth = 4 + seed % 29,
	};

	memset(storm, 0, sizeof *storm);
	storm->overlapping = overlapping;
	storm->seed = seed;
	storm->mutant = mutant != AS_IT_IS;
	if (mutant == SHORT_HOLD) {
		groups = RIG_PATHS_MAX;
		config.reconnect_min_ns = config.reconnect_max_ns = 120 * NS_PER_MS;
	}
	rng_init(&storm->rng, seed, 77);
	rig_open(&storm->rig, &config, 1 + seed % 4, seed);
	for (unsigned i = 0; i < storm->rig.paths; i++) {
		struct fake_path *fake = storm->rig.fakes[i];

		fake->service_spread_ns = NS_PER_MS;
		fake->trouble = 0.05;
		fake->ghosts = true;
		fake->travel_ns = (mutant == SHORT_HOLD ? 400 : 20) * NS_PER_MS;
		fake->linger_ns = seed % 2 ? 100 * NS_PER_MS : NS_PER_MS;
		fake->identity.portal_group = (int)(i % groups);
		fake->fence_status = seed % 5 == 3 && i == 1 ? -ECONNREFUSED : 0;
		/* Some are split; with overlaps not: the oracle thinks in whole ios. */
		fake->identity.max_transfer_blocks = overlapping ? 0 : 8;
		fake->on_submit = on_submit;
		fake->on_lost = on_lost;
		fake->arg = storm;
	}
	rig_start(&storm->rig);
	loop_timer_init(&storm->fault, on_fault, storm);
	on_fault(storm);
}

static void calm(struct storm *storm)
{
	loop_timer_cancel(storm->rig.loop, &storm->fault);
	for (unsigned i = 0; i < storm->rig.paths; i++) {
		struct fake_path *fake = storm->rig.fakes[i];

		fake->refuse_login = false;
		fake->connect_error = 0;
		fake->trouble = 0;
		fake->script_at = fake->script_count = 0;
	}
}

static void check_totals(struct storm *storm)
{
	uint64_t ios = 0, reads = 0, writes = 0, latencies = 0;

	for (unsigned i = 0; i < storm->rig.paths; i++) {
		const struct mpio_ledger *ledger = rig_ledger(&storm->rig, i);

		assert_int_equal(rig_state(&storm->rig, i), MPIO_PATH_UP);
		assert_int_equal(storm->rig.fakes[i]->path.in_flight, 0);
		assert_true(ledger->reissued <= storm->rig.fakes[i]->lost);
		ios += ledger->ios;
		reads += ledger->reads;
		writes += ledger->writes;
		latencies += ledger->latency.count;
	}
	assert_int_equal(latencies, ios);
	assert_true(reads + writes <= ios);
	assert_int_equal(mpio_waiting(storm->rig.mpio), 0);
}

/* What all have seen as ended stays as it is, whatever still comes. */
static void check_stable(struct storm *storm)
{
	static uint8_t before[BLOCKS * FAKE_BLOCK_BYTES];

	for (unsigned i = 0; i < 6000 && storm->ended < storm->started; i++)
		rig_run_for(&storm->rig, 5 * NS_PER_MS); /* liveness: everything drains */
	assert_int_equal(storm->ended, storm->started);
	memcpy(before, storm->rig.disk.data, sizeof before);
	rig_run_for(&storm->rig, 30 * NS_PER_S);
	for (unsigned i = 0; i < BLOCKS; i++)
		storm->stale +=
		    memcmp(before + i * FAKE_BLOCK_BYTES,
			   storm->rig.disk.data + i * FAKE_BLOCK_BYTES, FAKE_BLOCK_BYTES) != 0;
	if (!storm->mutant)
		assert_int_equal(storm->stale, 0);
}

struct outcome {
	unsigned losses, executed, stale, early;
};

static struct outcome run_storm(uint64_t seed, bool overlapping, enum mutant mutant)
{
	static struct storm storm;
	struct outcome outcome;

	set_up(&storm, seed, overlapping, mutant);
	for (unsigned slot = 0; slot < DEPTH; slot++)
		submit_one(&storm, slot);
	for (unsigned turn = 0; turn < 4000 && storm.started < IOS; turn++) {
		rig_run_for(&storm.rig, 5 * NS_PER_MS);
		for (unsigned slot = 0; slot < DEPTH; slot++)
			if (!storm.slots[slot])
				submit_one(&storm, slot);
	}
	storm.draining = true;
	calm(&storm);
	check_stable(&storm);
	assert_true(mutant != AS_IT_IS || storm.started >= IOS / 2);
	check_totals(&storm);
	for (uint64_t block = 0; block < BLOCKS && !overlapping; block++)
		check_block(&storm, storm.rig.disk.data + block * FAKE_BLOCK_BYTES, block);
	outcome = (struct outcome){storm.losses, storm.rig.disk.ghosts_executed, storm.stale,
				   storm.early};
	rig_close(&storm.rig);
	return outcome;
}

static uint64_t only_seed;

static struct outcome storms(bool overlapping, enum mutant mutant, unsigned seeds)
{
	uint64_t first = only_seed ? only_seed : 1;
	uint64_t last = only_seed ? only_seed : seeds;
	struct outcome sum = {0, 0, 0, 0};

	for (volatile uint64_t seed = first; seed <= last; seed++) {
		/* Known should an assertion end the loop here. */
		struct outcome outcome;
		char repeat[80];

		snprintf(repeat, sizeof repeat, "seed %llu: test_storm %llu",
			 (unsigned long long)seed, (unsigned long long)seed);
		setenv("STORM_SEED", repeat, 1);
		outcome = run_storm(seed, overlapping, mutant);
		sum.losses += outcome.losses;
		sum.executed += outcome.executed;
		sum.stale += outcome.stale;
		sum.early += outcome.early;
	}
	unsetenv("STORM_SEED");
	/* Storms they were. */
	assert_true(only_seed || sum.losses > 20 * seeds);
	assert_true(only_seed || sum.executed > 2 * seeds);
	return sum;
}

static void storms_with_shadow_disk(void **unused)
{
	storms(false, AS_IT_IS, SEEDS);
}

static void storms_with_overlaps(void **unused)
{
	storms(true, AS_IT_IS, SEEDS);
}

/* The tests of the test: what the fence is there for does happen without it. */
static void mutants_are_noticed(void **unused)
{
	struct outcome outcome = storms(false, NO_FENCE, MUTANT_SEEDS);

	assert_true(only_seed || (outcome.stale > 0 && outcome.early > 0));
	outcome = storms(true, NO_FENCE, MUTANT_SEEDS);
	assert_true(only_seed || outcome.early > 0);
	outcome = storms(false, SHORT_HOLD, MUTANT_SEEDS);
	assert_true(only_seed || (outcome.stale > 0 && outcome.early > 0));
}

/* The same seed gives the same run, to the nanosecond. */
static void storms_repeat(void **unused)
{
	uint64_t hash[2] = {0, 0};

	for (unsigned run = 0; run < 2; run++) {
		static struct storm storm;

		set_up(&storm, 42, true, AS_IT_IS);
		for (unsigned slot = 0; slot < DEPTH; slot++)
			submit_one(&storm, slot);
		rig_run_for(&storm.rig, 500 * NS_PER_MS);
		storm.draining = true;
		calm(&storm);
		rig_run_for(&storm.rig, 30 * NS_PER_S);
		for (unsigned i = 0; i < storm.rig.event_count; i++)
			hash[run] = hash[run] * 31 + storm.rig.events[i].at_ns +
				    storm.rig.events[i].reissued;
		for (size_t i = 0; i < (size_t)BLOCKS * FAKE_BLOCK_BYTES; i++)
			hash[run] = hash[run] * 31 + storm.rig.disk.data[i];
		rig_close(&storm.rig);
	}
	assert_int_equal(hash[0], hash[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(storms_with_shadow_disk),
	    cmocka_unit_test(storms_with_overlaps),
	    cmocka_unit_test(mutants_are_noticed),
	    cmocka_unit_test(storms_repeat),
	};
	int failed;

	if (argc > 1)
		only_seed = strtoull(argv[1], NULL, 10);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (getenv("STORM_SEED"))
		fprintf(stderr, "%s\n", getenv("STORM_SEED"));
	return failed;
}
