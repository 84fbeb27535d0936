/* SPDX-License-Identifier: MIT
 *
 * Seeded simulation of the array, in the manner of SQLite's and TigerBeetle's: random requests to
 * volumes over pool, members, caches and RAID sets on file stores, with drives that fail and
 * return, sectors that go bad, crashes at any call, rebuilds and scrubs, members, controllers and
 * batteries that are lost and return, pages that move, against a shadow of what each sector may
 * hold.  Everything runs on a virtual clock and follows from the seed.
 *
 *   array_seeds [--seeds N] [--first K] [--level NAME] [--mutant NAME] [--dir DIR] [--verbose]
 * [--trace]
 *
 * Exit status: 0 all seeds held; 1 one did not, and the line that repeats it was printed; 2 usage.
 * With --mutant, a fault of the storage below: 0 when a seed noticed it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "target/array/cache.h"
#include "tests/sim/array/crash.h"
#include "tests/sim/array/load.h"
#include "tests/sim/array/roam.h"
#include "tests/sim/array/trouble.h"
#include "tests/sim/seeds.h"

enum { STEPS_LEAST = 30, STEPS_MOST = 120 };

struct totals {
	uint64_t requests, crashes, rebuilds, scrubs, moves, failovers, recovered_bytes;
};

struct run {
	struct world world;
	struct load load;
	bool power;
	struct totals totals;
};

static uint64_t pick(struct run *run, uint64_t least, uint64_t most)
{
	return world_pick(&run->world, least, most);
}

/* What is counted since the opening is added up before the end. */
static void count_background(struct run *run)
{
	for (unsigned i = 0; i < run->world.pool.members.count; i++) {
		const struct member *member = world_member(&run->world, i);
		struct rebuild_progress rebuild;
		struct scrub_progress scrub;
		struct cache_status cache;
		member_rebuild_progress(member, &rebuild);
		member_scrub_progress(member, &scrub);
		run->totals.rebuilds += rebuild.completed;
		run->totals.scrubs += scrub.completed;
		if (member_cache_status(member, &cache))
			run->totals.recovered_bytes += cache.counters.recovered_bytes;
	}
	run->totals.moves += roam_moves_done(&run->world);
	run->totals.failovers += trouble_failovers(&run->world);
}

/* ---- down and up again ---- */

/* A memory that need not count: sometimes somebody gives it up. */
static void give_up_memories(struct run *run)
{
	char name[32];

	for (unsigned i = 0; i < run->world.pool.members.count; i++) {
		if (!trouble_memory_is_spent(&run->world, i) || pick(run, 0, 1))
			continue;
		snprintf(name, sizeof name, "%s-cache.nvram", run->world.members[i].name);
		world_trace(&run->world, "%s is given up", name);
		crash_give_up(name);
	}
}

static void go_down(struct run *run)
{
	run->totals.crashes++;
	world_trace(&run->world, "crash");
	if (run->world.group) {
		count_background(run);
		give_up_memories(run);
	}
	run->load.lost = true;
	world_close(&run->world);
	run->load.lost = false;
	crash_recover();
	for (unsigned i = 0; run->power && i < run->world.config.volumes.count; i++)
		shadow_power_lost(&run->world.shadows[i]);
}

static bool up(struct run *run)
{
	world_forget_faults(&run->world);
	while (!world_open(&run->world)) {
		if (!crash_happened())
			return false;
		run->world.fault[0] = '\0';
		go_down(run);
	}
	world_trace(&run->world, "up");
	if (!roam_check(&run->world, false))
		return false;
	/* Redundancy of what was not on stable storage may not fit: that is for a scrub. */
	return !run->power || run->totals.crashes == 0 || crash_happened() ||
	       world_scrub_any(&run->world);
}

static bool recover(struct run *run)
{
	go_down(run);
	if (pick(run, 0, 3) == 0)
		crash_arm(pick(run, 1, 60)); /* and again while it recovers */
	return up(run);
}

static bool restart(struct run *run)
{
	unsigned empty = roam_find_empty(&run->world);

	if (crash_happened())
		return true;
	if (!load_wait(&run->load))
		return false;
	world_trace(&run->world, "restart");
	count_background(run);
	world_close(&run->world);
	if (!crash_happened() && empty < run->world.pool.members.count)
		roam_leave(&run->world, empty);
	else if (!crash_happened())
		roam_join(&run->world);
	return up(run);
}

/* ---- what happens ---- */

/* A drive that was away for a moment counts as touched until all requests of that time have ended,
 * and so does one that an update missed which a crash cut off, until that is replayed. */
