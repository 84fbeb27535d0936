/* SPDX-License-Identifier: MIT
 *
 * Seeded simulation of the whole system, in the manner of FoundationDB's and TigerBeetle's: hosts
 * with MPIO, links, the iSCSI and SCSI target and its array run as they are on a virtual clock,
 * under random load and random faults, and everything follows from the seed.
 *
 * What has to hold: an acknowledged write is read back; one that failed is there or not, but not in
 * parts, and not after a later one; each request ends once; when the faults are over everything
 * ends, every path comes back and no fence stays; no path is used that leads to another unit.
 *
 *   system_seeds [--seeds N] [--first K] [--mutant NAME] [--dir DIR] [--verbose] [--trace]
 *
 * Exit status: 0 all seeds held; 1 one did not, and the line that repeats it was printed; 2 usage.
 * With --mutant, a fault of the initiator: 0 when a seed noticed it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/log.h"
#include "tests/sim/seeds.h"
#include "tests/sim/system/faults.h"

enum { FAULTS_LEAST = 3, FAULTS_MOST = 16, RUN_TWICE = 3 };
#define PROGRESS_NS (120 * NS_PER_S)
#define RECOVERY_NS (600 * NS_PER_S)

struct totals {
	uint64_t requests, errors, faults, losses, crashes;
	uint64_t hash; /* of the last seed */
};

static void calm(struct world *world, bool on)
{
	world->calm = on;
	for (unsigned i = 0; on && i < world->device_count; i++)
		load_start(&world->devices[i]);
	if (!on)
		world->load = false;
}

/* What is still not as it was before the faults, or NULL. */
static const char *left_over(const struct world *world, unsigned *ret_device, unsigned *ret_path)
{
	for (unsigned i = 0; i < world->device_count; i++) {
		const struct device *device = &world->devices[i];

		*ret_device = i;
		*ret_path = 0;
		for (unsigned p = 0; p < device->path_count; p++) {
			struct mpio_path_info info;

			mpio_path_info(device->mpio, p, &info);
			*ret_path = p;
			if (!mpio_path_logged_in(info.state))
				return mpio_path_state_names[info.state];
		}
		if (mpio_fences(device->mpio) > 0)
			return "fenced";
		if (mpio_waiting(device->mpio) > 0)
			return "waiting";
	}
	return NULL;
}

static void recover(struct world *world)
{
	uint64_t end_ns = loop_now_ns(world->loop) + RECOVERY_NS;
	unsigned device, path;
	const char *what;

	while ((what = left_over(world, &device, &path)) && loop_now_ns(world->loop) < end_ns &&
	       !world->fault[0])
		world_pass(world, NS_PER_S / 4);
	if (what)
		world_fault(world, "device %u path %u is still %s long after the faults", device,
			    path, what);
}

static void run(struct faults *faults)
{
	struct world *world = faults->world;
	uint64_t count = world_pick(world, FAULTS_LEAST, FAULTS_MOST);

	for (unsigned i = 0; i < world->device_count; i++)
		load_start(&world->devices[i]);
	while (faults->count < count && !world->fault[0]) {
		world_pass(world, world_pick(world, 1, 500) * NS_PER_MS);
		faults_mend_due(faults);
		if (world_pick(world, 0, 1))
			faults_begin(faults);
	}
	for (uint64_t ns = 0; ns < 2 * NS_PER_S && !world->fault[0]; ns += NS_PER_S / 4) {
		world_pass(world, NS_PER_S / 4);
		faults_mend_due(faults);
	}
	world_trace(world, "THE FAULTS ARE OVER");
	faults_mend_all(faults);
	world->load = false;
	if (!load_wait(world, PROGRESS_NS))
		return;
	recover(world);
	calm(world, true);
	world_pass(world, NS_PER_S / 4);
	calm(world, false);
	world->calm = true;
	for (unsigned i = 0; i < 2 * world->device_count && load_wait(world, PROGRESS_NS); i++) {
		/* Twice: what was open stays as it was found. */
		(void)load_verify(&world->devices[i % world->device_count]);
		world_pass(world, NS_PER_S / 10);
	}
	world->calm = false;
}

