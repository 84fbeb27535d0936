/* SPDX-License-Identifier: MIT
 *
 * Seeded simulation of the array, in the manner of SQLite's and TigerBeetle's: random requests to
 * volumes over pool, members and RAID sets on file stores, with drives that fail and return,
 * sectors that go bad, crashes at any call, rebuilds and scrubs, against a shadow of what each
 * sector may hold.  Everything runs on a virtual clock and follows from the seed.
 *
 *   array_seeds [--seeds N] [--first K] [--level NAME] [--mutant NAME] [--dir DIR] [--verbose]
 * [--trace]
 *
 * Exit status: 0 all seeds held; 1 one did not, and the line that repeats it was printed; 2 usage.
 * With --mutant, a fault of the storage below: 0 when a seed noticed it.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "tests/sim/array/crash.h"
#include "tests/sim/array/load.h"

enum { STEPS_LEAST = 30, STEPS_MOST = 120 };

struct options {
	uint64_t seeds, first;
	const char *level, *dir;
	enum crash_mutant mutant;
	bool verbose, trace;
};

struct totals {
	uint64_t requests, crashes, rebuilds, scrubs;
};

struct run {
	struct world world;
	struct load load;
	bool power;
	struct totals totals;
};

static uint64_t pick(struct run *run, uint64_t least, uint64_t most)
{
	return least + rng_below(&run->world.rng, most - least + 1);
}

static void count_background(struct run *run)
{
	for (unsigned i = 0; i < run->world.pool.members.count; i++) {
		struct rebuild_progress rebuild;
		struct scrub_progress scrub;
		member_rebuild_progress(world_member(&run->world, i), &rebuild);
		member_scrub_progress(world_member(&run->world, i), &scrub);
		run->totals.rebuilds += rebuild.completed;
		run->totals.scrubs += scrub.completed;
	}
}

/* ---- down and up again ---- */

static void go_down(struct run *run)
{
	run->totals.crashes++;
	world_trace(&run->world, "crash");
	if (run->world.group)
		count_background(run);
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
	if (!load_wait(&run->load))
		return false;
	world_trace(&run->world, "restart");
	count_background(run);
	world_close(&run->world);
	return up(run);
}

/* ---- one seed ---- */

static void pass_time(struct run *run, uint64_t most_ns)
{
	struct loop *loop = run->world.loop;
	(void)loop_run_until(loop, loop_now_ns(loop) + pick(run, 0, most_ns));
}

/* A drive that was away for a moment counts as touched until all requests of that time have ended,
 * and so does one that an update missed which a crash cut off, until that is replayed. */
static void strike(struct run *run, void (*blow)(struct world *world))
{
	struct loop *loop = run->world.loop;

	if (run->world.shaken && !crash_happened() && load_wait(&run->load))
		(void)loop_run_until(loop, loop_now_ns(loop) + NS_PER_S);
	run->world.shaken = false;
	if (!crash_happened() && !run->power)
		blow(&run->world);
}

static bool step(struct run *run)
{
	struct world *world = &run->world;
	uint64_t action = pick(run, 0, 199);

	if (action < 150)
		load_issue(&run->load);
	else if (action < 170)
		pass_time(run, 20 * NS_PER_MS);
	else if (action < 175)
		strike(run, world_fail_drive);
	else if (action < 182)
		world_return_drive(world);
	else if (action < 188)
		strike(run, world_damage);
	else if (action < 189)
		world_scrub(world);
	else if (action < 192)
		pass_time(run, NS_PER_S);
	else if (action < 198)
		crash_arm(pick(run, 1, pick(run, 0, 1) ? 20 : 200));
	else if (action == 198 && !crash_happened())
		return restart(run);
	run->load.lost = crash_happened();
	return !crash_happened() || recover(run);
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
	if (run->world.fault[0] || !load_wait(&run->load))
		return;
	world_return_all(&run->world);
	if (!world_heal(&run->world) || !load_verify(&run->load) || !world_scrub_clean(&run->world))
		return;
	if (load_beyond_tolerance(&run->load))
		(void)load_verify(&run->load);
}