static bool strike(struct run *run, void (*blow)(struct world *world))
{
	struct loop *loop = run->world.loop;
	uint64_t rest_ns = (trouble_is_slow(&run->world) ? 5 : 1) * NS_PER_S;

	if (run->world.shaken && !crash_happened() && load_wait(&run->load))
		(void)loop_run_until(loop, loop_now_ns(loop) + rest_ns);
	run->world.shaken = false;
	if (!crash_happened() && !run->power)
		blow(&run->world);
	return true;
}

static bool issue(struct run *run)
{
	load_issue(&run->load);
	return true;
}

static bool pass_some(struct run *run)
{
	world_pass(&run->world, 20 * NS_PER_MS);
	return true;
}

static bool pass_more(struct run *run)
{
	world_pass(&run->world, NS_PER_S);
	return true;
}

static bool fail_drive(struct run *run)
{
	return strike(run, world_fail_drive);
}

static bool damage_drive(struct run *run)
{
	return strike(run, world_damage);
}

static bool arm(struct run *run)
{
	crash_arm(pick(run, 1, pick(run, 0, 1) ? 20 : 200));
	return true;
}

static bool crash(struct run *run)
{
	crash_now();
	return true;
}

/* Requests go to one page, and some member is slow, for as long as the balancer needs to see it. */
static bool hot_spell(struct run *run)
{
	if (!run->world.roams)
		return true;
	roam_focus(&run->world);
	roam_slow(&run->world);
	for (unsigned i = 0; i < 80 && !crash_happened(); i++) {
		load_issue(&run->load);
		world_pass(&run->world, run->world.pool.balance.every_ns / 10);
	}
	return true;
}

/* Of worlds, and of those where pages move. */
static const struct action {
	unsigned weight, roaming;
	bool (*act)(struct run *run);
	void (*happen)(struct world *world);
} actions[] = {
    {750, 650, issue, NULL},
    {100, 100, pass_some, NULL},
    {15, 25, pass_more, NULL},
    {25, 15, fail_drive, NULL},
    {35, 25, NULL, world_return_drive},
    {30, 15, damage_drive, NULL},
    {5, 5, NULL, world_scrub},
    {30, 30, arm, NULL},
    {3, 3, crash, NULL},
    {5, 15, restart, NULL},
    {6, 6, NULL, trouble_member},
    {8, 8, NULL, trouble_controller},
    {8, 8, NULL, trouble_battery},
    {25, 25, NULL, trouble_cure},
    {0, 30, NULL, roam_drain},
    {0, 5, NULL, roam_balance},
    {0, 5, NULL, roam_slow},
    {0, 5, NULL, roam_focus},
    {0, 3, hot_spell, NULL},
};

static const struct action *choose_action(struct run *run)
{
	bool roams = run->world.roams;
	uint64_t all = 0, at;
	size_t i = 0;

	for (size_t a = 0; a < ARRAY_SIZE(actions); a++)
		all += roams ? actions[a].roaming : actions[a].weight;
	for (at = pick(run, 0, all - 1);; i++) {
		unsigned weight = roams ? actions[i].roaming : actions[i].weight;
		if (at < weight)
			return &actions[i];
		at -= weight;
	}
}

static bool step(struct run *run)
{
	const struct action *action = choose_action(run);

	if (action->act && !action->act(run))
		return false;
	if (action->happen && !crash_happened())
		action->happen(&run->world);
	/* Copies take longer than requests. */
	if (run->world.roams && !crash_happened() && roam_is_moving(&run->world) && pick(run, 0, 1))
		world_pass(&run->world, 100 * NS_PER_MS);
	run->load.lost = crash_happened();
	return !crash_happened() || recover(run);
}

/* Nothing is under way, and nothing is wrong any more. */
static bool come_to_rest(struct run *run)
{
	struct world *world = &run->world;

	if (world->fault[0] || !trouble_calm(world) || !load_wait(&run->load))
		return false;
	world_return_all(world);
	return world_heal(world) && roam_settle(world);
}

static void run_steps(struct run *run)
{
	uint64_t steps = pick(run, STEPS_LEAST, STEPS_MOST);

	for (uint64_t i = 0; i < steps && !run->world.fault[0]; i++)
		if (!step(run))
			return;
	crash_disarm();
	if (crash_happened()) { /* in the scrub after a crash */
		go_down(run);
		if (!up(run))
			return;
	}
	if (!come_to_rest(run) || !load_verify(&run->load) || !roam_check(&run->world, true) ||
	    !world_scrub_clean(&run->world))
		return;
	if (load_beyond_tolerance(&run->load))
		(void)load_verify(&run->load);
}