/* True: the seed held. */
static bool run_seed(const struct seeds *seeds, uint64_t seed, struct totals *totals)
{
	struct world *world = calloc(1, sizeof *world);
	struct faults faults = {.world = world};
	bool held;

	if (world)
		world->trace = seeds->trace;
	if (!world || !world_make(world, seed, (enum wrap_mutant)seeds->mutant, seeds->dir) ||
	    !faults_init(&faults, world)) {
		fprintf(stderr, "system_seeds: cannot prepare seed %llu: %s\n",
			(unsigned long long)seed, world ? world->fault : "no memory");
		exit(3);
	}
	if (world_connect(world))
		run(&faults);
	held = world->fault[0] == '\0';
	if (!held && !seeds->mutant) {
		printf("seed %llu (%u devices over %u paths): %s\n", (unsigned long long)seed,
		       world->device_count, world->portal_count, world->fault);
		printf("again: system_seeds --seeds 1 --first %llu\n", (unsigned long long)seed);
	}
	totals->requests += world->requests;
	totals->errors += world->errors;
	totals->losses += world->losses;
	totals->crashes += world->crashes;
	totals->faults += faults.count;
	totals->hash = world->hash;
	if (seeds->verbose)
		printf("seed %llu: %u devices, %u paths, %llu requests, %llu errors, %llu faults, "
		       "%llu losses, %.1f s%s%s\n",
		       (unsigned long long)seed, world->device_count, world->portal_count,
		       (unsigned long long)world->requests, (unsigned long long)world->errors,
		       (unsigned long long)faults.count, (unsigned long long)world->losses,
		       (double)loop_now_ns(world->loop) / (double)NS_PER_S, held ? "" : ": ",
		       world->fault);
	faults_done(&faults);
	world_remove(world);
	free(world);
	return held;
}

/* A mutant may break an invariant of the initiator, which ends the process: that is noticing, too.
 */
static bool run_mutant(const struct seeds *seeds, uint64_t seed)
{
	pid_t pid;
	int status;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct totals totals = {0};

		if (!seeds->verbose && !freopen("/dev/null", "w", stderr))
			_exit(3);
		_exit(run_seed(seeds, seed, &totals) ? 0 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(3);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
		exit(3);
	return status == 0;
}

/* The first ones twice: a seed that could not be repeated would tell nothing. */
static bool run_all(const struct seeds *seeds, struct totals *totals)
{
	for (uint64_t seed = seeds->first; seed < seeds->first + seeds->count; seed++) {
		struct totals again = {0};

		if (!run_seed(seeds, seed, totals))
			return false;
		if (seed >= seeds->first + RUN_TWICE)
			continue;
		(void)run_seed(seeds, seed, &again);
		if (again.hash != totals->hash) {
			printf("seed %llu does not repeat\n", (unsigned long long)seed);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	struct seeds seeds = {.program = "system_seeds", .mutant_names = mutant_names};
	struct totals totals = {0};
	uint64_t noticed = 0;

	if (!seeds_parse(&seeds, argc, argv))
		return 2;
	log_set_level(seeds.trace ? LOG_LEVEL_WARN : LOG_LEVEL_NONE);
	if (!seeds.mutant && !run_all(&seeds, &totals))
		return 1;
	if (seeds.mutant) {
		for (uint64_t i = 0; i < seeds.count; i++)
			noticed += !run_mutant(&seeds, seeds.first + i);
		printf("%llu seeds: %llu noticed the mutant %s\n", (unsigned long long)seeds.count,
		       (unsigned long long)noticed, mutant_names[seeds.mutant]);
		return noticed ? 0 : 1;
	}
	printf("%llu seeds, %llu requests, %llu errors, %llu faults, %llu losses of paths, "
	       "%llu crashes: held\n",
	       (unsigned long long)seeds.count, (unsigned long long)totals.requests,
	       (unsigned long long)totals.errors, (unsigned long long)totals.faults,
	       (unsigned long long)totals.losses, (unsigned long long)totals.crashes);
	return 0;
}