/* True: the seed held. */
static bool run_seed(const struct options *options, uint64_t seed, struct totals *totals)
{
	struct run *run = calloc(1, sizeof *run);
	bool held = false;

	if (!run || !world_make(&run->world, seed, options->level, options->dir) ||
	    !load_init(&run->load, &run->world)) {
		fprintf(stderr, "array_seeds: cannot prepare seed %llu\n",
			(unsigned long long)seed);
		exit(3);
	}
	run->world.trace = options->trace;
	run->power = options->mutant == MUTANT_LYING_SYNC || pick(run, 0, 2) == 0;
	/* Power takes data and checksum apart: what was not flushed may then be unreadable. */
	for (unsigned i = 0; i < WORLD_MEMBERS; i++)
		if (run->power || options->mutant == MUTANT_LOST_WRITE)
			run->world.members[i].checksums = MEMBER_CHECKSUMS_OFF;
	crash_begin(run->world.dir, seed, run->power, options->mutant);
	if (up(run))
		run_steps(run);
	held = run->world.fault[0] == '\0';
	if (run->world.group)
		count_background(run);
	if (!held && options->mutant == MUTANT_NONE) {
		printf("seed %llu (%s, %u drives): %s\n", (unsigned long long)seed,
		       run->world.level->name, run->world.actives, run->world.fault);
		printf("again: array_seeds --seeds 1 --first %llu%s%s\n", (unsigned long long)seed,
		       options->level ? " --level " : "", options->level ? options->level : "");
	}
	totals->requests += run->load.requests;
	totals->crashes += run->totals.crashes;
	totals->rebuilds += run->totals.rebuilds;
	totals->scrubs += run->totals.scrubs;
	if (options->verbose)
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

static int usage(void)
{
	fputs("usage: array_seeds [--seeds N] [--first K] [--level NAME] [--mutant NAME] "
	      "[--dir DIR] [--verbose] [--trace]\n",
	      stderr);
	return 2;
}

static bool parse_mutant(const char *name, enum crash_mutant *ret_mutant)
{
	for (unsigned i = 0; crash_mutant_names[i]; i++) {
		if (strcmp(crash_mutant_names[i], name) == 0) {
			*ret_mutant = (enum crash_mutant)i;
			return true;
		}
	}
	return false;
}

static bool parse_number(const char *text, uint64_t *ret_number)
{
	char *end;
	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return *text && !*end && !errno;
}

static bool parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
	    {"seeds", required_argument, NULL, 's'},  {"first", required_argument, NULL, 'f'},
	    {"level", required_argument, NULL, 'l'},  {"dir", required_argument, NULL, 'd'},
	    {"mutant", required_argument, NULL, 'm'}, {"verbose", no_argument, NULL, 'v'},
	    {"trace", no_argument, NULL, 't'},	      {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (option) {
		case 's':
			if (!parse_number(optarg, &options->seeds))
				return false;
			break;
		case 'f':
			if (!parse_number(optarg, &options->first))
				return false;
			break;
		case 'm':
			if (!parse_mutant(optarg, &options->mutant))
				return false;
			break;
		case 'l':
			options->level = optarg;
			break;
		case 'd':
			options->dir = optarg;
			break;
		case 't':
			options->trace = true;
			break;
		case 'v':
			options->verbose = true;
			break;
		default:
			return false;
		}
	}
	return optind == argc && (!options->level || raid_find(options->level));
}

int main(int argc, char **argv)
{
	/* Memory where there is such a file system: nothing needs to last. */
	struct options options = {.seeds = 100, .dir = "/dev/shm"};
	struct totals totals = {0};
	uint64_t caught = 0, done = 0;

	if (access(options.dir, W_OK))
		options.dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	if (!parse(argc, argv, &options))
		return usage();
	log_set_level(options.trace ? LOG_LEVEL_WARN : LOG_LEVEL_NONE);
	for (; done < options.seeds; done++) {
		if (run_seed(&options, options.first + done, &totals))
			continue;
		if (options.mutant == MUTANT_NONE)
			return 1;
		caught++;
	}
	printf("%llu seeds, %llu requests, %llu crashes, %llu rebuilds, %llu scrubs",
	       (unsigned long long)done, (unsigned long long)totals.requests,
	       (unsigned long long)totals.crashes, (unsigned long long)totals.rebuilds,
	       (unsigned long long)totals.scrubs);
	if (options.mutant == MUTANT_NONE) {
		puts(": no mismatch");
		return 0;
	}
	printf(": %llu noticed the mutant %s\n", (unsigned long long)caught,
	       crash_mutant_names[options.mutant]);
	return caught ? 0 : 1;
}