static void add_totals(struct totals *sum, const struct totals *more)
{
	sum->requests += more->requests;
	sum->crashes += more->crashes;
	sum->rebuilds += more->rebuilds;
	sum->scrubs += more->scrubs;
	sum->moves += more->moves;
	sum->failovers += more->failovers;
	sum->recovered_bytes += more->recovered_bytes;
}

/* True: the seed held. */
static bool run_seed(const struct seeds *seeds, uint64_t seed, struct totals *totals)
{
	struct run *run = calloc(1, sizeof *run);
	bool held = false;

	if (!run || !world_make(&run->world, seed, seeds->extra_value, seeds->dir) ||
	    !load_init(&run->load, &run->world)) {
		fprintf(stderr, "array_seeds: cannot prepare seed %llu\n",
			(unsigned long long)seed);
		exit(3);
	}
	run->world.trace = seeds->trace;
	run->power = seeds->mutant == MUTANT_LYING_SYNC || pick(run, 0, 2) == 0;
	/* Power takes data and checksum apart: what was not flushed may then be unreadable. */
	for (unsigned i = 0; i < WORLD_MEMBERS; i++)
		if (run->power || seeds->mutant == MUTANT_LOST_WRITE)
			run->world.members[i].checksums = MEMBER_CHECKSUMS_OFF;
	crash_begin(run->world.dir, seed, run->power, seeds->mutant);
	roam_forget_writes(seeds->mutant == MUTANT_LOST_UPDATE);
	if (up(run))
		run_steps(run);
	held = run->world.fault[0] == '\0';
	if (run->world.group)
		count_background(run);
	if (!held && seeds->mutant == MUTANT_NONE) {
		printf("seed %llu (%s, %u drives): %s\n", (unsigned long long)seed,
		       run->world.level->name, run->world.actives, run->world.fault);
		printf("again: array_seeds --seeds 1 --first %llu%s%s\n", (unsigned long long)seed,
		       seeds->extra_value ? " --level " : "",
		       seeds->extra_value ? seeds->extra_value : "");
	}
	run->totals.requests = run->load.requests;
	add_totals(totals, &run->totals);
	if (seeds->verbose)
		printf("seed %llu: %s over %u drives, %llu requests, %llu crashes, %llu rebuilds\n",
		       (unsigned long long)seed, run->world.level->name, run->world.actives,
		       (unsigned long long)run->load.requests,
		       (unsigned long long)run->totals.crashes,
		       (unsigned long long)run->totals.rebuilds);
	run->load.lost = true;
	world_remove(&run->world);
	load_done(&run->load);
	crash_end();
	free(run);
	return held;
}

/* ---- the program ---- */

int main(int argc, char **argv)
{
	struct seeds seeds = {
	    .program = "array_seeds", .mutant_names = crash_mutant_names, .extra = "level"};
	struct totals totals = {0};
	uint64_t caught = 0, done = 0;

	if (!seeds_parse(&seeds, argc, argv))
		return 2;
	if (seeds.extra_value && !raid_find(seeds.extra_value)) {
		fprintf(stderr, "array_seeds: there is no level %s\n", seeds.extra_value);
		return 2;
	}
	log_set_level(seeds.trace ? LOG_LEVEL_WARN : LOG_LEVEL_NONE);
	if (seeds.trace)
		(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (; done < seeds.count; done++) {
		if (run_seed(&seeds, seeds.first + done, &totals))
			continue;
		if (seeds.mutant == MUTANT_NONE)
			return 1;
		caught++;
	}
	printf("%llu seeds, %llu requests, %llu crashes, %llu rebuilds, %llu scrubs, %llu pages "
	       "moved, %llu failovers, %llu MB recovered from caches",
	       (unsigned long long)done, (unsigned long long)totals.requests,
	       (unsigned long long)totals.crashes, (unsigned long long)totals.rebuilds,
	       (unsigned long long)totals.scrubs, (unsigned long long)totals.moves,
	       (unsigned long long)totals.failovers,
	       (unsigned long long)totals.recovered_bytes / 1000000);
	if (seeds.mutant == MUTANT_NONE) {
		puts(": no mismatch");
		return 0;
	}
	printf(": %llu noticed the mutant %s\n", (unsigned long long)caught,
	       crash_mutant_names[seeds.mutant]);
	return caught ? 0 : 1;
}
