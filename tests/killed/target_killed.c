/* SPDX-License-Identifier: MIT
 *
 *   target_killed SANLAB LAB CONTROL PORTAL TARGET MIB ROUNDS SEED
 *
 * Starts SANLAB target LAB, writes to the volume, kills the target at a random moment, starts it
 * again and reads everything; ROUNDS times.  In two of three rounds drives fail, return or are
 * replaced, rebuilds and scrubs run, a battery is lost or a member drained before the kill; in one
 * of eight the target is killed while it starts, in one of eight while it ends in order.  The
 * target of the last round is left running, its pid on stdout.  Exits 0, or 1 with the reason on
 * stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <iscsi/iscsi.h>

#include "base/bytes.h"
#include "tests/killed/killed_faults.h"
#include "tests/killed/killed_load.h"
#include "tests/killed/killed_ready.h"

enum {
	LOAD_MIN_MS = 10,
	LOAD_SPAN_MS = 300,
	LAST_SPAN_MS = 40, /* between the last look at the target and the kill */
	FAULTS_MAX = 4,	   /* a round, less one */
	START_SPAN_MS = 250,
	END_SPAN_MS = 100,
};

static pid_t target_pid = -1;
static unsigned killed_starting, killed_ending;

static void kill_target(void)
{
	int status;
	if (target_pid <= 0)
		return;
	kill(target_pid, SIGKILL);
	while (waitpid(target_pid, &status, 0) < 0 && errno == EINTR)
		;
	target_pid = -1;
}

/* RET_OUT: what the target says. */
static bool launch_target(char **argv, int *ret_out)
{
	int out[2];

	if (pipe2(out, O_CLOEXEC))
		return false;
	target_pid = fork();
	if (target_pid == 0) {
		dup2(out[1], STDOUT_FILENO);
		execl(argv[1], argv[1], "target", argv[2], "--control", argv[3], (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	*ret_out = out[0];
	return target_pid > 0;
}

static bool start_target(char **argv)
{
	int out = -1;
	bool ready = launch_target(argv, &out) && wait_ready(out);

	if (out >= 0)
		close(out);
	if (!ready)
		fprintf(stderr, "the target did not become ready\n");
	return ready;
}

/* It dies in the middle of its start: in recovery, or before or after it. */
static bool kill_starting(struct rng *rng, char **argv)
{
	int out = -1;
	bool launched = launch_target(argv, &out);

	/* It says nothing before it is ready: a wait that ends then or with the time. */
	struct pollfd poller = {.fd = out, .events = POLLIN};
	if (launched)
		(void)poll(&poller, 1, (int)rng_below(rng, START_SPAN_MS));
	kill_target();
	if (out >= 0)
		close(out);
	killed_starting++;
	return launched;
}

/* Asks it to end; it dies in the middle of that, or has ended before. */
static void kill_ending(struct rng *rng, int connection)
{
	struct pollfd poller = {.fd = connection, .events = POLLRDHUP};

	kill(target_pid, SIGTERM);
	/* Its end has begun when the connection has; the rest of it is for chance. */
	(void)poll(&poller, 1, READY_MS);
	(void)poll(NULL, 0, (int)rng_below(rng, END_SPAN_MS));
	kill_target();
	killed_ending++;
}

static unsigned draw_span(struct load *load)
{
	return LOAD_MIN_MS + (unsigned)rng_below(&load->rng, LOAD_SPAN_MS);
}

static bool load_with_faults(struct load *load, struct faults *faults)
{
	uint64_t count = rng_below(&faults->rng, 3) ? 1 + rng_below(&faults->rng, FAULTS_MAX) : 0;

	for (uint64_t i = 0; i < count; i++)
		if (!load_run(load, draw_span(load) / 2) || !faults_step(faults))
			return false;
	return load_run(load, draw_span(load)) && faults_check(faults) &&
	       load_run(load, (unsigned)rng_below(&load->rng, LAST_SPAN_MS));
}

static bool one_round(struct load *load, struct faults *faults, char **argv, bool last)
{
	if (!last && rng_below(&faults->rng, 8) == 0)
		return kill_starting(&faults->rng, argv);
	if (!start_target(argv) || !load_connect(load) || !load_verify(load))
		return false;
	if (last) {
		load_disconnect(load);
		return true;
	}
	if (!load_with_faults(load, faults))
		return false;
	if (rng_below(&faults->rng, 7) == 0)
		kill_ending(&faults->rng, iscsi_get_fd(load->iscsi));
	else
		kill_target();
	return load_take_rest(load);
}

static void tell(const struct load *load, const struct faults *faults, unsigned rounds)
{
	fprintf(stderr,
		"%u kills (%u at the start, %u in the end; counted by members: %u with drives out, "
		"%u rebuilding, "
		"%u scrubbing, %u with a dirty cache, %u draining) after %u drives failed, %u "
		"returned, %u replaced, %u scrubs, %u battery changes, %u drains; %llu writes and "
		"%llu UNMAPs answered, all there\n",
		rounds, killed_starting, killed_ending, faults->while_out, faults->while_rebuilding,
		faults->while_scrubbing, faults->while_dirty, faults->while_draining,
		faults->failed, faults->returned, faults->replaced, faults->scrubs,
		faults->batteries, faults->drains, (unsigned long long)load->writes,
		(unsigned long long)load->unmaps);
}

int main(int argc, char **argv)
{
	struct faults faults = {0};
	struct load load;

	if (argc != 9) {
		fprintf(stderr, "usage: target_killed SANLAB LAB CONTROL PORTAL TARGET MIB ROUNDS "
				"SEED\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	uint32_t blocks = (uint32_t)(strtoul(argv[6], NULL, 10) * MIB / LOAD_BLOCK_BYTES);
	unsigned rounds = (unsigned)strtoul(argv[7], NULL, 10);
	if (!load_init(&load, argv[4], argv[5], blocks, strtoull(argv[8], NULL, 10)))
		return 1;
	faults.control = argv[3];
	rng_init(&faults.rng, strtoull(argv[8], NULL, 10), rng_stream_of("faults"));
	for (unsigned round = 0; round <= rounds; round++) {
		if (one_round(&load, &faults, argv, round == rounds))
			continue;
		fprintf(stderr, "failed in round %u of %u; again: %s ... %s %s\n", round, rounds,
			argv[0], argv[7], argv[8]);
		kill_target();
		load_done(&load);
		return 1;
	}
	tell(&load, &faults, rounds);
	printf("%d\n", (int)target_pid);
	load_done(&load);
	return 0;
}
